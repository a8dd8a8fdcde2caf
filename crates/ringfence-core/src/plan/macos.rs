//! Plans for macOS.
//!
//! The profile's text is not written yet, so every plan here has a gap that says so.

use super::facts::HostFacts;
use super::{Act, Draft, Engine, EngineChoice, bounds};
use crate::origin::Layer;
use crate::policy::Policy;

pub(super) fn compile(
    policy: &Policy,
    facts: &HostFacts,
    choice: EngineChoice,
    draft: &mut Draft,
) -> Engine {
    draft
        .acts
        .extend([Act::Environment, Act::Descriptors, Act::Init, Act::Command]);
    for (name, _, origin) in bounds(policy) {
        if origin.layer() != Layer::BuiltIn {
            draft.gap_of(
                origin,
                format!("limit {name}"),
                "this version of ringfence sets no limits on macOS",
                "write \"none\"",
            );
        }
    }
    if policy.only_tracks() {
        return Engine::Track;
    }
    if let EngineChoice::Named(engine) = choice
        && engine != Engine::Seatbelt
    {
        draft.gap(
            policy,
            "every rule",
            "this engine does not exist on macOS",
            "use `--engine auto`",
        );
        return engine;
    }
    if facts.seatbelt.works() {
        draft.acts.push(Act::Seatbelt);
    }
    draft.gap(
        policy,
        "every rule",
        "this version of ringfence cannot write Seatbelt profiles yet",
        "run the command on Linux",
    );
    Engine::Seatbelt
}
