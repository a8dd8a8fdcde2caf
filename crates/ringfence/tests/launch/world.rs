//! A project to run commands in, and a neighbour that they must not see.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use ringfence::core::origin::{Layer, Origin};
use ringfence::core::path::AbsPath;
use ringfence::core::plan::{EngineChoice, HostFacts, Plan, compile};
use ringfence::core::policy::{Place, Policy};
use ringfence::core::settings::{Keys, Kind, Os, Preset, SettingPath, Settings};
use ringfence::launch::{Cause, Command, LaunchError, Options, Report, prepare};
use ringfence::place::Lookout;
use ringfence::programs;
use tempfile::TempDir;

#[allow(
    dead_code,
    reason = "two test programs share it, and neither uses all of it"
)]
pub(crate) struct World {
    _top: TempDir,
    pub(crate) project: PathBuf,
    pub(crate) neighbour: PathBuf,
    pub(crate) keys: Keys,
    pub(crate) facts: HostFacts,
    pub(crate) engine: EngineChoice,
    pub(crate) options: Options,
}

pub(crate) fn flag() -> Origin {
    Origin::Flag { name: "--test" }
}

#[allow(
    dead_code,
    reason = "two test programs share it, and neither uses all of it"
)]
impl World {
    pub(crate) fn new(preset: Preset) -> Self {
        // Not below a temporary directory: a session has its own of those.
        let home = std::env::var_os("RINGFENCE_TEST_HOME");
        let top = tempfile::tempdir_in(home.unwrap_or_else(|| "/var/lib".into())).unwrap();
        std::fs::set_permissions(top.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let canonical = top.path().canonicalize().unwrap();
        let (project, neighbour) = (canonical.join("project"), canonical.join("neighbour"));
        std::fs::create_dir(&project).unwrap();
        std::fs::write(&neighbour, "secret").unwrap();
        let mut keys = Keys::default();
        keys.preset.set(preset, flag());
        Self {
            _top: top,
            project,
            neighbour,
            keys,
            facts: HostFacts::named("linux-6.18").unwrap(),
            engine: EngineChoice::Auto,
            options: Options::default(),
        }
    }

    /// Takes every system path away: nothing is left but what is granted.
    pub(crate) fn without_system(mut self) -> Self {
        let paths = &mut self.keys.terminal.sandbox.system_paths;
        paths.executable.set(Vec::new(), flag());
        paths.read_only.set(Vec::new(), flag());
        paths.read_write.set(Vec::new(), flag());
        self
    }

    pub(crate) fn executable(mut self, path: impl Into<PathBuf>) -> Self {
        let list = &mut self.keys.terminal.sandbox.additional_executable_paths;
        list.push(SettingPath(path.into()), flag());
        self
    }

    pub(crate) fn policy(&self) -> Policy {
        let place = Place {
            kind: Kind::Tool,
            os: Os::Linux,
            home: None,
            account_home: None,
            project: AbsPath::parse(&self.project).unwrap(),
            own: Vec::new(),
            program: None,
            sockets: Vec::new(),
            toolchains: Vec::new(),
            secrets: Vec::new(),
            runtimes: Vec::new(),
            repositories: Vec::new(),
        };
        let settings = Settings::new().with(Layer::Flag, self.keys.clone());
        programs::resolve(&settings, &place, &Lookout::new()).unwrap()
    }

    pub(crate) fn plan(&self, policy: &Policy) -> Plan {
        compile(policy, &self.facts, self.engine)
    }

    pub(crate) fn launch(&self, program: &str, arguments: &[&str]) -> Result<Report, LaunchError> {
        let policy = self.policy();
        let plan = self.plan(&policy);
        let command = Command {
            program: program.into(),
            arguments: arguments.iter().map(OsString::from).collect(),
            directory: self.project.clone(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        };
        let running = prepare(&policy, &plan, &command, self.options.clone())?.spawn()?;
        Ok(running.wait().unwrap())
    }

    /// Runs a shell script that may write into the project; returns its status and what it wrote
    /// to `out`.
    pub(crate) fn shell(&self, script: &str) -> (u8, String) {
        let script = format!("exec >out 2>&1; {script}");
        let report = self.launch("/bin/sh", &["-c", &script]).unwrap();
        let Cause::Exited { status } = report.cause else {
            panic!("{report:?}");
        };
        let out = std::fs::read(self.project.join("out")).unwrap_or_default();
        (status, String::from_utf8_lossy(&out).into_owned())
    }

    /// The same script without any restriction, to show that it can succeed.
    pub(crate) fn control(&self, script: &str) -> bool {
        let output = std::process::Command::new("/bin/sh")
            .args(["-c", script])
            .current_dir(&self.project)
            .output()
            .unwrap();
        output.status.success()
    }
}

/// Waits until something holds that is sure to come, for as long as it may take on a busy machine.
#[allow(
    dead_code,
    reason = "several test programs share it, and not all of them wait"
)]
#[track_caller]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !holds() {
        assert!(
            start.elapsed().as_secs() < 60,
            "it never came to this: {what}"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Runs one test of this binary again as a plain user; its name is that of the calling test with
/// its modules.
///
/// Does nothing when nobody but a plain user is here anyway.
pub(crate) fn also_as_plain_user(test: &str) {
    const PLAIN: u32 = 54_321;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let home = tempfile::tempdir_in("/var/lib").unwrap();
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(), readable.clone()).unwrap();
    let binary = home.path().join("tests");
    // By another program: a copy of our own open descriptor in a child that another test starts
    // at this moment would keep the file from being run.
    let copied = std::process::Command::new("cp")
        .arg(std::env::current_exe().unwrap())
        .arg(&binary)
        .status();
    assert!(copied.unwrap().success());
    std::fs::set_permissions(&binary, readable).unwrap();
    let own = home.path().join("own");
    std::fs::create_dir(&own).unwrap();
    std::os::unix::fs::chown(&own, Some(PLAIN), Some(PLAIN)).unwrap();
    let output = std::process::Command::new(&binary)
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("RINGFENCE_TEST_HOME", &own)
        .env("TMPDIR", &own)
        .current_dir("/")
        .uid(PLAIN)
        .gid(PLAIN)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "as a plain user: {text}");
    assert!(text.contains("1 passed"), "no such test: {text}");
}
