//! What sessions share: applications with a system prompt and tool schemas, and their projects' notes.

use params::{Domain, Params};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};
use trace::Hints;
use trace::synthetic::Text;

use crate::draw::Dist;
use crate::error::GenError;
use crate::parameters::{TOKENS, parameters};
use crate::world::Out;

parameters! {
    AppParams {
        apps: u32, Domain::Count(0, 1_000_000), "6",
            "Applications, each with a template (system prompt, tool schemas) that all its sessions share; 0: every session \
            has a template of its own";
        app_zipf: f64, Domain::Number(0.0, 100.0), "1.1",
            "Exponent of the applications' Zipf popularity; 0: all alike";
        template_tokens: Dist, TOKENS, "lognormal(15000,0.2)",
            "Tokens of a template";
        projects: u32, Domain::Count(1, 1_000_000), "5",
            "Projects of an application, whose notes (instructions, a map of the files) follow the template";
        project_zipf: f64, Domain::Number(0.0, 100.0), "1.1",
            "Exponent of the projects' Zipf popularity; 0: all alike";
        project_tokens: Dist, TOKENS, "uniform(500,4000)",
            "Tokens of a project's notes";
    }
}

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
        params: &Params,
        rng: &mut ChaCha8Rng,
        out: &mut Out,
    ) -> Result<Self, GenError> {
        let given = AppParams::read(params);
        let popularity = |of: u32, exponent| {
            Zipf::new(f64::from(of.max(1)), exponent).map_err(|fault| GenError::Parameter {
                name: "app-zipf or project-zipf",
                found: exponent.to_string(),
                expected: fault.to_string(),
            })
        };
        let (apps, projects) = (given.apps, given.projects);
        let mut read = Self {
            beginnings: Vec::new(),
            app: popularity(apps, given.app_zipf)?,
            project: popularity(projects, given.project_zipf)?,
            template_tokens: given.template_tokens,
            project_tokens: given.project_tokens,
        };
        for _ in 0..apps {
            let beginnings = read.make(projects, rng, out)?;
            read.beginnings.push(beginnings);
        }
        Ok(read)
    }

    /// The beginning of a session.
    pub(crate) fn pick(&self, rng: &mut ChaCha8Rng, out: &mut Out) -> Result<Beginning, GenError> {
        let app = self.app.sample(rng) as usize - 1;
        let project = self.project.sample(rng) as usize - 1;
        if let Some(projects) = self.beginnings.get(app) {
            return Ok(Beginning {
                shared: Some((app, project)),
                ..projects[project].clone()
            });
        }
        let own = self.make(1, rng, out)?.swap_remove(0);
        out.fresh.release(&own.text);
        Ok(own)
    }

    /// An application with its projects.
    fn make(
        &self,
        projects: u32,
        rng: &mut ChaCha8Rng,
        out: &mut Out,
    ) -> Result<Vec<Beginning>, GenError> {
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
            out.fresh.hold(&text);
            out.fresh.check()?;
            Ok(Beginning {
                text,
                shared: None,
                hints,
            })
        };
        (0..projects).map(beginning).collect()
    }
}
