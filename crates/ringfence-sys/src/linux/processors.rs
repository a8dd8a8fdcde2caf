//! On which processors threads run.

use std::mem::MaybeUninit;
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::raw;

/// The processors that this thread may run on, but for the one it is on. `None` if there is no other.
fn others() -> Option<CpuSet> {
    let mut others = sched_getaffinity(None).ok()?;
    others.unset(sched_getcpu());
    (others.count() > 0).then_some(others)
}

/// Where a thread may run.
#[derive(Clone, Copy, Debug)]
pub struct Processors(CpuSet);

impl Processors {
    /// Those of this thread.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn ours() -> Result<Self, Errno> {
        sched_getaffinity(None).map(Self)
    }

    /// Lets this thread run there, wherever it was put.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn take_back(&self) -> Result<(), Errno> {
        let mut all = CpuSet::new();
        for processor in 0..CpuSet::MAX_CPU {
            all.set(processor);
        }
        // Whoever asked for none in particular gets those too that are added later.
        sched_setaffinity(None, &all)?;
        if sched_getaffinity(None)? != self.0 {
            sched_setaffinity(None, &self.0)?;
        }
        Ok(())
    }
}

/// Another processor to go on with, once somebody was born on this one. Dropped, this thread goes on
/// where and as it did before.
#[derive(Debug)]
pub(super) struct Aside {
    before: Before,
    others: CpuSet,
}

/// Where and how a thread ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    processors: Processors,
    /// Whether it was made one that pushes nobody aside.
    made_patient: bool,
}

impl Aside {
    /// Stays on the processor that this thread is on. Whoever is born meanwhile stays there, too, and does
    /// not push us aside before we make room. `None` if there is no other processor to go to.
    pub(super) fn stay() -> Option<Self> {
        let processors = Processors::ours().ok()?;
        let (mut here, mut others) = (CpuSet::new(), processors.0);
        let number = sched_getcpu();
        here.set(number);
        others.unset(number);
        if others.count() == 0 || sched_setaffinity(None, &here).is_err() {
            return None;
        }
        // Whoever asked for anything else keeps it.
        let made_patient = is_ordinary() && follow(libc::SCHED_BATCH).is_ok();
        let before = Before {
            processors,
            made_patient,
        };
        Some(Self { before, others })
    }

    /// How whoever was born is to go on.
    pub(super) fn before(&self) -> Before {
        self.before
    }

    /// Leaves the processor to whoever was born there.
    pub(super) fn step(self) {
        let _ = sched_setaffinity(None, &self.others);
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.before.push_again();
        self.before.roam_again();
    }
}

// Who may do the one may do the other, so no answer is looked at.
impl Before {
    /// Lets this thread push others aside, if it did.
    pub(super) fn push_again(self) {
        if self.made_patient {
            let _ = follow(libc::SCHED_OTHER);
        }
    }

    /// Lets this thread run elsewhere, too.
    pub(super) fn roam_again(self) {
        let _ = self.processors.take_back();
    }
}

/// Whether nobody chose how this thread takes its turns.
pub(super) fn is_ordinary() -> bool {
    // SAFETY: words only; zero is this thread.
    let policy = unsafe { raw::call(libc::SYS_sched_getscheduler, [0; 6]) };
    policy == Ok(raw::int_word(libc::SCHED_OTHER))
}

/// Has this thread take its turns as a policy says that knows no priority of its own.
fn follow(policy: i32) -> Result<(), Errno> {
    let none: libc::c_int = 0;
    let words = [0, raw::int_word(policy), raw::address(&none), 0, 0, 0];
    // SAFETY: zero is this thread; the kernel reads one live `struct sched_param`, which to it is an int.
    unsafe { raw::call(libc::SYS_sched_setscheduler, words) }.map(|_zero| ())
}

/// Lets a thread run on other processors than ours. The kernel would leave a new one where it was
/// born, behind us, until we sleep.
///
/// Where there is no other, it waits for its turn.
pub fn leave_this_one<T>(thread: &JoinHandle<T>) {
    let Some(others) = others() else { return };
    let thread = thread.as_pthread_t();
    // To musl it is an address.
    #[cfg(target_env = "musl")]
    let Ok(thread) = usize::try_from(thread).map(std::ptr::with_exposed_provenance_mut) else {
        return;
    };
    // SAFETY: a set of processors is a plain array of words, of which all zeroes is an empty one.
    let mut set = unsafe { MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init() };
    for number in (0..CpuSet::MAX_CPU).filter(|number| others.is_set(*number)) {
        // SAFETY: it is within the set: both hold as many.
        unsafe { libc::CPU_SET(number, &mut set) };
    }
    // SAFETY: the handle keeps the thread's number valid until it is joined, also after its end; the
    // set is live and of that size.
    let _placed = unsafe {
        libc::pthread_setaffinity_np(thread, size_of::<libc::cpu_set_t>(), &raw const set)
    };
}

const _: () = assert!(size_of::<libc::cpu_set_t>() * 8 >= CpuSet::MAX_CPU);

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_thread_goes_elsewhere_if_there_is_an_elsewhere() {
        let (go, started) = channel::<()>();
        let before = sched_getaffinity(None).unwrap();
        let ours = Processors::ours().unwrap();
        let thread = std::thread::spawn(move || {
            started.recv().unwrap();
            let allowed = sched_getaffinity(None).unwrap();
            ours.take_back().unwrap();
            (allowed, sched_getaffinity(None).unwrap())
        });
        leave_this_one(&thread);
        go.send(()).unwrap();
        let (allowed, after) = thread.join().unwrap();
        assert_eq!(after, before, "it took them back");
        let missing = before.count() - allowed.count();
        assert_eq!(missing, u32::from(before.count() > 1));
        assert_eq!(
            sched_getaffinity(None).unwrap(),
            before,
            "ours are as before"
        );
    }

    #[test]
    fn with_one_processor_there_is_no_other() {
        let whole = sched_getaffinity(None).unwrap();
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|cpu| whole.is_set(*cpu)).unwrap());
        // Of this thread only.
        sched_setaffinity(None, &one).unwrap();
        assert_eq!(others(), None);
    }
}
