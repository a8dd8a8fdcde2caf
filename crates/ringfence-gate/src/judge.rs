//! Whether a destination may be reached: the policy's answer, and somebody's where it has none.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ringfence_core::host::Host;
use ringfence_core::policy::{Network, Reachable};

use crate::Destination;
use crate::vet;

/// How many destinations one session can have somebody asked about.
const MOST_ASKED: usize = 1024;

/// Somebody who can be asked about a host on nobody's list.
///
/// Asked once for a destination and session, on a thread of its own. Whoever waits does not wait
/// longer than the gate allows; an answer that comes later holds for the next attempt.
///
/// # Examples
///
/// ```
/// # mod ringfence { pub mod network { pub use ringfence_gate::Destination; pub use ringfence_gate::event::*; pub use ringfence_gate::judge::{Answer, Decider}; } }
/// use ringfence::network::{Answer, Decider, Destination};
///
/// #[derive(Debug)]
/// struct OnlyEncrypted;
///
/// impl Decider for OnlyEncrypted {
///     fn decide(&self, destination: &Destination) -> Answer {
///         if destination.port == 443 { Answer::Allow } else { Answer::Deny }
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let wanted = Destination::new(b"example.org", 80)?;
/// assert_eq!(OnlyEncrypted.decide(&wanted), Answer::Deny);
/// # Ok(())
/// # }
/// ```
pub trait Decider: fmt::Debug + Send + Sync {
    /// May it be reached?
    fn decide(&self, destination: &Destination) -> Answer;
}

/// Somebody's answer.
///
/// # Examples
///
/// ```
/// # mod ringfence { pub mod network { pub use ringfence_gate::Destination; pub use ringfence_gate::event::*; pub use ringfence_gate::judge::{Answer, Decider}; } }
/// use ringfence::network::Answer;
///
/// let typed = "yes";
/// let answer = if typed == "yes" { Answer::Allow } else { Answer::Deny };
/// # assert_eq!(answer, Answer::Allow);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Yes, for the rest of the session.
    Allow,
    /// No.
    Deny,
}

/// A decision, and who made it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It may be reached.
    Allowed {
        /// The pattern, and where it is written; or that somebody was asked.
        rule: String,
    },
    /// It may not.
    Refused(Reason),
}

/// Why something is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// Its name leads only to addresses that are not open to everybody.
    Address {
        /// One of them.
        address: IpAddr,
        /// What it is.
        what: &'static str,
    },
    /// Somebody was asked and said no.
    Denied,
    /// It is on nobody's list.
    NotListed {
        /// Who says that there is a list.
        origin: String,
    },
    /// Somebody was asked and did not answer in time.
    TimedOut,
}

/// Judges destinations for one session.
pub struct Judge {
    network: Network,
    asked: Option<Asked>,
}

struct Asked {
    decider: Arc<dyn Decider>,
    patience: Duration,
    answers: Arc<Answers>,
}

#[derive(Default)]
struct Answers {
    known: Mutex<HashMap<Destination, Option<Answer>>>,
    news: Condvar,
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge")
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

impl Judge {
    /// Judges by this policy alone.
    pub fn new(network: Network) -> Self {
        Self {
            network,
            asked: None,
        }
    }

    /// Asks somebody about what the policy does not list, and waits this long.
    #[must_use]
    pub fn asking(mut self, decider: Arc<dyn Decider>, patience: Duration) -> Self {
        self.asked = Some(Asked {
            decider,
            patience,
            answers: Arc::default(),
        });
        self
    }

    /// Whether a name may be reached on any port, or could be if somebody is asked.
    pub fn knows_name(&self, host: &Host) -> bool {
        self.asked.is_some()
            || self.network.hosts().iter().any(|pattern| {
                // The port does not matter here: some port of the pattern's own always does.
                let pattern = &pattern.value;
                [80, 443, 1].iter().any(|port| pattern.matches(host, *port))
                    || matches!(pattern.ports(), ringfence_core::host::Ports::One(port)
                        if pattern.matches(host, port))
            })
    }

