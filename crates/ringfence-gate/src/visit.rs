//! One connection of a session, from its first words to its end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_core::host::Host;

use crate::Destination;
use crate::agreement::Agreement;
use crate::dns::{self, Kind, Says};
use crate::event::{Entry, Outcome, Way};
use crate::http::{self, Door, Next, looks_like_request};
use crate::refusal::{Failure, Refusal, flag};
use crate::relay::{Ended, relay};
use crate::serve::Shared;
use crate::socks::{self, Chosen, Demanded, Read, Reply};
use crate::stream::Stream;
use crate::token::Token;

/// How long a client may take to say what it wants.
const FIRST_WORDS: Duration = Duration::from_mins(1);
/// How long an answer may take to be taken.
const ANSWER: Duration = Duration::from_secs(30);

/// Which words a client of a tunnel waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Tongue {
    Http,
    None,
    Socks,
}

impl Shared {
    /// Answers everything that was asked, but not for ever.
    pub(crate) fn answer_names(&self, socket: &UdpSocket) {
        const AT_ONCE: usize = 64;
        let mut buffer = [0; dns::LARGEST + 1];
        for _ in 0..AT_ONCE {
            let Ok((length, asker)) = socket.recv_from(&mut buffer) else {
                return;
            };
            let question = dns::read(buffer.get(..length).unwrap_or_default());
            let answer = match &question {
                Ok(question) => Some(question.answer(self.about_name(question))),
                Err(other) => other.answer().map(<[u8]>::to_vec),
            };
            if let Some(answer) = answer {
                let _ = socket.send_to(&answer, asker);
            }
        }
    }

    fn about_name(&self, question: &dns::Question<'_>) -> Says {
        let host = &question.host;
        if is_own_loopback(host) {
            return match question.kind {
                Kind::Address => Says::Address(Ipv4Addr::LOCALHOST),
                Kind::Other => Says::Nothing,
            };
        }
        if !self.dialer.judge.knows_name(host) {
            let rule = "the name is not on the list, so it was not looked up";
            // Nobody knows the port yet.
            let fix = Some(flag(host, 443));
            self.log.refused(Way::Name, &host.to_string(), 0, rule, fix);
            return Says::NoSuchName;
        }
        match question.kind {
            Kind::Other => Says::Nothing,
            Kind::Address => self
                .names
                .address(host)
                .map_or(Says::Failure, Says::Address),
        }
    }

    /// Notes that a connection was left to fail where there is no network.
    pub(crate) fn refuse_uncarried(&self, destination: &Destination) {
        let (line, fix) = if self.dialer.judge.may_allow(destination) {
            ("the session has too many destinations".to_owned(), None)
        } else {
            let refusal = Refusal::Policy {
                destination: destination.clone(),
                reason: self.dialer.judge.not_listed(),
            };
            (refusal.line(), refusal.fix())
        };
        let host = destination.host.to_string();
        self.log
            .refused(Way::Direct, &host, destination.port, &line, fix);
    }

    pub(crate) fn serve_proxied(&self, mut client: Stream) -> io::Result<()> {
        let deadline = Instant::now() + FIRST_WORDS;
        client.fill_to(1, deadline)?;
        match client.buffer.first() {
            Some(&socks::VERSION) => self.serve_socks(client, deadline),
            // It has no password to be asked for, and is told the same.
            Some(&socks::OLD_VERSION) => {
                self.log.refused(
                    Way::Socks,
                    "(version 4)",
                    0,
                    "only version 5 is spoken",
                    None,
                );
                client.write_all(&socks::OLD_REFUSAL, ANSWER)?;
                client.close_gently();
                Ok(())
            }
            _ => match http::serve(self, &mut client, None, Door::Proxy)? {
                Next::Over => {
                    client.close_gently();
                    Ok(())
                }
                Next::Tunnel(destination) => {
                    self.tunnel(client, &destination, Way::Connect, Tongue::Http)
                }
            },
        }
    }

    fn serve_socks(&self, mut client: Stream, deadline: Instant) -> io::Result<()> {
        let demanded = match &self.token {
            Some(_) => Demanded::Password,
            None => Demanded::Nothing,
        };
        let (answer, chosen) = loop {
            match socks::greeting(&client.buffer, demanded) {
                Read::Whole(chosen, length) => {
                    client.take(length);
                    break chosen;
                }
                Read::Unfinished if client.fill(deadline)? == 0 => return Ok(()),
                Read::Unfinished => {}
            }
        };
        client.write_all(&answer, ANSWER)?;
        let admitted = match (chosen, &self.token) {
            (Chosen::None, None) => true,
            (Chosen::Password, Some(token)) => admits(token, &mut client, deadline)?,
            _ => false,
        };
        if !admitted {
            if demanded == Demanded::Password {
                self.log.stranger(Way::Socks);
            }
            client.close_gently();
            return Ok(());
        }
        loop {
            match socks::request(&client.buffer) {
                Ok(Read::Whole(destination, length)) => {
                    client.take(length);
                    return self.tunnel(client, &destination, Way::Socks, Tongue::Socks);
                }
                Ok(Read::Unfinished) if client.fill(deadline)? == 0 => return Ok(()),
                Ok(Read::Unfinished) => {}
                Err(wrong) => {
                    let why = wrong.error.map(|error| error.to_string());
                    let why = why.unwrap_or_else(|| "only CONNECT is served".to_owned());
                    self.log.refused(Way::Socks, "(unreadable)", 0, &why, None);
                    client.write_all(&wrong.reply.to_bytes(), ANSWER)?;
                    client.close_gently();
                    return Ok(());
                }
            }
        }
    }

