//! ShareGPT conversations: a JSON array (or lines) of objects with `conversations`, a list of `from` and `value`.

use serde::Deserialize;
use serde_json::{Value, json};
use trace::Content;

use super::chat::{AT_ONCE, STEP_GAP, Transcript, Turn, push_sessions};
use super::format::{ImportFormat, ImportJob};
use super::sink::{Links, Order, RowSink};
use super::source::{lines, read_text, unpacked_name};
use super::tokens::{NO_OUTPUTS, TOKENIZER, Texts};
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "sharegpt",
    about: "Conversations, each a list of from (human, gpt, system, tool) and value.",
    details: "\
A .json array or .jsonl lines (may be packed as .zst). One request an answer of the model (gpt, or assistant); its prompt
is all earlier messages, one compact JSON message a line. The format has no times: sessions run so many at a time, in
step. Gives a trace of tokens.",
    options: &[TOKENIZER, NO_OUTPUTS, AT_ONCE, STEP_GAP],
    read,
};

#[derive(Deserialize)]
struct Conversation {
    #[serde(alias = "conversation", alias = "items")]
    conversations: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(alias = "role")]
    from: String,
    #[serde(alias = "content")]
    value: String,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let texts = Texts::new(&job.params);
    let mut sink = RowSink::default();
    let mut sessions = Vec::new();
    let mut add = |sink: &mut RowSink,
                   location: SourceLocation,
                   read: serde_json::Result<Conversation>| match read {
        Ok(conversation) => sessions.push(turns(&texts, &location, conversation)),
        Err(fault) => sink.reject(&location, &fault),
    };
    if unpacked_name(job.input).ends_with(".jsonl") {
        for line in lines(job.input)? {
            let (number, text) = line?;
            let location = SourceLocation::line(job.input, number);
            add(&mut sink, location, serde_json::from_str(&text));
        }
    } else {
        let location = SourceLocation::file(job.input);
        match serde_json::from_str::<Vec<Value>>(&read_text(job.input)?) {
            Err(fault) => sink.reject(&location, &fault),
            Ok(all) => {
                for (index, value) in all.into_iter().enumerate() {
                    let location = location.within(&format!("[{index}]"));
                    add(&mut sink, location, serde_json::from_value(value));
                }
            }
        }
    }
    let unanswered = sessions.iter().filter(|turns| turns.is_empty()).count();
    sink.count(
        Action::Dropped,
        unanswered as u64,
        "conversations without an answer",
    );
    push_sessions(&mut sink, job, &texts, sessions)?;
    sink.finish(job, Content::Tokens, Order::Session, Links::Given)
}

fn turns(texts: &Texts, location: &SourceLocation, conversation: Conversation) -> Vec<Turn> {
    let mut transcript = Transcript::new(texts);
    let mut turns = Vec::new();
    for (index, Message { from, value }) in conversation.conversations.into_iter().enumerate() {
        let role = match from.as_str() {
            "human" | "user" => "user",
            "gpt" | "chatgpt" | "bing" | "bard" | "assistant" => "assistant",
            other => other,
        };
        let message = json!({"role": role, "content": value});
        if role == "assistant" {
            let location = location.within(&format!("conversations[{index}]"));
            turns.push(transcript.answer(location, &message));
        } else {
            transcript.add(&message);
        }
    }
    turns
}
