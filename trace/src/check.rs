//! The rules that every row keeps, read or written.

use rustc_hash::FxHashSet;

use crate::columns::COLUMN;
use crate::error::Fault;
use crate::meta::Content;
use crate::row::{Body, Row, path_blocks, prompt_blocks};
use crate::schema::{OUTPUT, OUTPUT_BLOCKS, PROMPT, PROMPT_BLOCKS, body_columns};

/// The latest arrival: beyond it a float no longer tells microseconds apart, and sums of times could overflow.
pub const LATEST_ARRIVAL_US: i64 = 1 << 53;

/// Checks rows in the order of the file; reader and writer keep the same rules.
#[derive(Debug)]
pub(crate) struct RowChecker {
    content: Content,
    last_arrival_us: i64,
    request_ids: Ids,
}

impl RowChecker {
    pub(crate) fn new(content: Content) -> Self {
        Self {
            content,
            last_arrival_us: 0,
            request_ids: Ids::default(),
        }
    }

    /// Checks the next row. A row that is refused leaves no trace: the next one is checked as if it had not been.
    pub(crate) fn check(&mut self, row: &Row<'_>) -> Result<(), Fault> {
        self.check_arrival(row.arrival_us)?;
        let total = u64::from(row.prompt_tokens) + u64::from(row.output_tokens);
        if total > u64::from(u32::MAX) {
            return Err(Fault::new(
                COLUMN.output_tokens.name,
                format!("prompt and output have {total} tokens together"),
                format!("at most {}", u32::MAX),
            ));
        }
        self.check_body(row)?;
        if !self.request_ids.insert(row.request_id) {
            return Err(Fault::new(
                COLUMN.request_id.name,
                format!("{}, which an earlier row has", row.request_id),
                "an id of its own",
            ));
        }
        self.last_arrival_us = row.arrival_us;
        Ok(())
    }

    fn check_body(&self, row: &Row<'_>) -> Result<(), Fault> {
        match (self.content, &row.body) {
            (Content::Tokens, Body::Tokens { prompt, output }) => {
                let output = output.as_ref().map(|output| output.len());
                check_tokens(row, prompt.len(), output)
            }
            (Content::Blocks { block_tokens }, Body::Blocks { prompt, output }) => {
                let output = output.as_ref().map(|output| output.len());
                check_blocks(row, block_tokens, prompt.len(), output)
            }
            (content, _) => Err(Fault::new(
                body_columns(content)[0].name,
                "a row of the other content",
                format!("a trace of {}", content.name()),
            )),
        }
    }

    fn check_arrival(&self, arrival_us: i64) -> Result<(), Fault> {
        let fault = |expected| Fault::new(COLUMN.arrival_us.name, arrival_us.to_string(), expected);
        if !(0..=LATEST_ARRIVAL_US).contains(&arrival_us) {
            return Err(fault(format!(
                "microseconds from 0 to 2^53 ({LATEST_ARRIVAL_US}, 285 years)"
            )));
        }
        if arrival_us < self.last_arrival_us {
            let before = self.last_arrival_us;
            return Err(fault(format!(
                "rows sorted by arrival (the row before has {before})"
            )));
        }
        Ok(())
    }
}

/// The ids so far. Mostly they count up, and then they are a range or a few.
#[derive(Debug, Default)]
struct Ids {
    /// Ranges of ids, ends included, as long as every id was larger than all before.
    ascending: Vec<(u64, u64)>,
    /// All of them, once one was not.
    all: FxHashSet<u64>,
}

impl Ids {
    /// Whether the id is new.
    fn insert(&mut self, id: u64) -> bool {
        if !self.all.is_empty() {
            return self.all.insert(id);
        }
        match self.ascending.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(id) => *last = id,
            Some((_, last)) if id <= *last => {
                let ranges = std::mem::take(&mut self.ascending);
                self.all = ranges
                    .into_iter()
                    .flat_map(|(first, last)| first..=last)
                    .collect();
                return self.all.insert(id);
            }
            _ => self.ascending.push((id, id)),
        }
        true
    }
}

fn check_tokens(row: &Row<'_>, prompt: usize, output: Option<usize>) -> Result<(), Fault> {
    let count = |column, found: usize, expected: u32, of: &str| {
        if found == expected as usize {
            return Ok(());
        }
        let found = format!("{found} tokens");
        Err(Fault::new(column, found, format!("{expected} ({of})")))
    };
    count(
        PROMPT.name,
        prompt,
        row.prompt_tokens,
        COLUMN.prompt_tokens.name,
    )?;
    match output {
        Some(output) => count(
            OUTPUT.name,
            output,
            row.output_tokens,
            COLUMN.output_tokens.name,
        ),
        None => Ok(()),
    }
}

fn check_blocks(
    row: &Row<'_>,
    block_tokens: u32,
    prompt: usize,
    output: Option<usize>,
) -> Result<(), Fault> {
    let (s, o) = (row.prompt_tokens, row.output_tokens);
    let n = prompt_blocks(s, block_tokens);
    if prompt != n as usize {
        return Err(Fault::new(
            PROMPT_BLOCKS.name,
            format!("{prompt} blocks"),
            format!("{n}: the full blocks of {block_tokens} tokens in a prompt of {s}"),
        ));
    }
    let after = path_blocks(s, o, block_tokens) - u64::from(n);
    match output {
        Some(output) if output as u64 != after => Err(Fault::new(
            OUTPUT_BLOCKS.name,
            format!("{output} blocks"),
            format!(
                "{after}: the full blocks of {block_tokens} tokens after the prompt's {n}, \
                 with a prompt of {s} and an output of {o} tokens of which the last is not cached"
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once() {
        let mut ids = Ids::default();
        let new = [5, 6, 9, 7, 5, 8, 9, u64::MAX, 0, u64::MAX].map(|id| ids.insert(id));
        let expected = [
            true, true, true, true, false, true, false, true, true, false,
        ];
        assert_eq!(new, expected);
        let mut ids = Ids::default();
        assert_eq!(
            [u64::MAX, 0, 0, u64::MAX].map(|id| ids.insert(id)),
            [true, true, false, false]
        );
    }
}
