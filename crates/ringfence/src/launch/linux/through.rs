//! Calls that were let through, and what they may still make.
//!
//! A caller that was told to go on may do so now or in an hour, whatever it looks like meanwhile. So
//! a call counts until it is known to be over, *and* a look at the names after that has found
//! nothing. Until then whatever appears may be its work; after that it is not, and something that
//! appears while nothing counts was made by the host.

use std::collections::HashMap;

use super::guard::Makes;

/// The calls of a session that may have made something nobody has seen yet.
#[derive(Debug, Default)]
pub(super) struct LetThrough {
    /// By thread, the last call of each.
    calls: HashMap<u32, Call>,
    /// What calls made that are over since the last look.
    over: Vec<Makes>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    number: i32,
    makes: Makes,
    is_over: bool,
}

impl LetThrough {
    /// A thread was told to go on with a call.
    pub(super) fn add(&mut self, thread: u32, number: i32, makes: Makes) {
        self.supersede(thread);
        let call = Call {
            number,
            makes,
            is_over: false,
        };
        self.calls.insert(thread, call);
    }

    /// A thread asks about another call: the one before is over.
    pub(super) fn supersede(&mut self, thread: u32) {
        if let Some(call) = self.calls.remove(&thread)
            && !self.over.contains(&call.makes)
        {
            self.over.push(call.makes);
        }
    }

    /// Whether the session may have made such a thing since the last look.
    pub(super) fn may_have_made(&self, makes: &[Makes]) -> bool {
        let calls = self.calls.values().map(|call| call.makes);
        let mut all = calls.chain(self.over.iter().copied());
        all.any(|made| makes.contains(&made))
    }

    /// Before a look: notes which calls are over by now.
    pub(super) fn before_a_look(&mut self) {
        for (thread, call) in &mut self.calls {
            call.is_over = !may_be_on_its_way(*thread, call.number);
        }
    }

    /// After a look that found nothing: what was over before it has made nothing.
    pub(super) fn after_a_look(&mut self) {
        self.over.clear();
        self.calls.retain(|_, call| !call.is_over);
    }

    /// Whether nothing counts.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.over.is_empty()
    }
}

/// Whether a thread may still be in a call: one that waits elsewhere, or is gone, is done with it.
/// One that could run and is not let may be anywhere.
fn may_be_on_its_way(thread: u32, number: i32) -> bool {
    // "running", or the number of the call that it waits in; nothing once it is gone.
    let Ok(text) = std::fs::read_to_string(format!("/proc/{thread}/syscall")) else {
        return std::fs::metadata(format!("/proc/{thread}")).is_ok();
    };
    let word = text.split_whitespace().next().unwrap_or_default();
    word == "running" || word == number.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const NOBODY: u32 = u32::MAX - 1;

    fn look(calls: &mut LetThrough) {
        calls.before_a_look();
        calls.after_a_look();
    }

    #[test]
    fn a_call_counts_until_a_look_after_its_end() {
        let mut calls = LetThrough::default();
        calls.add(NOBODY, 1, Makes::Directory);
        assert!(calls.may_have_made(&[Makes::Directory]));
        assert!(!calls.may_have_made(&[Makes::File]));
        // The thread is gone, and nobody has looked since.
        calls.before_a_look();
        assert!(calls.may_have_made(&[Makes::Directory]));
        calls.after_a_look();
        assert!(calls.is_empty());
    }

    #[test]
    fn a_call_that_was_followed_by_another_counts_until_the_next_look() {
        let mut calls = LetThrough::default();
        for refused in [false, true] {
            calls.add(NOBODY, 1, Makes::Moved);
            if refused {
                calls.supersede(NOBODY);
            } else {
                calls.add(NOBODY, 2, Makes::File);
            }
            assert!(calls.may_have_made(&[Makes::Moved]));
            look(&mut calls);
            assert!(calls.is_empty());
        }
    }

    #[test]
    fn what_may_still_run_counts_through_every_look() {
        let (tell, told) = std::sync::mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).unwrap();
            while !stopped.load(Ordering::Relaxed) {}
        });
        let busy = u32::try_from(told.recv().unwrap().as_raw_nonzero().get()).unwrap();
        let mut calls = LetThrough::default();
        for _ in 0..100 {
            calls.add(busy, -2, Makes::File);
            look(&mut calls);
            assert!(calls.may_have_made(&[Makes::File]));
        }
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        look(&mut calls);
        assert!(calls.is_empty());
    }
}
