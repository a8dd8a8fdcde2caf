//! Where a command is called from: home, project, directories of ringfence's own, sockets.
//!
//! Everything the process can say about itself is gathered once, in [`Surroundings`], and is data
//! from then on. Nothing here is created, and nothing but the user database is opened for reading:
//! paths are only looked at, through [`Lookout`].

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use ringfence_core::path::AbsPath;
use ringfence_core::policy::lists::Relocated;
use ringfence_core::policy::{Found, Place, Seen, lists};
use ringfence_core::settings::{Kind, Os};
use ringfence_core::text::printable_path;
use rustix::io::Errno;

use crate::account::Account;
use crate::git::{self, Search};

use crate::lookout::LONGEST_PATH;
pub use crate::lookout::Lookout;
use crate::variables::Variables;

/// The operating system this program was built for.
pub const OS: Os = if cfg!(target_os = "macos") {
    Os::Macos
} else if cfg!(windows) {
    Os::Windows
} else {
    Os::Linux
};

/// Entries that tell a project's root, nearest first asked.
pub const PROJECT_MARKERS: &[&str] = &[
    ".git",
    ".ringfence",
    ".hg",
    ".jj",
    ".svn",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "Gemfile",
    "mix.exs",
    "deno.json",
    "CMakeLists.txt",
    "meson.build",
    "flake.nix",
];

/// Trees of the system: what lies in them is no project unless it has a marker, or somebody says so.
const SYSTEM_TREES: &[&str] = match OS {
    Os::Linux => &[
        "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/proc",
        "/run", "/sbin", "/snap", "/sys", "/usr", "/var",
    ],
    Os::Macos => &[
        "/Applications",
        "/Library",
        "/System",
        "/bin",
        "/cores",
        "/dev",
        "/nix",
        "/private/etc",
        "/private/var",
        "/sbin",
        "/usr",
    ],
    Os::Windows => &[],
};

/// Directories of everybody's: none is a project, and anything below one may be.
const SHARED: &[&str] = match OS {
    Os::Linux => &[
        "/dev/shm",
        "/home",
        "/media",
        "/mnt",
        "/opt",
        "/run/media",
        "/srv",
        "/tmp",
        "/usr/local/src",
        "/usr/src",
        // Where systems with an immutable root keep those above.
        "/var/home",
        "/var/mnt",
        "/var/opt",
        "/var/srv",
        "/var/tmp",
        "/var/www",
    ],
    Os::Macos => &[
        "/Users",
        "/Volumes",
        "/opt",
        "/private/tmp",
        "/private/var/folders",
        "/private/var/tmp",
        "/usr/local/src",
    ],
    Os::Windows => &[],
};

/// Where settings lie in a home.
const USUAL_CONFIG: &str = ".config";
/// Where programs keep in a home what they remember.
const USUAL_STATE: &str = ".local/state";

/// Why nobody can say where a command would run.
///
/// # Examples
///
/// ```
/// use ringfence::{Policy, Sandbox, SandboxError};
///
/// match Sandbox::new(Policy::agent("/no/such/project")) {
///     Err(SandboxError::Place(error)) => println!("{error}; {}", error.help()),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The current directory is gone, or may not be seen.
    #[error("the current directory cannot be found")]
    CurrentDirectory {
        /// What the kernel answered.
        source: io::Error,
    },
    /// `HOME` is not a place.
    #[error("HOME is {}, which is not an absolute path", printable_path(.home))]
    Home {
        /// What it says.
        home: PathBuf,
    },
    /// The directory that was named is not there, or not a directory.
    #[error("the project {} {what}", printable_path(.path))]
    Project {
        /// As it was given.
        path: PathBuf,
        /// What is wrong with it, as the end of a sentence.
        what: String,
    },
    /// No project was found, and the current directory is one of the system's own.
    #[error("there is no project here, and {directory} belongs to the system")]
    System {
        /// The current directory.
        directory: AbsPath,
    },
    /// No project was found, and the current directory holds too much to be one.
    #[error("there is no project here, and {directory} is too much to make writable")]
    TooWide {
        /// The current directory.
        directory: AbsPath,
    },
}

impl PlaceError {
    /// What would mend it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::CurrentDirectory { source } if is_too_long(source) => {
                "change to a directory with a shorter path"
            }
            Self::CurrentDirectory { .. } => "change to a directory that exists",
            Self::Home { .. } => "set HOME to the full path of your home, or unset it",
            // Not every command has a flag for it, and a library has none.
            Self::Project { .. } => "name a directory that exists",
            Self::System { .. } | Self::TooWide { .. } => {
                "change to the project's directory, or name one with `--project PATH`; if you mean \
                 this one, `--project .`"
            }
        }
    }
}

