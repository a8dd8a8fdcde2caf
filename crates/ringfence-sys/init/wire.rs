//! What the launcher tells the first process of a session, and what that says back.
//!
//! Both ends compile this file: the library, and the program that the first process becomes. So it
//! knows nothing but `core`, and every reader is total: bytes that were not written here are no
//! message.

/// What the first process is called, in place of whoever started it: so whoever ends programs by our
/// name does not end this one with them.
pub const NAME: &core::ffi::CStr = c"(session)";

/// What the first process is to do. It travels as an argument, so it is text of a fixed length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Orders {
    /// Where to say which step failed; its silence says that the command runs.
    pub failure: u32,
    /// Where to say how the command ended. Its reader's end means that nobody waits any more.
    pub end: u32,
    /// Where to say when each step was done, if somebody wants to know.
    pub timeline: Option<u32>,
    /// A byte has to come from each before the command starts.
    pub waits: [Option<u32>; 2],
    /// The inner end of the session's own terminal.
    pub terminal: Option<u32>,
    /// What keeps the processes of the session together.
    pub boundary: Boundary,
    /// What becomes of background processes when the command has ended.
    pub background: Background,
    /// When it goes itself, once it has said how the command ended.
    pub going: Going,
    /// A step that is to fail, for tests of what is left then.
    pub fails: Fails,
    /// How many words in front of the command's variables name the program to run, in the order in
    /// which they are tried.
    pub programs: u32,
    /// How many behind those are the command's arguments.
    pub arguments: u32,
    /// The numbers of the two steps that are done here.
    pub steps: Steps,
}

/// What keeps the processes of a session together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Boundary {
    /// Descent: orphans become children of the first process.
    Descent,
    /// A pid namespace, whose init the first process is.
    PidNamespace,
}

/// What becomes of background processes when the command has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Background {
    /// They end with it.
    Ends,
    /// They stay until nobody of them is left, or nobody wants them any more.
    Stays,
}

/// When a first process goes that has done its work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Going {
    /// At once: what it is in is to be removed.
    AtOnce,
    /// When nobody waits any more. Whoever was told of the end goes on sooner: a process that ends first
    /// keeps the processor for that, and one that holds a session's mounts last takes all of them down.
    WhenLetGo,
}

/// A step that is to fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fails {
    /// Starting the command.
    Command,
    /// Becoming the first process.
    Init,
    /// None.
    Nothing,
}

/// How the launcher numbers the steps that are done here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Steps {
    /// Becoming the first process.
    pub init: u8,
    /// Starting the command.
    pub command: u8,
}

/// A number in hexadecimal digits.
const WORD: usize = 8;
const WORDS: usize = 10;
/// How long orders are.
pub const ORDERS_BYTES: usize = WORD * WORDS;

/// No descriptor has this number.
const NONE: u32 = u32::MAX;

const PID_NAMESPACE: u32 = 1;
const STAYS: u32 = 2;
const FAIL_INIT: u32 = 4;
const FAIL_COMMAND: u32 = 8;
const WHEN_LET_GO: u32 = 16;

impl Orders {
    /// As they travel.
    pub fn to_text(self) -> [u8; ORDERS_BYTES] {
        let optional = |number: Option<u32>| number.unwrap_or(NONE);
        let mut flags = 0;
        if self.boundary == Boundary::PidNamespace {
            flags |= PID_NAMESPACE;
        }
        if self.background == Background::Stays {
            flags |= STAYS;
        }
        if self.going == Going::WhenLetGo {
            flags |= WHEN_LET_GO;
        }
        match self.fails {
            Fails::Command => flags |= FAIL_COMMAND,
            Fails::Init => flags |= FAIL_INIT,
            Fails::Nothing => {}
        }
        let [first, second] = self.waits;
        let words = [
            self.failure,
            self.end,
            optional(self.timeline),
            optional(first),
            optional(second),
            optional(self.terminal),
            flags,
            self.programs,
            self.arguments,
            u32::from(self.steps.init) << 8 | u32::from(self.steps.command),
        ];
        let mut text = [0; ORDERS_BYTES];
        for (word, digits) in words.iter().zip(text.chunks_exact_mut(WORD)) {
            for (shift, digit) in (0..WORD).rev().zip(digits) {
                let value = (word >> (4 * shift)).to_le_bytes()[0] & 0xf;
                *digit = match value {
                    0..=9 => b'0' + value,
                    _ => b'a' + value - 10,
                };
            }
        }
        text
    }

