//! Two files that change places while somebody looks at them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};

/// Exchanges two paths again and again, until it is dropped.
#[derive(Debug)]
pub struct Exchange {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Exchange {
    /// Begins; `pause` says how long to wait after each, by its number.
    pub fn of(a: &Path, b: &Path, pause: impl Fn(u64) -> Duration + Send + 'static) -> Self {
        let (a, b) = (a.to_owned(), b.to_owned());
        let (stop, count) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&count));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                std::thread::sleep(pause(counted.fetch_add(1, Ordering::Relaxed)));
            }
        });
        Self {
            stop,
            count,
            thread: Some(thread),
        }
    }

    /// How often they have changed places.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        // A race that nobody ran shows nothing; but one panic is enough.
        assert!(std::thread::panicking() || !matches!(ended, Some(Err(_))));
    }
}
