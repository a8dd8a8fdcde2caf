//! Starts one command in a sandbox: `confine SETUP PROGRAM ARGUMENT...`.
//!
//! The setup says what is to be allowed, and what is strange about this launcher. Its exit status is
//! the one that ringfence gives a session; what was refused is printed to standard error.
#![expect(
    clippy::exit,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test program: whatever is wrong with it must end the test"
)]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::os::fd::AsFd;
    use std::path::{Path, PathBuf};

    use ringfence::git::{self, Reach, Search};
    use ringfence::launch::{self, Ahead, Cause, Command, Given, Helping, LaunchError, Options};
    use ringfence::place::Lookout;
    use ringfence::probe::{cgroup, quick};
    use ringfence::sessions::About;
    use ringfence_core::origin::{Layer, Source};
    use ringfence_core::path::AbsPath;
    use ringfence_core::plan::{Engine, EngineChoice, Feature, Plan, Step, compile};
    use ringfence_core::policy::{Look, Place, Policy, Seen, git_level, resolve};
    use ringfence_core::settings::{Base, Keys, Kind, Os, Settings, SettingsFile};
    use ringfence_sys::seccomp::{Load, SockFilter};
    use ringfence_sys::signals::{self, Mask};
    use ringfence_sys::testing::{Entry, Word, call_in_child};
    use ringfence_sys::{Subject, keyring, process, seccomp};
    use ringfence_testkit::{Hands, Setup};
    use rustix::fs::{Mode, OFlags};

    pub(super) fn main() {
        let mut arguments = std::env::args_os().skip(1);
        let setup = Setup::from_argument(&arguments.next().unwrap());
        let command: Vec<OsString> = arguments.collect();
        strange(&setup);
        if setup.threads {
            // The others outlive the launch, and must not matter to it.
            for _ in 0..4 {
                std::thread::spawn(|| {
                    loop {
                        std::hint::black_box(vec![0_u8; 4096]);
                        std::thread::yield_now();
                    }
                });
            }
        }
        match run(&setup, command) {
            Ok(status) => std::process::exit(status.into()),
            Err(error) => {
                let mut shown = error.to_string();
                let mut source = std::error::Error::source(&error);
                while let Some(cause) = source {
                    shown.push_str(": ");
                    shown.push_str(&cause.to_string());
                    source = cause.source();
                }
                if let LaunchError::Gaps { gaps } = &error {
                    for gap in gaps {
                        shown.push_str("; ");
                        shown.push_str(&gap.lost);
                    }
                }
                eprintln!("confine: {shown}");
                std::process::exit(error.exit_status().into());
            }
        }
    }

    fn run(setup: &Setup, mut command: Vec<OsString>) -> Result<u8, LaunchError> {
        let program = command.remove(0);
        let ahead = match setup.hands {
            Some(Hands::Ahead) => Some(Ahead::begin_anyway().unwrap()),
            Some(_) => None,
            // What the launcher may not do it goes without.
            None => Ahead::begin_anyway().ok(),
        };
        let policy = policy(setup);
        let plan = plan(setup, &policy);
        let command = Command {
            program,
            arguments: command,
            directory: setup.directory_path(),
            environment: std::env::vars_os().collect(),
        };
        let planned = plan.acts().iter().any(|act| act.step() == Step::Cgroup);
        if setup.fail_at_step() == Some(Step::Cgroup) && !planned {
            eprintln!("confine: a cgroup is not part of this plan");
            return Ok(77);
        }
        let mut options = Options::default();
        options.testing.fail_at = setup.fail_at_step();
        options.testing.danger_without = setup.without_step();
        options.testing.helper = match setup.hands {
            None | Some(Hands::Ahead) => Helping::WherePossible,
            Some(Hands::One) => Helping::Never,
            Some(Hands::Two) => Helping::Always,
        };
        options.registry = setup.registry_path().map(|path| {
            let about = About::new(None, std::slice::from_ref(&command.program)).unwrap();
            (path, about)
        });
        let given = Given {
            ahead,
            ..Given::default()
        };
        let prepared = launch::prepare_with(&policy, &plan, &command, options, given)?;
        if setup.hands == Some(Hands::Ahead) {
            assert!(prepared.is_ahead(), "nobody waits for orders");
        }
        std::thread::sleep(std::time::Duration::from_millis(setup.pause));
        let prepared = match &setup.says_yes {
            Some(hosts) => prepared.asking(std::sync::Arc::new(Somebody(hosts.clone()))),
            None => prepared,
        };
        let report = prepared.spawn()?.wait();
        let report = report.unwrap();
        for name in &report.names {
            eprintln!(
                "confine: found {} moved to {:?}",
                name.path.display(),
                name.moved_to
            );
        }
        for index in &report.indexes {
            let (refused, protected) = (&index.refused.paths, &index.protected.paths);
            let path = index.path.display();
            let aside = index.aside.len();
            eprintln!(
                "confine: index {path} {:?} {refused:?} {protected:?} aside {aside}",
                index.state
            );
        }
        for name in &report.not_held {
            eprintln!("confine: not held {}", name.display());
        }
        if matches!(report.cause, Cause::NameMade | Cause::NameNotHeld) {
            eprintln!("confine: ended for {:?}", report.cause);
        }
        for attempt in &report.network.attempts {
            eprintln!(
                "confine: {:?} {}:{} {:?} sent {} received {} ({})",
                attempt.way,
                attempt.host,
                attempt.port,
                attempt.verdict,
                attempt.sent,
                attempt.received,
                attempt.rule
            );
        }
        Ok(report.cause.exit_status())
    }

    /// Says yes to some hosts, and tells whom it was asked about.
    #[derive(Debug)]
    struct Somebody(Vec<String>);

    impl launch::Decider for Somebody {
        fn decide(&self, destination: &launch::Destination) -> launch::Answer {
            let asked = destination.to_string();
            eprintln!("confine: asked about {asked}");
            if self.0.contains(&asked) {
                launch::Answer::Allow
            } else {
                launch::Answer::Deny
            }
        }
    }

    fn policy(setup: &Setup) -> Policy {
        let home = AbsPath::parse(setup.home_path()).unwrap();
        let place = Place {
            kind: Kind::Tool,
            os: Os::Linux,
            home: Some(home),
            account_home: None,
            project: AbsPath::parse(setup.project_path()).unwrap(),
            own: Vec::new(),
            program: std::env::current_exe()
                .ok()
                .and_then(|own| AbsPath::parse(own).ok()),
            sockets: Vec::new(),
            toolchains: Vec::new(),
            secrets: Vec::new(),
            runtimes: setup.runtime_path().into_iter().collect(),
            repositories: Vec::new(),
        };
        let mut settings = Settings::new().with(
            Layer::User,
            keys(setup, Layer::User, "settings.json", &setup.settings),
        );
        if let Some(text) = &setup.project_settings {
            let keys = keys(setup, Layer::Project, "project.json", text);
            settings = settings.with(Layer::Project, keys);
        }
        let lookout = Lookout::new();
        let mut search = Search::new(place.project.clone());
        search.home.clone_from(&place.home);
        let reach = Reach::of(git_level(&settings, place.kind));
        let mut repositories = git::find(&search, reach, &lookout).unwrap_or_else(|error| {
            eprintln!("confine: {error}");
            std::process::exit(125);
        });
        repositories.extend(git::granted(&settings, place.kind, &search, &lookout));
        let place = Place {
            repositories,
            ..place
        };
        match resolve(
            &settings,
            &place,
            &Eyes {
                setup,
                lookout: &lookout,
            },
        ) {
            Ok(policy) => policy,
            Err(complaints) => {
                for complaint in complaints {
                    eprintln!("confine: {}: {}", complaint.origin, complaint.message);
                }
                std::process::exit(125);
            }
        }
    }

    fn keys(setup: &Setup, layer: Layer, name: &str, text: &str) -> Keys {
        let base = Base {
            directory: setup.project_path(),
            home: Some(setup.home_path()),
            project: Some(setup.project_path()),
        };
        let (file, problems) = SettingsFile::read(&Source::new(layer, name, text), &base);
        for problem in &problems {
            eprintln!("confine: {name}: {}", problem.message);
        }
        if ringfence_core::settings::has_errors(&problems) {
            std::process::exit(125);
        }
        file.on(Os::Linux)
    }

    /// Where only what was approved counts, a link is not it.
    struct Eyes<'a> {
        setup: &'a Setup,
        lookout: &'a Lookout,
    }

    impl Look for Eyes<'_> {
        fn look(&self, path: &Path) -> Seen {
            let seen = self.lookout.look(path);
            let moved = matches!(&seen, Seen::At(real, _) if real.as_path() != path);
            if self.setup.follow_no_links && moved {
                return Seen::Unreadable("a link, which nobody approved".to_owned());
            }
            seen
        }

        fn link(&self, path: &Path) -> Option<PathBuf> {
            self.lookout.link(path)
        }
    }

    fn plan(setup: &Setup, policy: &Policy) -> Plan {
        let mut facts = quick();
        if let Some(abi) = setup.landlock_abi {
            facts.landlock.abi = abi;
        }
        if policy.only_tracks() || setup.landlock_engine {
            facts.cgroup = cgroup();
        }
        let choice = if setup.landlock_engine {
            EngineChoice::Named(Engine::Landlock)
        } else {
            EngineChoice::Auto
        };
        if setup.no_listener {
            facts.seccomp_listener = Feature::Missing {
                why: "the test says so".to_owned(),
                fix: "none".to_owned(),
            };
        }
        compile(policy, &facts, choice)
    }

    /// Makes this process the strange launcher that the test wants.
    fn strange(setup: &Setup) {
        if let Some(terminal) = setup.terminal_path() {
            rustix::process::setsid().unwrap();
            let flags = OFlags::RDWR | OFlags::NOCTTY;
            let terminal = rustix::fs::open(terminal, flags, Mode::empty()).unwrap();
            rustix::process::ioctl_tiocsctty(&terminal).unwrap();
            rustix::stdio::dup2_stdin(&terminal).unwrap();
        }
        if let Some(directory) = setup.leak_path() {
            leak(&directory);
        }
        let subject = Subject::this_process().unwrap();
        if let Some(name) = &setup.key {
            keyring::join_new_session(&subject).unwrap();
            add_key(name);
        }
        if setup.unmarked {
            let taken = process::Limit {
                current: Some(100),
                maximum: Some(100),
            };
            process::set_limit(&subject, process::LimitedResource::Locks, taken).unwrap();
        }
        if setup.strange_parent {
            Mask::block_all().unwrap();
            for signal in [libc::SIGPIPE, libc::SIGCHLD, libc::SIGHUP, libc::SIGTERM] {
                signals::ignore(&subject, signal).unwrap();
            }
            process::set_umask(&subject, 0o777);
        }
        if !setup.refused_calls.is_empty() {
            refuse_calls(&subject, &setup.refused_calls);
        }
    }

    fn add_key(name: &str) {
        const SESSION: u64 = (-3_i64).cast_unsigned();
        let name = std::ffi::CString::new(name).unwrap();
        let words = [
            Word::Text(c"user"),
            Word::Text(&name),
            Word::Bytes(b"payload"),
            Word::Number(7),
            Word::Number(SESSION),
            Word::Number(0),
        ];
        let number = u64::try_from(libc::SYS_add_key).unwrap();
        let added = call_in_child(Entry::Native, number, words).unwrap();
        assert!(
            matches!(added, ringfence_sys::testing::Answer::Returned(_)),
            "{added:?}"
        );
    }

    /// Leaves descriptors open for whoever inherits them, some of them high up.
    fn leak(directory: &Path) {
        let open = |path: &Path, flags| rustix::fs::open(path, flags, Mode::empty()).unwrap();
        for _ in 0..40 {
            let kept = [
                open(directory, OFlags::RDONLY | OFlags::DIRECTORY),
                open(&directory.join("canary"), OFlags::RDWR),
                open(directory, OFlags::PATH),
            ];
            for descriptor in kept {
                // Far above what programs use, where a lazy cleaner would not look.
                let high = rustix::io::dup(descriptor.as_fd()).unwrap();
                for each in [descriptor, high] {
                    let flags = rustix::io::FdFlags::empty();
                    rustix::io::fcntl_setfd(&each, flags).unwrap();
                    let _forever = std::mem::ManuallyDrop::new(each);
                }
            }
        }
    }

    /// An older kernel, or a container's profile: these calls fail.
    fn refuse_calls(subject: &Subject, calls: &[(u32, u16)]) {
        const LOAD_NUMBER: u16 = 0x20;
        const JUMP_IF_EQUAL: u16 = 0x15;
        const RETURN: u16 = 0x06;
        const ALLOW: u32 = 0x7fff_0000;
        const ERRNO: u32 = 0x0005_0000;
        let step = |code, jt, jf, k| SockFilter { code, jt, jf, k };
        let mut program = vec![step(LOAD_NUMBER, 0, 0, 0)];
        for (number, errno) in calls {
            program.push(step(JUMP_IF_EQUAL, 0, 1, *number));
            program.push(step(RETURN, 0, 0, ERRNO | u32::from(*errno)));
        }
        program.push(step(RETURN, 0, 0, ALLOW));
        process::no_new_privs(subject).unwrap();
        seccomp::load(subject, &program, Load::empty()).unwrap();
    }
}
