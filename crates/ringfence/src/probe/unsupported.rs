//! Machines on which nothing can be enforced yet: everything is missing, and says so.

use ringfence_core::plan::{Bwrap, CgroupFacts, Feature, HostFacts};
use ringfence_core::settings::Os;

use super::{Finding, Findings, Probed, this_arch};
use crate::place::OS;

/// The facts of this machine: it can enforce nothing.
pub fn quick() -> HostFacts {
    let mut facts = HostFacts::nothing(OS);
    facts.arch = this_arch();
    facts.seatbelt = unbuilt();
    facts
}

/// There is none.
pub fn cgroup() -> CgroupFacts {
    quick().cgroup
}

/// There is none.
pub fn bwrap() -> Bwrap {
    quick().bwrap
}

/// No launch here makes any.
pub fn without_namespaces() -> Option<HostFacts> {
    None
}

/// The same: there is nothing to try.
pub fn thorough() -> Findings {
    Findings {
        facts: quick(),
        findings: vec![Finding {
            probed: Probed::Seatbelt,
            state: unbuilt(),
            detail: None,
            follows: None,
        }],
        circumstances: Vec::new(),
    }
}

fn unbuilt() -> Feature {
    let fix = match OS {
        Os::Windows => "run ringfence inside WSL 2",
        Os::Linux | Os::Macos => "use Linux until a version with an engine for this system",
    };
    Feature::Missing {
        why: "this version has no engine for this operating system".to_owned(),
        fix: fix.to_owned(),
    }
}
