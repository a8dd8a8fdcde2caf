//! Ending every process of a session where nothing of the kernel's holds them together.
//!
//! Owns the loop, and nothing of any operating system: processes are listed, recognised and ended
//! through [`ProcessTable`]. Killing is repeated until a whole pass finds nobody, because a process
//! can start another one between being found and being ended.
//!
//! Why it is right: whatever a process does with groups, sessions and parents, it keeps what it is
//! recognised by, and so does everything it starts; nobody else ever gets it. So once a process was
//! looked at and was not of the session, it never will be. A pass is conclusive if everybody it
//! listed was looked at *and was still there*: then nobody of the session was alive when the list
//! was made, and the dead start nothing. A process that is listed and gone when it is asked about
//! makes a pass inconclusive, even if nobody was found: it may have been of the session, and have
//! started another one that no list has seen yet.
//!
//! Why it ends: a killed process starts nothing, and whoever was cleared is not asked about again, so
//! that the coming and going of others makes a pass inconclusive only by newcomers that are gone at
//! once. What is dead but not yet collected is not counted, or the loop would wait for somebody
//! else's parent.

use std::collections::HashSet;
use std::fmt;

/// A process, told from any other that has or had the same number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it was born, in whatever the machine counts.
    pub born: u64,
}

/// A process as a table lists it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Listed {
    /// Who it is.
    pub process: Identity,
    /// Whether it can still run code.
    pub life: Life,
}

/// Whether a process can still run code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Life {
    /// It can.
    Running,
    /// It is dead, and waits for its parent to notice.
    Zombie,
}

/// What is known of a process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It is there, and not of the session.
    Elsewhere,
    /// It is not there any more, or its number is another's now.
    Gone,
    /// It is of the session.
    Here,
}

/// What a machine can say about processes, and do to them.
pub trait ProcessTable {
    /// Why a list could not be had.
    type Error;

    /// Ends the process group that the session began with, if it has one of its own. Best effort:
    /// it may be gone.
    fn end_group(&mut self);

    /// Every process of the user's, as it is now.
    ///
    /// # Errors
    ///
    /// If the machine does not say. Then nothing is known, and the loop must not end as if nobody
    /// were there.
    fn list(&mut self) -> Result<Vec<Listed>, Self::Error>;

    /// Whether a process is of the session. The answer must be about this very process: whoever
    /// implements this looks at the process first and makes sure of its identity afterwards.
    fn recognise(&mut self, process: Identity) -> Standing;

    /// Ends a process at once. It may be gone.
    fn end(&mut self, process: Identity);

    /// Lets time pass between passes that found somebody.
    fn pause(&mut self, passes: u32);
}

/// What a clean-up did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ended {
    /// How many times the whole table was looked through.
    pub passes: u32,
    /// How many times a process was ended.
    pub ended: u64,
}

/// Why a clean-up gave up.
#[derive(Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CleanupError<E> {
    /// The machine did not list its processes.
    List(E),
    /// None of very many passes was conclusive: what is killed does not die.
    Unkillable {
        /// How many were found in the last pass.
        left: usize,
    },
}

impl<E: fmt::Display> fmt::Display for CleanupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(error) => write!(f, "processes could not be listed: {error}"),
            Self::Unkillable { left } => {
                write!(f, "{left} processes of the session do not die")
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for CleanupError<E> {}

/// A process that forks as fast as it can still loses: each pass ends whoever it sees. This many
/// passes without a conclusion mean that something else is wrong.
const MOST_PASSES: u32 = 100_000;

/// Ends every process of the session.
///
/// # Errors
///
/// See [`CleanupError`]; then some may be left.
pub fn end_session<T: ProcessTable>(table: &mut T) -> Result<Ended, CleanupError<T::Error>> {
    table.end_group();
    let mut done = Ended::default();
    let mut cleared = HashSet::new();
    loop {
        let pass = pass(table, &mut cleared, Then::End)?;
        done.passes = done.passes.saturating_add(1);
        done.ended = done
            .ended
            .saturating_add(pass.found.try_into().unwrap_or(u64::MAX));
        if pass.found == 0 && pass.vanished == 0 {
            return Ok(done);
        }
        if done.passes >= MOST_PASSES {
            return Err(CleanupError::Unkillable { left: pass.found });
        }
        table.pause(done.passes);
    }
}

/// Who is of the session at the moment, for people to look at: some may have come or gone since.
///
/// # Errors
///
/// The machine's answer, if it lists nobody.
pub fn members<T: ProcessTable>(table: &mut T) -> Result<Vec<Identity>, T::Error> {
    let mut members = Vec::new();
    for listed in table.list()? {
        if listed.life == Life::Running && table.recognise(listed.process) == Standing::Here {
            members.push(listed.process);
        }
    }
    Ok(members)
}

/// Whether anybody of the session is left. Nobody is ended, and no answer is a guess: where somebody
/// went while everybody was asked about, it is asked once more.
///
/// # Errors
///
/// [`CleanupError::List`] if the machine does not say; [`CleanupError::Unkillable`] if no pass of very
/// many was conclusive.
pub fn anybody_left<T: ProcessTable>(table: &mut T) -> Result<bool, CleanupError<T::Error>> {
    let mut cleared = HashSet::new();
    for passes in 1..=MOST_PASSES {
        match pass(table, &mut cleared, Then::Nothing)? {
            Pass { found: 1.., .. } => return Ok(true),
            Pass { vanished: 0, .. } => return Ok(false),
            Pass { .. } => table.pause(passes),
        }
    }
    Err(CleanupError::Unkillable { left: 0 })
}

/// What is done about a process of the session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Then {
    End,
    Nothing,
}

/// What one pass came upon.
struct Pass {
    found: usize,
    vanished: usize,
}

/// Looks through the whole table once.
fn pass<T: ProcessTable>(
    table: &mut T,
    cleared: &mut HashSet<Identity>,
    then: Then,
) -> Result<Pass, CleanupError<T::Error>> {
    let mut pass = Pass {
        found: 0,
        vanished: 0,
    };
    for listed in table.list().map_err(CleanupError::List)? {
        // The dead cannot start anything, and no signal takes them away.
        if listed.life == Life::Zombie || cleared.contains(&listed.process) {
            continue;
        }
        match table.recognise(listed.process) {
            Standing::Elsewhere => {
                cleared.insert(listed.process);
            }
            Standing::Gone => pass.vanished += 1,
            Standing::Here => {
                pass.found += 1;
                if then == Then::End {
                    table.end(listed.process);
                }
            }
        }
    }
    Ok(pass)
}

#[cfg(test)]
#[path = "cleanup_tests.rs"]
mod tests;
