//! Settings of directories above the project.
//!
//! A part of a project can be opened by itself, and any session that writes there can make it one that is
//! found first: it makes a `package.json`, or a repository. What the directories around it restrict must
//! not be lost by that. So their files are read too, and only ever take away.
//!
//! A directory above may be everybody's, and a broken file in it would keep all who work below from starting.
//! So whose a file is decides whether it counts. Who may write to the directory does not: a session could
//! open its own directory to everybody, and be rid of the file in it. It cannot give the file away.

use std::path::Path;
use std::sync::Arc;

use ringfence_core::origin::{Layer, Source};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::Place;
use ringfence_core::settings::{Base, Key, Keys, Preset, ProjectName, SettingPath, SettingsFile};

use super::{Content, File, Loaded, OS, PROJECT_SETTINGS, read_project};

impl Loaded {
    /// Reads the file of a directory above the project, if it has one.
    pub(super) fn take_around(&mut self, root: &AbsPath, place: &Place) {
        let [directory, name] = PROJECT_SETTINGS;
        let directory = root.as_path().join(directory);
        let path = directory.join(name);
        if is_anothers(&directory, &place.project) || is_anothers(&path, &place.project) {
            return;
        }
        let content = match read_project(&directory, name) {
            Ok(None) => return,
            Err(error) => Content::Unreadable(Arc::new(error)),
            Ok(Some(text)) => {
                let source = Source::new(Layer::Project, path.clone(), text);
                let base = Base {
                    directory,
                    home: place.home.as_ref().map(|home| home.as_path().to_owned()),
                    project: Some(root.as_path().to_owned()),
                };
                let (file, problems) = SettingsFile::read(&source, &base);
                let keys = inside(file.on(OS), root.as_path(), place.project.as_path());
                self.settings = std::mem::take(&mut self.settings).within(keys);
                Content::Read { source, problems }
            }
        };
        self.files.push(File {
            layer: Layer::Project,
            path,
            content,
        });
    }
}

/// Whether a name belongs to somebody who has no say: not to the user, to root, or to the owner of the
/// project, who could stop everything with the project's own file. A link counts as such. What cannot be
/// looked at is not passed over: reading says why.
fn is_anothers(path: &Path, project: &AbsPath) -> bool {
    let owner = |path: &Path| rustix::fs::lstat(path).map(|status| status.st_uid);
    let Ok(found) = owner(path) else {
        return false;
    };
    let own = rustix::process::geteuid().as_raw();
    found != own && found != 0 && owner(project.as_path()) != Ok(found)
}

/// What the file of a root says of a project inside it. Names are meant from that root on, and nobody there
/// can lift the restrictions altogether.
fn inside(mut keys: Keys, root: &Path, project: &Path) -> Keys {
    let sandbox = &mut keys.terminal.sandbox;
    sandbox.enabled = Key::default();
    sandbox.apply_to = Key::default();
    let preset = keys.preset.written();
    if preset.is_some_and(|preset| preset.value == Preset::Track) {
        keys.preset = Key::default();
    }
    keys.protect.allow = Key::default();
    let protected = std::mem::take(&mut keys.protect.add);
    let protected = protected.written().into_iter();
    for name in protected.flat_map(|list| &list.value) {
        let path = root.join(&name.value.0);
        let origin = name.origin.clone();
        if project.starts_with(&path) {
            let whole = SettingPath(project.to_owned());
            let read = &mut keys.terminal.sandbox.additional_executable_paths;
            read.push(whole, origin);
        } else if let Ok(rest) = path.strip_prefix(project) {
            let rest = ProjectName(rest.to_owned());
            keys.protect.add.push(rest, origin);
        }
    }
    keys
}
