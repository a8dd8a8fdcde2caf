//! What was typed wrong: what is said of it, and to whom.

use crate::world::World;

/// A status of 2 may be the command's: only `refused` says that it is ours.
#[test]
fn whoever_listens_hears_of_a_mistake_in_the_arguments() {
    let world = World::new();
    for (arguments, status, why) in [
        (
            &["run", "--json-fd", "5", "--bogus", "--", "true"][..],
            2,
            "unexpected argument '--bogus' found",
        ),
        (
            &["run", "--preset", "agnet", "--json-fd=5", "--", "true"],
            2,
            "invalid value 'agnet' for '--preset <PRESET>'",
        ),
        (
            &["run", "--json-fd", "5"],
            2,
            "the following required arguments were not provided",
        ),
        (
            &["shell", "--json-fd", "5", "--bogus"],
            2,
            "unexpected argument '--bogus' found",
        ),
        (
            &["shell", "--json-fd", "5", "--shell-policy", "verify"],
            2,
            "--shell-policy reads a command",
        ),
        (
            &["run", "--json-fd", "5", "--report", "/", "--", "true"],
            125,
            "/",
        ),
    ] {
        let (ran, events) = world.run_with_events(arguments);

        assert_eq!(ran.code, Some(status), "{arguments:?}");
        assert!(ran.errors.contains(why), "{arguments:?}: {ran:?}");
        let [refused] = &*events else {
            panic!("{arguments:?}: {events:?}");
        };
        assert_eq!(refused["event"], "refused");
        assert_eq!(refused["exit_status"], status);
        let said = refused["error"].as_str().unwrap();
        assert!(said.contains(why), "{said}");
    }
    // What is asked about is answered, and what is the command's is the command's.
    for arguments in [
        &["run", "--json-fd", "5", "--help"][..],
        &["run", "--bogus", "--", "true", "--json-fd", "5"],
        &["explain", "--json-fd", "5"],
    ] {
        let (_, events) = world.run_with_events(arguments);
        assert!(events.is_empty(), "{arguments:?}: {events:?}");
    }
}

#[test]
fn help_is_a_command_too() {
    let world = World::new();
    for (words, flag) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "help"], &["--help"]),
        (&["help", "run"], &["run", "--help"]),
        (
            &["help", "settings", "show"],
            &["settings", "show", "--help"],
        ),
    ] {
        let ran = world.run(words);
        assert_eq!(ran.code, Some(0), "{words:?}");
        assert_eq!(ran.golden(), world.run(flag).golden(), "{words:?}");
    }
    let ran = world.run(&["help", "rnu"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.errors.contains("'rnu'"), "{}", ran.errors);
}

/// What other tools call a flag leads to ours, and nothing is taken for the command's that nobody meant so.
#[test]
fn the_words_of_other_tools_lead_to_ours() {
    let world = World::new();
    for (typed, tip) in [
        (&["--timeout", "5"][..], "`--limit wall=5s`"),
        (&["--timeout=5"], "`--limit wall=5s`"),
        (&["--allow-write", "x"], "`--write PATH`"),
        (&["--allow-read=x"], "`--read PATH`"),
        (&["--allow-net"], "`--allow-host HOST`"),
        (&["--bind", "/a", "/a"], "`--write PATH`"),
        (&["--ro-bind", "/a", "/a"], "`--read PATH`"),
        (&["--unshare-net"], "`--net none`"),
        (&["--unshare-pid"], "leave it out"),
        (&["--env", "A=b"], "`--set-env A=b`"),
        (&["--raed", "x"], "'--read'"),
    ] {
        let mut words = vec!["run"];
        words.extend(typed);
        words.extend(["--", "true"]);
        let ran = world.run(&words);
        assert_eq!(ran.code, Some(2), "{typed:?}");
        assert!(ran.errors.contains(tip), "{typed:?}: {}", ran.errors);
        assert!(!ran.errors.contains("as a value"), "{}", ran.errors);
        assert!(!ran.errors.contains("--allow-protected"), "{}", ran.errors);
    }
    let unknown = world.run(&["run", "--bogus", "--", "true"]);
    assert!(!unknown.errors.contains("tip:"), "{}", unknown.errors);
    // Elsewhere such a word can be a name.
    let name = world.run(&["check", "--odd"]);
    assert!(name.errors.contains("'-- --odd'"), "{}", name.errors);
}
