//! A sandbox that cannot be made, for real: what is offered, to whom, and what comes of each answer.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::answering::{self, there};
use crate::stage::{Around, Ran, World, everybody};

/// Namespaces that are off or filtered, calls that are hidden, one that is refused half-way.
const UNMAKEABLE: [Around; 4] = [
    Around::NamespacesOff,
    Around::NamespacesFiltered,
    Around::LandlockHidden,
    Around::PivotRefused,
];

fn answering(world: &World, word: &str) -> String {
    answering::answering(&world.project().join("asked"), word)
}

fn questions(world: &World) -> Vec<Value> {
    answering::questions(&world.project().join("asked"))
}

/// A directory of nobody's that only a command without a sandbox can write.
fn outside(world: &World) -> std::path::PathBuf {
    let outside = world.project().parent().unwrap().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o777)).unwrap();
    outside
}

fn touch(world: &World, around: Around, flags: &[&str]) -> Ran {
    let made = outside(world).join("made");
    let mut words = vec!["run"];
    words.extend(flags);
    words.extend(["--", "touch", made.to_str().unwrap()]);
    world.run(around, &words)
}

fn made(world: &World) -> bool {
    fs::remove_file(outside(world).join("made")).is_ok()
}

/// Decisions of the audit trail: what was answered, and by whom.
fn decisions(world: &World) -> Vec<(String, String)> {
    let log = world.run(Around::Nothing, &["log", "--json"]).out;
    let events = log.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        event
    });
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    events
        .filter(|event| event["event"] == "decision")
        .map(|event| (text(&event, "answer"), text(&event, "by")))
        .collect()
}

#[test]
fn nobody_there_is_a_no() {
    for who in everybody() {
        let world = World::new(who);
        let control = touch(&world, Around::Nothing, &["--preset", "track"]);
        assert_eq!((control.code, made(&world)), (0, true), "{control:?}");
        for around in UNMAKEABLE {
            let ran = touch(&world, around, &[]);
            assert_eq!(ran.code, 125, "{around:?}: {ran:?}");
            assert!(!made(&world), "{around:?}");
            let said = "the sandbox cannot be made, and there is nobody to ask";
            assert!(ran.errors.contains(said), "{around:?}: {ran:?}");
            let needed = ran
                .errors
                .lines()
                .find_map(|line| line.strip_prefix("ringfence: needed "));
            let needed: Value = serde_json::from_str(needed.unwrap()).unwrap();
            assert_eq!(needed["permissions"][0]["kind"], "fallback");
            assert!(ran.errors.contains("somebody is asked"), "{ran:?}");
        }
        let told = decisions(&world);
        assert_eq!(told.len(), UNMAKEABLE.len());
        assert!(
            told.iter()
                .all(|(answer, by)| answer == "denied" && by == "nobody")
        );
        let with_thread = touch(&world, Around::NamespacesOff, &["--thread", "t 1"]);
        let paste = "ringfence grants add --fallback --thread 't 1'";
        assert!(with_thread.errors.contains(paste), "{with_thread:?}");
        // Who has just said no need not be told how to be asked.
        let no = answering(&world, "deny");
        let ran = touch(&world, Around::NamespacesOff, &["--approve-cmd", &no]);
        assert_eq!(questions(&world).len(), 1, "{ran:?}");
        assert!(ran.errors.contains("and the answer was no"), "{ran:?}");
        assert!(!ran.errors.contains("somebody is asked"), "{ran:?}");
    }
}

