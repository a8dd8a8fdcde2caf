//! Only the intended keys change.

use proptest::prelude::*;

use super::*;

const HOSTS: [&str; 3] = ["agent", "sandbox_permissions", "network_hosts"];

fn add(text: &str, entry: &str) -> String {
    edited(text, &HOSTS, &Change::Add(entry)).unwrap()
}

fn remove(text: &str, entry: &str) -> String {
    edited(text, &HOSTS, &Change::Remove(entry)).unwrap()
}

#[test]
fn a_new_file_is_written_as_people_write_it() {
    let expected = "{\n  \"agent\": {\n    \"sandbox_permissions\": {\n      \"network_hosts\": [\"a.org\"]\n    }\n  }\n}\n";
    assert_eq!(add("", "a.org"), expected);
    assert_eq!(add("// mine\n", "a.org"), format!("// mine\n{expected}"));
    let in_object = add("{}", "a.org");
    assert_eq!(in_object, expected.trim_end());
}

#[test]
fn comments_order_and_style_stay() {
    let text = r#"// Settings
{
    "git": "read", // only look
    "agent": {
        /* what it may do */
        "sandbox_permissions": {
            "network_hosts": [
                "a.org", // first
                "b.org" // last
            ], "write_paths": ["/x"]
        }
    },
}
"#;
    let added = add(text, "c.org");
    let expected = text.replace(
        "\"b.org\" // last\n",
        "\"b.org\", // last\n                \"c.org\"\n",
    );
    assert_eq!(added, expected);
    assert_eq!(remove(&added, "a.org"), expected.replace("\"a.org\",", ""));
    let path = ["agent", "sandbox_permissions", "write_paths"];
    let added = edited(text, &path, &Change::Add("/y")).unwrap();
    assert_eq!(added, text.replace("[\"/x\"]", "[\"/x\", \"/y\"]"));
    let key = ["agent", "sandbox_permissions", "allow_all_hosts"];
    let set = edited(text, &key, &Change::Set("true")).unwrap();
    assert_eq!(
        set,
        text.replace(
            "[\"/x\"]",
            "[\"/x\"],\n            \"allow_all_hosts\": true"
        )
    );
    assert_eq!(
        edited(&set, &key, &Change::Set("false")).unwrap(),
        set.replace("true", "false")
    );
}

#[test]
fn trailing_commas_and_line_ends_stay() {
    let text = "{\r\n\t\"agent\": { \"sandbox_permissions\": {\r\n\t\t\"network_hosts\": [\r\n\t\t\t\"a.org\",\r\n\t\t],\r\n\t}, },\r\n}\r\n";
    let added = add(text, "b.org");
    assert_eq!(
        added,
        text.replace("\"a.org\",\r\n", "\"a.org\",\r\n\t\t\t\"b.org\",\r\n")
    );
    assert_eq!(remove(&added, "b.org"), text);
    assert_eq!(remove(text, "absent.org"), text);
    assert_eq!(add(text, "a.org"), text);
}

