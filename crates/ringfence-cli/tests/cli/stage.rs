//! A home of somebody's, with the program where he can run it; once for whoever runs the tests and, if
//! that is root, once for a user without rights.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::world::{Ran, World};

/// A uid that owns nothing on any machine.
pub(crate) const PLAIN: u32 = 54_321;
/// Longer than anything here takes, on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A home of somebody's, and the program where he can run it.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) program: PathBuf,
    user: Option<u32>,
}

pub(crate) fn for_each_user(body: impl Fn(&Stage)) {
    body(&Stage::new(None));
    if rustix::process::geteuid().is_root() {
        body(&Stage::new(Some(PLAIN)));
    }
}

impl Stage {
    pub(crate) fn new(user: Option<u32>) -> Self {
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

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.other(&self.program, arguments)
    }

    /// Another program, as the same user.
    pub(crate) fn other(
        &self,
        program: impl AsRef<std::ffi::OsStr>,
        arguments: &[&str],
    ) -> Command {
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

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.world.ran(&self.command(arguments).output().unwrap())
    }

    #[track_caller]
    pub(crate) fn done(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.errors);
        ran
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub(crate) fn list(&self) -> Vec<Value> {
        let ran = self.done(&["sessions", "list", "--json"]);
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(answer["version"], 1, "{answer}");
        answer["sessions"].as_array().unwrap().clone()
    }

    /// Waits until the sessions are these.
    #[track_caller]
    pub(crate) fn wait_for_sessions(&self, names: &[&str]) -> Vec<Value> {
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

    pub(crate) fn registry(&self) -> PathBuf {
        self.world.home().join(".local/state/ringfence/sessions")
    }

    pub(crate) fn records(&self) -> usize {
        fs::read_dir(self.registry()).map_or(0, Iterator::count)
    }

    pub(crate) fn log(&self) -> Vec<Value> {
        let path = self.world.home().join(".local/state/ringfence/log.jsonl");
        let text = fs::read_to_string(path).unwrap();
        // Of a line that is being written at this moment the beginning may be there already.
        let (whole, _) = text.rsplit_once('\n').unwrap_or_default();
        whole
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn give(&self, path: &Path) {
        if let Some(user) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(user)).unwrap();
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.user.is_none() && rustix::process::geteuid().is_root()
    }

    pub(crate) fn has_cgroup(&self) -> bool {
        self.run(&["doctor"])
            .out
            .contains("own cgroup            works")
    }
}

/// Processes that were started with this argument.
pub(crate) fn with_argument(word: &str) -> Vec<i32> {
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
pub(crate) fn odd_time() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    format!("{}.{}{next:03}", 300, std::process::id())
}

/// Fails the test unless everybody is gone within the two seconds that are promised. Of a while in which
/// this very process did not get to run only a moment counts: then nobody else ran either.
#[track_caller]
pub(crate) fn assert_gone(word: &str) {
    const MOMENT: Duration = Duration::from_millis(50);
    let mut left = Duration::from_secs(2);
    let mut looked = Instant::now();
    while !with_argument(word).is_empty() {
        assert!(!left.is_zero(), "{:?}", with_argument(word));
        std::thread::sleep(Duration::from_millis(10));
        left = left.saturating_sub(looked.elapsed().min(MOMENT));
        looked = Instant::now();
    }
}

#[track_caller]
pub(crate) fn wait_for_argument(word: &str) {
    wait_until("somebody has the argument", || {
        !with_argument(word).is_empty()
    });
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
