//! The second stage of a launch, in the program that launches.
//!
//! Where another program has to make the namespaces, ringfence comes in once more inside them, to
//! apply what that program does not: it starts the calling program again, as a second stage. For
//! that a program calls [`run_if_asked`] before anything else:
//!
//! ```no_run
//! ringfence::shim::run_if_asked();
//! // ... the program itself
//! ```
//!
//! A second stage gets its orders in a sealed memory file, by descriptor. Its arguments name the
//! descriptor and nothing else, and its environment is empty.

use std::sync::atomic::{AtomicBool, Ordering};

/// The first argument of a second stage; no command of anybody's begins like this.
pub(crate) const ASKED: &str = "--ringfence-second-stage--";

/// The first argument of a process that is to run a wrapped session.
pub(crate) const SESSION: &str = "--ringfence-session--";

/// Whether this program can be started as a second stage.
static CAN_BE_ASKED: AtomicBool = AtomicBool::new(false);

/// Becomes the second stage of a launch, or the supervisor of a wrapped session
/// ([`Sandbox::wrap`](crate::Sandbox)), if that is what this process was started for, and never
/// returns then; otherwise does nothing.
///
/// Call it first in `main`, while the process has one thread.
///
/// # Examples
///
/// ```no_run
/// // The first line of `main`.
/// ringfence::shim::run_if_asked();
/// ```
pub fn run_if_asked() {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next().unwrap_or_default();
    let mut number = || {
        let number = arguments.next()?;
        number.to_str()?.parse().ok()
    };
    if first == ASKED {
        run(number())
    }
    CAN_BE_ASKED.store(true, Ordering::Relaxed);
    if first == SESSION {
        run_session(number())
    }
}

/// Whether [`run_if_asked`] was called: if not, the same program started again would not be a
/// second stage but itself.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(crate) fn can_be_asked() -> bool {
    CAN_BE_ASKED.load(Ordering::Relaxed)
}

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn run(number: Option<u32>) -> ! {
    crate::launch::live_as_second_stage(number)
}

#[cfg(target_os = "linux")]
#[expect(clippy::exit, reason = "this process was started for nothing else")]
fn run_session(number: Option<u32>) -> ! {
    std::process::exit(crate::wrap::live(number).into())
}

#[cfg(not(target_os = "linux"))]
fn run_session(_number: Option<u32>) -> ! {
    // Nobody asks for this here; whoever does must not get the program itself.
    std::process::abort()
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn run(_number: Option<u32>) -> ! {
    // Nobody asks for this here; whoever does must not get the program itself.
    std::process::abort()
}
