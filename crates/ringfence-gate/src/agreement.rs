//! Whether what a client says agrees with the host it asked for.
//!
//! Only where a host has a name is there anything to agree with. In TLS every hello must have that
//! name, not the first alone: a server may ask for another one and takes the name of that. So a
//! client's records are read until the server has answered for good ([`Answer`]); none of them is
//! held back but a hello that is not whole. What follows is encrypted, and nobody's business here.

use ringfence_core::host::Host;
use ringfence_core::text::printable_bytes;

use crate::Destination;
use crate::answer::Answer;
use crate::hello::{self, Hello};
use crate::http::names_host;
use crate::relay::{Inspect, Look};

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// Holds a client to the host it asked for.
#[derive(Debug)]
pub(crate) struct Agreement<'d> {
    destination: &'d Destination,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Nothing has gone on.
    First,
    /// A hello has.
    Tls {
        answer: Answer,
        /// How much of a record is still to come that nothing is looked for in.
        left: usize,
    },
}

impl<'d> Agreement<'d> {
    pub(crate) fn new(destination: &'d Destination) -> Self {
        Self {
            destination,
            stage: Stage::First,
        }
    }

    fn first(&mut self, said: &[u8]) -> Look {
        let Host::Name(_) = &self.destination.host else {
            // An address has no name that anything could disagree with.
            return Look::Pass;
        };
        let read = hello::measured(said);
        if let Ok((Hello::NotTls, _)) = read {
            return self.plain(said);
        }
        let look = self.hello(read);
        if let Look::Part(_) = look {
            self.stage = Stage::Tls {
                answer: Answer::default(),
                left: 0,
            };
        }
        look
    }

    /// A hello, the first one or another.
    fn hello(&self, read: Result<(Hello, usize), hello::HelloError>) -> Look {
        let refuse = |why: &str| Look::Refuse(why.to_owned());
        let host = &self.destination.host;
        match read {
            Err(error) => Look::Refuse(error.to_string()),
            Ok((Hello::Named(name), length)) if names_host(&name, host) => Look::Part(length),
            Ok((Hello::Named(name), _)) => {
                let name = printable_bytes(&name);
                refuse(&format!(
                    "the TLS server name {name} is not the host that was asked for"
                ))
            }
            Ok((Hello::Nameless, _)) if self.destination.port == 443 => {
                refuse("the TLS hello has no server name")
            }
            Ok((Hello::Nameless, length)) => Look::Part(length),
            Ok((Hello::Unfinished, _)) => Look::More,
            Ok((Hello::NotTls, _)) => refuse("what follows the TLS hello is no TLS"),
        }
    }

    /// Words that are not TLS.
    fn plain(&self, said: &[u8]) -> Look {
        // Some hosts serve ssh where only this port is open. On port 80 such a beginning would do to say
        // anything behind it that a server takes for a request to another host.
        const SSH: &[u8] = b"SSH-";
        match said {
            // Some servers read over such a record, and take the name of the hello behind it.
            [CHANGE_CIPHER_SPEC | ALERT | APPLICATION_DATA, 3, ..] => {
                return Look::Refuse("TLS begins with a hello".to_owned());
            }
            [CHANGE_CIPHER_SPEC | ALERT | APPLICATION_DATA] => return Look::More,
            _ => {}
        }
        match self.destination.port {
            443 if said.starts_with(SSH) => Look::Pass,
            443 if SSH.starts_with(said) => Look::More,
            // Every request was looked at before it came to this.
            80 => Look::Refuse("on port 80 only HTTP and TLS are carried".to_owned()),
            443 => Look::Refuse("on port 443 only TLS and ssh are carried".to_owned()),
            _ => Look::Pass,
        }
    }
}

/// What of a record that is no part of a handshake may go on, and how much of it is to come.
fn other_record(said: &[u8]) -> (Look, usize) {
    match said {
        [
            CHANGE_CIPHER_SPEC | ALERT | APPLICATION_DATA,
            3,
            _,
            high,
            low,
            ..,
        ] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            (Look::Part(5), length)
        }
        [CHANGE_CIPHER_SPEC | ALERT | APPLICATION_DATA, rest @ ..]
            if rest.len() < 4 && rest.first().is_none_or(|major| *major == 3) =>
        {
            (Look::More, 0)
        }
        [] => (Look::More, 0),
        _ => {
            let why = "what follows the TLS hello is no TLS";
            (Look::Refuse(why.to_owned()), 0)
        }
    }
}

impl Inspect for Agreement<'_> {
    fn client(&mut self, said: &[u8]) -> Look {
        match &mut self.stage {
            Stage::First => self.first(said),
            Stage::Tls { answer, .. } if answer.is_final() => Look::Pass,
            Stage::Tls { left: 1.., .. } if said.is_empty() => Look::More,
            Stage::Tls { left, .. } if *left > 0 => {
                let count = said.len().min(*left);
                *left -= count;
                Look::Part(count)
            }
            Stage::Tls { left, .. } if said.first() != Some(&HANDSHAKE) => {
                let (look, length) = other_record(said);
                *left = length;
                look
            }
            Stage::Tls { .. } => self.hello(hello::measured(said)),
        }
    }

    fn server(&mut self, said: &[u8]) -> Result<(), String> {
        // What it says before it has heard a hello is no answer to one.
        if let Stage::Tls { answer, .. } = &mut self.stage {
            answer.hear(said);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "agreement_tests.rs"]
mod tests;
