//! Map and reduce.

use trace::Hints;

use crate::apps::{AppParams, Apps};
use crate::arrivals::ArrivalParams;
use crate::draw::Dist;
use crate::error::GenError;
use crate::family::Family;
use crate::parameters::{COUNT, TOKENS, parameters};
use crate::script::{Call, Layout};
use crate::service::Service;
use crate::world::{Out, Session, Source, Start};

pub(crate) const FAMILY: Family = Family {
    name: "mapreduce",
    summary: "A plan, 16 maps that share its context, and a reduce that reads what they found: a declared graph",
    about: "\
A session's first request reads the shared context and says what to do. Its whole path is then read by every map, which \
adds a part of its own, and by the reduce, which adds the maps' outputs; the graph is known beforehand, so remaining_uses \
of the plan is maps + 1, and 0 of everything else. The maps arrive together, the reduce when the last map has ended. Every \
map is an agent of its own that runs once. For: policies that read declared uses, and bursts off one prefix.",
    examples: &["trace-gen mapreduce -o mapreduce.parquet --sessions 200 --maps 64"],
    params: &[
        ArrivalParams::PARAMS,
        AppParams::PARAMS,
        MapReduceParams::PARAMS,
        Service::PARAMS,
    ],
    defaults: &[
        ("apps", "3"),
        ("template-tokens", "lognormal(1500,0.5)"),
        ("projects", "1"),
        ("project-tokens", "0"),
    ],
    source: |params, rng, out| {
        Ok(Box::new(Jobs {
            apps: Apps::read(params, rng, out)?,
            service: Service::read(params),
            params: MapReduceParams::read(params),
        }))
    },
};

parameters! {
    MapReduceParams {
        maps: Dist, COUNT, "16",
            "Maps of a session";
        shared_tokens: Dist, TOKENS, "lognormal(8000,0.5)",
            "Tokens that plan, maps and reduce share beside the template";
        plan_tokens: Dist, TOKENS, "lognormal(300,0.5)",
            "Tokens of the plan";
        part_tokens: Dist, TOKENS, "lognormal(1500,0.5)",
            "Tokens of a map's own part";
        map_output_tokens: Dist, TOKENS, "lognormal(200,0.6)",
            "Tokens of a map's output";
        output_tokens: Dist, TOKENS, "lognormal(500,0.5)",
            "Tokens of the reduce's output";
    }
}

struct Jobs {
    apps: Apps,
    service: Service,
    params: MapReduceParams,
}

impl Source for Jobs {
    fn begin(&mut self, start: Start, out: &mut Out) -> Result<Box<dyn Session>, GenError> {
        let mut rng = start.rng;
        let beginning = self.apps.pick(&mut rng, out)?;
        let mut shared = beginning.text;
        shared.grow(self.params.shared_tokens.some(&mut rng), &mut out.fresh);
        let hints = Hints {
            priority: Some(0),
            ..beginning.hints
        };
        let mut layout = Layout::new(self.service, hints);
        let plan = Call {
            at_us: start.at_us,
            prompt: &shared,
            output_tokens: self.params.plan_tokens.some(&mut rng),
            kind: "plan".into(),
            tool: Some("map"),
            parent: None,
        };
        let plan = layout.call(plan, &mut out.fresh);
        let (mut results, mut last) = (0_u32, plan.clone());
        for map in 0..self.params.maps.some(&mut rng) {
            let mut prompt = plan.text.clone();
            prompt.grow(self.params.part_tokens.some(&mut rng), &mut out.fresh);
            let output_tokens = self.params.map_output_tokens.some(&mut rng);
            results = results.saturating_add(output_tokens);
            let call = Call {
                at_us: plan.end_us,
                prompt: &prompt,
                output_tokens,
                kind: format!("map-{map}").into(),
                tool: Some("reduce"),
                parent: Some(plan.place),
            };
            let done = layout.call(call, &mut out.fresh);
            if done.end_us >= last.end_us {
                last = done;
            }
        }
        let mut prompt = plan.text;
        prompt.grow(results, &mut out.fresh);
        let reduce = Call {
            at_us: last.end_us,
            prompt: &prompt,
            output_tokens: self.params.output_tokens.some(&mut rng),
            kind: "reduce".into(),
            tool: None,
            parent: Some(last.place),
        };
        layout.call(reduce, &mut out.fresh);
        Ok(layout.session(start.session_id))
    }
}
