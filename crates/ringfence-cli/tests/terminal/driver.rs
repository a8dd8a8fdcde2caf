//! A terminal with a program on it, and whoever sits in front of it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ringfence_sys::terminal::{self, Pty, Size};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::termios::{LocalModes, Termios, tcgetattr};

/// Longer than anything here takes, on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// A uid that owns nothing on any machine.
const PLAIN: u32 = 54_321;

/// A home and a project, and who works there.
pub(crate) struct World {
    _directory: tempfile::TempDir,
    root: PathBuf,
    user: Option<u32>,
}

/// Runs a test as whoever runs the tests, and once more as a plain user if that is root.
pub(crate) fn for_each_user(body: impl Fn(&World)) {
    body(&World::new(None));
    if rustix::process::geteuid().is_root() {
        body(&World::new(Some(PLAIN)));
    } else {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let _ = writeln!(std::io::stderr(), "NOT RUN, it needs root: {name}");
    }
}

impl World {
    fn new(user: Option<u32>) -> Self {
        // Not below a temporary directory: a session has its own of those.
        let parents = ["/var/lib", env!("CARGO_TARGET_TMPDIR")];
        let directory = parents.iter().find_map(|parent| {
            let mut builder = tempfile::Builder::new();
            builder
                .prefix("ringfence-terminal-")
                .tempdir_in(parent)
                .ok()
        });
        let directory = directory.unwrap();
        let everybody = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), everybody).unwrap();
        let world = Self {
            root: fs::canonicalize(directory.path()).unwrap(),
            _directory: directory,
            user,
        };
        fs::create_dir_all(world.project()).unwrap();
        fs::write(world.project().join("Cargo.toml"), "").unwrap();
        // Another process copies: a fork beside us could keep the copy open for writing.
        let copied = Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_ringfence"))
            .arg(world.program())
            .status();
        assert!(copied.unwrap().success());
        world.own();
        world
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("home/project")
    }

    /// A copy that every user can run.
    pub(crate) fn program(&self) -> PathBuf {
        self.root.join("ringfence")
    }

    /// Gives the home to whoever works there.
    pub(crate) fn own(&self) {
        let Some(user) = self.user else {
            return;
        };
        for path in [self.home(), self.project()] {
            std::os::unix::fs::chown(&path, Some(user), Some(user)).unwrap();
        }
    }

    /// A program as the user, with few variables.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home())
            .env("SHELL", "/bin/bash")
            .env("TERM", "xterm")
            .env("LANG", "C.UTF-8")
            .current_dir(self.project());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    /// `ringfence` with arguments, on a terminal that controls it.
    pub(crate) fn ringfence(&self, arguments: &[&str]) -> Terminal {
        self.ringfence_typed_ahead("", arguments)
    }

    /// The same where somebody has typed something before.
    pub(crate) fn ringfence_typed_ahead(&self, keys: &str, arguments: &[&str]) -> Terminal {
        let program = self.program();
        let mut words = vec![program.to_str().unwrap()];
        words.extend(arguments);
        Terminal::typed_ahead(self, Control::Terminal, keys, &words)
    }

    /// An ordinary shell outside, on a terminal, in which `rf` is the program.
    pub(crate) fn shell(&self) -> Terminal {
        let mut outer = Terminal::with(self, Control::Terminal, &["bash", "--norc", "--noprofile"]);
        let program = self.program();
        outer.line(&format!(
            "PS1='out''side> '; alias rf={}",
            program.display()
        ));
        outer.expect("outside> ");
        outer
    }
}

/// What a terminal is to the program on it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Control {
    /// Somebody else's, that it may only use.
    Borrowed,
    /// The one that controls its jobs.
    Terminal,
}

/// The outer end of a terminal.
pub(crate) struct Terminal {
    pub(crate) screen: File,
    /// Kept, so that modes can be looked at when nobody else has the terminal open.
    slave: OwnedFd,
    child: Child,
    shown: Vec<u8>,
    modes_before: String,
}

impl Terminal {
    pub(crate) fn with(world: &World, control: Control, words: &[&str]) -> Self {
        Self::typed_ahead(world, control, "", words)
    }

