//! Carries bytes both ways between two connections until both have ended.
//!
//! What a client says first may have to agree with what it asked for, so its direction can begin
//! with a look: nothing goes on that was not looked at, and the look ends when nothing that follows
//! could matter. The other direction never waits for that, since with some protocols the server
//! speaks first; it is only listened to. Where the kernel can, large transfers go through a pipe in
//! it and are never copied into this process.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::bulk::Pipe;
use crate::event::Entry;
use crate::stream::{Stream, timespec};

/// How much is copied at once.
const PIECE: usize = 32 << 10;
/// After so many bytes a direction goes through a pipe: most never need one.
const BULK: u64 = 128 << 10;
/// How long one direction may go on alone without a byte.
const HALF_OPEN: Duration = Duration::from_mins(5);
/// How long a client may take to say its first words where they are looked at.
const FIRST_WORDS: Duration = Duration::from_mins(1);

/// A client that waits for its server's words may say so much meanwhile.
const MOST_HELD: usize = 64 << 10;

/// A look at what a client says first.
pub(crate) trait Inspect {
    /// Looks at what the client has said and what has not gone on yet.
    fn client(&mut self, said: &[u8]) -> Look;

    /// Listens to the server.
    ///
    /// # Errors
    ///
    /// Why the connection must end; what was said is not passed on.
    fn server(&mut self, said: &[u8]) -> Result<(), String>;
}

/// What came of a look.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Look {
    /// More has to be said.
    More,
    /// So many bytes may go on; what follows is looked at.
    Part(usize),
    /// It may go on, and whatever follows.
    Pass,
    /// It may not.
    Refuse(String),
}

/// How a relay ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Both sides had enough, or one broke off.
    Over,
    /// What the client said did not agree.
    Refused(String),
}

/// One direction.
struct Way<'a> {
    bytes: &'a AtomicU64,
    /// Read and not yet written.
    held: Vec<u8>,
    /// Read, and not to be written before it was looked at.
    unseen: Vec<u8>,
    pipe: Option<Pipe>,
    /// What is read has to be looked at.
    inspected: bool,
    ended: bool,
    shut: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Moved {
    Some,
    Nothing,
}

/// Whether a connection has something to be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Ready {
    Yes,
    No,
}

impl Ready {
    fn of(news: PollFlags) -> Self {
        if news.is_empty() { Self::No } else { Self::Yes }
    }
}

impl<'a> Way<'a> {
    fn new(bytes: &'a AtomicU64, said: Vec<u8>, inspected: bool) -> Self {
        let (held, unseen) = if inspected {
            (Vec::new(), said)
        } else {
            (said, Vec::new())
        };
        Self {
            bytes,
            held,
            unseen,
            pipe: None,
            inspected,
            ended: false,
            shut: false,
        }
    }

    /// Lets bytes go on that were looked at.
    fn free(&mut self, count: usize) {
        let seen = self.unseen.drain(..count.min(self.unseen.len()));
        self.held.extend(seen);
    }

    /// Lets everything go on, also what is still to come.
    fn free_all(&mut self) {
        self.free(usize::MAX);
        self.inspected = false;
    }

    /// Reads what has to be looked at, unless there is enough of it.
    fn take_in(&mut self, from: &mut Stream, piece: &mut [u8], ready: Ready) -> io::Result<Moved> {
        if ready == Ready::No || self.holds() || self.ended || self.unseen.len() > MOST_HELD {
            return Ok(Moved::Nothing);
        }
        self.pull(from, piece)
    }

    fn holds(&self) -> bool {
        !self.held.is_empty() || self.pipe.as_ref().is_some_and(Pipe::holds)
    }

