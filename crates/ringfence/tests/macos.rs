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
    use std::fs::{self, File};
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener};
    use std::path::PathBuf;
    use std::process::{Command as Process, ExitCode};

    use ringfence::core::plan::{EngineChoice, compile};
    use ringfence::core::policy::Policy;
    use ringfence::core::settings::{Kind, Preset, Settings};
    use ringfence::launch::{
        Cause, Command, LaunchError, Linger, NewTerminal, Observer, Options, Report, Running, Size,
        Streams, prepare, prepare_with,
    };
    use ringfence::place::{Lookout, Project, Surroundings};
    use ringfence::sessions::{About, Registry};
    use ringfence::{Policy as Wanted, Sandbox, Signal};

    /// One thing that must hold.
    type Case = (&'static str, fn(&World) -> Result<(), String>);

    const CASES: [Case; 15] = [
        ("a command runs, and its status is its own", runs),
        ("the project can be written", writes_inside),
        ("nothing else can", writes_outside),
        ("a secret cannot be read", reads_no_secret),
        ("no network", reaches_nothing),
        (
            "an allowed host is reached through the gate, and nothing else is",
            reaches_one_host,
        ),
        ("a port of the gate serves no stranger", serves_no_stranger),
        (
            "a terminal of its own, as large as was asked for",
            has_a_terminal,
        ),
        (
            "the keys of its terminal stop a command, and it goes on",
            stops_and_goes_on,
        ),
        ("a session is found by its name, and ended by it", is_found),
        ("what lingers stays until it is ended", lingers),
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
            let running = self.start(preset, script, Options::default(), None)?;
            running.wait().map_err(|error| error.to_string())
        }

        fn start(
            &self,
            preset: Preset,
            script: &str,
            options: Options,
            terminal: Option<NewTerminal>,
        ) -> Result<Running, String> {
            let policy = self.policy(preset)?;
            let facts = ringfence::probe::quick();
            let plan = compile(&policy, &facts, EngineChoice::Auto);
            let command = Command {
                program: "/bin/sh".into(),
                arguments: vec!["-c".into(), script.into()],
                directory: policy.project().as_path().to_owned(),
                environment: std::env::vars_os().collect(),
            };
            let prepared = match terminal {
                None => prepare(&policy, &plan, &command, options),
                Some(terminal) => {
                    let streams = Streams::terminal(terminal);
                    prepare_with(&policy, &plan, &command, options, streams.into())
                }
            };
            prepared
                .and_then(ringfence::launch::Prepared::spawn)
                .map_err(|error: LaunchError| format!("{error:?}"))
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
            ringfence::core::policy::resolve(&settings, &place, &lookout)
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

    /// A server that says that it was reached, for as long as this runs.
    fn origin() -> Result<SocketAddr, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let _ = client.read(&mut [0; 4096]);
                let answer =
                    b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached";
                let _ = client.write_all(answer);
            }
        });
        Ok(address)
    }

    /// Runs a script with one host, by the library's own words.
    fn with_host(world: &World, host: SocketAddr, script: &str) -> Result<i32, String> {
        let wanted = Wanted::agent(world.project()).host(host.to_string());
        let sandbox = Sandbox::new(wanted).map_err(|error| format!("{error:?}"))?;
        let mut command = sandbox.command("/bin/sh");
        command.arg("-c").arg(script);
        let output = command.output().map_err(|error| format!("{error:?}"))?;
        match output.report.cause {
            Cause::Exited { status } => Ok(status.into()),
            other => Err(format!("{other:?}")),
        }
    }

    fn reaches_one_host(world: &World) -> Result<(), String> {
        let (allowed, denied) = (origin()?, origin()?);
        let script = format!(
            "curl -sf --noproxy '' http://{allowed}/ | grep -q reached || exit 4; \
             curl -sf --noproxy '' http://{denied}/ && exit 5; \
             nc -z -w 2 127.0.0.1 {} && exit 6; exit 0",
            allowed.port()
        );
        match with_host(world, allowed, &script)? {
            0 => Ok(()),
            4 => Err("the allowed host was not reached".to_owned()),
            5 => Err("another host was reached".to_owned()),
            6 => Err("a host was reached past the gate".to_owned()),
            other => Err(format!("status {other}")),
        }
    }

    fn serves_no_stranger(world: &World) -> Result<(), String> {
        let allowed = origin()?;
        // Without the name and the word, as another process would ask.
        let script = format!(
            "bare=http://${{http_proxy##*@}}; \
             test \"$(curl -s -o /dev/null -w %{{http_code}} --noproxy '' -x $bare http://{allowed}/)\" = 407"
        );
        match with_host(world, allowed, &script)? {
            0 => Ok(()),
            other => Err(format!("it was served, or not asked: status {other}")),
        }
    }

    /// A terminal that is read until it says this.
    fn hear(terminal: &mut File, until: &str) -> Result<String, String> {
        let mut heard = String::new();
        let mut piece = [0; 1024];
        while !heard.contains(until) {
            match terminal.read(&mut piece) {
                Ok(count @ 1..) => {
                    heard.push_str(&String::from_utf8_lossy(
                        piece.get(..count).unwrap_or_default(),
                    ));
                }
                other => return Err(format!("{other:?} after {heard:?}")),
            }
        }
        Ok(heard)
    }

    fn terminal() -> NewTerminal {
        NewTerminal::new(Size {
            rows: 31,
            columns: 97,
        })
    }

    fn has_a_terminal(world: &World) -> Result<(), String> {
        let script = "test -t 0 && test -t 1 && stty size && tty && : > /dev/tty && echo done";
        let options = Options::default();
        let mut running = world.start(Preset::Agent, script, options, Some(terminal()))?;
        let outer = running.take_terminal().ok_or("there is none")?;
        let heard = hear(&mut File::from(outer), "done")?;
        if !heard.contains("31 97") || !heard.contains("/dev/ttys") {
            return Err(heard);
        }
        let report = running.wait().map_err(|error| error.to_string())?;
        expect(&report, 0)
    }

    fn stops_and_goes_on(world: &World) -> Result<(), String> {
        let script = "trap 'echo on' CONT; echo ready; read line; echo \"got $line\"";
        let options = Options::default();
        let mut running = world.start(Preset::Agent, script, options, Some(terminal()))?;
        let outer = running.take_terminal().ok_or("there is none")?;
        let mut outer = File::from(outer);
        hear(&mut outer, "ready")?;
        // Ctrl-Z, as it would be typed.
        outer
            .write_all(b"\x1a")
            .map_err(|error| error.to_string())?;
        std::thread::sleep(std::time::Duration::from_millis(300));
        running
            .signal(Signal::CONT)
            .map_err(|error| error.to_string())?;
        hear(&mut outer, "on")?;
        outer
            .write_all(b"line\n")
            .map_err(|error| error.to_string())?;
        hear(&mut outer, "got line")?;
        let report = running.wait().map_err(|error| error.to_string())?;
        expect(&report, 0)
    }

    /// Where a session of this trial is written down.
    fn registry(world: &World) -> Result<(PathBuf, About), String> {
        let about = About::new(Some("live"), &["sleep".into()]);
        let about = about.map_err(|error| error.to_string())?;
        Ok((world.root.path().join("sessions"), about))
    }

    /// Looks for the session once it can be found, and ends it.
    struct Ender(PathBuf, Result<usize, String>);

    impl Observer for Ender {
        fn settled(&mut self, _session: &Running) {
            let found = Registry::open(&self.0).and_then(|registry| {
                let processes = registry.sessions()?.iter().map(|one| one.processes).sum();
                registry.kill("live")?;
                Ok(processes)
            });
            self.1 = found.map_err(|error| format!("{error:?}"));
        }

        fn command_ended(&mut self, _session: &Running, _cause: Cause) {}
    }

    fn is_found(world: &World) -> Result<(), String> {
        let (path, about) = registry(world)?;
        let mut options = Options::default();
        options.registry = Some((path.clone(), about));
        let running = world.start(Preset::Agent, "sleep 1414.2135; exit 0", options, None)?;
        let signals = ringfence::launch::Signals::listen().map_err(|error| error.to_string())?;
        let mut ender = Ender(path, Err("it was never to be found".to_owned()));
        let report = running.wait_passing_signals_observed(&signals, &mut ender);
        let report = report.map_err(|error| error.to_string())?;
        match (ender.1?, report.cause) {
            (0, _) => Err("it was found without processes".to_owned()),
            (_, Cause::Killed { .. } | Cause::Ended) => Ok(()),
            (_, other) => Err(format!("{other:?}")),
        }
    }

    fn lingers(world: &World) -> Result<(), String> {
        let mut options = Options::default();
        options.linger = Linger::Yes;
        let script = "sleep 2 & exit 0";
        let started = std::time::Instant::now();
        let report = world.start(Preset::Agent, script, options, None)?.wait();
        expect(&report.map_err(|error| error.to_string())?, 0)?;
        if started.elapsed() < std::time::Duration::from_secs(2) {
            return Err("it was ended with its command".to_owned());
        }
        Ok(())
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
