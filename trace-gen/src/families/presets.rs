//! Workloads known by name: a family and settings.

use params::Params;

use crate::error::GenError;
use crate::family::Family;

/// A named workload.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What it stands for.
    pub summary: &'static str,
    /// The family.
    pub family: &'static str,
    /// What of its parameters differs from the defaults.
    pub settings: &'static [(&'static str, &'static str)],
}

/// All presets. `repeat-NN` are four applications of which NN% of the prompt tokens repeat: what an infinite cache serves.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "repeat-03",
        summary: "single requests: 3% of the prompt tokens repeat",
        family: "oneshot",
        settings: &[("prompt-tokens", "lognormal(3200,0.7)")],
    },
    Preset {
        name: "repeat-94",
        summary: "agents of about 14 steps with keep-until-full contexts: 94% repeat",
        family: "agent",
        settings: &[
            ("template-tokens", "2000"),
            ("projects", "1"),
            ("project-tokens", "0"),
            ("goal-tokens", "lognormal(1900,0.8)"),
            ("steps", "geometric(14)"),
            ("output-tokens", "lognormal(80,0.7)"),
            ("fast-result-tokens", "lognormal(320,0.7)"),
            ("slow-result-tokens", "lognormal(320,0.7)"),
            ("human-result-tokens", "lognormal(320,0.7)"),
            ("early-results", "1"),
            ("context", "keep"),
            ("context-tokens", "32000"),
            ("rewind", "0"),
            ("retry", "0"),
        ],
    },
    Preset {
        name: "repeat-72",
        summary: "questions over a small corpus, passages in a fixed order: 72% repeat",
        family: "rag",
        settings: &[
            ("order", "fixed"),
            ("corpus", "44"),
            ("passages", "4"),
            ("passage-tokens", "uniform(330,380)"),
            ("question-tokens", "lognormal(130,0.5)"),
        ],
    },
    Preset {
        name: "repeat-99",
        summary: "jobs that fire again and again with little that is new: 99% repeat",
        family: "cron",
        settings: &[
            ("sessions", "20"),
            ("job-tokens", "lognormal(6000,0.3)"),
            ("fresh-tokens", "lognormal(10,0.5)"),
            ("firings", "120"),
        ],
    },
    Preset {
        name: "example",
        summary: "the small trace in examples/agent.parquet: agents, recurring checks and single requests",
        family: "mixture",
        settings: &[
            ("sessions", "110"),
            ("session-gap", "10"),
            ("tenants", "1"),
            ("parts", "agent=1,oneshot=0.5,cron=0.2"),
            (
                "set",
                "agent.steps=geometric(14);agent.context-tokens=28000;agent.template-tokens=uniform(1500,6000);\
                 agent.project-tokens=uniform(2000,8000);agent.goal-tokens=lognormal(250,1);\
                 agent.summary-tokens=lognormal(900,1);agent.rewind=0;cron.job-tokens=uniform(5000,9000);\
                 cron.fresh-tokens=0;cron.output-tokens=1;cron.period-seconds=uniform(5,15);cron.firings=60",
            ),
        ],
    },
];

impl Preset {
    /// The parameters of its family.
    ///
    /// # Errors
    /// Where the family has no such parameter.
    pub fn params(&self, family: &Family) -> Result<Params, GenError> {
        let mut params = family.params();
        for (name, value) in self.settings {
            params.set(name, value)?;
        }
        Ok(params)
    }
}
