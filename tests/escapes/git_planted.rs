//! 31, 43: what a session leaves in a git directory for the host's git, which runs nothing at that
//! moment: it is obeyed when the user pushes or goes on with something later.

use std::fs;
use std::path::PathBuf;

use ringfence::changes::Before;
use ringfence::git::Search;
use ringfence_core::path::AbsPath;
use ringfence_core::plan::Step;
use ringfence_testkit::{World, binaries, for_each_user, not_run};

use super::git_metadata::{host, inside, level};

/// A program that leaves the canary, as `evil`, and a repository with two branches that conflict.
fn repository(world: &World) -> PathBuf {
    let canary = world.outside("ran");
    let script = format!(
        "find . -mindepth 1 -delete
         git config --global user.email a@b.c; git config --global user.name n
         git init -q -b main .; git commit -q --allow-empty -m one; git branch topic
         echo a > a; git add a; git commit -qm two
         git switch -q topic; echo b > a; git add a; git commit -qm three
         printf '#!/bin/sh\\ntouch {}\\n' > evil; chmod +x evil",
        canary.display()
    );
    host(world, &world.project(""), &script);
    let _ = fs::remove_file(&canary);
    canary
}

/// Leaves something on the host, where what the user does later runs the canary; then inside.
#[track_caller]
fn attack(world: &World, plant: &str, later: &str) {
    let later = format!("{{ {later}; }} >/dev/null 2>&1 </dev/null || true");
    let canary = repository(world);
    host(world, &world.project(""), plant);
    assert!(!canary.try_exists().unwrap(), "too early: {plant}");
    host(world, &world.project(""), &later);
    assert!(canary.try_exists().unwrap(), "harmless: {plant}");

    let canary = repository(world);
    inside(world, &level(world, "write"), plant);
    host(world, &world.project(""), &later);
    assert!(!canary.try_exists().unwrap(), "{plant}");
}

/// Files from before remotes were a part of the configuration.
#[test]
fn no_push_leads_elsewhere() {
    for_each_user(binaries!(), |world| {
        let bare = "git init -q --bare sub/ev; cp evil sub/ev/hooks/pre-receive";
        for (file, text) in [
            ("remotes", "URL: $PWD/sub/ev\nPush: refs/heads/topic\n"),
            ("branches", "$PWD/sub/ev#topic\n"),
        ] {
            let plant =
                format!("{bare}; mkdir -p .git/{file}; printf \"{text}\" > .git/{file}/origin");
            attack(world, &plant, "git push origin");
        }
    });
}

/// A pick that was begun, whose merge strategy is a program of the project: `git` puts `git-merge-`
/// before its name, and what has a slash in it is not looked for on the search path.
#[test]
fn no_pick_goes_on_with_another_program() {
    for_each_user(binaries!(), |world| {
        let begun = "mkdir git-merge-x; cp evil git-merge-x/evil; mkdir .git/sequencer
            git rev-parse HEAD > .git/sequencer/head
            for i in 1 2; do echo pick $(git rev-parse main) two; done > .git/sequencer/todo
            printf '[options]\\n\\tstrategy = x/evil\\n' > .git/sequencer/opts";
        attack(world, begun, "git cherry-pick --continue");
        // Whoever only picks can, also several at once.
        repository(world);
        let pick = "set -e; git switch -q main; for i in x y; do echo $i > $i; git add $i
            git commit -qm $i; done; git switch -qc other HEAD~2; git cherry-pick main~1 main
            GIT_EDITOR=true git revert HEAD HEAD~1; git revert --no-edit HEAD";
        inside(world, &level(world, "write"), pick).assert_status(0);
    });
}

/// Every way to have a link below a git directory, each at a name of its own, and what the user does
/// later.
const LINKS: &str = "
victim=$1; away=$PWD/.git/away; mkdir -p .git/x links; ln -s $victim links/a; ln -s $victim b
ln -sfn $victim .git/COMMIT_EDITMSG; ln -sfn $victim .git/FETCH_HEAD
rm -rf .git/logs/refs; ln -s $PWD/links .git/logs/refs; ln -sf $victim .git/logs/HEAD
here=$PWD; cd .git/x; ln -s $victim relative
mkdir gone; cd gone; rmdir ../gone; ln -s $victim ../removed; cd $here; ln -P b .git/hard; mv -T b .git/moved
mv -T links .git/directory; ln -s $victim $away; mv $away .git/again
mkdir -p .git/logs/closed/in c/in; ln -s $victim c/in/l
cd .git/logs/closed/in; chmod 0 ..; ln -s $victim past; chmod 755 ..; cd $here
cd c/in; chmod 0 ..; mv -T l $here/.git/out; chmod 755 ..; cd $here
ln -s $victim .git/worktrees; ln -sf $victim nested/.git/COMMIT_EDITMSG; true";

