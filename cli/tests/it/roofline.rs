//! The `roofline` command, run as its users run it.

use std::path::Path;
use std::process::Output;

use crate::support::{self, ROOFLINE};

fn roofline(arguments: &[&str]) -> Output {
    support::run(ROOFLINE, Path::new("."), arguments)
}

fn stdout(arguments: &[&str]) -> String {
    support::stdout(&roofline(arguments))
}

fn json(arguments: &[&str]) -> serde_json::Value {
    support::json(&roofline(&[arguments, &["--format", "json"]].concat()))
}

fn failure(arguments: &[&str]) -> String {
    let output = roofline(arguments);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    support::stderr(&output)
}

#[test]
fn all_82_figures_of_the_course() {
    let text = stdout(&["figures"]);
    assert!(
        text.contains("82 of 82 figures within the rounding"),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    let figures = json(&["figures"]);
    let figures = figures.as_array().unwrap();
    assert_eq!(figures.len(), 82);
    assert!(figures.iter().all(|f| f["ok"] == true));
}

#[test]
fn where_the_time_goes() {
    let arguments = [
        "explain",
        "--model",
        "llama-3-8b",
        "--gpu",
        "h100",
        "--cached",
        "4096",
        "--new",
        "512",
    ];
    let text = stdout(&arguments);
    for part in [
        "llama-3-8b on 1 x h100",
        "projections",
        "attention",
        "mlp",
        "head",
        "all",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let cost = json(&arguments);
    let parts = cost["parts"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|p| p["seconds"].as_f64().unwrap()).sum();
    let whole = cost["seconds"].as_f64().unwrap();
    assert!((sum / whole - 1.0).abs() < 1e-9);
    assert!(whole > cost["datasheet_seconds"].as_f64().unwrap());
}

/// The check of a fitted engine: what it adds is in the price.
#[test]
fn a_fitted_engine_is_in_the_price() {
    let published = "../../shared/data/splitwise-perf/perf_model.csv";
    if !Path::new(published).exists() {
        println!("skipped: no ../shared");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("splitwise.toml");
    let path = path.to_str().unwrap();
    stdout(&["fit", published, "--gpu", "h100", "-o", path]);
    let on = ["--model", "llama-2-70b", "--gpu", "h100"];
    let both = |command: &[&str], seconds: &str| {
        let seconds = |more: &[&str]| {
            json(&[command, &on, more].concat())[seconds]
                .as_f64()
                .unwrap()
        };
        [seconds(&[]), seconds(&["--calibration", path])]
    };
    for (command, what) in [
        (vec!["explain", "--gpus", "8", "--new", "512"], "seconds"),
        (
            vec!["explain", "--gpus", "8", "--decode", "--cached", "512"],
            "seconds",
        ),
        (
            vec!["fetch", "--cost", "roofline(gpus=8)", "--tokens", "512"],
            "recompute_seconds",
        ),
    ] {
        let [kernels, engine] = both(&command, what);
        assert!(engine > 1.3 * kernels, "{command:?}: {kernels} {engine}");
    }
    let text = stdout(
        &[
            &[
                "explain",
                "--gpus",
                "8",
                "--new",
                "512",
                "--calibration",
                path,
            ],
            &on[..],
        ]
        .concat(),
    );
    assert!(text.contains("\nengine ") && text.contains(path), "{text}");
}

#[test]
fn a_gpu_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let text = include_str!("../../../roofline/data/gpus/h100.toml");
    std::fs::write(
        &path,
        text.replace("peak_flops = 989e12", "peak_flops = 500e12"),
    )
    .unwrap();
    let mine = path.to_str().unwrap();
    let seconds = |gpu| {
        json(&["explain", "--gpu", gpu])["seconds"]
            .as_f64()
            .unwrap()
    };
    assert!(seconds(mine) > 1.5 * seconds("h100"));
    std::fs::write(&path, text.replace("peak_flops = 989e12", "peak_flops = 0")).unwrap();
    assert!(
        failure(&["explain", "--gpu", mine]).contains("peak_flops must be a finite number above 0")
    );
}

#[test]
fn weights_that_do_not_fit_are_warned_of() {
    let text = stdout(&["explain", "--model", "llama-3-70b", "--gpu", "h100"]);
    assert!(
        text.contains("warning: 141") && text.contains("do not fit its 80 GB"),
        "{text}"
    );
    assert!(
        !stdout(&[
            "explain",
            "--model",
            "llama-3-70b",
            "--gpu",
            "h100",
            "--gpus",
            "8"
        ])
        .contains("warning")
    );
    assert!(!stdout(&["explain", "--new", "0"]).contains("-0"));
    let mixture = stdout(&[
        "explain",
        "--model",
        "deepseek-v3",
        "--gpu",
        "h100",
        "--gpus",
        "16",
    ]);
    let guessed = "not measured, priced as their nearest kin: products with narrow weights, experts, latent attention";
    assert!(mixture.contains(guessed), "{mixture}");
}

#[test]
fn narrower_weights_and_more_gpus_take_less_time() {
    let base = [
        "explain",
        "--model",
        "llama-3-70b",
        "--gpu",
        "h100",
        "--new",
        "16",
    ];
    let seconds = |more: &[&str]| json(&[&base, more].concat())["seconds"].as_f64().unwrap();
    let fp16 = seconds(&[]);
    assert!(seconds(&["--weights", "fp8"]) < 0.7 * fp16);
    assert!(seconds(&["--weights", "int4"]) < 0.5 * fp16);
    assert!(seconds(&["--gpus", "8"]) < 0.5 * fp16);
    let decode = ["--decode", "--batch", "64", "--cached", "8192"];
    assert!(seconds(&[&decode[..], &["--kv", "fp8"]].concat()) < seconds(&decode));
}

#[test]
fn a_hugging_face_config_is_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    let config = r#"{"model_type": "llama", "hidden_size": 4096, "vocab_size": 128256, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336}"#;
    std::fs::write(&path, config).unwrap();
    let explain = |model: &str| json(&["explain", "--gpu", "a100", "--model", model]);
    assert_eq!(explain(path.to_str().unwrap()), explain("llama-3-8b"));
    std::fs::write(&path, "{").unwrap();
    assert!(failure(&["explain", "--model", path.to_str().unwrap()]).contains("config.json"));
}

#[test]
fn fetch_or_recompute() {
    let text = stdout(&["fetch", "--bandwidth", "16.5", "--bandwidth", "16.7"]);
    assert!(text.contains("break-even at 16.59 GB/s"), "{text}");
    let line = |name: &str| {
        text.lines()
            .find(|l| l.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(line("16.5 GB/s").contains("recompute"));
    assert!(line("16.7 GB/s").contains("fetch"));
    assert!(failure(&["fetch", "--bandwidth", "0"]).contains("above 0"));
    assert!(
        failure(&["fetch", "--cost", "rooflin"])
            .contains("did you mean `roofline`? Valid ones: course")
    );
}

#[test]
fn what_does_not_exist_is_said_with_what_does() {
    assert!(failure(&["explain", "--model", "gpt-5"]).contains("llama-3-8b"));
    assert!(failure(&["explain", "--gpu", "h1000"]).contains("alid ones: course-h100, a100"));
    assert!(failure(&["fit", "nowhere.csv", "--gpu", "h100"]).contains("nowhere.csv"));
    assert_eq!(roofline(&["explain", "--gpus", "0"]).status.code(), Some(2));
}

#[test]
fn cost_models_are_described() {
    let text = stdout(&["costs"]);
    for what in [
        "course-linear\n  2N per token, no attention",
        "parameter  gpus=1: tensor-parallel GPUs (a whole number from 1",
    ] {
        assert!(text.contains(what), "{text}");
    }
    let costs = json(&["costs"]);
    assert_eq!(costs[0]["name"], "course");
    assert_eq!(costs[3]["parameters"][1]["default"], "8192");
}

#[test]
fn presets_are_listed() {
    assert!(stdout(&["models"]).contains("deepseek-v3"));
    assert!(stdout(&["gpus"]).contains("mi300x"));
}

/// Rows whose times are those of a simple rule, twice as slow for the second weight.
fn measurements(folder: &Path) -> String {
    let mut text = String::from(
        "device,operator,rows,columns,inner,batch,new_tokens,cached_tokens,heads,kv_heads,head_dim,bytes,direction,\
         repeats,seconds_median,seconds_min,seconds_p90\n",
    );
    for columns in [512, 1024, 2048, 4096, 8192, 16384, 32768] {
        for rows in [256, 1024, 4096] {
            let seconds = 5e-6 + 2.0 * f64::from(rows) * f64::from(columns) * 4096.0 / 200e12;
            text += &format!(
                "A100,gemm,{rows},{columns},4096,,,,,,,,,9,{seconds:e},{seconds:e},{seconds:e}\n"
            );
        }
    }
    let path = folder.join("measured.csv");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn fit_then_validate() {
    let folder = tempfile::tempdir().unwrap();
    let measured = measurements(folder.path());
    let out = folder.path().join("calibration.toml");
    let out = out.to_str().unwrap();
    stdout(&["fit", &measured, "--gpu", "a100", "--out", out]);
    let tried = json(&["validate", &measured, "--calibration", out]);
    assert_eq!(tried[0]["operator"], "gemm");
    assert_eq!(tried[0]["shapes"], 21);
    assert!(tried[0]["calibrated"]["median"].as_f64().unwrap() < 0.2);
    let text = stdout(&["validate", &measured, "--max-median", "60"]);
    assert!(
        text.contains("gemm on a100 (microbenchmarks)") && text.contains("calibrated"),
        "{text}"
    );
    let past = failure(&["validate", &measured, "--max-median", "0.001"]);
    assert!(
        past.contains("gemm on a100") && past.contains("past the threshold"),
        "{past}"
    );
    // One model only: none can be held out.
    assert!(failure(&["validate", &measured, "--by", "model"]).contains("nothing was held out"));
    // An unwritable place leaves nothing behind.
    failure(&[
        "fit",
        &measured,
        "--gpu",
        "a100",
        "--out",
        "/nowhere/calibration.toml",
    ]);
    assert!(failure(&["fit", &measured, "--gpu", "h100"]).contains("measured: a100"));
}

#[test]
fn a_catalogue_of_geometries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("models.yaml");
    let text = "models:\n- {id: a, formula: standard_gqa, fields: {num_hidden_layers: 2, num_key_value_heads: 3, \
                head_dim: 5}}\n- {id: b, formula: odd, fields: {num_hidden_layers: 2}}\n";
    std::fs::write(&path, text).unwrap();
    let rows = json(&["models", "--catalogue", path.to_str().unwrap()]);
    assert_eq!(rows[0]["kv_bytes_per_token"], 2 * 2 * 3 * 5 * 2);
    assert!(rows[1]["refused"].as_str().unwrap().contains("\"odd\""));
}
