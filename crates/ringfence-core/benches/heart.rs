//! What every start costs: reading settings, resolving, compiling, and look-ups after that.
#![allow(missing_docs, reason = "criterion's macros write undocumented items")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use ringfence_core::origin::{Layer, Origin, Source};
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{EngineChoice, HostFacts, compile};
use ringfence_core::policy::{Access, Content, FileRule, FileRules, Found, Place, Seen, resolve};
use ringfence_core::settings::{Base, Keys, Kind, Os, Settings, SettingsFile};

/// A settings file of two hundred lines.
fn text() -> String {
    let mut text = String::from("// Settings.\n{\n  \"preset\": \"agent\",\n");
    let mut list = |open: &str, count: usize, entry: &dyn Fn(usize) -> String, close: &str| {
        writeln!(text, "  {open}").unwrap_or_default();
        for index in 0..count {
            writeln!(text, "    \"{}\", // why", entry(index)).unwrap_or_default();
        }
        writeln!(text, "  {close},").unwrap_or_default();
    };
    list(
        "\"network\": { \"hosts\": [",
        60,
        &|index| format!("*.host{index}.example.org"),
        "] }",
    );
    list(
        "\"secrets\": { \"hide\": [",
        60,
        &|index| format!("~/secret/{index}"),
        "] }",
    );
    list(
        "\"env\": { \"allow\": [",
        30,
        &|index| format!("NAME_{index}_*"),
        "] }",
    );
    list(
        "\"terminal\": { \"sandbox\": { \"additional_read_only_paths\": [",
        38,
        &|index| format!("/data/{index}"),
        "] } }",
    );
    text.push_str("}\n");
    text
}

fn base() -> Base {
    Base {
        directory: "/home/u/.config/ringfence".into(),
        home: Some("/home/u".into()),
        project: Some("/home/u/p".into()),
    }
}

fn place() -> Place {
    Place {
        kind: Kind::Tool,
        os: Os::Linux,
        home: Some(AbsPath::root().below("home/u")),
        account_home: None,
        project: AbsPath::root().below("home/u/p"),
        own: Vec::new(),
        program: None,
        sockets: Vec::new(),
        toolchains: Vec::new(),
        secrets: Vec::new(),
        runtimes: Vec::new(),
        repositories: Vec::new(),
    }
}

/// Everything is there, and nothing is asked of the kernel: only the merge is measured.
fn look(path: &Path) -> Seen {
    AbsPath::lexical(path).map_or(Seen::Absent, |path| Seen::At(path, Found::Directory))
}

fn read(text: &str) -> Keys {
    let source = Source::new(Layer::User, "settings.json", text);
    SettingsFile::read(&source, &base()).0.on(Os::Linux)
}

fn settings(criterion: &mut Criterion) {
    let text = text();
    assert!(
        (198..=202).contains(&text.lines().count()),
        "{}",
        text.lines().count()
    );
    criterion.bench_function("read 200 lines", |bencher| {
        bencher.iter(|| read(black_box(&text)));
    });
    let settings = Settings::new().with(Layer::User, read(&text));
    let place = place();
    criterion.bench_function("resolve", |bencher| {
        bencher.iter(|| resolve(black_box(&settings), &place, &look));
    });
    let narrowed = settings.clone().with(Layer::Project, read(&text));
    criterion.bench_function("resolve with a project's file", |bencher| {
        bencher.iter(|| resolve(black_box(&narrowed), &place, &look));
    });
    let Ok(policy) = resolve(&settings, &place, &look) else {
        return;
    };
    for host in ["linux-6.18", "docker-default"] {
        let Some(facts) = HostFacts::named(host) else {
            continue;
        };
        criterion.bench_function(&format!("compile for {host}"), |bencher| {
            bencher.iter(|| compile(black_box(&policy), &facts, EngineChoice::Auto));
        });
    }
}

fn look_ups(criterion: &mut Criterion) {
    let rules = (0..1000).map(|index: usize| FileRule {
        path: AbsPath::root().below(format!("home/u/d{}/e{}/f{index}", index % 10, index % 100)),
        access: if index.is_multiple_of(2) {
            Access::Read
        } else {
            Access::Write
        },
        origin: Origin::Library,
        found: Found::Directory,
        content: Content::Host,
    });
    let rules = FileRules::new(Access::None, Origin::Library, rules.collect());
    for (name, path) in [
        ("a rule decides", "home/u/d7/e77/f777/src/deep/main.rs"),
        ("nothing decides", "home/u/d7/e77/other/src/deep/main.rs"),
    ] {
        let path = AbsPath::root().below(path);
        criterion.bench_function(&format!("look-up among 1000 rules: {name}"), |bencher| {
            bencher.iter(|| rules.access(black_box(&path)).access);
        });
    }
}

criterion_group!(benches, settings, look_ups);
criterion_main!(benches);
