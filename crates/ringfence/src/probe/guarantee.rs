//! What ringfence can promise on a machine, in one line.
//!
//! Pure: each preset is compiled against the facts, for an imaginary user in whose home
//! everything exists that a preset could speak of, and what the plan cannot hold is told. So the
//! line says what a launch would say, and never more.

use std::fmt;
use std::path::{Path, PathBuf};

use ringfence_core::origin::{Layer, Origin};
use ringfence_core::path::AbsPath;
use ringfence_core::plan::{self, Act, Engine, EngineChoice, HostFacts, Plan, Tracking};
use ringfence_core::policy::{Found, Place, Policy, Seen, resolve};
use ringfence_core::settings::{Keys, Kind, Preset, Settings};
use serde::Serialize;

use super::can_start;

/// The presets that restrict anything, with the kind of command each is the default of.
const PRESETS: [(Preset, Kind); 3] = [
    (Preset::Agent, Kind::Tool),
    (Preset::Strict, Kind::Tool),
    (Preset::Terminal, Kind::Terminal),
];

/// What holds on a machine.
///
/// # Examples
///
/// ```
/// use ringfence::probe::guarantee::Guarantee;
///
/// let guarantee = Guarantee::of(&ringfence::probe::thorough().facts);
/// println!("{guarantee}; {}", guarantee.tracking());
/// assert!(guarantee.default_holds() || !guarantee.all_hold());
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Guarantee {
    /// What holds the walls up: `namespaces+landlock7+seccomp`.
    pub layers: String,
    /// Each preset that restricts anything; the default of `run` first.
    pub presets: Vec<PresetGuarantee>,
    /// What finds every process of a session again that restricts nothing.
    pub track: Tracking,
}

/// What holds of one preset.
///
/// # Examples
///
/// ```
/// use ringfence::probe::guarantee::Guarantee;
///
/// for preset in Guarantee::of(&ringfence::probe::thorough().facts).presets {
///     println!("{} by {}: {} rules broken", preset.preset, preset.engine, preset.broken.len());
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PresetGuarantee {
    /// The preset.
    pub preset: Preset,
    /// What would enforce it.
    pub engine: Engine,
    /// What would find every process again.
    pub tracking: Tracking,
    /// What would not hold.
    pub broken: Vec<Broken>,
}

/// Rules that would not hold, for one reason.
///
/// # Examples
///
/// ```
/// use ringfence::probe::guarantee::Guarantee;
///
/// for preset in Guarantee::of(&ringfence::probe::thorough().facts).presets {
///     for broken in preset.broken {
///         println!("{}: {}; {}", broken.rules.join(", "), broken.lost, broken.fix);
///     }
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Broken {
    /// The rules, in words.
    pub rules: Vec<String>,
    /// What would happen instead.
    pub lost: String,
    /// What would make them hold.
    pub fix: String,
}

impl Guarantee {
    /// What holds on a machine with these facts.
    pub fn of(facts: &HostFacts) -> Self {
        let mut layers = String::from("nothing");
        let mut presets = Vec::new();
        for (preset, kind) in PRESETS {
            let Some(policy) = imagined(preset, kind, facts) else {
                continue;
            };
            let plan = plan::compile(&policy, facts, EngineChoice::Auto);
            if presets.is_empty() {
                layers = layers_of(&plan);
            }
            presets.push(PresetGuarantee {
                preset,
                engine: plan.engine(),
                tracking: plan.tracking(),
                broken: broken(&plan),
            });
        }
        let track = imagined(Preset::Track, Kind::Tool, facts);
        let track = track.map(|policy| plan::compile(&policy, facts, EngineChoice::Auto));
        Self {
            layers,
            presets,
            track: track.map_or(Tracking::Descent, |plan| plan.tracking()),
        }
    }

    /// Whether `ringfence run` can enforce the preset it uses when nobody names one.
    pub fn default_holds(&self) -> bool {
        let default = Kind::Tool.default_preset();
        self.presets
            .iter()
            .any(|entry| entry.preset == default && entry.broken.is_empty())
    }

    /// What finds every process again, in one line.
    pub fn tracking(&self) -> String {
        let default = self.presets.first().map(|entry| entry.tracking);
        match default {
            Some(default) if default != self.track => format!(
                "processes are tracked by {default}; with preset track by {}",
                self.track
            ),
            _ => format!("processes are tracked by {}", self.track),
        }
    }

    /// Whether every preset holds.
    pub fn all_hold(&self) -> bool {
        self.presets.len() == PRESETS.len()
            && self.presets.iter().all(|entry| entry.broken.is_empty())
    }
}

/// The guarantee line.
impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.layers)?;
        if self.all_hold() {
            return f.write_str("all promises hold");
        }
        let (whole, partly): (Vec<_>, Vec<_>) = self
            .presets
            .iter()
            .partition(|entry| entry.broken.is_empty());
        for entry in whole {
            write!(f, "preset {} holds; ", entry.preset)?;
        }
        let Some(first) = partly.first() else {
            return f.write_str("no preset could be tried");
        };
        write!(f, "preset {} does not hold: ", first.preset)?;
        let Some(reason) = first.broken.first() else {
            return Ok(());
        };
        write!(f, "{reason}")?;
        match first.broken.len() - 1 {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.rules.first().map_or("", String::as_str);
        match self.rules.len() {
            0 | 1 => write!(f, "{first}: {}", self.lost),
            count => write!(f, "{count} rules, such as {first}: {}", self.lost),
        }
    }
}

