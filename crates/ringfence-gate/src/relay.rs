//! Carries bytes both ways between two connections until both have ended.
//!
//! What a client says first may have to agree with what it asked for, so its direction can begin
//! with a look at its first bytes; the other direction never waits for that, since with some
//! protocols the server speaks first. Where the kernel can, large transfers go through a pipe in it
//! and are never copied into this process.

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

/// A look at what a client says first.
pub(crate) trait Inspect {
    /// Looks at everything said so far.
    fn look(&mut self, said: &[u8]) -> Look;
}

/// What came of a look.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Look {
    /// It may go on.
    Pass,
    /// It may not.
    Refuse(String),
    /// More has to be said.
    More,
}

/// How a relay ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Both sides had enough, or one broke off.
    Over,
    /// What the client said first did not agree.
    Refused(String),
}

/// One direction.
struct Way<'a> {
    bytes: &'a AtomicU64,
    /// Read and not yet written.
    held: Vec<u8>,
    pipe: Option<Pipe>,
    /// What is held has to be looked at before it goes on.
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
    fn new(bytes: &'a AtomicU64, held: Vec<u8>) -> Self {
        Self {
            bytes,
            held,
            pipe: None,
            inspected: false,
            ended: false,
            shut: false,
        }
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
        if self.ended && !self.shut && !self.holds() {
            self.shut = true;
            let _ = to.socket.shutdown(Shutdown::Write);
            moved = Moved::Some;
        }
        Ok(moved)
    }

    fn pull(&mut self, from: &mut Stream, piece: &mut [u8]) -> io::Result<Moved> {
        if self.pipe.is_none() && self.bytes.load(Ordering::Relaxed) > BULK {
            self.pipe = Pipe::open();
        }
        let count = if let Some(pipe) = &mut self.pipe {
            pipe.pull(&from.socket)
        } else {
            let count = from.socket.read(piece);
            let read = piece.get(..*count.as_ref().unwrap_or(&0));
            self.held.extend_from_slice(read.unwrap_or_default());
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
        if self.holds() && !self.inspected {
            (PollFlags::empty(), PollFlags::OUT)
        } else if self.ended {
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
    let mut there = Way::new(&entry.sent, first);
    let mut back = Way::new(&entry.received, answered);
    there.inspected = inspect.is_some();
    let mut piece = vec![0; PIECE];
    let mut last = Instant::now();
    // What a client has said before it was asked for may be there already.
    let (mut client_ready, mut server_ready) = (Ready::Yes, Ready::No);
    loop {
        let mut moved = [Moved::Nothing; 2];
        if let Some(inspector) = &mut inspect {
            // Nothing of the client's goes on before it was looked at.
            if client_ready == Ready::Yes && !there.ended {
                moved[0] = there.pull(client, &mut piece)?;
            }
            match inspector.look(&there.held) {
                Look::Pass => inspect = None,
                Look::Refuse(why) => return Ok(Ended::Refused(why)),
                // A client that ends without a word has said nothing wrong.
                Look::More if there.ended && there.held.is_empty() => inspect = None,
                Look::More if there.ended => {
                    return Ok(Ended::Refused(
                        "it ended before its first words did".to_owned(),
                    ));
                }
                Look::More if last.elapsed() > FIRST_WORDS => {
                    return Ok(Ended::Refused("its first words took too long".to_owned()));
                }
                Look::More => {}
            }
        }
        there.inspected = inspect.is_some();
        if !there.inspected {
            moved[0] = there.move_on(client, server, &mut piece, client_ready)?;
        }
        moved[1] = back.move_on(server, client, &mut piece, server_ready)?;
        if there.shut && back.shut {
            return Ok(Ended::Over);
        }
        if moved.contains(&Moved::Some) {
            last = Instant::now();
        }
        let alone = there.ended || back.ended;
        let patience = match (alone, inspect.is_some()) {
            (_, true) => Some(FIRST_WORDS),
            (true, false) => Some(HALF_OPEN),
            (false, false) => None,
        };
        match wait(client, server, &there, &back, patience)? {
            None if inspect.is_none() => return Ok(Ended::Over),
            None => (client_ready, server_ready) = (Ready::No, Ready::No),
            Some(news) => (client_ready, server_ready) = news,
        }
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