    /// Moves what can be moved without waiting. Reads only if something is known to be there.
    fn move_on(
        &mut self,
        from: &mut Stream,
        to: &mut Stream,
        piece: &mut [u8],
        ready: Ready,
    ) -> io::Result<Moved> {
        let mut moved = Moved::Nothing;
        if self.holds() {
            moved = self.push(to)?;
        }
        if !self.holds() && !self.ended && ready == Ready::Yes {
            moved = self.pull(from, piece)?;
            if self.holds() {
                // It may fit at once, and mostly does.
                self.push(to)?;
            }
        }
        if self.ended && !self.shut && !self.holds() && self.unseen.is_empty() {
            self.shut = true;
            let _ = to.socket.shutdown(Shutdown::Write);
            moved = Moved::Some;
        }
        Ok(moved)
    }

    fn pull(&mut self, from: &mut Stream, piece: &mut [u8]) -> io::Result<Moved> {
        let bulk = self.bytes.load(Ordering::Relaxed) > BULK;
        if self.pipe.is_none() && !self.inspected && bulk {
            self.pipe = Pipe::open();
        }
        let count = if let Some(pipe) = &mut self.pipe {
            pipe.pull(&from.socket)
        } else {
            let count = from.socket.read(piece);
            let read = piece.get(..*count.as_ref().unwrap_or(&0));
            let into = if self.inspected {
                &mut self.unseen
            } else {
                &mut self.held
            };
            into.extend_from_slice(read.unwrap_or_default());
            count
        };
        match count {
            Ok(0) => {
                self.ended = true;
                Ok(Moved::Some)
            }
            Ok(count) => {
                let count = u64::try_from(count).unwrap_or(0);
                self.bytes.fetch_add(count, Ordering::Relaxed);
                Ok(Moved::Some)
            }
            Err(error) => nothing(error),
        }
    }

    fn push(&mut self, to: &mut Stream) -> io::Result<Moved> {
        let count = match &mut self.pipe {
            Some(pipe) if pipe.holds() => pipe.push(&to.socket),
            _ => {
                let count = to.socket.write(&self.held);
                if let Ok(count) = count {
                    self.held.drain(..count.min(self.held.len()));
                }
                count
            }
        };
        match count {
            Ok(0) => Err(ErrorKind::WriteZero.into()),
            Ok(_) => Ok(Moved::Some),
            Err(error) => nothing(error),
        }
    }

    /// What has to happen before it can move again: at its beginning, and at its end.
    fn waits_for(&self) -> (PollFlags, PollFlags) {
        if self.holds() {
            (PollFlags::empty(), PollFlags::OUT)
        } else if self.ended || self.unseen.len() > MOST_HELD {
            (PollFlags::empty(), PollFlags::empty())
        } else {
            (PollFlags::IN, PollFlags::empty())
        }
    }
}

fn nothing(error: io::Error) -> io::Result<Moved> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(Moved::Nothing),
        _ => Err(error),
    }
}

/// Carries bytes until both sides have ended; what both have in their buffers goes first.
pub(crate) fn relay(
    client: &mut Stream,
    server: &mut Stream,
    entry: &Entry,
    mut inspect: Option<&mut dyn Inspect>,
) -> io::Result<Ended> {
    let first = std::mem::take(&mut client.buffer);
    entry
        .sent
        .fetch_add(first.len().try_into().unwrap_or(0), Ordering::Relaxed);
    let answered = std::mem::take(&mut server.buffer);
    let mut there = Way::new(&entry.sent, first, inspect.is_some());
    let mut back = Way::new(&entry.received, answered, inspect.is_some());
    let mut piece = vec![0; PIECE];
    let mut last = Instant::now();
    // What a client has said before it was asked for may be there already.
    let (mut client_ready, mut server_ready) = (Ready::Yes, Ready::No);
    let mut words = Words::First;
    loop {
        if let Some(inspector) = &mut inspect {
            // Nothing of the client's goes on before it was looked at.
            let taken = [
                there.take_in(client, &mut piece, client_ready)?,
                back.take_in(server, &mut piece, server_ready)?,
            ];
            (client_ready, server_ready) = (Ready::No, Ready::No);
            if taken.contains(&Moved::Some) {
                last = Instant::now();
            }
            words = match look(*inspector, &mut there, &mut back, words) {
                Err(why) => return Ok(Ended::Refused(why)),
                Ok(Words::First | Words::Begun) if last.elapsed() > FIRST_WORDS => {
                    return Ok(Ended::Refused("its first words took too long".to_owned()));
                }
                Ok(words) => words,
            };
            if !there.inspected {
                inspect = None;
            }
        }
        let moved = [
            there.move_on(client, server, &mut piece, client_ready)?,
            back.move_on(server, client, &mut piece, server_ready)?,
        ];
        if there.shut && back.shut {
            return Ok(Ended::Over);
        }
        if moved.contains(&Moved::Some) {
            last = Instant::now();
        }
        let patience = match words {
            Words::First | Words::Begun => Some(FIRST_WORDS),
            Words::Whole if there.ended || back.ended => Some(HALF_OPEN),
            Words::Whole => None,
        };
        match wait(client, server, &there, &back, patience)? {
            None if words == Words::Whole => return Ok(Ended::Over),
            None => (client_ready, server_ready) = (Ready::No, Ready::No),
            Some(news) => (client_ready, server_ready) = news,
        }
    }
}

