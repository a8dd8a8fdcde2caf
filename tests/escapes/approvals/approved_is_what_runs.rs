//! 140: what was approved is changed before it runs; an approval is used for something else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::answering::{answering, questions};
use crate::stage::{Stage, for_each_user};

/// A project whose script writes outside if it is let, and a link that the command names.
fn prepared(stage: &Stage) -> PathBuf {
    let (home, project) = (stage.world.home(), stage.world.project());
    let outside = home.join("outside");
    for directory in [&outside, &home.join("elsewhere")] {
        fs::create_dir_all(directory).unwrap();
        stage.give(directory);
    }
    let good = "touch ../outside/made\n";
    let bad = "touch ../outside/other ../elsewhere/other; true\n";
    for (name, text) in [("script", good), ("bad", bad)] {
        let path = project.join(name);
        fs::write(&path, text).unwrap();
        stage.give(&path);
    }
    let _ = fs::remove_file(project.join("link"));
    symlink("script", project.join("link")).unwrap();
    // A program of the project's own.
    let program = project.join("program");
    fs::write(&program, "#!/bin/sh\n. ./script\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&program, mode).unwrap();
    stage.give(&program);
    outside
}

/// Everything that must not have been made, by anybody.
fn traces(stage: &Stage) -> Vec<String> {
    let home = stage.world.home();
    let places = ["outside", "elsewhere", "aside", "project-aside"];
    let names = ["made", "other"];
    let all = places
        .iter()
        .flat_map(|place| names.iter().map(move |name| format!("{place}/{name}")));
    all.filter(|path| home.join(path).try_exists().unwrap())
        .collect()
}

fn ask(stage: &Stage, approver: &str, command: &[&str]) -> crate::world::Ran {
    let mut words = vec!["run", "--no-prompt", "--approve-cmd", approver];
    words.extend(["--request-write", "../outside", "--"]);
    words.extend(command);
    stage.run(&words)
}

#[test]
fn whatever_changes_is_asked_again() {
    let script: &[&str] = &["/bin/sh", "script"];
    let link: &[&str] = &["/bin/sh", "link"];
    let program: &[&str] = &["./program"];
    for (what, command, change) in [
        ("the script", script, "cat bad > script"),
        ("the script, replaced", script, "cp bad new; mv new script"),
        ("what a link leads to", link, "ln -sfn bad link"),
        (
            "the program",
            program,
            "cp bad new; chmod 755 new; mv new program",
        ),
        ("the program, in place", program, "cat bad >> program"),
        (
            "the directory",
            script,
            "cd ..; mv project project-aside; cp -r project-aside project",
        ),
        (
            "the granted directory",
            script,
            "mv ../outside ../aside; mkdir ../outside",
        ),
        (
            "a link in its place",
            script,
            "mv ../outside ../aside; ln -s elsewhere ../outside",
        ),
        (
            "the settings",
            script,
            "mkdir -p ~/.config/ringfence; echo '{\"limits\":{\"files\":99}}' > ~/.config/ringfence/settings.json",
        ),
        (
            "the project's settings",
            script,
            "mkdir -p .ringfence; echo '{\"limits\":{\"files\":99}}' > .ringfence/settings.json",
        ),
    ] {
        for_each_user(|stage| {
            let outside = prepared(stage);
            let asked = stage.world.home().join("asked");
            let yes = answering(&asked, "once");
            // Unchanged it runs, and the question is asked once.
            let control = ask(stage, &yes, command);
            assert_eq!(control.code, Some(0), "{what}: {control:?}");
            fs::remove_file(outside.join("made")).unwrap();
            assert_eq!(questions(&asked).len(), 1);
            // Changed while somebody is asked it is asked again; the second answer is no.
            let swap = format!(
                "if test -e ~/before; then exit 1; fi; : > ~/before; ({change}) || exit 1; {yes}"
            );
            let ran = ask(stage, &swap, command);
            assert!(matches!(ran.code, Some(125 | 2)), "{what}: {ran:?}");
            assert_eq!(traces(stage), Vec::<String>::new(), "{what}");
            assert_eq!(questions(&asked).len(), 2, "{what} was changed");
        });
    }
}

/// A variable that differs is another question: the binding holds every one of them.
#[test]
fn variables_and_words_are_part_of_it() {
    for_each_user(|stage| {
        prepared(stage);
        // What ringfence keeps is hidden from commands, and so is part of the policy once it is there.
        stage.done(&["run", "--", "true"]);
        let asked = stage.world.home().join("asked");
        let yes = answering(&asked, "once");
        let run = |words: &[&str], value: &str| {
            let mut all = vec!["run", "--no-prompt", "--approve-cmd", yes.as_str()];
            all.extend(["--request-write", "../outside", "--"]);
            all.extend(words);
            let output = stage.command(&all).env("ODD", value).output().unwrap();
            assert_eq!(output.status.code(), Some(0));
        };
        run(&["true", "a b"], "1");
        run(&["true", "a b"], "1");
        run(&["true", "a b"], "2");
        run(&["true", "a", "b"], "1");
        let bindings: Vec<String> = questions(&asked)
            .iter()
            .map(|question| question["binding"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(bindings[0], bindings[1], "the same is the same");
        assert_ne!(bindings[0], bindings[2], "a variable");
        assert_ne!(bindings[0], bindings[3], "the ends of words");
    });
}

/// An approval of a short command is no approval of a longer one.
#[test]
fn an_answer_is_for_one_question() {
    for_each_user(|stage| {
        prepared(stage);
        let home = stage.world.home();
        let asked = home.join("asked");
        let yes = answering(&asked, "once");
        let keeps = format!("{yes} | tee {}/answer", home.display());
        let control = ask(stage, &keeps, &["/bin/sh", "-c", "true"]);
        assert_eq!(control.code, Some(0), "{control:?}");
        let replay = format!("cat {}/answer", home.display());
        for command in [
            &["/bin/sh", "-c", "true; touch ../outside/made"][..],
            // Not even of the very same one.
            &["/bin/sh", "-c", "true"],
        ] {
            let ran = ask(stage, &replay, command);
            assert_eq!(ran.code, Some(125), "{ran:?}");
            assert!(ran.errors.contains("for another question"), "{ran:?}");
        }
        assert_eq!(traces(stage), Vec::<String>::new());
    });
}

/// Two that ask at once, each answered with the other's answer.
#[test]
fn answers_are_not_exchanged() {
    for_each_user(|stage| {
        prepared(stage);
        let home = stage.world.home();
        let run = |own: &str, other: &str| {
            let asked = home.join(format!("asked-{own}"));
            let directory = home.join(own);
            fs::create_dir_all(&directory).unwrap();
            stage.give(&directory);
            let script = crate::answering::script(&asked, "once");
            let path = directory.join("answer.sh");
            fs::write(&path, script).unwrap();
            // Its own answer goes to the other, and the other's is given for its own.
            let line = format!(
                "/bin/sh {0}/answer.sh > {0}/new; mv {0}/new {0}/answer; while ! test -e {1}/answer; do sleep 0.01; done; cat {1}/answer",
                directory.display(),
                home.join(other).display()
            );
            let words = ["run", "--no-prompt", "--approve-cmd", &line];
            let more = ["--request-write", "../outside", "--", "/bin/sh", "script"];
            stage
                .command(&[&words[..], &more].concat())
                .spawn()
                .unwrap()
        };
        let (mut one, mut two) = (run("one", "two"), run("two", "one"));
        assert_eq!(one.wait().unwrap().code(), Some(125));
        assert_eq!(two.wait().unwrap().code(), Some(125));
        assert_eq!(traces(stage), Vec::<String>::new());
    });
}
