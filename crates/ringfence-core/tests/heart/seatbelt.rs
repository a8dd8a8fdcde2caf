//! Does a Seatbelt profile say what the policy says?
//!
//! The text of a profile is read back by a small evaluator of the language it is written in, and
//! what that allows is held against the policy, for random policies and paths. No Mac is needed, and
//! none was asked: that Seatbelt reads the language as this evaluator does is the one thing that
//! only a Mac can say.

use proptest::prelude::*;
use ringfence_core::origin::Layer;
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{Act, EngineChoice, HostFacts, Hosts, compile};
use ringfence_core::policy::{Access, Content, Policy};
use ringfence_core::seatbelt::{
    self, Action, Bound, DEVICES, Filter, Fingerprint, Own, Probe, Profile, SessionDirectory,
    spellings,
};
use ringfence_core::settings::{Kind, Os, Preset, Settings, Word};

use crate::random;
use crate::sbpl::{self, Request};
use crate::world::{World, path};

/// The session's terminal, by both of its names.
const OWN_TERMINAL: [&str; 2] = ["/dev/ttys042", "/dev/tty"];

fn session() -> SessionDirectory {
    SessionDirectory::new(&path("/private/var/folders/xy"), 0x00ab_cdef)
}

fn profile(policy: &Policy) -> Profile {
    let facts = HostFacts::named("macos-15").unwrap();
    let plan = compile(policy, &facts, EngineChoice::Auto);
    let mut profiles = plan.acts().iter().filter_map(|act| match act {
        Act::Seatbelt(profile) => Some(profile.clone()),
        _ => None,
    });
    profiles.next_back().unwrap()
}

struct Written {
    bound: Bound,
    rules: Vec<sbpl::Expression>,
}

impl Written {
    fn new(profile: &Profile) -> Self {
        let own = Own {
            gate_port: Some(4711),
            terminal: Some(path(OWN_TERMINAL[0])),
        };
        Self::with(profile, &own)
    }

    fn with(profile: &Profile, own: &Own) -> Self {
        let bound = profile.bind(&session(), own).unwrap();
        let rules = sbpl::read(&bound.text).unwrap();
        Self { bound, rules }
    }

    fn allows(&self, request: &Request<'_>) -> bool {
        sbpl::allows(&self.rules, &self.bound.parameters, request)
    }

    fn file(&self, operation: &str, path: &AbsPath) -> bool {
        self.allows(&Request::File(operation, path.as_path().to_str().unwrap()))
    }

    /// What the profile allows to be done with a file.
    fn access(&self, path: &AbsPath) -> Access {
        let may = |operation| self.file(operation, path);
        match (
            may("file-read-data"),
            may("process-exec") && may("file-map-executable"),
            may("file-write-data") && may("file-write-create"),
        ) {
            (false, false, false) => Access::None,
            (true, false, false) => Access::Read,
            (true, true, false) => Access::Execute,
            (true, true, true) => Access::Write,
            odd => panic!("{path}: {odd:?} is no level"),
        }
    }
}

/// What the policy says of the host's files.
fn wanted(policy: &Policy, path: &AbsPath) -> Access {
    let verdict = policy.files().access(path);
    match verdict.content() {
        Content::Host => verdict.access,
        Content::Devices | Content::Memory | Content::Processes => Access::None,
    }
}

fn is_harmless_device(path: &AbsPath) -> bool {
    let own = OWN_TERMINAL.iter();
    let mut harmless = DEVICES.iter().chain(own);
    harmless.any(|device| path.as_path().starts_with(device))
}

fn check(policy: &Policy, written: &Written, path: &AbsPath) {
    let wanted = wanted(policy, path);
    for spelled in spellings(path) {
        if is_harmless_device(&spelled) {
            continue;
        }
        let mut got = written.access(&spelled);
        // The loader opens the root itself, and nothing in it by that.
        if spelled == AbsPath::root() {
            got = got.min(wanted);
        }
        assert_eq!(got, wanted, "{spelled}");
    }
}

