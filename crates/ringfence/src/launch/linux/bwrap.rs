//! A session whose namespaces and mounts are made by the system's bubblewrap.
//!
//! For hosts where only that program may create user namespaces. It is found at fixed paths and
//! nowhere else, must belong to root, and is refused if running it would give it rights that we do
//! not have ourselves. All it is told goes through a descriptor, with every path in a place where
//! only a path can stand; its environment is empty, and its words go to us and not to the user.
//!
//! It makes namespaces, mounts and the loopback interface, takes every capability away, and becomes
//! our second stage, which looks at all of this before it goes on ([`Expected`]).
//!
//! Two things differ from a root of our own. Mounts cannot forbid running what may be read: that is
//! Landlock's part alone, and where Landlock cannot hold it the plan names a gap. And what the
//! host mounts later below a granted tree may show up inside; Landlock holds it as the tree.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ringfence_core::path::AbsPath;
use ringfence_core::plan::{self, Act, NetworkNamespace, Step};
use ringfence_core::text::printable_bytes;
use ringfence_sys::exec::{self, StringArray};
use ringfence_sys::files::{self, CWD, Kind, OpenFlags, Resolve};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Child;
use ringfence_sys::{Errno, Pid, Signal, Subject, descriptors, process, signals, sockets};
use rustix::fs::{MemfdFlags, Mode, fcntl_add_seals, fgetxattr, memfd_create};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};

use super::acts::Ready;
use super::expected::Expected;
use super::handover;
use super::init::Inside;
use super::options::Options;
use super::root::Text;
use super::second::{GREETING, MOST_PRIVATE, SEALS};
use crate::approve::bound::Captured;
use crate::launch::{HelperFault, LaunchError, StepName};
use crate::shim;
use crate::track::group::SessionGroup;

/// Where a bubblewrap of the system can be; no other is ever run.
const PLACES: [&str; 2] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap"];

/// What this machine has at the fixed places, for a plan.
pub fn system_bwrap() -> plan::Bwrap {
    for path in PLACES {
        match vet(Path::new(path)) {
            Ok(_) => return plan::Bwrap::Usable { path: path.into() },
            Err(HelperFault::Setuid | HelperFault::Capabilities) => {
                return plan::Bwrap::Setuid { path: path.into() };
            }
            Err(_) => {}
        }
    }
    plan::Bwrap::Absent
}

/// Opens a program that only root can have made or changed, and that gains nothing by being run.
fn vet(path: &Path) -> Result<OwnedFd, HelperFault> {
    let open = |path: &Path, flags| {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| HelperFault::Absent)?;
        let plain = Resolve::NO_SYMLINKS | Resolve::NO_MAGICLINKS;
        files::openat2(CWD, &path, flags, Mode::empty(), plain).map_err(|_| HelperFault::Absent)
    };
    for above in path.ancestors().skip(1) {
        owned_by_root(&open(above, OpenFlags::PATH)?)?;
    }
    let program = open(path, OpenFlags::RDONLY | OpenFlags::NONBLOCK)?;
    let identity = files::identify(&program).map_err(|_| HelperFault::Absent)?;
    if identity.kind != Kind::Regular || identity.permissions & 0o111 == 0 {
        return Err(HelperFault::Absent);
    }
    if identity.permissions & 0o6000 != 0 {
        return Err(HelperFault::Setuid);
    }
    owned_by_root(&program)?;
    let mut attribute = [0_u8; 64];
    match fgetxattr(&program, c"security.capability", &mut attribute[..]) {
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(program),
        Ok(_) | Err(_) => Err(HelperFault::Capabilities),
    }
}

fn owned_by_root(file: &OwnedFd) -> Result<(), HelperFault> {
    let identity = files::identify(file).map_err(|_| HelperFault::Absent)?;
    let (user, group) = identity.owner;
    if user != 0 {
        return Err(HelperFault::Owner);
    }
    let by_others = identity.permissions & 0o002 != 0;
    let by_group = identity.permissions & 0o020 != 0 && group != 0;
    if by_others || by_group {
        return Err(HelperFault::Writable);
    }
    Ok(())
}

fn find(places: &[&str], project: &AbsPath) -> Result<OwnedFd, LaunchError> {
    let mut fault = (PathBuf::from(PLACES[0]), HelperFault::Absent);
    for place in places {
        let path = Path::new(place);
        let vetted = if path.starts_with(project.as_path()) {
            Err(HelperFault::InProject)
        } else {
            vet(path)
        };
        match vetted {
            Ok(program) => return Ok(program),
            Err(HelperFault::Absent) => {}
            // One that was tampered with is no reason to try the next.
            Err(why) => {
                fault = (path.to_owned(), why);
                break;
            }
        }
    }
    let (path, why) = fault;
    Err(LaunchError::Helper { path, why })
}

