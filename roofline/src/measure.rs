//! Measured times, from this project's microbenchmarks and from the published files that it was checked against.
//!
//! A file is recognised by its columns. Every reader names the file and line of a bad value.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::kernel::{
    ACTIVATION_BYTES, AllReduce, DecodeAttention, Gemm, HostCopy, Kernel, PrefillAttention, Stream,
};
use crate::model::{LayerGroup, Mixer, Mlp};
use crate::{Gpu, Model, RooflineError};

/// One measured time.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Name of the GPU preset it was measured on.
    pub gpu: String,
    /// The kind of file it is from.
    pub source: &'static str,
    /// The model whose shape it is, or empty.
    pub model: String,
    /// What ran.
    pub observed: Observed,
    /// How long it took, seconds.
    pub seconds: f64,
}

/// What was timed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Observed {
    /// One kernel.
    Kernel(Kernel),
    /// A whole prefill of `batch` prompts of `prompt_tokens` on `gpus` GPUs.
    Prefill {
        /// Tensor-parallel GPUs.
        gpus: u32,
        /// Prompts.
        batch: u32,
        /// Tokens of each.
        prompt_tokens: u32,
    },
}

impl Observed {
    /// Name of what was timed, as in tables.
    pub fn operator(&self) -> &'static str {
        match self {
            Self::Kernel(kernel) => kernel.operator(),
            Self::Prefill { .. } => "whole-prefill",
        }
    }
}

/// Reads a measurement file, CSV or CSV compressed with Zstandard.
///
/// Shapes that were measured several times, in this file or in the row's repeats, are all returned.
///
/// # Errors
/// [`RooflineError::Read`], or [`RooflineError::Invalid`] with file, line, column and what was expected.
pub fn read_measurements(path: &Path) -> Result<Vec<Measurement>, RooflineError> {
    let failed = |source| RooflineError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let bytes: Box<dyn Read> = if path.extension().is_some_and(|e| e == "zst") {
        Box::new(zstd::Decoder::new(file).map_err(failed)?)
    } else {
        Box::new(file)
    };
    let place = path.display().to_string();
    let mut reader = csv::Reader::from_reader(bytes);
    let header = reader
        .headers()
        .map_err(|e| RooflineError::invalid(&place, e.to_string()))?
        .clone();
    let format = FORMATS
        .iter()
        .find(|f| f.columns.iter().all(|c| header.iter().any(|h| h == *c)));
    let format = format.ok_or_else(|| RooflineError::invalid(&place, not_recognised()))?;
    let stem = path.file_name().unwrap_or_default().to_string_lossy();
    let file = FileName::of(&stem);
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| RooflineError::invalid(&place, e.to_string()))?;
        let row = Row {
            place: &place,
            header: &header,
            record: &record,
            file: &file,
        };
        let mut timed = Timed {
            source: format.source,
            rows: &mut rows,
        };
        (format.read)(&row, &mut timed)?;
    }
    Ok(rows)
}

fn not_recognised() -> String {
    let known: Vec<_> = FORMATS
        .iter()
        .map(|f| format!("{} ({})", f.source, f.columns.join(", ")))
        .collect();
    format!(
        "the columns fit none of the known measurement files: {}",
        known.join("; ")
    )
}

/// A kind of measurement file.
struct Format {
    source: &'static str,
    /// Columns that tell it from the others.
    columns: &'static [&'static str],
    read: fn(&Row, &mut Timed) -> Result<(), RooflineError>,
}

