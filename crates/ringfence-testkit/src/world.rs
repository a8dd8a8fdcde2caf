//! A throwaway place with a project, things that are none of the project's business, and ways to
//! run the probe in it: free, and confined.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{Case, Done, compare};
use crate::setup::Setup;
use crate::snapshot::Snapshot;

/// The programs of this kit; see [`binaries!`](crate::binaries).
#[derive(Clone, Copy, Debug)]
pub struct Binaries {
    /// Does single things.
    pub probe: &'static str,
    /// Starts a command in a sandbox.
    pub confine: &'static str,
    /// Makes a network of its own.
    pub stage: &'static str,
    /// Where cargo wants the files of tests.
    pub tmp: &'static str,
}

/// A uid that owns nothing on any machine.
pub const PLAIN: u32 = 54_321;

/// Who launches.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Who {
    /// Whoever runs the tests; with a root that is root.
    Caller,
    /// A user without rights.
    Plain,
}

/// What stands in every file that nobody inside may see or change.
pub const CANARY: &str = "canary-5b1f6a";

/// Where a session has directories of its own.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// A throwaway place. See [`for_each_user`].
#[derive(Debug)]
pub struct World {
    // Removed with the world.
    directory: tempfile::TempDir,
    root: PathBuf,
    who: Who,
}

/// Runs a test's body in a world of its own, once as the caller and, if that is root, once as a
/// user without rights.
///
/// A test run by a plain user cannot become root: the missing half is announced, and is a failure
/// where `RINGFENCE_MUST_HAVE` names `root`.
pub fn for_each_user(binaries: Binaries, body: impl Fn(&World)) {
    body(&World::new(binaries, Who::Caller, OsStr::new("world")));
    if is_root() {
        body(&World::new(binaries, Who::Plain, OsStr::new("world")));
    } else {
        not_run("root");
    }
}

