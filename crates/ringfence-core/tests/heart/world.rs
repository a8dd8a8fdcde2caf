//! A file system that is data, for [`resolve`] to look at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use ringfence_core::git::{GitDir, Position, Repository, Role, Shape};
use ringfence_core::origin::{Layer, Source};
use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Complaint, Found, Look, Place, Policy, Seen, resolve};
use ringfence_core::settings::{Base, Keys, Kind, Os, Settings, SettingsFile, has_errors};

#[derive(Clone, Debug)]
enum Node {
    Is(Found),
    Link(PathBuf),
}

/// Directories, files and links by path.
#[derive(Clone, Debug)]
pub(crate) struct World {
    nodes: BTreeMap<PathBuf, Node>,
    unreadable: BTreeSet<PathBuf>,
    /// Those beside the project, as somebody finds them who looks everywhere.
    pub(crate) repositories: Vec<Repository>,
    pub(crate) home: &'static str,
    pub(crate) account_home: Option<&'static str>,
    pub(crate) project: &'static str,
    pub(crate) os: Os,
}

pub(crate) fn path(text: &str) -> AbsPath {
    AbsPath::parse(text).unwrap()
}

impl World {
    /// A Linux machine with a user, her project and a few secrets.
    pub(crate) fn linux() -> Self {
        let mut world = Self {
            nodes: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            repositories: Vec::new(),
            home: "/home/u",
            account_home: None,
            project: "/home/u/p",
            os: Os::Linux,
        };
        for directory in [
            "/etc/ssl/private",
            "/usr/bin",
            "/usr/lib/locale",
            "/usr/share",
            "/opt",
            "/sys",
            "/dev/shm",
            "/dev/pts",
            "/dev/dri",
            "/proc/sys",
            "/tmp/a/b",
            "/var/tmp",
            "/run/user/1000",
            "/root",
            "/home/other/stuff",
            "/home/u/.ssh",
            "/home/u/.config/gh",
            "/home/u/.config/app",
            "/home/u/.cargo/bin",
            "/home/u/.cache/pip",
            "/home/u/p/src/deep/er",
            "/home/u/p/.git/hooks",
            "/home/u/p/.git/objects/info",
            "/home/u/p/.vscode",
            "/home/u/p/.github/workflows",
            "/data/d",
        ] {
            world = world.directory(directory);
        }
        for file in [
            "/etc/passwd",
            "/etc/shadow",
            "/proc/cpuinfo",
            "/home/u/.bashrc",
            "/home/u/.gitconfig",
            "/home/u/.ssh/id",
            "/home/u/p/.git/config",
            "/home/u/p/src/main.rs",
        ] {
            world = world.node(file, Node::Is(Found::File));
        }
        for device in ["/dev/null", "/dev/tty", "/dev/kvm", "/dev/dri/card0"] {
            world = world.node(device, Node::Is(Found::Other));
        }
        world
            .node("/run/agent.sock", Node::Is(Found::Other))
            .link("/bin", "usr/bin")
            .link("/lib", "usr/lib")
            .link("/var/run", "/run")
    }

    /// A Mac with a user, her project and a few secrets.
    pub(crate) fn macos() -> Self {
        let mut world = Self {
            nodes: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            repositories: Vec::new(),
            home: "/Users/u",
            account_home: None,
            project: "/Users/u/p",
            os: Os::Macos,
        };
        for directory in [
            "/bin",
            "/usr/bin",
            "/usr/lib",
            "/usr/share",
            "/System/Library/dyld",
            "/System/Cryptexes",
            "/Library/Apple/usr/bin",
            "/Applications",
            "/opt/homebrew/bin",
            "/private/etc/ssl/private",
            "/private/tmp/a/b",
            "/private/var/tmp",
            "/private/var/folders/xy",
            "/private/var/select",
            "/private/var/run",
            "/private/var/root",
            "/dev",
            "/Users/other/stuff",
            "/Users/u/.ssh",
            "/Users/u/.config/gh",
            "/Users/u/.config/app",
            "/Users/u/.cargo/bin",
            "/Users/u/Library/Keychains",
            "/Users/u/p/src/deep/er",
            "/Users/u/p/.git/hooks",
            "/Users/u/p/.git/objects/info",
            "/Users/u/p/.vscode",
            "/Users/u/p/.github/workflows",
        ] {
            world = world.directory(directory);
        }
        for file in [
            "/private/etc/passwd",
            "/Users/u/.zshrc",
            "/Users/u/.gitconfig",
            "/Users/u/.ssh/id",
            "/Users/u/p/.git/config",
            "/Users/u/p/src/main.rs",
        ] {
            world = world.file(file);
        }
        for special in [
            "/dev/null",
            "/dev/disk0",
            "/run/agent.sock",
            "/private/var/run/mDNSResponder",
        ] {
            world = world.node(special, Node::Is(Found::Other));
        }
        world
            .link("/tmp", "private/tmp")
            .link("/var", "private/var")
            .link("/etc", "private/etc")
    }

