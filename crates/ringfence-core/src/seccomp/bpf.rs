//! Classic BPF as seccomp takes it: the instructions we write, and a machine that runs them.
//!
//! Knows nothing of rules. The machine serves tests and explanations; it accepts exactly the
//! instructions that the compiler writes, and whatever else it meets (an unknown code, a jump past
//! the end, an odd offset) ends in [`Verdict::Kill`], never in a pass.
//!
//! The set of instructions is kept to those that the kernel's own start-up pass understands (it
//! runs every call number through a new filter and remembers those that are allowed whatever their
//! arguments, which then cost one bit test instead of a program): word loads, jumps, one `and`, and
//! constant returns.

use super::decision::{Argument, Call, Verdict};

/// One instruction, laid out as the kernel's `struct sock_filter`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// How many instructions to skip when a test holds.
    pub jt: u8,
    /// How many instructions to skip when it does not.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// The instruction codes we write.
pub(super) mod code {
    /// Load a word of the call.
    pub(in super::super) const LOAD: u16 = 0x20;
    /// Jump ahead.
    pub(in super::super) const JUMP: u16 = 0x05;
    /// Is the word equal to `k`?
    pub(in super::super) const IF_EQUAL: u16 = 0x15;
    /// Is the word, unsigned, greater than `k`?
    pub(in super::super) const IF_GREATER: u16 = 0x25;
    /// Is the word, unsigned, at least `k`?
    pub(in super::super) const IF_AT_LEAST: u16 = 0x35;
    /// Is any bit of `k` set in the word?
    pub(in super::super) const IF_ANY_BIT: u16 = 0x45;
    /// Keep only the bits of `k`.
    pub(in super::super) const AND: u16 = 0x54;
    /// End with `k`.
    pub(in super::super) const RETURN: u16 = 0x06;
}

/// Where things lie in the kernel's `struct seccomp_data`, on little-endian machines.
pub(super) mod offset {
    use super::Argument;

    /// The number of the call.
    pub(in super::super) const NUMBER: u32 = 0;
    /// The architecture token.
    pub(in super::super) const ARCH: u32 = 4;
    /// The first argument.
    pub(super) const ARGS: u32 = 16;

    /// The low word of an argument.
    pub(in super::super) const fn low(argument: Argument) -> u32 {
        ARGS + 8 * argument as u32
    }

    /// The high word of an argument.
    pub(in super::super) const fn high(argument: Argument) -> u32 {
        low(argument) + 4
    }
}

/// A finished filter.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program(Vec<Instruction>);

/// The outcome of one run of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Run {
    /// Whether it read any argument. If not, the verdict holds for all of them, and a kernel that
    /// remembers such calls will not run the program for this one again.
    pub reads_arguments: bool,
    /// How many instructions it took.
    pub steps: usize,
    /// What came out.
    pub verdict: Verdict,
}

impl Program {
    /// The most instructions the kernel takes.
    pub const LIMIT: usize = 4096;

    pub(super) fn new(instructions: Vec<Instruction>) -> Self {
        Self(instructions)
    }

    /// The instructions, ready for the kernel.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// What the kernel will do with `call`.
    pub fn run(&self, call: &Call) -> Run {
        let mut word = 0;
        let mut at = 0;
        let mut steps = 0;
        let mut reads_arguments = false;
        // Jumps only go ahead, so this ends.
        while let Some(instruction) = self.0.get(at) {
            steps += 1;
            at += 1;
            let Instruction { code, jt, jf, k } = *instruction;
            let branch = |holds: bool| usize::from(if holds { jt } else { jf });
            match code {
                code::LOAD => match load(call, k) {
                    Some(loaded) => {
                        word = loaded;
                        reads_arguments |= k >= offset::ARGS;
                    }
                    None => break,
                },
                code::AND => word &= k,
                code::JUMP => at = at.saturating_add(k as usize),
                code::IF_EQUAL => at += branch(word == k),
                code::IF_GREATER => at += branch(word > k),
                code::IF_AT_LEAST => at += branch(word >= k),
                code::IF_ANY_BIT => at += branch(word & k != 0),
                code::RETURN => {
                    let verdict = Verdict::from_return(k);
                    return Run {
                        reads_arguments,
                        steps,
                        verdict,
                    };
                }
                _ => break,
            }
        }
        Run {
            reads_arguments,
            steps,
            verdict: Verdict::Kill,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "splitting a register into its two words is the point"
)]
fn load(call: &Call, at: u32) -> Option<u32> {
    match at {
        offset::NUMBER => return Some(call.number),
        offset::ARCH => return Some(call.arch),
        _ => {}
    }
    let place = at.checked_sub(offset::ARGS)?;
    let argument = call.args.get((place / 8) as usize)?;
    match place % 8 {
        0 => Some(*argument as u32),
        4 => Some((*argument >> 32) as u32),
        _ => None,
    }
}
