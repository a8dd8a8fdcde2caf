//! What a session through bubblewrap allows and refuses, held against the `namespaces` engine.

use std::ffi::{OsStr, OsString};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use ringfence::core::plan::{Bwrap, Engine, EngineChoice, Step};
use ringfence::core::settings::{Preset, SettingPath};
use ringfence::launch::{Cause, Command, LaunchError, prepare, system_bwrap};

use crate::world::{World, also_as_plain_user, flag, wait_until};

type Case = (&'static str, fn());

pub(crate) const ALL: &[Case] = &[
    ("the_system_has_a_usable_one", the_system_has_a_usable_one),
    (
        "both_engines_give_the_same_answers",
        both_engines_give_the_same_answers,
    ),
    (
        "single_hosts_are_let_through_alike",
        single_hosts_are_let_through_alike,
    ),
    (
        "exit_statuses_are_the_command's",
        exit_statuses_are_the_commands,
    ),
    ("paths_are_never_options", paths_are_never_options),
    (
        "streams_pass_and_nothing_else_does",
        streams_pass_and_nothing_else_does,
    ),
    ("a_failed_act_leaves_nothing", a_failed_act_leaves_nothing),
    ("a_swapped_link_is_noticed", a_swapped_link_is_noticed),
    (
        "only_what_was_granted_is_written",
        only_what_was_granted_is_written,
    ),
    ("another_bwrap_is_never_run", another_bwrap_is_never_run),
    (
        "nothing_survives_the_supervisor",
        nothing_survives_the_supervisor,
    ),
    ("dropping_ends_the_session", dropping_ends_the_session),
    (
        "running_what_may_only_be_read_is_a_gap",
        running_what_may_only_be_read_is_a_gap,
    ),
];

fn through_bwrap(mut world: World) -> World {
    world.facts.bwrap = system_bwrap();
    world.engine = EngineChoice::Named(Engine::Bwrap);
    world
}

fn world() -> World {
    through_bwrap(World::new(Preset::Agent))
}

fn only_what_was_granted_is_written() {
    crate::granted::only_what_was_granted_is_written(world());
    also_as_plain_user("only_what_was_granted_is_written");
}

fn the_system_has_a_usable_one() {
    // Else every other case here would prove nothing.
    assert!(
        matches!(system_bwrap(), Bwrap::Usable { .. }),
        "install bubblewrap"
    );
}

/// A process of the host's, with a number that no session has: they begin at one, and the tests may run in a
/// pid namespace where theirs are as small.
struct Neighbour(std::process::Child);

impl Neighbour {
    fn start() -> Self {
        loop {
            let sleeper = std::process::Command::new("sleep").arg("600").spawn();
            let sleeper = Self(sleeper.unwrap());
            if sleeper.0.id() > 200 {
                return sleeper;
            }
        }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn both_engines_give_the_same_answers() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let neighbour = Neighbour::start();
    let host = neighbour.0.id();
    // Each works outside; the second says whether it works inside.
    let probes: &[(String, bool)] = &[
        ("echo x > in-project && cat in-project".into(), true),
        (
            "echo x > /tmp/probe-$$ && cat /tmp/probe-$$ && rm /tmp/probe-$$".into(),
            true,
        ),
        (
            "echo x > /dev/shm/probe-$$ && rm /dev/shm/probe-$$".into(),
            true,
        ),
        (
            "cat /dev/null && test -c /dev/zero && test -c /dev/tty".into(),
            true,
        ),
        ("cat /etc/hostname > /dev/null".into(), true),
        ("ls /usr/bin/env && /usr/bin/env true".into(), true),
        (
            "test \"$(id -u)\" = \"$(stat -c %u in-project 2>/dev/null || id -u)\"".into(),
            true,
        ),
        ("echo x >> ../neighbour".into(), false),
        ("rm -f ../probe && echo x > ../probe".into(), false),
        ("chmod 600 ../neighbour".into(), false),
        ("test -d .hidden && cat .hidden/key".into(), false),
        ("cat .hidden-file".into(), false),
        (format!("kill -0 {host}"), false),
        (format!("test -d /proc/{host}/fd"), false),
        (
            format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"),
            false,
        ),
        ("unshare -U true".into(), false),
    ];
    let prepared = |mut world: World| {
        let hidden = world.project.join(".hidden");
        std::fs::create_dir(&hidden).unwrap();
        std::fs::write(hidden.join("key"), "secret").unwrap();
        let file = world.project.join(".hidden-file");
        std::fs::write(&file, "secret").unwrap();
        for path in [hidden, file] {
            world.keys.secrets.hide.push(SettingPath(path), flag());
        }
        world
    };
    let bwrap = prepared(world());
    let own = prepared(World::new(Preset::Agent));
    for (probe, inside) in probes {
        assert!(bwrap.control(probe), "{probe} must work unconfined");
        for (engine, world) in [("namespaces", &own), ("bwrap", &bwrap)] {
            let (status, out) = world.shell(probe);
            assert_eq!(status == 0, *inside, "{engine}: {probe}: {out}");
        }
    }
    assert_eq!(
        std::fs::read_to_string(&bwrap.neighbour)
            .unwrap()
            .matches("secret")
            .count(),
        1
    );
    let facts = "grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status; cat /proc/self/uid_map | \
                 wc -l; ls /proc/self/fd | wc -l; ls /dev; umask; cat /proc/net/dev | wc -l; \
                 touch /probe /usr/probe /etc/probe /dev/probe /proc/probe; pwd; env; \
                 cat /proc/1/environ /proc/1/maps; readlink /proc/1/exe || echo closed; ls /proc/1/fd | wc -l";
    let through_bwrap = bwrap.shell(facts).1;
    assert!(through_bwrap.contains("closed"), "{through_bwrap}");
    let [theirs, ours] = [&bwrap, &own].map(|world| world.project.to_str().unwrap());
    // It adds a link to `/proc/kcore`, which leads nowhere.
    let through_bwrap = through_bwrap.replace(theirs, ours).replace("core\n", "");
    assert_eq!(through_bwrap, own.shell(facts).1);
    also_as_plain_user("both_engines_give_the_same_answers");
}

/// Nothing here reaches any network: what is allowed does not exist, and nothing connects to it.
fn single_hosts_are_let_through_alike() {
    let host = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = host.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        // One visit for each engine.
        for _ in 0..2 {
            let (mut visitor, _) = host.accept().unwrap();
            std::io::Write::write_all(&mut visitor, b"from the host\n").unwrap();
        }
    });
    let script = format!(
        "grep nameserver /etc/resolv.conf; getent hosts a.allowed.invalid; getent hosts denied.invalid;
         echo $https_proxy; cat < /dev/tcp/127.0.0.1/{port};
         exec 3<>/dev/tcp/127.0.0.1/61080;
         printf 'CONNECT denied.invalid:443 HTTP/1.1\\r\\nHost: denied.invalid:443\\r\\n\\r\\n' >&3;
         head -n 1 <&3; (: < /dev/tcp/93.184.216.34/80) 2>&1 | grep -o unreachable | head -n 1;
         echo x 2>/dev/null > /etc/resolv.conf || echo kept"
    );
    let answers = [world(), World::new(Preset::Agent)].map(|mut world| {
        let network = &mut world.keys.network;
        let pattern = "*.allowed.invalid".parse().unwrap();
        network.hosts.push(pattern, flag());
        network.loopback_out.push(port, flag());
        world
            .shell(&format!("exec bash -c \"$(cat <<'END'\n{script}\nEND\n)\""))
            .1
    });
    server.join().unwrap();
    let lines: Vec<&str> = answers[0].lines().map(str::trim).collect();
    let expected = [
        "nameserver 127.0.0.53",
        "127.192.0.1     a.allowed.invalid",
        "http://127.0.0.1:61080",
        "from the host",
        "HTTP/1.1 403 Forbidden",
        "unreachable",
        "kept",
    ];
    assert_eq!(lines, expected);
    assert_eq!(answers[0], answers[1]);
    also_as_plain_user("single_hosts_are_let_through_alike");
}

