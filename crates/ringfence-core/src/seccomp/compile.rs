//! Turns the rules into a program.
//!
//! The program checks the architecture, throws out every number above the table, and then searches
//! the numbers by halves. What it finds at the end of the search is a verdict or, for the few calls
//! whose arguments matter, a short walk over them.
//!
//! Speed matters twice. When a filter is loaded, the kernel walks every call number through it, so
//! the sum of all path lengths is a cost of each launch; a balanced search keeps it low. When a
//! call is made, only the calls whose arguments matter still run the program (on kernels that
//! remember the rest), so the common ones of those, and all common calls for older kernels, get
//! more weight in the balance and lie nearer to the root.
//!
//! The program is written from its end to its beginning. Jumps only go ahead, so every target is in
//! place and its distance known when the jump to it is written; a target too far for the eight
//! bits of a test gets a stand-in nearby: a copy if it is a verdict, a long jump otherwise. So no
//! input can make a jump that does not fit.

use super::bpf::{Instruction, Program, code, offset};
use super::decision::{Decision, Look, Verdict};
use super::rules;
use super::spec::FilterSpec;
use super::table::Syscall;

/// Builds the filter that holds what `spec` asks for.
pub fn compile(spec: FilterSpec) -> Program {
    let mut writer = Writer::default();
    let unknown = writer.verdict(rules::UNKNOWN.verdict);
    let ordinary = writer.verdict(rules::ORDINARY.verdict);
    let mut numbers = Numbers::new(spec, unknown, ordinary);
    for rule in rules::rules(spec) {
        let target = writer.decision(spec, rule.decision);
        for call in rule.calls {
            numbers.assign(*call, target);
        }
    }
    let spans = numbers.spans();
    let search = writer.search(&spans);
    writer.entry(spec, search, numbers.last())
}

/// Calls that programs make all the time.
const COMMON: &[Syscall] = &[
    Syscall::Access,
    Syscall::Brk,
    Syscall::ClockGettime,
    Syscall::Clone,
    Syscall::Close,
    Syscall::EpollPwait,
    Syscall::EpollWait,
    Syscall::Faccessat,
    Syscall::Fcntl,
    Syscall::Fstat,
    Syscall::Futex,
    Syscall::Getdents64,
    Syscall::Getpid,
    Syscall::Ioctl,
    Syscall::Lseek,
    Syscall::Lstat,
    Syscall::Madvise,
    Syscall::Mmap,
    Syscall::Mprotect,
    Syscall::Munmap,
    Syscall::Newfstatat,
    Syscall::Openat,
    Syscall::Poll,
    Syscall::Ppoll,
    Syscall::Pread64,
    Syscall::Pwrite64,
    Syscall::Read,
    Syscall::Readlink,
    Syscall::Recvfrom,
    Syscall::Recvmsg,
    Syscall::RtSigaction,
    Syscall::RtSigprocmask,
    Syscall::SchedYield,
    Syscall::Sendmsg,
    Syscall::Sendto,
    Syscall::Setsockopt,
    Syscall::Stat,
    Syscall::Statx,
    Syscall::Wait4,
    Syscall::Write,
    Syscall::Writev,
];

/// How many seldom used calls a common one weighs.
const COMMON_WEIGHT: u32 = 16;

/// Room for every number of the table.
const NUMBERS: usize = 512;

/// Where each call number leads.
struct Numbers {
    spec: FilterSpec,
    targets: [Label; NUMBERS],
    weights: [u32; NUMBERS],
    last: usize,
}

/// Neighbouring numbers that lead to the same place.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u32,
    length: u32,
    target: Label,
    weight: u32,
}

impl Numbers {
    fn new(spec: FilterSpec, unknown: Label, ordinary: Label) -> Self {
        let mut numbers = Self {
            spec,
            targets: [unknown; NUMBERS],
            weights: [1; NUMBERS],
            last: 0,
        };
        for call in Syscall::ALL {
            if let Some(number) = numbers.assign(*call, ordinary) {
                numbers.last = numbers.last.max(number);
            }
        }
        for call in COMMON {
            if let Some(number) = numbers.place(*call) {
                numbers.weights[number] = COMMON_WEIGHT;
            }
        }
        numbers
    }

    /// The call's place in the arrays. A number that had none would be unknown to the search, and
    /// so refused.
    fn place(&self, call: Syscall) -> Option<usize> {
        call.number(self.spec.arch)
            .map(usize::from)
            .filter(|number| *number < NUMBERS)
    }

    fn assign(&mut self, call: Syscall, target: Label) -> Option<usize> {
        let number = self.place(call)?;
        self.targets[number] = target;
        Some(number)
    }

