//! The metadata of a trace file: pairs of text in Parquet, one object in JSON.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The version of the schema, the value of `trace.schema`.
const SCHEMA_VERSION: &str = "1";

const KEY_SCHEMA: &str = "trace.schema";
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
}

/// Where a trace comes from, as its metadata says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// `trace.name`
    pub name: Option<String>,
    /// `trace.source`
    pub source: Option<String>,
    /// `trace.license`
    pub license: Option<String>,
    /// `trace.generator`
    pub generator: Option<String>,
    /// `trace.seed`
    pub seed: Option<String>,
}

impl Provenance {
    /// The fields with their metadata keys.
    fn fields(&mut self) -> [(&'static str, &mut Option<String>); 5] {
        [
            ("trace.name", &mut self.name),
            ("trace.source", &mut self.source),
            ("trace.license", &mut self.license),
            ("trace.generator", &mut self.generator),
            ("trace.seed", &mut self.seed),
        ]
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

/// A value of the metadata that this version cannot use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MetaFault {
    pub(crate) key: &'static str,
    pub(crate) found: String,
    pub(crate) expected: String,
}

impl MetaFault {
    fn new(key: &'static str, found: Option<&str>, expected: &str) -> Self {
        Self {
            key,
            found: found.map_or("absent".to_owned(), |found| format!("`{found}`")),
            expected: expected.to_owned(),
        }
    }
}

impl Meta {
    /// Metadata of a trace of which nothing but its content is known.
    pub fn new(content: Content) -> Self {
        Self {
            content,
            provenance: Provenance::default(),
        }
    }

    /// The pairs to write into a file.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            (KEY_SCHEMA, SCHEMA_VERSION.to_owned()),
            (KEY_CONTENT, self.content.name().to_owned()),
        ];
        if let Content::Blocks { block_tokens } = self.content {
            pairs.push((KEY_BLOCK_TOKENS, block_tokens.to_string()));
        }
        let mut provenance = self.provenance.clone();
        let known = provenance.fields().into_iter();
        pairs.extend(known.filter_map(|(key, value)| Some((key, value.take()?))));
        pairs
    }

    /// The metadata of which `value` gives the value of each key. `columns` is the content by the file's columns, where
    /// the metadata does not tell, and `block_tokens` the block size of blocks, where it does not tell that.
    pub(crate) fn read(
        value: impl Fn(&str) -> Option<String>,
        columns: Option<&str>,
        block_tokens: Option<u32>,
    ) -> Result<Self, MetaFault> {
        if let Some(version) = value(KEY_SCHEMA).filter(|version| version != SCHEMA_VERSION) {
            return Err(MetaFault::new(KEY_SCHEMA, Some(&version), "`1`"));
        }
        let stated = value(KEY_CONTENT);
        let content = match stated.as_deref().or(columns) {
            Some("tokens") => Content::Tokens,
            Some("blocks") => Content::Blocks {
                block_tokens: stated_block_tokens(value(KEY_BLOCK_TOKENS), block_tokens)?,
            },
            other => return Err(MetaFault::new(KEY_CONTENT, other, "`tokens` or `blocks`")),
        };
        let mut provenance = Provenance::default();
        for (key, field) in provenance.fields() {
            *field = value(key);
        }
        Ok(Self {
            content,
            provenance,
        })
    }
}

fn stated_block_tokens(stated: Option<String>, otherwise: Option<u32>) -> Result<u32, MetaFault> {
    let fault = |found, expected| Err(MetaFault::new(KEY_BLOCK_TOKENS, found, expected));
    match (stated, otherwise) {
        (Some(text), _) => match text.parse() {
            Ok(tokens) if tokens > 0 => Ok(tokens),
            _ => fault(Some(&text), "the tokens of a block, at least 1"),
        },
        (None, Some(tokens)) => Ok(tokens),
        (None, None) => fault(
            None,
            "the tokens of a block, as this is a trace of block ids; give a block size when loading",
        ),
    }
}

impl Serialize for Meta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in self.pairs() {
            match self.content {
                Content::Blocks { block_tokens } if key == KEY_BLOCK_TOKENS => {
                    map.serialize_entry(key, &block_tokens)?;
                }
                _ => map.serialize_entry(key, &value)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut values = BTreeMap::<String, JsonValue>::deserialize(deserializer)?;
        values.retain(|_, value| !matches!(value, JsonValue::Other(_)));
        let text = |value: &JsonValue| match value {
            JsonValue::Text(text) => text.clone(),
            JsonValue::Number(number) => number.to_string(),
            JsonValue::Other(_) => String::new(),
        };
        Self::read(|key| values.get(key).map(text), None, None).map_err(|fault| {
            let MetaFault {
                key,
                found,
                expected,
            } = fault;
            D::Error::custom(format!("{key} is {found}; expected {expected}"))
        })
    }
}

/// A value of the JSON object.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum JsonValue {
    Text(String),
    Number(u64),
    Other(IgnoredAny),
}