/// Gaps with one reason are told once.
fn broken(plan: &Plan) -> Vec<Broken> {
    let mut out: Vec<Broken> = Vec::new();
    if !can_start(plan.engine()) {
        out.push(Broken {
            rules: vec!["every rule".to_owned()],
            lost: format!(
                "this version cannot start commands with the engine `{}`",
                plan.engine()
            ),
            fix: "allow user namespaces, or use `--engine landlock --on-gap report`".to_owned(),
        });
    }
    for gap in plan.gaps() {
        match out.iter_mut().find(|known| known.lost == gap.lost) {
            Some(known) => known.rules.push(gap.rule.clone()),
            None => out.push(Broken {
                rules: vec![gap.rule.clone()],
                lost: gap.lost.clone(),
                fix: gap.fix.clone(),
            }),
        }
    }
    out
}

pub(crate) fn layers_of(plan: &Plan) -> String {
    let rules = plan.acts().iter().find_map(|act| {
        if let Act::Landlock(rules) = act {
            Some(rules.abi)
        } else {
            None
        }
    });
    let filtered = plan.acts().iter().any(|act| matches!(act, Act::Seccomp(_)));
    let mut layers = match (plan.engine(), rules) {
        (Engine::Landlock, Some(abi)) => format!("landlock{abi}"),
        (engine, Some(abi)) => format!("{engine}+landlock{abi}"),
        (engine, None) => engine.to_string(),
    };
    if filtered {
        layers.push_str("+seccomp");
    }
    layers
}

/// The policy of a preset for a user in whose home everything exists.
fn imagined(preset: Preset, kind: Kind, facts: &HostFacts) -> Option<Policy> {
    let mut keys = Keys::default();
    keys.preset.set(preset, Origin::Library);
    let settings = Settings::new().with(Layer::Flag, keys);
    let home = AbsPath::parse("/home/user").ok()?;
    let place = Place {
        kind,
        os: facts.os,
        project: home.below("project"),
        home: Some(home),
        account_home: None,
        own: Vec::new(),
        program: None,
        sockets: Vec::<(&'static str, PathBuf)>::new(),
        toolchains: Vec::new(),
        secrets: Vec::new(),
        runtimes: Vec::new(),
        repositories: Vec::new(),
    };
    let everything_exists = |path: &Path| match AbsPath::parse(path) {
        Ok(path) => Seen::At(path, Found::Directory),
        Err(_) => Seen::Absent,
    };
    resolve(&settings, &place, &everything_exists).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(host: &str) -> String {
        Guarantee::of(&HostFacts::named(host).unwrap()).to_string()
    }

    #[test]
    fn host_with_everything_promises_everything() {
        let guarantee = Guarantee::of(&HostFacts::named("linux-6.18").unwrap());
        assert_eq!(
            guarantee.to_string(),
            "namespaces+landlock7+seccomp: all promises hold"
        );
        assert!(guarantee.default_holds());
    }

    #[test]
    fn other_hosts_say_what_does_not_hold() {
        for (host, layers) in [
            (
                "ubuntu-24.04",
                "landlock4+seccomp: preset agent does not hold: ",
            ),
            (
                "docker-default",
                "landlock7+seccomp: preset agent does not hold: ",
            ),
            (
                "linux-5.13",
                "namespaces+landlock1+seccomp: preset agent does not hold: ",
            ),
            (
                "linux-5.10",
                "namespaces+seccomp: preset agent does not hold: ",
            ),
        ] {
            let line = line(host);
            assert!(line.starts_with(layers), "{host}: {line}");
            let guarantee = Guarantee::of(&HostFacts::named(host).unwrap());
            assert!(!guarantee.default_holds(), "{host}");
            assert!(!guarantee.all_hold(), "{host}");
            for entry in &guarantee.presets {
                assert!(entry.broken.iter().all(|broken| !broken.fix.is_empty()));
            }
        }
    }

    #[test]
    fn every_preset_is_tried_on_every_host() {
        for host in HostFacts::NAMED {
            let guarantee = Guarantee::of(&HostFacts::named(host).unwrap());
            assert_eq!(guarantee.presets.len(), PRESETS.len(), "{host}");
        }
    }

    #[test]
    fn a_usable_bwrap_holds_what_namespaces_would() {
        let mut facts = HostFacts::named("ubuntu-24.04").unwrap();
        assert!(!Guarantee::of(&facts).default_holds());
        facts.bwrap = plan::Bwrap::Usable {
            path: "/usr/bin/bwrap".to_owned(),
        };
        let guarantee = Guarantee::of(&facts);
        assert!(guarantee.default_holds(), "{guarantee}");
        assert_eq!(guarantee.layers, "bwrap+landlock4+seccomp");
    }

    #[test]
    fn rules_that_fail_for_one_reason_are_told_once() {
        let guarantee = Guarantee::of(&HostFacts::named("docker-default").unwrap());
        let mut reasons: Vec<_> = guarantee.presets[0]
            .broken
            .iter()
            .map(|b| &b.lost)
            .collect();
        let all = reasons.len();
        reasons.sort();
        reasons.dedup();
        assert_eq!(reasons.len(), all);
        assert!(
            guarantee.presets[0]
                .broken
                .iter()
                .any(|broken| broken.rules.len() > 5)
        );
    }
}
