//! Records as CSV.

use serde::Serialize;
use serde_json::Value;

/// Records of one shape as CSV: a header, then one line per record. Nested fields are joined by a point; null is empty.
pub fn csv<R: Serialize>(records: &[R]) -> String {
    let rows: Vec<_> = records.iter().map(flat).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let write = |writer: &mut csv::Writer<Vec<u8>>, fields: Vec<&str>| {
        writer
            .write_record(fields)
            .expect("rows of one shape, written to memory");
    };
    if let Some(first) = rows.first() {
        write(
            &mut writer,
            first.iter().map(|(name, _)| name.as_str()).collect(),
        );
    }
    for row in &rows {
        write(
            &mut writer,
            row.iter().map(|(_, value)| value.as_str()).collect(),
        );
    }
    let bytes = writer.into_inner().expect("written to memory");
    String::from_utf8(bytes).expect("made of strings")
}

fn flat(record: &impl Serialize) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    let value = serde_json::to_value(record).expect("records have string keys only");
    flatten("", &value, &mut fields);
    fields
}

fn flatten(name: &str, value: &Value, fields: &mut Vec<(String, String)>) {
    let text = match value {
        Value::Object(object) => {
            for (key, value) in object {
                let name = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                flatten(&name, value, fields);
            }
            return;
        }
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    fields.push((name.to_owned(), text));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_fields_become_columns() {
        let records = [
            json!({"a": 1, "b": {"c": 0.5, "d": null}}),
            json!({"a": 2, "b": {"c": "x,y", "d": 3}}),
        ];
        assert_eq!(csv(&records), "a,b.c,b.d\n1,0.5,\n2,\"x,y\",3\n");
        assert_eq!(csv::<Value>(&[]), "");
    }
}
