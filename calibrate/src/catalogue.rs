//! KV bytes per token from a catalogue of model geometries (the format of kvcache-simulator's `models.yaml`).

use std::path::Path;

use roofline::{Precision, RooflineError};
use serde::Deserialize;

/// One model of a catalogue.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Geometry {
    /// Its name there.
    pub id: String,
    /// The name of the rule by which its KV is counted.
    pub formula: String,
    fields: GeometryFields,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct GeometryFields {
    num_hidden_layers: Option<u64>,
    num_key_value_heads: Option<u64>,
    head_dim: Option<u64>,
    kv_lora_rank: Option<u64>,
    qk_rope_head_dim: Option<u64>,
}

#[derive(Deserialize)]
struct Catalogue {
    models: Vec<Geometry>,
}

/// Reads a catalogue.
///
/// # Errors
/// [`RooflineError::Read`], or [`RooflineError::Invalid`] if it is no YAML with `models`.
pub fn read_catalogue(path: &Path) -> Result<Vec<Geometry>, RooflineError> {
    let text = std::fs::read_to_string(path).map_err(|source| RooflineError::Read {
        path: path.to_owned(),
        source,
    })?;
    let catalogue: Catalogue = serde_norway::from_str(&text)
        .map_err(|e| RooflineError::invalid(path.display().to_string(), e.to_string()))?;
    Ok(catalogue.models)
}

impl Geometry {
    /// Bytes of KV per token: `2 * layers * kv_heads * head_dim` elements for `standard_gqa`, `layers * (kv_lora_rank +
    /// qk_rope_head_dim)` for `mla`.
    ///
    /// # Errors
    /// [`RooflineError::Invalid`] for any other formula: the catalogue names them without saying what they are.
    pub fn kv_bytes_per_token(&self, precision: Precision) -> Result<u64, RooflineError> {
        let fields = &self.fields;
        let elements = match self.formula.as_str() {
            "standard_gqa" => {
                let heads = self.need(fields.num_key_value_heads, "num_key_value_heads")?;
                2 * heads * self.need(fields.head_dim, "head_dim")?
            }
            "mla" => {
                let latent = self.need(fields.kv_lora_rank, "kv_lora_rank")?;
                latent + self.need(fields.qk_rope_head_dim, "qk_rope_head_dim")?
            }
            other => {
                let problem = format!(
                    "its formula \"{other}\" is not defined in the catalogue; standard_gqa and mla are"
                );
                return Err(RooflineError::invalid(&self.id, problem));
            }
        };
        let layers = self.need(fields.num_hidden_layers, "num_hidden_layers")?;
        Ok(((layers * elements) as f64 * precision.bytes()) as u64)
    }

    fn need(&self, value: Option<u64>, key: &str) -> Result<u64, RooflineError> {
        value.ok_or_else(|| {
            let problem = format!("{key} is missing, which {} needs", self.formula);
            RooflineError::invalid(&self.id, problem)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_published_catalogue() {
        let path = Path::new("../../shared/data/model-kv-geometry/models.yaml");
        if !path.exists() {
            println!("skipped: no ../shared");
            return;
        }
        let models = read_catalogue(path).unwrap();
        let (known, refused): (Vec<_>, Vec<_>) = models
            .iter()
            .map(|m| (m, m.kv_bytes_per_token(Precision::Fp16)))
            .partition(|(_, bytes)| bytes.is_ok());
        let count = |formula| known.iter().filter(|(m, _)| m.formula == formula).count();
        assert_eq!(
            (count("standard_gqa"), count("mla"), refused.len()),
            (22, 5, 35)
        );
        for (model, error) in refused {
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains(&model.id) && error.contains(&model.formula),
                "{error}"
            );
        }
        let bytes: BTreeMap<&str, u64> = known
            .into_iter()
            .map(|(m, bytes)| (m.id.as_str(), bytes.unwrap()))
            .collect();
        // By hand: 94 layers of 4 heads of 128, 64 of 8, 48 of 4; 61 layers of 512 + 64.
        assert_eq!(bytes["qwen3-235b-a22b"], 192_512);
        assert_eq!(bytes["qwen3-32b"], 262_144);
        assert_eq!(bytes["qwen3-30b-a3b"], 98_304);
        assert_eq!(bytes["deepseek-v3"], 70_272);
    }
}
