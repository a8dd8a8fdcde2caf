//! A connection that is waited for with an end in sight.
//!
//! Every wait ends with what was waited for, with its deadline, or with the session. Sockets never
//! block.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The reading end of a pipe that nobody writes to: it is over when the session is.
pub(crate) type Stop = Arc<OwnedFd>;

/// One end of a connection, with what was read and not yet used.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) socket: TcpStream,
    pub(crate) stop: Stop,
    pub(crate) buffer: Vec<u8>,
}

/// How much is read at once where it is not bulk.
const PIECE: usize = 4096;

impl Stream {
    pub(crate) fn new(socket: TcpStream, stop: Stop) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        // What is small is sent at once; what is large is sent in large pieces anyway.
        let _ = socket.set_nodelay(true);
        Ok(Self {
            socket,
            stop,
            buffer: Vec::new(),
        })
    }

    fn wait(&self, events: PollFlags, deadline: Instant) -> io::Result<()> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            let mut watched = [
                PollFd::new(&self.socket, events),
                PollFd::new(&*self.stop, PollFlags::IN),
            ];
            match poll(&mut watched, Some(&timespec(left))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [socket, stop] = watched.map(|watched| watched.revents());
            if !stop.is_empty() {
                return Err(ErrorKind::Interrupted.into());
            }
            if !socket.is_empty() {
                return Ok(());
            }
        }
    }

    /// Reads some bytes past the buffer; zero means the end.
    pub(crate) fn read_some(&mut self, into: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            match self.socket.read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(PollFlags::IN, deadline)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Reads some more bytes into the buffer; zero means the end.
    pub(crate) fn fill(&mut self, deadline: Instant) -> io::Result<usize> {
        let mut piece = [0; PIECE];
        let count = self.read_some(&mut piece, deadline)?;
        self.buffer
            .extend_from_slice(piece.get(..count).unwrap_or_default());
        Ok(count)
    }

    /// Reads until the buffer holds this many bytes.
    pub(crate) fn fill_to(&mut self, count: usize, deadline: Instant) -> io::Result<()> {
        while self.buffer.len() < count {
            if self.fill(deadline)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Takes bytes out of the buffer.
    pub(crate) fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(count.min(self.buffer.len()));
        std::mem::replace(&mut self.buffer, rest)
    }

    pub(crate) fn write_all(&mut self, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
        let mut deadline = Instant::now() + patience;
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = bytes.get(count..).unwrap_or_default();
                    deadline = Instant::now() + patience;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(PollFlags::OUT, deadline)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends a connection so that the other side can still read the last words.
    pub(crate) fn close_gently(mut self) {
        const PATIENCE: Duration = Duration::from_secs(1);
        const MOST: usize = 256 << 10;
        let _ = self.socket.shutdown(Shutdown::Write);
        let deadline = Instant::now() + PATIENCE;
        let mut piece = [0; PIECE];
        let mut seen = 0;
        // What comes in unread would end the connection before those words arrive.
        while let Ok(count @ 1..) = self.read_some(&mut piece, deadline) {
            seen += count;
            if seen > MOST {
                return;
            }
        }
    }

    /// Ends a connection so that the other side cannot mistake it for an orderly end.
    pub(crate) fn reset(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
    }
}

/// A pipe that no other program gets, the reading end first.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(target_os = "linux")]
    let ends = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    #[cfg(not(target_os = "linux"))]
    let ends = {
        let (read, write) = rustix::pipe::pipe()?;
        for end in [&read, &write] {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC)?;
        }
        (read, write)
    };
    Ok(ends)
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
