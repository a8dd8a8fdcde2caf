//! Settings from files and from the environment.
//!
//! Files are read whole and once. A file that is not there holds no settings; one that is there
//! and cannot be read, or holds a mistake, stops everything. Every mistake of every file is
//! collected, so that whoever shows them shows them all at once.

mod around;

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_core::git::Repository;
use ringfence_core::origin::{BuiltIn, Layer, Origin, Source};
use ringfence_core::permission::Permissions;
use ringfence_core::policy::{Complaint, Place, Policy, git_level};
use ringfence_core::problem::{Problem, Severity};
use ringfence_core::request::Scope;
use ringfence_core::settings::{
    Base, Keys, LARGEST_FILE, ProjectTrust, SettingPath, Settings, SettingsFile, has_errors,
};
use ringfence_core::text::printable_path;
use ringfence_shell::Rules;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::git::{self, Reach, Search, Unsearchable, Walking};
use crate::grants::trust::Trust;
use crate::place::{Lookout, OS, Surroundings};
use crate::{programs, shell};

/// Where a project keeps its settings, below its root.
pub const PROJECT_SETTINGS: [&str; 2] = [".ringfence", "settings.json"];
/// The variable that names further paths to read.
pub const READ_ONLY: &str = "RINGFENCE_RO";
/// The variable that names further paths to read and write.
pub const READ_WRITE: &str = "RINGFENCE_RW";

/// Why a settings file could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It is a directory, a pipe, a device: reading it could mean waiting for ever.
    #[error("it is not a regular file")]
    Kind,
    /// The project's file, or its directory, is a link, and could lead out of the project.
    #[error("a project's settings must be a real file in a real directory, not a link")]
    Link,
    /// A link to it, or to a directory on the way, leads nowhere.
    #[error("{} is a link that leads nowhere", printable_path(.link))]
    Nowhere {
        /// The link.
        link: PathBuf,
    },
    /// The kernel refused.
    #[error("{}", words(.source))]
    Read {
        /// What it answered.
        source: io::Error,
    },
    /// Larger than any settings file.
    #[error("it is larger than 1 MiB")]
    Size,
    /// Its bytes are not text.
    #[error("it is not UTF-8: byte {offset} begins no character")]
    Utf8 {
        /// Where, counted from zero.
        offset: usize,
    },
}

/// The kernel's answer without its number.
fn words(error: &io::Error) -> String {
    let message = error.to_string();
    let words = message.split(" (os error").next().unwrap_or(&message);
    words.to_lowercase()
}

/// One settings file and what came of reading it.
#[derive(Clone, Debug)]
pub struct File {
    /// [`Layer::User`] or [`Layer::Project`].
    pub layer: Layer,
    /// Where it is, or would be.
    pub path: PathBuf,
    /// What was found there.
    pub content: Content,
}

/// What came of reading a settings file.
#[derive(Clone, Debug)]
pub enum Content {
    /// There is no such file.
    Missing,
    /// It was read, with or without mistakes in it.
    Read {
        /// Its text.
        source: Source,
        /// What is wrong with it.
        problems: Vec<Problem>,
    },
    /// It is there and could not be read.
    Unreadable(Arc<FileError>),
}

/// Everything that somebody wrote before the command line.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The files, weakest first.
    pub files: Vec<File>,
    /// What is wrong with the variables.
    pub variables: Vec<Complaint>,
    settings: Settings,
    /// Where to look for repositories, if anybody has said so.
    search: Option<Search>,
}

/// A mistake that stops everything, or an oddity that is only said, wherever it was written.
#[derive(Debug)]
#[non_exhaustive]
pub enum Mistake<'a> {
    /// At a place of a file.
    Written {
        /// The file.
        source: &'a Source,
        /// The place and what is wrong there.
        problem: Problem,
    },
    /// A file that cannot be read.
    Unreadable {
        /// The file.
        path: &'a Path,
        /// Why not.
        error: &'a FileError,
    },
    /// Somewhere without text to show: a flag, a variable, a built-in rule.
    Elsewhere(Complaint),
}

