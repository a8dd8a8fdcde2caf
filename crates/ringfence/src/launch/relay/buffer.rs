//! Bytes on their way from one descriptor to another, never more than fit.

use std::os::fd::AsFd;

use ringfence_sys::Errno;

/// A bounded buffer between a reader and a writer. Neither ever waits: both ends are read and
/// written only as far as they can be at the moment.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
}

/// What came of moving bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Flow {
    /// The other side is gone.
    Closed(Errno),
    /// Some bytes moved.
    Moved,
    /// Nothing can be moved now.
    Waits,
}

impl Buffer {
    pub(super) fn new(size: usize) -> Self {
        Self {
            bytes: vec![0; size].into_boxed_slice(),
            from: 0,
            to: 0,
        }
    }

    /// Whether nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Whether more can be taken in.
    pub(super) fn has_room(&self) -> bool {
        self.to - self.from < self.bytes.len()
    }

    /// How much more can be taken in.
    pub(super) fn room(&self) -> usize {
        self.bytes.len() - (self.to - self.from)
    }

    /// Takes in some bytes, as far as there is room; says how many.
    pub(super) fn push(&mut self, bytes: &[u8]) -> usize {
        self.make_room();
        let count = bytes.len().min(self.room());
        let room = self.bytes.get_mut(self.to..self.to + count);
        if let (Some(room), Some(bytes)) = (room, bytes.get(..count)) {
            room.copy_from_slice(bytes);
            self.to += count;
        }
        count
    }

    fn make_room(&mut self) {
        if self.from > 0 {
            self.bytes.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
    }

    /// Takes in what can be read now.
    pub(super) fn fill(&mut self, source: impl AsFd) -> Flow {
        self.make_room();
        let room = self.bytes.get_mut(self.to..).unwrap_or_default();
        if room.is_empty() {
            return Flow::Waits;
        }
        match rustix::io::read(source, room) {
            Ok(0) | Err(Errno::AGAIN | Errno::INTR) => Flow::Waits,
            Ok(count) => {
                self.to += count;
                Flow::Moved
            }
            Err(errno) => Flow::Closed(errno),
        }
    }

    /// Gives away what can be written now.
    pub(super) fn drain(&mut self, target: impl AsFd) -> Flow {
        let ready = self.bytes.get(self.from..self.to).unwrap_or_default();
        if ready.is_empty() {
            return Flow::Waits;
        }
        match rustix::io::write(target, ready) {
            Ok(count) => {
                self.from += count;
                Flow::Moved
            }
            Err(Errno::AGAIN | Errno::INTR) => Flow::Waits,
            Err(errno) => Flow::Closed(errno),
        }
    }

    /// Forgets everything that is on its way.
    pub(super) fn clear(&mut self) {
        self.from = 0;
        self.to = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::pipes;
    use rustix::fs::{OFlags, fcntl_setfl};
    use std::os::fd::OwnedFd;

    fn impatient() -> (OwnedFd, OwnedFd) {
        let (read, write) = pipes::pipe().unwrap();
        for end in [&read, &write] {
            fcntl_setfl(end, OFlags::NONBLOCK).unwrap();
        }
        (read, write)
    }

    #[test]
    fn every_byte_arrives_once_and_in_order_through_a_small_buffer() {
        let (source, from_test) = impatient();
        let (to_test, target) = impatient();
        let sent: Vec<u8> = (0..=u8::MAX).cycle().take(10_000).collect();
        let mut buffer = Buffer::new(7);
        let mut arrived = Vec::new();
        for part in sent.chunks(100) {
            rustix::io::write(&from_test, part).unwrap();
            while buffer.fill(&source) == Flow::Moved || !buffer.is_empty() {
                // Only part of it leaves before more comes in.
                assert_eq!(buffer.drain(&target), Flow::Moved);
            }
            let mut chunk = [0; 200];
            let count = rustix::io::read(&to_test, &mut chunk).unwrap();
            arrived.extend_from_slice(&chunk[..count]);
        }
        assert_eq!(arrived, sent);
    }

    #[test]
    fn a_full_buffer_takes_nothing_in_until_something_leaves() {
        let (source, from_test) = impatient();
        rustix::io::write(&from_test, b"abcdef").unwrap();
        let mut buffer = Buffer::new(4);
        assert_eq!(buffer.fill(&source), Flow::Moved);
        assert!(!buffer.has_room());
        assert_eq!(buffer.fill(&source), Flow::Waits);
        // The rest is still where it was.
        let mut rest = [0; 8];
        assert_eq!(rustix::io::read(&source, &mut rest), Ok(2));
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        let mut buffer = Buffer::new(4);
        assert_eq!((buffer.push(b"abc"), buffer.push(b"def")), (3, 1));
        let (to_test, target) = impatient();
        buffer.drain(&target);
        assert_eq!((buffer.room(), buffer.push(b"ef")), (4, 2));
        buffer.drain(&target);
        let mut arrived = [0; 8];
        let count = rustix::io::read(&to_test, &mut arrived).unwrap();
        assert_eq!(&arrived[..count], b"abcdef");
    }

    #[test]
    fn a_target_that_is_gone_is_told() {
        let (source, from_test) = impatient();
        rustix::io::write(&from_test, b"x").unwrap();
        let mut buffer = Buffer::new(4);
        buffer.fill(&source);
        let (to_test, target) = impatient();
        drop(to_test);
        assert_eq!(buffer.drain(&target), Flow::Closed(Errno::PIPE));
    }
}
