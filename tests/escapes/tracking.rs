//! 119, 120, 122, 123: getting away from a session that has no pid namespace, and from any when its
//! supervisor is killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringfence_core::plan::Step;
use ringfence_testkit::{
    Canary, Setup, Who, World, binaries, comes_within, for_each_user, is_root, keeps_within,
    not_run, op, say, wait_until,
};

/// What is promised.
const SOON: Duration = Duration::from_secs(2);

/// Processes whose program lies in this world.
fn survivors(world: &World) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let program = fs::read_link(path.join("exe")).unwrap_or_default();
        if program.starts_with(world.path("bin")) {
            let number = path.file_name().unwrap().to_str().unwrap();
            found.push(number.parse().unwrap());
        }
    }
    found
}

#[track_caller]
fn assert_gone(world: &World, what: &str) {
    let gone = comes_within(SOON, || survivors(world).is_empty());
    assert!(gone, "{what}: {:?}", survivors(world));
}

fn end_survivors(world: &World) -> usize {
    let survivors = survivors(world);
    for number in &survivors {
        let pid = rustix::process::Pid::from_raw(*number).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    }
    survivors.len()
}

fn wait_for(file: &Path) {
    wait_until("somebody writes", || {
        fs::metadata(file).is_ok_and(|meta| meta.len() > 0)
    });
}