impl Mistake<'_> {
    /// Whether it stops the launch.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Written { problem, .. } => problem.severity,
            Self::Unreadable { .. } | Self::Elsewhere(_) => Severity::Error,
        }
    }

    /// It in one clause, with its place.
    pub fn in_words(&self) -> String {
        match self {
            Self::Elsewhere(complaint) => {
                format!("{} ({})", complaint.message, complaint.origin)
            }
            Self::Unreadable { path, error } => format!("{}: {error}", path.display()),
            Self::Written { source, problem } => {
                format!("{}: {}", source.path().display(), problem.message)
            }
        }
    }
}

impl Loaded {
    /// Nothing that anybody wrote: for a caller that says everything itself.
    pub fn nothing() -> Self {
        Self {
            files: Vec::new(),
            variables: Vec::new(),
            settings: Settings::new(),
            search: None,
        }
    }

    /// Reads the user's file, the project's file and ringfence's own variables.
    pub fn read(surroundings: &Surroundings, place: &Place) -> Self {
        let mut loaded = Self {
            files: Vec::new(),
            variables: Vec::new(),
            settings: Settings::new(),
            search: Some(surroundings.search(place)),
        };
        if let Some(path) = surroundings.user_settings() {
            let text = read_user(&path);
            loaded.take_file(Layer::User, path, text, place);
        }
        let [directory, name] = PROJECT_SETTINGS;
        let directory = place.project.as_path().join(directory);
        let text = read_project(&directory, name);
        if let (Ok(Some(text)), Some(state)) = (&text, &surroundings.state) {
            loaded.trust(&Trust::new(state), text, place);
        }
        loaded.take_file(Layer::Project, directory.join(name), text, place);
        for root in surroundings.around(&place.project) {
            loaded.take_around(&root, place);
        }
        loaded.take_variables(std::env::var_os(READ_ONLY), std::env::var_os(READ_WRITE));
        loaded
    }

    /// Lets the project's file widen, if the user has seen exactly this text.
    fn trust(&mut self, trust: &Trust, text: &str, place: &Place) {
        match trust.covers(&place.project, text) {
            Ok(true) => {
                let settings = std::mem::take(&mut self.settings);
                self.settings = settings.trusting(ProjectTrust::Trusted);
            }
            Ok(false) => {}
            Err(error) => self.variables.push(Complaint {
                origin: Origin::Library,
                message: format!("trust in projects: {error}"),
                help: Some(error.help()),
            }),
        }
    }

    /// Adds what somebody who was asked has granted.
    pub fn grant(&mut self, permissions: &Permissions, scope: Scope) {
        let settings = std::mem::take(&mut self.settings);
        self.settings = settings.granting(permissions, scope);
    }

    /// The same with another trust in the project's file: for a look at what it would change.
    #[must_use]
    pub fn with_trust(&self, trust: ProjectTrust) -> Self {
        Self {
            settings: self.settings.clone().trusting(trust),
            ..self.clone()
        }
    }