/// Says something that is shown also when the test passes.
pub fn say(text: &str) {
    // The macros print into what the runner keeps to itself.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Announces what could not be run here, and fails where `RINGFENCE_MUST_HAVE` promises it: the
/// first word of `what` is its name.
pub fn not_run(what: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    say(&format!("NOT RUN, it needs {what}: {name}"));
    let needed = what.split([' ', ',']).next().unwrap_or(what);
    let promised = std::env::var("RINGFENCE_MUST_HAVE").unwrap_or_default();
    let promised = promised.split(',').any(|each| each == needed);
    assert!(!promised, "{name} must run here: it needs {what}");
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The Landlock of this kernel; every test here needs one.
pub fn landlock_abi() -> u32 {
    ringfence_sys::landlock::abi().expect("these tests need a kernel with Landlock")
}

impl World {
    /// A world whose directory has this name.
    pub fn new(binaries: Binaries, who: Who, name: &OsStr) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("ringfence-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(base(binaries))
            .unwrap();
        let root = directory.path().canonicalize().unwrap().join(name);
        let world = Self {
            directory,
            root,
            who,
        };
        for directory in ["", "bin", "project", "project/src"] {
            fs::create_dir_all(world.path(directory)).unwrap();
        }
        // Copies: a link made by another test would look like a change.
        copy_program(binaries.probe, &world.path("bin/probe"));
        copy_program(binaries.confine, &world.path("bin/confine"));
        fs::write(world.path("project/src/file"), "project\n").unwrap();
        fs::write(world.path("project/README"), "project\n").unwrap();
        world.restore();
        world
    }

    /// Makes everything outside the project as it was at the beginning.
    pub fn restore(&self) {
        for name in ["outside", "other", "home"] {
            let path = self.path(name);
            if fs::symlink_metadata(&path).is_ok() {
                fs::remove_dir_all(&path).unwrap();
            }
        }
        let directories = [
            "outside/dir",
            "outside/empty",
            "other/src",
            "home/.ssh",
            "home/.aws",
            "home/.config/gh",
            "home/.config/app",
            "home/.cargo",
        ];
        for directory in directories {
            fs::create_dir_all(self.path(directory)).unwrap();
        }
        let files = [
            "outside/canary",
            "outside/dir/canary",
            "other/src/canary",
            "home/.ssh/id_canary",
            "home/.aws/credentials",
            "home/.config/gh/hosts.yml",
            "home/.config/app/plain",
            "home/.netrc",
            "home/.bash_history",
            "home/.bashrc",
            "home/.cargo/credentials.toml",
        ];
        for file in files {
            fs::write(self.path(file), format!("{CANARY}\n")).unwrap();
        }
        self.own();
    }

    /// Gives everything to the user who launches.
    pub fn own(&self) {
        if self.who == Who::Plain {
            own(&self.root);
        }
    }

    /// Something in this world.
    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.root.join(below)
    }

    /// Something that no rule grants.
    pub fn outside(&self, below: impl AsRef<Path>) -> PathBuf {
        self.path("outside").join(below)
    }

    /// Something in the project.
    pub fn project(&self, below: impl AsRef<Path>) -> PathBuf {
        self.path("project").join(below)
    }

    /// Something in the home.
    pub fn home(&self, below: impl AsRef<Path>) -> PathBuf {
        self.path("home").join(below)
    }

    /// Who launches.
    pub fn who(&self) -> Who {
        self.who
    }

    /// The directory around this world.
    pub fn around(&self) -> &Path {
        self.directory.path()
    }

    /// The user and group who launch.
    pub fn ids(&self) -> (u32, u32) {
        match self.who {
            Who::Plain => (PLAIN, PLAIN),
            Who::Caller => (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
        }
    }

    /// What a launch in this world starts from: the preset `agent`, and all of the world readable
    /// wherever it lies.
    pub fn setup(&self) -> Setup {
        self.setup_with("")
    }

    /// The same with more settings, written as further keys of a file.
    pub fn setup_with(&self, keys: &str) -> Setup {
        let settings = self.settings(keys, &[]);
        Setup::new(&self.project(""), &self.home("")).settings(settings)
    }

    /// A settings file that shows this world, grants writing to `write`, and says `keys` besides.
    pub fn settings(&self, keys: &str, write: &[&Path]) -> String {
        let root = text(&self.root);
        let write: Vec<String> = write.iter().map(|path| text(path)).collect();
        let write = serde_json::to_string(&write).unwrap();
        format!(
            r#"{{"terminal": {{"sandbox": {{
                "additional_executable_paths": [{}],
                "additional_read_write_paths": {write}
            }}}}, {keys}}}"#,
            serde_json::to_string(&root).unwrap()
        )
    }

    /// What must not change: everything of the world but the project.
    pub fn guarded(&self) -> [PathBuf; 4] {
        ["outside", "other", "home", "bin"].map(|name| self.path(name))
    }

    /// What everything outside the project is like now.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(self.guarded())
    }

    /// A program of this world, as the user who launches, with few variables.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", self.home(""))
            .env("LANG", "C.UTF-8")
            // This world may lie in a repository: whatever a test does to its own, git must not
            // take that one instead.
            .env("GIT_CEILING_DIRECTORIES", &self.root)
            .current_dir(self.project(""))
            .stdin(Stdio::null());
        if self.who == Who::Plain {
            command.uid(PLAIN).gid(PLAIN);
        }
        command
    }

    /// The probe, free.
    pub fn probe<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Done {
        Done::of(self.command(self.path("bin/probe")).args(arguments))
    }

    /// Any command, confined; to be completed and run.
    pub fn confine<S: AsRef<OsStr>>(
        &self,
        setup: &Setup,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = self.command(self.path("bin/confine"));
        command.arg(setup.to_argument()).args(arguments);
        command
    }

    /// Any command, confined, to its end.
    #[track_caller]
    pub fn run<S: AsRef<OsStr>>(
        &self,
        setup: &Setup,
        arguments: impl IntoIterator<Item = S>,
    ) -> Done {
        Done::of(&mut self.confine(setup, arguments))
    }

    /// The probe, confined.
    pub fn inside<S: AsRef<OsStr>>(
        &self,
        setup: &Setup,
        arguments: impl IntoIterator<Item = S>,
    ) -> Done {
        let probe = self.path("bin/probe").into_os_string();
        let arguments = arguments.into_iter().map(|part| part.as_ref().to_owned());
        Done::of(&mut self.confine(setup, std::iter::once(probe).chain(arguments)))
    }

    /// Holds every case against an unconfined run first, then against a confined one, after which
    /// nothing outside may have changed.
    #[track_caller]
    pub fn check(&self, setup: &Setup, cases: &[Case]) {
        self.control(cases);
        self.check_confined(setup, cases);
    }

    /// Holds every case against an unconfined run, and makes the world new again.
    #[track_caller]
    pub fn control(&self, cases: &[Case]) {
        let free = self.probe(script(cases));
        let who = self.who;
        compare(&format!("free, {who:?}"), &free, cases, |case| &case.free);
        self.restore();
    }

    /// Holds every case against an unconfined run that may also say something to compare.
    #[track_caller]
    pub fn control_listing(&self, cases: &[Case]) {
        let free = self.probe(script(cases));
        free.assert_status(0);
        for (case, line) in cases.iter().zip(&free.lines) {
            assert!(line.starts_with(&case.free), "{case:?}: {line}");
        }
        self.restore();
    }

    /// Holds every case against a confined run alone.
    #[track_caller]
    pub fn check_confined(&self, setup: &Setup, cases: &[Case]) {
        let before = self.snapshot();
        let confined = self.inside(setup, script(cases));
        let what = format!("confined, {:?}", self.who);
        compare(&what, &confined, cases, |case| &case.confined);
        before.assert_same(self.guarded());
    }

    /// Shows that one layer is what refuses: without it, each case ends as `free` says. The world
    /// is made new afterwards.
    #[track_caller]
    pub fn mutation(&self, setup: &Setup, cases: &[Case]) {
        let done = self.inside(setup, script(cases));
        let what = format!("without a layer, {:?}", self.who);
        compare(&what, &done, cases, |case| &case.free);
        self.restore();
    }
}

