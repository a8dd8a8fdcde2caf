//! Sessions for programs that run on tokio.
//!
//! Starting a session takes a few milliseconds of the calling thread, and dropping one waits until
//! it is over, which takes about as long; everything in between only waits for
//! descriptors. A future that is dropped before it is done takes its command with it where it owns
//! one ([`Command::output_async`]), and leaves the session alone where it does not
//! ([`Running::wait_async`]).

use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::task::Poll;

use tokio::net::unix::pipe::Receiver;

use crate::Event;
use crate::command::{Captured, Command, Output, SpawnError};
use crate::launch::Report;
use crate::session::Running;

impl Running {
    /// Waits until the session is over, without a thread. Standard input is closed first.
    ///
    /// A future that is dropped leaves the session running; only dropping the session ends it.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence::{Policy, Sandbox};
    ///
    /// let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let mut session = sandbox.command("make").spawn()?;
    /// let report = session.wait_async().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_async(&mut self) -> io::Result<Report> {
        self.stdin = None;
        let over = self.as_fd().try_clone_to_owned()?;
        let over = Receiver::from_owned_fd(over)?;
        if let Some(report) = self.try_wait()? {
            return Ok(report);
        }
        // It never becomes anything but closed, after everything was told.
        over.readable().await?;
        self.wait()
    }

    /// The next thing that happens to the session, without a thread; `None` when its end was told.
    ///
    /// A future that is dropped loses nothing: what it did not tell is told by the next.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence::{Policy, Sandbox};
    ///
    /// let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let mut session = sandbox.command("make").spawn()?;
    /// while let Some(event) = session.next_event_async().await? {
    ///     println!("{}", event.to_json()?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_event_async(&mut self) -> io::Result<Option<Event>> {
        let bell = self.events_fd().try_clone_to_owned()?;
        let bell = Receiver::from_owned_fd(bell)?;
        let mut rung = [0; 64];
        let mut closed = false;
        loop {
            if let Some(event) = self.try_event()? {
                return Ok(Some(event));
            }
            if self.has_told_all() {
                return Ok(None);
            }
            if closed {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // What came since it was asked has rung again.
            bell.readable().await?;
            closed = matches!(bell.try_read(&mut rung), Ok(0));
        }
    }
}

impl Command {
    /// Runs it to its end, without a thread.
    ///
    /// # Errors
    ///
    /// As [`status`](Self::status).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence::{Policy, Sandbox};
    ///
    /// let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let report = sandbox.command("make").status_async().await?;
    /// println!("{:?}", report.cause);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn status_async(&mut self) -> Result<Report, SpawnError> {
        let mut running = self.spawn()?;
        running.wait_async().await.map_err(SpawnError::Wait)
    }

    /// Runs it to its end and keeps what it prints, without a thread. Dropping the future ends the
    /// session.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output).
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with I/O.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use ringfence::{Policy, Sandbox};
    ///
    /// let sandbox = Sandbox::new(Policy::agent("."))?;
    /// let output = sandbox.command("make").output_async().await?;
    /// println!("{}", String::from_utf8_lossy(&output.stdout));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn output_async(&mut self) -> Result<Output, SpawnError> {
        let (mut running, [mut stdout, mut stderr]) = self.spawn_capturing()?;
        both(pin!(read_all(&mut stdout)), pin!(read_all(&mut stderr)))
            .await
            .map_err(SpawnError::Wait)?;
        let report = running.wait_async().await.map_err(SpawnError::Wait)?;
        Ok(Output::new(report, [stdout, stderr]))
    }
}

/// Reads a stream to its end.
async fn read_all(stream: &mut Captured) -> io::Result<()> {
    let Some(source) = stream.source.take() else {
        return Ok(());
    };
    let source = Receiver::from_owned_fd(source)?;
    let mut chunk = vec![0; 64 << 10];
    loop {
        source.readable().await?;
        match source.try_read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => stream.take(chunk.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for both.
async fn both<F: Future<Output = io::Result<()>>, G: Future<Output = io::Result<()>>>(
    mut one: Pin<&mut F>,
    mut other: Pin<&mut G>,
) -> io::Result<()> {
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        if first.is_none()
            && let Poll::Ready(done) = one.as_mut().poll(context)
        {
            first = Some(done);
        }
        if second.is_none()
            && let Poll::Ready(done) = other.as_mut().poll(context)
        {
            second = Some(done);
        }
        if first.is_some() && second.is_some() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    first.unwrap_or(Ok(()))?;
    second.unwrap_or(Ok(()))
}