    /// Everything that was written, layer by layer.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn take_file(
        &mut self,
        layer: Layer,
        path: PathBuf,
        text: Result<Option<String>, FileError>,
        place: &Place,
    ) {
        let content = match text {
            Ok(None) => Content::Missing,
            Err(error) => Content::Unreadable(Arc::new(error)),
            Ok(Some(text)) => {
                let source = Source::new(layer, path.clone(), text);
                let base = Base {
                    directory: path.parent().map(Path::to_owned).unwrap_or_default(),
                    home: place.home.as_ref().map(|home| home.as_path().to_owned()),
                    project: Some(place.project.as_path().to_owned()),
                };
                let (file, problems) = SettingsFile::read(&source, &base);
                self.add(layer, file.on(OS));
                Content::Read { source, problems }
            }
        };
        self.files.push(File {
            layer,
            path,
            content,
        });
    }

    fn take_variables(&mut self, read: Option<OsString>, write: Option<OsString>) {
        let mut keys = Keys::default();
        let sandbox = &mut keys.terminal.sandbox;
        for (name, value, list) in [
            (READ_ONLY, read, &mut sandbox.additional_read_only_paths),
            (READ_WRITE, write, &mut sandbox.additional_read_write_paths),
        ] {
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                continue;
            };
            for entry in entries(&value) {
                let origin = Origin::Environment { name };
                if entry.is_absolute() {
                    list.push(SettingPath(entry.to_owned()), origin);
                } else {
                    self.variables.push(not_a_path(entry, origin));
                }
            }
        }
        self.add(Layer::Environment, keys);
    }

    /// Adds a layer: what the command line says.
    pub fn add(&mut self, layer: Layer, keys: Keys) {
        let settings = std::mem::take(&mut self.settings);
        self.settings = settings.with(layer, keys);
    }

    /// Every mistake that was made before layers were put together.
    pub fn mistakes(&self) -> Vec<Mistake<'_>> {
        let mut out = mistakes_of(self.files.iter());
        out.extend(self.variables.iter().cloned().map(Mistake::Elsewhere));
        out
    }

    /// What keeps the user's own file from being read: nothing in it holds then.
    pub fn users_mistakes(&self) -> Vec<Mistake<'_>> {
        let files = self.files.iter().filter(|file| file.layer == Layer::User);
        let mut out = mistakes_of(files);
        out.retain(|mistake| mistake.severity() == Severity::Error);
        out
    }

    /// Merges all layers into one policy.
    ///
    /// # Errors
    ///
    /// Every mistake of the files and variables; or, if those have none, everything that cannot
    /// be carried out. No policy is made from settings with a mistake in them.
    pub fn resolve(&self, place: &Place, lookout: &Lookout) -> Result<Policy, Vec<Mistake<'_>>> {
        let (search, reach) = self.searched(place)?;
        let resolved = git::find_then(&search, reach, lookout, |repositories| {
            self.made_of(repositories, &search, place, lookout)
        });
        resolved.map_err(|error| vec![Mistake::Elsewhere(unsearchable(&error))])?
    }

    /// The same; in a large tree that is remembered, of the repositories that were there the last
    /// time. Nothing may come of the policy unless the walk finds the same.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve).
    pub fn presume(
        &self,
        place: &Place,
        lookout: &Lookout,
    ) -> Result<(Policy, Option<Walking>), Vec<Mistake<'_>>> {
        let (search, reach) = self.searched(place)?;
        let presumed = git::presume(&search, reach, lookout);
        let (repositories, walking) =
            presumed.map_err(|error| vec![Mistake::Elsewhere(unsearchable(&error))])?;
        match self.made_of(repositories, &search, place, lookout) {
            Ok(policy) => Ok((policy, walking)),
            // It may be a mistake only with what is not there any more.
            Err(_) if walking.is_some() => {
                self.resolve(place, lookout).map(|policy| (policy, None))
            }
            Err(mistakes) => Err(mistakes),
        }
    }

    /// Where to look for repositories, and how far, if the settings can be carried out at all.
    fn searched(&self, place: &Place) -> Result<(Search, Reach), Vec<Mistake<'_>>> {
        if self.is_unsound() || !self.variables.is_empty() {
            return Err(self.mistakes());
        }
        let reach = Reach::of(git_level(&self.settings, place.kind));
        let search = self.search.clone().unwrap_or_else(|| Search {
            home: place.home.clone(),
            ..Search::new(place.project.clone())
        });
        Ok((search, reach))
    }

    fn made_of(
        &self,
        mut repositories: Vec<Repository>,
        search: &Search,
        place: &Place,
        lookout: &Lookout,
    ) -> Result<Policy, Vec<Mistake<'_>>> {
        let granted = git::granted(&self.settings, place.kind, search, lookout);
        repositories.extend(granted);
        let place = Place {
            repositories,
            ..place.clone()
        };
        let resolved = programs::resolve(&self.settings, &place, lookout);
        let checked = resolved.and_then(|policy| {
            shell::rules(policy.shell_rules())?;
            Ok(policy)
        });
        checked.map_err(|complaints| self.located(complaints))
    }

    /// The rules for shell commands alone, for whoever judges a command and starts none.
    ///
    /// # Errors
    ///
    /// Every mistake of the files, and every rule whose examples do not hold.
    pub fn shell_rules(&self) -> Result<Rules, Vec<Mistake<'_>>> {
        if self.is_unsound() {
            return Err(self.mistakes());
        }
        shell::rules(&self.settings.shell_rules().rules)
            .map_err(|complaints| self.located(complaints))
    }

    fn is_unsound(&self) -> bool {
        self.files.iter().any(|file| match &file.content {
            Content::Missing => false,
            Content::Read { problems, .. } => has_errors(problems),
            Content::Unreadable(_) => true,
        })
    }

    fn located(&self, complaints: Vec<Complaint>) -> Vec<Mistake<'_>> {
        let complaints = complaints.into_iter();
        complaints.map(|complaint| self.locate(complaint)).collect()
    }

    /// The place in a file that a complaint speaks of, if it speaks of one.
    fn locate(&self, complaint: Complaint) -> Mistake<'_> {
        let Origin::File {
            path, line, column, ..
        } = &complaint.origin
        else {
            return Mistake::Elsewhere(complaint);
        };
        let source = self.files.iter().find_map(|file| match &file.content {
            Content::Read { source, .. } if source.path() == &**path => Some(source),
            Content::Missing | Content::Read { .. } | Content::Unreadable(_) => None,
        });
        let Some((source, offset)) = source.and_then(|s| Some((s, s.offset(*line, *column)?)))
        else {
            return Mistake::Elsewhere(complaint);
        };
        let span = token(source.text(), offset);
        let mut problem = Problem::error(span, complaint.message, "written here");
        problem.help = complaint.help;
        Mistake::Written { source, problem }
    }
}

