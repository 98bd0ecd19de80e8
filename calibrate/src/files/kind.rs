//! What the readers of all kinds of measurement files use: a line's cells, what the file's name says, and where
//! measurements go.

use roofline::{Gpu, Kernel, Model, RooflineError};

use crate::measurement::{Measurement, TimedWork};

/// Seconds of a millisecond.
pub(crate) const MS: f64 = 1e-3;
/// Seconds of a microsecond.
pub(crate) const US: f64 = 1e-6;
/// Seconds of a nanosecond.
pub(crate) const NS: f64 = 1e-9;

/// A kind of measurement file.
pub(crate) struct FileKind {
    /// What its measurements are called in tables.
    pub(crate) source: &'static str,
    /// Columns that tell it from the others.
    pub(crate) columns: &'static [&'static str],
    /// Turns a line into measurements; lines that measure something else are left out.
    pub(crate) read: fn(&CsvLine, &mut Found) -> Result<(), RooflineError>,
}

/// The measurements of a file so far.
pub(crate) struct Found {
    pub(crate) source: &'static str,
    pub(crate) measurements: Vec<Measurement>,
}

impl Found {
    pub(crate) fn kernel(&mut self, gpu: &str, model: &str, kernel: Kernel, seconds: f64) {
        self.push(gpu, model, TimedWork::Kernel(kernel), seconds);
    }

    /// A kernel that has a name: others of its shape are other kernels.
    pub(crate) fn labelled(
        &mut self,
        gpu: &str,
        model: &str,
        (label, kernel): (&str, Kernel),
        seconds: f64,
    ) {
        self.kernel(gpu, model, kernel, seconds);
        if let Some(last) = self.measurements.last_mut() {
            label.clone_into(&mut last.label);
        }
    }

    pub(crate) fn push(&mut self, gpu: &str, model: &str, work: TimedWork, seconds: f64) {
        self.measurements.push(Measurement {
            gpu: gpu.to_owned(),
            source: self.source,
            model: model.to_owned(),
            work,
            label: String::new(),
            seconds,
        });
    }
}

/// Names of the GPUs that a device can be.
pub(crate) struct GpuNames(Vec<String>);

impl GpuNames {
    pub(crate) fn presets() -> Result<Self, RooflineError> {
        let names = Gpu::presets()?.into_iter().map(|gpu| gpu.name);
        Ok(Self(names.filter(|n| !n.starts_with("course")).collect()))
    }

    /// The preset that a driver's device name stands for: one of its words, or for names of several words all of them
    /// in a row.
    fn of_device(&self, device: &str) -> Option<&str> {
        let device = device.to_lowercase();
        let words: Vec<&str> = device
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|w| !w.is_empty())
            .collect();
        let joined = words.concat();
        let found = self.0.iter().find(|name| {
            let plain = name.replace('-', "");
            words.contains(&plain.as_str()) || (name.contains('-') && joined.contains(&plain))
        });
        found.map(String::as_str)
    }
}

/// What some published files say nowhere but in their name: `GPU_MODEL_...`.
pub(crate) struct FileName {
    gpu: Option<String>,
    /// The model, as it is called there.
    pub(crate) model: String,
    /// The preset of that model, where it is known by the name.
    preset: Option<Model>,
}

impl FileName {
    pub(crate) fn parse(name: &str, gpus: &GpuNames) -> Result<Self, RooflineError> {
        let mut parts = name.split('_').filter(|part| *part != "network");
        let gpu = parts.next().and_then(|device| gpus.of_device(device));
        let model = parts.next().unwrap_or_default().to_owned();
        let preset = match model.as_str() {
            "Llama-3.1-8B" => Some(Model::named("llama-3-8b")?),
            "Llama-3.1-70B" => Some(Model::named("llama-3-70b")?),
            _ => None,
        };
        Ok(Self {
            gpu: gpu.map(str::to_owned),
            model,
            preset,
        })
    }
}

/// One line of a file.
pub(crate) struct CsvLine<'a> {
    pub(crate) place: &'a str,
    pub(crate) header: &'a csv::StringRecord,
    pub(crate) record: &'a csv::StringRecord,
    pub(crate) file_name: &'a FileName,
    pub(crate) gpus: &'a GpuNames,
}

impl CsvLine<'_> {
    pub(crate) fn text(&self, column: &str) -> Result<&str, RooflineError> {
        let index = self.header.iter().position(|h| h == column);
        let cell = index.and_then(|i| self.record.get(i));
        cell.ok_or_else(|| self.error(column, "is missing"))
    }

    /// A number from 0 up.
    pub(crate) fn number(&self, column: &str) -> Result<f64, RooflineError> {
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

    /// A time above 0, in a column whose unit is that many seconds.
    pub(crate) fn seconds(&self, column: &str, unit_seconds: f64) -> Result<f64, RooflineError> {
        let value = self.number(column)? * unit_seconds;
        if value > 0.0 {
            Ok(value)
        } else {
            Err(self.error(column, "is not a time above 0"))
        }
    }

    /// The GPU that a column names as its driver does.
    pub(crate) fn gpu_in(&self, column: &str) -> Result<&str, RooflineError> {
        let device = self.text(column)?;
        let gpu = self.gpus.of_device(device);
        gpu.ok_or_else(|| self.error(column, &format!("\"{device}\" is none of the GPU presets")))
    }

    /// The GPU that the file's name starts with.
    pub(crate) fn gpu_of_file(&self) -> Result<&str, RooflineError> {
        let gpu = self.file_name.gpu.as_deref();
        gpu.ok_or_else(|| {
            self.file_error(
                "the file's name does not start with one of the GPU presets, and nothing in it does",
            )
        })
    }

    /// The model that the file's name names, where its shape is needed.
    pub(crate) fn model_of_file(&self) -> Result<&Model, RooflineError> {
        let preset = self.file_name.preset.as_ref();
        preset.ok_or_else(|| {
            let name = &self.file_name.model;
            self.file_error(&format!(
                "the model \"{name}\" in the file's name is not one with a known shape"
            ))
        })
    }

    pub(crate) fn error(&self, column: &str, problem: &str) -> RooflineError {
        let line = self.record.position().map_or(0, csv::Position::line);
        RooflineError::invalid(
            format!("{}, line {line}", self.place),
            format!("column \"{column}\" {problem}"),
        )
    }

    pub(crate) fn file_error(&self, problem: &str) -> RooflineError {
        RooflineError::invalid(self.place, problem)
    }
}
