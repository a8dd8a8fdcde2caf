//! What is written down about a session, so that it can be found from outside.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ringfence_core::plan::Plan;
use ringfence_sys::Errno;
use rustix::fs::{FileType, fstat};
use serde::{Deserialize, Serialize};

use super::sweep::{self, GroupIdentity, Mark};
use super::{Session, State};
use crate::launch;

/// The version of the format; a record of another version is left alone.
pub(super) const VERSION: u32 = 1;

/// Records are small; whatever is larger is none of ours.
pub(super) const LARGEST: u64 = 64 * 1024;

/// How much of a command is kept.
const LONGEST_COMMAND: usize = 4096;

/// What a session is called, and what it is for.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// What nobody else is called.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// The project's root.
    pub project: PathBuf,
    /// Where the command starts.
    pub directory: PathBuf,
    /// The command.
    pub command: Vec<OsString>,
    /// What holds the walls up.
    pub engine: String,
}

impl About {
    /// Draws an id, and makes a name from the command if there is none.
    ///
    /// # Errors
    ///
    /// The kernel has no random numbers.
    pub fn new(name: Option<&str>, command: &[OsString]) -> std::io::Result<Self> {
        let id = format!("{:016x}", u64::from_ne_bytes(sweep::random()?));
        let name = name.map_or_else(|| made_name(command, &id), str::to_owned);
        Ok(Self {
            id,
            name,
            command: command.to_vec(),
            ..Self::default()
        })
    }

    /// A session that nobody gave a name; `None` where it cannot be written down.
    pub(crate) fn unnamed(command: &launch::Command, project: &Path, plan: &Plan) -> Option<Self> {
        let mut words = vec![command.program.clone()];
        words.extend(command.arguments.iter().cloned());
        let about = Self::new(None, &words).ok()?;
        Some(Self {
            project: project.to_owned(),
            directory: command.directory.clone(),
            engine: plan.engine().to_string(),
            ..about
        })
    }
}

/// A session, as it is written down.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    pub(super) version: u32,
    pub(super) id: String,
    pub(super) name: String,
    /// Who watches over it.
    pub(super) supervisor: i32,
    /// In which pid namespace the numbers of processes hold, and since which start of the machine.
    pub(super) world: World,
    /// Its first process, once there is one.
    pub(super) first: Option<ProcessIdentity>,
    pub(super) mark: Option<Mark>,
    pub(super) group: Option<GroupIdentity>,
    pub(super) tmp: Option<DirectoryIdentity>,
    pub(super) project: String,
    pub(super) directory: String,
    pub(super) command: String,
    pub(super) engine: String,
    pub(super) linger: bool,
    /// Milliseconds since 1970.
    pub(super) started: u64,
}

impl Record {
    pub(super) fn new(about: &About, world: World) -> Self {
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let mut command = String::new();
        for word in &about.command {
            if !command.is_empty() {
                command.push(' ');
            }
            command.push_str(&word.to_string_lossy());
            if command.len() > LONGEST_COMMAND {
                command = command.chars().take(LONGEST_COMMAND / 4).collect();
                command.push('…');
                break;
            }
        }
        Self {
            version: VERSION,
            id: about.id.clone(),
            name: about.name.clone(),
            supervisor: rustix::process::getpid().as_raw_nonzero().get(),
            world,
            first: None,
            mark: None,
            group: None,
            tmp: None,
            project: about.project.to_string_lossy().into_owned(),
            directory: about.directory.to_string_lossy().into_owned(),
            command,
            engine: about.engine.clone(),
            linger: false,
            started: started.map_or(0, |since| {
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            }),
        }
    }

    /// The session for people to look at, with how many processes and how much memory it has.
    pub(super) fn describe(&self, state: State, processes: usize, memory: u64) -> Session {
        Session {
            id: self.id.clone(),
            name: self.name.clone(),
            state,
            supervisor: self.supervisor,
            project: PathBuf::from(&self.project),
            directory: PathBuf::from(&self.directory),
            command: self.command.clone(),
            engine: self.engine.clone(),
            linger: self.linger,
            started: self.started(),
            processes,
            memory,
        }
    }

    pub(super) fn started(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.started)
    }

    /// How far its world is from ours.
    pub(super) fn apart(&self) -> Result<Apart, Errno> {
        let before = sweep::running_for()
            .and_then(|time| SystemTime::now().checked_sub(time))
            .is_some_and(|machine| self.started() < machine);
        Ok(self.world.seen_from(&World::ours()?, before))
    }
}

