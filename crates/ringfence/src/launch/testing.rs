//! Switches that tests set to see what happens when something fails, or is not there.
//!
//! No setting, flag or variable leads here, and nobody else should: a session without one of its
//! steps keeps less than it says.

use ringfence_core::plan::Step;

/// What a test asks of a launch.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Testing {
    /// Pretend that the kernel refused this step: nothing may be left behind.
    pub fail_at: Option<Step>,
    /// Leave this step out altogether, to see what the others hold alone.
    pub danger_without: Option<Step>,
    /// Who sets the session up, which must make no difference.
    pub helper: Helping,
}

/// Whether a second process helps to set a session up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Helping {
    /// On every machine.
    Always,
    /// On none.
    Never,
    /// Where a processor is free for it.
    #[default]
    WherePossible,
}
