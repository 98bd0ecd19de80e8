//! Tables as data: columns are declared once, and every table is drawn here.

use comfy_table::{CellAlignment, presets};

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// One column of a table of records.
pub struct Column<R: ?Sized> {
    /// Its header.
    pub name: &'static str,
    /// Where its cells stand.
    pub align: Align,
    /// What it says of a record.
    pub cell: fn(&R) -> String,
    /// Whether a table of these records has it.
    pub when: fn(&[&R]) -> bool,
}

impl<R: ?Sized> Column<R> {
    /// A column of words.
    pub const fn words(name: &'static str, cell: fn(&R) -> String) -> Self {
        Self {
            name,
            align: Align::Left,
            cell,
            when: |_| true,
        }
    }

    /// A column of numbers.
    pub const fn numbers(name: &'static str, cell: fn(&R) -> String) -> Self {
        Self {
            align: Align::Right,
            ..Self::words(name, cell)
        }
    }

    /// The column, only where the records call for it.
    pub const fn when(mut self, when: fn(&[&R]) -> bool) -> Self {
        self.when = when;
        self
    }
}

/// A table of text, in no form yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = (String, Align)>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// One row per record, of the columns that these records call for.
    pub fn of<R: ?Sized>(columns: &[Column<R>], records: &[&R]) -> Self {
        let columns: Vec<_> = columns
            .iter()
            .filter(|column| (column.when)(records))
            .collect();
        let header = columns
            .iter()
            .map(|column| (column.name.to_owned(), column.align));
        let mut table = Self::new(header);
        for record in records {
            let cells = columns.iter().map(|column| (column.cell)(record));
            table.push(cells.collect());
        }
        table
    }

    /// Adds a row with one cell per column.
    pub fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.columns.len());
        self.rows.push(row);
    }

    /// Columns side by side, without lines between them.
    pub fn plain(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        // A header of nothing but blanks is no header.
        if self.columns.iter().any(|(name, _)| !name.is_empty()) {
            table.set_header(self.columns.iter().map(|(name, _)| name));
        }
        table.add_rows(&self.rows);
        for (column, (_, align)) in table.column_iter_mut().zip(&self.columns) {
            column.set_padding((0, 2));
            if *align == Align::Right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
            .lines()
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect()
    }

    /// A table as Markdown has them, with the columns in line.
    pub fn markdown(&self) -> String {
        let header: Vec<_> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let widths: Vec<_> = (0..self.columns.len())
            .map(|at| {
                let cells = self.rows.iter().chain([&header]);
                cells.map(|row| row[at].chars().count()).max().unwrap_or(0)
            })
            .collect();
        let line = |row: &[String]| {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let cells = cells.map(|((cell, (_, align)), width)| match align {
                Align::Left => format!(" {cell:<width$} |"),
                Align::Right => format!(" {cell:>width$} |"),
            });
            format!("|{}\n", cells.collect::<String>())
        };
        let rule: Vec<_> = self
            .columns
            .iter()
            .zip(&widths)
            .map(|((_, align), width)| match align {
                Align::Left => "-".repeat(*width),
                Align::Right => "-".repeat(width.saturating_sub(1)) + ":",
            })
            .collect();
        let rows = self.rows.iter().map(|row| line(row));
        [line(&header), line(&rule)]
            .into_iter()
            .chain(rows)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column<(&str, u32)>] = &[
        Column::words("name", |record| record.0.to_owned()),
        Column::numbers("count", |record| record.1.to_string()),
        Column::numbers("twice", |record: &(&str, u32)| (2 * record.1).to_string())
            .when(|records| records.iter().any(|record| record.1 > 9)),
    ];

    #[test]
    fn columns_stand_in_line() {
        let table = Table::of(COLUMNS, &[&("a", 5), &("bcd", 10)]);
        assert_eq!(
            table.plain(),
            "name  count  twice\na         5     10\nbcd      10     20\n"
        );
        assert_eq!(
            table.markdown(),
            "| name | count | twice |\n| ---- | ----: | ----: |\n| a    |     5 |    10 |\n| bcd  |    10 |    20 |\n"
        );
    }

    #[test]
    fn a_column_may_be_left_out() {
        let table = Table::of(COLUMNS, &[&("a", 5)]);
        assert_eq!(table.plain(), "name  count\na         5\n");
    }
}
