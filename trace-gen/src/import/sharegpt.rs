//! ShareGPT conversations: a JSON array (or lines) of objects with `conversations`, a list of `from` and `value`.

use serde::Deserialize;
use serde_json::{Value, json};
use trace::Content;

use super::chat::{AT_ONCE, STEP_GAP, Transcript, Turn, push_sessions};
use super::intake::{Deed, Imported, Intake, Links, Order};
use super::source::{lines, read_text, unpacked_name};
use super::tokens::{NO_OUTPUTS, TOKENIZER, Texts};
use super::{Format, Job};
use crate::error::{GenError, Place};

pub(super) static FORMAT: Format = Format {
    name: "sharegpt",
    about: "Conversations, each a list of from (human, gpt, system, tool) and value.",
    details: "\
A .json array or .jsonl lines (may be packed as .zst). One request an answer of the model (gpt, or assistant); its prompt
is all earlier messages, one compact JSON message a line. The format has no times: sessions run so many at a time, in
step. Gives a trace of tokens.",
    options: &[&TOKENIZER, &NO_OUTPUTS, &AT_ONCE, &STEP_GAP],
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

fn read(job: &mut Job<'_>) -> Result<Imported, GenError> {
    let texts = Texts::new(&job.values);
    let mut intake = Intake::default();
    let mut sessions = Vec::new();
    let mut add =
        |intake: &mut Intake, place: Place, read: serde_json::Result<Conversation>| match read {
            Ok(conversation) => sessions.push(turns(&texts, &place, conversation)),
            Err(fault) => intake.reject(&place, &fault),
        };
    if unpacked_name(job.input).ends_with(".jsonl") {
        for line in lines(job.input)? {
            let (number, text) = line?;
            let place = Place::line(job.input, number);
            add(&mut intake, place, serde_json::from_str(&text));
        }
    } else {
        let place = Place::file(job.input);
        match serde_json::from_str::<Vec<Value>>(&read_text(job.input)?) {
            Err(fault) => intake.reject(&place, &fault),
            Ok(all) => {
                for (index, value) in all.into_iter().enumerate() {
                    let place = place.within(&format!("[{index}]"));
                    add(&mut intake, place, serde_json::from_value(value));
                }
            }
        }
    }
    let unanswered = sessions.iter().filter(|turns| turns.is_empty()).count();
    intake.count(
        Deed::Dropped,
        unanswered as u64,
        "conversations without an answer",
    );
    push_sessions(&mut intake, job, &texts, sessions)?;
    intake.finish(job, Content::Tokens, Order::Session, Links::Given)
}

fn turns(texts: &Texts, place: &Place, conversation: Conversation) -> Vec<Turn> {
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
            let place = place.within(&format!("conversations[{index}]"));
            turns.push(transcript.answer(place, &message));
        } else {
            transcript.add(&message);
        }
    }
    turns
}
