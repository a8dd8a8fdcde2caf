//! Surroundings, made for real, and the program called inside them.
//!
//! A test calls its own executable again with one test to run ([`stage`]), so that the process
//! that forks has no other thread at work. The child it makes becomes the user, arranges the
//! surroundings and starts the program; what that prints goes to files.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringfence_sys::landlock::{self, AccessFs, Handled, Restrict, Ruleset};
use ringfence_sys::namespaces::{self, IdMap, Namespaces};
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::seccomp::{self, Load, SockFilter};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Ended;
use ringfence_sys::{Subject, process, signals};

/// A uid that owns nothing on any machine.
const PLAIN: u32 = 54_321;

/// Who calls the program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Who {
    /// Whoever runs the tests; with a root that is root.
    Caller,
    /// A user without rights.
    Plain,
}

/// What is around the program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Around {
    /// What is around the tests.
    Nothing,
    /// A filter that answers to Landlock's calls as a kernel without it does.
    LandlockHidden,
    /// A filter that lets Landlock tell its version and nothing more.
    LandlockPretends,
    /// As many layers of Landlock as the kernel allows.
    LandlockFull,
    /// A filter with a listener.
    Listener,
    /// A filter that hides mounting by descriptor.
    MountCallsHidden,
    /// A filter that refuses new namespaces, as those of containers do.
    NamespacesFiltered,
    /// A user namespace that allows no others.
    NamespacesOff,
    /// Both: no namespaces, and a Landlock that only pretends.
    NeitherWorks,
    /// A filter that refuses a call that no probe makes and every launch does.
    PivotRefused,
}

const ALL: [Around; 10] = [
    Around::Nothing,
    Around::LandlockHidden,
    Around::LandlockPretends,
    Around::LandlockFull,
    Around::Listener,
    Around::MountCallsHidden,
    Around::NamespacesFiltered,
    Around::NamespacesOff,
    Around::NeitherWorks,
    Around::PivotRefused,
];

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) errors: String,
}

/// A project of a user's own, with a copy of the program in it.
#[derive(Debug)]
pub(crate) struct World {
    who: Who,
    directory: tempfile::TempDir,
}

/// Everybody that a test can call the program as.
///
/// A plain user who runs the tests cannot become root: the missing half is announced, and is a
/// failure where `RINGFENCE_MUST_HAVE` names `root`.
pub(crate) fn everybody() -> Vec<Who> {
    if rustix::process::geteuid().is_root() {
        return vec![Who::Caller, Who::Plain];
    }
    let must = std::env::var("RINGFENCE_MUST_HAVE").unwrap_or_default();
    assert!(!must.contains("root"), "this run must have root");
    eprintln!("NOT RUN: the half of this test that needs root");
    vec![Who::Caller]
}

impl World {
    pub(crate) fn new(who: Who) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("ringfence-doctor-")
            .tempdir_in("/tmp")
            .unwrap();
        let world = Self { who, directory };
        fs::create_dir(world.project()).unwrap();
        for place in [world.directory.path(), &world.project()] {
            fs::set_permissions(place, fs::Permissions::from_mode(0o777)).unwrap();
        }
        // Where the build is may be nobody else's to enter, and is not always granted inside.
        copy(Path::new(env!("CARGO_BIN_EXE_ringfence")), &world.program());
        copy(&std::env::current_exe().unwrap(), &world.path("stage"));
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.project().join("ringfence")
    }

    /// A file that a command was told to make.
    pub(crate) fn made(&self, name: &str) -> bool {
        fs::symlink_metadata(self.project().join(name)).is_ok()
    }

    /// Calls the program from the project, inside such surroundings.
    pub(crate) fn run(&self, around: Around, arguments: &[&str]) -> Ran {
        let number = ALL.iter().position(|known| *known == around).unwrap();
        for name in ["out", "errors"] {
            let file = self.path(name);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        }
        let output = Command::new(self.path("stage"))
            .args(["--exact", "stage::stage", "--test-threads=1", "--nocapture"])
            .env(AROUND, number.to_string())
            .env(WHO, format!("{:?}", self.who))
            .env(WORLD, self.directory.path())
            .env(ARGUMENTS, arguments.join("\n"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let code = text.lines().find_map(|line| line.strip_prefix(CODE));
        let Some(code) = code.and_then(|code| code.parse().ok()) else {
            panic!("{text}{}", String::from_utf8_lossy(&output.stderr));
        };
        Ran {
            code,
            out: fs::read_to_string(self.path("out")).unwrap(),
            errors: fs::read_to_string(self.path("errors")).unwrap(),
        }
    }
}

/// In a process of its own: were the copy open for writing in this one, a child that another test
/// forks at that moment would hold it open, and nothing could execute it until that child execs.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

const AROUND: &str = "RINGFENCE_TEST_AROUND";
const WHO: &str = "RINGFENCE_TEST_WHO";
const WORLD: &str = "RINGFENCE_TEST_WORLD";
const ARGUMENTS: &str = "RINGFENCE_TEST_ARGUMENTS";
/// Begins the line on which the program's status comes back.
const CODE: &str = "\u{1}status ";

/// Not a test of its own: the process that another test calls to change what is around it.
#[test]
fn stage() {
    let Ok(number) = std::env::var(AROUND) else {
        return;
    };
    let world = PathBuf::from(std::env::var_os(WORLD).unwrap());
    let open = |name| File::create(world.join(name)).unwrap();
    let mut command = Command::new(world.join("project/ringfence"));
    command
        .args(std::env::var(ARGUMENTS).unwrap().lines())
        .env_clear()
        .env("HOME", &world)
        .env("PATH", "/usr/bin:/bin")
        .current_dir(world.join("project"))
        .stdin(Stdio::null())
        .stdout(open("out"))
        .stderr(open("errors"));
    let mut scene = Scene {
        around: ALL[number.parse::<usize>().unwrap()],
        plain: std::env::var(WHO).unwrap() == format!("{:?}", Who::Plain),
        command,
    };
    let child = Spawn::new(Memory::Copied).start(&mut scene, act).unwrap();
    match child.wait().unwrap() {
        Ended::Exited(code) => println!("\n{CODE}{code}"),
        Ended::Killed { signal } => panic!("killed by {signal}"),
    }
}

struct Scene {
    around: Around,
    plain: bool,
    command: Command,
}

/// In the child. It may allocate: no other thread of ours was at work when it was made.
fn act(subject: &Subject, scene: &mut Scene) -> u8 {
    if scene.plain {
        process::become_user(subject, PLAIN, PLAIN).unwrap();
        process::set_dumpable(subject, process::Dumpable::Yes).unwrap();
    }
    let _kept = arrange(subject, scene.around);
    // The program begins as from a shell: a process that was just born has every signal blocked.
    signals::reset(subject).unwrap();
    let status = scene.command.status().unwrap();
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap()).unwrap()
}

