//! Secrets in start-up files that a command can read: said once, and never their values.

use std::fs;
use std::path::Path;

use crate::answering::there;
use crate::stage::{Stage, for_each_user};

const VALUE: &str = "hunter2hunter2";

fn every_file(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            every_file(&path, found);
        } else {
            found.push(String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
        }
    }
}

fn warned(stage: &Stage, flags: &[&str]) -> Vec<String> {
    let words = [&["run"], flags, &["--", "true"]].concat();
    let errors = stage.done(&words).errors;
    assert!(!errors.contains(VALUE), "{errors}");
    let lines = errors.lines().filter(|line| line.contains("which sets"));
    lines.map(ToOwned::to_owned).collect()
}

#[test]
fn names_are_warned_about_once() {
    for_each_user(|stage| {
        let home = stage.world.home();
        assert!(warned(stage, &[]).is_empty());
        let state = home.join(".local/state/ringfence");
        assert!(!there(&state.join("dotfiles.json")), "nothing to remember");

        let bashrc = home.join(".bashrc");
        let first = format!("export ACME_TOKEN={VALUE}\nexport EDITOR=vi\n");
        fs::write(&bashrc, &first).unwrap();
        stage.give(&bashrc);
        let told = warned(stage, &[]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("[HOME]/.bashrc, which sets ACME_TOKEN:"),
            "{told:?}"
        );
        assert!(warned(stage, &[]).is_empty(), "once");

        // Only what is new, in another file, reached through a link.
        let real = home.join("dots");
        fs::write(&real, format!("DB_PASSWORD='{VALUE}'\n")).unwrap();
        std::os::unix::fs::symlink(&real, home.join(".zshrc")).unwrap();
        fs::write(&bashrc, format!("{first}# more\n")).unwrap();
        let told = warned(stage, &[]);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("[HOME]/dots, which sets DB_PASSWORD:"),
            "{told:?}"
        );
        assert!(warned(stage, &[]).is_empty());

        let mut kept = Vec::new();
        every_file(&state, &mut kept);
        assert!(kept.len() > 1);
        assert!(kept.iter().all(|text| !text.contains(VALUE)));
    });
}

#[test]
fn files_that_cannot_be_read_need_no_warning() {
    for_each_user(|stage| {
        let profile = stage.world.home().join(".profile");
        fs::write(&profile, format!("export ACME_TOKEN={VALUE}\n")).unwrap();
        stage.give(&profile);
        let path = profile.to_str().unwrap();
        assert!(warned(stage, &["--hide", path]).is_empty());
        assert!(warned(stage, &["--preset", "strict"]).is_empty());
        assert!(warned(stage, &["--preset", "track"]).is_empty());
        assert_eq!(warned(stage, &["--preset", "terminal"]).len(), 1);
    });
}

/// Where it cannot be remembered, the command runs all the same.
#[test]
fn a_store_that_does_not_read_stops_no_command() {
    let stage = Stage::new(None);
    let home = stage.world.home();
    fs::write(home.join(".profile"), format!("A_TOKEN={VALUE}\n")).unwrap();
    assert_eq!(warned(&stage, &[]).len(), 1);
    let store = home.join(".local/state/ringfence/dotfiles.json");
    fs::write(&store, "{").unwrap();
    let ran = stage.done(&["run", "--", "true"]);
    assert!(ran.errors.contains("does not read"), "{}", ran.errors);
    assert_eq!(fs::read_to_string(&store).unwrap(), "{");
}