#[test]
fn golden_profiles_of_every_preset() {
    let world = World::macos();
    for (word, preset) in Preset::WORDS {
        let kind = match preset {
            Preset::Terminal => Kind::Terminal,
            Preset::Agent | Preset::Strict | Preset::Track => Kind::Tool,
        };
        let text = format!(r#"{{ "preset": "{word}" }}"#);
        let settings = Settings::new().with(Layer::User, world.keys(Layer::User, &text));
        let policy = world.resolve(kind, &settings).unwrap();
        let bound = Written::new(&profile(&policy)).bound;
        let parameters = bound
            .parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"));
        let golden = format!("{}\n{}", bound.text, parameters.collect::<String>());
        insta::assert_snapshot!(format!("seatbelt-{word}"), golden);
    }
}

#[test]
fn the_default_plan_has_no_gap_on_a_mac() {
    let facts = HostFacts::named("macos-15").unwrap();
    let world = World::macos();
    for (word, _) in Preset::WORDS {
        let policy = world.tool(&format!(r#"{{ "preset": "{word}" }}"#));
        let plan = compile(&policy, &facts, EngineChoice::Auto);
        assert_eq!(plan.gaps(), [], "{word}");
        let mut without = facts.clone();
        without.seatbelt = HostFacts::nothing(Os::Macos).seatbelt;
        assert!(
            !compile(&policy, &without, EngineChoice::Auto).may_launch(),
            "{word}"
        );
    }
}

#[test]
fn what_is_promised_holds_in_every_spelling() {
    let policy = World::macos().tool("{}");
    let written = Written::new(&profile(&policy));
    for (path, expected) in [
        ("/Users/u/.ssh/id", Access::None),
        ("/System/Volumes/Data/Users/u/.ssh/id", Access::None),
        ("/Users/other/stuff", Access::None),
        ("/Users/u/p/src/main.rs", Access::Write),
        ("/System/Volumes/Data/Users/u/p/src/main.rs", Access::Write),
        ("/Users/u/p/.git/config", Access::None),
        ("/Users/u/p/.vscode/tasks.json", Access::Execute),
        ("/Users/u/p/.envrc", Access::Execute),
        // Nobody has made it yet, and this volume takes both for one.
        ("/Users/u/p/.ENVRC", Access::Execute),
        ("/private/tmp/x", Access::None),
        ("/tmp/x", Access::None),
        ("/etc/passwd", Access::Execute),
        ("/private/etc/passwd", Access::Execute),
        ("/private/var/folders/xy/secret", Access::None),
        ("/dev/disk0", Access::None),
    ] {
        let asked = AbsPath::parse(path).unwrap();
        assert_eq!(written.access(&asked), expected, "{path}");
    }
    let tmp = session().tmp();
    assert_eq!(written.access(&tmp.below("x")), Access::Write);
    assert_eq!(
        written.access(&session().path().below("other")),
        Access::None
    );
}

#[test]
fn names_that_rules_stand_on_cannot_be_taken_away() {
    let policy = World::macos().tool("{}");
    let written = Written::new(&profile(&policy));
    let unlink = |path: &str| written.file("file-write-unlink", &AbsPath::parse(path).unwrap());
    assert!(unlink("/Users/u/p/src") && unlink("/Users/u/p/src/main.rs"));
    for pinned in [
        "/Users/u/p",
        "/System/Volumes/Data/Users/u/p",
        "/Users/u/p/.github",
        "/Users/u/p/.git",
    ] {
        assert!(!unlink(pinned), "{pinned}");
    }
    assert!(!unlink(session().tmp().as_path().to_str().unwrap()));
    // Whoever takes the directory away takes the rule inside it along.
    let add = World::macos().tool(r#"{ "protect": { "add": ["src/deep/er"] } }"#);
    let written = Written::new(&profile(&add));
    for pinned in ["/Users/u/p/src", "/Users/u/p/src/deep"] {
        assert!(
            !written.file("file-write-unlink", &path(pinned)),
            "{pinned}"
        );
        assert!(
            written.file("file-write-create", &path(pinned).below("new")),
            "{pinned}"
        );
    }
}

#[test]
fn the_way_to_a_grant_is_seen_and_its_neighbours_are_not() {
    let policy = World::macos().tool(r#"{ "preset": "strict" }"#);
    let written = Written::new(&profile(&policy));
    for way in ["/Users", "/Users/u", "/tmp", "/var"] {
        assert!(written.file("file-read-metadata", &path(way)), "{way}");
        assert!(!written.file("file-read-data", &path(way)), "{way}");
    }
    assert!(!written.file("file-read-metadata", &path("/Users/u/.ssh")));
    assert!(!written.file("file-read-metadata", &path("/Users/other")));
}

#[test]
fn services_and_the_network_are_closed_unless_opened() {
    let world = World::macos();
    let none = Written::new(&profile(&world.tool("{}")));
    let all = Written::new(&profile(&world.tool(r#"{ "network": { "mode": "all" } }"#)));
    let hosts = Written::new(&profile(
        &world.tool(r#"{ "network": { "hosts": ["a.test"] } }"#),
    ));
    for service in [
        "com.apple.coreservices.launchservicesd",
        "com.apple.launchd",
        "com.apple.pasteboard.1",
        "com.apple.SecurityServer",
        "com.apple.coreservices.appleevents",
        "com.apple.cfprefsd.agent",
        "com.apple.metadata.mds",
    ] {
        for written in [&none, &all, &hosts] {
            assert!(!written.allows(&Request::Mach(service)), "{service}");
        }
    }
    assert!(none.allows(&Request::Mach("com.apple.system.opendirectoryd.libinfo")));
    assert!(!none.allows(&Request::Mach("com.apple.dnssd.service")));
    assert!(!hosts.allows(&Request::Mach("com.apple.dnssd.service")));
    assert!(all.allows(&Request::Mach("com.apple.dnssd.service")));
    for operation in [
        "network-outbound",
        "network-inbound",
        "network-bind",
        "system-socket",
    ] {
        assert!(!none.allows(&Request::Other(operation)), "{operation}");
        assert!(!hosts.allows(&Request::Other(operation)), "{operation}");
        assert!(all.allows(&Request::Other(operation)), "{operation}");
    }
    let port = |written: &Written, place| written.allows(&Request::Port("network-outbound", place));
    assert!(port(&hosts, "localhost:4711"), "its own gate");
    assert!(!port(&hosts, "localhost:4712") && !port(&none, "localhost:4711"));
    let ports = world.tool(r#"{ "network": { "loopback_out": [5432], "loopback_in": [3000] } }"#);
    let ports = Written::new(&profile(&ports));
    assert!(port(&ports, "localhost:5432") && !port(&ports, "localhost:5433"));
    assert!(ports.allows(&Request::Port("network-bind", "localhost:3000")));
    assert!(
        !none.allows(&Request::Sysctl("kern.procargs2"))
            && none.allows(&Request::Sysctl("hw.ncpu"))
    );
    for operation in [
        "file-mount",
        "sysctl-write",
        "iokit-open",
        "process-info-pidinfo",
        "appleevent-send",
        "job-creation",
        "mach-register",
        "ipc-posix-shm-write-create",
        "system-privilege",
        "file-ioctl",
    ] {
        assert!(!all.allows(&Request::Other(operation)), "{operation}");
    }
}

#[test]
fn only_the_gate_is_reached_and_only_where_there_is_one() {
    let policy = World::macos().tool(r#"{ "network": { "hosts": ["a.test"] } }"#);
    let facts = HostFacts::named("macos-15").unwrap();
    let plan = compile(&policy, &facts, EngineChoice::Auto);
    assert_eq!(plan.gaps(), []);
    let gates = |act: &&Act| matches!(act, Act::Gate(gate) if gate.hosts != Hosts::None);
    assert_eq!(plan.acts().iter().filter(gates).count(), 1);
    let profile = profile(&policy);
    let reached = |own: &Own| {
        let written = Written::with(&profile, own);
        let reaches = |port: &u16| {
            let place = format!("localhost:{port}");
            written.allows(&Request::Port("network-outbound", &place))
        };
        // All over the range, and beside the one that is meant.
        let ports = (1..=u16::MAX).step_by(499).chain(4700..4720);
        ports.filter(reaches).collect::<Vec<_>>()
    };
    let own = |gate_port| Own {
        gate_port,
        ..Own::default()
    };
    assert_eq!(reached(&own(Some(4711))), [4711]);
    assert_eq!(reached(&own(None)), [0_u16; 0]);
}

#[test]
fn a_session_has_its_own_terminal_and_no_other() {
    let world = World::macos();
    for kind in [Kind::Terminal, Kind::Tool] {
        let policy = world.resolve(kind, &Settings::new()).unwrap();
        let profile = profile(&policy);
        let with = Written::new(&profile);
        let without = Written::with(&profile, &Own::default());
        for (own, terminal) in [
            (true, OWN_TERMINAL[0]),
            (true, OWN_TERMINAL[1]),
            (false, "/dev/ttys04"),
            (false, "/dev/ttys0420"),
            (false, "/dev/ttys000"),
        ] {
            let terminal = path(terminal);
            for operation in ["file-read-data", "file-write-data", "file-ioctl"] {
                assert_eq!(
                    with.file(operation, &terminal),
                    own,
                    "{operation} {terminal}"
                );
                // Without one of its own there is only the caller's, which is none of its business.
                assert!(
                    !without.file(operation, &terminal),
                    "{operation} {terminal}"
                );
            }
        }
    }
}

#[test]
fn sockets_of_the_host_are_closed_unless_granted() {
    let world = World::macos();
    let all = Written::new(&profile(&world.tool(r#"{ "network": { "mode": "all" } }"#)));
    let granted = world.tool(r#"{ "unix_sockets": ["ssh-agent"] }"#);
    let granted = Written::new(&profile(&granted));
    assert!(!all.allows(&Request::Socket("/run/agent.sock")));
    assert!(
        !all.allows(&Request::Socket("/Users/u/p/dev.sock")),
        "not even in the project"
    );
    assert!(all.allows(&Request::Socket("/private/var/run/mDNSResponder")));
    assert!(granted.allows(&Request::Socket("/run/agent.sock")));
    assert!(!granted.allows(&Request::Socket("/run/other.sock")));
    let own = session().tmp().below("own.sock");
    assert!(granted.allows(&Request::Socket(own.as_path().to_str().unwrap())));
}

/// What the kernel would say of a process under a profile.
fn probe(written: &Written, path: &AbsPath) -> Probe {
    if written.file("file-read-data", path) {
        Probe::Allowed
    } else {
        Probe::Denied
    }
}

#[test]
fn only_a_sessions_own_profile_has_its_fingerprint() {
    let world = World::macos();
    let of = |written: &Written, of: &SessionDirectory| {
        let points = of.points();
        Fingerprint::of(
            probe(written, &points.allowed),
            probe(written, &points.denied),
        )
    };
    let other = SessionDirectory::new(&path("/private/var/folders/xy"), 7);
    for (word, _) in Preset::WORDS {
        for tmp in ["private", "host"] {
            let policy = world.tool(&format!(r#"{{ "preset": "{word}", "tmp": "{tmp}" }}"#));
            let written = Written::new(&profile(&policy));
            assert_eq!(
                of(&written, &session()),
                Fingerprint::Matches,
                "{word} {tmp}"
            );
            assert_eq!(of(&written, &other), Fingerprint::Other, "{word} {tmp}");
        }
    }
    for rule in [
        "(allow default)",
        "(deny default)",
        "(deny default)(allow file-read* (subpath \"/private\"))",
    ] {
        let text = format!("(version 1){rule}");
        let stranger = Written {
            rules: sbpl::read(&text).unwrap(),
            bound: Bound {
                text,
                parameters: Vec::new(),
            },
        };
        assert_eq!(of(&stranger, &session()), Fingerprint::Other, "{rule}");
    }
}

#[test]
fn tracking_restricts_nothing_but_its_own_point() {
    let written = Written::new(&seatbelt::tracking());
    for operation in [
        "file-write-data",
        "network-outbound",
        "signal",
        "process-exec",
        "mach-lookup",
    ] {
        assert!(written.allows(&Request::Other(operation)), "{operation}");
    }
    assert_eq!(written.access(&path("/Users/u/.ssh/id")), Access::Write);
}

#[test]
fn no_path_can_change_the_text() {
    let plain = World::macos().tool("{}");
    let mut world = World::macos().directory("/Users/u/a\")(allow default)(\"\\\n");
    world.project = "/Users/u/a\")(allow default)(\"\\\n";
    let hostile = world.tool("{}");
    let (plain, hostile) = (profile(&plain), profile(&hostile));
    let written = Written::new(&hostile);
    assert!(
        !written.bound.text.contains("allow default"),
        "{}",
        written.bound.text
    );
    assert_eq!(written.rules.len(), hostile.rules.len() + 2);
    assert_eq!(hostile.default, Action::Deny);
    assert_eq!(written.access(&path("/Users/u/.ssh/id")), Access::None);
    assert_eq!(
        written.access(&path(world.project).below("src")),
        Access::Write
    );
    let values = &written.bound.parameters;
    assert!(values.iter().any(|(_, value)| value == world.project));
    assert!(!plain.rules.is_empty());
}

#[test]
fn a_path_that_is_no_text_is_a_gap_and_never_a_rule() {
    use std::os::unix::ffi::OsStrExt as _;
    let odd = std::ffi::OsStr::from_bytes(b"/x\xff");
    let odd = AbsPath::parse(odd).unwrap();
    let mut profile = seatbelt::tracking();
    profile.rules[0].filters = vec![Filter::Literal(seatbelt::PathValue::Host(odd))];
    assert!(profile.bind(&session(), &Own::default()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_profile_allows_what_the_policy_allows(
        settings in random::settings(), kind in random::kind(), world in random::world(),
        paths in proptest::collection::vec(random::path(), 8),
        at in proptest::collection::vec(any::<proptest::sample::Index>(), 12),
    ) {
        let mut world = world;
        world.os = Os::Macos;
        let Ok(policy) = world.resolve(kind, &settings) else { return Ok(()) };
        if policy.only_tracks() {
            return Ok(());
        }
        let written = Written::new(&profile(&policy));
        // At a rule and just below it is where a mistake would show.
        let rules = policy.files().rules();
        let rules = at.iter().map(|at| at.get(rules).path.clone());
        for path in rules.flat_map(|path| [path.below("x"), path]).chain(paths) {
            check(&policy, &written, &path);
        }
    }
}