    /// Whether an attempt can come to anything, without asking anybody yet.
    pub fn may_allow(&self, destination: &Destination) -> bool {
        (self.asked.is_some() && can_be_asked(destination)) || self.listed(destination).is_some()
    }

    fn listed(&self, destination: &Destination) -> Option<String> {
        let verdict = self.network.verdict(&destination.host, destination.port);
        (verdict.reach == Reachable::Allowed).then(|| match verdict.pattern {
            Some(pattern) => format!("{pattern} ({})", verdict.origin),
            None => verdict.origin.to_string(),
        })
    }

    /// The reason for what is on nobody's list.
    pub fn not_listed(&self) -> Reason {
        Reason::NotListed {
            origin: self.network.mode_origin().to_string(),
        }
    }

    /// Decides. May wait for somebody's answer.
    pub fn judge(&self, destination: &Destination) -> Verdict {
        if let Some(rule) = self.listed(destination) {
            return Verdict::Allowed { rule };
        }
        let asked = self.asked.as_ref().filter(|_| can_be_asked(destination));
        let Some(asked) = asked else {
            return Verdict::Refused(self.not_listed());
        };
        match asked.answer(destination) {
            Some(Answer::Allow) => Verdict::Allowed {
                rule: "allowed when asked".to_owned(),
            },
            Some(Answer::Deny) => Verdict::Refused(Reason::Denied),
            None => Verdict::Refused(Reason::TimedOut),
        }
    }

    /// Keeps the addresses that may be dialled for a name that was allowed.
    ///
    /// # Errors
    ///
    /// Why none is left.
    pub fn vet(&self, addresses: Vec<IpAddr>, port: u16) -> Result<Vec<IpAddr>, Reason> {
        let mut refused = None;
        let mut kept: Vec<IpAddr> = Vec::new();
        for address in addresses {
            // A mapped address is dialled as what it stands for.
            let address = address.to_canonical();
            match vet::public(address) {
                Err(vet::NotPublic(what)) if !self.lists_address(address, port) => {
                    refused.get_or_insert(Reason::Address { address, what });
                }
                _ if kept.contains(&address) => {}
                _ => kept.push(address),
            }
        }
        match refused {
            Some(reason) if kept.is_empty() => Err(reason),
            _ => Ok(kept),
        }
    }

    fn lists_address(&self, address: IpAddr, port: u16) -> bool {
        let verdict = self.network.verdict(&Host::Ip(address), port);
        verdict.reach == Reachable::Allowed && verdict.pattern.is_some()
    }
}

/// Whether somebody could know what they say yes to: an address of the host's own network, or a
/// name of its loopback, means something else inside than outside. Only a list can allow it.
fn can_be_asked(destination: &Destination) -> bool {
    match &destination.host {
        Host::Ip(address) => vet::public(*address).is_ok(),
        Host::Name(name) => name.as_str() != "localhost" && !name.as_str().ends_with(".localhost"),
    }
}

impl Asked {
    fn answer(&self, destination: &Destination) -> Option<Answer> {
        let deadline = Instant::now() + self.patience;
        let lock = || self.answers.known.lock();
        let mut known = lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains_key(destination) {
            if known.len() >= MOST_ASKED {
                return Some(Answer::Deny);
            }
            known.insert(destination.clone(), None);
            self.ask(destination.clone());
        }
        loop {
            match known.get(destination) {
                Some(Some(answer)) => return Some(*answer),
                Some(None) => {}
                None => return Some(Answer::Deny),
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = self.answers.news.wait_timeout(known, left);
            known = woken.map_or_else(|poisoned| poisoned.into_inner().0, |woken| woken.0);
        }
    }

    fn ask(&self, destination: Destination) {
        let decider = Arc::clone(&self.decider);
        let answers = Arc::clone(&self.answers);
        let thread = std::thread::Builder::new().name("ringfence-ask".to_owned());
        // Without a thread nobody is asked, and silence means no.
        let _ = thread.spawn(move || {
            let answer = decider.decide(&destination);
            let known = answers.known.lock();
            let mut known = known.unwrap_or_else(PoisonError::into_inner);
            known.insert(destination, Some(answer));
            answers.news.notify_all();
        });
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
pub(crate) mod tests;