fn mistakes_of<'a>(files: impl Iterator<Item = &'a File>) -> Vec<Mistake<'a>> {
    let mut out = Vec::new();
    for file in files {
        match &file.content {
            Content::Missing => {}
            Content::Unreadable(error) => {
                let path = file.path.as_path();
                out.push(Mistake::Unreadable { path, error });
            }
            Content::Read { source, problems } => {
                let problems = problems.iter().cloned();
                out.extend(problems.map(|problem| Mistake::Written { source, problem }));
            }
        }
    }
    out
}

/// The JSON value that starts at an offset: a string, a word or number, or one bracket.
fn token(text: &str, offset: usize) -> Range<usize> {
    let rest = text.get(offset..).unwrap_or_default();
    let mut characters = rest.char_indices();
    let length = match characters.next() {
        None => 0,
        Some((_, '"')) => {
            let mut escaped = false;
            let end = characters.find(|(_, character)| {
                let closes = *character == '"' && !escaped;
                escaped = *character == '\\' && !escaped;
                closes
            });
            end.map_or(rest.len(), |(quote, _)| quote + 1)
        }
        Some((_, '[' | '{')) => 1,
        Some(_) => rest
            .find(|character: char| character.is_whitespace() || ",]}/".contains(character))
            .unwrap_or(rest.len()),
    };
    offset..offset + length
}

fn entries(list: &OsStr) -> impl Iterator<Item = &Path> {
    use std::os::unix::ffi::OsStrExt;
    let parts = list.as_bytes().split(|byte| *byte == b':');
    parts.map(|part| Path::new(OsStr::from_bytes(part)))
}

fn unsearchable(error: &Unsearchable) -> Complaint {
    let help = "name a smaller project with `--project PATH`, or leave its git metadata open with \
                `git: full`";
    Complaint {
        origin: Origin::BuiltIn(BuiltIn::Git),
        message: error.to_string(),
        help: Some(help.to_owned()),
    }
}

fn not_a_path(entry: &Path, origin: Origin) -> Complaint {
    let message = if entry.as_os_str().is_empty() {
        "an entry is empty".to_owned()
    } else {
        let shown = printable_path(entry);
        format!("`{shown}` is not an absolute path")
    };
    Complaint {
        origin,
        message,
        help: Some("write absolute paths with one `:` between them".to_owned()),
    }
}