    /// The same where somebody has typed something before anything was started.
    pub(crate) fn typed_ahead(world: &World, control: Control, keys: &str, words: &[&str]) -> Self {
        let Pty { master, slave } = terminal::open_pty().unwrap();
        terminal::set_size(
            &master,
            Size {
                rows: 24,
                columns: 80,
            },
        )
        .unwrap();
        fcntl_setfl(&master, OFlags::RDWR | OFlags::NONBLOCK).unwrap();
        let mut command = world.command("setsid");
        if control == Control::Terminal {
            command.arg("--ctty");
        }
        command.arg("--wait").args(words);
        let stream = || Stdio::from(slave.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let mut screen = File::from(master);
        screen.write_all(keys.as_bytes()).unwrap();
        // Whoever is started may change them before anybody else gets to look.
        let modes_before = modes(&slave);
        Self {
            child: command.spawn().unwrap(),
            screen,
            slave,
            shown: Vec::new(),
            modes_before,
        }
    }

    /// Types something.
    pub(crate) fn keys(&mut self, keys: impl AsRef<[u8]>) {
        let deadline = Instant::now() + PATIENCE;
        let mut rest = keys.as_ref();
        while !rest.is_empty() {
            match self.screen.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                    assert!(Instant::now() < deadline, "nobody reads what is typed");
                    self.read(Duration::from_millis(10));
                }
            }
        }
    }

    /// Types a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.keys(format!("{line}\n"));
    }

    /// What is shown within a while; empty if nothing is, or the terminal has closed.
    fn read(&mut self, patience: Duration) -> usize {
        let timeout = rustix::event::Timespec {
            tv_sec: patience.as_secs().try_into().unwrap(),
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut watched = [PollFd::new(&self.screen, PollFlags::IN)];
        poll(&mut watched, Some(&timeout)).unwrap();
        let mut buffer = [0; 16 << 10];
        let count = (&self.screen).read(&mut buffer).unwrap_or(0);
        self.shown.extend_from_slice(&buffer[..count]);
        count
    }

    /// Waits until something is shown, and returns all that was shown until then.
    #[track_caller]
    pub(crate) fn expect(&mut self, wanted: &str) -> String {
        String::from_utf8_lossy(&self.expect_bytes(wanted)).into_owned()
    }

    /// The same, byte for byte.
    #[track_caller]
    pub(crate) fn expect_bytes(&mut self, wanted: &str) -> Vec<u8> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = find(&self.shown, wanted.as_bytes());
            if let Some(at) = found {
                let rest = self.shown.split_off(at + wanted.len());
                return std::mem::replace(&mut self.shown, rest);
            }
            let shown = self.last_shown();
            assert!(
                Instant::now() < deadline,
                "expected {wanted:?}, and was shown {shown:?}"
            );
            self.read(Duration::from_millis(50));
        }
    }

    fn last_shown(&self) -> String {
        let from = self.shown.len().saturating_sub(1000);
        String::from_utf8_lossy(&self.shown[from..]).into_owned()
    }

    /// Everything that is shown until nothing comes any more.
    pub(crate) fn rest(&mut self, quiet: Duration) -> Vec<u8> {
        while self.read(quiet) > 0 {}
        std::mem::take(&mut self.shown)
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        terminal::set_size(&self.screen, Size { rows, columns }).unwrap();
    }

    /// Types a line, again and again, until something is shown: for whoever may not be there yet to read.
    #[track_caller]
    pub(crate) fn line_until(&mut self, line: &str, wanted: &str) {
        let deadline = Instant::now() + PATIENCE;
        while find(&self.shown, wanted.as_bytes()).is_none() {
            assert!(Instant::now() < deadline, "expected {wanted:?}");
            self.line(line);
            let look = Instant::now();
            while look.elapsed() < Duration::from_millis(500)
                && find(&self.shown, wanted.as_bytes()).is_none()
            {
                self.read(Duration::from_millis(50));
            }
        }
        self.expect(wanted);
    }

    /// The modes of the terminal, in words that can be compared.
    pub(crate) fn modes(&self) -> String {
        modes(&self.slave)
    }

    /// Those that it had before anything was started on it.
    pub(crate) fn modes_before(&self) -> String {
        self.modes_before.clone()
    }

    /// Waits until somebody takes every key as it is: ringfence, that is, and no shell.
    #[track_caller]
    pub(crate) fn wait_until_taken(&self) {
        until("the terminal is taken", PATIENCE, || {
            let modes = tcgetattr(&self.slave).unwrap().local_modes;
            !modes.intersects(LocalModes::ICANON | LocalModes::ISIG | LocalModes::ECHO)
        });
    }

    /// What was typed and nobody has read.
    pub(crate) fn left_over(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.slave).unwrap()
    }

    /// Waits for the program's end, without reading what it shows.
    #[track_caller]
    pub(crate) fn end_unread(&mut self, patience: Duration) -> ExitStatus {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the program's end and reads what it shows; the exit status.
    #[track_caller]
    pub(crate) fn end(&mut self) -> i32 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.read(Duration::from_millis(10));
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            let shown = self.last_shown();
            assert!(Instant::now() < deadline, "it does not end: {shown:?}");
        }
    }

    /// Closes the terminal under the program.
    pub(crate) fn hang_up(&mut self) {
        let null = || {
            File::options()
                .read(true)
                .write(true)
                .open("/dev/null")
                .unwrap()
        };
        self.slave = null().into();
        self.screen = null();
    }

    /// The number of the process that `setsid` became or started.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Kills the program, or whatever is about to become it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The number of the program itself: `setsid` starts it as its child if it leads a group.
    pub(crate) fn program(&self) -> u32 {
        let children = children(self.process(), "ringfence");
        match (alive(self.process()), &children[..]) {
            (Some((name, _)), [program]) if name == "setsid" => *program,
            _ => self.process(),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn modes(terminal: &OwnedFd) -> String {
    let Termios {
        input_modes,
        output_modes,
        control_modes,
        local_modes,
        ..
    } = tcgetattr(terminal).unwrap();
    format!("{input_modes:?} {output_modes:?} {control_modes:?} {local_modes:?}")
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|part| part == wanted)
}

/// The name and the parent of a process, unless it is gone or nobody has waited for it yet.
fn alive(process: u32) -> Option<(String, u32)> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().to_owned())
    };
    let dead = field("State:")?.starts_with(['Z', 'X']);
    let parent = field("PPid:")?.parse().ok()?;
    (!dead).then_some((field("Name:")?, parent))
}