    /// A repository in each of some directories beside the project, of every shape; one leads to a git
    /// directory that nobody named.
    pub(crate) fn with_repositories(self) -> Self {
        let repository = |entry: &str, shape, git_dirs: &[&str]| Repository {
            entry: path(entry),
            shape,
            position: Position::Granted,
            git_dirs: git_dirs
                .iter()
                .map(|directory| GitDir {
                    path: path(directory),
                    role: Role::Main,
                })
                .collect(),
            obeyed: Vec::new(),
            unread: Vec::new(),
        };
        let mut world = self;
        for git_dir in [
            "/data/d/.git",
            "/home/other/.git",
            "/home/main/.git",
            "/home/u/.config",
        ] {
            for name in ["hooks", "info", "objects/info", "refs/heads"] {
                world = world.directory(&format!("{git_dir}/{name}"));
            }
            world = world.file(&format!("{git_dir}/config"));
        }
        let mut world = world.file("/tmp/a/.git").directory("/data/d/.vscode");
        let mut hooks = repository("/home/other/.git", Shape::Directory, &["/home/other/.git"]);
        hooks.obeyed.push(path("/home/other/stuff"));
        world.repositories = vec![
            repository("/data/d/.git", Shape::Directory, &["/data/d/.git"]),
            hooks,
            repository("/tmp/a/.git", Shape::Pointer, &["/home/main/.git"]),
            repository("/home/u/.config", Shape::Bare, &["/home/u/.config"]),
        ];
        world
    }

    pub(crate) fn directory(self, at: &str) -> Self {
        self.node(at, Node::Is(Found::Directory))
    }

    pub(crate) fn file(self, at: &str) -> Self {
        self.node(at, Node::Is(Found::File))
    }

    pub(crate) fn link(self, at: &str, target: &str) -> Self {
        self.node(at, Node::Link(PathBuf::from(target)))
    }

    pub(crate) fn unreadable(mut self, at: &str) -> Self {
        self.unreadable.insert(PathBuf::from(at));
        self
    }

    pub(crate) fn without(mut self, at: &str) -> Self {
        self.nodes.retain(|path, _| !path.starts_with(at));
        self
    }

    fn node(mut self, at: &str, node: Node) -> Self {
        let at = Path::new(at);
        for parent in at.ancestors().skip(1) {
            let directory = Node::Is(Found::Directory);
            self.nodes.entry(parent.to_owned()).or_insert(directory);
        }
        self.nodes.insert(at.to_owned(), node);
        self
    }

    /// What [`resolve`] asks, with every link followed.
    pub(crate) fn look(&self, path: &Path) -> Seen {
        let mut left: VecDeque<OsString> = names(path);
        let mut at = PathBuf::from("/");
        let mut links = 0;
        // How many names are left behind the last link.
        let mut outside = None;
        while let Some(name) = left.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&name);
            if self.unreadable.contains(&next) {
                return Seen::Unreadable("permission denied".to_owned());
            }
            match self.nodes.get(&next) {
                None if outside.is_some_and(|outside| left.len() >= outside) => {
                    return Seen::Unreadable("a link leads nowhere".to_owned());
                }
                None => return Seen::Absent,
                Some(Node::Is(_)) => at = next,
                Some(Node::Link(target)) => {
                    links += 1;
                    if links > 40 {
                        return Seen::Unreadable("too many links".to_owned());
                    }
                    outside = Some(left.len());
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    for name in names(target).into_iter().rev() {
                        left.push_front(name);
                    }
                }
            }
        }
        match self.nodes.get(&at) {
            Some(Node::Is(found)) => Seen::At(AbsPath::parse(at).unwrap(), *found),
            _ => Seen::At(AbsPath::root(), Found::Directory),
        }
    }

    pub(crate) fn place(&self, kind: Kind) -> Place {
        Place {
            kind,
            os: self.os,
            home: Some(path(self.home)),
            account_home: self.account_home.map(path),
            project: path(self.project),
            own: vec![path(self.home).below(".config/ringfence")],
            program: None,
            sockets: vec![("ssh-agent", PathBuf::from("/run/agent.sock"))],
            toolchains: Vec::new(),
            secrets: Vec::new(),
            runtimes: Vec::new(),
            repositories: self.repositories.clone(),
        }
    }

    pub(crate) fn resolve(
        &self,
        kind: Kind,
        settings: &Settings,
    ) -> Result<Policy, Vec<Complaint>> {
        resolve(settings, &self.place(kind), self)
    }

    /// Reads a text that must be free of errors.
    pub(crate) fn keys(&self, layer: Layer, text: &str) -> Keys {
        let source = Source::new(layer, "/settings.json", text);
        let (file, problems) = SettingsFile::read(&source, &self.base());
        assert!(!has_errors(&problems), "{problems:#?}");
        file.on(self.os)
    }

    pub(crate) fn base(&self) -> Base {
        Base {
            directory: PathBuf::from("/settings"),
            home: Some(PathBuf::from(self.home)),
            project: Some(PathBuf::from(self.project)),
        }
    }

    /// The policy of a tool with these settings of the user's.
    pub(crate) fn tool(&self, user: &str) -> Policy {
        let settings = Settings::new().with(Layer::User, self.keys(Layer::User, user));
        self.resolve(Kind::Tool, &settings).unwrap()
    }

    /// The messages of the complaints about these settings of the user's.
    pub(crate) fn complaints(&self, user: &str) -> Vec<String> {
        let settings = Settings::new().with(Layer::User, self.keys(Layer::User, user));
        let complaints = self
            .resolve(Kind::Tool, &settings)
            .err()
            .unwrap_or_default();
        complaints
            .into_iter()
            .map(|complaint| complaint.message)
            .collect()
    }
}

impl Look for World {
    fn look(&self, path: &Path) -> Seen {
        Self::look(self, path)
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        match self.nodes.get(path) {
            Some(Node::Link(target)) => Some(target.clone()),
            Some(Node::Is(_)) | None => None,
        }
    }
}

fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::CurDir | Component::Prefix(_) | Component::RootDir => None,
        })
        .collect()
}