/// The user's file may be a link: people keep their settings elsewhere and link to them.
pub(crate) fn read_user(path: &Path) -> Result<Option<String>, FileError> {
    // Opening a pipe must not wait for somebody to write to it.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(descriptor) => read_text(descriptor.into()).map(Some),
        Err(Errno::NOENT) => is_missing(path).map(|()| None),
        Err(error) => Err(refused(error)),
    }
}

/// Makes sure that a file which could not be found is not there. One whose link leads nowhere is
/// there: a disk is not mounted, or somebody moved it, and its rules must not be lost for that.
fn is_missing(path: &Path) -> Result<(), FileError> {
    for part in path.ancestors() {
        match rustix::fs::stat(part) {
            // It was made this very moment.
            Ok(_) if part == path => return Err(refused(Errno::NOENT)),
            Ok(_) => return Ok(()),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(refused(error)),
        }
        match rustix::fs::lstat(part) {
            Ok(_) => {
                let link = part.to_owned();
                return Err(FileError::Nowhere { link });
            }
            Err(Errno::NOENT) => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Ok(())
}

/// The text of a project's own settings; `None` if it has none.
///
/// # Errors
///
/// If they are there and cannot be read.
pub fn project_text(project: &Path) -> Result<Option<String>, FileError> {
    let [directory, name] = PROJECT_SETTINGS;
    read_project(&project.join(directory), name)
}

/// The project's file may not be a link: it is somebody else's, and what it led to would be
/// shown in messages.
fn read_project(directory: &Path, name: &str) -> Result<Option<String>, FileError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let flags = flags | OFlags::NOFOLLOW;
    let opened = rustix::fs::openat(CWD, directory, flags | OFlags::DIRECTORY, Mode::empty());
    let directory = match opened {
        Ok(descriptor) => descriptor,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(FileError::Link),
        Err(error) => return Err(refused(error)),
    };
    match rustix::fs::openat(&directory, name, flags, Mode::empty()) {
        Ok(descriptor) => read_text(descriptor.into()).map(Some),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP) => Err(FileError::Link),
        // Opening a socket fails before anybody can ask what it is.
        Err(Errno::NXIO) => Err(FileError::Kind),
        Err(error) => Err(refused(error)),
    }
}

fn refused(error: Errno) -> FileError {
    let source = io::Error::from(error);
    FileError::Read { source }
}

fn read_text(mut file: std::fs::File) -> Result<String, FileError> {
    let status = rustix::fs::fstat(&file).map_err(refused)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(FileError::Kind);
    }
    let size = usize::try_from(status.st_size).unwrap_or(usize::MAX);
    if size > LARGEST_FILE {
        return Err(FileError::Size);
    }
    // It may grow while it is read; one byte more than allowed is enough to know.
    let mut bytes = Vec::with_capacity(size + 1);
    let limit = u64::try_from(LARGEST_FILE).unwrap_or(u64::MAX) + 1;
    let read = file.by_ref().take(limit).read_to_end(&mut bytes);
    read.map_err(|source| FileError::Read { source })?;
    if bytes.len() > LARGEST_FILE {
        return Err(FileError::Size);
    }
    String::from_utf8(bytes).map_err(|error| FileError::Utf8 {
        offset: error.utf8_error().valid_up_to(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_value() {
        for (text, offset, expected) in [
            (r#"["a\"b", 1]"#, 1, r#""a\"b""#),
            (r#"["a\\", 1]"#, 1, r#""a\\""#),
            ("[12, 3]", 1, "12"),
            ("{ \"a\": true}", 7, "true"),
            ("[[1]]", 1, "["),
            ("[1 // x", 1, "1"),
            ("[\"open", 1, "\"open"),
            ("", 0, ""),
            ("ab", 9, ""),
        ] {
            let span = token(text, offset);
            assert_eq!(text.get(span).unwrap_or_default(), expected, "{text}");
        }
    }
}
