//! The functions of this crate that read files.

use std::path::Path;

use crate::calibration::Calibration;
use crate::error::RooflineError;
use crate::gpu::Gpu;
use crate::hf::model_of_config;
use crate::model::Model;

/// The model of a Hugging Face `config.json` if `name` is the path of a JSON file, else the preset of that name.
///
/// # Errors
/// [`RooflineError::UnknownName`] lists the presets; [`RooflineError::Read`] and [`RooflineError::Invalid`] for a file.
pub fn read_model(name: &str) -> Result<Model, RooflineError> {
    let path = Path::new(name);
    let extension = path.extension();
    if extension.is_some_and(|e| e.eq_ignore_ascii_case("json")) {
        return model_of_config(name, &read(path)?);
    }
    Model::named(name).map_err(|mut error| {
        if let RooflineError::UnknownName(unknown) = &mut error {
            let file = "or the path of a Hugging Face config.json";
            unknown.valid.push(file.to_owned());
        }
        error
    })
}

/// The GPU of a TOML file in the format of `data/gpus` if `name` is the path of one, else the preset of that name. From a file it is
/// named by the path: two files that call themselves the same must not be taken for one another.
///
/// # Errors
/// [`RooflineError::UnknownName`] lists the presets; [`RooflineError::Read`] and [`RooflineError::Invalid`] for a file.
pub fn read_gpu(name: &str) -> Result<Gpu, RooflineError> {
    if !is_toml(name) {
        return Gpu::named(name);
    }
    let mut gpu = Gpu::from_toml(name, &read(Path::new(name))?)?;
    name.clone_into(&mut gpu.name);
    Ok(gpu)
}

/// The calibration of a TOML file, as `roofline fit` writes it, if `name` is the path of one, else the compiled-in one of that name. From
/// a file it is named by the path.
///
/// # Errors
/// [`RooflineError::UnknownName`] lists the compiled-in ones; [`RooflineError::Read`] and [`RooflineError::Invalid`] for a file.
pub fn read_calibration(name: &str) -> Result<Calibration, RooflineError> {
    if !is_toml(name) {
        return Calibration::named(name);
    }
    let mut calibration = Calibration::from_toml(name, &read(Path::new(name))?)?;
    name.clone_into(&mut calibration.name);
    Ok(calibration)
}

fn is_toml(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|e| e.eq_ignore_ascii_case("toml"))
}

fn read(path: &Path) -> Result<String, RooflineError> {
    std::fs::read_to_string(path).map_err(|source| RooflineError::Read {
        path: path.to_owned(),
        source,
    })
}
