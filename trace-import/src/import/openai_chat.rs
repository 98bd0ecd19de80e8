//! Logged requests of the chat-completions API: JSON lines, each a request body with `messages`, or an object with
//! `body` (as in batch files), and the answer where it was logged.

use params::{Domain, Param};
use serde_json::Value;
use trace::{Content, Row};

use super::chat::{STEP_GAP, Transcript, tool};
use super::clock::{TIME_UNIT, Unit};
use super::format::{ImportFormat, ImportJob};
use super::sink::{Links, Order, RowSink};
use super::source::lines;
use super::tokens::{NO_OUTPUTS, TOKENIZER, Texts};
use crate::error::{ImportError, SourceLocation};
use crate::note::{Action, Imported};

pub(super) static FORMAT: ImportFormat = ImportFormat {
    name: "openai-chat",
    about: "JSON lines of logged chat requests: messages, tools, and the answers where logged.",
    details: "\
A line is a request body with messages, or has one as body or request. A prompt is its tools and then its messages, one
compact JSON object a line. The answer is choices[0].message of the line, of its response or of response.body, or text
in output. Without a time field requests arrive one step gap apart; without a session field each is its own session,
else those of a session are linked in order of arrival. Gives a trace of tokens.",
    options: &[
        TOKENIZER,
        NO_OUTPUTS,
        TIME_FIELD,
        TIME_UNIT,
        SESSION_FIELD,
        STEP_GAP,
    ],
    read,
};

const TIME_FIELD: Param = Param {
    name: "time-field",
    help: "The field with the time of arrival, in the line or its body; without it, `timestamp` if the first line has it.",
    domain: Domain::Text("FIELD"),
    default: "",
};

const SESSION_FIELD: Param = Param {
    name: "session-field",
    help: "The field that names the session, in the line or its body.",
    domain: Domain::Text("FIELD"),
    default: "session_id",
};

struct Reader {
    texts: Texts,
    unit: Unit,
    gap_us: u64,
    asked_time_field: Option<String>,
    session_field: String,
    /// Known once the first line is read; `None` for requests without times.
    time_field: Option<Option<String>>,
    answers: u64,
    sink: RowSink,
}

fn read(job: &mut ImportJob<'_>) -> Result<Imported, ImportError> {
    let mut reader = Reader {
        texts: Texts::new(&job.params),
        unit: Unit::new(&job.params),
        gap_us: job.params.duration_us(STEP_GAP.name).unsigned_abs(),
        asked_time_field: job.params.get(TIME_FIELD.name).map(str::to_owned),
        session_field: job
            .params
            .get(SESSION_FIELD.name)
            .unwrap_or_default()
            .to_owned(),
        time_field: None,
        answers: 0,
        sink: RowSink::default(),
    };
    for line in lines(job.input)? {
        let (number, text) = line?;
        let location = SourceLocation::line(job.input, number);
        match reader.row(&text) {
            Ok(row) => reader.sink.push(location, row)?,
            Err(reason) => reader.sink.reject(&location, &reason),
        }
    }
    reader.finish(job)
}

impl Reader {
    fn row(&mut self, text: &str) -> Result<Row<'static>, String> {
        let line: Value = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
        let body = ["body", "request"].iter().find_map(|&name| {
            let body = &line[name];
            body.is_object().then_some(body)
        });
        let body = body.unwrap_or(&line);
        let messages = body["messages"]
            .as_array()
            .ok_or("no `messages`; expected an array")?;
        let field = |name: &str| line.get(name).or_else(|| body.get(name));
        let arrival_us = self.arrival_us(&field)?;
        let session_id = match field(&self.session_field) {
            None | Some(Value::Null) => self.sink.new_session(),
            Some(Value::String(name)) => self.sink.session(name),
            Some(other) => self.sink.session(&other.to_string()),
        };
        let mut transcript = Transcript::new(&self.texts);
        let tools = body["tools"].as_array().into_iter().flatten();
        tools.chain(messages).for_each(|part| transcript.add(part));
        let answer = answer(&line);
        self.answers += u64::from(answer.is_some());
        let output = answer.map(|answer| self.texts.tokens(&format!("{answer}\n")));
        let mut row = Row {
            arrival_us,
            session_id,
            tool: answer.and_then(tool).map(Into::into),
            ..Row::default()
        };
        self.texts.fill(
            &mut row,
            transcript.into_tokens(),
            output.unwrap_or_default(),
        )?;
        Ok(row)
    }

    fn arrival_us<'v>(
        &mut self,
        field: &impl Fn(&str) -> Option<&'v Value>,
    ) -> Result<i64, String> {
        let time_field = self.time_field.get_or_insert_with(|| {
            let usual = || field("timestamp").map(|_| "timestamp".to_owned());
            self.asked_time_field.clone().or_else(usual)
        });
        let Some(name) = time_field else {
            let us = self.sink.next_id().saturating_mul(self.gap_us);
            return i64::try_from(us).map_err(|_| "later than a trace can hold".to_owned());
        };
        let value = field(name).ok_or_else(|| format!("no `{name}`; expected a time"))?;
        self.unit.of_json(name, value)
    }

    fn finish(mut self, job: &ImportJob<'_>) -> Result<Imported, ImportError> {
        match &self.time_field {
            Some(Some(_)) => self.sink.start_clock_at_first(),
            _ => self.sink.note(
                Action::Format,
                format!(
                    "no times: requests arrive {} s apart",
                    self.gap_us as f64 / 1e6
                ),
            ),
        }
        let unanswered = self.sink.next_id() - self.answers;
        self.sink.count(
            Action::Kept,
            unanswered,
            "requests were logged without an answer: outputs of no tokens",
        );
        self.sink
            .finish(job, Content::Tokens, Order::File, Links::ByArrival)
    }
}

/// The logged answer.
fn answer(line: &Value) -> Option<&Value> {
    let places = [
        "/choices/0/message",
        "/response/choices/0/message",
        "/response/body/choices/0/message",
        "/output",
        "/response",
    ];
    places
        .iter()
        .filter_map(|place| line.pointer(place))
        .find(|answer| answer.is_string() || answer.get("role").is_some())
}