/// Whether a directory is there, at a path longer than any call takes.
fn is_too_long(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NAMETOOLONG | Errno::RANGE))
}

/// Which directory is the project.
#[derive(Clone, Copy, Debug)]
pub enum Project<'a> {
    /// The nearest one above the current directory.
    Nearest,
    /// This one, whatever it is.
    Named(&'a Path),
}

/// What a process can say about where it is.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The current directory.
    pub current: AbsPath,
    /// The caller's home, canonical: what `HOME` says, else the user database; `None` if neither
    /// names a directory.
    pub home: Option<AbsPath>,
    /// What the user database says, if that is another directory.
    account_home: Option<AbsPath>,
    /// Where ringfence's own settings are.
    pub config: Option<PathBuf>,
    /// Where ringfence keeps what it remembers.
    pub state: Option<PathBuf>,
    /// Where ringfence keeps what is over when the machine stops.
    pub runtime: Option<PathBuf>,
    variables: Variables,
}

impl Surroundings {
    /// Asks the running process.
    ///
    /// # Errors
    ///
    /// If there is no current directory, or `HOME` is not absolute.
    pub fn of_process(lookout: &Lookout) -> Result<Self, PlaceError> {
        let current =
            std::env::current_dir().map_err(|source| PlaceError::CurrentDirectory { source })?;
        // Some C libraries find it out all the same, and nothing there could be looked at.
        if current.as_os_str().len() >= LONGEST_PATH {
            let source = Errno::NAMETOOLONG.into();
            return Err(PlaceError::CurrentDirectory { source });
        }
        Self::standing(&current, lookout)
    }

    /// The same for whoever asks what is the user's, wherever that is: if the current directory is
    /// gone, he stands at the root.
    ///
    /// # Errors
    ///
    /// If `HOME` is not absolute.
    pub fn of_user(lookout: &Lookout) -> Result<Self, PlaceError> {
        match Self::of_process(lookout) {
            Err(PlaceError::CurrentDirectory { .. }) => Self::standing(Path::new("/"), lookout),
            found => found,
        }
    }

    fn standing(current: &Path, lookout: &Lookout) -> Result<Self, PlaceError> {
        let account = Account::of_process();
        Self::new(current, Variables::of_process(), &account, lookout)
    }

    fn new(
        current: &Path,
        variables: Variables,
        account: &Account,
        lookout: &Lookout,
    ) -> Result<Self, PlaceError> {
        let current = AbsPath::parse(current).map_err(|error| PlaceError::CurrentDirectory {
            source: io::Error::new(io::ErrorKind::InvalidData, error),
        })?;
        // A home that is not a directory holds nothing: builders set such ones.
        let directory = |path: &Path| match lookout.look(path) {
            Seen::At(path, Found::Directory) => Some(path),
            Seen::At(..) | Seen::Absent | Seen::Unreadable(_) => None,
        };
        let home = match variables.named("HOME") {
            None => None,
            Some(home) if !Path::new(home).is_absolute() => {
                return Err(PlaceError::Home { home: home.into() });
            }
            Some(home) => directory(Path::new(home)),
        };
        // Whoever takes the variable away, or sets it to something else, moves no keys with it.
        let of_account = account.home.as_deref().and_then(directory);
        let (home, account_home) = match home {
            None => (of_account, None),
            Some(home) => {
                let other = of_account.filter(|other| *other != home);
                (Some(home), other)
            }
        };
        let own = |variable: &str, default: &str| {
            let base = variables.directory(variable).map(Path::to_owned);
            let base = base.or_else(|| Some(home.as_ref()?.as_path().join(default)));
            base.map(|base| base.join("ringfence"))
        };
        Ok(Self {
            current,
            config: own("XDG_CONFIG_HOME", USUAL_CONFIG),
            state: own("XDG_STATE_HOME", USUAL_STATE),
            runtime: variables
                .directory("XDG_RUNTIME_DIR")
                .map(|base| base.join("ringfence")),
            home,
            account_home,
            variables,
        })
    }

