//! What was granted is what the session gets, with every engine that needs no other program.

use ringfence::core::plan::{Engine, EngineChoice};
use ringfence::core::settings::{OnGap, Preset};

use crate::granted::only_what_was_granted_is_written;
use crate::world::{World, also_as_plain_user, flag};

#[test]
fn by_mounts() {
    only_what_was_granted_is_written(World::new(Preset::Agent));
    also_as_plain_user("exchanged::by_mounts");
}

#[test]
fn by_landlock_alone() {
    let mut world = World::new(Preset::Agent);
    world.facts = ringfence::probe::quick();
    world.facts.cgroup = ringfence::probe::cgroup();
    world.engine = EngineChoice::Named(Engine::Landlock);
    world.keys.on_gap.set(OnGap::Report, flag());
    only_what_was_granted_is_written(world);
    also_as_plain_user("exchanged::by_landlock_alone");
}