/// `npm-3f2a`: what runs, and enough to tell two of them apart.
fn made_name(command: &[OsString], id: &str) -> String {
    let program = command.first().map(PathBuf::from).unwrap_or_default();
    let program = program.file_name().map(|name| name.to_string_lossy());
    let plain = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
    let program: String = program
        .unwrap_or_default()
        .chars()
        .filter(plain)
        .take(24)
        .collect();
    let program = if program.is_empty() {
        "session"
    } else {
        &program
    };
    format!("{program}-{}", id.get(..4).unwrap_or(id))
}

/// Where and when the numbers of processes mean something.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct World {
    /// The kernel's name for this start of the machine. It is not asked for as long as no number of a
    /// process is written down: everything else was drawn at random, and means the same for ever.
    pub(super) boot: Option<String>,
    /// The number of the pid namespace.
    pub(super) pids: u64,
}

impl World {
    /// Where we are, and when.
    pub(super) fn ours() -> Result<Self, Errno> {
        Self::here()?.now()
    }

    /// Where we are.
    pub(super) fn here() -> Result<Self, Errno> {
        let pids = sweep::pids()?;
        Ok(Self { boot: None, pids })
    }

    /// The same place, and when it is.
    pub(super) fn now(self) -> Result<Self, Errno> {
        let boot = Some(sweep::boot()?);
        Ok(Self { boot, ..self })
    }

    /// How it is to the world of whoever asks, for something that was written down when the machine
    /// had not been started yet, or after that.
    fn seen_from(&self, ours: &Self, before: bool) -> Apart {
        match &self.boot {
            Some(boot) if Some(boot) != ours.boot.as_ref() => Apart::Earlier,
            _ if self.pids == ours.pids => Apart::Not,
            // Numbers of pid namespaces begin anew with the machine, so ours may be another now.
            None if before => Apart::Earlier,
            _ => Apart::Elsewhere,
        }
    }
}

/// How far two worlds are apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Apart {
    /// Before the machine was started anew.
    Earlier,
    /// In another pid namespace.
    Elsewhere,
    /// They are one.
    Not,
}

/// A process, told from every other that ever gets its number.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessIdentity {
    pub(super) pid: i32,
    /// When it started, in ticks since the machine did.
    pub(super) start: u64,
}

impl ProcessIdentity {
    pub(super) fn of(pid: i32) -> Option<Self> {
        let start = sweep::start_of(pid)?;
        Some(Self { pid, start })
    }
}

/// A directory, told from every other that ever has its name.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DirectoryIdentity {
    pub(crate) path: PathBuf,
    /// The device and the number of the directory; zero until it is made.
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
}

impl DirectoryIdentity {
    /// One that is about to be made.
    #[cfg(target_os = "linux")]
    pub(crate) fn planned(path: PathBuf) -> Self {
        Self {
            path,
            device: (0, 0),
            inode: 0,
        }
    }

    /// One that we have just made, where nobody else can put another in its place.
    #[cfg(target_os = "linux")]
    pub(crate) fn at(path: PathBuf) -> Result<Self, Errno> {
        let found = rustix::fs::lstat(&path)?;
        Self::known(path, &found)
    }

    /// One that is there.
    pub(crate) fn of(path: PathBuf, directory: impl std::os::fd::AsFd) -> Result<Self, Errno> {
        let found = fstat(directory)?;
        Self::known(path, &found)
    }

    fn known(path: PathBuf, found: &rustix::fs::Stat) -> Result<Self, Errno> {
        if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            return Err(Errno::NOTDIR);
        }
        Ok(Self {
            path,
            device: sweep::device(found),
            inode: found.st_ino,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_is_a_place_and_a_time() {
        let world = |boot: Option<&str>, pids| World {
            boot: boot.map(str::to_owned),
            pids,
        };
        let ours = world(Some("a"), 1);
        for (other, before, apart) in [
            (world(Some("a"), 1), false, Apart::Not),
            (world(None, 1), false, Apart::Not),
            (world(None, 1), true, Apart::Not),
            (world(Some("a"), 2), false, Apart::Elsewhere),
            (world(Some("a"), 2), true, Apart::Elsewhere),
            (world(None, 2), false, Apart::Elsewhere),
            (world(None, 2), true, Apart::Earlier),
            (world(Some("b"), 1), false, Apart::Earlier),
            (world(Some("b"), 2), false, Apart::Earlier),
        ] {
            assert_eq!(other.seen_from(&ours, before), apart, "{other:?} {before}");
        }
    }

    #[test]
    fn a_name_is_made_of_the_command_and_can_be_typed() {
        for (command, expected) in [
            (&["/usr/bin/npm", "test"][..], "npm-abcd"),
            (&["../\u{1b}]0;x"], "0x-abcd"),
            (&[], "session-abcd"),
            (&["--"], "session-abcd"),
        ] {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            let name = made_name(&command, "abcdef01");
            assert_eq!(name, expected);
        }
    }
}
