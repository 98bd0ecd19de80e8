//! The columns of a trace, declared once: the list is at the end of this file. Schema, decoding, encoding and the JSON form
//! follow from it.
//!
//! To add a column, add a field to [`Row`] or [`Hints`] and a line to the list. Prompt and output are not in the list, as
//! their columns depend on the content ([`body_columns`]).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayBuilder, ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use policy_api::Hints;
use serde::de::Error;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::body::{BodyBuffers, BodyColumns, JsonBody};
use crate::decode::{RowFault, decoded};
use crate::meta::{Content, Meta};
use crate::row::Row;
use crate::schema::{Column, body_columns};
use crate::stored::{ArrayOf, BuilderOf, JsonOf, Name, Stored, column, entry, of_json, put};

/// Makes everything that knows all columns. A field of [`Hints`] without a column, or the reverse, does not compile.
macro_rules! columns {
    (
        row { $($field:ident: $of:ty = $need:ident,)* }
        hints { $($hint:ident: $hint_of:ty = $hint_need:ident,)* }
    ) => {
        /// The declared columns by name.
        pub(crate) struct Declared {
            $(pub(crate) $field: Column,)*
            $(pub(crate) $hint: Column,)*
        }

        pub(crate) static COLUMN: Declared = Declared {
            $($field: column::<$of>(stringify!($field), is_required!($need)),)*
            $($hint: column::<$hint_of>(stringify!($hint), is_required!($hint_need)),)*
        };

        /// The columns of a trace, in the order in which they are written.
        pub(crate) fn columns(content: Content) -> Vec<&'static Column> {
            let [prompt, output] = body_columns(content);
            vec![$(&COLUMN.$field,)* prompt, output, $(&COLUMN.$hint,)*]
        }

        /// The columns of one batch. Those that may be absent are `None` then.
        pub(crate) struct Columns {
            rows: usize,
            body: BodyColumns,
            $($field: Option<ArrayOf<$of>>,)*
            $($hint: Option<ArrayOf<$hint_of>>,)*
        }

        impl Columns {
            /// Converts a batch.
            ///
            /// # Errors
            /// The first value of a column that is null where it must not be, or does not fit.
            pub(crate) fn decode(batch: &RecordBatch, content: Content) -> Result<Self, RowFault> {
                Ok(Self {
                    rows: batch.num_rows(),
                    body: BodyColumns::decode(batch, content)?,
                    $($field: decoded::<$of>(batch, &COLUMN.$field)?,)*
                    $($hint: decoded::<$hint_of>(batch, &COLUMN.$hint)?,)*
                })
            }

            pub(crate) fn rows(&self) -> usize {
                self.rows
            }

            /// Row `at` of the batch.
            pub(crate) fn row(&self, at: usize) -> Row<'_> {
                Row {
                    $($field: <$of as Stored>::get(self.$field.as_ref(), at),)*
                    body: self.body.row(at),
                    hints: Hints {
                        $($hint: <$hint_of as Stored>::get(self.$hint.as_ref(), at),)*
                    },
                }
            }
        }

        /// Column buffers of the rows not yet encoded.
        pub(crate) struct Buffers {
            pub(crate) rows: usize,
            pub(crate) elements: usize,
            body: BodyBuffers,
            $($field: BuilderOf<$of>,)*
            $($hint: BuilderOf<$hint_of>,)*
        }

        impl Buffers {
            pub(crate) fn new(content: Content) -> Self {
                Self {
                    rows: 0,
                    elements: 0,
                    body: BodyBuffers::new(content),
                    $($field: Default::default(),)*
                    $($hint: Default::default(),)*
                }
            }

            /// Buffers a checked row.
            pub(crate) fn push(&mut self, row: &Row<'_>) {
                $(put::<$of>(&mut self.$field, &row.$field);)*
                $(put::<$hint_of>(&mut self.$hint, &row.hints.$hint);)*
                self.rows += 1;
                self.elements += self.body.push(&row.body);
            }

            /// The buffered rows as arrays in the order of [`columns`].
            pub(crate) fn take(&mut self) -> Vec<ArrayRef> {
                self.rows = 0;
                self.elements = 0;
                let [prompt, output] = self.body.take();
                vec![
                    $((&mut self.$field as &mut dyn ArrayBuilder).finish(),)*
                    prompt,
                    output,
                    $((&mut self.$hint as &mut dyn ArrayBuilder).finish(),)*
                ]
            }
        }

        impl Serialize for Row<'_> {
            /// An object of the columns that have a value.
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(entry::<$of, _>(&mut map, stringify!($field), &self.$field)?;)*
                self.body.entries(&mut map)?;
                $(entry::<$hint_of, _>(&mut map, stringify!($hint), &self.hints.$hint)?;)*
                map.end()
            }
        }

        /// A row as a JSON object.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct JsonRow {
            $($field: Option<JsonOf<$of>>,)*
            prompt: Option<Vec<u32>>,
            output: Option<Vec<u32>>,
            prompt_blocks: Option<Vec<u64>>,
            output_blocks: Option<Vec<u64>>,
            $($hint: Option<JsonOf<$hint_of>>,)*
        }

        impl TryFrom<JsonRow> for Row<'static> {
            type Error = String;

            fn try_from(json: JsonRow) -> Result<Self, String> {
                Ok(Self {
                    $($field: of_json::<$of>(json.$field, &COLUMN.$field)?,)*
                    body: JsonBody {
                        prompt: json.prompt,
                        output: json.output,
                        prompt_blocks: json.prompt_blocks,
                        output_blocks: json.output_blocks,
                    }
                    .try_into()?,
                    hints: Hints {
                        $($hint: of_json::<$hint_of>(json.$hint, &COLUMN.$hint)?,)*
                    },
                })
            }
        }
    };
}

impl<'de> Deserialize<'de> for Row<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(JsonRow::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

macro_rules! is_required {
    (required) => {
        true
    };
    (optional) => {
        false
    };
}

columns! {
    row {
        request_id: u64 = required,
        arrival_us: i64 = required,
        session_id: u64 = required,
        step: u32 = optional,
        parent_request: Option<u64> = optional,
        kind: Name = optional,
        tenant: u32 = optional,
        tool: Option<Name> = optional,
        prompt_tokens: u32 = required,
        output_tokens: u32 = required,
    }
    hints {
        priority: Option<u32> = optional,
        priority_ttl_us: Option<u64> = optional,
        template_id: Option<u64> = optional,
        template_tokens: Option<u32> = optional,
        remaining_uses: Option<u32> = optional,
        steps_to_next: Option<u32> = optional,
    }
}

/// The Arrow schema of a trace as we write it. It repeats the metadata, as that is where pyarrow shows it.
pub(crate) fn arrow_schema(meta: &Meta) -> Arc<Schema> {
    let fields: Vec<Field> = columns(meta.content)
        .into_iter()
        .map(|column| Field::new(column.name, column.kind.written(), column.nullable))
        .collect();
    let pairs = meta.pairs().into_iter();
    let metadata: HashMap<_, _> = pairs.map(|(key, value)| (key.to_owned(), value)).collect();
    Arc::new(Schema::new_with_metadata(fields, metadata))
}
