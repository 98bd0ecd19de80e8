//! Real data sets and their known figures.

use trace_import::inspect::{Quantiles, Summary, inspect};

use crate::{Folder, import, shared, try_import};

/// The figures of a real data set after its import, and what the import given.
fn real(
    format: &str,
    name: &str,
    options: &[(&str, &str)],
    block_tokens: Option<u32>,
) -> Option<(Summary, String)> {
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let given = import(format, &shared(name)?, &out, options);
    Some((inspect(&out, block_tokens).unwrap(), given))
}

fn rate(summary: &Summary) -> String {
    format!("{:.3}", summary.infinite_cache_token_hit_rate.unwrap())
}

const UNKNOWN_OUTPUTS: &[(&str, &str)] = &[("no-outputs", "true")];

#[test]
fn miniswe_has_its_known_figures() {
    let name = "lmcache-agent-trace/miniswe";
    let Some((summary, given)) = real("lmcache-agent", name, UNKNOWN_OUTPUTS, Some(64)) else {
        return;
    };
    assert_eq!((summary.requests, summary.sessions), (267, 14));
    assert_eq!(format!("{:.0}", summary.span_seconds), "552");
    assert_eq!(summary.block_touches, 93_565);
    assert_eq!(summary.distinct_blocks, 5_842);
    assert_eq!(rate(&summary), "0.936");
    assert!(
        given.contains("changed  74 rows were out of order"),
        "{given}"
    );
}

#[test]
fn magagent_has_its_known_figures() {
    let name = "lmcache-agent-trace/magagent";
    let Some((summary, given)) = real("lmcache-agent", name, UNKNOWN_OUTPUTS, Some(64)) else {
        return;
    };
    assert_eq!((summary.requests, summary.sessions), (481, 17));
    assert_eq!(summary.block_touches, 65_481);
    assert_eq!(summary.distinct_blocks, 11_390);
    assert_eq!(rate(&summary), "0.823");
    assert!(given.contains("kept     45 prompts are empty"), "{given}");
    assert!(
        given.contains("316 prompts repeat an earlier prompt"),
        "{given}"
    );
}

#[test]
fn tau_bench_has_its_known_rates_without_and_with_outputs() {
    let without = real("tau-bench", "tau-bench", UNKNOWN_OUTPUTS, Some(64));
    let with = real("tau-bench", "tau-bench", &[], Some(64));
    let (Some((without, _)), Some((with, _))) = (without, with) else {
        return;
    };
    assert_eq!((without.requests, without.sessions), (2_166, 160));
    assert_eq!(rate(&without), "0.937");
    assert_eq!(rate(&with), "0.960");
}

#[test]
fn ragpulse_segments_are_chained() {
    let Some((summary, given)) = real("ragpulse", "ragpulse", &[], Some(16)) else {
        return;
    };
    assert_eq!(summary.requests, 3_800);
    assert_eq!(rate(&summary), "0.315");
    // Without the template's tokens in the denominator.
    let template: u64 = given
        .split(" template tokens")
        .next()
        .and_then(|text| text.split_whitespace().last())
        .unwrap()
        .parse()
        .unwrap();
    let hits = summary.infinite_cache_hit_tokens as f64;
    let known = (summary.prompt_tokens - template) as f64;
    assert_eq!(format!("{:.3}", hits / known), "0.316");
}

#[test]
fn swe_agent_runs_become_sessions() {
    let Some((summary, given)) = real("swe-agent", "swe-agent", &[], Some(64)) else {
        return;
    };
    assert_eq!((summary.requests, summary.sessions), (114, 12));
    assert!(
        given.contains("1 runs recorded the prompts as sent"),
        "{given}"
    );
}

#[test]
fn azure_is_refused_until_told_how_to_invent_identity() {
    let name = "azure-llm-2023/AzureLLMInferenceTrace_code.csv";
    let Some(input) = shared(name) else { return };
    let folder = Folder::new();
    let out = folder.path("out.parquet");
    let fault = try_import("azure", &input, &out, &[], false).unwrap_err();
    assert!(fault.to_string().contains("no prefix identity"), "{fault}");
    assert!(folder.names().is_empty());
    let (summary, _) = real("azure", name, &[("identity", "unique")], None).unwrap();
    assert_eq!(summary.requests, 8_819);
    assert_eq!(summary.infinite_cache_hit_tokens, 0);
    let mean = |quantiles: Option<Quantiles>| quantiles.unwrap().mean.round();
    assert_eq!(mean(summary.prompt_tokens_quantiles), 2_048.0);
    assert_eq!(mean(summary.output_tokens_quantiles), 28.0);
    let (summary, _) = real("azure", name, &[("identity", "shared:160")], None).unwrap();
    assert!(summary.infinite_cache_hit_tokens > 8_000 * 160);
}