pub(crate) fn is_alive(process: u32) -> bool {
    alive(process).is_some()
}

/// The children of a process that have this name.
pub(crate) fn children(parent: u32, name: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap();
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|process| alive(*process) == Some((name.to_owned(), parent)))
        .collect()
}

/// Says something to whoever runs the tests.
pub(crate) fn say(text: &str) {
    // Whoever does not listen misses nothing that counts.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Sends a signal to a process, or to a whole group if the number is negative.
pub(crate) fn kill(signal: &str, process: i64) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), "--", &process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(what: &str, patience: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !holds() {
        assert!(
            Instant::now() < deadline,
            "{what}: it does not come to that"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a program is installed; what cannot be shown without it is said.
pub(crate) fn has(program: &str) -> bool {
    let places = ["/usr/bin", "/bin", "/usr/local/bin"];
    let found = places
        .iter()
        .any(|place| Path::new(place).join(program).is_file());
    if !found {
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        let _ = writeln!(std::io::stderr(), "NOT RUN, it needs {program}: {name}");
        let promised = std::env::var("RINGFENCE_MUST_HAVE").unwrap_or_default();
        assert!(!promised.split(',').any(|each| each == program));
    }
    found
}

/// The processes that sleep for this long: those that have become `sleep` already.
pub(crate) fn sleepers(mark: &str) -> Vec<u32> {
    processes_of(&["sleep", mark])
}

/// The processes with exactly these arguments.
pub(crate) fn processes_of(words: &[&str]) -> Vec<u32> {
    let wanted = words.join("\0") + "\0";
    let entries = fs::read_dir("/proc").unwrap();
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|process: &u32| {
            let line = fs::read(format!("/proc/{process}/cmdline"));
            line.is_ok_and(|line| line == wanted.as_bytes())
        })
        .collect()
}

/// Whether a process is stopped.
pub(crate) fn is_stopped(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status.contains("State:\tT")
}

/// The processes whose arguments hold a text.
pub(crate) fn processes_with(text: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap();
    let command_lines = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        fs::read(path.join("cmdline")).ok()
    });
    command_lines
        .filter(|line| find(line, text.as_bytes()).is_some())
        .count()
}
