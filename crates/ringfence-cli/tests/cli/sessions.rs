//! Sessions from outside: seen, ended by name, lingering, killed, bounded and written down. Each
//! once as whoever runs the tests and, if that is root, once as a user without rights.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{Ran, World};

/// A uid that owns nothing on any machine.
const PLAIN: u32 = 54_321;
const PATIENCE: Duration = Duration::from_secs(20);

/// A home of somebody's, and the program where he can run it.
struct Stage {
    world: World,
    program: PathBuf,
    user: Option<u32>,
}

fn for_each_user(body: impl Fn(&Stage)) {
    body(&Stage::new(None));
    if rustix::process::geteuid().is_root() {
        body(&Stage::new(Some(PLAIN)));
    }
}

impl Stage {
    fn new(user: Option<u32>) -> Self {
        let world = World::public();
        let program = world.root().join("ringfence");
        // By another process: one that forks while we write would keep it from being run.
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_ringfence"))
            .arg(&program)
            .status();
        assert!(copied.unwrap().success());
        if let Some(user) = user {
            let owned = Command::new("chown")
                .args(["-R", &format!("{user}:{user}")])
                .arg(world.home())
                .status();
            assert!(owned.unwrap().success());
        }
        Self {
            world,
            program,
            user,
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.other(&self.program, arguments)
    }

    /// Another program, as the same user.
    fn other(&self, program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.world.home())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .current_dir(self.world.project())
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.world.ran(&self.command(arguments).output().unwrap())
    }

    #[track_caller]
    fn done(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.errors);
        ran
    }

    fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn list(&self) -> Vec<Value> {
        let ran = self.done(&["sessions", "list", "--json"]);
        serde_json::from_str(&ran.out).unwrap()
    }

    /// Waits until the sessions are these.
    #[track_caller]
    fn wait_for_sessions(&self, names: &[&str]) -> Vec<Value> {
        let start = Instant::now();
        loop {
            let sessions = self.list();
            let found: Vec<&str> = sessions
                .iter()
                .map(|session| session["name"].as_str().unwrap())
                .collect();
            if found == names {
                return sessions;
            }
            assert!(start.elapsed() < PATIENCE, "{found:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn registry(&self) -> PathBuf {
        self.world.home().join(".local/state/ringfence/sessions")
    }

    fn records(&self) -> usize {
        fs::read_dir(self.registry()).map_or(0, Iterator::count)
    }

    fn log(&self) -> Vec<Value> {
        let path = self.world.home().join(".local/state/ringfence/log.jsonl");
        let text = fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn give(&self, path: &Path) {
        if let Some(user) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        }
    }

    fn has_cgroup(&self) -> bool {
        self.run(&["doctor"])
            .out
            .contains("own cgroup            works")
    }
}

/// Processes that were started with this argument.
fn with_argument(word: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        if line
            .split(|byte| *byte == 0)
            .any(|part| part == word.as_bytes())
        {
            found.push(pid);
        }
    }
    found
}

/// A number of seconds that only one test sleeps for.
fn odd_time() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{}.{}{next:03}", 300, std::process::id())
}

