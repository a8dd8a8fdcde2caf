//! The processes of this Mac, for the loop that ends a session.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use ringfence_core::cleanup::{Identity, Life, Listed, ProcessTable, Standing};
use ringfence_core::kinfo;
use ringfence_core::seatbelt::{Fingerprint, Probe, SessionDirectory};
use ringfence_sys::{processes, seatbelt};
use rustix::process::{Pid, Signal, getuid, kill_process, kill_process_group};

/// The processes of this user, and the two points that tell the session's.
#[derive(Debug)]
pub(crate) struct Table {
    allowed: CString,
    denied: CString,
    group: Option<Pid>,
}

impl Table {
    /// For one session, and the process group it began with if that is its own.
    pub(crate) fn new(session: &SessionDirectory, group: Option<Pid>) -> Self {
        let points = session.points();
        let text = |path: &std::path::Path| CString::new(path.as_os_str().as_bytes());
        Self {
            // A path without a zero byte has such a text.
            allowed: text(points.allowed.as_path()).unwrap_or_default(),
            denied: text(points.denied.as_path()).unwrap_or_default(),
            group,
        }
    }

    /// The process of this number, if there is one.
    pub(crate) fn identity(pid: i32) -> Option<Identity> {
        let listed = read(&processes::of_number(pid).ok()?).ok()?;
        let listed = listed.into_iter().find(|listed| listed.process.pid == pid);
        listed.map(|listed| listed.process)
    }

    /// Whether the process of this number is under the session's profile.
    pub(super) fn fingerprint(&self, pid: i32) -> Fingerprint {
        let probe = |path| match seatbelt::may_read(pid, path) {
            seatbelt::Answer::Allowed => Probe::Allowed,
            seatbelt::Answer::Denied => Probe::Denied,
            seatbelt::Answer::Unknown => Probe::Unknown,
        };
        Fingerprint::of(probe(&self.allowed), probe(&self.denied))
    }
}

fn read(bytes: &[u8]) -> io::Result<Vec<Listed>> {
    kinfo::read(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

impl ProcessTable for Table {
    type Error = io::Error;

    fn end_group(&mut self) {
        if let Some(group) = self.group {
            // It may be gone, or hold nobody that may be ended: the loop looks at everybody anyway.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    fn list(&mut self) -> io::Result<Vec<Listed>> {
        read(&processes::of_user(getuid().as_raw())?)
    }

    fn recognise(&mut self, process: Identity) -> Standing {
        let fingerprint = self.fingerprint(process.pid);
        // Who is asked about afterwards is who was looked at before, if he is still there.
        let now = processes::of_number(process.pid).and_then(|bytes| read(&bytes));
        let alive = |listed: &Listed| listed.process == process && listed.life == Life::Running;
        match (now, fingerprint) {
            (Ok(now), _) if !now.iter().any(alive) => Standing::Gone,
            (Ok(_), Fingerprint::Other) => Standing::Elsewhere,
            (Ok(_), Fingerprint::Matches) => Standing::Here,
            (Err(_), _) => Standing::Gone,
        }
    }

    fn end(&mut self, process: Identity) {
        if let Some(pid) = Pid::from_raw(process.pid) {
            // It may be gone.
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn pause(&mut self, passes: u32) {
        // The dead need a moment to be counted as dead.
        let longest = Duration::from_millis(20);
        std::thread::sleep(longest.min(Duration::from_micros(200) * passes));
    }
}
