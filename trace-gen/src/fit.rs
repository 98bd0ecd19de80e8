//! The parameters of the family `agent` that a trace suggests.
//!
//! Sessions give lengths, growth, waits and what contexts do when they shrink. What sessions share tells applications (by
//! their first block) and projects (by the first block after an application's template). Gaps between arrivals hold the
//! engine's time and the tool's, so the fitted engine takes no time of its own.

use std::collections::BTreeMap;
use std::path::Path;

use trace::{BlockId, LoadOptions, Request, Workload, load};

use crate::draw::Dist;
use crate::error::GenError;
use crate::plan::{Plan, PlanPart};

/// Fits the family `agent` to the trace at `path`; `block_tokens` as in [`LoadOptions`]. Sessions differ in all respects at
/// once (long ones are brisk, those that begin large are short), so every session becomes a part of the plan, with
/// distributions of its own; `pooled` fits one part to all of them. Parts share nothing, so a trace whose sessions share
/// templates is pooled whatever is asked.
///
/// # Errors
/// Where the trace cannot be loaded or holds no request.
pub fn fit(path: &Path, block_tokens: Option<u32>, pooled: bool) -> Result<Plan, GenError> {
    let options = LoadOptions {
        block_tokens,
        ..LoadOptions::default()
    };
    let workload = load(path, &options)?.workload;
    let sessions = sessions(&workload);
    if sessions.is_empty() {
        return Err(GenError::Input {
            path: path.to_owned(),
            problem: "no request in it to fit to".to_owned(),
        });
    }
    let starts = starts(&sessions);
    let shared = sharing(&workload, &sessions);
    let pooled_traits = [
        ("late-humans", late_humans(&sessions)),
        ("early-results", early_results(&sessions)),
    ];
    let size = if pooled || shared.is_some() {
        sessions.len()
    } else {
        1
    };
    let parts = sessions.chunks(size).map(|class| {
        let mut parameters = starts.parameters(class.len());
        parameters.extend(pooled_traits.map(|(name, value)| (name.to_owned(), value.to_string())));
        Observed::of(&workload, class).parameters(shared.as_ref(), &mut parameters);
        PlanPart {
            family: "agent".to_owned(),
            tenant: 0,
            parameters,
        }
    });
    Ok(Plan {
        part: parts.collect(),
    })
}

type Parameters = BTreeMap<String, String>;

/// The requests of every session in order, sessions in the order of their first requests.
fn sessions(workload: &Workload) -> Vec<Vec<&Request>> {
    let mut places = BTreeMap::new();
    let mut sessions: Vec<Vec<&Request>> = Vec::new();
    for request in workload.requests() {
        let place = *places.entry(request.session_id).or_insert(sessions.len());
        match sessions.get_mut(place) {
            Some(session) => session.push(request),
            None => sessions.push(vec![request]),
        }
    }
    sessions
}

/// Gaps up to here are a fast tool's, up to the next a slow one's, the rest a human's.
const CLASSES: [(&str, f64); 3] = [("fast", 30.0), ("slow", 300.0), ("human", f64::INFINITY)];

/// A prompt this much shorter than the one before it was compacted, not edited.
const COMPACTED: f64 = 0.5;

/// Values of a fitted distribution.
const POINTS: usize = 100;

/// What sessions show.
#[derive(Default)]
struct Observed {
    steps: Vec<f64>,
    first_tokens: Vec<f64>,
    output_tokens: Vec<f64>,
    /// Per class of tools.
    seconds: [Vec<f64>; 3],
    result_tokens: [Vec<f64>; 3],
    retries: f64,
    rewind_tokens: Vec<f64>,
    summary_tokens: Vec<f64>,
    /// Tokens that a compaction kept.
    pinned_tokens: Vec<f64>,
    /// The longest prompts of sessions that compacted, and of those that did not.
    full_tokens: Vec<f64>,
    open_tokens: Vec<f64>,
}

impl Observed {
    fn of(workload: &Workload, sessions: &[Vec<&Request>]) -> Self {
        let mut seen = Self::default();
        for session in sessions {
            seen.session(workload, session);
        }
        seen
    }