fn exit_statuses_are_the_commands() {
    let world = world();
    assert_eq!(world.shell("exit 7").0, 7);
    let killed = world.launch("/bin/sh", &["-c", "kill -9 $$"]).unwrap();
    assert_eq!(killed.cause, Cause::Killed { signal: 9 });
    assert_eq!(world.launch("/absent", &[]).unwrap_err().exit_status(), 127);
    assert_eq!(
        world.launch("/etc/passwd", &[]).unwrap_err().exit_status(),
        126
    );
    also_as_plain_user("exit_statuses_are_the_command's");
}

fn paths_are_never_options() {
    for name in [
        "--bind",
        "--dev-bind\n",
        "-",
        "a=b,c:d",
        "--share-net --",
        "\u{202e}--args",
    ] {
        let mut world = world();
        let project = world.project.parent().unwrap().join(name);
        std::fs::create_dir(&project).unwrap();
        world.project = project;
        let (status, out) = world.shell("echo x > y && echo x >> ../neighbour");
        assert_ne!(status, 0, "{name}: {out}");
        assert!(world.project.join("y").is_file(), "{name}: {out}");
        let arguments = [
            "-c",
            "test \"$1$2\" = --dev-bind/",
            "--bind",
            "--dev-bind",
            "/",
        ];
        let report = world.launch("/bin/sh", &arguments).unwrap();
        assert_eq!(report.cause, Cause::Exited { status: 0 }, "{name}");
    }
}

/// What a process of this program does when it is asked to run one script, as the CLI would.
pub(crate) fn run_script(script: &OsStr) -> i32 {
    let world = world();
    let arguments = ["-c", script.to_str().unwrap()];
    let report = world.launch("/bin/sh", &arguments).unwrap();
    report.cause.exit_status().into()
}

fn script(script: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.env("RINGFENCE_TEST_SCRIPT", script);
    command
}