const FORMATS: &[Format] = &[
    Format {
        source: "microbenchmarks",
        columns: &["operator", "seconds_median"],
        read: own,
    },
    Format {
        source: "aiconfigurator gemm",
        columns: &["gemm_dtype", "m", "n", "k"],
        read: gemm,
    },
    Format {
        source: "aiconfigurator attention",
        columns: &["isl", "step", "num_key_value_heads"],
        read: attention,
    },
    Format {
        source: "aiconfigurator nccl",
        columns: &["nccl_dtype", "message_size"],
        read: nccl,
    },
    Format {
        source: "vidur layers",
        columns: &["time_stats.mlp_up_proj.median", "use_gated_mlp"],
        read: vidur,
    },
    Format {
        source: "vidur all-reduce",
        columns: &["time_stats.all_reduce.median", "num_workers"],
        read: vidur_all_reduce,
    },
    Format {
        source: "llmservingsim attention",
        columns: &["prefill_chunk", "kv_prefill", "n_decode", "time_us"],
        read: suffix_attention,
    },
    Format {
        source: "llmservingsim attention",
        columns: &["prefill_chunk_size", "kv_cache_size", "is_prefill"],
        read: chunk_attention,
    },
    Format {
        source: "llmservingsim layers",
        columns: &["layer", "tokens", "time_us"],
        read: dense,
    },
    Format {
        source: "llmservingsim layers",
        columns: &["layer_name", "input", "latency(ns)"],
        read: dense_ns,
    },
    Format {
        source: "splitwise",
        columns: &["prompt_time", "tensor_parallel", "prompt_size"],
        read: splitwise,
    },
];

/// Where the readers put what they find.
struct Timed<'a> {
    source: &'static str,
    rows: &'a mut Vec<Measurement>,
}

impl Timed<'_> {
    fn kernel(&mut self, gpu: &str, model: &str, kernel: Kernel, seconds: f64) {
        self.push(gpu, model, Observed::Kernel(kernel), seconds);
    }

    fn push(&mut self, gpu: &str, model: &str, observed: Observed, seconds: f64) {
        let (gpu, model) = (gpu.to_owned(), model.to_owned());
        self.rows.push(Measurement {
            gpu,
            source: self.source,
            model,
            observed,
            seconds,
        });
    }
}

/// What a published file says in its name only: `GPU_MODEL_...`.
struct FileName {
    gpu: Option<String>,
    model: String,
}

impl FileName {
    fn of(name: &str) -> Self {
        let mut parts = name.split('_').filter(|part| *part != "network");
        let gpu = parts.next().and_then(gpu_of_device);
        Self {
            gpu,
            model: parts.next().unwrap_or_default().to_owned(),
        }
    }
}

/// The preset that a driver's device name stands for: one of its words, or for names of several words all of them in
/// a row.
fn gpu_of_device(device: &str) -> Option<String> {
    let device = device.to_lowercase();
    let words: Vec<&str> = device
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .collect();
    let joined = words.concat();
    let presets = Gpu::presets().ok()?;
    let mut names = presets
        .into_iter()
        .map(|g| g.name)
        .filter(|n| !n.starts_with("course"));
    names.find(|name| {
        let plain = name.replace('-', "");
        words.contains(&plain.as_str()) || (name.contains('-') && joined.contains(&plain))
    })
}

/// One line of a file.
struct Row<'a> {
    place: &'a str,
    header: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
    file: &'a FileName,
}

impl Row<'_> {
    fn text(&self, column: &str) -> Result<&str, RooflineError> {
        let index = self.header.iter().position(|h| h == column);
        let cell = index.and_then(|i| self.record.get(i));
        cell.ok_or_else(|| self.error(column, "is missing"))
    }

    /// A number from 0 up.
    fn number(&self, column: &str) -> Result<f64, RooflineError> {
        let text = self.text(column)?;
        let value = text
            .trim()
            .parse()
            .ok()
            .filter(|v: &f64| v.is_finite() && *v >= 0.0);
        value.ok_or_else(|| {
            self.error(
                column,
                &format!("is \"{text}\", not a finite number from 0 up"),
            )
        })
    }

    /// A time above 0.
    fn seconds(&self, column: &str, unit: f64) -> Result<f64, RooflineError> {
        let value = self.number(column)? * unit;
        if value > 0.0 {
            Ok(value)
        } else {
            Err(self.error(column, "is not a time above 0"))
        }
    }

    fn gpu_in(&self, column: &str) -> Result<String, RooflineError> {
        let device = self.text(column)?;
        gpu_of_device(device)
            .ok_or_else(|| self.error(column, &format!("\"{device}\" is none of the GPU presets")))
    }

    fn gpu_of_file(&self) -> Result<&str, RooflineError> {
        let problem =
            "the file's name does not start with one of the GPU presets, and nothing in it does";
        self.file
            .gpu
            .as_deref()
            .ok_or_else(|| RooflineError::invalid(self.place, problem))
    }

    fn error(&self, column: &str, problem: &str) -> RooflineError {
        let line = self.record.position().map_or(0, csv::Position::line);
        RooflineError::invalid(
            format!("{}, line {line}", self.place),
            format!("column \"{column}\" {problem}"),
        )
    }
}

