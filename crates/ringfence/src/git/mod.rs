//! Finding the git repositories in and around a project.
//!
//! Git itself is never asked: whatever it would run for a hostile repository would run outside.
//! Its files are read here, as data with bounds, and become facts. Nothing is decided and nothing
//! is created, but for the memory of large trees in ringfence's own state directory.
//!
//! A pointer that leads out of the project is followed only if what it leads to names the project
//! in turn: a linked working tree is registered in its repository, and a submodule's directory says
//! where its working tree is. Somebody who can only write the project can forge the one and not the
//! other.

mod asking;
mod cache;
mod granted;
pub mod index;
mod inner;
pub(crate) mod object;
mod quiet;
pub(crate) mod reading;
pub(crate) mod scan;
mod shared;
mod walking;

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringfence_core::git::config::{self, Obeyed, Variable};
use ringfence_core::git::{GitDir, Position, Repository, Role, Shape};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Found, Seen};
use ringfence_core::settings::GitLevel;

use crate::lookout::Lookout;
pub(crate) use granted::at_top;
pub use granted::granted;
use inner::{is_git_directory, modules, worktrees};
use quiet::Quiet;
use reading::Config;
use scan::{Place, What};
use shared::{Shared, shared_config};
use walking::{Remembered, WORTH_A_THREAD, tree};
pub use walking::{Walking, find, find_then, presume};

/// Variables that lead git to a repository, whatever directory it is started in.
pub const VARIABLES: [&str; 2] = ["GIT_COMMON_DIR", "GIT_DIR"];

/// Files that one configuration may include, all in all.
const MOST_INCLUDES: usize = 256;

/// Where to look.
#[derive(Clone, Debug)]
pub struct Search {
    /// The project's root, canonical.
    pub project: AbsPath,
    /// The caller's home.
    pub home: Option<AbsPath>,
    /// Where the command is called from.
    pub current: AbsPath,
    /// Those of [`VARIABLES`] that the caller has.
    pub variables: Vec<(&'static str, OsString)>,
    /// Further files of the user's own configuration, where variables say that they are.
    pub configurations: Vec<PathBuf>,
    /// Where ringfence keeps what it remembers.
    pub state: Option<PathBuf>,
}

/// How far to look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// The project's own repository, where it keeps its files, and those above it.
    Own,
    /// Every repository below the project, too.
    Tree,
    /// And what each of those has inside: submodules, linked working trees.
    Inside,
}

impl Reach {
    /// How far a git level needs to see.
    pub fn of(level: GitLevel) -> Self {
        match level {
            GitLevel::Full => Self::Own,
            GitLevel::Hidden | GitLevel::Read => Self::Tree,
            GitLevel::Write => Self::Inside,
        }
    }
}

/// Why nobody can say which repositories there are.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{project} cannot be searched for repositories: {why}")]
pub struct Unsearchable {
    /// The project.
    pub project: AbsPath,
    /// What is in the way.
    pub why: String,
}

/// Repositories that are in a tree now, by their entries: for comparing with a later look.
///
/// # Errors
///
/// As [`find`].
pub fn entries(search: &Search) -> Result<Vec<(AbsPath, Shape)>, Unsearchable> {
    entries_and(search, |_| false).map(|(entries, _)| entries)
}

/// A repository by its entry.
type EntryOf = (AbsPath, Shape);

/// The same, and the directories of the project that somebody looks for, by their paths in it.
pub(crate) fn entries_and(
    search: &Search,
    wanted: impl Fn(&Path) -> bool,
) -> Result<(Vec<EntryOf>, Vec<PathBuf>), Unsearchable> {
    let (places, tree) = tree(search, Remembered::of(search))?;
    let entries = places.into_iter().filter_map(|place| {
        let directory = search.project.below(&place.directory);
        entry_of(&directory, place.what)
    });
    let paths = tree.paths();
    let directories = paths.iter().filter(|path| wanted(path));
    Ok((entries.collect(), directories.map(Path::to_owned).collect()))
}

pub(crate) fn entry_of(directory: &AbsPath, what: What) -> Option<(AbsPath, Shape)> {
    Some(match what {
        What::Bare => (directory.clone(), Shape::Bare),
        What::Closed => (directory.clone(), Shape::Closed),
        What::GitDirectory => (directory.below(".git"), Shape::Directory),
        What::GitFile => (directory.below(".git"), Shape::Pointer),
        What::Plain => return None,
    })
}

