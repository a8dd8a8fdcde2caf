//! The JSON Schema of a settings file, made from the same description that reads it.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::keys::Keys;

/// Lets a section be `null`, as the reader does: then it says nothing.
fn allow_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
                for property in properties.values_mut().filter_map(Value::as_object_mut) {
                    if let Some(reference) = property.remove("$ref") {
                        let either = json!([{ "$ref": reference }, { "type": "null" }]);
                        property.insert("anyOf".into(), either);
                    }
                }
            }
            object.values_mut().for_each(allow_null);
        }
        Value::Array(array) => array.iter_mut().for_each(allow_null),
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {}
    }
}

/// A JSON Schema (draft 2020-12) that editors can complete and check settings with.
pub fn schema() -> Value {
    let schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Keys>();
    let mut root = Value::from(schema);
    allow_null(&mut root);
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
                    "anyOf": [{ "$ref": "#/$defs/OnOneSystem" }, { "type": "null" }],
                }),
            );
        }
    }
    root
}
