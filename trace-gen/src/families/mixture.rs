//! All of it at once.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Zipf};

use super::{Family, find};
use crate::arrivals;
use crate::draw::unit;
use crate::error::GenError;
use crate::params::{Param, Values, param};
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
    params: &[arrivals::PARAMS, PARAMS],
    defaults: &[("sessions", "500"), ("session-gap", "3")],
    source: |values, rng, out| Ok(Box::new(Mixture::read(values, rng, out)?)),
};

const PARAMS: &[Param] = &[
    param(
        "parts",
        "agent=4,chat=20,fanout=4,mapreduce=2,multi-agent=2,rag=40,oneshot=40,cron=4,scan=0.2,version-roll=40",
        "Families and their weights among the sessions",
    ),
    param("tenants", "3", "Tenants, numbered from 0"),
    param(
        "tenant-zipf",
        "1.0",
        "Exponent of the tenants' Zipf popularity; 0: all alike",
    ),
    param(
        "set",
        "",
        "Parameters of parts, such as agent.steps=geometric(5);chat.apps=1",
    ),
];

struct Mixture {
    /// Per tenant, the parts with their weights.
    tenants: Vec<Vec<(f64, Box<dyn Source>)>>,
    popularity: Zipf<f64>,
}

impl Mixture {
    fn read(values: &Values, rng: &mut ChaCha8Rng, out: &mut Out) -> Result<Self, GenError> {
        let parts = parts(values)?;
        let tenants = values.count("tenants", 1..=100_000)?;
        let exponent = values.number("tenant-zipf", 0.0..=100.0)?;
        let mut of_tenant = |_| {
            let source = |(weight, family, values): &(f64, &Family, Values)| {
                Ok((*weight, (family.source)(values, rng, out)?))
            };
            parts
                .iter()
                .map(source)
                .collect::<Result<Vec<_>, GenError>>()
        };
        Ok(Self {
            tenants: (0..tenants).map(&mut of_tenant).collect::<Result<_, _>>()?,
            popularity: Zipf::new(f64::from(tenants), exponent)
                .map_err(|fault| values.refused("tenant-zipf", &fault.to_string()))?,
        })
    }
}

/// The families, their weights and their parameters.
fn parts(values: &Values) -> Result<Vec<(f64, &'static Family, Values)>, GenError> {
    let mut parts = Vec::new();
    for part in values.text("parts").split(',') {
        let refused = || {
            values.refused(
                "parts",
                "families with weights above 0, such as agent=1,chat=3",
            )
        };
        let (name, weight) = part.trim().split_once('=').ok_or_else(refused)?;
        let weight: f64 = weight.parse().map_err(|_| refused())?;
        if !(weight > 0.0 && weight <= 1e9) || name == FAMILY.name {
            return Err(refused());
        }
        let family = find(name)?;
        parts.push((weight, family, family.values()));
    }
    for setting in values
        .text("set")
        .split(';')
        .filter(|setting| !setting.is_empty())
    {
        let refused = || {
            values.refused(
                "set",
                "PART.PARAMETER=VALUE of families in the mixture, separated by ;",
            )
        };
        let (place, value) = setting.split_once('=').ok_or_else(refused)?;
        let (part, name) = place.trim().split_once('.').ok_or_else(refused)?;
        let mut found = parts
            .iter_mut()
            .filter(|(_, family, _)| family.name == part)
            .peekable();
        found.peek().ok_or_else(refused)?;
        for (_, _, values) in found {
            values.set(name, value)?;
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
