//! Runs a test's body in a forked process, as root and as a plain user.
//!
//! A test first runs itself again in a process with a single thread: other tests of the runner
//! may hold locks of the standard library at the moment of a fork, and in the child they would
//! be held for ever. In that process every body gets a fork of its own, in which it may
//! allocate and panic. A panic's text and place travel back through a pipe.

use std::cell::Cell;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use ringfence_sys::{Subject, process};

/// A uid that owns nothing on any machine.
pub(crate) const PLAIN: u32 = 54_321;

/// Who a body runs as.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Who {
    /// Whoever runs the tests; with a root that is root.
    Caller,
    /// A user without rights.
    Plain,
}

/// Names the variable that tells a test that it runs alone.
const ALONE: &str = "RINGFENCE_SYS_TEST_ALONE";

thread_local! {
    static DELEGATED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this process runs one test on one thread. If not, runs the calling test in one
/// that does, fails if it fails, and answers no: there is nothing left to do here.
pub(crate) fn alone() -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    if DELEGATED.replace(true) {
        return false;
    }
    let thread = std::thread::current();
    let name = thread
        .name()
        .expect("libtest names the thread after the test");
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // Without the count a misspelt name would pass for a test.
    let passed = output.status.success() && text.contains("1 passed");
    assert!(passed, "{text}");
    if text.contains("NOT RUN") {
        eprintln!("{text}");
    }
    false
}

/// Runs `body` once as the caller and, if that is root, once as a plain user.
///
/// A test run by a plain user cannot become root: the missing half is announced, and is a
/// failure where `RINGFENCE_MUST_HAVE` names `root`.
pub(crate) fn as_each_user(body: impl Fn(&Subject, Who)) {
    if !alone() {
        return;
    }
    in_child(|subject| body(subject, Who::Caller));
    if is_root() {
        in_child(|subject| {
            become_plain(subject);
            body(subject, Who::Plain);
        });
    } else {
        note_missing_root();
    }
}

/// Runs `body` as root, or announces that it could not.
pub(crate) fn as_root(body: impl FnOnce(&Subject)) {
    if !alone() {
        return;
    }
    if is_root() {
        in_child(body);
    } else {
        note_missing_root();
    }
}

/// Runs `body` as a user without rights: the caller, unless that is root.
pub(crate) fn as_plain(body: impl FnOnce(&Subject)) {
    in_child(|subject| {
        if is_root() {
            become_plain(subject);
        }
        body(subject);
    });
}

pub(crate) fn is_root() -> bool {
    ids().0 == 0
}

/// The effective user and group.
pub(crate) fn ids() -> (u32, u32) {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    (uid.as_raw(), gid.as_raw())
}

pub(crate) fn become_plain(subject: &Subject) {
    process::become_user(subject, PLAIN, PLAIN).unwrap();
    // The kernel closes a process to its own user when it changes uid; exec would open it
    // again, and the tests stand for an exec'd program.
    process::set_dumpable(subject, process::Dumpable::Yes).unwrap();
}

fn note_missing_root() {
    let must = std::env::var("RINGFENCE_MUST_HAVE").unwrap_or_default();
    assert!(
        !must.contains("root"),
        "this run must have root, and has not"
    );
    eprintln!("NOT RUN: the half of this test that needs root");
}

/// Runs `body` in a forked child and fails here if it fails there.
pub(crate) fn in_child(body: impl FnOnce(&Subject)) {
    if !alone() {
        return;
    }
    let (mut reader, writer) = pipe();
    // SAFETY: the child runs the body and leaves by `_exit`; it never returns into the frames
    // of the test runner. The C library's own fork leaves its locks usable.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        drop(reader);
        let report = writer.try_clone().unwrap();
        panic::set_hook(Box::new(move |info| {
            let _written = write!(&report, "{info}");
        }));
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
            let subject = Subject::this_process().unwrap();
            body(&subject);
        }));
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(i32::from(outcome.is_err())) }
    }
    drop(writer);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let mut status = 0;
    // SAFETY: waits for the child made above; `status` is a live int.
    let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(reaped, pid);
    assert_eq!(status, 0, "in the child: {text}");
}

pub(crate) fn pipe() -> (File, File) {
    let mut fds = [0; 2];
    // SAFETY: the kernel fills the two ints.
    let rc = unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) };
    assert_eq!(rc, 0);
    // SAFETY: both are fresh and ours.
    fds.map(|fd| unsafe { File::from_raw_fd(fd) }).into()
}

/// A directory that the plain user may enter and write.
pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("ringfence-sys-")
            .permissions(std::fs::Permissions::from_mode(0o777))
            .tempdir()
            .unwrap();
        // The umask of the caller may have taken bits away.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file that everybody may read and write.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        path
    }

    /// A directory that everybody may write.
    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
        path
    }
}

/// Opens a path as a mere handle.
pub(crate) fn pin(path: impl AsRef<Path>) -> OwnedFd {
    let path = std::ffi::CString::new(path.as_ref().as_os_str().as_encoded_bytes()).unwrap();
    ringfence_sys::files::pin(ringfence_sys::files::CWD, &path).unwrap()
}

pub(crate) fn os_error(result: std::io::Result<impl Sized>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

/// A line of `/proc/self/status`, such as `CapEff`.
pub(crate) fn status(name: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.expect("a known line").trim().to_owned()
}

#[test]
fn failure_in_the_child_fails_the_test() {
    if !alone() {
        return;
    }
    let caught = panic::catch_unwind(|| in_child(|_| panic!("on purpose")));
    let text = caught.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("on purpose"), "{text}");
    assert!(text.contains("harness.rs"), "{text}");
}

#[test]
fn plain_user_is_plain() {
    as_plain(|_| {
        assert_ne!(File::open("/dev/null").unwrap().as_raw_fd(), -1);
        assert_eq!(os_error(File::open("/etc/shadow")), Some(libc::EACCES));
        assert_eq!(status("CapEff"), "0000000000000000");
    });
}
