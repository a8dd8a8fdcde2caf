//! Large transfers without copies, where the kernel can do that.

use std::io;
use std::net::TcpStream;

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;

#[cfg(target_os = "linux")]
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// How much a pipe holds, if the kernel gives us as much.
#[cfg(target_os = "linux")]
const PIPE: usize = 512 << 10;

/// A pipe in the kernel, between two connections.
#[cfg(target_os = "linux")]
pub(crate) struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    held: usize,
}

#[cfg(target_os = "linux")]
impl Pipe {
    const HOW: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

    /// A new one, or none if there are no descriptors left: copying works as well.
    pub(crate) fn open() -> Option<Self> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        let _ = fcntl_setpipe_size(&writer, PIPE);
        Some(Self {
            reader,
            writer,
            held: 0,
        })
    }

    /// Whether anything is in it.
    pub(crate) fn holds(&self) -> bool {
        self.held > 0
    }

    /// Takes in what a connection has; zero means its end.
    pub(crate) fn pull(&mut self, from: &TcpStream) -> io::Result<usize> {
        let count = splice(from, None, &self.writer, None, PIPE, Self::HOW)?;
        self.held += count;
        Ok(count)
    }

    /// Gives away what a connection takes.
    pub(crate) fn push(&mut self, to: &TcpStream) -> io::Result<usize> {
        let count = splice(&self.reader, None, to, None, self.held, Self::HOW)?;
        self.held = self.held.saturating_sub(count);
        Ok(count)
    }
}

/// There is none here: everything is copied.
#[cfg(not(target_os = "linux"))]
pub(crate) struct Pipe(std::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl Pipe {
    pub(crate) fn open() -> Option<Self> {
        None
    }

    pub(crate) fn holds(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn pull(&mut self, _from: &TcpStream) -> io::Result<usize> {
        match self.0 {}
    }

    pub(crate) fn push(&mut self, _to: &TcpStream) -> io::Result<usize> {
        match self.0 {}
    }
}