/// How much of an act bubblewrap does.
#[derive(Debug)]
pub(super) enum Taken {
    /// All but this, which is for the second stage.
    ButFor(Ready),
    /// Nothing.
    No,
    /// All of it.
    Whole,
}

/// A bubblewrap with all it will be told.
#[derive(Debug)]
pub(super) struct Bwrap {
    program: OwnedFd,
    /// This program, for the second stage.
    own: OwnedFd,
    line: Options,
    network: NetworkNamespace,
}

impl Bwrap {
    /// Finds it.
    pub(super) fn new(project: &AbsPath) -> Result<Self, LaunchError> {
        if !shim::can_be_asked() {
            return Err(LaunchError::Shim);
        }
        let program = find(&PLACES, project)?;
        let own = File::open("/proc/self/exe").map_err(|source| refused("open itself", source))?;
        Ok(Self {
            program,
            own: own.into(),
            line: Options::default(),
            network: NetworkNamespace::Own,
        })
    }

    /// Takes over from the launcher what bubblewrap does.
    pub(super) fn take(
        &mut self,
        act: &Act,
        texts: &[Text],
        granted: &[Captured],
    ) -> Result<Taken, LaunchError> {
        if let Act::Namespaces { network } = act {
            self.network = *network;
        }
        if matches!(act, Act::Ids | Act::Loopback) {
            return Ok(Taken::Whole);
        }
        if matches!(act, Act::Capabilities) {
            return Ok(Taken::ButFor(Ready::CapabilitiesGone));
        }
        let Act::Root { base, mounts } = act else {
            return Ok(Taken::No);
        };
        let refused = |source| refused("lay out the new root", source);
        self.line = Options::lay_out(*base, mounts, texts, granted).map_err(refused)?;
        let found = Expected::of_this_process(self.network);
        let mut expected = found.map_err(|errno| refused(errno.into()))?;
        expected.mounts = std::mem::take(&mut self.line.expected);
        Ok(Taken::ButFor(Ready::Checked(expected)))
    }

    /// Starts it, and through it the second stage.
    pub(super) fn start(
        self,
        inside: &Inside,
        group: Option<&SessionGroup>,
    ) -> Result<Started, LaunchError> {
        let laid_out = self.lay_out(inside);
        let (laid_out, outside) = laid_out.map_err(|source| refused("prepare bwrap", source))?;
        let acts = inside.acts.iter();
        let listeners = acts.filter_map(|(_, act)| act.listener().or_else(|| act.handed_over()));
        let passed = [&inside.voice.failure, &inside.end, &self.own]
            .into_iter()
            .chain(&inside.voice.timeline)
            .chain(listeners)
            .chain(inside.seat.desk.as_ref().map(|desk| &desk.socket))
            .chain(&laid_out.passed)
            .chain(&self.line.sources);
        let mut outer = Outer {
            parent: rustix::process::getpid(),
            program: self.program.as_fd(),
            arguments: &laid_out.arguments,
            environment: &laid_out.environment,
            streams: [&laid_out.null, &laid_out.null, &laid_out.words].map(AsFd::as_fd),
            passed: passed.map(AsFd::as_fd).collect(),
        };
        // Everything is laid out, so nothing of ours has to be copied.
        let mut spawn = Spawn::new(Memory::Shared);
        if let Some(group) = group {
            spawn = spawn.cgroup(group.as_fd());
        }
        let born = spawn.start(&mut outer, become_bwrap);
        let child = born.map_err(|errno| LaunchError::Act {
            step: StepName(Step::Namespaces),
            object: None,
            source: errno.into(),
        })?;
        Ok(Started { child, outside })
    }

