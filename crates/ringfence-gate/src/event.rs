//! What happened at the gate: every attempt, and what came of it.
//!
//! Hosts and ports, verdicts and sizes; never an address of a page, a header or a byte of what
//! was carried.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use ringfence_core::text::printable;
use serde::Serialize;

use crate::Destination;
use crate::refusal::Refusal;

/// How many attempts are kept; more are only counted.
pub const MOST: usize = 1000;

/// By which way somebody came.
///
/// # Examples
///
/// ```
/// # mod ringfence { pub mod network { pub use ringfence_gate::Destination; pub use ringfence_gate::event::*; pub use ringfence_gate::judge::{Answer, Decider}; } }
/// use ringfence::network::{Attempt, Way};
///
/// /// Whether somebody outside came to a server of the session's.
/// fn is_visit(attempt: &Attempt) -> bool {
///     attempt.way == Way::LoopbackIn
/// }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Way {
    /// HTTP `CONNECT`.
    Connect,
    /// A connection of a program that knows no proxy.
    Direct,
    /// An HTTP request.
    Http,
    /// From the host to a server inside.
    LoopbackIn,
    /// From inside to a service of the host.
    LoopbackOut,
    /// A question for a name.
    Name,
    /// SOCKS.
    Socks,
}

/// What came of an attempt.
///
/// # Examples
///
/// ```
/// # mod ringfence { pub mod network { pub use ringfence_gate::Destination; pub use ringfence_gate::event::*; pub use ringfence_gate::judge::{Answer, Decider}; } }
/// use ringfence::network::{Attempt, Outcome};
///
/// fn refused(attempts: &[Attempt]) -> usize {
///     attempts.iter().filter(|attempt| attempt.verdict == Outcome::Refused).count()
/// }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// It was let through.
    Allowed,
    /// It was allowed, and nothing could be reached.
    Failed,
    /// It was not decided when the session ended.
    Pending,
    /// It was not let through.
    Refused,
}

/// One attempt.
///
/// # Examples
///
/// ```
/// # mod ringfence { pub mod network { pub use ringfence_gate::Destination; pub use ringfence_gate::event::*; pub use ringfence_gate::judge::{Answer, Decider}; } }
/// use ringfence::network::Attempt;
///
/// fn show(attempt: &Attempt) {
///     println!("{}:{} {:?}: {}", attempt.host, attempt.port, attempt.verdict, attempt.rule);
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Attempt {
    /// When it began.
    #[serde(skip)]
    pub at: SystemTime,
    /// By which way.
    pub way: Way,
    /// The host, in its one spelling; a text that is no host is shown escaped.
    pub host: String,
    /// The port; zero for a question about a name.
    pub port: u16,
    /// What came of it.
    pub verdict: Outcome,
    /// The rule that decided, or the reason.
    pub rule: String,
    /// The flag that would have let it through, if it was refused and one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// How often it was made, if it was refused.
    pub times: u64,
    /// Bytes that went out.
    pub sent: u64,
    /// Bytes that came in.
    pub received: u64,
    /// How long it lasted.
    pub milliseconds: u64,
}

/// Every attempt of a session.
#[derive(Debug, Default)]
pub struct Log {
    entries: Mutex<Vec<Arc<Entry>>>,
    dropped: AtomicU64,
    news: Arc<News>,
}

/// What was refused and nobody was told of yet.
#[derive(Default)]
struct News {
    refused: Mutex<Vec<Attempt>>,
    bell: Option<Bell>,
}

/// Wakes whoever wants to be told of refusals. It must not wait.
pub type Bell = Box<dyn Fn() + Send + Sync>;

impl fmt::Debug for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("News")
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

impl News {
    fn tell(&self, refused: Attempt) {
        let mut untold = locked(&self.refused);
        // Whoever does not listen reads the whole log at the end.
        if untold.len() < MOST {
            untold.push(refused);
        }
        drop(untold);
        if let Some(bell) = &self.bell {
            bell();
        }
    }
}

/// An attempt that may still go on.
#[derive(Debug)]
pub struct Entry {
    at: SystemTime,
    began: Instant,
    way: Way,
    host: String,
    port: u16,
    state: Mutex<State>,
    news: Arc<News>,
    /// Bytes that went out.
    pub sent: AtomicU64,
    /// Bytes that came in.
    pub received: AtomicU64,
}