/// What was read of the configurations of a repository.
struct Read {
    /// With the files that they are written in.
    variables: Vec<(AbsPath, Variable)>,
    /// How many more files may be included. Those that include each other are read once.
    left: usize,
    known: Vec<AbsPath>,
    unread: Vec<AbsPath>,
}

/// Somebody who reads git's files.
struct Finder<'a> {
    search: &'a Search,
    lookout: &'a Lookout,
    reach: Reach,
    /// What the user's own configuration makes git obey in every repository.
    shared: Shared,
    /// Where there are many repositories: whose configurations need not be read.
    quiet: OnceCell<Quiet>,
}

impl<'a> Finder<'a> {
    fn new(search: &'a Search, reach: Reach, lookout: &'a Lookout) -> Self {
        Self {
            search,
            lookout,
            reach,
            shared: shared_config(search),
            quiet: OnceCell::new(),
        }
    }

    /// The project's own repository, those above it, and those that variables name.
    fn outermost(&self) -> Vec<Repository> {
        let mut found = Vec::new();
        self.own_and_above(&mut found);
        self.named(&mut found);
        if !found.iter().any(|found| found.position == Position::Own) {
            found.extend(self.without_one());
        }
        found
    }

    /// Those, and all that a walk finds.
    fn walked(&self, remembered: Remembered) -> Result<Vec<Repository>, Unsearchable> {
        let mut found = self.outermost();
        let (places, _) = tree(self.search, remembered)?;
        self.all_within(&places, &mut found);
        Ok(found)
    }

    /// What the user's own configuration names counts although the project is no repository: one may be
    /// cloned or made from there.
    fn without_one(&self) -> Option<Repository> {
        let project = &self.search.project;
        let (obeyed, unread) = self.obeyed(&[], project);
        let names_any = !(obeyed.is_empty() && unread.is_empty());
        names_any.then(|| Repository {
            entry: project.below(".git"),
            shape: Shape::Pointer,
            position: Position::Beyond,
            git_dirs: Vec::new(),
            obeyed,
            unread,
        })
    }

    fn own_and_above(&self, found: &mut Vec<Repository>) {
        let project = &self.search.project;
        let own = self.at(project, Position::Own);
        let mut position = if own.is_some() {
            Position::Beyond
        } else {
            Position::Above
        };
        found.extend(own);
        let mut directory = project.parent();
        while let Some(above) = directory {
            let repository = self.at(&above, position);
            // What somebody else put there is nothing that git would use, and no reason to grant.
            let repository = repository.filter(|found| is_own(&found.entry));
            if repository.is_some() {
                position = Position::Beyond;
            }
            found.extend(repository);
            directory = above.parent();
        }
    }

    /// The repository whose working tree is `directory`.
    fn at(&self, directory: &AbsPath, position: Position) -> Option<Repository> {
        let entry = directory.below(".git");
        let (shape, git_dirs) = match self.lookout.look(entry.as_path()) {
            // A link is not one of git's own ways to say where something is.
            Seen::At(path, _) if path != entry => return None,
            Seen::At(_, Found::Directory) => (Shape::Directory, Self::main(&entry)),
            Seen::At(_, Found::File) => (Shape::Pointer, self.pointed(&entry, directory)),
            Seen::At(_, Found::Other | Found::Absent) | Seen::Absent | Seen::Unreadable(_) => {
                return None;
            }
        };
        let (obeyed, unread) = self.obeyed(&git_dirs, directory);
        Some(Repository {
            entry,
            shape,
            position,
            git_dirs,
            obeyed,
            unread,
        })
    }

    fn named(&self, found: &mut Vec<Repository>) {
        for (_, value) in &self.search.variables {
            let path = self.search.current.as_path().join(value);
            let Seen::At(entry, Found::Directory) = self.lookout.look(&path) else {
                continue;
            };
            let known = found.iter().any(|repository| {
                let mut directories = repository.git_dirs.iter();
                directories.any(|directory| directory.path == entry)
            });
            if known || !is_git_directory(&entry) || !is_own(&entry) {
                continue;
            }
            let git_dirs = Self::main(&entry);
            let (obeyed, unread) = self.obeyed(&git_dirs, &self.search.project);
            found.push(Repository {
                entry,
                shape: Shape::Directory,
                position: Position::Named,
                git_dirs,
                obeyed,
                unread,
            });
        }
    }

