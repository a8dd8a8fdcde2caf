//! 31, 35, 36, 37, 38, 42, 43, 45: git metadata at each level, with real git doing real work.
//!
//! What must not change is held against a canary: a program that git would run on the host, whose
//! running leaves a file.

use std::fs;
use std::path::{Path, PathBuf};

use ringfence_testkit::{Done, Setup, World, binaries, case, denied, for_each_user, op};

/// Runs a script on the host, as the user of this world, and wants it to end well.
#[track_caller]
pub(crate) fn host(world: &World, directory: &Path, script: &str) -> Done {
    let mut command = world.command("bash");
    command
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-euo", "pipefail", "-c", script]);
    let done = Done::of(&mut command);
    done.assert_status(0);
    done
}

pub(crate) fn level(world: &World, level: &str) -> Setup {
    world.setup_with(&format!(r#""git": "{level}""#))
}

/// Runs a script inside.
pub(crate) fn inside(world: &World, setup: &Setup, script: &str) -> Done {
    world.run(setup, ["bash", "-uo", "pipefail", "-c", script])
}

const IDENTITY: &str = "git config --global user.email a@b.c; git config --global user.name n; \
                        git config --global init.defaultBranch main; \
                        git config --global protocol.file.allow always; ";

/// A repository with two commits, a hook that is a sample only, a submodule, a linked working tree
/// beside the project, a nested repository and a bare one.
fn repository(world: &World) {
    let script = format!(
        "{IDENTITY}
        git init -q ../library; git -C ../library commit -q --allow-empty -m one
        git init -q . ; echo a > a; git add .; git commit -qm one
        git submodule --quiet add ../library sub; git commit -qm sub; echo b >> a
        git worktree add -q ../tree
        git init -q nested; git -C nested commit -q --allow-empty -m n
        git init -q --bare store.git"
    );
    host(world, &world.project(""), &script);
}

#[test]
fn hidden_shows_names_and_nothing_else() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let setup = level(world, "hidden");
        let done = inside(
            world,
            &setup,
            "for f in .git/config .git/HEAD sub/.git nested/.git/config store.git/config \
                 .git/modules/sub/config; do cat $f 2>/dev/null && echo \"read $f\"; done
             for f in .git/config .git/hooks/pre-commit nested/.git/config nested/.git/x \
                 sub/.git store.git/hooks/post-update; do
                 { echo x > $f; } 2>/dev/null && echo \"wrote $f\"; done
             for d in .git nested/.git sub store.git; do
                 mv $d moved 2>/dev/null && echo \"moved $d\"; done
             ls -d .git nested/.git sub/.git store.git; ls .git nested/.git store.git",
        );
        let seen = ".git\nnested/.git\nstore.git\nsub/.git\n.git:\n\nnested/.git:\n\nstore.git:";
        assert_eq!(done.text(), seen, "{}", done.stderr);
        host(
            world,
            &world.project(""),
            "[[ $(git status --porcelain) == *a* ]]",
        );
    });
}

#[test]
fn read_lets_people_look() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let look = "set -e; git status --short; git log --oneline | wc -l; git diff --stat; \
                    git blame a >/dev/null; git -C sub log -1 --format=%s; git -C nested log \
                    --format=%s; git submodule status | wc -l; git worktree list | wc -l";
        let before = metadata(world);
        let done = inside(world, &level(world, "read"), look);
        done.assert_status(0);
        assert!(done.text().contains(" M a"), "{}", done.text());
        for change in [
            "git commit -qam x",
            "git branch x",
            "git config a.b c",
            "git -C nested commit -q --allow-empty -m x",
            "git -C sub commit -q --allow-empty -m x",
        ] {
            assert_ne!(inside(world, &level(world, "read"), change).status, 0);
        }
        assert_eq!(metadata(world), before);
    });
}

/// All files that belong to git, with what they hold.
fn metadata(world: &World) -> String {
    let script = "find . ../library ../tree -path '*.git*' -type f ! -name index ! -name '*.lock' \
                  | sort | xargs -d '\\n' sha256sum";
    host(world, &world.project(""), script).text()
}

#[test]
fn write_lets_people_work() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let setup = level(world, "write");
        let work = "set -e
            git add a; git commit -qm two; git branch topic; git switch -q topic
            echo c >> a; git stash -q; git stash pop -q; git commit -qam three
            git tag v1; git switch -q main; git merge -q topic; git log --oneline | wc -l
            git -C sub commit -q --allow-empty -m inside
            git -C nested commit -q --allow-empty -m inside
            git --git-dir store.git fetch -q . main:fetched
            git push -q ./store.git main:pushed
            git gc -q; git fsck --no-progress 2>/dev/null; git reflog | wc -l";
        let done = inside(world, &setup, work);
        done.assert_status(0);
        assert_eq!(done.lines.first().map(|line| line.trim()), Some("4"));
        let there = "git fsck --no-progress >/dev/null; git -C sub log -1 --format=%s; git -C nested log -1 \
                     --format=%s; git --git-dir store.git branch --format='%(refname:short)'";
        let done = host(world, &world.project(""), there);
        assert_eq!(
            done.text(),
            "inside\ninside\nfetched\npushed",
            "{}",
            done.stderr
        );
    });
}

