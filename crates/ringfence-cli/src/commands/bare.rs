//! A command outside the sandbox, only tracked.

use ringfence::planned::Planned;
use ringfence_core::origin::{Layer, Origin};
use ringfence_core::policy::Policy;
use ringfence_core::request::Scope;
use ringfence_core::settings::{Keys, Preset};

use super::refusal::explain_gaps;
use super::run::Job;
use crate::exit::Exit;
use crate::load::Scene;
use crate::output::complain;

/// The policy of one. Where even that cannot be held, a limit say, nobody needs to be asked about it;
/// what stands in the way is said.
pub(super) fn outside(scene: &mut Scene, job: &Job<'_>) -> Result<Policy, Exit> {
    let mut keys = Keys::default();
    let origin = || Origin::Grant { scope: Scope::Once };
    keys.preset.set(Preset::Track, origin());
    keys.terminal.sandbox.enabled.set(true, origin());
    scene.loaded.add(Layer::Flag, keys);
    let policy = scene.policy()?;
    let planned = Planned::new(&policy, job.flags.engine.engine);
    if !planned.plan().may_launch() {
        complain("without the sandbox not every rule would hold either", None);
        explain_gaps(&planned);
        return Err(Exit::Refused);
    }
    Ok(policy)
}
