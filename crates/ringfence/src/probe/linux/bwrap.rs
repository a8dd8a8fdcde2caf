//! The bubblewrap of the system, at fixed places only.
//!
//! `PATH` is never asked: whoever can write a directory on it would decide what enforces the
//! policy. For the same reason a program that anybody but root could exchange is passed over.

use std::ffi::CStr;
use std::process::{Command, Stdio};

use ringfence_core::plan::Bwrap;
use ringfence_sys::files::{self, CWD, Kind};

/// Where a bubblewrap of the system may be.
const PLACES: [(&CStr, &str); 2] = [
    (c"/usr/bin/bwrap", "/usr/bin/bwrap"),
    (c"/usr/local/bin/bwrap", "/usr/local/bin/bwrap"),
];

/// The first one there is, by what its file says.
pub(super) fn find() -> Bwrap {
    for (place, path) in PLACES {
        let Ok(file) = files::pin(CWD, place) else {
            continue;
        };
        let Ok(identity) = files::identify(&file) else {
            continue;
        };
        let path = path.to_owned();
        match judge(identity.kind, identity.permissions, identity.owner.0) {
            Judgement::Ordinary if has_capabilities(&path) => return Bwrap::Setuid { path },
            Judgement::Ordinary => return Bwrap::Usable { path },
            Judgement::Privileged => return Bwrap::Setuid { path },
            Judgement::NotOurs => {}
        }
    }
    Bwrap::Absent
}

/// What a file's own data say about trusting it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Judgement {
    /// It is not a program of the system's.
    NotOurs,
    /// It runs as whoever starts it.
    Ordinary,
    /// It runs as somebody else.
    Privileged,
}

fn judge(kind: Kind, permissions: u16, owner: u32) -> Judgement {
    const SET_ID: u16 = 0o6000;
    const WRITABLE_BY_OTHERS: u16 = 0o022;
    const RUNNABLE: u16 = 0o111;
    let ours = kind == Kind::Regular
        && owner == 0
        && permissions & WRITABLE_BY_OTHERS == 0
        && permissions & RUNNABLE != 0;
    match (ours, permissions & SET_ID) {
        (false, _) => Judgement::NotOurs,
        (true, 0) => Judgement::Ordinary,
        (true, _) => Judgement::Privileged,
    }
}

/// Whether the file carries rights of root's without the setuid bit.
fn has_capabilities(path: &str) -> bool {
    let mut value = [0_u8; 64];
    rustix::fs::getxattr(path, c"security.capability", &mut value).is_ok_and(|length| length > 0)
}

/// Whether it can make what the engine needs: it runs itself inside and prints its version.
pub(super) fn try_out(path: &str) -> Result<(), String> {
    let arguments = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--",
        path,
        "--version",
    ];
    let output = Command::new(path)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or("it failed without a word");
    // The first sentence is the reason; what follows is advice for another program's users.
    let first = first.split(". ").next().unwrap_or(first);
    Err(ringfence_core::text::printable(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_that_root_alone_can_exchange_is_trusted() {
        for (kind, permissions, owner, expected) in [
            (Kind::Regular, 0o755, 0, Judgement::Ordinary),
            (Kind::Regular, 0o4755, 0, Judgement::Privileged),
            (Kind::Regular, 0o2755, 0, Judgement::Privileged),
            (Kind::Regular, 0o755, 1000, Judgement::NotOurs),
            (Kind::Regular, 0o775, 0, Judgement::NotOurs),
            (Kind::Regular, 0o757, 0, Judgement::NotOurs),
            (Kind::Regular, 0o644, 0, Judgement::NotOurs),
            (Kind::Directory, 0o755, 0, Judgement::NotOurs),
        ] {
            assert_eq!(judge(kind, permissions, owner), expected, "{permissions:o}");
        }
    }
}
