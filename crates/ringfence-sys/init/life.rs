//! The life of the first process of a session.
//!
//! It starts the command and stays: it reaps what is orphaned, passes signals on, and says how
//! the command ended. In a pid namespace the kernel ends everything else when it goes, for any
//! reason. Without one it is the parent of every orphan, and ends them itself, pass by pass, until
//! none is left.

use super::calls::{self, Child, Errno, Patience, Status, Turn, Watched};
use super::wire::{self, Background, Boundary, Fails, Going, Orders, Word};

/// What this process was started with.
pub(crate) struct Life {
    pub(crate) orders: Orders,
    /// Names of the program to run, as many as the orders say.
    pub(crate) programs: *const *const u8,
    /// Ends in a null pointer.
    pub(crate) arguments: *const *const u8,
    /// Ends in a null pointer.
    pub(crate) environment: *const *const u8,
}

/// How long a supervisor may take to go, in milliseconds, without being looked after.
const MOMENT: u32 = 50;

/// How many of a kind are attended to, ends and signals say, before anything else is looked at. Processes that
/// do nothing but fork and end can leave more than anybody reaps, for ever.
const AT_ONCE: u32 = 64;

/// The status of a first process that could not do its work; a pipe says why.
pub(crate) const FAILED: u8 = 125;

impl Life {
    /// All of it; the result is the exit status. `forget` overwrites what this process was
    /// started with.
    pub(crate) fn live(&self, forget: impl FnOnce()) -> u8 {
        let orders = &self.orders;
        let signals = match ready(orders) {
            Ok(signals) => signals,
            Err((detail, errno)) => return self.fail(orders.steps.init, detail, errno),
        };
        self.mark(orders.steps.init);
        let command = match calls::spawn(self, become_command) {
            Ok(command) => command,
            Err(errno) => return self.fail(orders.steps.command, 0, errno),
        };
        // It is the command's now, and nobody else's business.
        forget();
        // The command runs, or has said why not: in both cases these pipes have done their work.
        // The supervisor reads the second to its end before it answers anything that the command
        // asks.
        calls::close(orders.failure);
        if let Some(timeline) = orders.timeline {
            calls::close(timeline);
        }
        let ended = watch(Some(command), signals, orders);
        if let (Background::Stays, Some(ended)) = (orders.background, ended) {
            // Whoever reads the command's streams must not wait for this process.
            calls::close_streams();
            say(orders, ended);
            // Until nobody is left, or nobody wants them any more.
            watch(None, signals, orders);
        }
        match orders.boundary {
            Boundary::Descent => end_descendants(),
            Boundary::PidNamespace => end_everyone_else(),
        }
        if let (Background::Ends, Some(ended)) = (orders.background, ended) {
            // As above.
            calls::close_streams();
            say(orders, ended);
            if orders.going == Going::WhenLetGo {
                stay_until_let_go(orders, signals);
            }
        }
        0
    }

    fn mark(&self, step: u8) {
        if let Some(timeline) = self.orders.timeline {
            calls::say(timeline, &wire::mark_bytes(step, calls::now()));
        }
    }

    fn fail(&self, step: u8, detail: u32, errno: Errno) -> u8 {
        let errno = u16::try_from(errno).unwrap_or(1);
        let message = wire::failure_bytes(u16::from(step), errno, detail);
        calls::say(self.orders.failure, &message);
        FAILED
    }
}

fn say(orders: &Orders, word: Word) {
    calls::say(orders.end, &word.to_bytes());
}

/// Stays until the supervisor has gone, or ends this process: only the supervisor is waited for. See
/// [`Going`].
fn stay_until_let_go(orders: &Orders, signals: u32) {
    // A supervisor that closes the pipe is about to go. Woken by that, this process would take the
    // processor from it; its end is heard of by a signal.
    calls::rest(signals, MOMENT);
    let mut watched = [Watched::closing(orders.end)];
    while calls::poll(&mut watched).is_ok() && !watched[0].is_broken() {}
}

/// Gets ready to start the command; the result is where signals arrive. All of them are blocked
/// already: the launcher saw to it before this process was born.
fn ready(orders: &Orders) -> Result<u32, (u32, Errno)> {
    let whole = |errno| (0, errno);
    calls::hide_memory().map_err(whole)?;
    calls::set_name(wire::NAME).map_err(whole)?;
    let signals = calls::all_signals().map_err(whole)?;
    for from in orders.waits.into_iter().flatten() {
        // Somebody outside must have done something first.
        let mut go = [0; 1];
        match calls::read(from, &mut go) {
            Ok(1) => calls::close(from),
            Ok(_) => return Err((wire::SEAT, calls::EPIPE)),
            Err(errno) => return Err((wire::SEAT, errno)),
        }
    }
    if orders.fails == Fails::Init {
        return Err((0, calls::EIO));
    }
    Ok(signals)
}

