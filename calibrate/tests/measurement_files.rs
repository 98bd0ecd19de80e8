//! Measurement files: this project's own format, and what happens to bad ones.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::{Path, PathBuf};

use calibrate::{Measurement, Split, TimedWork, fit_calibration, read_measurements, validate};
use roofline::{
    Calibration, Gemm, Gpu, HostCopy, Kernel, PrefillAttention, Stream, read_calibration,
};

/// The header that the microbenchmarks print, read from their source so that the two cannot part.
fn header() -> String {
    let source = include_str!("../cuda/microbench.cu");
    let after = source.split("HEADER =").nth(1).unwrap();
    let statement = after.split(';').next().unwrap();
    statement.split('"').skip(1).step_by(2).collect()
}

/// A file as a GPU with the H100's calibration would have left it, every kernel `off` times as slow.
fn recorded(folder: &Path, off: f64) -> PathBuf {
    let gpu = Gpu::named("h100").unwrap();
    let calibration = Calibration::named("h100-vllm").unwrap();
    let mut text = header() + "\n";
    let mut row = |kernel: Kernel, operator: &str, shape: String| {
        let s = off * calibration.seconds(&gpu, &kernel);
        let times = format!("{s:.9e},{:.9e},{:.9e}", 0.99 * s, 1.1 * s);
        text += &format!("NVIDIA H100 80GB HBM3,{operator},{shape},,30,{times}\n");
    };
    for (n, k) in [
        (4096, 4096),
        (22016, 4096),
        (4096, 11008),
        (6144, 4096),
        (1280, 8192),
        (8192, 1024),
    ] {
        for m in [1, 16, 128, 512, 1024, 4096] {
            let [rows, columns, inner] = [m, n, k].map(f64::from);
            let shape = format!("{m},{n},{k},,,,,,,");
            row(
                Kernel::Gemm(Gemm::fp16(rows, columns, inner)),
                "gemm",
                shape,
            );
        }
    }
    for (new, cached) in [
        (1, 4096),
        (64, 0),
        (64, 2048),
        (512, 0),
        (512, 8192),
        (2048, 512),
        (4096, 32768),
    ] {
        let attention = PrefillAttention {
            batch: 1.0,
            new_tokens: f64::from(new),
            cached_tokens: f64::from(cached),
            heads: 32.0,
            kv_heads: 8.0,
            head_dim: 128.0,
            window: f64::INFINITY,
            kv_bytes: 2.0,
        };
        let shape = format!(",,,1,{new},{cached},32,8,128,");
        row(Kernel::Prefill(attention), "prefill-attention", shape);
    }
    for power in [2, 16, 20, 24, 28] {
        let bytes = f64::from(1 << power);
        let shape = format!(",,,,,,,,,{bytes}");
        let stream = Stream { bytes, flops: 0.0 };
        row(Kernel::Stream(stream), "elementwise", shape.clone());
        row(Kernel::HostCopy(HostCopy { bytes }), "host-copy", shape);
    }
    let path = folder.join("measurements.csv");
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_microbenchmarks_columns_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let rows = read_measurements(&recorded(folder.path(), 1.0)).unwrap();
    assert_eq!(rows.len(), 36 + 7 + 10);
    assert!(rows.iter().all(|r| r.gpu == "h100" && r.seconds > 0.0));
    let first = TimedWork::Kernel(Kernel::Gemm(Gemm::fp16(1.0, 4096.0, 4096.0)));
    assert_eq!(rows[0].work, first);
    assert_eq!(rows[36].work.operator(), "prefill-attention");
    assert_eq!(rows[52].work.operator(), "host-copy");
}

