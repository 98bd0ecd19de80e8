//! What a command prints for people: sections of a table with lines above and below it.

use replay::TraceRecord;

use crate::numbers::grouped;
use crate::table::Table;

/// A table, with what a reader must know before and after it.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Lines above the table; the first says what it is about.
    pub head: Vec<String>,
    /// The table.
    pub table: Table,
    /// Lines below the table.
    pub notes: Vec<String>,
}

impl Section {
    fn plain(&self) -> String {
        let table = self.table.plain();
        let mut text = lines(&self.head);
        if !self.head.is_empty() && !table.is_empty() {
            text.push('\n');
        }
        text.push_str(&table);
        if !self.notes.is_empty() {
            text.push('\n');
            text.push_str(&lines(&self.notes));
        }
        text
    }

    fn markdown(&self) -> String {
        let mut text = String::new();
        if let Some((title, rest)) = self.head.split_first() {
            text.push_str(&format!("### {}\n\n", title.replace('|', "\\|")));
            text.push_str(&list(rest));
        }
        text.push_str(&self.table.markdown());
        if !self.notes.is_empty() {
            text.push('\n');
            text.push_str(&list(&self.notes));
        }
        text
    }
}

/// Sections one below the other.
#[derive(Clone, Debug, Default)]
pub struct Page(pub Vec<Section>);

impl Page {
    /// For a terminal.
    pub fn plain(&self) -> String {
        self.joined(Section::plain)
    }

    /// For a document.
    pub fn markdown(&self) -> String {
        self.joined(Section::markdown)
    }

    fn joined(&self, form: fn(&Section) -> String) -> String {
        let sections: Vec<_> = self.0.iter().map(form).collect();
        sections.join("\n")
    }
}

fn lines(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A list, and a blank line behind it.
pub(crate) fn list(items: &[String]) -> String {
    let items: String = items.iter().map(|item| format!("- {item}\n")).collect();
    match items.is_empty() {
        true => items,
        false => items + "\n",
    }
}

/// What a trace holds, in two lines.
pub(crate) fn trace_lines(trace: &TraceRecord) -> Vec<String> {
    vec![
        format!(
            "{}: {} requests, {} prompt tokens",
            trace.path,
            grouped(trace.requests as u64),
            grouped(trace.prompt_tokens),
        ),
        format!(
            "{} block touches, {} distinct blocks of {} tokens",
            grouped(trace.blocks),
            grouped(u64::from(trace.distinct_blocks)),
            trace.block_tokens,
        ),
    ]
}