    /// The repositories at these places of the project.
    fn all_within(&self, places: &[Place], found: &mut Vec<Repository>) {
        let many = places.len() >= WORTH_A_THREAD;
        let quiet = many.then(|| {
            self.quiet
                .get_or_init(|| Quiet::recall(self.search, SystemTime::now()))
        });
        for place in places {
            let directory = self.search.project.below(&place.directory);
            self.know(&directory, place.what);
            found.extend(self.within(&directory, place.what));
        }
        if let Some(quiet) = quiet {
            quiet.keep();
        }
    }

    /// The walk followed no link and has seen every directory on its way.
    fn know(&self, directory: &AbsPath, what: What) {
        let above = std::iter::successors(Some(directory.clone()), AbsPath::parent);
        for above in above.take_while(|above| *above != self.search.project) {
            self.lookout.know(&above, Found::Directory);
        }
        match what {
            What::GitDirectory => self
                .lookout
                .know(&directory.below(".git"), Found::Directory),
            What::GitFile => self.lookout.know(&directory.below(".git"), Found::File),
            What::Bare | What::Closed | What::Plain => {}
        }
    }

    fn within(&self, directory: &AbsPath, what: What) -> Option<Repository> {
        let (entry, shape) = entry_of(directory, what)?;
        let project = &self.search.project;
        if directory == project && what != What::Bare {
            return None;
        }
        let mut git_dirs = match shape {
            Shape::Bare | Shape::Directory if self.reach == Reach::Inside => Self::main(&entry),
            Shape::Bare | Shape::Directory => vec![GitDir {
                path: entry.clone(),
                role: Role::Main,
            }],
            Shape::Closed => Vec::new(),
            Shape::Pointer => self.pointed(&entry, directory),
        };
        if shape == Shape::Bare
            && let Some(path) = self.common(&entry)
        {
            let role = Role::Main;
            git_dirs.push(GitDir { path, role });
        }
        let (obeyed, unread) = self.obeyed(&git_dirs, directory);
        Some(Repository {
            entry,
            shape,
            position: Position::Within,
            git_dirs,
            obeyed,
            unread,
        })
    }

    /// The directory of the project in which a repository has its objects, references and configuration,
    /// if that is another one.
    fn common(&self, entry: &AbsPath) -> Option<AbsPath> {
        let written = reading::pointer(&entry.below("commondir"))?;
        let common = self.directory(entry, &written)?;
        (self.search.project.covers(&common) && common != *entry).then_some(common)
    }

    /// Where a pointer leads, if it may be followed.
    fn pointed(&self, entry: &AbsPath, working_tree: &AbsPath) -> Vec<GitDir> {
        let text = reading::pointer(entry);
        let Some(target) = text
            .as_deref()
            .and_then(|text| text.strip_prefix("gitdir:"))
            .and_then(|path| self.directory(working_tree, path.trim_start()))
        else {
            return Vec::new();
        };
        if let Some(common) = self.registered(&target, entry) {
            let mut git_dirs = Self::main(&common);
            if !git_dirs.iter().any(|known| known.path == target) {
                let role = Role::Worktree;
                git_dirs.push(GitDir { path: target, role });
            }
            return git_dirs;
        }
        let inside = self.search.project.covers(&target);
        if is_git_directory(&target) && (inside || self.names(&target, working_tree)) {
            return Self::main(&target);
        }
        Vec::new()
    }

    /// The directory that a linked working tree shares, if both know each other.
    fn registered(&self, target: &AbsPath, entry: &AbsPath) -> Option<AbsPath> {
        let common = reading::pointer(&target.below("commondir"))?;
        let common = self.directory(target, &common)?;
        if target.parent()?.parent()? != common || target.parent()? != common.below("worktrees") {
            return None;
        }
        let back = reading::pointer(&target.below("gitdir"))?;
        let back = self.lookout.look(&target.as_path().join(back));
        let mutual = matches!(back, Seen::At(path, Found::File) if path == *entry);
        (mutual && is_git_directory(&common)).then_some(common)
    }

    /// Whether a git directory says that its working tree is here.
    fn names(&self, git_dir: &AbsPath, working_tree: &AbsPath) -> bool {
        let text = reading::config(&git_dir.below("config")).unwrap_or_default();
        let variables = config::parse(&text);
        let written = variables
            .iter()
            .rfind(|variable| config::obeyed(&variable.key) == Some(Obeyed::Worktree));
        written
            .and_then(|variable| self.directory(git_dir, &variable.value))
            .is_some_and(|path| path == *working_tree)
    }

    /// A directory by a path in one of git's files, links followed.
    fn directory(&self, base: &AbsPath, path: &str) -> Option<AbsPath> {
        match self.lookout.look(&base.as_path().join(path)) {
            Seen::At(path, Found::Directory) => Some(path),
            Seen::At(..) | Seen::Absent | Seen::Unreadable(_) => None,
        }
    }