#[test]
fn a_fit_to_the_microbenchmarks_predicts_them() {
    let folder = tempfile::tempdir().unwrap();
    let measurements = read_measurements(&recorded(folder.path(), 1.5)).unwrap();
    let (gpu, base) = (
        Gpu::named("h100").unwrap(),
        Calibration::named("h100-vllm").unwrap(),
    );
    let fitted = fit_calibration(&gpu, &measurements, &base).unwrap();
    // What was not measured is the base's.
    assert_eq!(fitted.decode_attention, base.decode_attention);
    for row in validate(&measurements, Some(&fitted), Split::Shape, 3).unwrap() {
        assert!(row.as_shipped.median < 0.02, "{row:?}");
    }
    let before = validate(&measurements, Some(&base), Split::Shape, 3).unwrap();
    assert!(
        before.iter().all(|row| row.as_shipped.median > 0.3),
        "{before:?}"
    );
}

#[test]
fn a_calibration_survives_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let measurements = read_measurements(&recorded(folder.path(), 1.2)).unwrap();
    let gpu = Gpu::named("h100").unwrap();
    let fitted = fit_calibration(
        &gpu,
        &measurements,
        &Calibration::named("h100-vllm").unwrap(),
    )
    .unwrap();
    let path = folder.path().join("calibration.toml");
    std::fs::write(&path, fitted.to_toml().unwrap()).unwrap();
    let name = path.to_str().unwrap();
    let named = Calibration {
        name: name.to_owned(),
        ..fitted.clone()
    };
    assert_eq!(read_calibration(name).unwrap(), named);
    std::fs::write(
        &path,
        fitted
            .to_toml()
            .unwrap()
            .replace("overhead_us = ", "overhead_us = -"),
    )
    .unwrap();
    assert!(
        read_calibration(name)
            .unwrap_err()
            .to_string()
            .contains("overhead_us must be a finite number, 0 or more")
    );
}

fn error(name: &str, text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let result: Result<Vec<Measurement>, _> = read_measurements(&path);
    result.unwrap_err().to_string()
}

#[test]
fn bad_files_are_named_with_line_and_column() {
    let head = header();
    let unknown = error("x.csv", "a,b\n1,2\n");
    assert!(
        unknown.contains("x.csv") && unknown.contains("operator, seconds_median"),
        "{unknown}"
    );
    let device = error(
        "x.csv",
        &format!("{head}\nVoodoo 2,gemm,1,1,1,,,,,,,,,5,1,1,1\n"),
    );
    assert!(
        device.contains("line 2") && device.contains("\"Voodoo 2\""),
        "{device}"
    );
    let operator = error(
        "x.csv",
        &format!("{head}\nNVIDIA L4,relu,1,1,1,,,,,,,,,5,1,1,1\n"),
    );
    assert!(operator.contains("\"relu\", not gemm"), "{operator}");
    let negative = error(
        "x.csv",
        &format!("{head}\nNVIDIA L4,gemm,-1,1,1,,,,,,,,,5,1,1,1\n"),
    );
    assert!(negative.contains("column \"rows\" is \"-1\""), "{negative}");
    let zero = error(
        "x.csv",
        &format!("{head}\nNVIDIA L4,gemm,1,1,1,,,,,,,,,5,0,1,1\n"),
    );
    assert!(
        zero.contains("column \"seconds_median\" is not a time above 0"),
        "{zero}"
    );
    let short = error("x.csv", &format!("{head}\nNVIDIA L4,gemm,1\n"));
    assert!(short.contains("x.csv"), "{short}");
    let packed = error("x.csv.zst", "not zstd");
    assert!(packed.contains("x.csv.zst"), "{packed}");
    assert!(
        read_measurements(Path::new("nowhere.csv"))
            .unwrap_err()
            .to_string()
            .contains("nowhere.csv")
    );
}

#[test]
fn a_gpu_that_was_not_measured_cannot_be_fitted() {
    let folder = tempfile::tempdir().unwrap();
    let measurements = read_measurements(&recorded(folder.path(), 1.0)).unwrap();
    let gpu = Gpu::named("a100").unwrap();
    let error = fit_calibration(
        &gpu,
        &measurements,
        &Calibration::named("a100-vllm").unwrap(),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("nothing was measured on a100; measured: h100")
    );
}
