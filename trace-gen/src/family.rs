//! What a family of workloads is, and how one or several of them become a trace.

use std::collections::BTreeMap;
use std::path::Path;

use params::{Param, Params};
use rand_chacha::ChaCha8Rng;
use trace::{Meta, Provenance, TraceWriter};

use crate::arrivals::{ArrivalParams, Arrivals};
use crate::context::GeneratorContext;
use crate::error::GenError;
use crate::world::{OfTenant, Out, Part, Source, World, stream};

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
    fn(&Params, &mut ChaCha8Rng, &mut Out) -> Result<Box<dyn Source>, GenError>;

impl Family {
    /// Its parameters at their defaults.
    pub fn params(&self) -> Params {
        let own = |param: &Param| {
            let default = self.defaults.iter().find(|(name, _)| *name == param.name);
            Param {
                default: default.map_or(param.default, |(_, value)| value),
                ..*param
            }
        };
        let declared: Vec<_> = self.params.iter().copied().flatten().map(own).collect();
        Params::new(declared)
    }

    /// Writes a workload to `out`; returns the number of requests.
    ///
    /// # Errors
    /// Where a parameter is out of range, or the output cannot be written.
    pub fn write(
        &'static self,
        out: &Path,
        params: &Params,
        context: &GeneratorContext,
    ) -> Result<u64, GenError> {
        // By name, so that the order in which parameters are declared leaves no trace.
        let given: BTreeMap<_, _> = params.given().collect();
        let given: String = given
            .iter()
            .map(|(name, value)| format!(" --{name} {value}"))
            .collect();
        let generator = format!("trace-gen {}{given}", self.name);
        write(
            out,
            self.name,
            &generator,
            &[(self, params.clone(), 0)],
            context,
        )
    }
}

/// Writes a workload of families side by side, each with its parameters and tenant.
pub(crate) fn write(
    out: &Path,
    name: &str,
    generator: &str,
    parts: &[(&'static Family, Params, u32)],
    context: &GeneratorContext,
) -> Result<u64, GenError> {
    let meta = Meta {
        content: context.content,
        provenance: Provenance {
            name: Some(name.to_owned()),
            generator: Some(generator.to_owned()),
            seed: Some(context.seed.to_string()),
            ..Provenance::default()
        },
    };
    let mut out = Out::new(TraceWriter::create(out, &meta)?, context);
    let mut sources = Vec::new();
    for (number, (family, params, tenant)) in parts.iter().enumerate() {
        let mut rng = stream(context.seed, u64::MAX - number as u64);
        let source = (family.source)(params, &mut rng, &mut out)?;
        sources.push(Part {
            source: Box::new(OfTenant {
                source,
                tenant: *tenant,
            }),
            arrivals: Arrivals::read(params)?,
            sessions: ArrivalParams::read(params).sessions,
        });
    }
    let mut world = World::new(out, context.seed);
    for source in sources {
        world.add(source);
    }
    world.run()
}
