//! Limits that leave too little to start anything with, or that nothing here can hold.

use crate::stage::{Stage, for_each_user};

/// Runs a command within a limit, with somebody who would let it run without the sandbox; whether that
/// one was asked, and what was said.
fn within(stage: &Stage, flags: &[&str], limit: &str) -> (Option<i32>, bool, String) {
    let asked = stage.world.home().join("asked");
    let answer = format!("touch '{}'", asked.display());
    let words = [
        &["run", "--approve-cmd", &answer, "--limit", limit],
        flags,
        &["--", "true"],
    ];
    let ran = stage.run(&words.concat());
    let was_asked = std::fs::remove_file(&asked).is_ok();
    (ran.code, was_asked, ran.errors)
}

#[test]
fn a_limit_that_is_too_small_is_named() {
    for_each_user(|stage| {
        let engines = [
            &["--engine", "namespaces"][..],
            &["--engine", "landlock", "--on-gap", "report"],
            &["--preset", "track"],
        ];
        for flags in engines {
            // The control: with more it runs.
            let (code, _, errors) = within(stage, flags, "files=64");
            assert_eq!(code, Some(0), "{flags:?}: {errors}");
            for limit in ["files=1", "files=3"] {
                let (code, asked, errors) = within(stage, flags, limit);
                assert_eq!((code, asked), (Some(125), false), "{flags:?}: {errors}");
                assert!(
                    errors.contains(&format!("within the limit {limit}: ")),
                    "{errors}"
                );
                assert!(errors.contains("write a larger limit `files`"), "{errors}");
                assert!(!errors.contains("fallback"), "{errors}");
            }
        }
        // For root it is another limit, which not every host can hold.
        if stage.is_root() {
            return;
        }
        for flags in engines {
            let (code, asked, errors) = within(stage, flags, "processes=1");
            assert_eq!((code, asked), (Some(125), false), "{flags:?}: {errors}");
            assert!(
                errors.contains("within the limit processes=1: "),
                "{errors}"
            );
            assert!(
                errors.contains("write a larger limit `processes`"),
                "{errors}"
            );
        }
        let (code, _, errors) = within(stage, engines[0], "processes=2");
        assert_eq!(code, Some(0), "{errors}");
        // There the user's other processes count as well; these two at least.
        let (code, asked, errors) = within(stage, engines[1], "processes=2");
        assert_eq!((code, asked), (Some(125), false), "{errors}");
        assert!(
            errors.contains("within the limit processes=2: "),
            "{errors}"
        );
    });
}

/// Nobody is asked to go without the sandbox for a limit that would not hold there either.
#[test]
fn a_limit_that_nothing_holds_is_no_reason_to_go_without_the_sandbox() {
    const LIMIT: &str = "memory=1GiB";
    for_each_user(|stage| {
        let unheld = |flags: &[&str]| {
            let (code, asked, errors) = within(stage, flags, LIMIT);
            if code == Some(0) {
                let facts = stage.run(&["doctor", "--json"]).out;
                assert!(facts.contains("\"memory\""), "who holds it? {facts}");
                return;
            }
            assert_eq!((code, asked), (Some(125), false), "{flags:?}: {errors}");
            for said in ["limit memory", "`--limit memory=none`", "`--on-gap report`"] {
                assert!(errors.contains(said), "{said}: {errors}");
            }
            assert!(!errors.contains("OUTSIDE"), "{errors}");
            assert!(!errors.contains("fallback"), "{errors}");
            let decided = stage.log();
            let decided = decided.iter().filter(|event| event["event"] == "decision");
            let granted = decided.filter(|event| event["answer"] == "allowed-once");
            assert_eq!(granted.count(), 0);
        };
        unheld(&[]);
        unheld(&["--request-unsandboxed"]);
        for way in ["--on-gap=report", "--limit=memory=none"] {
            let (code, asked, errors) = within(stage, &[way], LIMIT);
            assert_eq!((code, asked), (Some(0), false), "{way}: {errors}");
        }
    });
}