/// Becomes the command, or says why not.
extern "C" fn become_command(life: &Life) -> u8 {
    let orders = &life.orders;
    let step = orders.steps.command;
    if orders.fails == Fails::Command {
        return life.fail(step, 0, calls::EIO);
    }
    let clean = match orders.terminal {
        Some(terminal) => calls::take_foreground(terminal),
        None => Ok(()),
    };
    let clean = clean
        .and_then(|()| close_others_at_exec(orders))
        .and_then(|()| calls::set_mask(0));
    if let Err(errno) = clean {
        return life.fail(step, 0, errno);
    }
    // As a shell does: a name that is nowhere is "not found"; one that is somewhere and cannot be
    // run is that, even if later directories have nothing.
    let mut answer = calls::ENOENT;
    for index in 0..orders.programs as usize {
        // SAFETY: whoever made this value vouches for that many names.
        let program = unsafe { life.programs.add(index) };
        // SAFETY: as above.
        let program = unsafe { *program };
        // SAFETY: the kernel laid these strings and both arrays out at our own start, each string
        // with its NUL and each array with its null pointer.
        let errno = unsafe { calls::execve(program, life.arguments, life.environment) };
        match errno {
            calls::ENOENT | calls::ENOTDIR => {}
            calls::EACCES => answer = errno,
            other => {
                answer = other;
                break;
            }
        }
    }
    life.fail(step, wire::NO_PROGRAM, answer)
}

/// Has everything closed that is not for the command.
fn close_others_at_exec(orders: &Orders) -> Result<(), Errno> {
    match calls::close_others_at_exec() {
        // The launcher has closed everything but what the orders name.
        Err(calls::EINVAL) => [
            Some(orders.failure),
            Some(orders.end),
            orders.timeline,
            orders.terminal,
        ]
        .into_iter()
        .flatten()
        .try_for_each(calls::close_at_exec),
        other => other,
    }
}

/// Reaps and passes signals on until the command ends, or the supervisor does: then `None`.
///
/// Without a command it is for those that linger: until none of them is left. Signals are not for
/// them.
fn watch(command: Option<Child>, signals: u32, orders: &Orders) -> Option<Word> {
    // Whoever lingered may have gone before, or with the command: of those no signal would tell any more.
    let mut busy = command.is_none();
    loop {
        let mut watched = [
            Watched::closing(orders.end),
            Watched::readable(signals),
            Watched::readable(command.map_or(signals, |command| command.pidfd)),
        ];
        let polled = if busy {
            // Of what was left for now, no further signal may tell.
            calls::poll_at_once(&mut watched)
        } else {
            calls::poll(&mut watched)
        };
        match polled {
            Ok(()) => {}
            Err(calls::EINTR) => continue,
            // Somebody has taken what this process works with. It cannot look after the session any more,
            // and asking again would only take a processor.
            Err(_) => return None,
        }
        // The rest of these stays readable.
        for arrived in (0..AT_ONCE).map_while(|_| calls::next_signal(signals)) {
            // A terminal's keys reach the command by themselves: it is in the foreground.
            let Some(command) = command else { continue };
            if orders.terminal.is_some() && arrived.signal == calls::SIGCONT {
                // The whole group was stopped with it.
                calls::continue_group(command.pid);
            } else if arrived.by_process && arrived.signal != calls::SIGCHLD {
                // An orphan's end is for us; everything else is for the command.
                calls::signal_child(command.pidfd, arrived.signal);
            }
        }
        busy = match reap(command) {
            Reaped::Command(ended) => return Some(ended),
            Reaped::Everyone if command.is_none() => return None,
            Reaped::Everyone | Reaped::Some => false,
            Reaped::Many => true,
        };
        if let Some(command) = command {
            busy |= tell_turns(command, orders);
        }
        if watched[0].is_broken() {
            return None;
        }
    }
}

/// Says how often the command was stopped and continued; whether it may have been once more.
fn tell_turns(command: Child, orders: &Orders) -> bool {
    for _ in 0..AT_ONCE {
        let word = match calls::turn(command.pidfd) {
            None => return false,
            Some(Turn::Continued) => Word::Continued,
            Some(Turn::Stopped(signal)) => Word::Stopped(low(signal)),
        };
        say(orders, word);
    }
    true
}

/// Who was found to have ended.
enum Reaped {
    /// The command, so.
    Command(Word),
    /// No child is left.
    Everyone,
    /// As many as are reaped at once; there may be more.
    Many,
    /// Nobody, or somebody else.
    Some,
}

/// Reaps what has ended, up to the command: with that the session ends, whoever else does.
fn reap(command: Option<Child>) -> Reaped {
    for _ in 0..AT_ONCE {
        match calls::reap(Patience::None) {
            Ok(Some((pid, status))) => {
                if command.is_some_and(|command| command.pid == pid) {
                    return Reaped::Command(ended(status));
                }
            }
            Ok(None) => return Reaped::Some,
            Err(_) => return Reaped::Everyone,
        }
    }
    Reaped::Many
}

