//! From settings to a policy: what stands when lists, layers and links meet.

use ringfence_core::origin::{BuiltIn, Layer, Origin};
use ringfence_core::plan::{EngineChoice, HostFacts, compile};
use ringfence_core::policy::{Access, Content, Note, Place, Policy, resolve};
use ringfence_core::settings::{GitLevel, Kind, Preset, Settings, Tmp};

use crate::world::{World, path};

fn access(policy: &Policy, at: &str) -> Access {
    policy.files().access(&path(at)).access
}

fn content(policy: &Policy, at: &str) -> Content {
    policy.files().access(&path(at)).content()
}

#[test]
fn an_agent_reads_all_but_secrets_and_writes_its_project() {
    let policy = World::linux().tool("{}");

    assert_eq!(policy.preset().value, Preset::Agent);
    for (at, expected) in [
        ("/etc/passwd", Access::Execute),
        ("/etc/shadow", Access::None),
        ("/home/u/notes", Access::Execute),
        ("/home/u/.ssh/id", Access::None),
        ("/home/other/stuff", Access::None),
        ("/root", Access::None),
        ("/run/user/1000/bus", Access::None),
        ("/home/u/p/src/main.rs", Access::Write),
        ("/home/u/p/.git/config", Access::None),
        ("/home/u/p/.vscode/tasks.json", Access::Execute),
        ("/tmp/x", Access::Write),
        ("/proc/cpuinfo", Access::Read),
    ] {
        assert_eq!(access(&policy, at), expected, "{at}");
    }
    assert_eq!(content(&policy, "/tmp/x"), Content::Memory);
    assert_eq!(content(&policy, "/dev/null"), Content::Devices);
    assert_eq!(content(&policy, "/proc/cpuinfo"), Content::Processes);
}

#[test]
fn a_secret_that_is_not_there_is_hidden_by_name() {
    let policy = World::linux().without("/home/u/.ssh").tool("{}");

    let verdict = policy.files().access(&path("/home/u/.ssh/id_ed25519"));

    assert_eq!(verdict.access, Access::None);
    assert_eq!(verdict.origin, &Origin::BuiltIn(BuiltIn::Secrets));
}

#[test]
fn a_project_in_a_hidden_place_is_refused() {
    for (project, hidden) in [
        ("/home/u/.ssh", "/home/u/.ssh"),
        ("/home/u/.config/gh/x", "/home/u/.config/gh"),
        ("/root", "/root"),
    ] {
        let mut world = World::linux().directory(project);
        world.project = project;
        let message = format!("the project {project} is hidden, by the rule for {hidden}");
        assert_eq!(world.complaints("{}"), [message]);
    }
    let mut world = World::linux();
    world.project = "/home/other/stuff";
    assert_eq!(
        world.complaints("{}"),
        [""; 0],
        "only the home is another's"
    );
    let mut world = World::linux().directory("/home/u/.config/gh/x");
    world.project = "/home/u/.config/gh/x";
    let shown = r#"{ "secrets": { "show": ["~/.config/gh"] } }"#;
    assert_eq!(world.complaints(shown), [""; 0], "shown by name");
}

