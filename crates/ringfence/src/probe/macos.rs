//! What a Mac can enforce.
//!
//! Every one has Seatbelt, so there is nothing to look for; whether a profile is really taken, and a
//! process under it really found again, is only told by a launch, which [`super::examine`] tries.

use ringfence_core::plan::{Bwrap, CgroupFacts, Feature, HostFacts};
use ringfence_core::settings::Os;

use super::{Finding, Findings, Probed, this_arch};

/// The facts of this machine, as far as a launch counts on them.
pub fn quick() -> HostFacts {
    let mut facts = HostFacts::nothing(Os::Macos);
    facts.arch = this_arch();
    facts.version = version();
    facts.seatbelt = Feature::Works;
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

/// The same: a launch is the only trial there is.
pub fn thorough() -> Findings {
    Findings {
        facts: quick(),
        findings: vec![Finding {
            probed: Probed::Seatbelt,
            state: Feature::Works,
            detail: Some("part of macOS; the whole launch below tries it".to_owned()),
            follows: None,
        }],
        circumstances: Vec::new(),
    }
}

/// The version of the kernel, for people.
fn version() -> String {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    format!("Darwin {release}")
}
