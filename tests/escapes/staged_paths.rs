//! 31, 43: entries of an index that git never makes, and staged files that run later. Whoever may stage
//! anything writes the index, and the host's git checks out whatever it says.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use ringfence_testkit::{Done, World, binaries, for_each_user, not_run};

use super::git_metadata::{host, inside, level};

/// Adds entries to an index without git: `PYTHON INDEX BLOB PATH...`, in the version that `VERSION`
/// says.
const ADD: &str = r#"
import hashlib, os, struct, sys
index, blob, paths = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3:]
version = int(os.environ.get("VERSION", "2"))
digest = hashlib.sha256 if len(blob) == 32 else hashlib.sha1
out = struct.pack(">4sII", b"DIRC", version, len(paths))
previous = b""
for path in sorted(path.encode() for path in paths):
    entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100755, 0, 0, 0) + blob
    entry += struct.pack(">H", min(len(path), 0xfff))
    if version == 4:
        assert len(previous) < 128
        entry += bytes([len(previous)]) + path + b"\0"
    else:
        entry += path
        entry += b"\0" * (8 - len(entry) % 8)
    out += entry
    previous = path
temporary = index + ".new"
open(temporary, "wb").write(out + digest(out).digest())
os.rename(temporary, index)
"#;

const PYTHON: &str = "/usr/bin/python3";

/// A repository with a submodule and a linked working tree, a program that leaves the canary, and the
/// script that adds entries.
fn repository(world: &World, format: &str) -> PathBuf {
    let canary = world.outside("ran");
    let script = format!(
        "find . ../library ../tree ../evil -mindepth 1 -delete 2>/dev/null || true
         git config --global user.email a@b.c; git config --global user.name n
         git config --global protocol.file.allow always
         git init -q --object-format={format} -b main ../library
         git -C ../library commit -q --allow-empty -m l
         git init -q --object-format={format} -b main .; echo a > a; git add a; git commit -qm one
         mkdir -p .vscode; echo tasks > .vscode/tasks.json; git add .; git commit -qm two
         git submodule --quiet add ../library sub; git commit -qm sub; git worktree add -q ../tree
         printf '#!/bin/sh\\ntouch {}\\n' > evil; cat > add.py <<'END'\n{ADD}\nEND",
        canary.display()
    );
    let made = ["library", "tree"].map(|name| world.project("../").join(name));
    for directory in made {
        let _ = fs::remove_dir_all(directory);
    }
    host(world, &world.project(""), &script);
    let _ = fs::remove_file(&canary);
    canary
}

/// Says what the supervisor found, one line for each index.
fn told_of(done: &Done) -> Vec<&str> {
    let lines = done.stderr.lines();
    lines
        .filter_map(|line| line.strip_prefix("confine: index "))
        .collect()
}

fn add(index: &str, paths: &str) -> String {
    format!("{PYTHON} add.py {index} $(git hash-object -w evil) {paths}")
}

const CHECKOUT: &str = "{ git checkout .; git restore .; git checkout-index -a -f; } \
                        >/dev/null 2>&1 || true";

#[test]
fn no_hook_comes_out_of_an_index() {
    for_each_user(binaries!(), |world| {
        if !std::path::Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, which writes an index");
        }
        for (format, version) in [("sha1", 2), ("sha1", 4), ("sha256", 2)] {
            let hook = add(".git/index", "a .git/hooks/post-checkout");
            let hook = format!("export VERSION={version}; {hook}");
            // The control: git writes the hook, and runs it.
            let canary = repository(world, format);
            host(world, &world.project(""), &hook);
            host(world, &world.project(""), CHECKOUT);
            assert!(
                canary.try_exists().unwrap(),
                "git checks what it reads: {version}"
            );
            // The same at level `full`, which is told and left.
            let canary = repository(world, format);
            let done = inside(world, &level(world, "full"), &hook);
            done.assert_status(0);
            assert!(
                told_of(&done)[0].contains("post-checkout"),
                "{}",
                done.stderr
            );
            host(world, &world.project(""), CHECKOUT);
            assert!(canary.try_exists().unwrap());

            let canary = repository(world, format);
            let done = inside(world, &level(world, "write"), &hook);
            done.assert_status(0);
            host(world, &world.project(""), CHECKOUT);
            assert!(!canary.try_exists().unwrap(), "{format} {version}");
            assert!(
                !world
                    .project(".git/hooks/post-checkout")
                    .try_exists()
                    .unwrap()
            );
            let told = told_of(&done);
            assert_eq!(told.len(), 1, "{}", done.stderr);
            assert!(
                told[0].ends_with("[\".git/hooks/post-checkout\"] [] aside 1"),
                "{told:?}"
            );
            // Nothing is lost but what was staged.
            let mended = "test -e .git/index.refused-by-ringfence; git reset -q; git checkout -q .
                git status --porcelain -uno | wc -l";
            assert_eq!(host(world, &world.project(""), mended).text(), "0");
        }
    });
}