    /// Serves a program that believes it has reached a host itself.
    pub(crate) fn serve_carried(&self, client: Stream) -> io::Result<()> {
        let local = client.socket.local_addr()?.ip().to_canonical();
        let destination = match local {
            IpAddr::V4(address) => self.names.destination(address),
            IpAddr::V6(_) => None,
        };
        if let Some(destination) = destination {
            return self.tunnel(client, &destination, Way::Direct, Tongue::None);
        }
        client.reset();
        Ok(())
    }

    /// Decides, dials, and carries.
    fn tunnel(
        &self,
        mut client: Stream,
        destination: &Destination,
        way: Way,
        tongue: Tongue,
    ) -> io::Result<()> {
        let entry = self.log.begin(way, destination);
        let rule = match self.dialer.decide(destination) {
            Ok(rule) => rule,
            Err(refusal) => return refused(client, &entry, tongue, &refusal),
        };
        entry.allowed(&rule);
        let mut server = match self.dialer.dial(destination, &self.stop) {
            Ok(server) => server,
            Err(refusal) => return refused(client, &entry, tongue, &refusal),
        };
        match tongue {
            Tongue::Http => {
                client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n", ANSWER)?;
            }
            Tongue::Socks => client.write_all(&Reply::Succeeded.to_bytes(), ANSWER)?,
            Tongue::None => {}
        }
        if destination.port == 80 && first_words_are_http(&mut client)? {
            // Every request can say another host, so each is looked at.
            let door = Door::Direct(destination, &entry);
            let served = http::serve(self, &mut client, Some(server), door);
            entry.done();
            client.close_gently();
            return served.map(|_| ());
        }
        let mut agreement = Agreement::new(destination);
        let ended = relay(&mut client, &mut server, &entry, Some(&mut agreement));
        entry.done();
        match ended {
            Ok(Ended::Over) => {}
            Ok(Ended::Refused(why)) => {
                entry.ends(Outcome::Refused, &why);
                client.reset();
            }
            Err(_) => client.reset(),
        }
        Ok(())
    }

    pub(crate) fn serve_outside(&self, mut client: Stream, port: u16) -> io::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let entry = self.log.begin(Way::LoopbackOut, &Destination::of(address));
        entry.allowed("--loopback-out");
        let Ok(server) = TcpStream::connect_timeout(&address, ANSWER) else {
            entry.ends(Outcome::Failed, "nothing of the host listens there");
            client.reset();
            return Ok(());
        };
        let mut server = Stream::new(server, Arc::clone(&self.stop))?;
        let ended = relay(&mut client, &mut server, &entry, None);
        entry.done();
        ended.map(|_| ())
    }

    pub(crate) fn serve_inside(&self, mut client: Stream, port: u16) -> io::Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let entry = self.log.begin(Way::LoopbackIn, &Destination::of(address));
        entry.allowed("--loopback-in");
        match self.stash.connect(port) {
            Some(Ok(server)) => {
                let mut server = Stream::new(server, Arc::clone(&self.stop))?;
                let ended = relay(&mut client, &mut server, &entry, None);
                entry.done();
                self.stash.put_back(server.socket);
                ended.map(|_| ())
            }
            Some(Err(_)) => {
                entry.ends(Outcome::Failed, "nothing inside listens there");
                client.reset();
                Ok(())
            }
            None => {
                entry.ends(Outcome::Failed, "too many connections at once");
                client.reset();
                Ok(())
            }
        }
    }
}

/// Hears a client's name and password, and answers.
fn admits(token: &Token, client: &mut Stream, deadline: Instant) -> io::Result<bool> {
    let admitted = loop {
        match socks::credentials(&client.buffer) {
            None => break false,
            Some(Read::Whole(said, length)) => {
                let admitted = token.is_password(said.user, said.password);
                client.take(length);
                break admitted;
            }
            Some(Read::Unfinished) => {}
        }
        if client.fill(deadline)? == 0 {
            break false;
        }
    };
    client.write_all(&socks::verdict(admitted), ANSWER)?;
    Ok(admitted)
}

/// Whether a client of port 80 speaks HTTP. It always speaks first.
fn first_words_are_http(client: &mut Stream) -> io::Result<bool> {
    let deadline = Instant::now() + FIRST_WORDS;
    loop {
        match looks_like_request(&client.buffer) {
            Some(http) => return Ok(http),
            None if client.fill(deadline)? == 0 => return Ok(false),
            None => {}
        }
    }
}

/// `localhost` and what is below it mean the session's own loopback, whoever asks.
fn is_own_loopback(host: &Host) -> bool {
    matches!(host, Host::Name(name)
        if name.as_str() == "localhost" || name.as_str().ends_with(".localhost"))
}

/// Tells a client in its own tongue.
fn refused(mut client: Stream, entry: &Entry, tongue: Tongue, refusal: &Refusal) -> io::Result<()> {
    let outcome = match refusal {
        Refusal::Unreachable { .. } => Outcome::Failed,
        _ => Outcome::Refused,
    };
    entry.refuses(outcome, refusal);
    match tongue {
        Tongue::Http => client.write_all(&refusal.to_http("CONNECT"), ANSWER)?,
        Tongue::Socks => client.write_all(&socks_reply(refusal).to_bytes(), ANSWER)?,
        Tongue::None => {
            client.reset();
            return Ok(());
        }
    }
    client.close_gently();
    Ok(())
}

fn socks_reply(refusal: &Refusal) -> Reply {
    match refusal {
        Refusal::Malformed { .. } => Reply::Failed,
        Refusal::Policy { .. } | Refusal::Stranger => Reply::NotAllowed,
        Refusal::Unreachable { failure, .. } => match failure {
            Failure::Refused => Reply::Refused,
            Failure::Late | Failure::Lookup | Failure::Unreachable => Reply::HostUnreachable,
            Failure::Upstream => Reply::Failed,
        },
    }
}
