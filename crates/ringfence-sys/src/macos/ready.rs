//! Waiting until one of several descriptors is ready.
//!
//! `poll` of macOS does not serve every terminal (`/dev/tty` is one it calls invalid), `select` does:
//! so this is `select` behind the words of `poll`.

use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

pub use rustix::event::{PollFlags, Timespec};
use rustix::io::Errno;

/// A descriptor, what is wanted of it, and what is there.
#[derive(Clone, Debug)]
pub struct PollFd<'fd> {
    descriptor: BorrowedFd<'fd>,
    wanted: PollFlags,
    found: PollFlags,
}

impl<'fd> PollFd<'fd> {
    /// Wants this of a descriptor.
    pub fn new<F: AsFd>(descriptor: &'fd F, wanted: PollFlags) -> Self {
        Self::from_borrowed_fd(descriptor.as_fd(), wanted)
    }

    /// The same, for one that is borrowed already.
    pub fn from_borrowed_fd(descriptor: BorrowedFd<'fd>, wanted: PollFlags) -> Self {
        Self {
            descriptor,
            wanted,
            found: PollFlags::empty(),
        }
    }

    /// What was there when it was last waited for. An end counts as something to be read.
    pub fn revents(&self) -> PollFlags {
        self.found
    }
}

const BITS: usize = 32;

/// As `select` has it: one bit for each number.
#[derive(Clone, Copy)]
struct Set([i32; libc::FD_SETSIZE / BITS]);

impl Set {
    const EMPTY: Self = Self([0; libc::FD_SETSIZE / BITS]);

    fn place(number: usize) -> (usize, i32) {
        (number / BITS, 1 << (number % BITS))
    }

    fn add(&mut self, number: usize) -> Result<(), Errno> {
        let (word, bit) = Self::place(number);
        // A descriptor that cannot be waited for must not look as if nothing happened there.
        *self.0.get_mut(word).ok_or(Errno::INVAL)? |= bit;
        Ok(())
    }

    fn has(&self, number: usize) -> bool {
        let (word, bit) = Self::place(number);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

const _: () = assert!(size_of::<Set>() == size_of::<libc::fd_set>());

/// Waits until one of them is as wanted, or the time is over; says how many are.
///
/// # Errors
///
/// [`Errno::INVAL`] for a descriptor whose number is beyond what `select` knows; otherwise the
/// kernel's answer.
pub fn poll(watched: &mut [PollFd<'_>], timeout: Option<&Timespec>) -> Result<usize, Errno> {
    let (mut reading, mut writing) = (Set::EMPTY, Set::EMPTY);
    let mut numbers = 0;
    for watch in watched.iter() {
        let raw = watch.descriptor.as_raw_fd();
        let number = usize::try_from(raw).map_err(|_| Errno::BADF)?;
        if watch.wanted.contains(PollFlags::IN) {
            reading.add(number)?;
        }
        if watch.wanted.contains(PollFlags::OUT) {
            writing.add(number)?;
        }
        numbers = numbers.max(raw + 1);
    }
    let mut patience = timeout.map(|timeout| libc::timeval {
        tv_sec: timeout.tv_sec,
        tv_usec: libc::suseconds_t::try_from(timeout.tv_nsec / 1000).unwrap_or(0),
    });
    let patience = patience
        .as_mut()
        .map_or_else(std::ptr::null_mut, std::ptr::from_mut);
    // SAFETY: both sets are live, as long as the library's own, and hold no number that is not below
    // the first argument; the time is null or live.
    let answer = unsafe {
        libc::select(
            numbers,
            (&raw mut reading).cast(),
            (&raw mut writing).cast(),
            std::ptr::null_mut(),
            patience,
        )
    };
    if answer < 0 {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    let mut ready = 0;
    for watch in watched {
        let number = usize::try_from(watch.descriptor.as_raw_fd()).map_err(|_| Errno::BADF)?;
        watch.found = PollFlags::empty();
        if reading.has(number) && watch.wanted.contains(PollFlags::IN) {
            watch.found |= PollFlags::IN;
        }
        if writing.has(number) && watch.wanted.contains(PollFlags::OUT) {
            watch.found |= PollFlags::OUT;
        }
        ready += usize::from(!watch.found.is_empty());
    }
    Ok(ready)
}

// Other systems have `select` too, so it is tried there.
#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rustix::pipe::pipe;

    use super::*;

    const AT_ONCE: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };

    #[test]
    fn each_descriptor_is_told_what_it_was_asked() {
        let ((empty, _open), (full, filling)) = (pipe().unwrap(), pipe().unwrap());
        let (over, gone) = pipe().unwrap();
        rustix::io::write(&filling, b"x").unwrap();
        drop(gone);
        let mut watched = [
            PollFd::new(&empty, PollFlags::IN),
            PollFd::new(&full, PollFlags::IN),
            PollFd::new(&filling, PollFlags::OUT),
            PollFd::new(&over, PollFlags::IN),
            // Watched, and nothing wanted of it.
            PollFd::new(&full, PollFlags::empty()),
        ];
        assert_eq!(poll(&mut watched, None), Ok(3));
        let found = watched.map(|watch| watch.revents());
        let none = PollFlags::empty();
        let expected = [none, PollFlags::IN, PollFlags::OUT, PollFlags::IN, none];
        assert_eq!(found, expected);
    }

    #[test]
    fn nothing_is_waited_for_longer_than_was_said() {
        let (empty, _open) = pipe().unwrap();
        let mut watched = [PollFd::new(&empty, PollFlags::IN)];
        assert_eq!(poll(&mut watched, Some(&AT_ONCE)), Ok(0));
        let soon = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        let asked = Instant::now();
        assert_eq!(poll(&mut watched, Some(&soon)), Ok(0));
        assert!(asked.elapsed() >= Duration::from_millis(20), "it did wait");
        assert_eq!(poll(&mut [], Some(&AT_ONCE)), Ok(0));
    }

    #[test]
    fn what_was_found_before_is_forgotten() {
        let (full, filling) = pipe().unwrap();
        rustix::io::write(&filling, b"x").unwrap();
        let mut watched = [PollFd::new(&full, PollFlags::IN)];
        assert_eq!(poll(&mut watched, None), Ok(1));
        rustix::io::read(&full, &mut [0]).unwrap();
        assert_eq!(poll(&mut watched, Some(&AT_ONCE)), Ok(0));
        let [watch] = watched;
        assert_eq!(watch.revents(), PollFlags::empty());
    }

    /// One that cannot be waited for is an error, and not one at which nothing ever happens.
    #[test]
    fn a_number_that_is_too_large_is_refused() {
        let (full, filling) = pipe().unwrap();
        rustix::io::write(&filling, b"x").unwrap();
        let last = i32::try_from(libc::FD_SETSIZE).unwrap();
        let Ok(large) = rustix::io::fcntl_dupfd_cloexec(&full, last) else {
            // This process may not have so many: then there is nothing to refuse.
            return;
        };
        let mut watched = [PollFd::new(&large, PollFlags::IN)];
        assert_eq!(poll(&mut watched, None), Err(Errno::INVAL));
    }
}