    fn session(&mut self, workload: &Workload, session: &[&Request]) {
        let compactions = self.summary_tokens.len();
        let retries = self.retries;
        for pair in session.windows(2) {
            self.pair(workload, pair[0], pair[1]);
        }
        let longest = session.iter().map(|request| request.prompt_tokens).max();
        let longest = f64::from(longest.unwrap_or(0));
        let compacted = self.summary_tokens.len() - compactions;
        match compacted {
            0 => self.open_tokens.push(longest),
            _ => self.full_tokens.push(longest),
        }
        self.first_tokens
            .extend(session.first().map(|first| f64::from(first.prompt_tokens)));
        // Failures and summaries are no steps of their own.
        self.steps
            .push(session.len() as f64 - (self.retries - retries) - compacted as f64);
    }

    fn pair(&mut self, workload: &Workload, before: &Request, after: &Request) {
        let kept = common(workload.path(before), workload.path(after));
        let same =
            after.prompt_tokens == before.prompt_tokens && kept == after.prompt_blocks as usize;
        if same && before.output_tokens == 0 {
            self.retries += 1.0;
            return;
        }
        let block_tokens = f64::from(workload.block_tokens());
        let kept_tokens = kept as f64 * block_tokens;
        let (old, new) = (
            f64::from(before.prompt_tokens),
            f64::from(after.prompt_tokens),
        );
        let seconds = (after.arrival_us - before.arrival_us) as f64 / 1e6;
        let class = CLASSES
            .iter()
            .position(|(_, up_to)| seconds <= *up_to)
            .unwrap_or(0);
        self.seconds[class].push(seconds);
        let lost = (before.prompt_blocks as usize).saturating_sub(kept);
        if lost > 1 && new < COMPACTED * old {
            self.summary_tokens.push((new - kept_tokens).max(1.0));
            self.pinned_tokens.push(kept_tokens);
            return;
        }
        // Thinking that the next prompt leaves out is not counted: it is in no later prefix.
        let growth = (new - old).max(1.0);
        let output = f64::from(before.output_tokens).clamp(1.0, growth);
        if lost > 1 {
            self.rewind_tokens.push(old + output - kept_tokens);
        }
        self.output_tokens.push(output);
        self.result_tokens[class].push(growth - output);
    }

    fn parameters(mut self, shared: Option<&Shared>, into: &mut Parameters) {
        let own = self.own_template();
        let (beginning, mut set) = match shared {
            Some(shared) => (shared.tokens, shared.parameters.clone()),
            None => (own, own_template(own)),
        };
        let goals = self
            .first_tokens
            .iter()
            .map(|first| (first - beginning).max(1.0));
        let goals: Vec<f64> = goals.collect();
        let calls = self.seconds.iter().map(Vec::len).sum::<usize>().max(1) as f64;
        let requests = calls + self.retries;
        let shares = [0, 1].map(|class| self.seconds[class].len() as f64 / calls);
        let rewind = self.rewind_tokens.len() as f64 / requests;
        let [fast, slow, human] = self.seconds;
        let [fast_result, slow_result, human_result] = self.result_tokens;
        let quantiles = [
            ("fast-seconds", fast),
            ("slow-seconds", slow),
            ("human-seconds", human),
            ("fast-result-tokens", fast_result),
            ("slow-result-tokens", slow_result),
            ("human-result-tokens", human_result),
            ("rewind-tokens", self.rewind_tokens),
            ("summary-tokens", self.summary_tokens),
            ("context-tokens", limits(self.full_tokens, self.open_tokens)),
            ("goal-tokens", goals),
            ("steps", self.steps),
            ("output-tokens", self.output_tokens),
        ];
        for (name, mut values) in quantiles {
            let dist = Dist::of(&mut values, POINTS).map(|dist| dist.to_string());
            set.extend(dist.map(|dist| (name.to_owned(), dist)));
        }
        let numbers = [
            ("fast-share", shares[0]),
            ("slow-share", shares[1]),
            ("retry", self.retries / requests),
            ("rewind", rewind),
            ("abandon", 0.0),
            ("request-seconds", 0.0),
            ("token-seconds", 0.0),
        ];
        set.extend(numbers.map(|(name, value)| (name.to_owned(), value.to_string())));
        into.append(&mut set);
    }

