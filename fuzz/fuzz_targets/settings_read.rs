//! Any bytes are settings or problems; what is read becomes a policy or complaints, and a plan; and
//! what a project's file says never widens.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use ringfence_core::origin::{Layer, Source};
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{EngineChoice, HostFacts, compile};
use ringfence_core::policy::{Found, Place, Seen, resolve};
use ringfence_core::settings::{Base, Kind, Os, Settings, SettingsFile, has_errors};

const PROBES: [&str; 8] = [
    "/", "/etc/passwd", "/home/u", "/home/u/.ssh/id", "/home/u/p/x", "/home/u/p/.git/config",
    "/tmp/x", "/dev/kvm",
];

fuzz_target!(|text: &str| {
    let base = Base {
        directory: "/home/u/p/.ringfence".into(),
        home: Some("/home/u".into()),
        project: Some("/home/u/p".into()),
    };
    let source = Source::new(Layer::Project, "/home/u/p/.ringfence/settings.json", text);
    let (file, problems) = SettingsFile::read(&source, &base);
    for problem in &problems {
        assert!(text.get(problem.span.clone()).is_some(), "{problem:?}");
        let _ = source.position(problem.span.start);
    }
    if has_errors(&problems) {
        return;
    }
    let place = Place {
        kind: if text.len() % 2 == 0 { Kind::Tool } else { Kind::Terminal },
        os: Os::Linux,
        home: AbsPath::parse("/home/u").ok(),
        account_home: None,
        project: AbsPath::root().below("home/u/p"),
        own: Vec::new(),
        program: None,
        sockets: vec![("ssh-agent", "/run/agent.sock".into())],
        toolchains: Vec::new(),
        secrets: Vec::new(),
        runtimes: Vec::new(),
        repositories: Vec::new(),
    };
    let look = |path: &Path| match AbsPath::lexical(path) {
        Ok(path) if path.depth() > 5 => Seen::Absent,
        Ok(path) if path.as_path().ends_with("agent.sock") => Seen::At(path, Found::Other),
        Ok(path) => Seen::At(path, Found::Directory),
        Err(error) => Seen::Unreadable(error.to_string()),
    };
    let trusted = Settings::new();
    let Ok(without) = resolve(&trusted, &place, &look) else {
        return;
    };
    let Ok(with) = resolve(&trusted.with(Layer::Project, file.on(Os::Linux)), &place, &look) else {
        return;
    };
    for probe in PROBES {
        let Ok(path) = AbsPath::parse(probe) else {
            continue;
        };
        assert!(with.files().access(&path).access <= without.files().access(&path).access);
    }
    assert!(with.network().mode() <= without.network().mode());
    assert!(with.git().value <= without.git().value);
    for host in HostFacts::NAMED {
        if let Some(facts) = HostFacts::named(host) {
            let plan = compile(&with, &facts, EngineChoice::Auto);
            let _ = plan.acts().iter().map(ToString::to_string).collect::<Vec<_>>();
        }
    }
});
