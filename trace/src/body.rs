//! The two list columns of prompt and output, whose names and type depend on the content.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, ListArray, ListBuilder, PrimitiveBuilder,
    RecordBatch,
};
use arrow::datatypes::{UInt32Type, UInt64Type};
use serde::ser::SerializeMap;

use crate::decode::{RowFault, optional, required};
use crate::meta::Content;
use crate::row::Body;
use crate::schema::{self, OUTPUT, OUTPUT_BLOCKS, PROMPT, PROMPT_BLOCKS, body_columns};

/// Prompt and output of one batch.
pub(crate) enum BodyColumns {
    Tokens(ListArray, Option<ListArray>),
    Blocks(ListArray, Option<ListArray>),
}

impl BodyColumns {
    pub(crate) fn decode(batch: &RecordBatch, content: Content) -> Result<Self, RowFault> {
        let [prompt, output] = body_columns(content);
        let (prompt, output) = (required(batch, prompt)?, optional(batch, output)?);
        let prompt = prompt.as_list::<i32>().clone();
        let output = output.map(|array| array.as_list::<i32>().clone());
        Ok(match content {
            Content::Tokens => Self::Tokens(prompt, output),
            Content::Blocks { .. } => Self::Blocks(prompt, output),
        })
    }

    pub(crate) fn row(&self, at: usize) -> Body<'_> {
        match self {
            Self::Tokens(prompt, output) => Body::Tokens {
                prompt: Cow::Borrowed(list::<UInt32Type>(prompt, at)),
                output: known(output.as_ref(), at)
                    .map(|of| Cow::Borrowed(list::<UInt32Type>(of, at))),
            },
            Self::Blocks(prompt, output) => Body::Blocks {
                prompt: Cow::Borrowed(list::<UInt64Type>(prompt, at)),
                output: known(output.as_ref(), at)
                    .map(|of| Cow::Borrowed(list::<UInt64Type>(of, at))),
            },
        }
    }
}

/// The elements of list `at`.
fn list<T: ArrowPrimitiveType>(lists: &ListArray, at: usize) -> &[T::Native] {
    let offsets = lists.value_offsets();
    let range = offsets[at] as usize..offsets[at + 1] as usize;
    &lists.values().as_primitive::<T>().values()[range]
}

fn known(lists: Option<&ListArray>, at: usize) -> Option<&ListArray> {
    lists.filter(|lists| lists.is_valid(at))
}

/// Buffers of prompt and output.
pub(crate) enum BodyBuffers {
    Tokens(Lists<UInt32Type>),
    Blocks(Lists<UInt64Type>),
}

impl BodyBuffers {
    pub(crate) fn new(content: Content) -> Self {
        match content {
            Content::Tokens => Self::Tokens(Lists::new()),
            Content::Blocks { .. } => Self::Blocks(Lists::new()),
        }
    }

    /// Buffers a body of the right content (rows are checked before); returns its list elements.
    pub(crate) fn push(&mut self, body: &Body<'_>) -> usize {
        match (self, body) {
            (Self::Tokens(lists), Body::Tokens { prompt, output }) => {
                lists.push(prompt, output.as_deref())
            }
            (Self::Blocks(lists), Body::Blocks { prompt, output }) => {
                lists.push(prompt, output.as_deref())
            }
            _ => 0,
        }
    }

    pub(crate) fn take(&mut self) -> [ArrayRef; 2] {
        match self {
            Self::Tokens(lists) => lists.take(),
            Self::Blocks(lists) => lists.take(),
        }
    }
}

/// The two list columns of prompt and output.
pub(crate) struct Lists<T: ArrowPrimitiveType> {
    prompt: ListBuilder<PrimitiveBuilder<T>>,
    output: ListBuilder<PrimitiveBuilder<T>>,
}

impl<T: ArrowPrimitiveType> Lists<T> {
    fn new() -> Self {
        let list = || {
            ListBuilder::new(PrimitiveBuilder::<T>::new()).with_field(schema::element(T::DATA_TYPE))
        };
        Self {
            prompt: list(),
            output: list(),
        }
    }

    fn push(&mut self, prompt: &[T::Native], output: Option<&[T::Native]>) -> usize {
        self.prompt.values().append_slice(prompt);
        self.prompt.append(true);
        self.output
            .values()
            .append_slice(output.unwrap_or_default());
        self.output.append(output.is_some());
        prompt.len() + output.map_or(0, <[_]>::len)
    }

    fn take(&mut self) -> [ArrayRef; 2] {
        [
            Arc::new(self.prompt.finish()),
            Arc::new(self.output.finish()),
        ]
    }
}

impl Body<'_> {
    /// Writes the entries of an object.
    pub(crate) fn entries<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Tokens { prompt, output } => {
                map.serialize_entry(PROMPT.name, prompt)?;
                output
                    .iter()
                    .try_for_each(|output| map.serialize_entry(OUTPUT.name, output))
            }
            Self::Blocks { prompt, output } => {
                map.serialize_entry(PROMPT_BLOCKS.name, prompt)?;
                output
                    .iter()
                    .try_for_each(|output| map.serialize_entry(OUTPUT_BLOCKS.name, output))
            }
        }
    }
}

/// Prompt and output as the entries of a JSON object hold them.
pub(crate) struct JsonBody {
    pub(crate) prompt: Option<Vec<u32>>,
    pub(crate) output: Option<Vec<u32>>,
    pub(crate) prompt_blocks: Option<Vec<u64>>,
    pub(crate) output_blocks: Option<Vec<u64>>,
}

impl TryFrom<JsonBody> for Body<'static> {
    type Error = String;

    fn try_from(json: JsonBody) -> Result<Self, String> {
        match json {
            JsonBody {
                prompt: Some(prompt),
                output,
                prompt_blocks: None,
                output_blocks: None,
            } => Ok(Self::Tokens {
                prompt: Cow::Owned(prompt),
                output: output.map(Cow::Owned),
            }),
            JsonBody {
                prompt: None,
                output: None,
                prompt_blocks: Some(prompt),
                output_blocks,
            } => Ok(Self::Blocks {
                prompt: Cow::Owned(prompt),
                output: output_blocks.map(Cow::Owned),
            }),
            _ => Err(format!(
                "expected either `{}` (tokens) or `{}` (block ids)",
                PROMPT.name, PROMPT_BLOCKS.name
            )),
        }
    }
}