    /// Tokens of a template that a session has for itself: what compactions mostly keep.
    fn own_template(&mut self) -> f64 {
        self.pinned_tokens.retain(|tokens| *tokens > 0.0);
        self.pinned_tokens.sort_by(f64::total_cmp);
        let pinned = self
            .pinned_tokens
            .get(self.pinned_tokens.len() / 2)
            .copied();
        pinned.unwrap_or(0.0)
    }
}

/// Where contexts are full: where those that were compacted have been, and for each of the others one of these that it
/// did not pass. One that passed them all has no limit that shows.
fn limits(mut full: Vec<f64>, open: Vec<f64>) -> Vec<f64> {
    full.sort_by(f64::total_cmp);
    let mut all = full.clone();
    for (index, longest) in open.into_iter().enumerate() {
        let above = &full[full.partition_point(|limit| *limit < longest)..];
        let limit = above.get(index % above.len().max(1)).copied();
        all.push(limit.unwrap_or(f64::from(1_u32 << 31)));
    }
    all
}

fn own_template(tokens: f64) -> Parameters {
    let set = [
        ("apps", 0.0),
        ("template-tokens", tokens),
        ("project-tokens", 0.0),
    ];
    Parameters::from(set.map(|(name, value)| (name.to_owned(), value.to_string())))
}

/// What sessions have in common at their beginnings.
struct Shared {
    /// On average.
    tokens: f64,
    parameters: Parameters,
}

/// Applications and projects; none where most sessions share nothing.
fn sharing(workload: &Workload, sessions: &[Vec<&Request>]) -> Option<Shared> {
    let prompt = |request: &Request| &workload.path(request)[..request.prompt_blocks as usize];
    let firsts = sessions.iter().filter_map(|session| session.first());
    let apps = by_next(firsts.map(|first| prompt(first)).collect(), 0);
    let alone = apps.iter().filter(|paths| paths.len() == 1).count();
    if alone * 2 > sessions.len() {
        return None;
    }
    let block_tokens = f64::from(workload.block_tokens());
    let (mut templates, mut projects, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    let mut projects_of_app = Vec::new();
    for paths in apps.into_iter().filter(|paths| paths.len() > 1) {
        let template = common_of(&paths);
        templates.push(template as f64 * block_tokens);
        counts.push(paths.len() as f64);
        let mut repeated = by_next(paths, template);
        repeated.retain(|paths| paths.len() > 1);
        let notes = repeated.iter().map(|paths| common_of(paths) - template);
        projects.extend(notes.map(|blocks| blocks as f64 * block_tokens));
        projects_of_app.push(repeated.len().max(1) as f64);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let tokens = mean(&templates) + mean(&projects);
    let dist = |mut values: Vec<f64>| {
        Dist::of(&mut values, POINTS).map_or("0".to_owned(), |dist| dist.to_string())
    };
    let parameters = [
        ("apps", counts.len().to_string()),
        ("app-zipf", zipf_exponent(&mut counts).to_string()),
        ("projects", mean(&projects_of_app).round().to_string()),
        ("template-tokens", dist(templates)),
        ("project-tokens", dist(projects)),
    ];
    Some(Shared {
        tokens,
        parameters: Parameters::from(parameters.map(|(name, value)| (name.to_owned(), value))),
    })
}

/// Paths by their block at `position`, in the order of the blocks.
fn by_next(paths: Vec<&[BlockId]>, position: usize) -> Vec<Vec<&[BlockId]>> {
    let mut groups: BTreeMap<Option<BlockId>, Vec<&[BlockId]>> = BTreeMap::new();
    for path in paths {
        groups
            .entry(path.get(position).copied())
            .or_default()
            .push(path);
    }
    groups.into_values().collect()
}

/// The slope of log count over log rank, negated; 0 for a single one.
fn zipf_exponent(counts: &mut [f64]) -> f64 {
    counts.sort_by(|a, b| b.total_cmp(a));
    let ranked = counts.iter().enumerate();
    let points: Vec<(f64, f64)> = ranked
        .map(|(rank, count)| ((rank as f64 + 1.0).ln(), count.ln()))
        .collect();
    (-line(&points).0).clamp(0.0, 5.0)
}

/// How sessions start.
struct Starts {
    mean_gap_seconds: f64,
    /// Coefficient of variation of the gaps.
    cv: f64,
    sessions: usize,
}

/// How many times likelier a human's gap is at the end of a session than at its start: a line through all sessions, as one
/// has too few of them.
fn late_humans(sessions: &[Vec<&Request>]) -> f64 {
    let (_, longest_tool) = CLASSES[1];
    let mut points = Vec::new();
    for session in sessions {
        for (place, pair) in session.windows(2).enumerate() {
            let seconds = (pair[1].arrival_us - pair[0].arrival_us) as f64 / 1e6;
            let part = (place + 1) as f64 / session.len() as f64;
            points.push((part, f64::from(u8::from(seconds > longest_tool))));
        }
    }
    let (slope, start) = line(&points);
    match start > 0.0 {
        true => ((start + slope) / start).clamp(0.1, 10.0),
        false => 1.0,
    }
}

/// How much faster contexts grow in the first tenth of a session than on average.
fn early_results(sessions: &[Vec<&Request>]) -> f64 {
    let (mut early, mut all) = (Mean::default(), Mean::default());
    for session in sessions {
        let first_tenth = session.len().div_ceil(10);
        for (place, pair) in session.windows(2).enumerate() {
            let (old, new) = (
                f64::from(pair[0].prompt_tokens),
                f64::from(pair[1].prompt_tokens),
            );
            if new < COMPACTED * old {
                continue;
            }
            let growth = (new - old - f64::from(pair[0].output_tokens)).max(0.0);
            all.add(growth);
            if place < first_tenth {
                early.add(growth);
            }
        }
    }
    match all.sum > 0.0 {
        true => (early.value() / all.value()).clamp(0.1, 10.0),
        false => 1.0,
    }
}

#[derive(Default)]
struct Mean {
    sum: f64,
    of: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.of += 1.0;
    }

    fn value(&self) -> f64 {
        self.sum / self.of.max(1.0)
    }
}

/// The slope of the line of least squares, and where it begins.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let of = points.len().max(1) as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / of;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / of;
    let both = points
        .iter()
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum::<f64>();
    let square = points
        .iter()
        .map(|(x, _)| (x - mean_x).powi(2))
        .sum::<f64>();
    let slope = if square > 0.0 { both / square } else { 0.0 };
    (slope, mean_y - slope * mean_x)
}

