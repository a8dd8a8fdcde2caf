//! What happens to a session, for programs that hold one.
//!
//! [`Running::events`](crate::Running::events) gives it while it happens, and
//! [`Event::to_json`] as the line that `ringfence run --json-fd` would write for it: see
//! [`crate::report`] for what that promises.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use ringfence_core::plan::LimitName;
use serde::Serialize;

use crate::audit::Denial;
use crate::decision::Outcome;
use crate::launch::{Answer, Destination, Report};
use crate::report::{self, Decided, End, Start, Text, Time};

#[doc(inline)]
pub use crate::decision::Decision;
#[doc(inline)]
pub use crate::report::{Planned, ShellPolicy};

/// Something that happened to a session, and when.
///
/// # Examples
///
/// ```no_run
/// use ringfence::{Happened, Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::agent(".").host("crates.io"))?;
/// let mut session = sandbox.command("cargo").arg("update").spawn()?;
/// for event in session.events() {
///     match &event.happened {
///         Happened::Denied(denial) => eprintln!("{} would need {}", denial.target, denial.fix),
///         Happened::Ended(ended) => println!("{:?}", ended.report.cause),
///         _ => println!("{}", event.to_json()?),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// When.
    pub at: SystemTime,
    /// To which session.
    pub session: Arc<SessionName>,
    /// What.
    pub happened: Happened,
}

/// What a session is called: by this `ringfence sessions` and the audit trail know it.
///
/// # Examples
///
/// ```no_run
/// use ringfence::{Policy, Sandbox, sessions::Registry};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// let mut session = sandbox.command("sleep").arg("60").spawn()?;
/// if let Some(event) = session.try_event()? {
///     println!("{} began", event.session.name);
///     Registry::of_user()?.kill(&event.session.id)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionName {
    /// What nobody else is called. Empty if it has come to nothing before it was called anything, or
    /// nobody but its holder can find it.
    #[serde(rename = "session")]
    pub id: String,
    /// What people call it.
    pub name: String,
}

impl SessionName {
    /// Of these two.
    #[doc(hidden)]
    pub fn new(id: String, name: String) -> Self {
        Self { id, name }
    }
}

/// What can happen to a session.
///
/// # Examples
///
/// ```
/// use ringfence::{Happened, Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// let mut session = sandbox.command("true").spawn()?;
/// for event in session.events() {
///     match event.happened {
///         Happened::Started(started) => assert_eq!(started.command, ["true"]),
///         Happened::Ended(ended) => assert!(ended.report.success()),
///         other => println!("{other:?}"),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Happened {
    /// The command goes on after it was stopped.
    Continued,
    /// Somebody was asked about a host ([`Command::asking`](crate::Command::asking)), and answered.
    Decided {
        /// Which host.
        destination: Destination,
        /// The answer.
        answer: Answer,
    },
    /// The session wanted something that it did not get, and ringfence itself said no: a socket of
    /// the host, a host at the network gate, a protected name. Each thing is told once; how often it
    /// was asked for is in the report. What the kernel denies it tells the program, and not us.
    Denied(Denial),
    /// The session is over. Nothing comes after this.
    Ended(Box<Ended>),
    /// The command used more of something than its limit, and was ended for it.
    Limited(LimitName),
    /// The command runs. Nothing comes before this.
    Started(Box<Started>),
    /// A signal has stopped the command; [`Running::signal`](crate::Running::signal) with
    /// [`Signal::CONT`](crate::Signal::CONT) continues it.
    Stopped {
        /// Which one.
        signal: i32,
    },
}

/// A command that runs.
///
/// # Examples
///
/// ```
/// use ringfence::{Happened, Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// let mut session = sandbox.command("sleep").arg("60").spawn()?;
/// if let Some(Happened::Started(started)) = session.try_event()?.map(|event| event.happened) {
///     assert_eq!(started.command, ["sleep", "60"]);
///     assert_eq!(started.process, session.id());
///     println!("{}", started.planned.guarantee.as_deref().unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Started {
    /// The command, word by word.
    pub command: Vec<OsString>,
    /// Where it runs.
    pub directory: PathBuf,
    /// The number of the session's first process on this host.
    pub process: i32,
    /// What holds it, and what does not.
    pub planned: Arc<Planned>,
}

/// A session that is over.
///
/// # Examples
///
/// ```
/// use ringfence::{Happened, Policy, Sandbox};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let sandbox = Sandbox::new(Policy::track("."))?;
/// let mut session = sandbox.command("true").spawn()?;
/// if let Some(Happened::Ended(ended)) = session.events().last().map(|event| event.happened) {
///     assert!(ended.report.success());
///     assert!(ended.planned.gaps.is_empty());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// How it ended, and what happened in it.
    pub report: Report,
    /// What held it, and what did not.
    pub planned: Arc<Planned>,
}

impl Event {
    /// Something that happens now. Whoever holds the session knows what it is called.
    pub(crate) fn now(happened: Happened) -> Self {
        Self {
            at: SystemTime::now(),
            session: Arc::default(),
            happened,
        }
    }

    /// As one line of JSON, without its end, in the format of [`crate::report`].
    ///
    /// # Errors
    ///
    /// None that is known of; the format's own.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use ringfence::{Policy, Sandbox};
    /// # let sandbox = Sandbox::new(Policy::track("."))?;
    /// let mut session = sandbox.command("true").spawn()?;
    /// for event in session.events() {
    ///     assert!(event.to_json()?.starts_with(r#"{"version":1,"#));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_json(&self) -> io::Result<String> {
        self.line().to_json(&self.session)
    }

    /// As programs read it.
    #[doc(hidden)]
    pub fn line(&self) -> report::Event<'_> {
        let time = Time(self.at);
        match &self.happened {
            Happened::Continued => report::Event::Continue { time },
            Happened::Decided {
                destination,
                answer,
            } => {
                let outcome = match answer {
                    Answer::Allow => Outcome::Granted,
                    Answer::Deny => Outcome::Denied,
                };
                let by = "the program that holds the session";
                let decision = Decision::of_host(destination, outcome, by);
                report::Event::Decision(Decided {
                    decision: Cow::Owned(decision),
                    time,
                })
            }
            Happened::Denied(denial) => report::Event::Denial { time, denial },
            Happened::Ended(ended) => report::Event::End(End::new(&ended.planned, &ended.report)),
            Happened::Limited(limit) => report::Event::Limit {
                time,
                limit: *limit,
            },
            Happened::Started(started) => report::Event::Start(Start {
                planned: &started.planned,
                command: started.command.iter().map(|word| Text(word)).collect(),
                directory: Text(started.directory.as_os_str()),
                process: started.process,
                started: time,
            }),
            Happened::Stopped { signal } => report::Event::Stop {
                time,
                signal: *signal,
            },
        }
    }
}
