//! A live trial on a Mac: sessions are confined, and nothing of them survives.
//!
//! It starts itself again as a second stage, so it has a `main` of its own. Elsewhere it does nothing.

#[cfg(not(target_os = "macos"))]
fn main() {}

#[cfg(target_os = "macos")]
fn main() -> std::process::ExitCode {
    ringfence::shim::run_if_asked();
    live::main()
}

#[cfg(target_os = "macos")]
mod live {
    use std::fs;
    use std::io::Write as _;
    use std::path::{Path, PathBuf};
    use std::process::{Command as Process, ExitCode};

    use ringfence::core::plan::{EngineChoice, compile};
    use ringfence::core::policy::Policy;
    use ringfence::core::settings::{Kind, Preset, Settings};
    use ringfence::launch::{Cause, Command, LaunchError, Options, Report, prepare};
    use ringfence::place::{Lookout, Project, Surroundings};

    /// One thing that must hold.
    type Case = (&'static str, fn(&World) -> Result<(), String>);

    const CASES: [Case; 9] = [
        ("a command runs, and its status is its own", runs),
        ("the project can be written", writes_inside),
        ("nothing else can", writes_outside),
        ("a secret cannot be read", reads_no_secret),
        ("no network", reaches_nothing),
        (
            "a child that left its group and parents is ended",
            ends_daemons,
        ),
        ("tracking restricts nothing and ends everything", tracks),
        ("processes of others are left alone", spares_others),
        ("nothing is left in the temporary directory", leaves_nothing),
    ];

    pub(crate) fn main() -> ExitCode {
        let mut failed = false;
        for (name, case) in CASES {
            let outcome = World::new().and_then(|world| case(&world));
            failed |= outcome.is_err();
            let line = match outcome {
                Ok(()) => format!("ok      {name}\n"),
                Err(reason) => format!("FAILED  {name}: {reason}\n"),
            };
            let _ = std::io::stdout().write_all(line.as_bytes());
        }
        if failed {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        }
    }

    struct World {
        root: tempfile::TempDir,
    }

    impl World {
        fn new() -> Result<Self, String> {
            // Not in the temporary directory, which a session has its own of.
            let home = std::env::var_os("HOME")
                .map(PathBuf::from)
                .ok_or("no HOME")?;
            let root = tempfile::Builder::new()
                .prefix("ringfence-live")
                .tempdir_in(home);
            let root = root.map_err(|error| error.to_string())?;
            fs::create_dir(root.path().join("project")).map_err(|error| error.to_string())?;
            Ok(Self { root })
        }

        fn project(&self) -> PathBuf {
            self.root.path().join("project")
        }

        fn run(&self, preset: Preset, script: &str) -> Result<Report, String> {
            let policy = self.policy(preset)?;
            let facts = ringfence::probe::quick();
            let plan = compile(&policy, &facts, EngineChoice::Auto);
            let command = Command {
                program: "/bin/sh".into(),
                arguments: vec!["-c".into(), script.into()],
                directory: policy.project().as_path().to_owned(),
                environment: std::env::vars_os().collect(),
            };
            let report = prepare(&policy, &plan, &command, Options::default())
                .and_then(ringfence::launch::Prepared::spawn)
                .map_err(|error: LaunchError| format!("{error:?}"))?;
            report.wait().map_err(|error| error.to_string())
        }

        fn policy(&self, preset: Preset) -> Result<Policy, String> {
            let lookout = Lookout::new();
            let surroundings =
                Surroundings::of_process(&lookout).map_err(|error| error.to_string())?;
            let project = self.project();
            let place = surroundings.place(Kind::Tool, Project::Named(&project), &lookout);
            let place = place.map_err(|error| error.to_string())?;
            let mut keys = ringfence::core::settings::Keys::default();
            keys.preset
                .set(preset, ringfence::core::origin::Origin::Library);
            let settings = Settings::new().with(ringfence::core::origin::Layer::Flag, keys);
            let look = |path: &Path| lookout.look(path);
            ringfence::core::policy::resolve(&settings, &place, &look)
                .map_err(|all| format!("{all:?}"))
        }
    }

    fn expect(report: &Report, status: u8) -> Result<(), String> {
        let cause = report.cause;
        if cause == (Cause::Exited { status }) {
            Ok(())
        } else {
            Err(format!("{cause:?}, not {status}"))
        }
    }

    fn runs(world: &World) -> Result<(), String> {
        expect(&world.run(Preset::Agent, "exit 7")?, 7)
    }

    fn writes_inside(world: &World) -> Result<(), String> {
        let script = "echo a > x && mkdir d && mv x d/y && cat d/y && echo b > $TMPDIR/t";
        expect(&world.run(Preset::Agent, script)?, 0)
    }

    fn writes_outside(world: &World) -> Result<(), String> {
        let canary = world.root.path().join("canary");
        let script = format!("echo a > '{}'", canary.display());
        let report = world.run(Preset::Agent, &script)?;
        if canary.try_exists().unwrap_or(true) {
            return Err("the canary was written".to_owned());
        }
        expect(&report, 1)
    }

    fn reads_no_secret(world: &World) -> Result<(), String> {
        expect(
            &world.run(
                Preset::Agent,
                "ls ~/.ssh ~/Library/Keychains 2>/dev/null && exit 0; exit 3",
            )?,
            3,
        )
    }

    fn reaches_nothing(world: &World) -> Result<(), String> {
        expect(
            &world.run(
                Preset::Agent,
                "nc -z -w 2 1.1.1.1 443 2>/dev/null && exit 0; exit 3",
            )?,
            3,
        )
    }

    /// A daemon as daemons are made, with a length of sleep that nobody else has.
    fn daemon(length: &str) -> String {
        format!(
            "perl -MPOSIX -e 'fork && exit; POSIX::setsid(); fork && exit; exec \"sleep\", \"{length}\"'; sleep 0.3; exit 0"
        )
    }

    fn sleeps(length: &str) -> bool {
        let found = Process::new("/usr/bin/pgrep")
            .args(["-f", &format!("sleep {length}")])
            .output();
        found.is_ok_and(|output| output.status.success())
    }

    fn ends_daemons(world: &World) -> Result<(), String> {
        expect(&world.run(Preset::Agent, &daemon("3141.5926"))?, 0)?;
        if sleeps("3141.5926") {
            Err("it survived".to_owned())
        } else {
            Ok(())
        }
    }

    fn tracks(world: &World) -> Result<(), String> {
        let canary = world.root.path().join("canary");
        let script = format!("echo a > '{}'; {}", canary.display(), daemon("2718.2818"));
        expect(&world.run(Preset::Track, &script)?, 0)?;
        if !canary.try_exists().unwrap_or(false) {
            return Err("the canary was not written".to_owned());
        }
        if sleeps("2718.2818") {
            Err("it survived".to_owned())
        } else {
            Ok(())
        }
    }

    fn spares_others(world: &World) -> Result<(), String> {
        let mut other = Process::new("/bin/sleep")
            .arg("1618.0339")
            .spawn()
            .map_err(|error| error.to_string())?;
        let ran = world.run(Preset::Agent, "kill -9 -1; exit 0");
        let alive = other
            .try_wait()
            .map_err(|error| error.to_string())?
            .is_none();
        let _ = other.kill();
        let _ = other.wait();
        ran?;
        if alive {
            Ok(())
        } else {
            Err("it was ended".to_owned())
        }
    }

    fn leaves_nothing(world: &World) -> Result<(), String> {
        world.run(Preset::Agent, "echo a > $TMPDIR/t")?;
        let entries = fs::read_dir(std::env::temp_dir()).map_err(|error| error.to_string())?;
        let left = entries.flatten().filter(|entry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| {
                ringfence::core::seatbelt::SessionDirectory::number_in(name).is_some()
            })
        });
        match left.count() {
            0 => Ok(()),
            count => Err(format!("{count} directories are left")),
        }
    }
}