/// Ends everything else in the pid namespace, so that whoever hears of the command's end knows
/// that nothing of it is left. The kernel would do the same when this process goes.
fn end_everyone_else() {
    // Everybody in here is a child of this process, or below one.
    if let Err(calls::ECHILD) = calls::reap(Patience::None) {
        return;
    }
    // A process that is being killed cannot fork, so a second pass is rare.
    loop {
        calls::kill_everyone_else();
        loop {
            match calls::reap(Patience::UntilOneEnds) {
                Ok(_) => {}
                Err(calls::EINTR) => break,
                Err(_) => return,
            }
        }
    }
}

/// Ends every descendant, however it tried to get away.
///
/// Whoever loses its parent becomes a child of this process, and a child cannot be mistaken for
/// another process before it is reaped here. So each pass ends all children there are, and when
/// none is left there is no descendant left either.
fn end_descendants() {
    // Nearly every command leaves nobody, and then there is no list to read.
    if let Err(calls::ECHILD) = calls::reap(Patience::None) {
        return;
    }
    loop {
        let listed = end_children();
        // Sleeps until one has ended: either one that was killed above, or a newborn's parent.
        if let Err(calls::ECHILD) = calls::reap(Patience::UntilOneEnds) {
            return;
        }
        // Those that have ended meanwhile need no pass of their own. As many as were listed, or the list
        // would grow with them.
        for _ in 0..listed {
            if !matches!(calls::reap(Patience::None), Ok(Some(_))) {
                break;
            }
        }
    }
}

/// Ends all children there are; how many.
fn end_children() -> usize {
    let Ok(file) = calls::open_children() else {
        return 0;
    };
    let mut listed = 0;
    let read = |buffer: &mut [u8]| calls::read(file, buffer).unwrap_or_default();
    each_number(read, |pid| {
        listed += 1;
        calls::end_child(pid);
    });
    calls::close(file);
    listed
}

/// Goes through a list of decimal numbers with a space behind each, to its end.
fn each_number(mut read: impl FnMut(&mut [u8]) -> usize, mut each: impl FnMut(i32)) {
    let mut buffer = [0; 4096];
    // As far as it was read: what is read at once may end within it. None of what is no number.
    let mut number = Some(0_i32);
    loop {
        let count = read(&mut buffer);
        let Some(text @ [_, ..]) = buffer.get(..count) else {
            return;
        };
        for byte in text {
            let digit = byte.wrapping_sub(b'0');
            if digit < 10 {
                number =
                    number.and_then(|number| number.checked_mul(10)?.checked_add(i32::from(digit)));
                continue;
            }
            if let (b' ', Some(number)) = (byte, number) {
                each(number);
            }
            number = (*byte == b' ').then_some(0);
        }
    }
}

/// Splits the packed word of `wait4`: without `WUNTRACED` it tells only of ends.
pub(crate) fn ended(Status(status): Status) -> Word {
    match status & 0x7f {
        0 => Word::Exited(status.to_le_bytes()[1]),
        signal => Word::Killed(low(signal)),
    }
}

/// Signals are numbered to 64.
fn low(signal: i32) -> u8 {
    signal.to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(list: &str, at_once: usize) -> Vec<i32> {
        let mut left = list.as_bytes();
        let read = |buffer: &mut [u8]| {
            let count = left.len().min(buffer.len()).min(at_once);
            let (now, later) = left.split_at(count);
            buffer[..count].copy_from_slice(now);
            left = later;
            count
        };
        let mut found = Vec::new();
        each_number(read, |number| found.push(number));
        found
    }

    #[test]
    fn children_are_numbers_with_a_space_behind_each() {
        assert_eq!(numbers("12 345 ", 100), [12, 345]);
        for cut_short_or_wrong in ["", "12", "99999999999 ", "1x ", "-1 ", "x1 "] {
            assert_eq!(numbers(cut_short_or_wrong, 100), [0; 0]);
        }
        assert_eq!(numbers("1x 99999999999 7 ", 100), [7]);
    }

    /// It is longer than what is read of it at once, and numbers lie across the edges.
    #[test]
    fn a_long_list_is_read_to_its_end() {
        let list: Vec<String> = (1..3000).map(|number| number.to_string()).collect();
        let list = list.join(" ") + " ";
        for at_once in [1, 7, 1000, 4096, usize::MAX] {
            let found = numbers(&list, at_once);
            assert!(found.iter().copied().eq(1..3000), "{at_once}: {found:?}");
        }
    }

    #[test]
    fn an_end_is_told_from_the_kernels_word() {
        assert_eq!(ended(Status(0)), Word::Exited(0));
        assert_eq!(ended(Status(7 << 8)), Word::Exited(7));
        assert_eq!(ended(Status(9)), Word::Killed(9));
        // The bit for a dump is no part of the signal.
        assert_eq!(ended(Status(0x8b)), Word::Killed(0xb));
    }
}
