//! The JSON Schema of a settings file, made from the same description that reads it.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::keys::Keys;

/// A JSON Schema (draft 2020-12) that editors can complete and check settings with.
pub fn schema() -> Value {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Keys>();
    let mut root = Value::from(schema);
    // What an operating system changes has the shape of the whole, without further changes in it.
    let mut part = root.clone();
    if let Some(part) = part.as_object_mut() {
        part.remove("$schema");
        part.remove("$defs");
        part.insert("title".into(), json!("Keys on one operating system"));
    }
    let definitions = root.as_object_mut().and_then(|root| {
        root.entry("$defs")
            .or_insert_with(|| Value::Object(Map::new()))
            .as_object_mut()
    });
    if let Some(definitions) = definitions {
        definitions.insert("OnOneSystem".into(), part);
    }
    if let Some(root) = root.as_object_mut() {
        root.insert("title".into(), json!("ringfence settings"));
        root.insert("allowComments".into(), json!(true));
        root.insert("allowTrailingCommas".into(), json!(true));
    }
    if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert("$schema".into(), json!({ "type": "string" }));
        for system in ["linux", "macos", "windows"] {
            properties.insert(
                system.into(),
                json!({
                    "description": format!("What is different on {system}."),
                    "$ref": "#/$defs/OnOneSystem",
                }),
            );
        }
    }
    root
}
