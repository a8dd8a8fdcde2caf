//! The audit trail: one line of JSON for each start, end, refusal, denial and decision.
//!
//! It lies in the user's state directory, readable by nobody else, and is only ever appended to,
//! each line in one write: two sessions never tear each other's lines. A file that has grown large
//! is put aside under a number, the oldest is forgotten. Nothing in it can draw on a terminal: what
//! does not show is written as an escape.
//!
//! A line that cannot be written never keeps a session from running or from ending.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringfence_core::plan::{Engine, Tracking};
use ringfence_core::policy::lists;
use ringfence_core::shown::shown_word;
use ringfence_core::text::{escape_json, printable_path};
use rustix::fs::OFlags;
use serde::Serialize;

use crate::decision::Decision;
use crate::launch::{Attempt, Cause, Outcome};
use crate::report::{Index, Name, Text, Time};

/// The version of the format. Within a version fields are added and never changed.
pub const VERSION: u32 = 1;

/// When a file is put aside.
const LARGE: u64 = 4 << 20;
/// How many files that were put aside are kept.
const KEPT: u32 = 3;
/// How much of a command is written down: a word, and all of it.
const LONGEST_WORD: usize = 1024;
const MOST_WORDS: usize = 64;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
#[non_exhaustive]
pub enum Event<'a> {
    /// Somebody asked for more than the policy gives, and somebody answered.
    Decision(&'a Decision),
    /// The session wanted something that it did not get, and ringfence itself said no.
    Denial(&'a Denial),
    /// The session is over.
    End(End<'a>),
    /// Nothing was started.
    Refused {
        /// What a shell was told.
        exit_status: u8,
        /// Why, in words.
        error: &'a str,
    },
    /// The command runs.
    Start(Start<'a>),
}

/// A command that runs.
#[derive(Clone, Debug, Serialize)]
pub struct Start<'a> {
    /// The project's root.
    pub project: Text<'a>,
    /// Where it runs.
    pub directory: Text<'a>,
    /// The command; long ones are cut short.
    pub command: Vec<Text<'a>>,
    /// What holds the walls up.
    pub engine: Engine,
    /// What finds every process again.
    pub tracking: Tracking,
    /// Rules that do not hold here.
    pub gaps: Vec<&'a str>,
    /// The number of the session's first process on this host.
    pub process: i32,
}

impl<'a> Start<'a> {
    /// The words of a command as far as they are written down.
    pub fn words(command: &'a [std::ffi::OsString]) -> Vec<Text<'a>> {
        let words = command.iter().take(MOST_WORDS);
        words.map(|word| Text(short(word))).collect()
    }
}

/// The beginning of a word that is too long.
fn short(word: &std::ffi::OsStr) -> &std::ffi::OsStr {
    match word.to_str() {
        Some(text) if text.len() > LONGEST_WORD => {
            let end = text.floor_char_boundary(LONGEST_WORD);
            text.get(..end).unwrap_or_default().as_ref()
        }
        None if word.len() > LONGEST_WORD => "(a long word that is no text)".as_ref(),
        Some(_) | None => word,
    }
}

/// A session that is over.
#[derive(Clone, Debug, Serialize)]
pub struct End<'a> {
    /// How the command ended.
    #[serde(flatten)]
    pub cause: Cause,
    /// What a shell was told.
    pub exit_status: u8,
    /// Protected names that appeared, and where they were put.
    pub names: Vec<Name<'a>>,
    /// Git indexes that it left and that somebody should know of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<Index<'a>>,
    /// How long it took.
    pub milliseconds: u64,
}

/// Something that a session did not get.
///
/// # Examples
///
/// ```
/// fn show(report: &ringfence::Report) {
///     for denial in &report.denials {
///         println!("{} ({} times); to allow it: {}", denial.target, denial.count, denial.fix);
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Denial {
    /// What kind of thing.
    pub what: Denied,
    /// Which one.
    pub target: String,
    /// How often it was asked for.
    pub count: u64,
    /// What would grant it, as one line, with every word that the command chose quoted for a shell; or that
    /// nothing does, and why.
    pub fix: String,
}

impl Denial {
    /// A protected name that somebody inside tried to make.
    #[doc(hidden)]
    pub fn of_name(path: &Path) -> Self {
        let target = printable_path(path);
        // The second is what would make a repository of the directory itself.
        let git =
            path.components().any(|part| part.as_os_str() == ".git") || path.ends_with("HEAD");
        let listed = lists::PROTECTED.iter().map(|(name, _)| name);
        let listed = listed
            .filter(|name| path.ends_with(name))
            .max_by_key(|name| name.len());
        let fix = match listed {
            _ if git => "--git full".to_owned(),
            Some(name) => format!("--allow-protected {name}"),
            // A name of somebody's own, or one that git would obey.
            None => format!("ringfence explain {}", shown_word(path.as_os_str()).text),
        };
        Self {
            what: Denied::Name,
            target,
            count: 1,
            fix,
        }
    }

    /// A file that somebody inside tried to write where nothing may be written.
    #[doc(hidden)]
    pub fn of_file(path: &Path) -> Self {
        let target = printable_path(path);
        Self {
            what: Denied::File,
            fix: format!("ringfence explain {target}"),
            target,
            count: 1,
        }
    }

    /// What the network gate refused; `None` for what it did not.
    #[doc(hidden)]
    pub fn at_gate(attempt: &Attempt) -> Option<Self> {
        if attempt.verdict != Outcome::Refused {
            return None;
        }
        let target = match attempt.port {
            0 => attempt.host.clone(),
            port => format!("{}:{port}", attempt.host),
        };
        let fix = attempt.fix.clone();
        let fix = fix.unwrap_or_else(|| format!("nothing: {}", attempt.rule));
        Some(Self {
            what: Denied::Host,
            target,
            count: attempt.times.max(1),
            fix,
        })
    }
}

/// A kind of thing that a session can be denied.
///
/// What the kernel denies it tells the program, and not us; of that there is only what the supervisor has
/// seen on its way.
///
/// # Examples
///
/// ```
/// use ringfence::{Denied, Report};
///
/// /// How many different hosts a session wanted and did not get.
/// fn hosts(report: &Report) -> usize {
///     report.denials.iter().filter(|denial| denial.what == Denied::Host).count()
/// }
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Denied {
    /// Making or writing a file where nothing may be written.
    File,
    /// Reaching a host, or a port of this one.
    Host,
    /// Making a protected name that is not there.
    Name,
    /// Connecting to a unix socket.
    UnixSocket,
}

/// An event as it is written.
#[derive(Serialize)]
struct Line<'a> {
    version: u32,
    time: Time,
    /// The session's id.
    session: &'a str,
    /// What people call it.
    name: &'a str,
    #[serde(flatten)]
    event: &'a Event<'a>,
}

/// Why the trail cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrailError {
    /// There is something that is not the user's own plain file.
    #[error("{} is not a plain file of the user's own", path.display())]
    NotOwn {
        /// Where.
        path: PathBuf,
    },
    /// It cannot be opened.
    #[error("the audit trail {} cannot be opened", path.display())]
    Open {
        /// Where.
        path: PathBuf,
        /// What the kernel answered.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("the audit trail cannot be written")]
    Write {
        /// What the kernel answered.
        source: io::Error,
    },
}

/// The trail, to be appended to.
///
/// Lines are gathered and written together: a session that is over in a moment costs one write.
#[derive(Debug)]
pub struct Trail {
    state: PathBuf,
    file: Option<File>,
    lines: String,
}

impl Trail {
    /// Where it is below a state directory.
    pub fn path(state: &Path) -> PathBuf {
        state.join("log.jsonl")
    }

    /// The trail below a state directory. Nothing is opened yet.
    pub fn below(state: &Path) -> Self {
        Self {
            state: state.to_owned(),
            file: None,
            lines: String::new(),
        }
    }

    /// Opens it, puts a large one aside first, and makes what is missing.
    fn open(state: &Path) -> Result<File, TrailError> {
        let path = Self::path(state);
        let refused = |source| TrailError::Open {
            path: path.clone(),
            source,
        };
        let file = match append_to(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let mut made = std::fs::DirBuilder::new();
                made.recursive(true).mode(0o700);
                made.create(state).map_err(refused)?;
                append_to(&path).map_err(refused)?
            }
            other => other.map_err(refused)?,
        };
        let metadata = own(&file).map_err(refused)?;
        let Some(metadata) = metadata else {
            return Err(TrailError::NotOwn { path });
        };
        if metadata.len() < LARGE {
            return Ok(file);
        }
        put_aside(state, &path).map_err(refused)?;
        let file = append_to(&path).map_err(refused)?;
        match own(&file).map_err(refused)? {
            Some(_) => Ok(file),
            None => Err(TrailError::NotOwn { path }),
        }
    }

    /// Notes one event of a session, to be written with the next [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// None that is known of; the format's own.
    pub fn note(&mut self, session: &str, name: &str, event: &Event<'_>) -> io::Result<()> {
        let line = Line {
            version: VERSION,
            time: Time(SystemTime::now()),
            session,
            name,
            event,
        };
        self.lines
            .push_str(&escape_json(&serde_json::to_string(&line)?));
        self.lines.push('\n');
        Ok(())
    }

    /// Opens the file now, so that writing to it takes less time later. What stands in the way is said
    /// by [`flush`](Self::flush).
    pub fn make_ready(&mut self) {
        if self.file.is_none() {
            self.file = Self::open(&self.state).ok();
        }
    }

    /// Writes what was noted.
    ///
    /// # Errors
    ///
    /// See [`TrailError`]; a file that is not the user's own was not touched. What was noted is
    /// forgotten.
    pub fn flush(&mut self) -> Result<(), TrailError> {
        let lines = std::mem::take(&mut self.lines);
        if lines.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Self::open(&self.state)?),
        };
        file.write_all(lines.as_bytes())
            .map_err(|source| TrailError::Write { source })
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
}

