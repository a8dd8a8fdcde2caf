//! A home with a project in it, and the program called from there.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A home, a project, a key that must not be read.
pub(crate) struct World {
    _directory: TempDir,
    root: PathBuf,
}

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) errors: String,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// Not below a temporary directory, wherever this is built: a session has its own of those, and the plan
    /// for a home that lies in one is another.
    pub(crate) fn lasting() -> Self {
        let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let temporary = |path: &Path| {
            let path = fs::canonicalize(path).unwrap_or_default();
            ["/tmp", "/var/tmp", "/dev/shm"]
                .iter()
                .any(|place| path.starts_with(place))
        };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let others = [Some(PathBuf::from("/var/lib")), home];
        let mut others = others.into_iter().flatten();
        let other = others.find(|place| {
            let made = || tempfile::tempdir_in(place).is_ok();
            temporary(built) && !temporary(place) && made()
        });
        Self::below(other.as_deref().unwrap_or(built))
    }

    /// In a directory that every user may enter.
    pub(crate) fn public() -> Self {
        Self::below(Path::new("/tmp"))
    }

    fn below(parent: &Path) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("world")
            .tempdir_in(parent)
            .unwrap();
        let everybody = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), everybody).unwrap();
        let world = Self {
            root: fs::canonicalize(directory.path()).unwrap(),
            _directory: directory,
        };
        world.write("home/.ssh/id_ed25519", "a key\n");
        world.write("home/project/Cargo.toml", "");
        world.write("home/project/src/main.rs", "fn main() {}\n");
        world
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("home/project")
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn user_settings(&self, text: impl AsRef<[u8]>) -> PathBuf {
        self.write("home/.config/ringfence/settings.json", text)
    }

    pub(crate) fn project_settings(&self, text: impl AsRef<[u8]>) -> PathBuf {
        self.write("home/project/.ringfence/settings.json", text)
    }

    /// The program, called from the project with nothing in its environment but the home.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringfence"));
        command
            .env_clear()
            .env("HOME", self.home())
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Ran {
        self.ran(&self.command().args(arguments).output().unwrap())
    }

    /// Runs with descriptor 5 open for events; returns what was answered and every event.
    pub(crate) fn run_with_events(&self, arguments: &[&str]) -> (Ran, Vec<serde_json::Value>) {
        let events = self.root().join("events");
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", "exec 5>\"$1\"; shift; exec \"$@\"", "sh"])
            .arg(&events)
            .arg(env!("CARGO_BIN_EXE_ringfence"))
            .args(arguments)
            .env_clear()
            .env("HOME", self.home())
            .current_dir(self.project())
            .stdin(Stdio::null());
        let ran = self.ran(&command.output().unwrap());
        let text = fs::read_to_string(&events).unwrap();
        let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (ran, events.collect())
    }

    /// A copy of the program that every user may run.
    #[cfg(target_os = "linux")]
    pub(crate) fn copied_program(&self) -> PathBuf {
        let program = self.root().join("ringfence");
        // By another process: one that forks while we write would keep it from being run.
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_ringfence")).arg(&program);
        assert!(copy.status().unwrap().success());
        program
    }

    pub(crate) fn ran(&self, output: &Output) -> Ran {
        Ran {
            code: output.status.code(),
            out: self.redact(&output.stdout),
            errors: self.redact(&output.stderr),
        }
    }

    fn redact(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let project = self.project();
        text.replace(project.to_str().unwrap(), "[PROJECT]")
            .replace(self.home().to_str().unwrap(), "[HOME]")
            .replace(self.root.to_str().unwrap(), "[WORLD]")
    }
}

impl Ran {
    /// Everything, for a golden file.
    pub(crate) fn golden(&self) -> String {
        let code = self.code.unwrap();
        let mut text = format!("exit {code}\n");
        for (name, stream) in [("stdout", &self.out), ("stderr", &self.errors)] {
            if !stream.is_empty() {
                let _ = write!(text, "--- {name}\n{stream}");
            }
        }
        text
    }

    /// The same without what depends on the machine: which system files exist, and so how many
    /// rules there are and how wide the columns.
    pub(crate) fn golden_without_machine(&self) -> String {
        let mut text = String::new();
        for line in self.golden().lines() {
            let item = line.trim_start().trim_start_matches("- ");
            let of_machine = item.starts_with('/')
                || item.starts_with("[HOME]: read and execute (preset agent)");
            if !of_machine || item.starts_with("//") {
                text.push_str(&without_counts(&squeeze(line)));
                text.push('\n');
            }
        }
        text
    }
}

/// Runs of spaces inside a line become two: columns are as wide as their longest entry.
pub(crate) fn squeeze(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let mut out = line[..indent].to_owned();
    let mut rest = line[indent..].split("  ").filter(|part| !part.is_empty());
    out.push_str(rest.next().unwrap_or_default().trim());
    for part in rest {
        out.push_str("  ");
        out.push_str(part.trim());
    }
    out
}

/// `with 12 mounts` becomes `with N mounts`.
fn without_counts(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let counted = ["mounts", "paths", "protected", "rules", "rules,"];
    let words = words.iter().enumerate().map(|(index, word)| {
        let next = words.get(index + 1).copied().unwrap_or_default();
        let number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
        if number && counted.contains(&next) {
            "N"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}