    /// Reads them, or `None` for anything that [`to_text`](Self::to_text) does not make.
    pub fn from_text(text: &[u8]) -> Option<Self> {
        if text.len() != ORDERS_BYTES {
            return None;
        }
        let mut words = [0_u32; WORDS];
        for (word, digits) in words.iter_mut().zip(text.chunks_exact(WORD)) {
            for digit in digits {
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return None,
                };
                *word = *word << 4 | u32::from(value);
            }
        }
        let [
            failure,
            end,
            timeline,
            first,
            second,
            terminal,
            flags,
            programs,
            arguments,
            steps,
        ] = words;
        let optional = |number: u32| (number != NONE).then_some(number);
        let known = PID_NAMESPACE | STAYS | FAIL_INIT | FAIL_COMMAND | WHEN_LET_GO;
        if flags & !known != 0 {
            return None;
        }
        let [command, init, 0, 0] = steps.to_le_bytes() else {
            return None;
        };
        Some(Self {
            failure,
            end,
            timeline: optional(timeline),
            waits: [optional(first), optional(second)],
            terminal: optional(terminal),
            boundary: if flags & PID_NAMESPACE == 0 {
                Boundary::Descent
            } else {
                Boundary::PidNamespace
            },
            background: if flags & STAYS == 0 {
                Background::Ends
            } else {
                Background::Stays
            },
            going: if flags & WHEN_LET_GO == 0 {
                Going::AtOnce
            } else {
                Going::WhenLetGo
            },
            fails: match (flags & FAIL_INIT, flags & FAIL_COMMAND) {
                (0, 0) => Fails::Nothing,
                (0, _) => Fails::Command,
                (_, 0) => Fails::Init,
                _ => return None,
            },
            programs,
            arguments,
            steps: Steps { init, command },
        })
    }
}

/// How long the message about a failure is: far below what a pipe writes in one piece.
pub const FAILURE_BYTES: usize = 12;
const FAILURE: [u8; 4] = *b"rffl";

/// Which step failed, what the kernel said, and one number of detail, as they travel.
pub const fn failure_bytes(step: u16, errno: u16, detail: u32) -> [u8; FAILURE_BYTES] {
    let [m0, m1, m2, m3] = FAILURE;
    let [s0, s1] = step.to_ne_bytes();
    let [e0, e1] = errno.to_ne_bytes();
    let [d0, d1, d2, d3] = detail.to_ne_bytes();
    [m0, m1, m2, m3, s0, s1, e0, e1, d0, d1, d2, d3]
}

/// Reads step, error and detail of a message about a failure.
pub fn read_failure(bytes: [u8; FAILURE_BYTES]) -> Option<(u16, u16, u32)> {
    let [m0, m1, m2, m3, s0, s1, e0, e1, d0, d1, d2, d3] = bytes;
    let errno = u16::from_ne_bytes([e0, e1]);
    // Error numbers of the kernel end at 4095.
    ([m0, m1, m2, m3] == FAILURE && matches!(errno, 1..=4095)).then(|| {
        let step = u16::from_ne_bytes([s0, s1]);
        (step, errno, u32::from_ne_bytes([d0, d1, d2, d3]))
    })
}

/// The detail of a failure to start the command: no program could be run.
pub const NO_PROGRAM: u32 = 1;
/// The detail of a failure to become the first process: it has to do with streams and terminals.
pub const SEAT: u32 = 1;

/// What is said about the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Word {
    /// It has exited with this status, and nothing is left of it.
    Exited(u8),
    /// This signal has killed it, and nothing is left of it.
    Killed(u8),
    /// This signal has stopped it.
    Stopped(u8),
    /// It goes on.
    Continued,
}