/// Changes what is around the calling process; what is returned must live as long as it should.
fn arrange(subject: &Subject, around: Around) -> Option<std::os::fd::OwnedFd> {
    let load = |program: &[SockFilter]| {
        process::no_new_privs(subject).unwrap();
        seccomp::load(subject, program, Load::empty()).unwrap();
    };
    match around {
        Around::Nothing => {}
        Around::LandlockHidden => load(&answering(ENOSYS, &[444, 445, 446])),
        Around::LandlockPretends => load(&answering(ENOSYS, &[446])),
        Around::LandlockFull => fill_landlock(subject),
        Around::Listener => {
            process::no_new_privs(subject).unwrap();
            let program = answering(ENOSYS, &[NEVER_CALLED]);
            return Some(seccomp::load_with_listener(subject, &program, Load::empty()).unwrap());
        }
        Around::MountCallsHidden => load(&answering(ENOSYS, &[428, 429, 442])),
        Around::PivotRefused => load(&answering(EPERM, &[PIVOT_ROOT])),
        Around::NamespacesFiltered => load(&refusing_namespaces()),
        Around::NeitherWorks => {
            arrange(subject, Around::NamespacesOff);
            arrange(subject, Around::LandlockPretends);
        }
        Around::NamespacesOff => {
            let user = rustix::process::geteuid().as_raw();
            let group = rustix::process::getegid().as_raw();
            let proc_dir = ProcDir::open().unwrap();
            namespaces::unshare(subject, Namespaces::USER).unwrap();
            let (user, group) = (IdMap::same(user), IdMap::same(group));
            namespaces::map_ids(subject, &proc_dir, user, group).unwrap();
            fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
        }
    }
    None
}

/// Every layer denies something that nobody here does.
fn fill_landlock(subject: &Subject) {
    const MOST_LAYERS: usize = 16;
    process::no_new_privs(subject).unwrap();
    let handled = Handled {
        fs: AccessFs::MAKE_BLOCK,
        ..Handled::default()
    };
    for _ in 0..MOST_LAYERS {
        let rules = Ruleset::new(landlock::abi().unwrap(), handled).unwrap();
        rules.restrict_self(subject, Restrict::empty()).unwrap();
    }
}

#[cfg(target_arch = "x86_64")]
const PIVOT_ROOT: u32 = 155;
#[cfg(target_arch = "aarch64")]
const PIVOT_ROOT: u32 = 41;

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
/// A number that is no system call.
const NEVER_CALLED: u32 = 999;

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_ANY: u16 = 0x45;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const NUMBER: u32 = 0;
const FIRST_ARGUMENT: u32 = 16;

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> SockFilter {
    SockFilter { code, jt, jf, k }
}

fn answering(errno: u32, numbers: &[u32]) -> Vec<SockFilter> {
    let mut program = vec![instruction(LOAD, 0, 0, NUMBER)];
    for number in numbers {
        program.push(instruction(IF_EQUAL, 0, 1, *number));
        program.push(instruction(RETURN, 0, 0, ERRNO | errno));
    }
    program.push(instruction(RETURN, 0, 0, ALLOW));
    program
}

/// As the filters of containers do it: `clone3` is said not to exist, since its flags lie in
/// memory; `clone` and `unshare` are judged by theirs.
fn refusing_namespaces() -> Vec<SockFilter> {
    #[cfg(target_arch = "x86_64")]
    const CLONE_UNSHARE: [u32; 2] = [56, 272];
    #[cfg(target_arch = "aarch64")]
    const CLONE_UNSHARE: [u32; 2] = [220, 97];
    const CLONE3: u32 = 435;
    let [clone, unshare] = CLONE_UNSHARE;
    let every = Namespaces::all().difference(Namespaces::TIME).bits();
    vec![
        instruction(LOAD, 0, 0, NUMBER),
        instruction(IF_EQUAL, 5, 0, CLONE3),
        instruction(IF_EQUAL, 1, 0, clone),
        instruction(IF_EQUAL, 0, 2, unshare),
        instruction(LOAD, 0, 0, FIRST_ARGUMENT),
        instruction(IF_ANY, 2, 0, every),
        instruction(RETURN, 0, 0, ALLOW),
        instruction(RETURN, 0, 0, ERRNO | ENOSYS),
        instruction(RETURN, 0, 0, ERRNO | EPERM),
    ]
}

/// Nothing here may touch the machine: the switch that is turned is one of the namespace's own.
pub(crate) fn most_user_namespaces() -> String {
    fs::read_to_string(Path::new("/proc/sys/user/max_user_namespaces")).unwrap()
}
