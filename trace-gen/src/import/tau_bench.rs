//! tau-bench trajectories: a JSON array of objects with `traj`, the messages of a conversation. Every message of the
//! assistant answers a request whose prompt is all messages before it.

use serde::Deserialize;
use serde_json::Value;
use trace::Content;

use super::chat::{AT_ONCE, STEP_GAP, Transcript, Turn, push_sessions};
use super::intake::{Deed, Imported, Intake, Links, Order};
use super::source::{files, read_text};
use super::tokens::{NO_OUTPUTS, TOKENIZER, Texts};
use super::{Format, Job};
use crate::error::{GenError, Place};

pub(super) static FORMAT: Format = Format {
    name: "tau-bench",
    about: "A JSON array of trajectories, each with its messages in traj.",
    details: "\
A .json file or a folder of them (each may be packed as .zst). One request a message of the assistant; its prompt is all
earlier messages, one compact JSON message a line. Tool schemas were part of the real prompts but are not recorded, nor
are times: sessions run so many at a time, in step. Gives a trace of tokens.",
    options: &[&TOKENIZER, &NO_OUTPUTS, &AT_ONCE, &STEP_GAP],
    read,
};

#[derive(Deserialize)]
struct Trajectory {
    traj: Vec<Value>,
}

fn read(job: &mut Job<'_>) -> Result<Imported, GenError> {
    let texts = Texts::new(&job.values);
    let mut intake = Intake::default();
    let mut sessions = Vec::new();
    for file in files(job.input, &[".json"])? {
        let place = Place::file(&file);
        let trajectories: Vec<Value> = match serde_json::from_str(&read_text(&file)?) {
            Ok(trajectories) => trajectories,
            Err(fault) => {
                intake.reject(&place, &fault);
                continue;
            }
        };
        for (index, trajectory) in trajectories.into_iter().enumerate() {
            let place = place.within(&format!("[{index}]"));
            match serde_json::from_value::<Trajectory>(trajectory) {
                Ok(trajectory) => sessions.push(turns(&texts, &place, &trajectory.traj)),
                Err(fault) => intake.reject(&place, &fault),
            }
        }
    }
    let unanswered = sessions.iter().filter(|turns| turns.is_empty()).count();
    intake.count(
        Deed::Dropped,
        unanswered as u64,
        "trajectories without an answer",
    );
    push_sessions(&mut intake, job, &texts, sessions)?;
    intake.finish(job, Content::Tokens, Order::Session, Links::Given)
}

fn turns(texts: &Texts, place: &Place, messages: &[Value]) -> Vec<Turn> {
    let mut transcript = Transcript::new(texts);
    let mut turns = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some("assistant") => {
                let place = place.within(&format!("traj[{index}]"));
                turns.push(transcript.answer(place, message));
            }
            _ => transcript.add(message),
        }
    }
    turns
}
