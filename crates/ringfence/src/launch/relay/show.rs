//! What is shown, on its way from a session to a screen: as it is, or cleaned.

use std::os::fd::AsFd;

use ringfence_core::terminal::{Aftermath, Sanitizer};
use ringfence_sys::Errno;

use super::buffer::{Buffer, Flow};

/// What is read at once. A terminal never has more.
const CHUNK: usize = 4096;
/// What is made of it at most.
const LARGEST: usize = 3 * CHUNK + 64;
/// A few chunks, so that reading and writing need not take turns.
const SIZE: usize = 16 * CHUNK;

/// What a user is shown of what a command prints.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Shown {
    /// All of it.
    #[default]
    AsIs,
    /// Text and colours.
    Sanitized,
}

/// Output on its way.
#[derive(Debug)]
pub(super) struct Output {
    way: Way,
    buffer: Buffer,
    cleaned: Vec<u8>,
}

#[derive(Debug)]
enum Way {
    AsIs(Aftermath),
    Sanitized(Sanitizer),
}

impl Output {
    pub(super) fn new(shown: Shown) -> Self {
        Self {
            way: match shown {
                Shown::AsIs => Way::AsIs(Aftermath::new()),
                Shown::Sanitized => Way::Sanitized(Sanitizer::new()),
            },
            buffer: Buffer::new(SIZE),
            cleaned: Vec::new(),
        }
    }

    /// Whether more can be taken in, whatever becomes of it.
    pub(super) fn has_room(&self) -> bool {
        self.buffer.room() >= LARGEST
    }

    /// Whether nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Takes in what can be read now.
    pub(super) fn fill(&mut self, source: impl AsFd) -> Flow {
        if !self.has_room() {
            return Flow::Waits;
        }
        let mut chunk = [0; CHUNK];
        match rustix::io::read(source, &mut chunk) {
            Ok(0) => Flow::Closed(Errno::PIPE),
            Ok(count) => {
                self.take(chunk.get(..count).unwrap_or_default());
                Flow::Moved
            }
            Err(Errno::AGAIN | Errno::INTR) => Flow::Waits,
            Err(errno) => Flow::Closed(errno),
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        match &mut self.way {
            Way::AsIs(aftermath) => {
                aftermath.listen(bytes);
                self.buffer.push(bytes);
            }
            Way::Sanitized(sanitizer) => {
                sanitizer.filter(bytes, &mut self.cleaned);
                self.buffer.push(&self.cleaned);
                self.cleaned.clear();
            }
        }
    }

    /// Gives away what can be written now.
    pub(super) fn drain(&mut self, target: impl AsFd) -> Flow {
        self.buffer.drain(target)
    }

    /// Adds what has to be said at the end: whatever the command did to the terminal is undone.
    pub(super) fn finish(&mut self) {
        let last = match &mut self.way {
            Way::AsIs(aftermath) => aftermath.undo(),
            Way::Sanitized(sanitizer) => {
                let mut last = Vec::new();
                sanitizer.finish(&mut last);
                last
            }
        };
        self.buffer.push(&last);
    }

    /// What would undo all that was taken in, whatever of it was shown.
    pub(super) fn undo(&self) -> Vec<u8> {
        match &self.way {
            Way::AsIs(aftermath) => aftermath.undo_unheard(),
            Way::Sanitized(_) => Aftermath::new().undo_unheard(),
        }
    }

    /// Whether the terminal may still answer something that the command asked it.
    pub(super) fn was_asked(&self) -> bool {
        match &self.way {
            Way::AsIs(aftermath) => aftermath.was_asked(),
            Way::Sanitized(_) => false,
        }
    }

    /// Forgets everything that is on its way.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
    }
}