fn streams_pass_and_nothing_else_does() {
    use std::io::Write;
    let mut child = script("cat; echo problem >&2; ls /proc/self/fd; env | grep RINGFENCE; exit 3")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"words\n").unwrap();
    let output = child.wait_with_output().unwrap();
    // `ls` has the directory itself open as 3.
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "words\n0\n1\n2\n3\n"
    );
    assert_eq!(String::from_utf8_lossy(&output.stderr), "problem\n");
    assert_eq!(output.status.code(), Some(3));
}

fn a_failed_act_leaves_nothing() {
    let steps = [
        Step::Keyring,
        Step::Root,
        Step::Descriptors,
        Step::Limits,
        Step::Capabilities,
        Step::Privileges,
        Step::Landlock,
        Step::Seccomp,
        Step::Init,
        Step::Command,
    ];
    for step in steps {
        let mut world = world();
        world.options.testing.fail_at = Some(step);
        let canary = world.project.join("canary");
        let refused = world.launch("/bin/sh", &["-c", "echo > canary"]);
        assert!(
            matches!(refused, Err(LaunchError::Act { .. })),
            "{step:?}: {refused:?}"
        );
        assert!(!canary.try_exists().unwrap(), "{step:?}");
        assert_eq!(children(), 0, "{step:?}");
    }
}

/// Children of this process, zombies included.
fn children() -> usize {
    let list = std::fs::read_to_string("/proc/thread-self/children").unwrap();
    list.split_whitespace().count()
}

fn a_swapped_link_is_noticed() {
    let world = world();
    let (hidden, other) = (world.project.join(".git"), world.project.join("other"));
    std::fs::create_dir(&hidden).unwrap();
    std::fs::write(hidden.join("config"), "secret").unwrap();
    std::fs::create_dir(&other).unwrap();
    let policy = world.policy();
    let plan = world.plan(&policy);
    let command = Command {
        program: "/bin/sh".into(),
        arguments: ["-c", "echo > canary; cat moved/config > stolen"]
            .map(OsString::from)
            .to_vec(),
        directory: world.project.clone(),
        environment: Vec::new(),
    };
    let prepared = prepare(&policy, &plan, &command, world.options).unwrap();
    // What was to be hidden goes elsewhere, and its name leads to something harmless.
    std::fs::rename(&hidden, world.project.join("moved")).unwrap();
    symlink("other", &hidden).unwrap();

    let refused = prepared.spawn();

    assert!(
        matches!(refused, Err(LaunchError::Act { .. })),
        "{refused:?}"
    );
    assert!(!world.project.join("canary").try_exists().unwrap());
    assert_eq!(children(), 0);
}

fn another_bwrap_is_never_run() {
    use std::os::unix::fs::PermissionsExt;
    let world = world();
    let fake = world.project.join("bwrap");
    std::fs::write(&fake, "#!/bin/sh\necho > /proc/self/cwd/canary\n").unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut path = world.project.clone().into_os_string();
    path.push(":/usr/bin:/bin");
    let output = script("echo real")
        .env("PATH", path)
        .current_dir(&world.project)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "real\n");
    assert!(!world.project.join("canary").try_exists().unwrap());
    assert!(
        world.control("./bwrap; test -e canary"),
        "the fake must work"
    );
}

/// Whether a process with this argument exists.
fn runs(argument: &str) -> bool {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| {
            line.split(|byte| *byte == 0)
                .any(|word| word == argument.as_bytes())
        })
}

fn nothing_survives_the_supervisor() {
    let mark = format!("98765.{}", std::process::id());
    let run = format!("(setsid sleep {mark} &) ; sleep {mark}");
    // Killed, it cannot clean up after itself.
    let home = tempfile::tempdir_in("/var/lib").unwrap();
    let mut supervisor = script(&run)
        .env("RINGFENCE_TEST_HOME", home.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("it runs", || runs(&mark));

    supervisor.kill().unwrap();
    supervisor.wait().unwrap();

    wait_until("nothing survives", || !runs(&mark));
}

fn dropping_ends_the_session() {
    let world = world();
    let mark = format!("87654.{}", std::process::id());
    let policy = world.policy();
    let plan = world.plan(&policy);
    let command = Command {
        program: "/bin/sh".into(),
        arguments: vec![
            "-c".into(),
            format!("(setsid sleep {mark} &) ; sleep {mark}").into(),
        ],
        directory: world.project.clone(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
    };
    let running = prepare(&policy, &plan, &command, world.options).unwrap();
    let running = running.spawn().unwrap();
    wait_until("it runs", || runs(&mark));

    drop(running);

    assert!(!runs(&mark), "something survived");
    assert_eq!(children(), 0);
}

fn running_what_may_only_be_read_is_a_gap() {
    let mut world = world();
    let list = &mut world.keys.terminal.sandbox.additional_read_only_paths;
    list.push(SettingPath("/usr/share".into()), flag());
    let policy = world.policy();
    assert!(!world.plan(&policy).may_launch());
    world.engine = EngineChoice::Named(Engine::Namespaces);
    assert!(world.plan(&policy).may_launch());
}
