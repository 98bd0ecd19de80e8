//! Sessions of agents.

use params::{Domain, Params};
use rand_chacha::ChaCha8Rng;
use trace::Hints;

use crate::apps::{AppParams, Apps};
use crate::arrivals::ArrivalParams;
use crate::conversation::{Conversation, Identity, Keep, Turn};
use crate::draw::{Dist, count, unit};
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::{CHANCE, COUNT, DIST, TOKENS, count_from, parameters};
use crate::service::Service;
use crate::world::{Out, Session, Source, Start};

pub(crate) const AGENT: Family = Family {
    name: "agent",
    summary: "Sessions of agents: dependent steps that think, call a tool, and repeat all of it in the next prompt",
    about: "\
A session begins with its application's template (system prompt, tool schemas), its project's notes, and the user's goal. \
At every step the model answers and calls a tool; answer and result join the context, which the next step's prompt \
repeats. Tools are fast, slow, or a human who has to answer. When the context is full, its policy says what happens. \
All steps of a session are one agent's: steps_to_next is 1 until the last. Context growth, tool times and session lengths \
are by default close to those of published coding sessions (kv-cache-tester); `trace-gen fit` takes them from a trace of your own. For: how much \
cache agents need, and what policies make of long waits.",
    examples: &[
        "trace-gen agent -o agent.parquet --sessions 1000 --seed 1",
        "trace-gen agent -o window.parquet --context window --context-tokens 32000 --window-tokens 24000",
        "trace-gen agent -o busy.parquet --arrivals closed --users 50 --session-gap 60",
    ],
    params: &[
        ArrivalParams::PARAMS,
        AppParams::PARAMS,
        AgentParams::PARAMS,
        Service::PARAMS,
    ],
    defaults: &[],
    source: |params, rng, out| Ok(Box::new(Agents::read("step", params, rng, out)?)),
};

pub(crate) const CHAT: Family = Family {
    name: "chat",
    summary: "Conversations: every prompt repeats what was said, and the next turn waits for a human to think",
    about: "\
The same machinery as agent with one tool, the human: a template that all conversations of an application share, a first \
message, then answers and messages in turns, with minutes between them. A conversation that is too long loses its oldest \
turns (context window), so all that follows the first message moves. For: reuse at the scale of minutes, and sessions \
that nobody tells you are over.",
    examples: &[
        "trace-gen chat -o chat.parquet --sessions 2000",
        "trace-gen chat -o day.parquet --arrivals diurnal --session-gap 20 --sessions 8640",
    ],
    params: AGENT.params,
    defaults: &[
        ("apps", "3"),
        ("template-tokens", "lognormal(1500,0.6)"),
        ("projects", "1"),
        ("project-tokens", "0"),
        ("goal-tokens", "lognormal(120,1.2)"),
        ("steps", "geometric(6)"),
        ("output-tokens", "lognormal(300,0.8)"),
        ("fast-share", "0"),
        ("slow-share", "0"),
        ("human-seconds", "lognormal(45,1.2)"),
        ("human-result-tokens", "lognormal(60,1.2)"),
        ("context", "window"),
        ("context-tokens", "16000"),
        ("window-tokens", "12000"),
        ("retry", "0.005"),
        ("rewind", "0.03"),
        ("rewind-tokens", "lognormal(300,0.8)"),
        ("late-humans", "1"),
        ("early-results", "1"),
        ("abandon", "0"),
        ("priority", "2"),
    ],
    source: |params, rng, out| Ok(Box::new(Agents::read("turn", params, rng, out)?)),
};

