//! SWE-agent trajectories (`.traj`): a JSON object with `history`, the messages of the run, and `trajectory`, its steps.
//!
//! Where every step recorded what the model saw (old observations elided), that is taken: `query`, or `messages` up to the
//! step's answer. Else the prompt of an answer is all of the history before it that belongs to the same agent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use trace::Content;

use super::chat::{AT_ONCE, STEP_GAP, Transcript, Turn, push_sessions};
use super::format::{ImportFormat, ImportJob};
use super::sink::{Links, Order, RowSink};
use super::source::{files, read_text};
use super::tokens::{NO_OUTPUTS, TOKENIZER, Texts};
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "swe-agent",
    about: "SWE-agent trajectories (.traj), one run a file.",
    details: "\
A folder of .traj files (each may be packed as .zst) or one such file. One request an answer of the assistant, answers
within demonstrations excepted. Its prompt is what the step recorded as sent (query, or messages), else the history before
it, one compact JSON message a line; what a history processor elided is then in it although the model did not see it. Times are
not recorded: sessions run so many at a time, in step. Gives a trace of tokens.",
    options: &[TOKENIZER, NO_OUTPUTS, AT_ONCE, STEP_GAP],
    read,
};

#[derive(Deserialize)]
struct Run {
    #[serde(default)]
    trajectory: Vec<Step>,
    history: Vec<Value>,
}

#[derive(Deserialize)]
struct Step {
    messages: Option<Vec<Value>>,
    query: Option<Vec<Value>>,
    response: Option<String>,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let texts = Texts::new(&job.params);
    let mut sink = RowSink::default();
    let mut sessions = Vec::new();
    let mut as_sent = 0;
    let files = files(job.input, &[".traj"])?;
    for file in &files {
        let location = SourceLocation::file(file);
        let run: Run = match serde_json::from_str(&read_text(file)?) {
            Ok(run) => run,
            Err(fault) => {
                sink.reject(&location, &fault);
                continue;
            }
        };
        match sent(&texts, &location, &run.trajectory) {
            Some(turns) => {
                as_sent += 1;
                sessions.push(turns);
            }
            None => sessions.extend(of_history(&texts, &location, &run.history)),
        }
    }
    sink.note(
        Action::Format,
        format!(
            "{as_sent} runs recorded the prompts as sent; of {} the history before each answer is taken",
            files.len() - as_sent
        ),
    );
    let unanswered = sessions.iter().filter(|turns| turns.is_empty()).count();
    sink.count(Action::Dropped, unanswered as u64, "runs without an answer");
    push_sessions(&mut sink, job, &texts, sessions)?;
    sink.finish(job, Content::Tokens, Order::Session, Links::Given)
}

/// The requests as sent, where every step recorded them.
fn sent(texts: &Texts, location: &SourceLocation, steps: &[Step]) -> Option<Vec<Turn>> {
    let turn = |(index, step): (usize, &Step)| {
        let (prompt, answer) = exchange(step)?;
        let mut transcript = Transcript::new(texts);
        prompt.iter().for_each(|message| transcript.add(message));
        let location = location.within(&format!("trajectory[{index}]"));
        Some(transcript.answer(location, &answer))
    };
    let turns: Option<Vec<_>> = steps.iter().enumerate().map(turn).collect();
    turns.filter(|turns| !turns.is_empty())
}

/// What a step sent, and the answer.
fn exchange(step: &Step) -> Option<(&[Value], Value)> {
    if let (Some(query), Some(response)) = (&step.query, &step.response) {
        return Some((query, json!({"role": "assistant", "content": response})));
    }
    let messages = step.messages.as_ref()?;
    let answer = messages.iter().rposition(is_answer)?;
    Some((&messages[..answer], messages[answer].clone()))
}

/// The requests of each agent of a run, from its history.
fn of_history(texts: &Texts, location: &SourceLocation, history: &[Value]) -> Vec<Vec<Turn>> {
    let mut agents = BTreeMap::new();
    for (index, message) in history.iter().enumerate() {
        let agent = message["agent"].as_str().unwrap_or_default();
        let fresh = || (Transcript::new(texts), Vec::new());
        let (transcript, turns) = agents.entry(agent).or_insert_with(fresh);
        if is_answer(message) {
            let location = location.within(&format!("history[{index}]"));
            turns.push(transcript.answer(location, message));
        } else {
            transcript.add(message);
        }
    }
    agents.into_values().map(|(_, turns)| turns).collect()
}

fn is_answer(message: &Value) -> bool {
    message["role"] == "assistant" && message["is_demo"] != true
}
