//! From a judged destination to a connection.
//!
//! The order is the point: judge, look up, vet, dial. What is refused on the way is not looked up,
//! what is not public is not dialled, and what is dialled is an address that was vetted, never a
//! name that somebody might answer for a second time.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_core::host::Host;

use crate::Destination;
use crate::head::{self, Response};
use crate::judge::{Judge, Verdict};
use crate::lookup::Lookup;
use crate::refusal::{Failure, Refusal};
use crate::stream::{Stop, Stream};
use crate::upstream::{Upstream, Upstreams};

/// How long one address may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many addresses of one name are tried.
const MOST_ADDRESSES: usize = 8;

/// Dials for one session.
pub struct Dialer {
    /// Who decides.
    pub judge: Arc<Judge>,
    /// Who looks names up.
    pub lookup: Box<dyn Lookup>,
    /// The proxies of the caller's network.
    pub upstreams: Upstreams,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("judge", &self.judge)
            .field("upstreams", &self.upstreams)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// Decides; the rule that allows it.
    pub(crate) fn decide(&self, destination: &Destination) -> Result<String, Refusal> {
        match self.judge.judge(destination) {
            Verdict::Allowed { rule } => Ok(rule),
            Verdict::Refused(reason) => Err(Refusal::Policy {
                destination: destination.clone(),
                reason,
            }),
        }
    }

    /// Connects to a destination that was allowed.
    pub(crate) fn dial(&self, destination: &Destination, stop: &Stop) -> Result<Stream, Refusal> {
        let failed = |failure| Refusal::Unreachable {
            destination: destination.clone(),
            failure,
        };
        if let Some(upstream) = self.upstreams.of(destination) {
            return through(upstream, destination, stop).map_err(|_| failed(Failure::Upstream));
        }
        let addresses = match &destination.host {
            // An address is only ever allowed as it is written.
            Host::Ip(address) => vec![*address],
            Host::Name(name) => {
                let found = self.lookup.addresses(name);
                let found = found.map_err(|_| failed(Failure::Lookup))?;
                self.judge
                    .vet(found, destination.port)
                    .map_err(|reason| Refusal::Policy {
                        destination: destination.clone(),
                        reason,
                    })?
            }
        };
        let mut last = Failure::Lookup;
        for address in addresses.into_iter().take(MOST_ADDRESSES) {
            match connect(address, destination.port, stop) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = failure(&error),
            }
        }
        Err(failed(last))
    }
}

fn connect(address: IpAddr, port: u16, stop: &Stop) -> io::Result<Stream> {
    let address = SocketAddr::new(address, port);
    let socket = TcpStream::connect_timeout(&address, PATIENCE)?;
    // A peer that is gone without a word is noticed in the end.
    let _ = rustix::net::sockopt::set_socket_keepalive(&socket, true);
    Stream::new(socket, Arc::clone(stop))
}

fn failure(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::ConnectionRefused => Failure::Refused,
        ErrorKind::TimedOut => Failure::Late,
        _ => Failure::Unreachable,
    }
}

/// Asks the caller's proxy for the connection.
fn through(upstream: &Upstream, destination: &Destination, stop: &Stop) -> io::Result<Stream> {
    let Destination { host, port } = &upstream.address;
    let addresses = match host {
        Host::Ip(address) => vec![SocketAddr::new(*address, *port)],
        Host::Name(name) => (name.as_str(), *port).to_socket_addrs()?.collect(),
    };
    let mut stream = Err(ErrorKind::NotFound.into());
    for address in addresses.into_iter().take(MOST_ADDRESSES) {
        stream = connect(address.ip(), address.port(), stop);
        if stream.is_ok() {
            break;
        }
    }
    let mut stream = stream?;
    let mut request = format!("CONNECT {destination} HTTP/1.1\r\nHost: {destination}\r\n");
    if let Some(authorization) = &upstream.authorization {
        request.push_str("Proxy-Authorization: ");
        request.push_str(authorization);
        request.push_str("\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes(), PATIENCE)?;
    let deadline = Instant::now() + 3 * PATIENCE;
    loop {
        let end = head::end(&stream.buffer).map_err(io::Error::other)?;
        if let Some(end) = end {
            let answer = stream.take(end);
            let response = Response::parse(&answer).map_err(io::Error::other)?;
            return match response.status {
                200..300 => Ok(stream),
                _ => Err(ErrorKind::PermissionDenied.into()),
            };
        }
        if stream.fill(deadline)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use proptest::prelude::*;
    use ringfence_core::host::{HostPattern, Name};

    use super::*;
    use crate::judge::tests::network;

    /// Writes down what it is asked for, and knows nothing.
    #[derive(Default)]
    struct Asked(Arc<Mutex<Vec<String>>>);

    impl Lookup for Asked {
        fn addresses(&self, name: &Name) -> io::Result<Vec<IpAddr>> {
            self.0.lock().unwrap().push(name.as_str().to_owned());
            Ok(vec![
                "127.0.0.1".parse().unwrap(),
                "10.0.0.1".parse().unwrap(),
            ])
        }
    }

    fn attempt(
        patterns: &[&str],
        text: &str,
    ) -> (Option<Destination>, Vec<String>, Option<Refusal>) {
        let asked = Asked::default();
        let names = Arc::clone(&asked.0);
        let dialer = Dialer {
            judge: Arc::new(Judge::new(network(patterns))),
            lookup: Box::new(asked),
            upstreams: Upstreams::default(),
        };
        let (stop, _end) = rustix::pipe::pipe().unwrap();
        let destination = Destination::parse(text.as_bytes(), Some(443)).ok();
        let refusal = destination.as_ref().and_then(|destination| {
            let decided = dialer.decide(destination).err();
            decided.or_else(|| dialer.dial(destination, &Arc::new(stop)).err())
        });
        let names = names.lock().unwrap().clone();
        (destination, names, refusal)
    }

    #[test]
    fn what_is_not_allowed_is_not_looked_up_and_what_leads_home_is_not_dialled() {
        let (_, names, refusal) = attempt(&["allowed.test"], "denied.test:443");
        assert!(names.is_empty());
        assert!(matches!(refusal, Some(Refusal::Policy { .. })));
        let (_, names, refusal) = attempt(&["allowed.test"], "ALLOWED.test.:443");
        assert_eq!(names, ["allowed.test"]);
        let home = matches!(&refusal, Some(Refusal::Policy { reason, .. })
            if matches!(reason, crate::judge::Reason::Address { .. }));
        assert!(home, "{refusal:?}");
    }

    proptest! {
        /// Whatever is asked for, the name that is looked up is the name that was matched.
        #[test]
        fn the_name_that_is_dialled_is_the_name_that_was_matched(
            text in prop_oneof![
                "[a-zA-Z0-9.\\-_%:@\\[\\]\\x00-\\x20]{0,30}",
                "[a-z]{0,6}\\.?ok\\.test\\.?(:[0-9]{0,6})?",
                "\\PC{0,20}\\.ok\\.test",
            ],
        ) {
            let pattern: HostPattern = "*.ok.test".parse().unwrap();
            let (destination, names, refusal) = attempt(&["*.ok.test"], &text);
            prop_assert!(destination.is_none() || refusal.is_some(), "nothing is ever dialled");
            for name in names {
                let destination = destination.clone().unwrap();
                prop_assert!(pattern.matches(&destination.host, destination.port));
                prop_assert_eq!(destination.host.to_string(), name);
            }
        }
    }
}