parameters! {
    AgentParams {
        goal_tokens: Dist, TOKENS, "0.7*lognormal(5000,1.1)+0.3*lognormal(120000,0.8)",
            "Tokens of the user's goal and what is attached to it";
        steps: Dist, COUNT, "lognormal(35,1.15)",
            "Steps of a session, at least 1";
        output_tokens: Dist, TOKENS, "lognormal(230,0.9)",
            "Tokens of an answer: thought and call";
        fast_share: f64, CHANCE, "0.69",
            "Share of the calls that go to fast tools (read, search, edit)";
        fast_seconds: Dist, DIST, "lognormal(9,0.7)",
            "Seconds of a fast tool";
        fast_result_tokens: Dist, TOKENS, "lognormal(330,1.7)",
            "Tokens of a fast tool's result";
        slow_share: f64, CHANCE, "0.26",
            "Share of the calls that go to slow tools (build, test, sub-agent)";
        slow_seconds: Dist, DIST, "lognormal(60,0.6)",
            "Seconds of a slow tool";
        slow_result_tokens: Dist, TOKENS, "lognormal(500,1.8)",
            "Tokens of a slow tool's result";
        human_seconds: Dist, DIST, "lognormal(700,1.3)",
            "Seconds until a human answers: the rest of the calls";
        human_result_tokens: Dist, TOKENS, "lognormal(600,1.8)",
            "Tokens of a human's answer";
        late_humans: f64, Domain::Number(0.01, 100.0), "2",
            "How many times likelier a call goes to a human at the end of a session than at its start";
        early_results: f64, Domain::Number(0.0, 10.0), "2",
            "How many times as long as on average results are in the first tenth of a session, when an agent looks around";
        result_cap: u32, count_from(0), "0",
            "Longest result in tokens: tools cut what is longer; 0: uncapped";
        context: String, Domain::Choice(&["keep", "window", "compact"]), "compact",
            "What a full context does: keep (the session ends), window, or compact";
        context_tokens: Dist, DIST, "0.85*160000+0.15*900000",
            "Longest prompt of a session; one that asks for a summary may have one more answer in it";
        window_tokens: Dist, DIST, "uniform(40000,80000)",
            "window: tokens kept, the goal and what stands before it among them; the oldest of the rest go";
        summary_tokens: Dist, TOKENS, "lognormal(15000,1)",
            "compact: tokens of the summary that one more request makes of the context, and that replaces all but template \
            and project";
        retry: f64, Domain::Number(0.0, 0.9), "0.01",
            "Chance that a request fails without output and is sent again";
        retry_seconds: Dist, DIST, "5",
            "Seconds until it is sent again";
        rewind: f64, CHANCE, "0.025",
            "Chance that the end of the context is replaced by other text after a step (an edit, an elision)";
        rewind_tokens: Dist, TOKENS, "0.5*uniform(250,500)+0.5*lognormal(90000,0.8)",
            "Tokens replaced then";
        abandon: f64, CHANCE, "0.002",
            "Chance after each step that the session is abandoned";
        priority: u32, count_from(0), "1",
            "Declared priority";
    }
}

const TOOLS: [&str; 3] = ["fast", "slow", "human"];
const SUMMARISE: &str = "summarise";

struct Agents {
    kind: &'static str,
    apps: Apps,
    service: Service,
    params: AgentParams,
}

impl Agents {
    fn read(
        kind: &'static str,
        params: &Params,
        rng: &mut ChaCha8Rng,
        out: &mut Out,
    ) -> Result<Self, GenError> {
        let own = AgentParams::read(params);
        if own.fast_share + own.slow_share > 1.0 + 1e-9 {
            return Err(GenError::Parameter {
                name: "slow-share",
                found: own.slow_share.to_string(),
                expected: format!(
                    "at most what the fast-share of {} leaves of 1",
                    own.fast_share
                ),
            });
        }
        Ok(Self {
            kind,
            apps: Apps::read(params, rng, out)?,
            service: Service::read(params),
            params: own,
        })
    }

    /// Shares of the tool classes.
    fn shares(&self) -> [f64; 3] {
        let (fast, slow) = (self.params.fast_share, self.params.slow_share);
        [fast, slow, 1.0 - fast - slow]
    }

    /// Seconds that a tool takes, and tokens of its result.
    fn tool(&self, class: usize) -> (&Dist, &Dist) {
        let own = &self.params;
        match class {
            0 => (&own.fast_seconds, &own.fast_result_tokens),
            1 => (&own.slow_seconds, &own.slow_result_tokens),
            _ => (&own.human_seconds, &own.human_result_tokens),
        }
    }

    /// The longest result.
    fn result_cap(&self) -> u32 {
        match self.params.result_cap {
            0 => u32::MAX,
            cap => cap,
        }
    }
}

impl Source for Agents {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out)?;
        let mut text = beginning.text;
        let shared_tokens = text.len_tokens();
        text.grow(self.params.goal_tokens.some(&mut rng), &mut out.fresh);
        let session = Draft {
            family: self,
            shared_tokens,
            goal_end: text.len_tokens(),
            // A context holds at least what the session begins with.
            limit: self
                .params
                .context_tokens
                .count(&mut rng)
                .max(text.len_tokens()),
            prompt: text.len_tokens(),
            turns: Vec::new(),
            rng,
        };
        let identity = Identity {
            session_id: start.session_id,
            kind: self.kind,
            service: self.service,
            hints: Hints {
                priority: Some(self.params.priority),
                ..beginning.hints
            },
        };
        Ok(Box::new(Conversation::new(identity, text, session.draw())))
    }
}

/// A session's turns while they are drawn.
struct Draft<'a> {
    family: &'a Agents,
    shared_tokens: u32,
    goal_end: u32,
    limit: u32,
    /// Tokens of the next prompt.
    prompt: u32,
    turns: Vec<Turn>,
    rng: ChaCha8Rng,
}

