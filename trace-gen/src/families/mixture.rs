//! All of it at once.

use params::{Domain, Params, find};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

use super::single::SINGLE;
use crate::arrivals::ArrivalParams;
use crate::draw::unit;
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::parameters;
use crate::world::{Out, Session, Source, Start, Tenanted};

pub(crate) const FAMILY: Family = Family {
    name: "mixture",
    summary: "Sessions of several families, of several tenants who share nothing",
    about: "\
Every session belongs to a tenant, drawn by Zipf popularity, and to a family, drawn by weight. A tenant has templates, \
corpora and projects of its own. Sessions start by one process; the families' own arrival parameters do not matter. For \
numbers of sessions, arrivals or parameters by part, write a plan (`trace-gen plan`). For: one policy against everything \
at once, and fairness between tenants.",
    examples: &[
        "trace-gen mixture -o mixture.parquet --sessions 2000 --session-gap 2 --tenants 5",
        "trace-gen mixture -o agents-and-noise.parquet --parts agent=1,oneshot=20 --set agent.context-tokens=32000",
    ],
    params: &[ArrivalParams::PARAMS, MixtureParams::PARAMS],
    defaults: &[("sessions", "500"), ("session-gap", "3")],
    source: |params, rng, out| Ok(Box::new(Mixture::read(params, rng, out)?)),
};

parameters! {
    MixtureParams {
        parts: String, Domain::Text("families with weights above 0, such as agent=1,chat=3"), "agent=4,chat=20,fanout=4,mapreduce=2,multi-agent=2,rag=40,oneshot=40,cron=4,scan=0.2,version-roll=40",
            "Families and their weights among the sessions";
        tenants: u32, Domain::Count(1, 100_000), "3",
            "Tenants, numbered from 0";
        tenant_zipf: f64, Domain::Number(0.0, 100.0), "1.0",
            "Exponent of the tenants' Zipf popularity; 0: all alike";
        set: String, Domain::Text("PART.PARAMETER=VALUE of families in the mixture, separated by ;"), "",
            "Parameters of parts, such as agent.steps=geometric(5);chat.apps=1";
    }
}

struct Mixture {
    /// Per tenant, the parts with their weights.
    tenants: Vec<Vec<(f64, Box<dyn Source>)>>,
    popularity: Zipf<f64>,
}

impl Mixture {
    fn read(params: &Params, rng: &mut ChaCha8Rng, out: &mut Out) -> Result<Self, GenError> {
        let own = MixtureParams::read(params);
        let parts = parts(&own)?;
        let mut of_tenant = |_| {
            let source = |(weight, family, params): &(f64, &Family, Params)| {
                Ok((*weight, (family.source)(params, rng, out)?))
            };
            parts
                .iter()
                .map(source)
                .collect::<Result<Vec<_>, GenError>>()
        };
        Ok(Self {
            tenants: (0..own.tenants)
                .map(&mut of_tenant)
                .collect::<Result<_, _>>()?,
            popularity: Zipf::new(f64::from(own.tenants), own.tenant_zipf).map_err(|fault| {
                GenError::Parameter {
                    name: "tenant-zipf",
                    found: own.tenant_zipf.to_string(),
                    expected: fault.to_string(),
                }
            })?,
        })
    }
}

/// The families, their weights and their parameters.
fn parts(given: &MixtureParams) -> Result<Vec<(f64, &'static Family, Params)>, GenError> {
    let mut parts = Vec::new();
    let refused = |name, found: &str, expected: &str| GenError::Parameter {
        name,
        found: format!("`{found}`"),
        expected: expected.to_owned(),
    };
    for part in given.parts.split(',') {
        let refused = || {
            refused(
                "parts",
                part,
                "FAMILY=WEIGHT, the weight above 0 and at most 1e9",
            )
        };
        let (name, weight) = part.trim().split_once('=').ok_or_else(refused)?;
        let weight: f64 = weight.parse().map_err(|_| refused())?;
        if !(weight > 0.0 && weight <= 1e9) {
            return Err(refused());
        }
        let family = *find("family of a mixture", SINGLE, |family| family.name, name)?;
        parts.push((weight, family, family.params()));
    }
    let settings = given.set.split(';');
    for setting in settings.filter(|setting| !setting.is_empty()) {
        let refused = || {
            refused(
                "set",
                setting,
                "PART.PARAMETER=VALUE of a family in the mixture",
            )
        };
        let (place, value) = setting.split_once('=').ok_or_else(refused)?;
        let (part, name) = place.trim().split_once('.').ok_or_else(refused)?;
        let mut found = parts
            .iter_mut()
            .filter(|(_, family, _)| family.name == part)
            .peekable();
        found.peek().ok_or_else(refused)?;
        for (_, _, params) in found {
            params.set(name, value)?;
        }
    }
    Ok(parts)
}

impl Source for Mixture {
    fn begin(&mut self, mut start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let tenant = self.popularity.sample(&mut start.rng) as usize - 1;
        let parts = &mut self.tenants[tenant];
        let total: f64 = parts.iter().map(|(weight, _)| weight).sum();
        let mut at = total * unit(&mut start.rng);
        let found = parts.iter().position(|(weight, _)| {
            at -= weight;
            at < 0.0
        });
        let (_, source) = &mut parts[found.unwrap_or(0)];
        Ok(Box::new(Tenanted {
            session: source.begin(start, out)?,
            tenant: tenant as u32,
        }))
    }
}