/// What is known of a file that belongs to the user alone; `None` if it does not.
fn own(file: &File) -> io::Result<Option<std::fs::Metadata>> {
    let metadata = file.metadata()?;
    let plain = metadata.is_file()
        && metadata.nlink() == 1
        && metadata.uid() == rustix::process::geteuid().as_raw();
    if !plain {
        return Ok(None);
    }
    if metadata.mode() & 0o777 != 0o600 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(Some(metadata))
}

/// Moves each file to the next number, and the one in use to the first.
///
/// Whoever has it open goes on writing to it. Two at once are kept apart by a lock on the
/// directory; the second finds a small file and leaves it.
fn put_aside(state: &Path, path: &Path) -> io::Result<()> {
    let directory = File::open(state)?;
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::LockExclusive)?;
    if std::fs::symlink_metadata(path)?.len() < LARGE {
        return Ok(());
    }
    for number in (1..KEPT).rev() {
        match std::fs::rename(aside(path, number), aside(path, number + 1)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    std::fs::rename(path, aside(path, 1))
}

fn aside(path: &Path, number: u32) -> PathBuf {
    path.with_extension(format!("{number}.jsonl"))
}

/// The files of the trail that are there, oldest first.
pub fn files(state: &Path) -> Vec<PathBuf> {
    let path = Trail::path(state);
    let old = (1..=KEPT).rev().map(|number| aside(&path, number));
    old.chain([path.clone()])
        .filter(|path| path.is_file())
        .collect()
}

/// Reads the trail, line by line, as it grows.
#[derive(Debug)]
pub struct Reader {
    state: PathBuf,
    file: Option<BufReader<File>>,
    inode: u64,
    partial: Vec<u8>,
}

impl Reader {
    /// Starts at the end of what is there.
    pub fn at_end(state: &Path) -> Self {
        let mut reader = Self {
            state: state.to_owned(),
            file: None,
            inode: 0,
            partial: Vec::new(),
        };
        if let Some(file) = &mut reader.open() {
            // What cannot be skipped is shown.
            let _ = io::Seek::seek(file, io::SeekFrom::End(0));
            reader.inode = file.metadata().map_or(0, |metadata| metadata.ino());
            reader.file = file.try_clone().ok().map(BufReader::new);
        }
        reader
    }

    fn open(&self) -> Option<File> {
        File::open(Trail::path(&self.state)).ok()
    }

    /// The whole lines that were written since the last call.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn new_lines(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut lines = Vec::new();
        self.drain(&mut lines)?;
        // Put aside meanwhile: its rest was read above, and the new one begins.
        if let Some(file) = self.open() {
            let inode = file.metadata()?.ino();
            if inode != self.inode {
                self.inode = inode;
                self.partial.clear();
                self.file = Some(BufReader::new(file));
                self.drain(&mut lines)?;
            }
        }
        Ok(lines)
    }

    fn drain(&mut self, lines: &mut Vec<Vec<u8>>) -> io::Result<()> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        loop {
            if file.read_until(b'\n', &mut self.partial)? == 0 {
                return Ok(());
            }
            if self.partial.ends_with(b"\n") {
                self.partial.pop();
                lines.push(std::mem::take(&mut self.partial));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn record(state: &Path, error: &str) -> Result<(), TrailError> {
        let event = Event::Refused {
            exit_status: 125,
            error,
        };
        let mut trail = Trail::below(state);
        trail.note("id", "name", &event).unwrap();
        trail.flush()
    }

    fn lines(state: &Path) -> Vec<serde_json::Value> {
        let text = files(state)
            .into_iter()
            .map(|path| std::fs::read(path).unwrap());
        let text = text.collect::<Vec<_>>().concat();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.chars()
                .all(|character| character == '\n' || !ringfence_core::text::is_hidden(character)),
            "{text:?}"
        );
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn the_fix_for_a_name_is_the_flag_that_takes_it() {
        for (path, fix) in [
            ("/p/.vscode", "--allow-protected .vscode"),
            (
                "/p/.cargo/config.toml",
                "--allow-protected .cargo/config.toml",
            ),
            ("/p/.git", "--git full"),
            ("/p/HEAD", "--git full"),
            ("/p/sub/.git/hooks/pre-commit", "--git full"),
            ("/p/own-name", "ringfence explain /p/own-name"),
            ("/p/a;$(b)'c", r"ringfence explain '/p/a;$(b)'\''c'"),
        ] {
            assert_eq!(Denial::of_name(Path::new(path)).fix, fix, "{path}");
        }
    }

    #[test]
    fn the_fix_for_a_host_is_what_the_gate_knows() {
        let attempt = |verdict, fix: Option<&str>| Attempt {
            at: SystemTime::UNIX_EPOCH,
            way: crate::launch::Way::Connect,
            host: "db.test".to_owned(),
            port: 5432,
            verdict,
            rule: "why".to_owned(),
            fix: fix.map(str::to_owned),
            times: 3,
            sent: 0,
            received: 0,
            milliseconds: 0,
        };
        let fix = |fix| Denial::at_gate(&attempt(Outcome::Refused, fix)).map(|denial| denial.fix);
        // Not the name, which is listed.
        let address = "--allow-host 10.0.0.7:5432";
        assert_eq!(fix(Some(address)).as_deref(), Some(address));
        assert_eq!(fix(None).as_deref(), Some("nothing: why"));
        assert_eq!(Denial::at_gate(&attempt(Outcome::Failed, None)), None);
    }

    #[test]
    fn each_event_is_one_line_that_draws_nothing() {
        let world = tempfile::tempdir().unwrap();
        let state = world.path().join("a/state");
        let hostile = "a\u{1b}]0;x\u{7}\nb\u{202e}c\u{9b}";
        record(&state, hostile).unwrap();
        record(&state, "second").unwrap();
        let lines = lines(&state);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["error"], hostile);
        assert_eq!(lines[0]["event"], "refused");
        assert_eq!(lines[1]["session"], "id");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&Trail::path(&state)), 0o600);
        assert_eq!(mode(&state), 0o700);
    }

    #[test]
    fn only_the_users_own_plain_file_is_written() {
        let world = tempfile::tempdir().unwrap();
        let state = world.path();
        std::fs::write(state.join("target"), "kept").unwrap();
        symlink("target", Trail::path(state)).unwrap();
        assert!(record(state, "x").is_err());
        std::fs::remove_file(Trail::path(state)).unwrap();
        std::fs::hard_link(state.join("target"), Trail::path(state)).unwrap();
        assert!(record(state, "x").is_err());
        std::fs::remove_file(Trail::path(state)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, Trail::path(state), 0o600.into()).unwrap();
        assert!(record(state, "x").is_err());
        assert_eq!(std::fs::read(state.join("target")).unwrap(), b"kept");
    }

    #[test]
    fn a_large_file_is_put_aside_and_the_oldest_is_forgotten() {
        let world = tempfile::tempdir().unwrap();
        let state = world.path();
        for round in 0..KEPT + 3 {
            record(state, &format!("round {round}")).unwrap();
            let file = OpenOptions::new()
                .append(true)
                .open(Trail::path(state))
                .unwrap();
            let size = file.metadata().unwrap().len();
            // As if it had grown; the line stays.
            file.set_len(size.max(LARGE)).unwrap();
        }
        assert_eq!(files(state).len(), usize::try_from(KEPT).unwrap() + 1);
        let first = std::fs::read(&files(state)[0]).unwrap();
        let first = String::from_utf8_lossy(&first).into_owned();
        assert!(first.contains("round 2"), "{}", &first[..200]);
    }

    #[test]
    fn many_writers_tear_no_line() {
        let world = tempfile::tempdir().unwrap();
        let state = world.path().to_owned();
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let state = state.clone();
                std::thread::spawn(move || {
                    for round in 0..50 {
                        record(&state, &format!("{writer}/{round} {}", "x".repeat(2000))).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(lines(&state).len(), 400);
    }

    #[test]
    fn a_reader_follows_over_the_edge_of_a_file() {
        let world = tempfile::tempdir().unwrap();
        let state = world.path();
        record(state, "before").unwrap();
        let mut reader = Reader::at_end(state);
        assert!(reader.new_lines().unwrap().is_empty());
        record(state, "one").unwrap();
        assert_eq!(reader.new_lines().unwrap().len(), 1);
        record(state, "two").unwrap();
        std::fs::rename(Trail::path(state), aside(&Trail::path(state), 1)).unwrap();
        record(state, "three").unwrap();
        let lines = reader.new_lines().unwrap();
        let texts: Vec<String> = lines
            .iter()
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].contains("two") && texts[1].contains("three"));
    }
}
