//! On which processors threads run.

use std::mem::MaybeUninit;
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;

use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

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

/// Another processor to go on with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aside {
    ours: Processors,
    others: CpuSet,
}

impl Aside {
    /// `None` if there is none.
    pub(super) fn find() -> Option<Self> {
        Some(Self {
            ours: Processors::ours().ok()?,
            others: others()?,
        })
    }

    /// Leaves the processor that this thread is on to whoever waits for it.
    pub(super) fn step(&self) {
        if sched_setaffinity(None, &self.others).is_ok() {
            // Who may do the one may do the other.
            let _ = self.ours.take_back();
        }
    }
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