impl Draft<'_> {
    fn draw(mut self) -> Vec<Turn> {
        let steps = self.family.params.steps.some(&mut self.rng);
        for step in 1..=steps {
            while unit(&mut self.rng) < self.family.params.retry {
                self.fail();
            }
            let ends = step == steps || unit(&mut self.rng) < self.family.params.abandon;
            if ends || !self.step(step, steps) {
                self.last();
                break;
            }
        }
        self.turns
    }

    /// A request that fails, and is sent again as it was.
    fn fail(&mut self) {
        let wait_us = self.family.params.retry_seconds.micros(&mut self.rng);
        self.push(0, None, wait_us, Keep::All, 0);
    }

    fn last(&mut self) {
        let output = self.family.params.output_tokens.some(&mut self.rng);
        self.push(output, None, 0, Keep::All, 0);
    }

    /// A step and what its tool says; false where no prompt can follow.
    fn step(&mut self, step: u32, steps: u32) -> bool {
        let family = self.family;
        let output = family.params.output_tokens.some(&mut self.rng);
        let place = self.tool(f64::from(step) / f64::from(steps));
        let (seconds, result_tokens) = family.tool(place);
        let wait_us = seconds.micros(&mut self.rng);
        let result = result_tokens.draw(&mut self.rng) * self.early(step, steps);
        let result = count(result).clamp(1, family.result_cap());
        let end = self.prompt.saturating_add(output);
        let keep = self.rewound(end);
        let kept = if let Keep::First(tokens) = keep {
            tokens
        } else {
            end
        };
        let name = Some(TOOLS[place]);
        if end.saturating_add(result) <= self.limit {
            self.prompt = end + result;
            self.push(output, name, wait_us, keep, end - kept + result);
            return true;
        }
        match family.params.context.as_str() {
            "keep" => return false,
            "window" => {
                let total = family.params.window_tokens.count(&mut self.rng);
                let total = total.clamp(self.goal_end, self.limit);
                let keep = Keep::Window {
                    pinned: self.goal_end,
                    total,
                };
                self.prompt = total.min(end.saturating_add(result));
                self.push(output, name, wait_us, keep, result);
            }
            _ => {
                self.prompt = end;
                self.push(output, name, wait_us, Keep::All, 0);
                self.summarise(result);
            }
        }
        true
    }

    /// The request that makes a summary of the context, which then replaces it.
    fn summarise(&mut self, result: u32) {
        let room = (self.limit - self.shared_tokens).max(2);
        let summary = self
            .family
            .params
            .summary_tokens
            .some(&mut self.rng)
            .min(room - 1);
        let grow = summary + result.min(room - summary);
        self.prompt = self.shared_tokens + grow;
        self.push(
            summary,
            Some(SUMMARISE),
            0,
            Keep::First(self.shared_tokens),
            grow,
        );
    }

    fn rewound(&mut self, end: u32) -> Keep {
        if unit(&mut self.rng) >= self.family.params.rewind {
            return Keep::All;
        }
        let gone = self.family.params.rewind_tokens.count(&mut self.rng);
        Keep::First(end.saturating_sub(gone).max(self.shared_tokens))
    }

    /// The length of a step's result by what it would be anywhere: longer in the first tenth, so that much shorter after it
    /// that the mean stays.
    fn early(&self, step: u32, steps: u32) -> f64 {
        let (all, early) = (f64::from(steps), f64::from(steps.div_ceil(10)));
        let factor = self.family.params.early_results.min(all / early);
        match f64::from(step) <= early || all <= early {
            true => factor,
            false => (all - factor * early) / (all - early),
        }
    }

    /// The class of a call. Humans become likelier, or less so, in a straight line; on average they keep their share.
    fn tool(&mut self, part: f64) -> usize {
        const HUMAN: usize = 2;
        let late = self.family.params.late_humans;
        let slope = 2.0 * (1.0 + (late - 1.0) * part) / (1.0 + late);
        let [fast, slow, human] = self.family.shares();
        let at = unit(&mut self.rng);
        let human = (human * slope).min(1.0);
        if at < human || fast + slow <= 0.0 {
            return HUMAN;
        }
        usize::from((at - human) / (1.0 - human) >= fast / (fast + slow))
    }

    fn push(
        &mut self,
        output_tokens: u32,
        tool: Option<&'static str>,
        wait_us: i64,
        keep: Keep,
        grow: u32,
    ) {
        self.turns.push(Turn {
            output_tokens,
            tool,
            wait_us,
            keep,
            grow,
        });
    }
}