/// Sessions that a request of another one started say nothing of the process.
fn starts(sessions: &[Vec<&Request>]) -> Starts {
    let roots = sessions.iter().filter_map(|session| session.first());
    let roots = roots.filter(|first| first.parent_request.is_none());
    let starts: Vec<f64> = roots.map(|first| first.arrival_us as f64 / 1e6).collect();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let of = gaps.len().max(1) as f64;
    let mean = gaps.iter().sum::<f64>() / of;
    let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / of;
    Starts {
        mean_gap_seconds: mean,
        cv: if mean > 0.0 {
            square.sqrt() / mean
        } else {
            0.0
        },
        sessions: sessions.len(),
    }
}

impl Starts {
    /// For a class of `sessions` sessions: uniform, as the starts of a Poisson process are once their number is known, or
    /// bursts.
    fn parameters(&self, sessions: usize) -> Parameters {
        let gap = self.mean_gap_seconds * self.sessions as f64 / sessions as f64;
        let (process, cv) = match self.cv > BURSTS {
            true => ("gamma", self.cv.min(100.0)),
            false => ("uniform", 1.0),
        };
        let parameters = [
            ("sessions", sessions.to_string()),
            ("arrivals", process.to_owned()),
            ("session-gap", gap.to_string()),
            ("burst-cv", cv.to_string()),
        ];
        Parameters::from(parameters.map(|(name, value)| (name.to_owned(), value)))
    }
}

/// Gaps that vary more than this are no Poisson process's.
const BURSTS: f64 = 1.3;

/// Leading blocks that two paths have in common.
fn common(one: &[BlockId], other: &[BlockId]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// Leading blocks that all paths have in common.
fn common_of(paths: &[&[BlockId]]) -> usize {
    let first = paths.first().copied().unwrap_or_default();
    let each = paths.iter().map(|path| common(first, path));
    each.min().unwrap_or(0)
}
