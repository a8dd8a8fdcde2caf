//! Which entries are told; `tests/escapes/staged_paths.rs` has the rest, with real git.

use super::*;
use ringfence_core::policy::{Content, FileRule};

#[test]
fn protected_names_are_told_by_every_spelling_and_from_above() {
    let guard = tempfile::tempdir().unwrap();
    let project = AbsPath::parse(std::fs::canonicalize(guard.path()).unwrap()).unwrap();
    let rule = |path: &str, access, of| FileRule {
        path: project.below(path),
        access,
        origin: Origin::BuiltIn(of),
        found: Found::Absent,
        content: Content::Host,
    };
    let all = [
        rule("", Access::Write, BuiltIn::Project),
        rule("docs", Access::Read, BuiltIn::Project),
        rule(".vscode", Access::Read, BuiltIn::Protected),
        rule(".vscode/settings.json", Access::Write, BuiltIn::Protected),
        rule(".config/mise", Access::Read, BuiltIn::Protected),
    ];
    let rules = FileRules::new(
        Access::Read,
        Origin::BuiltIn(BuiltIn::Project),
        all.to_vec(),
    );
    let held = |guarded: &Guarded<'_>, path: &str, mode| {
        let entry = Entry {
            path: path.as_bytes(),
            mode,
            object: &[0; 20],
        };
        guarded.holds(&entry)
    };
    let own = Guarded::new(&rules, Some(project.clone()));
    for path in [
        ".vscode",
        ".vscode/tasks.json",
        ".VSCode/x",
        ".config/mise",
        ".VSCODE/settings.json",
    ] {
        assert!(held(&own, path, 0o100_644), "{path}");
    }
    for path in [
        ".vscodes",
        ".vscode/settings.json",
        ".config/misery",
        "docs/x",
        "a/.vscode/tasks.json",
    ] {
        assert!(!held(&own, path, 0o100_644), "{path}");
    }
    // A link or another repository in the place of a directory has what is behind it, too.
    assert!(!held(&own, ".config", 0o100_644));
    assert!(held(&own, ".config", index::LINK) && held(&own, ".config", index::COMMIT));
    // Of a repository around the project both are.
    let around = Guarded::new(&rules, project.parent());
    let name = project.as_path().file_name().unwrap().to_str().unwrap();
    assert!(held(
        &around,
        &format!("{name}/.vscode/tasks.json"),
        0o100_644
    ));
    assert!(held(&around, ".envrc", 0o100_644) && !held(&around, name, 0o100_644));
    // Where the session can write nothing, names are those of the list.
    let elsewhere = AbsPath::parse("/nowhere").unwrap();
    for tree in [Some(elsewhere), None] {
        let guarded = Guarded::new(&rules, tree);
        assert!(held(&guarded, ".envrc", 0o100_644) && !held(&guarded, "a", 0o100_644));
    }
}