/// How long a word about the command is.
pub const WORD_BYTES: usize = 4;
const COMMAND: [u8; 2] = *b"rf";

impl Word {
    /// As it travels: two bytes of mark, the manner, the number.
    pub const fn to_bytes(self) -> [u8; WORD_BYTES] {
        let (manner, number) = match self {
            Self::Exited(status) => (0, status),
            Self::Killed(signal) => (1, signal),
            Self::Stopped(signal) => (2, signal),
            Self::Continued => (3, 0),
        };
        [COMMAND[0], COMMAND[1], manner, number]
    }

    /// Reads it, or `None` for anything that [`to_bytes`](Self::to_bytes) does not make.
    pub const fn from_bytes(bytes: [u8; WORD_BYTES]) -> Option<Self> {
        let [m0, m1, manner, number] = bytes;
        if m0 != COMMAND[0] || m1 != COMMAND[1] {
            return None;
        }
        match manner {
            0 => Some(Self::Exited(number)),
            1 => Some(Self::Killed(number)),
            2 => Some(Self::Stopped(number)),
            3 => Some(Self::Continued),
            _ => None,
        }
    }
}

/// How long the note about a step is.
pub const MARK_BYTES: usize = 9;

/// When a step was done, as it travels: the step, then nanoseconds on the monotonic clock.
pub const fn mark_bytes(step: u8, nanoseconds: u64) -> [u8; MARK_BYTES] {
    let [n0, n1, n2, n3, n4, n5, n6, n7] = nanoseconds.to_ne_bytes();
    [step, n0, n1, n2, n3, n4, n5, n6, n7]
}

/// Reads the note about a step.
pub const fn read_mark(bytes: [u8; MARK_BYTES]) -> (u8, u64) {
    let [step, n0, n1, n2, n3, n4, n5, n6, n7] = bytes;
    (step, u64::from_ne_bytes([n0, n1, n2, n3, n4, n5, n6, n7]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: Orders = Orders {
        failure: 5,
        end: 0x1234_abcd,
        timeline: None,
        waits: [None, Some(7)],
        terminal: Some(9),
        boundary: Boundary::PidNamespace,
        background: Background::Stays,
        going: Going::WhenLetGo,
        fails: Fails::Nothing,
        programs: 3,
        arguments: 4,
        steps: Steps {
            init: 16,
            command: 17,
        },
    };

    #[test]
    fn orders_survive_the_trip() {
        for fails in [Fails::Command, Fails::Init, Fails::Nothing] {
            for boundary in [Boundary::Descent, Boundary::PidNamespace] {
                for background in [Background::Ends, Background::Stays] {
                    for going in [Going::AtOnce, Going::WhenLetGo] {
                        let orders = Orders {
                            boundary,
                            background,
                            going,
                            fails,
                            ..ORDERS
                        };
                        assert_eq!(Orders::from_text(&orders.to_text()), Some(orders));
                    }
                }
            }
        }
    }

    #[test]
    fn anything_else_is_no_orders() {
        let good = ORDERS.to_text();
        assert_eq!(Orders::from_text(&good[1..]), None);
        assert_eq!(Orders::from_text(b""), None);
        for index in 0..ORDERS_BYTES {
            let mut bad = good;
            bad[index] = b'g';
            assert_eq!(Orders::from_text(&bad), None, "{index}");
        }
        // A flag, and a step, that nobody writes.
        for index in [6 * WORD, 9 * WORD] {
            let mut bad = good;
            bad[index] = b'1';
            assert_eq!(Orders::from_text(&bad), None, "{index}");
        }
    }

    #[test]
    fn words_about_the_command_survive_the_trip() {
        for word in [
            Word::Exited(3),
            Word::Killed(9),
            Word::Stopped(20),
            Word::Continued,
        ] {
            assert_eq!(Word::from_bytes(word.to_bytes()), Some(word));
        }
        assert_eq!(Word::from_bytes(*b"rf\x04\x00"), None);
        assert_eq!(Word::from_bytes(*b"fr\x00\x00"), None);
        assert_eq!(read_mark(mark_bytes(4, u64::MAX - 1)), (4, u64::MAX - 1));
    }
}