/// Sessions that only track, and such that Landlock alone holds.
fn without_pid_namespace(world: &World) -> [(&'static str, Setup); 2] {
    let mut landlock = world.setup_with(r#""on_gap": "report""#);
    landlock.landlock_engine = true;
    let track = world.setup_with(r#""preset": "track""#);
    [("track", track), ("landlock", landlock)]
}

/// Starts a daemon, waits until it is there, and turns on the first process.
fn attack(world: &World, file: &Path, attack: &str) -> [String; 3] {
    let probe = world.path("bin/probe");
    let script = format!(
        "'{probe}' daemon '{file}'; while ! [ -s '{file}' ]; do :; done; {attack}",
        probe = probe.display(),
        file = file.display(),
    );
    ["sh".to_owned(), "-c".to_owned(), script]
}

#[test]
fn whoever_kills_the_first_process_takes_nobody_along() {
    for_each_user(binaries!(), |world| {
        for (name, setup) in without_pid_namespace(world) {
            let file = world.project("growing");
            let kill = attack(world, &file, "kill -9 $PPID; sleep 5");
            for (held_by, setup) in [
                ("all there is", setup.clone()),
                ("the mark", setup.clone().without(Step::Cgroup)),
            ] {
                let _ = fs::remove_file(&file);
                let done = world.run(&setup, &kill);
                done.assert_status(137);
                wait_for(&file);
                assert_gone(world, &format!("{name}, held by {held_by}"));
            }
            // Without either the way is open: so it is they that close it.
            let mut open = setup.without(Step::Cgroup);
            open.unmarked = true;
            let _ = fs::remove_file(&file);
            world.run(&open, &kill).assert_status(137);
            assert!(end_survivors(world) > 0, "the control, {name}");
            wait_until("the control is over", || end_survivors(world) == 0);
        }
    });
}

/// A command that stops the first process cannot keep the session from being ended.
#[test]
fn whoever_stops_the_first_process_is_ended_all_the_same() {
    for_each_user(binaries!(), |world| {
        let registry = world.path("registry");
        fs::create_dir(&registry).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&registry, private).unwrap();
        world.own();
        for (name, setup) in without_pid_namespace(world) {
            let setup = setup.registered(&registry);
            for setup in [setup.clone(), setup.clone().without(Step::Cgroup)] {
                let file = world.project("growing");
                let _ = fs::remove_file(&file);
                let stopped = world.project("stopped");
                let _ = fs::remove_file(&stopped);
                let stop = attack(world, &file, "kill -STOP $PPID; echo > stopped; sleep 60");
                let mut supervisor = world.confine(&setup, &stop);
                let mut supervisor = supervisor.stdout(Stdio::null()).spawn().unwrap();
                wait_for(&stopped);
                supervisor.kill().unwrap();
                supervisor.wait().unwrap();
                // Without a supervisor the first process is all there is; it goes on, and ends
                // them.
                assert_gone(world, name);
            }
            // Its cgroup goes with the next start.
            let groups = named_groups(&registry);
            world.run(&setup, ["true"]).assert_status(0);
            assert!(groups.iter().all(|group| !group.is_dir()), "{groups:?}");
        }
    });
}

/// The time limit ends a session that does nothing but start processes.
#[test]
fn a_storm_that_goes_on_while_it_is_ended_is_ended() {
    for_each_user(binaries!(), |world| {
        let mut setups = vec![("namespaces", world.setup_with(r#""limits": {"wall": 1}"#))];
        let mut landlock = world.setup_with(r#""on_gap": "report", "limits": {"wall": 1}"#);
        landlock.landlock_engine = true;
        let track = world.setup_with(r#""preset": "track", "limits": {"wall": 1}"#);
        setups.push(("track, by the mark", track.clone().without(Step::Cgroup)));
        setups.push(("track", track));
        setups.push((
            "landlock, by the mark",
            landlock.clone().without(Step::Cgroup),
        ));
        setups.push(("landlock", landlock));
        for (name, setup) in setups {
            let file = world.project("growing");
            let _ = fs::remove_file(&file);
            let mut operations = op!["hop", &file, "0"];
            for _ in 0..3 {
                operations.extend(op![",", "hop", &file, "0"]);
            }
            operations.extend(op![",", "storm", &file, "5", ",", "sleep", "60000"]);
            keeps_within(Duration::from_secs(1) + SOON + SOON, name, || {
                let start = Instant::now();
                let done = world.inside(&setup, &operations);
                let took = start.elapsed();
                done.assert_status(124);
                assert_gone(world, name);
                let before = fs::metadata(&file).unwrap().len();
                std::thread::sleep(Duration::from_millis(100));
                assert_eq!(fs::metadata(&file).unwrap().len(), before, "{name}");
                say(&format!(
                    "{name}: {before} steps of a storm, over after {took:.1?} of a limit of 1 s"
                ));
                took
            });
        }
    });
}

/// What is promised of a thousand daemons.
const THOUSAND: Duration = Duration::from_secs(1);

#[test]
fn a_thousand_daemons_end_with_their_session() {
    for_each_user(binaries!(), |world| {
        let mut setups = vec![("namespaces", world.setup())];
        for (name, setup) in without_pid_namespace(world) {
            setups.push((name, setup));
        }
        for (name, setup) in setups {
            keeps_within(THOUSAND, name, || {
                let took = end_a_thousand(world, &setup);
                say(&format!("{name}: 1000 daemons ended in {took:.1?}"));
                took
            });
        }
    });
}

/// How long it takes from the end of a command that started a thousand daemons until none is left.
fn end_a_thousand(world: &World, setup: &Setup) -> Duration {
    let marker = world.project("made");
    let _ = fs::remove_file(&marker);
    let script = format!(
        "'{}' daemons 1000 && date +%s%N > '{}'",
        world.path("bin/probe").display(),
        marker.display()
    );
    world.run(setup, ["sh", "-c", &script]).assert_status(0);
    assert_gone(world, "a thousand daemons");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let made: u128 = fs::read_to_string(&marker).unwrap().trim().parse().unwrap();
    let took = now.unwrap().as_nanos().saturating_sub(made);
    Duration::from_nanos(u64::try_from(took).unwrap())
}

/// Kills the supervisor at points nobody chose, most of them while the session is being set up.
#[test]
fn a_supervisor_killed_anywhere_leaves_nothing() {
    const ROUNDS: u64 = 200;
    for_each_user(binaries!(), |world| {
        let registry = world.path("registry");
        let tmp = world.path("tmp");
        for directory in [&registry, &tmp] {
            fs::create_dir(directory).unwrap();
            let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            fs::set_permissions(directory, private).unwrap();
        }
        world.own();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut canary = Canary::start(world.command("sleep").arg("120"));
        let mut setups = vec![world.setup().registered(&registry)];
        for (_, setup) in without_pid_namespace(world) {
            setups.push(setup.registered(&registry));
        }
        let file = world.project("growing");
        let mut groups: Vec<PathBuf> = Vec::new();
        let (mut early, mut late) = (0, 0);
        let mut random = u64::from(std::process::id()) | 1;
        let seed = random;
        for round in 0..ROUNDS {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let setup = &setups[usize::try_from(round).unwrap() % setups.len()];
            let _ = fs::remove_file(&file);
            let mut command = world.confine(setup, [world.path("bin/probe")]);
            command
                .args(op!["daemon", &file, ",", "grow", &file])
                .env("TMPDIR", &tmp)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut supervisor = command.spawn().unwrap();
            // Set-up takes a few milliseconds; on a busy machine none of these might reach its end.
            if round % 20 == 19 {
                wait_for(&file);
            } else {
                std::thread::sleep(Duration::from_micros(random % 25_000));
            }
            supervisor.kill().unwrap();
            supervisor.wait().unwrap();
            assert_gone(world, &format!("round {round}, seed {seed}"));
            groups.extend(named_groups(&registry));
            match fs::metadata(&file) {
                Ok(_) => late += 1,
                Err(_) => early += 1,
            }
        }
        groups.sort();
        groups.dedup();
        // The next start removes what they could not.
        let mut next = world.confine(&setups[0], ["true"]);
        assert!(next.status().unwrap().success());
        let left = |directory: &Path| fs::read_dir(directory).unwrap().count();
        let left_groups: Vec<_> = groups.iter().filter(|group| group.is_dir()).collect();
        assert_eq!((left(&registry), left(&tmp)), (0, 0), "seed {seed}");
        assert_eq!(left_groups, Vec::<&PathBuf>::new(), "seed {seed}");
        assert_eq!(fs::read_to_string("/proc/self/mounts").unwrap(), mounts);
        canary.assert_alive();
        say(&format!(
            "killed {ROUNDS} times (seed {seed}): {early} before the command wrote, {late} after; {} cgroups were made",
            groups.len()
        ));
        assert!(early > 0 && late > 0);
    });
}

/// The cgroups that the records in a registry name.
fn named_groups(registry: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(registry).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(path) = record["group"]["path"].as_str() {
            found.push(path.into());
        }
    }
    found
}

/// A plain user to whom a cgroup was delegated has one for each session; nobody else does.
#[test]
fn a_delegated_cgroup_is_used_by_a_plain_user() {
    if !is_root() {
        not_run("root");
        return;
    }
    let world = World::new(binaries!(), Who::Plain, std::ffi::OsStr::new("world"));
    let track = world.setup_with(r#""preset": "track""#);
    let own = ["sh", "-c", "tail -n 1 /proc/self/cgroup"];
    let outside = world.run(&track, own);
    outside.assert_status(0);
    assert!(!outside.text().contains("ringfence-"), "{}", outside.text());
    let Some(delegated) = Delegated::new(&world) else {
        not_run("cgroup");
        return;
    };
    let inside = delegated.run(&world, &track, &own);
    assert!(inside.contains("/ringfence-"), "{inside}");
    // Forked twice, and in a session of its own: it is ended with the group.
    let file = world.project("growing");
    let daemon = attack(&world, &file, "kill -9 $PPID; sleep 5");
    delegated.run(&world, &track, &daemon);
    wait_for(&file);
    assert_gone(&world, "in a delegated group");
    assert_eq!(delegated.left(), 0, "a group was left");
}

/// A cgroup that belongs to the user of a world.
struct Delegated(PathBuf);

impl Delegated {
    fn new(world: &World) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let tree = mounts
            .lines()
            .filter(|line| line.split(' ').nth(2) == Some("cgroup2"))
            .find_map(|line| line.split(' ').nth(1))?;
        let path = Path::new(tree).join(format!("delegated-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let (user, group) = world.ids();
        for name in [
            "",
            "cgroup.procs",
            "cgroup.threads",
            "cgroup.subtree_control",
        ] {
            std::os::unix::fs::chown(path.join(name), Some(user), Some(group)).unwrap();
        }
        Some(Self(path))
    }

    /// Runs a confined command from inside the group.
    fn run(&self, world: &World, setup: &Setup, command: &[impl AsRef<std::ffi::OsStr>]) -> String {
        let (user, _) = world.ids();
        let enter = format!(
            "echo $$ > '{}/cgroup.procs' && exec setpriv --reuid {user} --regid {user} --clear-groups -- \"$@\"",
            self.0.display()
        );
        let output = Command::new("sh")
            .args(["-c", &enter, "sh"])
            .arg(world.path("bin/confine"))
            .arg(setup.to_argument())
            .args(command)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", world.home(""))
            .current_dir(world.project(""))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    }

    fn left(&self) -> usize {
        let entries = fs::read_dir(&self.0).unwrap().flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).ok();
    }
}