#[test]
fn somebody_can_go_on_without_it_once() {
    for who in everybody() {
        let world = World::new(who);
        let yes = answering(&world, "once");
        for (index, around) in UNMAKEABLE.into_iter().enumerate() {
            let report = world.project().join("report.json");
            let report = report.to_str().unwrap();
            let ran = touch(&world, around, &["--approve-cmd", &yes, "--report", report]);
            assert_eq!(ran.code, 0, "{around:?}: {ran:?}");
            assert!(made(&world), "{around:?}");
            assert!(ran.errors.contains("OUTSIDE the sandbox"), "{ran:?}");
            let asked = questions(&world);
            assert_eq!(asked.len(), index + 1, "asked once each time");
            let asked = &asked[index];
            assert_eq!(asked["permissions"][0]["kind"], "fallback");
            assert_eq!(
                asked["answers"],
                serde_json::json!(["retry", "once", "deny"])
            );
            assert!(!asked["obstacle"].as_str().unwrap().is_empty());
            let text = fs::read_to_string(report).unwrap();
            let report: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(report["engine"], "track");
            let answers: Vec<&str> = report["decisions"]
                .as_array()
                .unwrap()
                .iter()
                .map(|decision| decision["answer"].as_str().unwrap())
                .collect();
            assert_eq!(answers, ["asked", "granted"], "{around:?}");
        }
        let told = decisions(&world);
        assert!(told.contains(&("granted".to_owned(), "a command that answers".to_owned())));
    }
}

/// Without a grant that cannot be given everything holds: nothing is offered but to leave it out.
#[test]
fn a_grant_that_cannot_be_given_is_no_reason_to_go_without_it() {
    for who in everybody() {
        let world = World::new(who);
        let around = Around::Listener;
        let socket = outside(&world).join("socket");
        let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
        // What nobody can listen for there would be a gap, too.
        let plan = world.run(
            around,
            &["run", "--dry-run", "--json", "--git=full", "--", "true"],
        );
        let plan: Value = serde_json::from_str(&plan.out).unwrap();
        let acts = plan["acts"].as_array().unwrap();
        let names = acts.iter().filter_map(|act| act["absent"].as_array());
        let project = fs::canonicalize(world.project()).unwrap();
        let names = names.flatten().map(|path| {
            let path = std::path::Path::new(path.as_str().unwrap());
            let name = path.strip_prefix(&project).unwrap();
            format!("--allow-protected={}", name.display())
        });
        let names: Vec<String> = names.collect();
        let yes = answering(&world, "once");
        let mut flags = vec!["--approve-cmd", &*yes, "--git", "full"];
        flags.extend(names.iter().map(String::as_str));
        let control = touch(&world, around, &flags);
        assert!(!control.errors.contains("cannot enforce"), "{control:?}");
        flags.extend(["--unix-socket", socket.to_str().unwrap()]);

        let ran = touch(&world, around, &flags);

        if !ran.errors.contains("cannot enforce") {
            // From Landlock 9 the kernel tells this socket from others.
            assert_eq!(ran.code, control.code, "{ran:?}");
            continue;
        }
        assert_eq!((ran.code, made(&world)), (125, false), "{ran:?}");
        assert_eq!(questions(&world).len(), 0, "{ran:?}");
        let said = "leave out flag --unix-socket, or start without it: `--on-gap report`";
        assert!(ran.errors.contains(said), "{ran:?}");
        flags.push("--on-gap=report");
        let ran = touch(&world, around, &flags);
        assert!(!ran.errors.contains("cannot enforce"), "{ran:?}");
    }
}

