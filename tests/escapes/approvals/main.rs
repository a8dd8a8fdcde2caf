//! Ways around an approval, one file each, tried with the real program: by somebody who changes what
//! was approved, by somebody who draws the question, by somebody who answers too late.
//!
//! docs/ESCAPES.md is the index.
#![cfg(target_os = "linux")]

#[cfg(test)]
#[path = "../../../crates/ringfence-cli/tests/cli/answering.rs"]
mod answering;
#[cfg(test)]
#[path = "../../../crates/ringfence-cli/tests/terminal/driver.rs"]
#[allow(
    dead_code,
    reason = "two test programs share it, and this one does not use all of it"
)]
mod driver;
#[cfg(test)]
#[path = "../../../crates/ringfence-cli/tests/cli/stage.rs"]
#[allow(
    dead_code,
    reason = "two test programs share it, and this one does not use all of it"
)]
mod stage;
#[cfg(test)]
#[path = "../../../crates/ringfence-cli/tests/cli/world.rs"]
#[allow(
    dead_code,
    reason = "two test programs share it, and this one does not use all of it"
)]
mod world;

#[cfg(test)]
mod approved_is_what_runs;
#[cfg(test)]
mod chained_commands;
#[cfg(test)]
mod exchanged_grant;
#[cfg(test)]
mod prompt_spoofing;
#[cfg(test)]
mod reason_text;
#[cfg(test)]
mod stale_answers;