    fn lay_out(&self, inside: &Inside) -> io::Result<(LaidOut, Outside)> {
        let null = OwnedFd::from(File::options().read(true).write(true).open("/dev/null")?);
        let (greeting, greeting_inside) = sockets::pair()?;
        let (words, words_inside) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut passed = Vec::new();
        for stream in inside.seat.streams() {
            // A closed stream cannot be passed on; nothing is what comes nearest to it.
            let copy = fcntl_dupfd_cloexec(stream, ABOVE_STANDARD);
            passed.push(copy.or_else(|_| fcntl_dupfd_cloexec(&null, ABOVE_STANDARD))?);
        }
        passed.push(greeting_inside);
        let numbers = passed.iter().map(|fd| fd.as_raw_fd().unsigned_abs());
        let mut orders: Vec<u8> = numbers.flat_map(u32::to_ne_bytes).collect();
        let written = handover::write(inside);
        orders.extend(written.ok_or_else(|| io::Error::other("an act cannot be handed over"))?);
        if orders.len() > handover::LARGEST {
            return Err(Errno::TOOBIG.into());
        }
        let orders = sealed(c"ringfence-orders", &orders)?;
        let options = sealed(c"ringfence-options", &self.line.options(self.network))?;
        let arguments = [
            "bwrap".to_owned(),
            "--args".to_owned(),
            options.as_raw_fd().to_string(),
            "--".to_owned(),
            format!("/proc/self/fd/{}", self.own.as_raw_fd()),
            shim::ASKED.to_owned(),
            orders.as_raw_fd().to_string(),
        ];
        let arguments: Result<Vec<CString>, _> = arguments.into_iter().map(CString::new).collect();
        passed.extend([orders, options]);
        let laid_out = LaidOut {
            null,
            words: words_inside,
            passed,
            arguments: StringArray::new(arguments?),
            environment: StringArray::new(Vec::new()),
        };
        Ok((laid_out, Outside { greeting, words }))
    }
}

const ABOVE_STANDARD: i32 = 3;

/// What only has to live until bubblewrap runs.
struct LaidOut {
    null: OwnedFd,
    words: OwnedFd,
    passed: Vec<OwnedFd>,
    arguments: StringArray,
    environment: StringArray,
}

/// All that the child needs to become bubblewrap.
struct Outer<'a> {
    parent: Pid,
    program: BorrowedFd<'a>,
    arguments: &'a StringArray,
    environment: &'a StringArray,
    streams: [BorrowedFd<'a>; 3],
    passed: Vec<BorrowedFd<'a>>,
}

/// Becomes bubblewrap. Runs between fork and exec.
///
/// All signals stay blocked: those of a terminal are for the command, and would otherwise end what
/// holds it.
fn become_bwrap(subject: &Subject, outer: &mut Outer<'_>) -> u8 {
    let ready = process::die_with_parent(subject, Some(outer.parent), Signal::KILL)
        .and_then(|()| signals::reset_dispositions(subject))
        .and_then(|()| descriptors::place_standard(subject, outer.streams))
        .and_then(|()| descriptors::close_from_at_exec(subject, ABOVE_STANDARD.unsigned_abs()))
        .and_then(|()| {
            for fd in &outer.passed {
                descriptors::place(subject, *fd, fd.as_raw_fd())?;
            }
            Ok(())
        });
    if ready.is_ok() {
        let _ = exec::fexecve(subject, outer.program, outer.arguments, outer.environment);
    }
    // Its silence says it: no second stage will ever greet.
    FAILED
}

/// The status of a child that did not become bubblewrap.
const FAILED: u8 = 125;

/// A bubblewrap that runs.
pub(super) struct Started {
    pub(super) child: Child,
    pub(super) outside: Outside,
}

/// Our ends of what a second stage talks over until it is there.
pub(super) struct Outside {
    greeting: OwnedFd,
    words: OwnedFd,
}

/// What a second stage says first.
pub(super) struct Greeting {
    /// The first process inside.
    pub(super) process: OwnedFd,
    /// Devices of the file systems that only the session has.
    pub(super) private: Vec<(u32, u32)>,
}

impl Outside {
    /// Waits for the second stage; bubblewrap's own words say why there is none.
    pub(super) fn greeting(&self) -> Result<Greeting, LaunchError> {
        let mut message = [0; 1 + 8 * MOST_PRIVATE];
        let received = sockets::receive(&self.greeting, &mut message)
            .map_err(|errno| refused("hear from the second stage", errno.into()))?;
        let [process, ..] = received.descriptors;
        let text = message.get(..received.length).unwrap_or_default();
        match (process, text.split_first()) {
            (Some(process), Some((&GREETING, private))) => Ok(Greeting {
                process,
                private: private.chunks_exact(8).filter_map(device).collect(),
            }),
            _ => Err(refused(
                "set the session up with bwrap",
                io::Error::other(self.last_words()),
            )),
        }
    }

