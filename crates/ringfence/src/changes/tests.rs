//! Both looks at small projects.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn project() -> (tempfile::TempDir, AbsPath) {
    let guard = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(guard.path()).unwrap();
    let project = AbsPath::parse(root).unwrap().below("project");
    std::fs::create_dir(project.as_path()).unwrap();
    (guard, project)
}

fn write(project: &AbsPath, path: &str, text: &str) {
    let path = project.below(path);
    std::fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
    std::fs::write(path.as_path(), text).unwrap();
}

fn git_dir(project: &AbsPath, path: &str) {
    write(project, &format!("{path}/HEAD"), "");
    for part in ["objects", "refs"] {
        std::fs::create_dir_all(project.below(path).below(part).as_path()).unwrap();
    }
}

#[test]
fn nothing_is_said_of_what_stayed() {
    let (_guard, project) = project();
    write(&project, "Makefile", "all:\n");
    write(&project, "src/main.rs", "");
    git_dir(&project, "nested/.git");
    let before = Before::look(&Search::new(project.clone()));
    write(&project, "src/main.rs", "fn main() {}");
    let changes = before.compare();
    assert!(changes.is_empty(), "{changes:?}");
}

#[test]
fn everything_that_runs_later_is_told() {
    let (_guard, project) = project();
    write(&project, "Makefile", "all:\n");
    write(&project, "package.json", "{}");
    git_dir(&project, "old/.git");
    std::fs::write(project.parent().unwrap().below("outside").as_path(), "").unwrap();
    let outside = project.parent().unwrap().below("outside");
    std::fs::hard_link(outside.as_path(), project.below("link").as_path()).unwrap();
    write(&project, "a", "");
    std::fs::hard_link(project.below("a").as_path(), project.below("b").as_path()).unwrap();
    let before = Before::look(&Search::new(project.clone()));

    write(&project, "Makefile", "all: evil\n");
    std::fs::remove_file(project.below("package.json").as_path()).unwrap();
    write(&project, "build.rs", "");
    git_dir(&project, "new/.git");
    write(&project, "new/.git/config", "[core]\n\tfsmonitor = x\n");
    write(&project, "new/.git/hooks/pre-commit", "");
    write(&project, "new/.git/hooks/x.sample", "");
    git_dir(&project, "docs/bare");
    std::fs::rename(
        project.below("old").as_path(),
        project.below("away").as_path(),
    )
    .unwrap();
    git_dir(&project, "old/.git");
    write(&project, "program", "");
    let mode = std::fs::Permissions::from_mode(0o2755);
    std::fs::set_permissions(project.below("program").as_path(), mode).unwrap();

    let changes = before.compare();
    let files: Vec<&str> = changes.files.iter().map(|file| &file.path[..]).collect();
    assert_eq!(files, ["Makefile", "build.rs", "package.json"]);
    assert!(changes.files[1].before.is_none() && changes.files[2].after.is_none());
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(changes.files[1].after.as_deref(), Some(empty));
    let made: Vec<&str> = changes
        .repositories
        .iter()
        .map(|made| &made.path[..])
        .collect();
    assert_eq!(made, ["away/.git", "docs/bare", "new/.git", "old/.git"]);
    assert_eq!(
        changes.repositories[2].knobs,
        ["core.fsmonitor", "hooks/pre-commit"]
    );
    assert_eq!(changes.set_id.paths, ["program"]);
    assert_eq!(changes.hard_links.paths, ["link"]);
}

#[test]
fn what_was_planted_neither_stops_nor_leads_the_look_away() {
    let (_guard, project) = project();
    let before = Before::look(&Search::new(project.clone()));
    let outside = project.parent().unwrap();
    std::fs::write(outside.below("secret").as_path(), "x").unwrap();
    let link = |to: &str, at: &str| {
        std::os::unix::fs::symlink(to, project.below(at).as_path()).unwrap();
    };
    link("../secret", "Makefile");
    link("..", "up");
    link(".", "loop");
    for pipe in ["build.rs", "package.json"] {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            project.below(pipe).as_path(),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
    }
    let started = std::time::Instant::now();
    let changes = before.compare();
    let told: Vec<_> = changes
        .files
        .iter()
        .map(|file| file.after.as_deref())
        .collect();
    assert_eq!(
        told,
        [
            Some("a link to ../secret"),
            Some("not a file"),
            Some("not a file")
        ]
    );
    assert!(changes.repositories.is_empty() && changes.complete);
    // What hangs, hangs for ever.
    assert!(started.elapsed() < std::time::Duration::from_mins(1));
}

/// What cannot be looked into was not compared, unless the session could not look into it either.
#[test]
fn a_directory_that_cannot_be_opened_is_not_passed_over() {
    let (_guard, project) = project();
    let search = Search::new(project.clone());
    let before = Before::look(&search);
    // Deeper than a path is long.
    let mut at = reading::directory(&project).unwrap();
    let name = "x".repeat(250);
    for _ in 0..20 {
        rustix::fs::mkdirat(&at, &name, Mode::from_raw_mode(0o700)).unwrap();
        at = open_below(&at, Path::new(&name)).unwrap();
    }
    assert!(!before.compare().complete);
    assert!(Before::look(&search).compare().complete);
}

#[test]
fn a_project_that_becomes_a_repository_has_a_name() {
    let (_guard, project) = project();
    let before = Before::look(&Search::new(project.clone()));
    git_dir(&project, ".");
    let made = before.compare().repositories;
    let made: Vec<(&str, Shape)> = made
        .iter()
        .map(|made| (made.path.as_str(), made.shape))
        .collect();
    assert_eq!(made, [(".", Shape::Bare)]);
}

/// What git would obey as a repository, however it is put together, and what nobody could read of it.
#[test]
fn repositories_of_every_kind_are_told() {
    let (_guard, project) = project();
    let before = Before::look(&Search::new(project.clone()));
    git_dir(&project, "long");
    let line = format!("#{}\n", "x".repeat(1 << 20));
    write(
        &project,
        "long/config",
        &(line + "[core]\n\tfsmonitor = x\n"),
    );
    write(&project, "shared/HEAD", "");
    write(&project, "shared/commondir", "../y\n");
    for part in ["objects", "refs"] {
        write(&project, &format!("files/{part}"), "");
        let link = project.below("links").below(part);
        write(&project, "links/HEAD", "");
        std::os::unix::fs::symlink("../y", link.as_path()).unwrap();
    }
    write(&project, "files/HEAD", "");
    let made = before.compare().repositories;
    let made: Vec<String> = made
        .iter()
        .map(|made| format!("{} {:?}", made.path, made.knobs))
        .collect();
    let expected = [
        "files []",
        "links []",
        r#"long ["config (cannot be read)"]"#,
        r#"shared ["commondir"]"#,
    ];
    assert_eq!(made, expected);
}

#[test]
fn an_index_that_was_made_along_with_its_repository_is_looked_at() {
    let (_guard, project) = project();
    let before = Before::look(&Search::new(project.clone()));
    // Of the same length, so that nothing else in it has to be changed.
    let script = "git init -q new && cd new && mkdir -p dgit/hooks && touch dgit/hooks/x &&
        git add . && sed -i s,dgit/,.git/, .git/index";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-ec", script]).current_dir(project.as_path());
    assert!(shell.status().unwrap().success());
    let changes = before.compare();
    let knobs = &changes.repositories[0].knobs;
    assert!(
        knobs.contains(&"index: .git/hooks/x".to_owned()),
        "{knobs:?}"
    );
}