/// A linked working tree as the project: its files are elsewhere, and may be used because the
/// repository knows it.
#[test]
fn a_linked_working_tree_can_be_used() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let tree = world.path("tree");
        let settings = |level: &str| {
            let text = world.settings(&format!(r#""git": "{level}""#), &[]);
            Setup::new(&tree, &world.home("")).settings(text)
        };
        let work = "set -e; echo x > new; git add new; git commit -qm linked; git switch -qc other";
        let done = inside(world, &settings("write"), work);
        done.assert_status(0);
        let knobs = "
            for f in .git ../project/.git/config ../project/.git/hooks/pre-commit \
                ../project/.git/worktrees/tree/gitdir ../project/.git/worktrees/tree/commondir \
                ../project/.git/worktrees/tree/config.worktree ../project/.git/commondir; do
                { echo x > $f; } 2>/dev/null && echo \"wrote $f\"; done; true";
        assert_eq!(inside(world, &settings("write"), knobs).text(), "");
        for hidden in ["cat .git", "cat ../project/.git/HEAD", "git log"] {
            assert_ne!(
                inside(world, &settings("hidden"), hidden).status,
                0,
                "{hidden}"
            );
        }
        let read = inside(world, &settings("read"), "git log --format=%s -1");
        assert_eq!(read.text(), "linked", "{}", read.stderr);
        assert_ne!(inside(world, &settings("read"), "git tag x").status, 0);

        // The same pointer in a project that the repository does not know.
        let forged = world.path("forged");
        fs::create_dir(&forged).unwrap();
        fs::copy(tree.join(".git"), forged.join(".git")).unwrap();
        world.own();
        let text = world.settings(r#""git": "write""#, &[]);
        let setup = Setup::new(&forged, &world.home("")).settings(text);
        let before = metadata(world);
        inside(
            world,
            &setup,
            "git commit -q --allow-empty -m evil; git branch evil",
        );
        assert_eq!(metadata(world), before);
    });
}

#[test]
fn a_project_below_a_repository_uses_that_one() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let sub = world.project("src");
        let settings = |level: &str| {
            let text = world.settings(&format!(r#""git": "{level}""#), &[]);
            Setup::new(&sub, &world.home("")).settings(text)
        };
        let read = inside(world, &settings("read"), "git log --format=%s -1");
        assert_eq!(read.text(), "sub", "{}", read.stderr);
        let hidden = inside(world, &settings("hidden"), "cat ../.git/config; git log");
        assert_eq!(
            (hidden.text().as_str(), hidden.status),
            ("", 128),
            "{}",
            hidden.stderr
        );
        let work = "echo x > new && git add new && git commit -qm below && \
                    ! git config a.b c 2>/dev/null && ! touch ../.git/hooks/x 2>/dev/null && \
                    ! touch ../a 2>/dev/null";
        inside(world, &settings("write"), work).assert_status(0);
    });
}

/// Everything in a git directory that makes git run something or leads it elsewhere: written,
/// truncated, replaced, removed, moved, and made where it is not there.
#[test]
fn no_knob_turns_at_level_write() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let canary = world.outside("ran");
        let knobs = [
            "hooks/pre-commit",
            "hooks/post-checkout",
            "config",
            "config.worktree",
            "info/attributes",
            "info/exclude",
            "commondir",
            "gitdir",
            "objects/info/alternates",
            "rebase-merge/git-rebase-todo",
            "remotes/origin",
            "branches/origin",
            "lazygit.yml",
            "sl/config",
            "branchless/config",
            "glab-cli/config.yml",
            "sequencer/opts",
        ];
        let mut paths: Vec<PathBuf> = Vec::new();
        for directory in [".git", "nested/.git", "store.git", ".git/modules/sub"] {
            paths.extend(knobs.iter().map(|knob| Path::new(directory).join(knob)));
        }
        for knob in ["gitdir", "commondir", "config.worktree", "sequencer/opts"] {
            paths.push(Path::new(".git/worktrees/tree").join(knob));
        }
        paths.push("sub/.git".into());
        paths.push(".git/modules/new/config".into());
        let before = knobs_of(world, &paths);
        let setup = level(world, "write");
        let script = paths.iter().fold(String::new(), |script, path| {
            let path = path.display();
            script + &format!("turn {path}\n")
        });
        let program = format!(
            "printf '#!/bin/sh\\ntouch {}\\n' > evil; chmod +x evil
             turn() {{
                 local d; d=$(dirname $1)
                 mkdir -p $d; cp evil $1; echo x >> $1; : > $1; truncate -s 0 $1; chmod 777 $1
                 rm -rf $1; mv evil $1; cp evil $1.tmp && mv -T $1.tmp $1; ln -sfn $PWD/evil $1
                 mv $d $d.old && mkdir -p $d && cp evil $1; mkdir -p evil.d; cp evil evil.d/x
                 mv -T evil.d $1; ln evil $1; mkdir $1; mkfifo $1; ln -sfn $PWD/evil.d $d
             }} 2>/dev/null
             {script}
             git config core.fsmonitor $PWD/evil; git config --worktree core.fsmonitor $PWD/evil
             git -C sub config core.fsmonitor $PWD/evil; git config --file .git/config alias.x '!x'
             git -C nested config core.hooksPath $PWD; git remote add x ext::evil; true",
            canary.display(),
        );
        inside(world, &setup, &program).assert_status(0);
        assert_eq!(knobs_of(world, &paths), before);
        let everything = "for d in . sub nested ../tree; do git -C $d status; git -C $d commit -q \
                          --allow-empty -m host; git -C $d switch -qc host$RANDOM$RANDOM; done; git stash list; \
                          git submodule foreach git status";
        host(world, &world.project(""), everything);
        assert!(
            !canary.try_exists().unwrap(),
            "something of the session's ran"
        );
    });
}

