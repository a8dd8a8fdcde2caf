//! A policy's plan for this machine, made again when the machine says no.
//!
//! A launch first counts on what nearly every machine has. Where the kernel refuses an act, the usual
//! reason is looked at first: no user namespaces. If the plan leaves a gap, or it was something else,
//! each thing is tried for itself, the plan is made from what was seen, and the
//! caller may launch once more. Nothing is ever weakened on the way: every plan is as open
//! about its gaps as the first, and whoever launches it asks
//! [`may_launch`](ringfence_core::plan::Plan::may_launch) again.

use ringfence_core::origin::{Layer, Located};
use ringfence_core::plan::{Engine, EngineChoice, HostFacts, Plan, compile};
use ringfence_core::policy::Policy;
use ringfence_core::settings::Limit;

use crate::launch::LaunchError;
use crate::probe::{self, Findings};

/// A plan, and the facts it was made from.
#[derive(Clone, Debug)]
pub struct Planned {
    plan: Plan,
    seen: Seen,
}

/// Whether a plan could need a cgroup: to hold a session together, or to carry a limit.
fn wants_cgroup(policy: &Policy, choice: EngineChoice) -> bool {
    let limits = policy.limits();
    let written = |limit: &Located<Limit>| {
        limit.value != Limit::Unlimited && limit.origin.layer() != Layer::BuiltIn
    };
    policy.only_tracks()
        || choice == EngineChoice::Named(Engine::Landlock)
        || written(&limits.memory)
        || written(&limits.processes)
}

/// What a plan was made from.
#[derive(Clone, Debug)]
enum Seen {
    /// What a handful of system calls told.
    Quick(Box<HostFacts>),
    /// What each probe told.
    Thorough(Box<Findings>),
}

impl Planned {
    /// Plans for this machine.
    pub fn new(policy: &Policy, choice: EngineChoice) -> Self {
        let mut facts = probe::quick();
        if wants_cgroup(policy, choice) {
            facts.cgroup = probe::cgroup();
        }
        if choice == EngineChoice::Named(Engine::Bwrap) {
            facts.bwrap = probe::bwrap();
        }
        let plan = compile(policy, &facts, choice);
        // Gaps that were accepted beforehand are reported as they are; a refusal deserves a look.
        if plan.may_launch() {
            let seen = Seen::Quick(Box::new(facts));
            return Self { plan, seen };
        }
        // Whoever reads of a gap must read the true reason.
        Self::thorough(policy, choice)
    }

    /// Plans for this machine after it has refused to make a namespace, whoever asked for it.
    pub fn after_refusal(policy: &Policy, choice: EngineChoice) -> Self {
        Self::without_namespaces(policy, choice).unwrap_or_else(|| Self::new(policy, choice))
    }

    /// Plans for a machine that makes no user namespaces. `None` if this one does, if somebody insists on
    /// them, or if the plan cannot be launched: whoever reads of a gap must read the true reason.
    fn without_namespaces(policy: &Policy, choice: EngineChoice) -> Option<Self> {
        let facts = probe::without_namespaces()?;
        let plan = compile(policy, &facts, choice);
        let seen = Seen::Quick(Box::new(facts));
        (plan.engine() != Engine::Namespaces && plan.may_launch()).then_some(Self { plan, seen })
    }

    fn thorough(policy: &Policy, choice: EngineChoice) -> Self {
        let findings = probe::thorough();
        let plan = compile(policy, &findings.facts, choice);
        Self {
            plan,
            seen: Seen::Thorough(Box::new(findings)),
        }
    }

    /// Plans again after a launch was refused, if that can lead anywhere else.
    ///
    /// `None` if the refusal was not the kernel's, if everything had been tried before, or if the
    /// plan would be the same again: then the refusal stands.
    pub fn reconsidered(
        &self,
        refusal: &LaunchError,
        policy: &Policy,
        choice: EngineChoice,
    ) -> Option<Self> {
        let (LaunchError::Act { .. }, Seen::Quick(facts)) = (refusal, &self.seen) else {
            return None;
        };
        // Once only: what is known to be missing is not tried again.
        if facts.user_namespaces.works()
            && self.plan.engine() == Engine::Namespaces
            && let Some(again) = Self::without_namespaces(policy, choice)
        {
            return Some(again);
        }
        let again = Self::thorough(policy, choice);
        let same = again.plan.engine() == self.plan.engine()
            && again.plan.acts() == self.plan.acts()
            && again.plan.gaps() == self.plan.gaps();
        (!same).then_some(again)
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The facts it was made from.
    pub fn facts(&self) -> &HostFacts {
        match &self.seen {
            Seen::Quick(facts) => facts,
            Seen::Thorough(findings) => &findings.facts,
        }
    }

    /// What each probe told, if they were asked.
    pub fn findings(&self) -> Option<&Findings> {
        match &self.seen {
            Seen::Quick(_) => None,
            Seen::Thorough(findings) => Some(findings),
        }
    }
}
