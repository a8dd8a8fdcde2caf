//! docs/ESCAPES.md names every file here, and nothing that is not here.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn the_index_is_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let in_directory = |directory: &str| {
        let entries = fs::read_dir(root.join("tests/escapes").join(directory)).unwrap();
        let names = entries.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
        let names = names.filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()));
        names.filter(|name| name != "main" && name != "index")
    };
    let of_approvals = in_directory("approvals").map(|name| format!("approvals/{name}"));
    let here: BTreeSet<String> = in_directory(".").chain(of_approvals).collect();
    let text = fs::read_to_string(root.join("docs/ESCAPES.md")).unwrap();
    let mut named = BTreeSet::new();
    for row in text
        .lines()
        .filter(|line| line.starts_with('|') || line.starts_with('-'))
    {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        let listed = cell.split('`').skip(1).step_by(2);
        for test in listed {
            let (file, function) = test.split_once("::").unwrap_or((test, ""));
            if !here.contains(file) {
                assert!(row.starts_with('-'), "{test} is not a test here");
                continue;
            }
            named.insert(file.to_owned());
            let source = fs::read_to_string(root.join(format!("tests/escapes/{file}.rs"))).unwrap();
            let there = source.contains(&format!("fn {function}"));
            assert!(there, "{test} is not a test here");
        }
    }
    assert_eq!(named, here);
}