const MS: f64 = 1e-3;
const US: f64 = 1e-6;

/// This project's own: `operator` decides which of the shape columns hold something.
fn own(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let gpu = row.gpu_in("device")?;
    let n = |column: &str| row.number(column);
    let kernel = match row.text("operator")? {
        "gemm" => Kernel::Gemm(Gemm::fp16(n("rows")?, n("columns")?, n("inner")?)),
        "prefill-attention" => Kernel::Prefill(PrefillAttention {
            batch: n("batch")?,
            new_tokens: n("new_tokens")?,
            cached_tokens: n("cached_tokens")?,
            heads: n("heads")?,
            kv_heads: n("kv_heads")?,
            head_dim: n("head_dim")?,
            window: f64::INFINITY,
            kv_bytes: 2.0,
        }),
        "elementwise" => Kernel::Stream(Stream {
            bytes: n("bytes")?,
            flops: 0.0,
        }),
        "host-copy" => Kernel::HostCopy(HostCopy { bytes: n("bytes")? }),
        other => {
            let known = "gemm, prefill-attention, elementwise or host-copy";
            return Err(row.error("operator", &format!("is \"{other}\", not {known}")));
        }
    };
    out.kernel(&gpu, "", kernel, row.seconds("seconds_median", 1.0)?);
    Ok(())
}

fn gemm(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let kernel = Gemm::fp16(row.number("m")?, row.number("n")?, row.number("k")?);
    out.kernel(
        &row.gpu_in("device")?,
        "",
        Kernel::Gemm(kernel),
        row.seconds("latency", MS)?,
    );
    Ok(())
}

/// One file kind for both phases: a single query after `step` tokens is a decode step.
fn attention(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let [new, step] = [row.number("isl")?, row.number("step")?];
    let heads = Heads {
        batch: row.number("batch_size")?,
        heads: row.number("num_heads")?,
        kv_heads: row.number("num_key_value_heads")?,
        head_dim: row.number("head_dim")?,
    };
    let kernel = if new == 1.0 && step > 0.0 {
        heads.decode(new + step)
    } else {
        heads.prefill(new, step)
    };
    out.kernel(
        &row.gpu_in("device")?,
        "",
        kernel,
        row.seconds("latency", MS)?,
    );
    Ok(())
}

#[derive(Clone, Copy)]
struct Heads {
    batch: f64,
    heads: f64,
    kv_heads: f64,
    head_dim: f64,
}

impl Heads {
    fn prefill(self, new_tokens: f64, cached_tokens: f64) -> Kernel {
        let Self {
            batch,
            heads,
            kv_heads,
            head_dim,
        } = self;
        Kernel::Prefill(PrefillAttention {
            batch,
            new_tokens,
            cached_tokens,
            heads,
            kv_heads,
            head_dim,
            window: f64::INFINITY,
            kv_bytes: 2.0,
        })
    }

    fn decode(self, context_tokens: f64) -> Kernel {
        let pair_width = 2.0 * self.head_dim;
        Kernel::Decode(DecodeAttention {
            batch: self.batch,
            context_tokens,
            heads: self.heads,
            kv_heads: self.kv_heads,
            pair_width,
            elements_per_token: self.kv_heads * pair_width,
            kv_bytes: 2.0,
        })
    }
}

fn nccl(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    if row.text("op_name")? != "all_reduce" {
        return Ok(());
    }
    let element = if row.text("nccl_dtype")? == "half" {
        2.0
    } else {
        1.0
    };
    let bytes = row.number("message_size")? * element;
    let kernel = Kernel::AllReduce(AllReduce {
        bytes,
        gpus: row.number("num_gpus")?,
    });
    out.kernel(
        &row.gpu_in("device")?,
        "",
        kernel,
        row.seconds("latency", MS)?,
    );
    Ok(())
}