    fn last(&self) -> u32 {
        u32::try_from(self.last).unwrap_or_default()
    }

    fn spans(&self) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::with_capacity(128);
        let known = self.targets.iter().zip(&self.weights).take(self.last + 1);
        for (number, (target, weight)) in (0..).zip(known) {
            match spans.last_mut() {
                Some(span) if span.target == *target => {
                    span.length += 1;
                    span.weight += weight;
                }
                _ => spans.push(Span {
                    first: number,
                    length: 1,
                    target: *target,
                    weight: *weight,
                }),
            }
        }
        spans
    }
}

/// An instruction that is already written, counted from the end of the program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Label(usize);

/// Writes a program from its end to its beginning.
#[derive(Default)]
struct Writer {
    reversed: Vec<Instruction>,
    /// The copy of each verdict that is nearest to the beginning.
    verdicts: Vec<(Verdict, Label)>,
}

/// How far a test can jump, less the stand-ins that may come between it and its target.
const REACH: usize = 255 - 2;

impl Writer {
    fn push(&mut self, code: u16, k: u32) -> Label {
        self.reversed.push(Instruction {
            code,
            jt: 0,
            jf: 0,
            k,
        });
        Label(self.reversed.len() - 1)
    }

    /// A place that ends with `verdict`.
    fn verdict(&mut self, verdict: Verdict) -> Label {
        if let Some((_, label)) = self.verdicts.iter().find(|(known, _)| *known == verdict) {
            return *label;
        }
        let label = self.push(code::RETURN, verdict.to_return());
        self.verdicts.push((verdict, label));
        label
    }

    /// How many instructions lie between the next one written and `label`.
    fn distance(&self, label: Label) -> usize {
        self.reversed.len().saturating_sub(label.0 + 1)
    }

    /// `label`, or a stand-in for it within reach.
    fn near(&mut self, label: Label) -> Label {
        if self.distance(label) <= REACH {
            return label;
        }
        match self.reversed.get(label.0) {
            Some(end) if end.code == code::RETURN => self.near_verdict(end.k),
            _ => {
                // The kernel takes no program in which this distance would not fit.
                let distance = u32::try_from(self.distance(label)).unwrap_or(u32::MAX);
                self.push(code::JUMP, distance)
            }
        }
    }

    /// A copy of a verdict within reach, the one that is there or a new one.
    fn near_verdict(&mut self, value: u32) -> Label {
        let is_it = |(verdict, _): &(Verdict, Label)| verdict.to_return() == value;
        let known = self.verdicts.iter().position(is_it);
        if let Some((_, copy)) = known.and_then(|at| self.verdicts.get(at).copied())
            && self.distance(copy) <= REACH
        {
            return copy;
        }
        let copy = self.push(code::RETURN, value);
        if let Some((_, nearest)) = known.and_then(|at| self.verdicts.get_mut(at)) {
            *nearest = copy;
        }
        copy
    }

    /// A test: goes to `yes` or to `no`.
    fn test(&mut self, code: u16, k: u32, yes: Label, no: Label) -> Label {
        let yes = self.near(yes);
        let no = self.near(no);
        // `near` has left room for both, so neither falls back.
        let jt = u8::try_from(self.distance(yes)).unwrap_or_default();
        let jf = u8::try_from(self.distance(no)).unwrap_or_default();
        self.reversed.push(Instruction { code, jt, jf, k });
        Label(self.reversed.len() - 1)
    }

    fn decision(&mut self, spec: FilterSpec, decision: Decision) -> Label {
        match decision {
            Decision::End(verdict, _) => self.verdict(verdict),
            Decision::Look(look) => self.look(spec, look),
        }
    }

    fn look(&mut self, spec: FilterSpec, look: &Look) -> Label {
        let otherwise = self.decision(spec, look.otherwise);
        let mut branches = Vec::with_capacity(8);
        for case in look.cases_for(spec) {
            let then = self.decision(spec, case.then);
            branches.extend(case.values.iter().map(|value| (*value, then)));
        }
        let (low_at, high_at) = (offset::low(look.argument), offset::high(look.argument));
        let (high_mask, low_mask) = words(look.mask);
        if high_mask == 0 {
            let branches: Vec<_> = branches
                .into_iter()
                .map(|(value, then)| (words(value).1, then))
                .collect();
            return self.word(low_at, low_mask, &branches, otherwise);
        }
        let mut next = otherwise;
        for (value, then) in branches.into_iter().rev() {
            let (high, low) = words(value);
            let then = self.word(low_at, low_mask, &[(low, then)], next);
            next = self.word(high_at, high_mask, &[(high, then)], next);
        }
        next
    }

