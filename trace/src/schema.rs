//! What a column of a trace is, and the columns that hold prompt and output.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};

use crate::meta::Content;

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

const fn list(name: &'static str, kind: Kind, nullable: bool) -> Column {
    Column {
        name,
        kind,
        nullable,
        required: !nullable,
    }
}

pub(crate) static PROMPT: Column = list("prompt", Kind::U32List, false);
pub(crate) static OUTPUT: Column = list("output", Kind::U32List, true);
pub(crate) static PROMPT_BLOCKS: Column = list("prompt_blocks", Kind::U64List, false);
pub(crate) static OUTPUT_BLOCKS: Column = list("output_blocks", Kind::U64List, true);

/// The columns that hold prompt and output.
pub(crate) fn body_columns(content: Content) -> [&'static Column; 2] {
    match content {
        Content::Tokens => [&PROMPT, &OUTPUT],
        Content::Blocks { .. } => [&PROMPT_BLOCKS, &OUTPUT_BLOCKS],
    }
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
