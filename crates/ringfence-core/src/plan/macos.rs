//! Plans for macOS.
//!
//! One engine: a Seatbelt profile that every process of the session is under. What holds the
//! session together is the fingerprint in it, so a session that is only tracked has a profile too.

use super::facts::{Feature, HostFacts};
use super::gate::{GatePlan, Hosts};
use super::{Act, Draft, Engine, EngineChoice, LimitName, Tracking, bounds};
use crate::origin::Layer;
use crate::policy::{Found, Policy};
use crate::seatbelt;
use crate::settings::NetworkMode;

pub(super) fn compile(
    policy: &Policy,
    facts: &HostFacts,
    choice: EngineChoice,
    draft: &mut Draft,
) -> Engine {
    draft
        .acts
        .extend([Act::Environment, Act::Descriptors, Act::Init, Act::Command]);
    limits(policy, draft);
    // The fingerprint in the profile, which every process inherits.
    draft.tracking = Tracking::Mark;
    if let EngineChoice::Named(engine) = choice
        && engine != Engine::Seatbelt
        && !policy.only_tracks()
    {
        draft.gap(
            policy,
            "every rule",
            "this engine does not exist on macOS",
            "use `--engine auto`",
        );
        return engine;
    }
    if let Feature::Missing { why, fix } = &facts.seatbelt {
        let lost = format!("nothing can be restricted or found again: {why}");
        draft.gap(policy, "every rule", &lost, fix);
    }
    if policy.only_tracks() {
        draft.acts.push(Act::Seatbelt(seatbelt::tracking()));
        return Engine::Track;
    }
    draft.acts.push(Act::Seatbelt(seatbelt::compile(policy)));
    paths(policy, draft);
    network(policy, draft);
    Engine::Seatbelt
}

/// What a process may use can be bounded one by one, and the clock by the supervisor; nothing counts
/// for a session as a whole.
fn limits(policy: &Policy, draft: &mut Draft) {
    let mut set = Vec::new();
    for (name, bound, origin) in bounds(policy) {
        match name {
            LimitName::Cpu | LimitName::FileSize | LimitName::Files | LimitName::Wall => {
                set.push((name, bound));
            }
            LimitName::Memory | LimitName::Processes => {
                if origin.layer() != Layer::BuiltIn {
                    draft.gap_of(
                        origin,
                        format!("limit {name}"),
                        "macOS cannot bound it for a session",
                        "write \"none\"",
                    );
                }
            }
        }
    }
    if !set.is_empty() {
        draft.acts.push(Act::Limits { bounds: set });
    }
}

/// Seatbelt takes text, and a path need not be any.
fn paths(policy: &Policy, draft: &mut Draft) {
    for rule in policy.files().rules() {
        // What is not there and not text cannot be made either: these volumes hold text only.
        if rule.found != Found::Absent && rule.path.as_path().to_str().is_none() {
            draft.gap_of(
                rule.origin.clone(),
                format!("{}: {}", rule.path, rule.access),
                "the path is not UTF-8, and Seatbelt takes no other",
                "rename it",
            );
        }
    }
}

/// Single hosts are reached through a gate on a port of the host's loopback, which is the only thing
/// that the profile lets the session connect to. Ports that were granted are rules of the profile.
fn network(policy: &Policy, draft: &mut Draft) {
    let network = policy.network();
    if network.mode() == NetworkMode::Hosts {
        draft.acts.push(Act::Gate(GatePlan {
            hosts: Hosts::ProxyOnly {
                patterns: network.hosts().len(),
                why: "macOS carries no connection elsewhere than where it was made to".to_owned(),
            },
            loopback_in: Vec::new(),
            loopback_out: Vec::new(),
        }));
    }
}
