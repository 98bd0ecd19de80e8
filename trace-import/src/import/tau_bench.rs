//! tau-bench trajectories: a JSON array of objects with `traj`, the messages of a conversation. Every message of the
//! assistant answers a request whose prompt is all messages before it.

use serde::Deserialize;
use serde_json::Value;
use trace::Content;

use super::chat::{AT_ONCE, STEP_GAP, Transcript, Turn, push_sessions};
use super::format::{ImportFormat, ImportJob};
use super::sink::{Links, Order, RowSink};
use super::source::{files, read_text};
use super::tokens::{NO_OUTPUTS, TOKENIZER, Texts};
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "tau-bench",
    about: "A JSON array of trajectories, each with its messages in traj.",
    details: "\
A .json file or a folder of them (each may be packed as .zst). One request a message of the assistant; its prompt is all
earlier messages, one compact JSON message a line. Tool schemas were part of the real prompts but are not recorded, nor
are times: sessions run so many at a time, in step. Gives a trace of tokens.",
    options: &[TOKENIZER, NO_OUTPUTS, AT_ONCE, STEP_GAP],
    read,
};

#[derive(Deserialize)]
struct Trajectory {
    traj: Vec<Value>,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let texts = Texts::new(&job.params);
    let mut sink = RowSink::default();
    let mut sessions = Vec::new();
    for file in files(job.input, &[".json"])? {
        let location = SourceLocation::file(&file);
        let trajectories: Vec<Value> = match serde_json::from_str(&read_text(&file)?) {
            Ok(trajectories) => trajectories,
            Err(fault) => {
                sink.reject(&location, &fault);
                continue;
            }
        };
        for (index, trajectory) in trajectories.into_iter().enumerate() {
            let location = location.within(&format!("[{index}]"));
            match serde_json::from_value::<Trajectory>(trajectory) {
                Ok(trajectory) => sessions.push(turns(&texts, &location, &trajectory.traj)),
                Err(fault) => sink.reject(&location, &fault),
            }
        }
    }
    let unanswered = sessions.iter().filter(|turns| turns.is_empty()).count();
    sink.count(
        Action::Dropped,
        unanswered as u64,
        "trajectories without an answer",
    );
    push_sessions(&mut sink, job, &texts, sessions)?;
    sink.finish(job, Content::Tokens, Order::Session, Links::Given)
}

fn turns(texts: &Texts, location: &SourceLocation, messages: &[Value]) -> Vec<Turn> {
    let mut transcript = Transcript::new(texts);
    let mut turns = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some("assistant") => {
                let location = location.within(&format!("traj[{index}]"));
                turns.push(transcript.answer(location, message));
            }
            _ => transcript.add(message),
        }
    }
    turns
}