    /// A git directory and those inside it.
    fn main(path: &AbsPath) -> Vec<GitDir> {
        let mut out = vec![GitDir {
            path: path.clone(),
            role: Role::Main,
        }];
        modules(path, 0, &mut out);
        worktrees(path, &mut out);
        out
    }

    /// What a repository's configuration makes git run or obey, wherever it is; and what of it could not be
    /// read.
    fn obeyed(&self, git_dirs: &[GitDir], working_tree: &AbsPath) -> (Vec<AbsPath>, Vec<AbsPath>) {
        let shared = self.shared.variables.iter();
        let shared_unread = self.shared.unread.iter();
        let mut read = Read {
            variables: shared
                .map(|variable| (working_tree.clone(), variable.clone()))
                .collect(),
            left: MOST_INCLUDES,
            known: Vec::new(),
            unread: shared_unread
                .filter_map(|path| AbsPath::lexical(path).ok())
                .collect(),
        };
        let own_files = |read: &Read| {
            let mut names = read.variables.iter().map(|(_, variable)| &variable.key);
            names.any(|key| config::is_about_more_files(key))
        };
        for directory in git_dirs {
            let names: &[&str] = match directory.role {
                // Further files are read only if this one says so.
                Role::Main => &["config"],
                Role::Worktree => &["config.worktree"],
                Role::Module | Role::Worktrees => continue,
            };
            for name in names {
                self.read_config(&directory.path.below(name), &mut read);
            }
            if directory.role == Role::Main && own_files(&read) {
                self.read_config(&directory.path.below("config.worktree"), &mut read);
            }
        }
        let mut out = Vec::new();
        for (file, variable) in &read.variables {
            match config::obeyed(&variable.key) {
                Some(Obeyed::Path) => out.extend(self.path(working_tree, &variable.value)),
                Some(Obeyed::Include) => {
                    let base = file.parent().unwrap_or_else(AbsPath::root);
                    out.extend(self.path(&base, &variable.value));
                }
                Some(Obeyed::Program) => {
                    let paths = config::paths_in(&variable.value);
                    let programs = paths.filter_map(|path| self.path(working_tree, path));
                    out.extend(programs.filter(reading::is_file));
                }
                Some(Obeyed::Worktree) | None => {}
            }
        }
        out.sort();
        out.dedup();
        (out, read.unread)
    }

    fn read_config(&self, path: &AbsPath, read: &mut Read) {
        let quiet = self.quiet.get();
        if read.known.contains(path) || quiet.is_some_and(|quiet| quiet.knows(path)) {
            return;
        }
        read.known.push(path.clone());
        let (text, status) = match Config::of(path) {
            Config::Text(text, status) => (text, status),
            Config::TooLong => return read.unread.push(path.clone()),
            Config::None => return,
        };
        let variables = config::parse(&text);
        if let Some(quiet) = quiet {
            quiet.learn(&status, &variables);
        }
        for variable in variables {
            let included = match config::obeyed(&variable.key) {
                Some(Obeyed::Include) => {
                    let base = path.parent().unwrap_or_else(AbsPath::root);
                    self.path(&base, &variable.value)
                }
                _ => None,
            };
            read.variables.push((path.clone(), variable));
            if let Some(included) = included.filter(|path| !read.known.contains(path)) {
                match read.left.checked_sub(1) {
                    Some(left) => {
                        read.left = left;
                        self.read_config(&included, read);
                    }
                    None => read.unread.push(path.clone()),
                }
            }
        }
    }

    fn path(&self, base: &AbsPath, written: &str) -> Option<AbsPath> {
        let home = self.search.home.as_ref();
        let path = match (written.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.as_path().join(rest),
            (Some(_), None) => return None,
            (None, _) => base.as_path().join(written),
        };
        AbsPath::lexical(path).ok()
    }
}

/// Whether something belongs to the caller: git obeys nobody else's repositories.
fn is_own(path: &AbsPath) -> bool {
    let owner = rustix::fs::lstat(path.as_path()).map(|status| status.st_uid);
    owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
}

impl Search {
    /// A search that knows nothing but the project.
    pub fn new(project: AbsPath) -> Self {
        Self {
            current: project.clone(),
            project,
            home: None,
            variables: Vec::new(),
            configurations: Vec::new(),
            state: None,
        }
    }
}

#[cfg(test)]
#[path = "find_tests.rs"]
mod tests;