/// Secrets where variables say they are: what is there is hidden, unless it is no file, or holds what
/// every session needs.
#[test]
fn a_secret_is_hidden_where_a_variable_says_it_is() {
    let world = World::linux()
        .directory("/else/gh")
        .file("/else/pypoetry/auth.toml")
        .directory("/else/app")
        .directory("/keys")
        .file("/keys/plain")
        .file("/cargo/credentials.toml")
        .file("/cargo/config.toml")
        .file("/home/u/p/kube")
        .directory("/opt/kube");
    let secrets = [
        ("XDG_CONFIG_HOME", "/else"),
        ("XDG_DATA_HOME", "/nowhere"),
        ("GNUPGHOME", "/keys"),
        ("CARGO_HOME", "/cargo"),
        ("KUBECONFIG", "/home/u/p/kube"),
        ("KUBECONFIG", "/opt/kube"),
        ("HISTFILE", "/dev/null"),
        ("DOCKER_CONFIG", "/home/u"),
        ("AZURE_CONFIG_DIR", "/etc"),
        ("CLOUDSDK_CONFIG", "/"),
    ];
    let mut place = world.place(Kind::Tool);
    place.secrets = secrets.map(|(name, path)| (name, path.into())).to_vec();
    let policy = resolve(&Settings::new(), &place, &world).unwrap();
    let access = |at: &str| policy.files().access(&path(at)).access;
    for hidden in [
        "/else/gh/hosts.yml",
        "/else/pypoetry/auth.toml",
        "/keys/plain",
        "/cargo/credentials.toml",
        "/home/u/p/kube",
        // The list holds all the same.
        "/home/u/.config/gh",
        "/home/u/.gnupg",
    ] {
        assert_eq!(access(hidden), Access::None, "{hidden}");
    }
    for seen in [
        "/else/app",
        "/cargo/config.toml",
        "/opt/kube",
        "/dev/null",
        "/home/u/p/src",
        "/home/u/.bashrc",
        "/etc/passwd",
        "/usr/bin",
    ] {
        assert_ne!(access(seen), Access::None, "{seen}");
    }
}