    fn last_words(&self) -> String {
        const MOST: usize = 512;
        let mut text = [0; MOST];
        // Nobody is left to write, so this does not wait.
        let count = rustix::io::retry_on_intr(|| rustix::io::read(&self.words, &mut text));
        let text = text.get(..count.unwrap_or(0)).unwrap_or_default();
        match text.trim_ascii() {
            b"" => "it ended without a word".to_owned(),
            text => printable_bytes(text),
        }
    }
}

fn device(bytes: &[u8]) -> Option<(u32, u32)> {
    let (major, minor) = bytes.split_at_checked(4)?;
    let word = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
    Some((word(major)?, word(minor)?))
}

fn refused(what: &str, source: io::Error) -> LaunchError {
    LaunchError::Prepare {
        what: what.to_owned(),
        source,
    }
}

/// A file in memory that nobody can change any more.
fn sealed(name: &CStr, bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl_add_seals(&file, SEALS)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A copy of some program, in a directory that only its owner can change.
    struct Copy(tempfile::TempDir);

    impl Copy {
        fn new() -> Self {
            let directory = tempfile::tempdir_in("/var/lib")
                .or_else(|_| tempfile::tempdir())
                .unwrap();
            let copy = Self(directory);
            std::fs::copy("/bin/true", copy.path()).unwrap();
            copy.with_mode(0o755)
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("bwrap")
        }

        fn with_mode(self, mode: u32) -> Self {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(self.path(), mode).unwrap();
            self
        }

        fn fault(&self) -> Option<HelperFault> {
            vet(&self.path()).err()
        }
    }

    fn root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn one_that_only_root_can_change_is_taken() {
        let expected = (!root()).then_some(HelperFault::Owner);
        assert_eq!(Copy::new().fault().is_some(), expected.is_some());
    }

    #[test]
    fn a_setuid_or_setgid_one_is_refused() {
        for mode in [0o4755, 0o2755, 0o6711] {
            let fault = Copy::new().with_mode(mode).fault();
            let expected = if root() {
                HelperFault::Setuid
            } else {
                fault.unwrap()
            };
            assert_eq!(fault, Some(expected), "{mode:o}");
        }
    }

    #[test]
    fn one_that_others_can_change_is_refused() {
        for mode in [0o757, 0o777] {
            let fault = Copy::new().with_mode(mode).fault();
            let expected = if root() {
                HelperFault::Writable
            } else {
                fault.unwrap()
            };
            assert_eq!(fault, Some(expected), "{mode:o}");
        }
        let copy = Copy::new();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(copy.0.path(), open).unwrap();
        assert!(copy.fault().is_some(), "its directory can be changed");
    }

    #[test]
    fn one_of_somebody_else_is_refused() {
        let copy = Copy::new();
        if root() {
            std::os::unix::fs::chown(copy.path(), Some(54_321), None).unwrap();
        }
        assert!(matches!(
            copy.fault(),
            Some(HelperFault::Owner | HelperFault::Writable)
        ));
    }

    #[test]
    fn a_link_or_a_directory_is_not_one() {
        let copy = Copy::new();
        let link = copy.0.path().join("link");
        std::os::unix::fs::symlink("bwrap", &link).unwrap();
        assert!(vet(&link).is_err());
        assert!(vet(copy.0.path()).is_err());
        assert!(vet(&copy.0.path().join("absent")).is_err());
    }

    #[test]
    fn one_in_the_project_is_refused() {
        let copy = Copy::new();
        let path = copy.path();
        let project = AbsPath::parse(copy.0.path()).unwrap();
        let found = find(&[path.to_str().unwrap()], &project);
        assert!(matches!(
            found,
            Err(LaunchError::Helper {
                why: HelperFault::InProject,
                ..
            })
        ));
    }

    #[test]
    fn a_bad_one_is_not_passed_over_for_the_next() {
        if !root() {
            return;
        }
        let (bad, good) = (Copy::new().with_mode(0o4755), Copy::new());
        let (bad_path, good_path) = (bad.path(), good.path());
        let elsewhere = AbsPath::parse("/nowhere").unwrap();
        let both = [bad_path.to_str().unwrap(), good_path.to_str().unwrap()];
        assert!(find(&both[1..], &elsewhere).is_ok());
        assert!(find(&["/absent/bwrap", both[1]], &elsewhere).is_ok());
        assert!(find(&both, &elsewhere).is_err());
    }

    #[test]
    fn a_program_that_never_asks_cannot_be_a_second_stage() {
        let elsewhere = AbsPath::parse("/nowhere").unwrap();
        assert!(matches!(Bwrap::new(&elsewhere), Err(LaunchError::Shim)));
    }
}
