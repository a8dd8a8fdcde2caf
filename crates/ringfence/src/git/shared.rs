//! What the user's own configuration, and the machine's, makes git obey in every repository.

use std::path::{Path, PathBuf};

use ringfence_core::git::config::{self, Obeyed, Variable};

use super::reading::Config;
use super::{MOST_INCLUDES, Search};

/// Where gits that were built by different people look for the machine's configuration.
const SYSTEM: &[&str] = &[
    "/etc/gitconfig",
    "/usr/etc/gitconfig",
    "/usr/local/etc/gitconfig",
    // Homebrew, MacPorts and Apple's.
    "/home/linuxbrew/.linuxbrew/etc/gitconfig",
    "/opt/homebrew/etc/gitconfig",
    "/opt/local/etc/gitconfig",
    "/usr/local/git/etc/gitconfig",
    "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
    "/Applications/Xcode.app/Contents/Developer/usr/share/git-core/gitconfig",
    // Nix, also for one user.
    "/run/current-system/sw/etc/gitconfig",
    "/nix/var/nix/profiles/default/etc/gitconfig",
];

/// What counts in every repository.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) variables: Vec<Variable>,
    /// Files that could not be read whole.
    pub(super) unread: Vec<PathBuf>,
}

/// Where hooks are, and which files are read besides: programs are the user's own. All files are read, also
/// those that git leaves out because of a variable: it may be called without that one later.
pub(super) fn shared_config(search: &Search) -> Shared {
    let mut files: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    if let Some(home) = &search.home {
        files.push(home.as_path().join(".nix-profile/etc/gitconfig"));
        files.push(home.as_path().join(".config/git/config"));
        files.push(home.as_path().join(".gitconfig"));
    }
    files.extend(search.configurations.iter().cloned());
    let mut reader = Reader {
        search,
        left: MOST_INCLUDES + files.len(),
        read: Vec::new(),
        found: Shared::default(),
    };
    for file in files {
        reader.read(&file);
    }
    reader.found
}

struct Reader<'a> {
    search: &'a Search,
    left: usize,
    /// Files that include each other are read once.
    read: Vec<PathBuf>,
    found: Shared,
}

impl Reader<'_> {
    fn read(&mut self, file: &Path) {
        if self.read.iter().any(|known| known == file) {
            return;
        }
        let text = match (self.left.checked_sub(1), Config::own(file)) {
            (Some(left), Config::Text(text, _)) => {
                self.left = left;
                text
            }
            (Some(_), Config::None) => return,
            (None, _) | (_, Config::TooLong) => return self.found.unread.push(file.to_owned()),
        };
        self.read.push(file.to_owned());
        for variable in config::parse(&text) {
            match config::obeyed(&variable.key) {
                Some(Obeyed::Path) => self.found.variables.push(variable),
                Some(Obeyed::Include) => {
                    if let Some(included) = self.included(file, &variable.value) {
                        self.read(&included);
                        // One of the project's files, perhaps.
                        let value = included.to_string_lossy().into_owned();
                        let include = Variable { value, ..variable };
                        self.found.variables.push(include);
                    }
                }
                Some(Obeyed::Program | Obeyed::Worktree) | None => {}
            }
        }
    }

    fn included(&self, file: &Path, written: &str) -> Option<PathBuf> {
        match written.strip_prefix("~/") {
            Some(rest) => Some(self.search.home.as_ref()?.as_path().join(rest)),
            None => Some(file.parent()?.join(written)),
        }
    }
}