#[test]
fn a_thread_remembers_both_answers() {
    for who in everybody() {
        let world = World::new(who);
        let (yes, no) = (
            answering(&world, "thread"),
            answering(&world, "deny-thread"),
        );
        let around = Around::NamespacesOff;
        let ask = |thread: &str, answer: &str| {
            touch(
                &world,
                around,
                &["--thread", thread, "--approve-cmd", answer],
            )
        };
        assert_eq!(ask("one", &yes).code, 0);
        assert!(made(&world));
        // Nobody is asked again, and it is said all the same.
        let again = touch(&world, around, &["--thread", "one"]);
        assert_eq!((again.code, made(&world)), (0, true), "{again:?}");
        assert!(again.errors.contains("OUTSIDE the sandbox"), "{again:?}");
        assert_eq!(touch(&world, around, &["--thread", "two"]).code, 125);
        assert_eq!(ask("three", &no).code, 125);
        assert_eq!(ask("three", &yes).code, 125, "it was told not to");
        assert!(!made(&world));
        assert_eq!(questions(&world).len(), 2);
        // Where the sandbox can be made, the thread's answer changes nothing.
        let inside = touch(&world, Around::Nothing, &["--thread", "one"]);
        assert_ne!(inside.code, 0, "{inside:?}");
        assert!(!made(&world));
        // It is taken back like every other grant.
        let revoke = ["grants", "revoke", "--fallback", "--thread", "one"];
        assert_eq!(world.run(Around::Nothing, &revoke).code, 0);
        assert_eq!(touch(&world, around, &["--thread", "one"]).code, 125);
        let add = ["grants", "add", "--fallback", "--thread", "one"];
        assert_eq!(world.run(Around::Nothing, &add).code, 0);
        assert_eq!(touch(&world, around, &["--thread", "one"]).code, 0);
        assert!(made(&world));
        let always = world.run(Around::Nothing, &["grants", "add", "--fallback"]);
        assert_eq!(always.code, 2, "nobody keeps it for always: {always:?}");
        // Running outside when asked for it is another thing.
        let add = ["grants", "add", "--unsandboxed", "--thread", "four"];
        assert_eq!(world.run(Around::Nothing, &add).code, 0);
        assert_eq!(touch(&world, around, &["--thread", "four"]).code, 125);
        assert!(!made(&world));
    }
}

#[test]
fn no_is_no_and_trying_again_ends() {
    for who in everybody() {
        let world = World::new(who);
        for word in ["deny", "always", "thread", "yes"] {
            let answer = answering(&world, word);
            let ran = touch(&world, Around::PivotRefused, &["--approve-cmd", &answer]);
            assert_eq!(ran.code, 125, "{word}: {ran:?}");
            assert!(!made(&world), "{word}");
        }
        let before = questions(&world).len();
        let answer = answering(&world, "retry");
        let ran = touch(&world, Around::NamespacesOff, &["--approve-cmd", &answer]);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(!made(&world));
        let asked = &questions(&world)[before..];
        assert_eq!(asked.len(), 10);
        let last = asked[9]["answers"].as_array().unwrap();
        assert!(!last.contains(&"retry".into()), "{last:?}");
    }
}

#[test]
fn settings_and_flags_forbid_it() {
    for who in everybody() {
        let world = World::new(who);
        let yes = answering(&world, "once");
        let around = Around::NamespacesOff;
        // Somebody who names a minimum is not asked for less.
        let require = ["--require", "namespaces", "--approve-cmd", &yes];
        let ran = touch(&world, around, &require);
        assert_eq!((ran.code, made(&world)), (125, false), "{ran:?}");
        assert!(questions(&world).is_empty());
        // A path that somebody hides is seen once at most, and never because of an earlier answer.
        let hidden = world.project().join("hidden");
        fs::write(&hidden, "").unwrap();
        let hide = ["--hide", hidden.to_str().unwrap(), "--thread", "t"];
        let flags = [&hide[..], &["--approve-cmd", &yes]].concat();
        let add = ["grants", "add", "--fallback", "--thread", "t"];
        assert_eq!(world.run(Around::Nothing, &add).code, 0);
        let ran = touch(&world, around, &hide);
        assert_eq!((ran.code, made(&world)), (125, false), "{ran:?}");
        let ran = touch(&world, around, &flags);
        assert_eq!((ran.code, made(&world)), (0, true), "{ran:?}");
        let asked = questions(&world);
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0]["scopes"], serde_json::json!(["once"]));
        // Never is never.
        let settings = world.project().parent().unwrap().join(".config/ringfence");
        fs::create_dir_all(&settings).unwrap();
        let never = r#"{ "agent": { "sandbox_permissions": { "allow_unsandboxed": "never" } } }"#;
        fs::write(settings.join("settings.json"), never).unwrap();
        let ran = touch(&world, around, &["--approve-cmd", &yes]);
        assert_eq!((ran.code, made(&world)), (125, false), "{ran:?}");
        assert!(ran.errors.contains("allow_unsandboxed"), "{ran:?}");
        let ran = touch(&world, around, &["--thread", "t"]);
        assert_eq!((ran.code, made(&world)), (125, false), "{ran:?}");
        assert_eq!(questions(&world).len(), 1, "nobody was asked");
    }
}

