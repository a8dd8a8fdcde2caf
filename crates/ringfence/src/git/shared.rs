//! What the user's own configuration, and the machine's, makes git obey in every repository.

use std::path::{Path, PathBuf};

use ringfence_core::git::config::{self, Obeyed, Variable};

use super::{MOST_INCLUDES, Search, reading};

/// Where hooks are, and which files are included: programs are the user's own. All files are read, also
/// those that git leaves out because of a variable: it may be called without that one later.
pub(super) fn shared_config(search: &Search) -> Vec<Variable> {
    let mut files = vec![PathBuf::from("/etc/gitconfig")];
    if let Some(home) = &search.home {
        files.push(home.as_path().join(".config/git/config"));
        files.push(home.as_path().join(".gitconfig"));
    }
    files.extend(search.configurations.iter().cloned());
    let mut shared = Shared {
        search,
        left: MOST_INCLUDES + files.len(),
        read: Vec::new(),
        found: Vec::new(),
    };
    for file in files {
        shared.read(&file);
    }
    shared.found
}

struct Shared<'a> {
    search: &'a Search,
    left: usize,
    /// Files that include each other are read once.
    read: Vec<PathBuf>,
    found: Vec<Variable>,
}

impl Shared<'_> {
    fn read(&mut self, file: &Path) {
        let known = self.read.iter().any(|known| known == file);
        let Some(left) = self.left.checked_sub(1).filter(|_| !known) else {
            return;
        };
        self.left = left;
        self.read.push(file.to_owned());
        let Some(text) = reading::own_config(file) else {
            return;
        };
        for variable in config::parse(&text) {
            match config::obeyed(&variable.key) {
                Some(Obeyed::Hooks) => self.found.push(variable),
                Some(Obeyed::Include) => {
                    if let Some(included) = self.included(file, &variable.value) {
                        self.read(&included);
                        // One of the project's files, perhaps.
                        let value = included.to_string_lossy().into_owned();
                        self.found.push(Variable { value, ..variable });
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
