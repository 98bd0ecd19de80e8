//! The functions of this crate that read files.

use std::path::Path;

use crate::calibration::Calibration;
use crate::error::RooflineError;
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

/// The calibration that a TOML file holds.
///
/// # Errors
/// [`RooflineError::Read`] or [`RooflineError::Invalid`], which names the key.
pub fn read_calibration(path: &Path) -> Result<Calibration, RooflineError> {
    Calibration::from_toml(&path.display().to_string(), &read(path)?)
}

fn read(path: &Path) -> Result<String, RooflineError> {
    std::fs::read_to_string(path).map_err(|source| RooflineError::Read {
        path: path.to_owned(),
        source,
    })
}