    /// Makes the directory for ringfence's own state, if there is none: what is not there when a policy
    /// is made cannot be hidden from the session that is the first to write it.
    pub fn make_state(&self) {
        if let Some(state) = &self.state {
            let mut made = std::fs::DirBuilder::new();
            made.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut made, 0o700);
            // Whoever writes there says why that is not possible.
            let _later = made.create(state);
        }
    }

    /// Where the answers of threads are kept: with what is forgotten when the machine stops, if
    /// there is such a place.
    pub fn threads(&self) -> Option<PathBuf> {
        let base = self.runtime.as_ref().or(self.state.as_ref())?;
        Some(base.join("threads"))
    }

    /// Where sessions are written down: with what is forgotten when the machine stops, if there is
    /// such a place.
    pub fn sessions(&self) -> Option<PathBuf> {
        let runtime = self.runtime.as_ref().map(|base| base.join("sessions"));
        runtime.or_else(|| Some(self.state.as_ref()?.join("sessions")))
    }

    /// The user's settings file, whether or not there is one.
    pub fn user_settings(&self) -> Option<PathBuf> {
        Some(self.config.as_ref()?.join("settings.json"))
    }

    /// Where a command of some kind would run.
    ///
    /// # Errors
    ///
    /// If the named project is not a directory, or none was named and the current directory is
    /// the home, a directory of everybody's or the system's, or holds one of them.
    pub fn place(
        &self,
        kind: Kind,
        project: Project<'_>,
        lookout: &Lookout,
    ) -> Result<Place, PlaceError> {
        let project = match project {
            Project::Named(path) => self.named_project(path, lookout)?,
            Project::Nearest => self.nearest_project(lookout)?,
        };
        let toolchains = lists::TOOLCHAIN_VARIABLES.iter().filter_map(|(name, _)| {
            let directory = self.variables.named(name)?;
            Path::new(directory)
                .is_absolute()
                .then(|| (*name, directory.to_owned()))
        });
        Ok(Place {
            kind,
            os: OS,
            home: self.home.clone(),
            account_home: self.account_home.clone(),
            project,
            own: self.own(lookout),
            program: crate::programs::own(lookout),
            sockets: self.sockets(),
            toolchains: toolchains.collect(),
            secrets: self.secrets(),
            runtimes: crate::account::runtimes(self.variables.directory("XDG_RUNTIME_DIR")),
            repositories: Vec::new(),
        })
    }

    /// Where the caller's variables say that secrets are. Programs take a relative path of a file from
    /// where they are.
    fn secrets(&self) -> Vec<(&'static str, PathBuf)> {
        let mut secrets = Vec::new();
        for (name, relocated) in lists::SECRET_VARIABLES {
            let Some(value) = self.variables.named(name) else {
                continue;
            };
            let from_here = |path: &OsStr| self.current.as_path().join(path);
            match relocated {
                Relocated::Base(_) => {
                    secrets.extend(
                        self.variables
                            .directory(name)
                            .map(|path| (*name, path.into())),
                    );
                }
                Relocated::Directory | Relocated::File => secrets.push((*name, from_here(value))),
                Relocated::Files => {
                    let paths =
                        std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty());
                    secrets.extend(paths.map(|path| (*name, from_here(path.as_os_str()))));
                }
            }
        }
        secrets
    }

    /// Where to look for the project's repositories.
    pub fn search(&self, place: &Place) -> Search {
        let variables = git::VARIABLES.iter().filter_map(|name| {
            let value = self.variables.named(name)?;
            Some((*name, value.to_owned()))
        });
        let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter();
        let named = named.filter_map(|name| self.variables.named(name));
        let named = named.map(|file| self.current.as_path().join(file));
        let base = self.variables.directory("XDG_CONFIG_HOME");
        Search {
            configurations: named
                .chain(base.map(|base| base.join("git/config")))
                .collect(),
            project: place.project.clone(),
            home: self.home.clone(),
            current: self.current.clone(),
            variables: variables.collect(),
            state: self.state.clone(),
        }
    }

    /// Every home of the caller's.
    fn homes(&self) -> impl Iterator<Item = &AbsPath> {
        self.home.iter().chain(&self.account_home)
    }

    /// Directories of ringfence's own, by their canonical names if they exist: those that are used
    /// now, and those that are without a variable.
    fn own(&self, lookout: &Lookout) -> Vec<AbsPath> {
        let used = [&self.config, &self.state, &self.runtime];
        let used = used.into_iter().flatten().cloned();
        let usual = self.homes().flat_map(|home| {
            let bases = [USUAL_CONFIG, USUAL_STATE];
            bases.map(|base| home.as_path().join(base).join("ringfence"))
        });
        let mut own = Vec::new();
        for path in used.chain(usual) {
            let path = match lookout.look(&path) {
                Seen::At(path, _) => path,
                Seen::Absent | Seen::Unreadable(_) => match AbsPath::lexical(path) {
                    Ok(path) => path,
                    Err(_) => continue,
                },
            };
            if !own.contains(&path) {
                own.push(path);
            }
        }
        own
    }

    fn named_project(&self, path: &Path, lookout: &Lookout) -> Result<AbsPath, PlaceError> {
        let what = match lookout.look(&self.current.as_path().join(path)) {
            Seen::At(project, Found::Directory) => return Ok(project),
            Seen::At(..) => "is not a directory".to_owned(),
            Seen::Absent => "does not exist".to_owned(),
            Seen::Unreadable(why) => format!("cannot be looked up: {why}"),
        };
        let path = path.to_owned();
        Err(PlaceError::Project { path, what })
    }

    fn nearest_project(&self, lookout: &Lookout) -> Result<AbsPath, PlaceError> {
        let mut candidate = Some(self.current.clone());
        while let Some(directory) = candidate {
            if self.is_too_wide(&directory) {
                break;
            }
            let marked = PROJECT_MARKERS.iter().any(|marker| {
                let seen = lookout.look(directory.below(marker).as_path());
                matches!(seen, Seen::At(..))
            });
            if marked {
                return Ok(directory);
            }
            candidate = directory.parent();
        }
        if self.is_too_wide(&self.current) {
            let directory = self.current.clone();
            return Err(PlaceError::TooWide { directory });
        }
        if self.is_systems(&self.current) {
            let directory = self.current.clone();
            return Err(PlaceError::System { directory });
        }
        Ok(self.current.clone())
    }

    /// The root, a home, a tree of the system, a directory of everybody's, and whatever holds one:
    /// never a project unless somebody says so, whatever is in it. Anybody can leave a marker in
    /// `/tmp`.
    fn is_too_wide(&self, directory: &AbsPath) -> bool {
        let mut known = SYSTEM_TREES.iter().chain(SHARED);
        *directory == AbsPath::root()
            || self.homes().any(|home| directory.covers(home))
            || known.any(|known| Path::new(known).starts_with(directory.as_path()))
    }

    /// The directories above a project whose settings hold in it as well: those that somebody could have
    /// started in without naming them.
    pub(crate) fn around(&self, project: &AbsPath) -> impl Iterator<Item = AbsPath> {
        std::iter::successors(project.parent(), AbsPath::parent)
            .take_while(|above| !self.is_too_wide(above))
    }

    /// Whether a directory lies in a tree of the system, and neither with everybody's nor in a home
    /// that lies there itself, as those of services do.
    fn is_systems(&self, directory: &AbsPath) -> bool {
        let mut trees = SYSTEM_TREES.iter();
        trees.any(|tree| {
            let is_in = |path: &AbsPath, tree: &str| path.as_path().starts_with(tree);
            let mut homes = self.homes();
            is_in(directory, tree)
                && !SHARED.iter().any(|shared| is_in(directory, shared))
                && !homes.any(|home| is_in(home, tree) && home.covers(directory))
        })
    }

    /// Where the usual sockets would be. Nothing is looked at until a rule asks for one.
    fn sockets(&self) -> Vec<(&'static str, PathBuf)> {
        let runtime = self.variables.directory("XDG_RUNTIME_DIR");
        let in_runtime = |name: &str| Some(runtime?.join(name));
        let text = |name: &str| self.variables.named(name).and_then(OsStr::to_str);
        let docker = text("DOCKER_HOST")
            .and_then(|host| host.strip_prefix("unix://"))
            .unwrap_or("/run/docker.sock");
        let gpg = self.variables.directory("GNUPGHOME");
        let gpg = gpg.map(|home| home.join("S.gpg-agent"));
        let gpg = gpg.or_else(|| in_runtime("gnupg/S.gpg-agent"));
        let in_home = |name: &str| Some(self.home.as_ref()?.as_path().join(name));
        let bus = text("DBUS_SESSION_BUS_ADDRESS")
            .and_then(|address| address.strip_prefix("unix:path="))
            .map(|rest| PathBuf::from(rest.split([',', ';']).next().unwrap_or(rest)));
        let wayland = self.variables.named("WAYLAND_DISPLAY");
        let wayland = wayland.unwrap_or_else(|| OsStr::new("wayland-0"));
        let display = text("DISPLAY")
            .and_then(|display| display.strip_prefix(':'))
            .map(|number| number.split('.').next().unwrap_or(number))
            .filter(|number| !number.is_empty())
            .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let found = [
            ("docker", Some(PathBuf::from(docker))),
            ("gpg-agent", gpg.or_else(|| in_home(".gnupg/S.gpg-agent"))),
            (
                "podman",
                in_runtime("podman/podman.sock")
                    .or_else(|| Some(PathBuf::from("/run/podman/podman.sock"))),
            ),
            ("session-bus", bus.or_else(|| in_runtime("bus"))),
            (
                "ssh-agent",
                self.variables.named("SSH_AUTH_SOCK").map(PathBuf::from),
            ),
            ("wayland", runtime.map(|runtime| runtime.join(wayland))),
            (
                "x11",
                display.map(|number| PathBuf::from(format!("/tmp/.X11-unix/X{number}"))),
            ),
        ];
        found
            .into_iter()
            .filter_map(|(name, path)| Some((name, path?)))
            .filter(|(_, path)| path.is_absolute())
            .collect()
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
