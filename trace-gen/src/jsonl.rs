//! Rows of a trace as lines of JSON: a first line with the trace's metadata, then one object a request, with the names
//! and units of the Parquet columns. Nothing is lost either way.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use trace::{Body, Content, Hints, Meta, Provenance, Row};

/// The first line.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Head {
    #[serde(rename = "trace.schema")]
    schema: String,
    #[serde(rename = "trace.content")]
    content: String,
    #[serde(rename = "trace.block_tokens", skip_serializing_if = "Option::is_none")]
    block_tokens: Option<u32>,
    #[serde(rename = "trace.name", skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(rename = "trace.source", skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(rename = "trace.license", skip_serializing_if = "Option::is_none")]
    license: Option<String>,
    #[serde(rename = "trace.generator", skip_serializing_if = "Option::is_none")]
    generator: Option<String>,
    #[serde(rename = "trace.seed", skip_serializing_if = "Option::is_none")]
    seed: Option<String>,
}

impl Head {
    pub(crate) fn new(meta: &Meta) -> Self {
        let of = meta.provenance.clone();
        Self {
            schema: "1".to_owned(),
            content: meta.content.name().to_owned(),
            block_tokens: match meta.content {
                Content::Blocks { block_tokens } => Some(block_tokens),
                Content::Tokens => None,
            },
            name: of.name,
            source: of.source,
            license: of.license,
            generator: of.generator,
            seed: of.seed,
        }
    }

    pub(crate) fn meta(self) -> Result<Meta, String> {
        if self.schema != "1" {
            return Err(format!("trace.schema `{}`; expected `1`", self.schema));
        }
        let content = match (self.content.as_str(), self.block_tokens) {
            ("tokens", _) => Content::Tokens,
            ("blocks", Some(block_tokens)) if block_tokens > 0 => Content::Blocks { block_tokens },
            ("blocks", _) => return Err("trace.block_tokens; expected at least 1".to_owned()),
            (other, _) => {
                return Err(format!(
                    "trace.content `{other}`; expected `tokens` or `blocks`"
                ));
            }
        };
        Ok(Meta {
            content,
            provenance: Provenance {
                name: self.name,
                source: self.source,
                license: self.license,
                generator: self.generator,
                seed: self.seed,
            },
        })
    }
}

/// A line after the first.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JsonRow {
    request_id: u64,
    arrival_us: i64,
    session_id: u64,
    #[serde(default)]
    step: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_request: Option<u64>,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    tenant: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    prompt_tokens: u32,
    output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_blocks: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_blocks: Option<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority_ttl_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    template_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_uses: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps_to_next: Option<u32>,
}

impl JsonRow {
    pub(crate) fn new(row: Row<'_>) -> Self {
        let mut json = Self {
            request_id: row.request_id,
            arrival_us: row.arrival_us,
            session_id: row.session_id,
            step: row.step,
            parent_request: row.parent_request,
            kind: row.kind.into_owned(),
            tenant: row.tenant,
            tool: row.tool.map(Cow::into_owned),
            prompt_tokens: row.prompt_tokens,
            output_tokens: row.output_tokens,
            priority: row.hints.priority,
            priority_ttl_us: row.hints.priority_ttl_us,
            template_id: row.hints.template_id,
            template_tokens: row.hints.template_tokens,
            remaining_uses: row.hints.remaining_uses,
            steps_to_next: row.hints.steps_to_next,
            ..Self::default()
        };
        match row.body {
            Body::Tokens { prompt, output } => {
                json.prompt = Some(prompt.into_owned());
                json.output = output.map(Cow::into_owned);
            }
            Body::Blocks { prompt, output } => {
                json.prompt_blocks = Some(prompt.into_owned());
                json.output_blocks = output.map(Cow::into_owned);
            }
        }
        json
    }

    /// The row, if its body is of this content.
    pub(crate) fn row(self, content: Content) -> Result<Row<'static>, String> {
        let body = match (content, self.prompt, self.prompt_blocks) {
            (Content::Tokens, Some(prompt), None) => Body::Tokens {
                prompt: Cow::Owned(prompt),
                output: self.output.map(Cow::Owned),
            },
            (Content::Blocks { .. }, None, Some(prompt)) => Body::Blocks {
                prompt: Cow::Owned(prompt),
                output: self.output_blocks.map(Cow::Owned),
            },
            (Content::Tokens, ..) => {
                return Err("no `prompt`, or blocks beside it; expected tokens".to_owned());
            }
            (Content::Blocks { .. }, ..) => {
                return Err(
                    "no `prompt_blocks`, or tokens beside them; expected block ids".to_owned(),
                );
            }
        };
        Ok(Row {
            request_id: self.request_id,
            arrival_us: self.arrival_us,
            session_id: self.session_id,
            step: self.step,
            parent_request: self.parent_request,
            kind: Cow::Owned(self.kind),
            tenant: self.tenant,
            tool: self.tool.map(Cow::Owned),
            prompt_tokens: self.prompt_tokens,
            output_tokens: self.output_tokens,
            body,
            hints: Hints {
                priority: self.priority,
                priority_ttl_us: self.priority_ttl_us,
                template_id: self.template_id,
                template_tokens: self.template_tokens,
                remaining_uses: self.remaining_uses,
                steps_to_next: self.steps_to_next,
            },
        })
    }
}