/// How far a client is whose words are looked at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Words {
    /// Nothing of its has gone on yet.
    First,
    /// Something has, and something is held.
    Begun,
    /// Nothing is held.
    Whole,
}

/// Looks at what both sides have said, and lets go on what may.
fn look(
    inspector: &mut dyn Inspect,
    there: &mut Way<'_>,
    back: &mut Way<'_>,
    mut words: Words,
) -> Result<Words, String> {
    if !back.unseen.is_empty() {
        inspector.server(&back.unseen)?;
        back.free(usize::MAX);
    }
    let seen = loop {
        match inspector.client(&there.unseen) {
            Look::Part(count @ 1..) => {
                there.free(count);
                words = Words::Begun;
            }
            seen => break seen,
        }
    };
    match seen {
        Look::Pass => {
            there.free_all();
            back.free_all();
            Ok(Words::Whole)
        }
        Look::Refuse(why) => Err(why),
        // A client that ends without a word has said nothing wrong.
        _ if there.unseen.is_empty() && (there.ended || words != Words::First) => Ok(Words::Whole),
        Look::More if there.ended => Err("it ended before its first words did".to_owned()),
        _ if words == Words::First => Ok(Words::First),
        _ => Ok(Words::Begun),
    }
}

/// Sleeps until something can move, and says what can be read; `None` if nothing came in time.
fn wait(
    client: &Stream,
    server: &Stream,
    there: &Way<'_>,
    back: &Way<'_>,
    patience: Option<Duration>,
) -> io::Result<Option<(Ready, Ready)>> {
    let (read_client, write_server) = there.waits_for();
    let (read_server, write_client) = back.waits_for();
    let mut watched = [
        PollFd::new(&client.socket, read_client | write_client),
        PollFd::new(&server.socket, read_server | write_server),
        PollFd::new(&*client.stop, PollFlags::IN),
    ];
    let timeout = patience.map(timespec);
    match poll(&mut watched, timeout.as_ref()) {
        Ok(0) => return Ok(None),
        Ok(_) => {}
        Err(Errno::INTR) => return Ok(Some((Ready::No, Ready::No))),
        Err(errno) => return Err(errno.into()),
    }
    let [client_news, server_news, stop] = watched.map(|watched| watched.revents());
    if !stop.is_empty() {
        return Err(ErrorKind::Interrupted.into());
    }
    // A side that is gone for good and that nobody reads from would be reported for ever.
    let gone = PollFlags::ERR | PollFlags::HUP;
    let unread =
        |news: PollFlags, asked: PollFlags| news.intersects(gone) && !news.intersects(asked);
    if unread(client_news, read_client | write_client)
        || unread(server_news, read_server | write_server)
    {
        return Err(ErrorKind::ConnectionAborted.into());
    }
    Ok(Some((Ready::of(client_news), Ready::of(server_news))))
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;