#[test]
fn what_is_in_the_way_is_said() {
    for (text, expected) in [
        ("[1]", "`the file` is not an object"),
        (r#"{"agent": 1}"#, "`agent` is not an object"),
        (
            r#"{"agent": {"sandbox_permissions": {"network_hosts": "a.org"}}}"#,
            "`agent.sandbox_permissions.network_hosts` is not a list",
        ),
        ("{", "the file is not valid JSON"),
    ] {
        let error = edited(text, &HOSTS, &Change::Add("x.org")).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

/// JSON with comments, of the shape that settings have, formatted in many ways.
fn pieces() -> impl Strategy<Value = String> {
    let gap = || {
        prop_oneof![
            3 => Just(""), 3 => Just(" "), 3 => Just("\n  "), 1 => Just(" // c, [\"{}\"]\n"),
            1 => Just("/* d */"), 1 => Just("\n\t/* e\n */ "), 1 => Just("\r\n "),
        ]
    };
    let comma = prop_oneof![Just(""), Just(",")];
    let entry = prop_oneof![
        Just("a.org"),
        Just("b.org"),
        Just("*.c.org"),
        Just("x, \\\"y")
    ];
    let list = (
        proptest::collection::vec((gap(), entry, gap()), 0..5),
        comma.clone(),
        gap(),
    );
    let list = list.prop_map(|(entries, comma, tail)| {
        let mut known = Vec::new();
        let mut out = Vec::new();
        for (before, entry, after) in entries {
            if !known.contains(&entry) {
                known.push(entry);
                out.push(format!("{before}\"{entry}\"{after}"));
            }
        }
        let comma = if out.is_empty() { "" } else { comma };
        format!("[{}{comma}{tail}]", out.join(","))
    });
    let body = (gap(), gap(), list, gap(), comma, gap(), 0..6_u8);
    body.prop_map(|(a, b, list, c, comma, d, shape)| match shape {
        0 => format!("{{{a}{d}}}"),
        1 => format!("{a}{d}"),
        2 => format!("{{{a}\"agent\"{b}:{c}null{comma}{d}}}"),
        3 => format!("{{{a}\"git\"{b}:{c}\"read\"{comma}{d}}}"),
        4 => format!(
            "{{{a}\"agent\":{b}{{{c}\"sandbox_permissions\"{b}:{{{d}}}{comma}{d}}}{comma}{a}}}"
        ),
        _ => format!(
            "{{{a}\"git\": \"read\",{c}\"agent\":{b}{{\"sandbox_permissions\":{c}{{{d}\"network_hosts\":{list}{comma}{a}}}}}{comma}{d}}}"
        ),
    })
}

fn value(text: &str) -> serde_json::Value {
    fn plain(value: Value<'_>) -> serde_json::Value {
        match value {
            Value::Array(array) => array.elements.into_iter().map(plain).collect(),
            Value::BooleanLit(literal) => literal.value.into(),
            Value::NullKeyword(_) => serde_json::Value::Null,
            Value::NumberLit(literal) => literal.value.into(),
            Value::Object(object) => {
                let properties = object.properties.into_iter();
                properties
                    .map(|property| (property.name.as_str().to_owned(), plain(property.value)))
                    .collect()
            }
            Value::StringLit(literal) => literal.value.into_owned().into(),
        }
    }
    let parsed = parse_to_ast(text, &CollectOptions::default(), &strict());
    let parsed = parsed.unwrap_or_else(|error| panic!("{error} in {text:?}"));
    parsed.value.map_or(serde_json::Value::Null, plain)
}

fn comments(text: &str) -> Vec<String> {
    let (mut out, mut at) = (Vec::new(), 0);
    while let Some(next) = text[at..].chars().next() {
        if next == '"' {
            let mut escaped = false;
            let rest = text[at + 1..].char_indices();
            let mut rest = rest.skip_while(|(_, character)| {
                let ends = *character == '"' && !escaped;
                escaped = *character == '\\' && !escaped;
                !ends
            });
            at += 2 + rest.next().unwrap().0;
        } else if let Some(length) = comment(&text[at..]) {
            out.push(text[at..at + length].to_owned());
            at += length;
        } else {
            at += next.len_utf8();
        }
    }
    out
}

/// What a change must make of the whole, said without looking at text.
fn expected(mut before: serde_json::Value, change: &Change<'_>) -> serde_json::Value {
    if matches!(change, Change::Remove(_))
        && before
            .pointer("/agent/sandbox_permissions/network_hosts")
            .is_none()
    {
        return before;
    }
    if before.is_null() {
        before = serde_json::json!({});
    }
    let mut at = &mut before;
    for name in HOSTS {
        if at.is_null() {
            *at = serde_json::json!({});
        }
        at = &mut at[name];
    }
    if at.is_null() {
        *at = serde_json::json!([]);
    }
    let list = at.as_array_mut().unwrap();
    match change {
        Change::Add(entry) if !list.iter().any(|known| known == entry) => {
            list.push((*entry).into());
        }
        Change::Remove(entry) => list.retain(|known| known != entry),
        _ => {}
    }
    before
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn only_the_intended_keys_change(
        text in pieces(),
        entry in prop_oneof![Just("a.org"), Just("n.org"), Just("q\"\n")],
        adding in any::<bool>(),
    ) {
        let change = if adding { Change::Add(entry) } else { Change::Remove(entry) };
        let before = value(&text);
        let after = edited(&text, &HOSTS, &change).unwrap();
        prop_assert_eq!(value(&after), expected(before, &change), "{:?} -> {:?}", text, after);
        prop_assert_eq!(comments(&after), comments(&text), "{:?} -> {:?}", text, after);
        // Outside what the change says, every byte is where it was.
        let mut rebuilt = text.clone();
        let mut made = String::new();
        for splice in splices(&text, &HOSTS, &change).unwrap() {
            let removed = text[splice.at.clone()].replace(['"', ',', ' ', '\n', '\r', '\t'], "");
            let own = [entry, "null", ""].contains(&removed.as_str());
            prop_assert!(own, "{:?} was removed from {:?}", removed, text);
            rebuilt.replace_range(splice.at, &splice.with);
            made.push_str(&splice.with);
        }
        prop_assert_eq!(rebuilt, after);
        prop_assert!(adding || made.is_empty());
    }

    #[test]
    fn a_key_is_set_and_taken_away_and_nothing_else_changes(text in pieces()) {
        const KEY: [&str; 3] = ["agent", "sandbox_permissions", "allow_all_hosts"];
        let set = edited(&text, &KEY, &Change::Set("true")).unwrap();
        let mut expected = value(&text);
        let mut at = &mut expected;
        for name in KEY {
            if at.is_null() {
                *at = serde_json::json!({});
            }
            at = &mut at[name];
        }
        *at = true.into();
        prop_assert_eq!(value(&set), expected.clone(), "{:?} -> {:?}", text, set);
        prop_assert_eq!(comments(&set), comments(&text), "{:?} -> {:?}", text, set);
        prop_assert_eq!(edited(&set, &KEY, &Change::Set("true")).unwrap(), set.clone());

        let unset = edited(&set, &KEY, &Change::Unset).unwrap();
        let inner = expected.pointer_mut("/agent/sandbox_permissions").unwrap();
        inner.as_object_mut().unwrap().remove("allow_all_hosts");
        prop_assert_eq!(value(&unset), expected, "{:?} -> {:?}", set, unset);
        prop_assert_eq!(comments(&unset), comments(&text), "{:?} -> {:?}", set, unset);
        prop_assert_eq!(edited(&unset, &KEY, &Change::Unset).unwrap(), unset);
    }
}