#[derive(Debug)]
struct State {
    outcome: Outcome,
    rule: String,
    fix: Option<String>,
    times: u64,
    took: Option<Duration>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Log {
    /// One that rings whenever something is refused.
    pub fn ringing(bell: Bell) -> Self {
        let news = News {
            refused: Mutex::default(),
            bell: Some(bell),
        };
        Self {
            news: Arc::new(news),
            ..Self::default()
        }
    }

    /// What was refused since this was last asked.
    pub fn news(&self) -> Vec<Attempt> {
        std::mem::take(&mut *locked(&self.news.refused))
    }

    /// Somebody wants something.
    pub fn begin(&self, way: Way, destination: &Destination) -> Arc<Entry> {
        let entry = self.entry(way, destination.host.to_string(), destination.port);
        self.keep(entry)
    }

    /// Somebody is refused who did not say the session's token, and may be of no session.
    pub fn stranger(&self, way: Way) {
        let why = Refusal::Stranger.line();
        self.refused(way, "(a stranger)", 0, &why, None);
    }

    /// Somebody is refused at once; the same again is only counted.
    pub fn refused(&self, way: Way, host: &str, port: u16, rule: &str, fix: Option<String>) {
        const LONGEST: usize = 256;
        let host: String = printable(host).chars().take(LONGEST).collect();
        {
            let entries = locked(&self.entries);
            let known = entries
                .iter()
                .find(|entry| (entry.way, &entry.host, entry.port) == (way, &host, port));
            if let Some(entry) = known {
                let mut state = locked(&entry.state);
                if state.outcome == Outcome::Refused {
                    state.times += 1;
                    return;
                }
            }
        }
        let entry = self.entry(way, host, port);
        self.keep(entry).over(Outcome::Refused, rule, fix);
    }

    fn entry(&self, way: Way, host: String, port: u16) -> Entry {
        Entry::new(way, host, port, Arc::clone(&self.news))
    }

    fn keep(&self, entry: Entry) -> Arc<Entry> {
        let entry = Arc::new(entry);
        let mut entries = locked(&self.entries);
        if entries.len() < MOST {
            entries.push(Arc::clone(&entry));
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        entry
    }

    /// Everything up to now.
    pub fn attempts(&self) -> Vec<Attempt> {
        let entries = locked(&self.entries);
        entries.iter().map(|entry| entry.snapshot()).collect()
    }

    /// How many attempts were not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Entry {
    fn new(way: Way, host: String, port: u16, news: Arc<News>) -> Self {
        Self {
            at: SystemTime::now(),
            began: Instant::now(),
            way,
            host,
            port,
            state: Mutex::new(State {
                outcome: Outcome::Pending,
                rule: String::new(),
                fix: None,
                times: 1,
                took: None,
            }),
            news,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    /// It is let through, and goes on.
    pub fn allowed(&self, rule: &str) {
        let mut state = locked(&self.state);
        state.outcome = Outcome::Allowed;
        rule.clone_into(&mut state.rule);
    }

    /// It is over with this.
    pub fn ends(&self, outcome: Outcome, rule: &str) {
        self.over(outcome, rule, None);
    }

    /// It is over with a refusal.
    pub fn refuses(&self, outcome: Outcome, refusal: &Refusal) {
        self.over(outcome, &refusal.line(), refusal.fix());
    }

    fn over(&self, outcome: Outcome, rule: &str, fix: Option<String>) {
        {
            let mut state = locked(&self.state);
            state.outcome = outcome;
            state.fix = fix;
            rule.clone_into(&mut state.rule);
            state.took = Some(self.began.elapsed());
        }
        if outcome == Outcome::Refused {
            self.news.tell(self.snapshot());
        }
    }

    /// It is over as it was.
    pub fn done(&self) {
        locked(&self.state)
            .took
            .get_or_insert_with(|| self.began.elapsed());
    }

    fn snapshot(&self) -> Attempt {
        let state = locked(&self.state);
        let took = state.took.unwrap_or_else(|| self.began.elapsed());
        Attempt {
            at: self.at,
            way: self.way,
            host: self.host.clone(),
            port: self.port,
            verdict: state.outcome,
            rule: state.rule.clone(),
            fix: state.fix.clone(),
            times: state.times,
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_refusal_is_counted_and_not_repeated() {
        let log = Log::default();
        for _ in 0..3 {
            log.refused(Way::Name, "denied.test", 0, "not listed", None);
        }
        log.refused(Way::Connect, "denied.test\x1b[2J", 0, "not a host", None);
        let attempts = log.attempts();
        assert_eq!(attempts.len(), 2);
        assert_eq!(
            (attempts[0].times, attempts[0].verdict),
            (3, Outcome::Refused)
        );
        assert!(!attempts[1].host.contains('\x1b'), "{attempts:?}");
        // Each is told once.
        assert_eq!((log.news().len(), log.news().len()), (2, 0));
    }

    #[test]
    fn a_log_does_not_grow_without_bound() {
        let log = Log::default();
        for port in 0..2000 {
            log.refused(Way::Connect, "denied.test", port, "not listed", None);
        }
        assert_eq!((log.attempts().len(), log.dropped()), (MOST, 1000));
    }
}
