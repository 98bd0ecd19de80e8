//! What sessions share: applications with a system prompt and tool schemas, and their projects' notes.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};
use trace::Hints;

use crate::draw::Dist;
use crate::error::GenError;
use crate::params::{Param, Values, param};
use crate::world::Out;
use trace::synthetic::Text;

pub(crate) const PARAMS: &[Param] = &[
    param(
        "apps",
        "6",
        "Applications, each with a template (system prompt, tool schemas) that all its sessions share; 0: every session \
         has a template of its own",
    ),
    param(
        "app-zipf",
        "1.1",
        "Exponent of the applications' Zipf popularity; 0: all alike",
    ),
    param(
        "template-tokens",
        "lognormal(15000,0.2)",
        "Tokens of a template",
    ),
    param(
        "projects",
        "5",
        "Projects of an application, whose notes (instructions, a map of the files) follow the template",
    ),
    param(
        "project-zipf",
        "1.1",
        "Exponent of the projects' Zipf popularity; 0: all alike",
    ),
    param(
        "project-tokens",
        "uniform(500,4000)",
        "Tokens of a project's notes",
    ),
];

/// The applications of a source.
pub(crate) struct Apps {
    /// Per application, per project.
    beginnings: Vec<Vec<Beginning>>,
    app: Zipf<f64>,
    project: Zipf<f64>,
    template_tokens: Dist,
    project_tokens: Dist,
}

/// What a session begins with.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    /// Template and project.
    pub(crate) text: Text,
    /// Which of the shared beginnings it is, if it is one.
    pub(crate) shared: Option<(usize, usize)>,
    /// Identity and length of the template.
    pub(crate) hints: Hints,
}

impl Apps {
    pub(crate) fn read(
        values: &Values,
        rng: &mut ChaCha8Rng,
        out: &mut Out,
    ) -> Result<Self, GenError> {
        let apps = values.count("apps", 0..=1_000_000)?;
        let projects = values.count("projects", 1..=1_000_000)?;
        let popularity = |name, of: u32| {
            let exponent = values.number(name, 0.0..=100.0)?;
            Zipf::new(f64::from(of.max(1)), exponent)
                .map_err(|fault| values.refused(name, &fault.to_string()))
        };
        let mut read = Self {
            beginnings: Vec::new(),
            app: popularity("app-zipf", apps)?,
            project: popularity("project-zipf", projects)?,
            template_tokens: values.dist("template-tokens")?,
            project_tokens: values.dist("project-tokens")?,
        };
        read.beginnings = (0..apps).map(|_| read.make(projects, rng, out)).collect();
        Ok(read)
    }

    /// The beginning of a session.
    pub(crate) fn pick(&self, rng: &mut ChaCha8Rng, out: &mut Out) -> Beginning {
        let app = self.app.sample(rng) as usize - 1;
        let project = self.project.sample(rng) as usize - 1;
        match self.beginnings.get(app) {
            Some(projects) => Beginning {
                shared: Some((app, project)),
                ..projects[project].clone()
            },
            None => self.make(1, rng, out).swap_remove(0),
        }
    }

    /// An application with its projects.
    fn make(&self, projects: u32, rng: &mut ChaCha8Rng, out: &mut Out) -> Vec<Beginning> {
        let mut template = out.fresh.empty_text();
        template.grow(self.template_tokens.count(rng), &mut out.fresh);
        let hints = Hints {
            template_id: Some(out.template_id()),
            template_tokens: Some(template.len_tokens()),
            ..Hints::default()
        };
        let beginning = |_| {
            let mut text = template.clone();
            text.grow(self.project_tokens.count(rng), &mut out.fresh);
            Beginning {
                text,
                shared: None,
                hints,
            }
        };
        (0..projects).map(beginning).collect()
    }
}