/// Operators of one layer, each in a column of its own; projections are cut over the GPUs, norms are not.
fn vidur(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let n = |column: &str| row.number(column);
    let [tokens, hidden, gpus] = [
        n("num_tokens")?,
        n("n_embd")?,
        n("num_tensor_parallel_workers")?,
    ];
    let head_dim = hidden / n("n_head")?;
    let queries = hidden / gpus;
    let keys = n("n_kv_head")? * head_dim / gpus;
    let inner = n("n_expanded_embd")? / gpus;
    let inputs = if row.text("use_gated_mlp")? == "True" {
        2.0
    } else {
        1.0
    };
    let product = |columns, inner| Kernel::Gemm(Gemm::fp16(tokens, columns, inner));
    let stream = |elements| {
        Kernel::Stream(Stream {
            bytes: ACTIVATION_BYTES * tokens * elements,
            flops: 0.0,
        })
    };
    let operators = [
        ("attn_pre_proj", product(queries + 2.0 * keys, hidden)),
        ("attn_post_proj", product(hidden, queries)),
        ("mlp_up_proj", product(inputs * inner, hidden)),
        ("mlp_down_proj", product(hidden, inner)),
        ("input_layernorm", stream(2.0 * hidden)),
        ("post_attention_layernorm", stream(2.0 * hidden)),
        ("attn_rope", stream(2.0 * (queries + keys))),
        ("mlp_act", stream((inputs + 1.0) * inner)),
        ("add", stream(3.0 * hidden)),
    ];
    let gpu = row.gpu_of_file()?;
    for (name, kernel) in operators {
        let column = format!("time_stats.{name}.median");
        // A measured zero is a kernel too short for the clock.
        if n(&column)? > 0.0 {
            out.kernel(gpu, &row.file.model, kernel, row.seconds(&column, MS)?);
        }
    }
    Ok(())
}

fn vidur_all_reduce(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let [gpus, per_node] = [row.number("num_workers")?, row.number("devices_per_node")?];
    // Groups over several nodes go over another network.
    if gpus <= per_node {
        let kernel = Kernel::AllReduce(AllReduce {
            bytes: row.number("size")?,
            gpus,
        });
        let seconds = row.seconds("time_stats.all_reduce.median", MS)?;
        out.kernel(row.gpu_of_file()?, "", kernel, seconds);
    }
    Ok(())
}

/// Prefill chunks on cached prefixes, and decode steps; rows that mix both in one launch are left out.
fn suffix_attention(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let [new, cached] = [row.number("prefill_chunk")?, row.number("kv_prefill")?];
    let [sequences, context] = [row.number("n_decode")?, row.number("kv_decode")?];
    let heads = |batch| file_heads(row, batch);
    let kernel = match (new > 0.0, sequences > 0.0) {
        (true, false) => heads(1.0)?.prefill(new, cached),
        (false, true) => heads(sequences)?.decode(context),
        _ => return Ok(()),
    };
    let seconds = row.seconds("time_us", US)?;
    out.kernel(row.gpu_of_file()?, &row.file.model, kernel, seconds);
    Ok(())
}

/// The heads of the model that the file's name names, on one GPU.
fn file_heads(row: &Row, batch: f64) -> Result<Heads, RooflineError> {
    let group = file_layer(row)?;
    match group.mixer {
        Mixer::Attention {
            heads,
            kv_heads,
            head_dim,
            ..
        } => {
            let [heads, kv_heads, head_dim] = [heads, kv_heads, head_dim].map(f64::from);
            Ok(Heads {
                batch,
                heads,
                kv_heads,
                head_dim,
            })
        }
        _ => Err(RooflineError::invalid(
            row.place,
            "the model has no plain attention",
        )),
    }
}

fn file_layer(row: &Row) -> Result<LayerGroup, RooflineError> {
    let model = file_model(row)?;
    let first = model.groups.first().cloned();
    first.ok_or_else(|| RooflineError::invalid(row.place, "the model has no layers"))
}

