//! The columns and the metadata of a trace file.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};

use crate::workload::Provenance;

/// The version of the schema, the value of `trace.schema`.
pub(crate) const SCHEMA_VERSION: &str = "1";

pub(crate) const KEY_SCHEMA: &str = "trace.schema";
pub(crate) const KEY_CONTENT: &str = "trace.content";
pub(crate) const KEY_BLOCK_TOKENS: &str = "trace.block_tokens";

/// What the rows of a trace hold: the tokens themselves, or ids of blocks of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Columns `prompt` and `output`: token ids.
    Tokens,
    /// Columns `prompt_blocks` and `output_blocks`: ids of full blocks, each standing for its whole prefix.
    Blocks {
        /// Tokens of a block, at least 1.
        block_tokens: u32,
    },
}

impl Content {
    /// The value of the metadata key `trace.content`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Blocks { .. } => "blocks",
        }
    }

    /// The columns that hold prompt and output.
    pub(crate) fn body(self) -> [&'static Column; 2] {
        match self {
            Self::Tokens => [&PROMPT, &OUTPUT],
            Self::Blocks { .. } => [&PROMPT_BLOCKS, &OUTPUT_BLOCKS],
        }
    }
}

/// What the metadata of a trace file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What the rows hold.
    pub content: Content,
    /// Where the trace comes from.
    pub provenance: Provenance,
}

impl Meta {
    /// Metadata of a trace of which nothing but its content is known.
    pub fn new(content: Content) -> Self {
        Self {
            content,
            provenance: Provenance::default(),
        }
    }

    /// The pairs to write into the file.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            (KEY_SCHEMA, SCHEMA_VERSION.to_owned()),
            (KEY_CONTENT, self.content.name().to_owned()),
        ];
        if let Content::Blocks { block_tokens } = self.content {
            pairs.push((KEY_BLOCK_TOKENS, block_tokens.to_string()));
        }
        let Provenance {
            name,
            source,
            license,
            generator,
            seed,
        } = &self.provenance;
        let optional = [
            ("trace.name", name),
            ("trace.source", source),
            ("trace.license", license),
            ("trace.generator", generator),
            ("trace.seed", seed),
        ];
        pairs.extend(
            optional
                .into_iter()
                .filter_map(|(key, value)| Some((key, value.clone()?))),
        );
        pairs
    }
}

/// One column of the schema.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    pub(crate) required: bool,
}

/// The type of a column as we write it; reading also takes what converts without loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U32,
    U64,
    I64,
    Name,
    U32List,
    U64List,
}

const fn column(name: &'static str, kind: Kind, nullable: bool, required: bool) -> Column {
    Column {
        name,
        kind,
        nullable,
        required,
    }
}

pub(crate) static REQUEST_ID: Column = column("request_id", Kind::U64, false, true);
pub(crate) static ARRIVAL_US: Column = column("arrival_us", Kind::I64, false, true);
pub(crate) static SESSION_ID: Column = column("session_id", Kind::U64, false, true);
pub(crate) static STEP: Column = column("step", Kind::U32, false, false);
pub(crate) static PARENT_REQUEST: Column = column("parent_request", Kind::U64, true, false);
pub(crate) static KIND: Column = column("kind", Kind::Name, false, false);
pub(crate) static TENANT: Column = column("tenant", Kind::U32, false, false);
pub(crate) static TOOL: Column = column("tool", Kind::Name, true, false);
pub(crate) static PROMPT_TOKENS: Column = column("prompt_tokens", Kind::U32, false, true);
pub(crate) static OUTPUT_TOKENS: Column = column("output_tokens", Kind::U32, false, true);
pub(crate) static PROMPT: Column = column("prompt", Kind::U32List, false, true);
pub(crate) static OUTPUT: Column = column("output", Kind::U32List, true, false);
pub(crate) static PROMPT_BLOCKS: Column = column("prompt_blocks", Kind::U64List, false, true);
pub(crate) static OUTPUT_BLOCKS: Column = column("output_blocks", Kind::U64List, true, false);
pub(crate) static PRIORITY: Column = column("priority", Kind::U32, true, false);
pub(crate) static PRIORITY_TTL_US: Column = column("priority_ttl_us", Kind::U64, true, false);
pub(crate) static TEMPLATE_ID: Column = column("template_id", Kind::U64, true, false);
pub(crate) static TEMPLATE_TOKENS: Column = column("template_tokens", Kind::U32, true, false);
pub(crate) static REMAINING_USES: Column = column("remaining_uses", Kind::U32, true, false);
pub(crate) static STEPS_TO_NEXT: Column = column("steps_to_next", Kind::U32, true, false);

/// The columns of a trace, in the order in which they are written.
pub(crate) fn columns(content: Content) -> Vec<&'static Column> {
    let [prompt, output] = content.body();
    vec![
        &REQUEST_ID,
        &ARRIVAL_US,
        &SESSION_ID,
        &STEP,
        &PARENT_REQUEST,
        &KIND,
        &TENANT,
        &TOOL,
        &PROMPT_TOKENS,
        &OUTPUT_TOKENS,
        prompt,
        output,
        &PRIORITY,
        &PRIORITY_TTL_US,
        &TEMPLATE_ID,
        &TEMPLATE_TOKENS,
        &REMAINING_USES,
        &STEPS_TO_NEXT,
    ]
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

/// The field of a list's elements. Parquet names it `element`.
pub(crate) fn element(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", data_type, false))
}

impl Kind {
    /// The type in which the column is written.
    pub(crate) fn written(self) -> DataType {
        match self {
            Self::U32 => DataType::UInt32,
            Self::U64 => DataType::UInt64,
            Self::I64 => DataType::Int64,
            Self::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Self::U32List => DataType::List(element(DataType::UInt32)),
            Self::U64List => DataType::List(element(DataType::UInt64)),
        }
    }

    /// The type to which the column is converted when read. Elements may be null until they are checked.
    pub(crate) fn read(self) -> DataType {
        let list = |of| DataType::List(Arc::new(Field::new("element", of, true)));
        match self {
            Self::Name => DataType::Utf8,
            Self::U32List => list(DataType::UInt32),
            Self::U64List => list(DataType::UInt64),
            scalar => scalar.written(),
        }
    }

    /// Whether a column of this type can be converted, value by value. A column of nulls only may have no type.
    pub(crate) fn accepts(self, found: &DataType) -> bool {
        match self {
            Self::U32 | Self::U64 | Self::I64 => is_integer(found),
            Self::Name => is_text(found),
            Self::U32List | Self::U64List => match found {
                DataType::List(of)
                | DataType::LargeList(of)
                | DataType::ListView(of)
                | DataType::LargeListView(of)
                | DataType::FixedSizeList(of, _) => is_integer(of.data_type()),
                other => other.is_null(),
            },
        }
    }

    /// The type in words.
    pub(crate) fn expected(self) -> &'static str {
        match self {
            Self::U32 => "an integer column (u32)",
            Self::U64 => "an integer column (u64)",
            Self::I64 => "an integer column (i64)",
            Self::Name => "a text column (dictionary of utf8, or utf8)",
            Self::U32List => "a list of integers (list<u32>)",
            Self::U64List => "a list of integers (list<u64>)",
        }
    }
}

fn is_integer(found: &DataType) -> bool {
    found.is_integer() || found.is_null()
}

fn is_text(found: &DataType) -> bool {
    match found {
        DataType::Dictionary(_, of) => is_text(of),
        other => other.is_string() || other.is_null(),
    }
}