const LATER: &str = "git commit --allow-empty -m x; git fetch . HEAD";

/// The links below the git directories of a project.
fn links(world: &World) -> Vec<String> {
    let find = "find .git nested/.git -type l | sort";
    host(world, &world.project(""), find).lines
}

/// Git writes some of its files in place, and follows a link there.
#[test]
fn nothing_is_written_through_a_link() {
    for_each_user(binaries!(), |world| {
        let victim = world.outside("victim");
        let prepare = || {
            repository(world);
            let nested = "git init -q nested; git -C nested commit -q --allow-empty -m n";
            host(world, &world.project(""), nested);
            fs::write(&victim, "precious").unwrap();
            world.own();
        };
        let script = format!("set -- {}; {LINKS}", victim.display());
        let later = format!("{{ {LATER}; }} >/dev/null 2>&1 || true");
        let precious = || fs::read_to_string(&victim).unwrap() == "precious";
        // The control: without a sandbox, and where nobody is asked.
        prepare();
        host(world, &world.project(""), &script);
        host(world, &world.project(""), &later);
        assert!(!precious(), "git no longer writes through links");
        prepare();
        inside(world, &level(world, "full"), &script);
        assert!(links(world).len() > 5, "{:?}", links(world));
        let open = level(world, "write").without(Step::Names);
        prepare();
        let project = fs::canonicalize(world.project("")).unwrap();
        let before = Before::look(&Search::new(AbsPath::parse(project).unwrap()));
        inside(world, &open, &script);
        // What got through is told.
        let changes = before.compare();
        let told: Vec<String> = changes
            .git_links
            .made
            .into_iter()
            .map(|it| it.path)
            .collect();
        assert_eq!((told, changes.complete), (links(world), true));
        host(world, &world.project(""), &later);
        assert!(!precious(), "something else than the guard refuses it");

        // With mounts, and without them: those keep what is outside from being moved inside.
        let setup = level(world, "write");
        for setup in [setup.clone(), setup.without(Step::Root)] {
            prepare();
            inside(world, &setup, &script);
            assert_eq!(links(world), [""; 0]);
            host(world, &world.project(""), &later);
            assert!(precious(), "git wrote through a link");
        }
    });
}

/// Calls that no shell makes: an exchange, a link by its descriptor.
#[test]
fn no_call_puts_a_link_into_a_git_directory() {
    for_each_user(binaries!(), |world| {
        let python = "/usr/bin/python3";
        if !std::path::Path::new(python).try_exists().unwrap() {
            return not_run("python3, for calls that no shell makes");
        }
        let script = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name in ["la", "lb", "lc"]: os.symlink("/nowhere", name)
os.mkdir("d"); os.symlink("/nowhere", "d/HEAD"); open("file", "w").close()
open(".git/file", "w").close(); os.makedirs(".git/own")
O_PATH = 0o10000000
git = os.open(".git", O_PATH); link = os.open("la", O_PATH | os.O_NOFOLLOW)
made = []
def attempt(name, result):
    if result == 0: made.append(name)
attempt("symlinkat", libc.symlinkat(b"/nowhere", git, b"1"))
attempt("by descriptor", libc.linkat(-100, b"/proc/self/fd/%d" % link, git, b"2", 0x400))
attempt("by empty path", libc.linkat(link, b"", git, b"3", 0x1000))
attempt("exchange", libc.renameat2(-100, b"lb", git, b"file", 2))
attempt("exchange, other way", libc.renameat2(git, b"file", -100, b"lc", 2))
attempt("directory", libc.renameat(-100, b"d", git, b"4"))
attempt("own spelling", libc.symlink(b"/nowhere", b"/proc/self/cwd/.git/5"))
attempt("climbing", libc.symlink(b"/nowhere", b".git/refs/../6"))
os.symlink(os.getcwd() + "/.git", "back")
attempt("through a link", libc.symlink(b"/nowhere", b"back/7"))
# What git does itself.
os.link(".git/file", ".git/second"); os.rename(".git/second", ".git/third")
os.rename(".git/own", ".git/owned"); os.symlink("/nowhere", "in-the-project")
print(made)
"#;
        let file = world.outside("links.py");
        let setup = level(world, "write");
        for setup in [setup.clone(), setup.without(Step::Root)] {
            repository(world);
            fs::write(&file, script).unwrap();
            world.own();
            let done = world.run(&setup, [python.as_ref(), file.as_os_str()]);
            assert_eq!(done.text(), "[]", "{}", done.stderr);
            host(
                world,
                &world.project(""),
                "test -z \"$(find .git -type l)\"",
            );
        }
    });
}