/// What stands at each path, to be compared.
fn knobs_of(world: &World, paths: &[PathBuf]) -> Vec<String> {
    let describe = |path: &PathBuf| {
        let path = world.project(path);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() => {
                format!("{}: {:?}", path.display(), fs::read(&path).unwrap())
            }
            Ok(meta) => format!("{}: {:?}", path.display(), meta.file_type()),
            Err(error) => format!("{}: {}", path.display(), error.kind()),
        }
    };
    paths.iter().map(describe).collect()
}

/// A configured directory of hooks is protected, whether or not it is there, and so is a file that
/// the configuration includes, at every level.
#[test]
fn what_the_configuration_names_is_protected() {
    for_each_user(binaries!(), |world| {
        repository(world);
        let prepare = "git config core.hooksPath .githooks; git config include.path ../team.conf
            git config core.fsmonitor ./tools/monitor; mkdir -p tools; echo true > tools/monitor
            git -C nested config core.hooksPath hooks";
        host(world, &world.project(""), prepare);
        for level_name in ["hidden", "read", "write"] {
            let done = inside(
                world,
                &level(world, level_name),
                "mkdir -p .githooks nested/hooks 2>/dev/null
                 for f in .githooks/pre-commit team.conf tools/monitor nested/hooks/x; do
                    { echo x > $f; } 2>/dev/null && echo \"wrote $f\"; done; true",
            );
            assert_eq!(done.text(), "", "{level_name}: {}", done.stderr);
            for name in [".githooks", "team.conf", "nested/hooks"] {
                assert!(!world.project(name).try_exists().unwrap(), "{name}");
            }
        }
    });
}

/// Every hidden repository is closed in every way, whichever mask it has, and every directory above
/// one stays where it is with no right more than the project has.
#[test]
fn masks_and_pins_have_no_right_too_many() {
    for_each_user(binaries!(), |world| {
        host(
            world,
            &world.project(""),
            "for i in 1 2 3; do git init -q a/b$i; done; mkdir -p a/link
             echo 'gitdir: ../b1/.git' > a/link/.git",
        );
        let script = "awk '{ print $5, $6 }' /proc/self/mountinfo | grep /project/a | sort";
        let done = inside(world, &level(world, "hidden"), script);
        done.assert_status(0);
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for line in &done.lines {
            let (path, flags) = line.split_once(' ').unwrap();
            let below = path.split_once("/project/").unwrap().1;
            let flags = flags.split(",relatime").next().unwrap();
            seen.push((below, flags));
        }
        let closed = "ro,nosuid,nodev,noexec";
        let pinned = "rw,nosuid,nodev";
        let expected = [
            ("a", pinned),
            ("a/b1", pinned),
            ("a/b1/.git", closed),
            ("a/b2", pinned),
            ("a/b2/.git", closed),
            ("a/b3", pinned),
            ("a/b3/.git", closed),
            ("a/link", pinned),
            ("a/link/.git", closed),
        ];
        assert_eq!(seen, expected, "{}", done.stderr);
        let mut cases = Vec::new();
        for name in ["a", "a/b1", "a/b2", "a/b3", "a/link"] {
            let moved = format!("{name}.moved");
            let (name, moved) = (world.project(name), world.project(moved));
            cases.push(denied(op!["rename", &name, &moved], "EBUSY"));
            // Nothing is moved into the place of a directory above a protected name.
            cases.push(denied(op!["rename", &moved, &name], "EROFS"));
        }
        cases.extend([
            denied(op!["create", world.project("a/b2/.git/x")], "EROFS"),
            denied(op!["mkdir", world.project("a/b3/.git/x")], "EROFS"),
            denied(op!["read", world.project("a/link/.git")], "EACCES"),
            case(op!["create", world.project("a/b2/free")], "ok", "ok"),
        ]);
        let free = world.probe(op!["rename", world.project("a/b1"), world.project("a/x")]);
        free.assert_status(0);
        let back = world.probe(op!["rename", world.project("a/x"), world.project("a/b1")]);
        back.assert_status(0);
        world.check_confined(&level(world, "hidden"), &cases);
    });
}