/// A project that asks for more than the host can do does not get less: where nothing but its own
/// file stands in the way, the command runs in the sandbox or not at all.
#[test]
fn a_project_cannot_bring_it_about() {
    for who in everybody() {
        let world = World::new(who);
        let yes = answering(&world, "once");
        let add = ["grants", "add", "--fallback", "--thread", "t"];
        assert_eq!(world.run(Around::Nothing, &add).code, 0);
        let settings = world.project().join(".ringfence");
        fs::create_dir(&settings).unwrap();
        for limit in [
            r#"{"limits":{"memory":"64GiB"}}"#,
            r#"{"limits":{"processes":9999}}"#,
        ] {
            fs::write(settings.join("settings.json"), limit).unwrap();
            for flags in [&["--thread", "t"][..], &["--approve-cmd", &yes]] {
                let ran = touch(&world, Around::Nothing, flags);
                assert_ne!(ran.code, 0, "{limit}: {ran:?}");
                assert!(!made(&world), "{limit}");
            }
        }
        assert!(questions(&world).is_empty());
        // The answer that was kept is one: without the file it counts where it should.
        fs::remove_dir_all(&settings).unwrap();
        let ran = touch(&world, Around::NamespacesOff, &["--thread", "t"]);
        assert_eq!((ran.code, made(&world)), (0, true), "{ran:?}");
    }
}

/// Whoever asks can be ended while somebody thinks about it, even after a launch that failed half-way.
#[test]
fn it_can_be_ended_while_somebody_is_asked() {
    for who in everybody() {
        for around in [Around::NamespacesOff, Around::PivotRefused] {
            let world = World::new(who);
            let yes = answering(&world, "once");
            let alive = world.project().join("alive");
            // It answers only after a while in which whoever asks was never gone.
            let line = format!(
                "kill -TERM $PPID; for i in $(seq 300); do kill -0 $PPID 2>/dev/null || exit; sleep 0.1; done; : > {}; {yes}",
                alive.display()
            );
            let ran = touch(&world, around, &["--approve-cmd", &line]);
            assert_eq!(ran.code, 143, "{around:?}: {ran:?}");
            assert!(!made(&world), "{around:?}: {ran:?}");
            assert!(!there(&alive), "{around:?}: it was not ended");
        }
    }
}

/// A yes is for the command that was shown.
#[test]
fn what_changes_while_somebody_is_asked_is_asked_again() {
    for who in everybody() {
        let world = World::new(who);
        let yes = answering(&world, "once");
        let script = world.project().join("script");
        let made = outside(&world).join("made");
        let good = format!("touch {}\n", made.display());
        fs::write(&script, &good).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o666)).unwrap();
        let swap = format!(
            "test -e asked-before && exit 1; : > asked-before; echo '# other' >> {}; {yes}",
            script.display()
        );
        let words = ["run", "--approve-cmd", &swap, "--", "sh", "script"];
        let ran = world.run(Around::NamespacesOff, &words);
        assert_eq!(ran.code, 125, "{ran:?}");
        assert!(!there(&made));
        assert!(ran.errors.contains("something changed"), "{ran:?}");
        let words = ["run", "--approve-cmd", &yes, "--", "sh", "script"];
        let ran = world.run(Around::NamespacesOff, &words);
        assert_eq!((ran.code, there(&made)), (0, true), "{ran:?}");
    }
}