/// Elsewhere, in other indexes, by other spellings.
#[test]
fn every_index_and_every_path_is_looked_at() {
    for_each_user(binaries!(), |world| {
        if !std::path::Path::new(PYTHON).try_exists().unwrap() {
            return not_run("python3, which writes an index");
        }
        let away = world.outside("away");
        let absolute = format!("a {}", away.display());
        for (index, paths) in [
            (".git/index", "../evil_out/x"),
            (".git/index", &absolute),
            (".git/index", "sub/.GIT/hooks/x"),
            (".git/index", "a//b"),
            (".git/modules/sub/index", ".git/config"),
            (".git/worktrees/tree/index", "../../evil"),
        ] {
            repository(world, "sha1");
            let done = inside(world, &level(world, "write"), &add(index, paths));
            done.assert_status(0);
            let told = told_of(&done);
            assert!(
                told.len() == 1 && told[0].ends_with("aside 1"),
                "{index} {paths}: {}",
                done.stderr
            );
            assert!(told[0].contains(index), "{told:?}");
            assert!(!world.project(index).try_exists().unwrap());
        }
        // Behind a closed directory, by another name, as a link, by halves.
        let evil = add("x", ".git/hooks/x");
        for plant in [
            format!("{}; chmod 0 .git", add(".git/index", ".git/hooks/x")),
            "ln .git/index .git/second".to_owned(),
            format!(
                "{evil}; git update-index --split-index; for i in .git/sharedindex.*; do mv x $i; done"
            ),
            format!("{evil}; head -c 70 x > .git/index"),
        ] {
            repository(world, "sha1");
            let done = inside(world, &level(world, "write"), &plant);
            let told = told_of(&done);
            assert!(
                told.len() == 1 && !told[0].ends_with("aside 0"),
                "{plant}: {}",
                done.stderr
            );
            let git = world.project(".git");
            fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
            assert!(!git.join("index").try_exists().unwrap());
        }
        // What is no index, git says itself.
        repository(world, "sha1");
        let done = inside(world, &level(world, "write"), "echo x > .git/index");
        assert!(told_of(&done)[0].contains("Foreign"), "{}", done.stderr);
        assert!(world.project(".git/index").try_exists().unwrap());
    });
}

/// Git checks a path, and knows nothing of names that run later.
#[test]
fn nothing_that_runs_later_is_staged_in_silence() {
    for_each_user(binaries!(), |world| {
        let stage = "b=$(echo evil | git hash-object -w --stdin)
            git update-index --add --cacheinfo 100644,$b,.vscode/tasks.json
            git update-index --add --cacheinfo 100644,$b,.envrc
            git update-index --add --cacheinfo 120000,$b,.config
            git -C ../tree update-index --add --cacheinfo 100644,$b,.envrc; true";
        // The control: it is there after a checkout.
        repository(world, "sha1");
        host(
            world,
            &world.project(""),
            &format!("{stage}; rm -r .vscode; git checkout -q ."),
        );
        let written = fs::read_to_string(world.project(".vscode/tasks.json")).unwrap();
        assert_eq!(written, "evil\n");
        assert!(world.project(".envrc").try_exists().unwrap());

        repository(world, "sha1");
        let stage = format!(
            "{stage}; GIT_DIR=.git/worktrees/tree git update-index --add --cacheinfo 100644,$b,.envrc"
        );
        let done = inside(world, &level(world, "write"), &stage);
        let told = told_of(&done);
        assert_eq!(told.len(), 2, "{}", done.stderr);
        let all = "[] [\".config\", \".envrc\", \".vscode/tasks.json\"] aside 0";
        assert!(told[0].ends_with(all), "{told:?}");
        assert!(told[1].ends_with("[] [\".envrc\"] aside 0"), "{told:?}");

        // Whatever the shared index has may be replaced in the other one.
        repository(world, "sha1");
        host(world, &world.project(""), "git update-index --split-index");
        let replace = "b=$(echo evil | git hash-object -w --stdin)
            git update-index --cacheinfo 100644,$b,.vscode/tasks.json";
        let done = inside(world, &level(world, "write"), replace);
        let told = told_of(&done);
        assert!(
            told.len() == 1 && told[0].contains("tasks.json"),
            "{}",
            done.stderr
        );

        // Ordinary work is not told, though such names are in the index.
        repository(world, "sha1");
        let work = "set -e; echo b > a; git add a; git commit -qm three; git mv a b
            git switch -qc topic; git commit -qm four; git stash; git switch -q main
            git update-index --index-version 4; true";
        let done = inside(world, &level(world, "write"), work);
        done.assert_status(0);
        assert_eq!(told_of(&done), [""; 0], "{}", done.stderr);
    });
}