/// Whoever may draw on the screen needs the word for it.
#[test]
fn the_key_to_the_screen_is_hidden_without_the_screen() {
    let world = World::linux();
    let mut place = world.place(Kind::Tool);
    place.sockets = vec![("x11", "/run/agent.sock".into())];
    let key = path("/home/u/.Xauthority");
    for (text, expected) in [
        ("{}", Access::None),
        (r#"{ "unix_sockets": ["x11"] }"#, Access::Execute),
    ] {
        let settings = Settings::new().with(Layer::User, world.keys(Layer::User, text));
        let policy = resolve(&settings, &place, &world).unwrap();
        assert_eq!(policy.files().access(&key).access, expected, "{text}");
    }
}

/// Seen, and no more: what lies beside it in a hidden directory stays hidden.
#[test]
fn a_granted_socket_is_seen_with_the_variables_that_lead_to_it() {
    use ringfence_core::policy::EnvVerdict;
    let socket = "/run/agent.sock";
    for (text, seen, passes) in [
        ("{}", Access::None, false),
        (r#"{ "unix_sockets": ["ssh-agent"] }"#, Access::Read, true),
        (
            r#"{ "unix_sockets": ["/run/agent.sock"] }"#,
            Access::Read,
            false,
        ),
        (
            r#"{ "unix_sockets": ["ssh-agent"], "env": { "allow": [] },
                 "terminal": { "sandbox": { "allowed_env_vars": [] } } }"#,
            Access::Read,
            true,
        ),
    ] {
        let policy = World::linux().tool(text);
        assert_eq!(access(&policy, socket), seen, "{text}");
        assert_eq!(access(&policy, "/run/other.sock"), Access::None, "{text}");
        let verdict = policy.environment().verdict("SSH_AUTH_SOCK");
        let got = matches!(verdict, EnvVerdict::Passes(_));
        assert_eq!(got, passes, "{text}: {verdict:?}");
    }
    let hidden = r#"{ "unix_sockets": ["ssh-agent"], "secrets": { "hide": ["/run/agent.sock"] } }"#;
    let said = World::linux().complaints(hidden);
    assert!(said[0].contains("given twice"), "{said:?}");
}

#[test]
fn a_home_as_the_project_keeps_its_secrets() {
    let mut world = World::linux();
    world.project = "/home/u";
    let policy = world.tool("{}");

    assert_eq!(access(&policy, "/home/u/notes"), Access::Write);
    assert_eq!(access(&policy, "/home/u/.ssh/id"), Access::None);
    assert_eq!(access(&policy, "/home/u/.aws/credentials"), Access::None);
    assert_eq!(
        access(&policy, "/home/u/.config/ringfence/settings.json"),
        Access::None
    );
}

#[test]
fn homes_behind_links_are_the_same_homes() {
    let mut world = World::linux()
        .without("/home")
        .directory("/var/home/u/.ssh")
        .directory("/var/home/u/p")
        .directory("/var/home/other")
        .link("/home", "var/home");
    world.home = "/var/home/u";
    world.project = "/var/home/u/p";
    let policy = world.tool("{}");

    assert_eq!(access(&policy, "/var/home/u/notes"), Access::Execute);
    assert_eq!(access(&policy, "/var/home/u/.ssh/id"), Access::None);
    assert_eq!(access(&policy, "/var/home/other/x"), Access::None);
}

/// A variable moves no keys.
#[test]
fn secrets_of_the_account_are_hidden_whatever_the_home_is() {
    let mut world = World::linux().directory("/other");
    world.home = "/other";
    world.project = "/home/u";
    assert_eq!(access(&world.tool("{}"), "/home/u/.ssh/id"), Access::Write);

    world.account_home = Some("/home/u");
    for preset in ["agent", "strict", "terminal"] {
        let policy = world.tool(&format!("{{ \"preset\": \"{preset}\" }}"));
        assert_eq!(access(&policy, "/home/u/.ssh/id"), Access::None, "{preset}");
        assert_eq!(access(&policy, "/home/u/p/x"), Access::Write, "{preset}");
    }
}

#[test]
fn without_a_home_a_policy_says_so() {
    let world = World::linux();
    let place = Place {
        home: None,
        ..world.place(Kind::Tool)
    };
    let policy = resolve(&Settings::new(), &place, &world).unwrap();
    assert_eq!(policy.notes(), [Note::Homeless]);
    assert!(world.tool("{}").notes().is_empty());
}

#[test]
fn a_linked_secret_is_hidden_where_it_really_is() {
    let world = World::linux()
        .without("/home/u/.ssh")
        .link("/home/u/.ssh", "/data/d");
    assert_eq!(access(&world.tool("{}"), "/data/d/id"), Access::None);
}

#[test]
fn a_protected_name_behind_a_link_is_refused() {
    let world = World::linux().without("/home/u/p/.vscode");
    for (world, leads_to) in [
        (
            world.clone().link("/home/u/p/.vscode", "src"),
            "/home/u/p/src",
        ),
        (world.clone().link("/home/u/p/.vscode", "/data"), "/data"),
    ] {
        let expected =
            format!("/home/u/p/.vscode is protected by name, but a link leads to {leads_to}");
        assert_eq!(world.complaints("{}"), [expected]);
    }
    let absent = World::linux()
        .without("/home/u/p/.forgejo")
        .link("/home/u/p/.forgejo", "src");
    assert_eq!(
        absent.complaints("{}"),
        [
            "/home/u/p/.forgejo/workflows is protected by name, but a link leads to /home/u/p/src/workflows"
        ]
    );
    let nowhere = world.link("/home/u/p/.vscode", "nowhere");
    assert_eq!(
        nowhere.complaints("{}"),
        ["/home/u/p/.vscode cannot be looked up: a link leads nowhere"]
    );
}

#[test]
fn a_link_in_the_project_never_carries_a_grant_outside() {
    let world = World::linux()
        .without("/home/u/p/.vscode")
        .link("/home/u/p/.vscode", "/home/u/.ssh")
        .without("/home/u/p/.git")
        .link("/home/u/p/.git", "/home/u/.config");
    let policy = world.tool(r#"{ "protect": { "allow": [".vscode"] }, "git": "full" }"#);

    assert_eq!(access(&policy, "/home/u/.ssh/id"), Access::None);
    assert_eq!(access(&policy, "/home/u/.config/app"), Access::Execute);
}

#[test]
fn git_metadata_is_governed_by_its_own_key() {
    let world = World::linux();
    for name in [".git", ".git/hooks"] {
        let text = format!(r#"{{ "protect": {{ "allow": ["{name}"] }} }}"#);
        assert_eq!(
            world.complaints(&text),
            ["git metadata cannot be allowed here"]
        );
    }
    let policy = world.tool(r#"{ "git": "write" }"#);
    assert_eq!(access(&policy, "/home/u/p/.git/objects/aa"), Access::Write);
    for knob in [
        "hooks/pre-commit",
        "config",
        "commondir",
        "modules/m/config",
    ] {
        let knob = format!("/home/u/p/.git/{knob}");
        assert_eq!(access(&policy, &knob), Access::Execute, "{knob}");
    }
    let linked = World::linux()
        .without("/home/u/p/.git")
        .file("/home/u/p/.git");
    let policy = linked.tool(r#"{ "git": "write" }"#);
    assert!(policy.files().rules().iter().all(|rule| {
        rule.path == path("/home/u/p/.git") || !path("/home/u/p/.git").covers(&rule.path)
    }));
}

#[test]
fn a_secret_that_cannot_be_seen_matters_where_the_command_could_open_it_up() {
    let world = World::linux().unreadable("/home/u/.config");
    assert_eq!(
        world.complaints("{}"),
        [""; 0],
        "the kernel refuses it inside, too"
    );
    let mut world = world;
    world.project = "/home/u";
    let complaints = world.complaints("{}");
    assert!(
        complaints.contains(
            &"/home/u/.config/gh cannot be looked up, and so not hidden: permission denied"
                .to_owned()
        ),
        "{complaints:?}"
    );
}

#[test]
fn temporary_directories_are_private_unless_somebody_says_otherwise() {
    let world = World::linux();
    let terminal = |text: &str| {
        let settings = Settings::new().with(Layer::User, world.keys(Layer::User, text));
        world.resolve(Kind::Terminal, &settings).unwrap()
    };

    let policy = terminal("{}");
    assert_eq!(
        (policy.tmp().value, content(&policy, "/tmp")),
        (Tmp::Host, Content::Host)
    );
    let policy = terminal(r#"{ "tmp": "private" }"#);
    for directory in ["/tmp/x", "/var/tmp/x", "/dev/shm/x"] {
        assert_eq!(access(&policy, directory), Access::Write, "{directory}");
        assert_eq!(content(&policy, directory), Content::Memory, "{directory}");
    }
    let none = r#"{ "terminal": { "sandbox": { "system_paths": { "read_write": [] } } } }"#;
    assert_eq!(
        access(&terminal(none), "/tmp/x"),
        Access::None,
        "[] denies the category"
    );
    let policy = world.tool(r#"{ "tmp": "host" }"#);
    assert_eq!(
        (access(&policy, "/tmp/x"), content(&policy, "/tmp/x")),
        (Access::Write, Content::Host)
    );
}

#[test]
fn a_project_in_a_private_directory_is_still_the_hosts() {
    let mut world = World::linux();
    world.project = "/tmp/a";
    let policy = world.tool("{}");
    assert_eq!(
        (access(&policy, "/tmp/a/x"), content(&policy, "/tmp/a/x")),
        (Access::Write, Content::Host)
    );
    assert_eq!(content(&policy, "/tmp/other"), Content::Memory);
    world.project = "/tmp";
    assert_eq!(content(&world.tool("{}"), "/tmp/x"), Content::Host);
}

#[test]
fn devices_and_processes_are_never_the_hosts() {
    let text = r#"{ "terminal": { "sandbox": {
        "system_paths": { "read_write": ["/dev", "/tmp"] },
        "additional_read_write_paths": ["/dev/kvm", "/proc/sys"],
    } } }"#;
    let policy = World::linux().tool(text);
    assert_eq!(content(&policy, "/dev/sda"), Content::Devices);
    assert_eq!(
        content(&policy, "/dev/kvm"),
        Content::Host,
        "one device, granted by name"
    );
    assert_eq!(content(&policy, "/proc/sys"), Content::Processes);
    assert_eq!(content(&policy, "/tmp"), Content::Host, "granted by name");
}

#[test]
fn stronger_layers_replace_weaker_ones() {
    let world = World::linux();
    let user = world.keys(
        Layer::User,
        r#"{ "git": "read", "terminal": { "sandbox": { "additional_read_only_paths": ["/data"] } } }"#,
    );
    let mut flags = ringfence_core::settings::Keys::default();
    let flag = || Origin::Flag { name: "--write" };
    flags.git.set(GitLevel::Hidden, flag());
    let data = ringfence_core::settings::SettingPath("/data".into());
    flags
        .terminal
        .sandbox
        .additional_read_write_paths
        .push(data, flag());
    let one = Settings::new()
        .with(Layer::User, user.clone())
        .with(Layer::Flag, flags.clone());
    let other = Settings::new()
        .with(Layer::Flag, flags)
        .with(Layer::User, user);
    for settings in [one, other] {
        let policy = world.resolve(Kind::Tool, &settings).unwrap();
        assert_eq!(access(&policy, "/data/d"), Access::Write);
        assert_eq!(policy.git().value, GitLevel::Hidden);
    }
}

#[test]
fn what_cannot_be_carried_out_is_said_all_at_once() {
    let text = r#"{
        "terminal": { "sandbox": {
            "additional_read_only_paths": ["/nowhere", "/data", "/bin"],
            "additional_read_write_paths": ["/data", "/usr/bin"],
        } },
        "unix_sockets": ["docker", "/etc/passwd", "/nobody.sock"],
    }"#;
    assert_eq!(
        World::linux().complaints(text),
        [
            "there is no docker socket here",
            "/etc/passwd is not a socket",
            "/nobody.sock does not exist",
            "/nowhere does not exist",
            "/data is given twice: as read, execute and write and as read (/settings.json:3:56)",
            "/usr/bin is given twice: as read and as read, execute and write (/settings.json:4:54)",
        ]
    );
}

#[test]
fn an_empty_list_of_hosts_reaches_nothing() {
    use ringfence_core::host::Host;
    use ringfence_core::policy::Reachable;
    for text in [
        r#"{ "network": { "hosts": [] } }"#,
        r#"{ "network": { "mode": "hosts" } }"#,
        r#"{ "agent": { "sandbox_permissions": { "network_hosts": [] } } }"#,
        r#"{ "terminal": { "sandbox": { "allow_network": false } }, "agent": { "sandbox_permissions": { "allow_all_hosts": true } } }"#,
    ] {
        let policy = World::linux().tool(text);
        let host = Host::parse("example.org").unwrap();
        assert_eq!(
            policy.network().verdict(&host, 443).reach,
            Reachable::Refused,
            "{text}"
        );
    }
}

#[test]
fn drives_of_windows_are_outside_unless_asked_for() {
    let world = World::linux()
        .directory("/mnt/c/Users/u/p")
        .directory("/mnt/data");
    let agent = world.tool("{}");
    assert_eq!(
        access(&agent, "/mnt/c/Users"),
        Access::Execute,
        "a directory like any other"
    );

    let mut wsl = world.directory("/run/WSL");
    let agent = wsl.tool("{}");
    assert_eq!(access(&agent, "/mnt/c/Users"), Access::None);
    assert_eq!(access(&agent, "/mnt/data"), Access::Execute, "not a drive");
    assert_eq!(access(&agent, "/run/WSL/1_interop"), Access::None);
    assert!(agent.notes().is_empty());
    let asked =
        wsl.tool(r#"{ "terminal": { "sandbox": { "additional_read_only_paths": ["/mnt/c"] } } }"#);
    assert_eq!(access(&asked, "/mnt/c/Users"), Access::Read);

    // Nothing on such a drive can be told by its name, and so nothing is promised silently.
    wsl.project = "/mnt/c/Users/u/p";
    let there = wsl.tool("{}");
    assert_eq!(access(&there, "/mnt/c/Users/u/p/x"), Access::Write);
    assert_eq!(access(&there, "/mnt/c/Users/u"), Access::None);
    let facts = HostFacts::named("linux-6.18").unwrap();
    let plan = compile(&there, &facts, EngineChoice::Auto);
    assert!(!plan.may_launch());
    assert!(
        plan.gaps()[0].lost.contains("capital letters"),
        "{:?}",
        plan.gaps()
    );
    let tracked = wsl.tool(r#"{ "preset": "track" }"#);
    assert!(compile(&tracked, &facts, EngineChoice::Auto).may_launch());
}