    /// Loads the word at `at` and compares what `mask` leaves of it.
    fn word(&mut self, at: u32, mask: u32, branches: &[(u32, Label)], otherwise: Label) -> Label {
        match branches {
            [] => return otherwise,
            // Nothing but zero passes: one test of the bits, whatever they are.
            [(0, then)] if mask != u32::MAX => {
                self.test(code::IF_ANY_BIT, mask, otherwise, *then);
            }
            _ => {
                let mut next = otherwise;
                for (value, then) in branches.iter().rev() {
                    next = self.test(code::IF_EQUAL, *value, *then, next);
                }
                if mask != u32::MAX {
                    self.push(code::AND, mask);
                }
            }
        }
        self.push(code::LOAD, at)
    }

    /// Finds the span of the loaded number.
    fn search(&mut self, spans: &[Span]) -> Label {
        match spans {
            // There is always a span; if there were none, nothing could be allowed.
            [] => self.verdict(Verdict::Kill),
            [only] => only.target,
            // One call between neighbours that agree: a single test tells it apart.
            [before, one, after] if before.target == after.target && one.length == 1 => {
                self.test(code::IF_EQUAL, one.first, one.target, before.target)
            }
            _ => {
                let (left, right) = spans.split_at(middle(spans));
                let first = right.first().map_or(0, |span| span.first);
                let right = self.search(right);
                let left = self.search(left);
                self.test(code::IF_AT_LEAST, first, right, left)
            }
        }
    }

    /// Writes what comes before the search, and is done.
    fn entry(mut self, spec: FilterSpec, search: Label, last: u32) -> Program {
        let unknown = self.verdict(rules::UNKNOWN.verdict);
        let foreign = self.verdict(rules::FOREIGN.verdict);
        // On x86-64 this is also where x32 ends: its bit lies far above the table.
        self.test(code::IF_GREATER, last, unknown, search);
        let native = self.push(code::LOAD, offset::NUMBER);
        self.test(code::IF_EQUAL, spec.arch.token(), native, foreign);
        self.push(code::LOAD, offset::ARCH);
        self.reversed.reverse();
        Program::new(self.reversed)
    }
}

/// Where to cut `spans` so that both sides weigh about the same; each side gets at least one.
fn middle(spans: &[Span]) -> usize {
    let total: u32 = spans.iter().map(|span| span.weight).sum();
    let mut before = 0;
    let mut best = (u32::MAX, 1);
    for (cut, span) in (1..spans.len()).zip(spans) {
        before += span.weight;
        best = best.min((before.abs_diff(total - before), cut));
    }
    best.1
}

/// The high and the low word.
#[expect(
    clippy::cast_possible_truncation,
    reason = "splitting into words is the point"
)]
const fn words(value: u64) -> (u32, u32) {
    ((value >> 32) as u32, value as u32)
}

#[cfg(test)]
mod tests {
    use super::super::bpf::offset;
    use super::super::decision::{Argument, Call, Errno};
    use super::super::spec::Arch;
    use super::*;

    /// No filter of today is long enough to need a stand-in, so here is one that is: every number
    /// has a look of its own, far away from the tests that lead to it.
    #[test]
    fn targets_out_of_reach_get_stand_ins() {
        const CALLS: u32 = 700;
        let spec = FilterSpec::strictest(Arch::X86_64);
        let mut writer = Writer::default();
        let refused = writer.verdict(Verdict::Refuse(Errno::Eperm));
        let allowed = writer.verdict(Verdict::Allow);
        let spans: Vec<Span> = (0..CALLS)
            .map(|number| {
                let at = offset::low(Argument::First);
                let target = writer.word(at, u32::MAX, &[(number, allowed)], refused);
                Span {
                    first: number,
                    length: 1,
                    target,
                    weight: 1,
                }
            })
            .collect();
        let search = writer.search(&spans);
        let program = writer.entry(spec, search, CALLS - 1);

        let jumps = |instruction: &&Instruction| instruction.code == code::JUMP;
        assert!(program.instructions().iter().filter(jumps).count() > 0);
        for number in 0..CALLS {
            for (first, expected) in [(number, "allow"), (number ^ 1, "EPERM")] {
                let args = [u64::from(first), 0, 0, 0, 0, 0];
                let arch = spec.arch.token();
                let run = program.run(&Call { arch, args, number });
                assert_eq!(run.verdict.name(), expected, "{number}");
            }
        }
        let beyond = Call {
            arch: spec.arch.token(),
            args: [0; 6],
            number: CALLS,
        };
        assert_eq!(program.run(&beyond).verdict.name(), "ENOSYS");
    }
}