/// The operations of all cases as one command line of the probe's.
fn script(cases: &[Case]) -> Vec<OsString> {
    let mut out = Vec::new();
    for case in cases {
        if !out.is_empty() {
            out.push(OsString::from(","));
        }
        out.extend(case.operation.iter().cloned());
    }
    out
}

/// Where worlds lie: where cargo wants them, unless a plain user could not get there, or a session
/// would see a temporary directory of its own instead.
fn base(binaries: Binaries) -> PathBuf {
    let wanted = PathBuf::from(binaries.tmp);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let places = [Some(wanted), Some(PathBuf::from("/var/lib")), home];
    first_fit(places.into_iter().flatten(), is_root())
}

/// The first place that fits. A test in one that does not would fail for another reason than it says.
fn first_fit(places: impl Iterator<Item = PathBuf>, is_root: bool) -> PathBuf {
    let mut unfit = Vec::new();
    for place in places {
        match why_not(&place, is_root) {
            None => return place,
            Some(why) => unfit.push(format!("{}: {why}", place.display())),
        }
    }
    panic!("there is no place for a world: {}", unfit.join("; "));
}

/// Why no world can lie in a place.
fn why_not(place: &Path, is_root: bool) -> Option<String> {
    let place = match fs::canonicalize(place) {
        Ok(place) => place,
        Err(error) => return Some(error.to_string()),
    };
    if TEMPORARY.iter().any(|parent| place.starts_with(parent)) {
        return Some("a session has a temporary directory of its own there".to_owned());
    }
    let open = |path: &Path| fs::metadata(path).is_ok_and(|meta| meta.mode() & 0o005 == 0o005);
    if is_root && !place.ancestors().all(open) {
        return Some("a plain user does not get there".to_owned());
    }
    let tried = tempfile::tempdir_in(place);
    tried.err().map(|error| error.to_string())
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Copies a program that will be run.
///
/// By another process: a test beside this one that forks while we have the copy open for writing
/// would keep it so, and nobody could run it.
pub fn copy_program(from: impl AsRef<OsStr>, to: &Path) {
    let done = Command::new("cp").arg(from).arg(to).status().unwrap();
    assert!(done.success());
}

/// Gives a tree to the plain user, without following links.
fn own(path: &Path) {
    std::os::unix::fs::lchown(path, Some(PLAIN), Some(PLAIN)).unwrap();
    if fs::symlink_metadata(path).unwrap().is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_does_not_fit_is_not_taken() {
        let places = ["/nowhere", "/tmp", "/proc"].map(PathBuf::from);
        let tried = std::panic::catch_unwind(|| first_fit(places.into_iter(), false));
        let why = *tried.unwrap_err().downcast::<String>().unwrap();
        for place in ["/nowhere: ", "/tmp: ", "/proc: "] {
            assert!(why.contains(place), "{why}");
        }
    }
}