/// Published names of the models of the published files.
fn file_model(row: &Row) -> Result<Model, RooflineError> {
    match row.file.model.as_str() {
        "Llama-3.1-8B" => Model::named("llama-3-8b"),
        "Llama-3.1-70B" => Model::named("llama-3-70b"),
        other => {
            let problem =
                format!("the model \"{other}\" in the file's name is not one with a known shape");
            Err(RooflineError::invalid(row.place, problem))
        }
    }
}

/// `kv_cache_size` counts the chunk's own tokens too: times step where it passes a multiple of 64.
fn chunk_attention(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let gpus = row.number("num_tensor_parallel_workers")?;
    let all_heads = row.number("n_q_head")?;
    let heads = Heads {
        batch: row.number("batch_size")?,
        heads: all_heads / gpus,
        kv_heads: row.number("n_kv_head")? / gpus,
        head_dim: row.number("n_embd")? / all_heads,
    };
    let [new, context] = [
        row.number("prefill_chunk_size")?,
        row.number("kv_cache_size")?,
    ];
    if context < new {
        return Err(row.error(
            "kv_cache_size",
            "is smaller than the chunk, which it includes",
        ));
    }
    let seconds = row.seconds("time_stats.attn_prefill.median", MS)?;
    out.kernel(
        row.gpu_of_file()?,
        &row.file.model,
        heads.prefill(new, context - new),
        seconds,
    );
    Ok(())
}

fn dense(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    layer_row(
        row,
        row.text("layer")?,
        row.number("tokens")?,
        row.seconds("time_us", US)?,
        out,
    )
}

fn dense_ns(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let seconds = row.seconds("latency(ns)", 1e-9)?;
    layer_row(
        row,
        row.text("layer_name")?,
        row.number("input")?,
        seconds,
        out,
    )
}

/// Operators of a layer by name. Norms and rotary embedding are left out: one file runs them unfused.
fn layer_row(
    row: &Row,
    layer: &str,
    tokens: f64,
    seconds: f64,
    out: &mut Timed,
) -> Result<(), RooflineError> {
    let hidden = f64::from(file_model(row)?.hidden);
    let heads = file_heads(row, 1.0)?;
    let [queries, keys] = [heads.heads, heads.kv_heads].map(|h| h * heads.head_dim);
    let Mlp::Dense { intermediate, .. } = file_layer(row)?.mlp else {
        return Err(RooflineError::invalid(
            row.place,
            "the model has no dense feed-forward layers",
        ));
    };
    let inner = f64::from(intermediate);
    let product = |columns, inner| Kernel::Gemm(Gemm::fp16(tokens, columns, inner));
    let kernel = match layer {
        "qkv_proj" => product(queries + 2.0 * keys, hidden),
        "q_proj" => product(queries, hidden),
        "k_proj" | "v_proj" => product(keys, hidden),
        "o_proj" => product(hidden, queries),
        "gate_up_proj" => product(2.0 * inner, hidden),
        "gate_proj" | "up_proj" => product(inner, hidden),
        "down_proj" => product(hidden, inner),
        "act_fn" => {
            let bytes = ACTIVATION_BYTES * tokens * 3.0 * inner;
            Kernel::Stream(Stream { bytes, flops: 0.0 })
        }
        _ => return Ok(()),
    };
    out.kernel(row.gpu_of_file()?, &row.file.model, kernel, seconds);
    Ok(())
}

/// Whole prefills of Llama-2-70B. Batches of 64 on 2 GPUs took an eighth of those of 32: they cannot have run whole.
fn splitwise(row: &Row, out: &mut Timed) -> Result<(), RooflineError> {
    let count = |column: &str| row.number(column).map(|n| n as u32);
    let [gpus, batch, prompt_tokens] = [
        count("tensor_parallel")?,
        count("batch_size")?,
        count("prompt_size")?,
    ];
    if gpus == 2 && batch == 64 {
        return Ok(());
    }
    let observed = Observed::Prefill {
        gpus,
        batch,
        prompt_tokens,
    };
    let model = match row.text("model")? {
        "llama2-70b" => "llama-2-70b",
        other => return Err(row.error("model", &format!("is \"{other}\", not llama2-70b"))),
    };
    out.push(
        &row.gpu_in("hardware")?,
        model,
        observed,
        row.seconds("prompt_time", MS)?,
    );
    Ok(())
}
