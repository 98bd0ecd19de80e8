//! Families of workloads: each a structure with parameters, one file each, and the registry of them.
//!
//! A family added here is at once in the command's help and in the tests that every family must pass.

mod agent;
mod cron;
mod fanout;
mod mapreduce;
mod mixture;
mod multi_agent;
mod oneshot;
mod presets;
mod rag;
mod scan;
mod version_roll;

use std::path::Path;

use rand_chacha::ChaCha8Rng;
use trace::{Content, Meta, Provenance, TraceWriter};

use crate::arrivals::Arrivals;
use crate::error::GenError;
use crate::params::{Param, Values};
use crate::world::{OfTenant, Out, Part, Source, World, stream};

pub use presets::{PRESETS, Preset};

/// All families.
pub const FAMILIES: &[&Family] = &[
    &agent::AGENT,
    &agent::CHAT,
    &fanout::FAMILY,
    &mapreduce::FAMILY,
    &multi_agent::FAMILY,
    &rag::FAMILY,
    &oneshot::FAMILY,
    &cron::FAMILY,
    &scan::FAMILY,
    &version_roll::FAMILY,
    &mixture::FAMILY,
];

/// A family of workloads.
#[derive(Debug)]
pub struct Family {
    /// Its name, as given on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// Its structure, and what it is for.
    pub about: &'static str,
    /// Invocations that show it.
    pub examples: &'static [&'static str],
    pub(crate) params: &'static [&'static [Param]],
    /// Where its default of a shared parameter is another.
    pub(crate) defaults: &'static [(&'static str, &'static str)],
    pub(crate) source: MakeSource,
}

/// Makes a source; what it draws for all its sessions comes from the generator given.
pub(crate) type MakeSource =
    fn(&Values, &mut ChaCha8Rng, &mut Out) -> Result<Box<dyn Source>, GenError>;

/// What every family is told.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Tokens, or blocks of a size.
    pub content: Content,
    /// Seed of everything drawn.
    pub seed: u32,
    /// Whether the output's tokens or blocks are written, or only their number.
    pub outputs_known: bool,
}

impl Default for Setup {
    /// Blocks of 16 tokens, seed 0, outputs known.
    fn default() -> Self {
        Self {
            content: Content::Blocks { block_tokens: 16 },
            seed: 0,
            outputs_known: true,
        }
    }
}

/// The family of this name.
///
/// # Errors
/// Where there is none.
pub fn find(name: &str) -> Result<&'static Family, GenError> {
    let found = FAMILIES.iter().copied().find(|family| family.name == name);
    found.ok_or_else(|| GenError::Parameter {
        name: "family",
        found: format!("`{name}`"),
        expected: format!(
            "one of {}",
            FAMILIES
                .iter()
                .map(|family| family.name)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    })
}

impl Family {
    /// Its parameters, all as they are where nothing is said.
    pub fn values(&self) -> Values {
        Values::new(self.params, self.defaults)
    }

    /// Writes a workload to `out`; returns the number of requests.
    ///
    /// # Errors
    /// Where a parameter is out of range, or the output cannot be written.
    pub fn write(
        &'static self,
        out: &Path,
        values: &Values,
        setup: &Setup,
    ) -> Result<u64, GenError> {
        let said: String = values
            .said()
            .map(|(name, value)| format!(" --{name} {value}"))
            .collect();
        let generator = format!("trace-gen {}{said}", self.name);
        write(
            out,
            self.name,
            &generator,
            &[(self, values.clone(), 0)],
            setup,
        )
    }
}

/// Writes a workload of families side by side, each with its parameters and tenant.
pub(crate) fn write(
    out: &Path,
    name: &str,
    generator: &str,
    parts: &[(&'static Family, Values, u32)],
    setup: &Setup,
) -> Result<u64, GenError> {
    let meta = Meta {
        content: setup.content,
        provenance: Provenance {
            name: Some(name.to_owned()),
            generator: Some(generator.to_owned()),
            seed: Some(setup.seed.to_string()),
            ..Provenance::default()
        },
    };
    let mut out = Out::new(TraceWriter::create(out, &meta)?, setup);
    let mut sources = Vec::new();
    for (number, (family, values, tenant)) in parts.iter().enumerate() {
        let mut rng = stream(setup.seed, u64::MAX - number as u64);
        let source = (family.source)(values, &mut rng, &mut out)?;
        sources.push(Part {
            source: Box::new(OfTenant {
                source,
                tenant: *tenant,
            }),
            arrivals: Arrivals::read(values)?,
            sessions: values.count("sessions", 0..=u32::MAX)?,
        });
    }
    let mut world = World::new(out, setup.seed);
    for source in sources {
        world.add(source);
    }
    world.run()
}