#[track_caller]
fn assert_gone(word: &str) {
    let start = Instant::now();
    while !with_argument(word).is_empty() {
        assert!(
            start.elapsed() < Duration::from_secs(2),
            "{:?}",
            with_argument(word)
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[track_caller]
fn wait_for_argument(word: &str) {
    let start = Instant::now();
    while with_argument(word).is_empty() {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn sessions_are_listed_and_ended_by_name() {
    for_each_user(|stage| {
        let odd = odd_time();
        let script = format!("setsid sleep {odd} & setsid sleep {odd} & wait");
        for flags in [
            &["--preset", "agent"][..],
            &["--preset", "track"],
            &["--engine", "landlock", "--on-gap", "report"],
        ] {
            let mut arguments = vec!["run", "--name", "one"];
            arguments.extend(flags);
            arguments.extend(["--", "sh", "-c", &script]);
            let mut one = stage.start(&arguments);
            stage.wait_for_sessions(&["one"]);
            let mut two = stage.start(&["run", "--name", "two", "--", "sleep", "60"]);
            let sessions = stage.wait_for_sessions(&["one", "two"]);
            assert_eq!(sessions[0]["state"], "live");
            assert!(sessions[0]["command"].as_str().unwrap().contains(&odd));
            assert_eq!(sessions[0]["project"], "[PROJECT]");
            wait_for_argument(&odd);
            let listed = stage.list();
            assert!(listed[0]["processes"].as_u64().unwrap() >= 3, "{listed:?}");
            assert!(listed[0]["memory"].as_u64().unwrap() > 4096, "{listed:?}");
            let shown = stage.done(&["sessions", "list"]).out;
            assert!(
                shown.contains("one") && shown.contains("[PROJECT]"),
                "{shown}"
            );

            stage.done(&["sessions", "kill", "one"]);
            assert_gone(&odd);
            assert_eq!(one.wait().unwrap().code(), Some(137), "{flags:?}");
            assert_eq!(two.try_wait().unwrap(), None, "the other was ended");
            assert_eq!(stage.run(&["sessions", "kill", "one"]).code, Some(1));
            stage.done(&["sessions", "kill", "two"]);
            two.wait().unwrap();
            stage.wait_for_sessions(&[]);
            assert_eq!(stage.records(), 0);
        }
    });
}

#[test]
fn what_lingers_stays_until_it_is_ended() {
    for_each_user(|stage| {
        for flags in [&["--preset", "agent"][..], &["--preset", "track"]] {
            let odd = odd_time();
            let script = format!("sleep {odd} > /dev/null 2>&1 & exit 3");
            // The control: without the flag it ends with the command.
            let mut arguments = vec!["run"];
            arguments.extend(flags);
            arguments.extend(["--", "sh", "-c", &script]);
            assert_eq!(stage.run(&arguments).code, Some(3));
            assert_gone(&odd);

            arguments.splice(1..1, ["--linger", "--name", "web"]);
            let ran = stage.run(&arguments);
            assert_eq!(ran.code, Some(3), "{}", ran.errors);
            assert!(ran.errors.contains("sessions kill web"), "{}", ran.errors);
            let sessions = stage.wait_for_sessions(&["web"]);
            assert_eq!(sessions[0]["linger"], true);
            assert!(!with_argument(&odd).is_empty());
            stage.done(&["sessions", "kill", "web"]);
            assert_gone(&odd);
            stage.wait_for_sessions(&[]);

            // It ends by itself when nobody is left, and when its supervisor is killed.
            let script = "sleep 0.2 & exit 0";
            let mut short = vec!["run", "--linger", "--name", "short"];
            short.extend(flags);
            short.extend(["--", "sh", "-c", script]);
            stage.done(&short);
            stage.wait_for_sessions(&[]);
            let ran = stage.run(&arguments);
            assert_eq!(ran.code, Some(3), "{}", ran.errors);
            let sessions = stage.wait_for_sessions(&["web"]);
            let supervisor = sessions[0]["supervisor"].as_i64().unwrap();
            kill(i32::try_from(supervisor).unwrap());
            assert_gone(&odd);
            stage.done(&["sessions", "clean"]);
            stage.wait_for_sessions(&[]);
        }
    });
}

fn kill(pid: i32) {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// What a session without a pid namespace could leave: a directory, a cgroup, a record.
fn leftovers(stage: &Stage, tmp: &Path) -> (usize, usize, usize) {
    let count = |path: &Path, prefix: &str| {
        fs::read_dir(path).map_or(0, |entries| {
            entries
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
                .count()
        })
    };
    (stage.records(), count(tmp, "ringfence-"), groups_of(stage))
}

/// The cgroups that this stage's records name and that are there.
fn groups_of(stage: &Stage) -> usize {
    let records = fs::read_dir(stage.registry())
        .into_iter()
        .flatten()
        .flatten();
    records
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .filter_map(|text| serde_json::from_str::<Value>(&text).ok())
        .filter(|record| {
            let path = record["group"]["path"].as_str();
            path.is_some_and(|path| Path::new(path).is_dir())
        })
        .count()
}

#[test]
fn what_a_killed_supervisor_leaves_goes_with_the_next_start() {
    for_each_user(|stage| {
        let tmp = stage.world.home().join("tmp");
        fs::create_dir(&tmp).unwrap();
        stage.give(&tmp);
        for flags in [
            &["--preset", "track"][..],
            &["--engine", "landlock", "--on-gap", "report"],
        ] {
            let odd = odd_time();
            let script = format!("echo x > \"${{TMPDIR:-.}}/file\"; setsid sleep {odd} & wait");
            let mut arguments = vec!["run"];
            arguments.extend(flags);
            arguments.extend(["--", "sh", "-c", &script]);
            let mut supervisor = stage
                .command(&arguments)
                .env("TMPDIR", &tmp)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            wait_for_argument(&odd);
            supervisor.kill().unwrap();
            supervisor.wait().unwrap();
            // Its processes go at once.
            assert_gone(&odd);
            let (records, directories, groups) = leftovers(stage, &tmp);
            assert_eq!(records, 1);
            assert_eq!(directories, usize::from(flags.contains(&"landlock")));
            assert_eq!(groups, usize::from(stage.has_cgroup()));
            let group = fs::read_dir(stage.registry()).unwrap().next().unwrap();
            let record = fs::read_to_string(group.unwrap().path()).unwrap();
            let record: Value = serde_json::from_str(&record).unwrap();

            stage.done(&["run", "--", "true"]);

            assert_eq!(leftovers(stage, &tmp), (0, 0, 0));
            if let Some(group) = record["group"]["path"].as_str() {
                assert!(!Path::new(group).is_dir(), "{group}");
            }
        }
    });
}

/// Somebody who is only called like a leftover, or has its number, is left alone.
#[test]
fn leftovers_are_known_by_more_than_their_names() {
    for_each_user(|stage| {
        stage.done(&["run", "--", "true"]);
        let mut supervisor = stage.start(&["run", "--preset", "track", "--", "sleep", "60"]);
        stage.wait_for_sessions(&stage.names(1));
        let record = fs::read_dir(stage.registry()).unwrap().next().unwrap();
        let record = record.unwrap().path();
        let text = fs::read_to_string(&record).unwrap();
        supervisor.kill().unwrap();
        supervisor.wait().unwrap();
        stage.done(&["sessions", "clean"]);

        let mut canary = stage.other("sleep", &["60"]).spawn().unwrap();
        let innocent = stage.world.home().join("innocent");
        fs::create_dir(&innocent).unwrap();
        fs::write(innocent.join("file"), "kept").unwrap();
        let mut forged: Value = serde_json::from_str(&text).unwrap();
        forged["first"]["pid"] = canary.id().into();
        forged["mark"] = 7.into();
        let metadata = fs::metadata(&innocent).unwrap();
        forged["tmp"] = serde_json::json!({
            "path": innocent,
            "device": [0, 0],
            "inode": metadata.ino() + 1,
        });
        if !forged["group"].is_null() {
            forged["group"]["path"] = "/sys/fs/cgroup/ringfence-0000000000000000".into();
        }
        let write = |text: &str| {
            fs::write(&record, text).unwrap();
            fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
            stage.give(&record);
        };
        write(&forged.to_string());

        stage.done(&["sessions", "clean"]);

        assert_eq!(canary.try_wait().unwrap(), None, "a stranger was ended");
        assert_eq!(fs::read_to_string(innocent.join("file")).unwrap(), "kept");
        assert_eq!(stage.records(), 0, "the record itself is done with");
        // The same without a number of its own: it was never finished, and is not empty.
        forged["tmp"]["inode"] = 0.into();
        write(&forged.to_string());
        stage.done(&["sessions", "clean"]);
        assert_eq!(fs::read_to_string(innocent.join("file")).unwrap(), "kept");
        // Nonsense is nobody's, and no reason to stop.
        for nonsense in ["", "{}", "[1", &"x".repeat(100_000)] {
            write(nonsense);
            stage.done(&["run", "--", "true"]);
            stage.done(&["sessions", "list"]);
        }
        fs::remove_file(&record).unwrap();
        symlink("/etc/passwd", &record).unwrap();
        stage.done(&["sessions", "clean"]);
        canary.kill().unwrap();
        canary.wait().unwrap();
    });
}

impl Stage {
    /// Names that were made from the command `sleep`: whatever they are.
    fn names(&self, count: usize) -> Vec<&'static str> {
        let start = Instant::now();
        while self.records() < count {
            assert!(start.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(5));
        }
        let sessions = self.list();
        sessions
            .iter()
            .map(|session| {
                let name = session["name"].as_str().unwrap();
                assert!(name.starts_with("sleep-"), "{name}");
                &*name.to_owned().leak()
            })
            .collect()
    }
}

#[test]
fn a_registry_that_others_could_write_is_not_used() {
    for_each_user(|stage| {
        stage.done(&["run", "--", "true"]);
        fs::set_permissions(stage.registry(), fs::Permissions::from_mode(0o777)).unwrap();
        let ran = stage.done(&["run", "--", "true"]);
        assert!(
            ran.errors.contains("that nobody else can enter"),
            "{}",
            ran.errors
        );
        assert_eq!(stage.records(), 0);
        assert_eq!(stage.run(&["sessions", "list"]).code, Some(1));
    });
}

#[test]
fn names_are_checked_before_anything_runs() {
    let stage = Stage::new(None);
    for bad in [
        "",
        "../x",
        "a b",
        "-x",
        ".",
        "a/b",
        "\u{1b}",
        &"x".repeat(65),
    ] {
        let name = format!("--name={bad}");
        assert_eq!(stage.run(&["run", &name, "--", "true"]).code, Some(2));
    }
}

#[test]
fn a_limit_that_ends_a_command_is_named() {
    for_each_user(|stage| {
        let report = stage.world.home().join("report.json");
        let path = report.to_str().unwrap();
        let ended = |limit: &str, command: &[&str]| {
            let mut arguments = vec!["run", "--report", path, "--limit", limit, "--"];
            arguments.extend(command);
            let ran = stage.run(&arguments);
            let text = fs::read_to_string(&report).unwrap();
            let report: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(report["exit_status"], ran.code.unwrap());
            (ran, report)
        };
        let (ran, report) = ended("wall=1", &["sleep", "60"]);
        assert_eq!(ran.code, Some(124));
        assert_eq!(report["cause"], "wall-time");
        let (ran, report) = ended("cpu=1", &["sh", "-c", "while :; do :; done"]);
        assert_eq!(ran.code, Some(128 + 24), "{}", ran.errors);
        assert_eq!(
            (&report["cause"], &report["limit"]),
            (&"limit".into(), &"cpu".into())
        );
        assert!(ran.errors.contains("--limit cpu="), "{}", ran.errors);
        let big = ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=3"];
        let (ran, report) = ended("file-size=1MiB", &big);
        assert_eq!(ran.code, Some(128 + 25), "{}", ran.errors);
        assert_eq!(report["limit"], "file-size");
        let (ran, report) = ended("files=16", &["sh", "-c", "ulimit -n"]);
        assert_eq!(
            (ran.out.as_str(), &report["cause"]),
            ("16\n", &"exited".into())
        );
        // The same signals without a limit are just signals.
        let (_, report) = ended("wall=60", &["sh", "-c", "kill -XCPU $$"]);
        assert_eq!(
            (&report["cause"], &report["signal"]),
            (&"killed".into(), &24.into())
        );
    });
}

#[test]
fn what_happens_is_written_down() {
    for_each_user(|stage| {
        let odd = "a\u{1b}]0;title\u{7}\u{202e}b\nc";
        stage.run(&["run", "--name", "first", "--", "sh", "-c", "exit 7", odd]);
        stage.run(&[
            "run", "--name", "second", "--limit", "wall=1", "--", "sleep", "9",
        ]);
        stage.run(&["run", "--name", "third", "--", "no-such-program"]);
        let path = stage.world.home().join(".local/state/ringfence/log.jsonl");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        let log = stage.log();
        let told: Vec<(&str, &str)> = log
            .iter()
            .map(|line| {
                let text = |key: &str| line[key].as_str().unwrap();
                (text("name"), text("event"))
            })
            .collect();
        assert_eq!(
            told,
            [
                ("first", "start"),
                ("first", "end"),
                ("second", "start"),
                ("second", "end"),
                ("third", "refused")
            ]
        );
        assert_eq!(log[0]["command"][3], odd);
        assert_eq!(log[0]["session"], log[1]["session"]);
        assert_ne!(log[0]["session"], log[2]["session"]);
        assert_eq!(
            (&log[1]["cause"], &log[1]["status"]),
            (&"exited".into(), &7.into())
        );
        assert_eq!(log[3]["cause"], "wall-time");

        let shown = stage.done(&["log"]).out;
        assert_eq!(shown.lines().count(), 5);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']));
        let first = stage.done(&["log", "--session", "first", "--json"]).out;
        assert_eq!(first.lines().count(), 2);
        assert!(
            first
                .lines()
                .all(|line| serde_json::from_str::<Value>(line).is_ok())
        );
        let id = log[2]["session"].as_str().unwrap();
        assert_eq!(stage.done(&["log", "--session", id]).out.lines().count(), 2);

        // A command cannot reach its own trail.
        let reach = "cat ~/.local/state/ringfence/log.jsonl; echo forged >> ~/.local/state/ringfence/log.jsonl; true";
        let tried = stage.done(&["run", "--", "sh", "-c", reach]);
        assert!(!tried.out.contains("session"), "{}", tried.out);
        assert!(!fs::read_to_string(&path).unwrap().contains("\nforged"));
    });
}

#[test]
fn the_trail_can_be_followed() {
    let stage = Stage::new(None);
    stage.done(&["run", "--name", "before", "--", "true"]);
    let mut follower = stage
        .command(&["log", "--follow", "--session", "after"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    stage.done(&["run", "--name", "after", "--", "true"]);
    let mut out = std::io::BufReader::new(follower.stdout.take().unwrap());
    let mut text = String::new();
    for _ in 0..2 {
        std::io::BufRead::read_line(&mut out, &mut text).unwrap();
    }
    assert!(text.contains("started") && text.contains("ended"), "{text}");
    assert!(!text.contains("before"), "{text}");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// A trail that cannot be written keeps nobody from working.
#[test]
fn a_trail_that_is_not_ours_is_not_written() {
    for_each_user(|stage| {
        let state = stage.world.home().join(".local/state/ringfence");
        stage.done(&["run", "--", "true"]);
        let path = state.join("log.jsonl");
        fs::remove_file(&path).unwrap();
        fs::write(stage.world.home().join("target"), "kept").unwrap();
        symlink(stage.world.home().join("target"), &path).unwrap();
        let ran = stage.done(&["run", "--", "true"]);
        assert!(ran.errors.contains("audit trail"), "{}", ran.errors);
        let target = fs::read_to_string(stage.world.home().join("target"));
        assert_eq!(target.unwrap(), "kept");
    });
}

/// Weaker tracking is said; where there is something better, nothing is.
#[test]
fn tracking_by_descent_is_said() {
    for_each_user(|stage| {
        let strong = stage.done(&["run", "--preset", "track", "--", "true"]);
        assert_eq!(strong.errors, "");
        if stage.has_cgroup() {
            return;
        }
        let script = format!(
            "ulimit -x 100; exec '{}' run --preset track -- true",
            stage.program.display()
        );
        let weak = stage.other("bash", &["-c", &script]).output().unwrap();
        let weak = stage.world.ran(&weak);
        assert_eq!(weak.code, Some(0), "{}", weak.errors);
        assert!(
            weak.errors.contains("tracked by descent only"),
            "{}",
            weak.errors
        );
    });
}

/// A command of preset `track` that turns on whoever watches it.
#[test]
fn killing_or_stopping_the_first_process_frees_nobody() {
    for_each_user(|stage| {
        for flags in [
            &["--preset", "track"][..],
            &["--engine", "landlock", "--on-gap", "report"],
        ] {
            for (attack, status) in [
                ("kill -9 $PPID; sleep 5", 137),
                ("kill -STOP $PPID; sleep 0.1; kill -9 $PPID; sleep 5", 137),
            ] {
                let odd = odd_time();
                let script = format!(
                    "(setsid sh -c '(setsid sleep {odd}) & exit' &); while ! pgrep -f {odd} > /dev/null; do :; done; {attack}"
                );
                let mut arguments = vec!["run"];
                arguments.extend(flags);
                arguments.extend(["--", "sh", "-c", &script]);
                let start = Instant::now();
                let ran = stage.run(&arguments);
                assert_eq!(ran.code, Some(status), "{flags:?} {attack}: {}", ran.errors);
                assert!(start.elapsed() < Duration::from_secs(4));
                assert_gone(&odd);
            }
        }
    });
}
