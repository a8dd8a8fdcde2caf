//! The way to single hosts: a gate on a port of the loopback, which is all that the profile lets the
//! session connect to.
//!
//! There is no network of the session's own here, so the port is open to every process of the machine.
//! Who does not say the session's token is not served, and the token is told to the session alone.

use std::ffi::CString;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ringfence_core::plan::{Hosts, Plan};
use ringfence_core::policy::Policy;
use ringfence_gate::dial::Dialer;
use ringfence_gate::judge::{Decider, Judge};
use ringfence_gate::lookup::System;
use ringfence_gate::serve::{Doors, Gate};
use ringfence_gate::token::Token;
use ringfence_gate::upstream::Upstreams;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, socket};

use crate::launch::proxy::{self, PATIENCE, opened, upstreams};
use crate::launch::{Command, LaunchError};

/// A gate that has its port and serves nobody yet.
pub(super) struct Opening {
    door: TcpListener,
    /// Keeps the port of the other loopback address from everybody else, since a profile has one word
    /// for both.
    sibling: Option<OwnedFd>,
    address: SocketAddr,
    token: Token,
    judge: Judge,
    upstreams: Upstreams,
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A gate that is open.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) gate: Gate,
    _sibling: Option<OwnedFd>,
}

/// How often a port is looked for that is free on both addresses.
const TRIES: usize = 64;

impl Opening {
    /// Takes a port, if the plan has a gate.
    pub(super) fn new(
        plan: &Plan,
        policy: &Policy,
        command: &Command,
    ) -> Result<Option<Self>, LaunchError> {
        if *proxy::hosts(plan) == Hosts::None {
            return Ok(None);
        }
        let refused = |what: &str| {
            let what = what.to_owned();
            move |source| LaunchError::Prepare { what, source }
        };
        let (door, sibling) = port().map_err(refused("listen on the loopback"))?;
        let address = door.local_addr();
        Ok(Some(Self {
            address: address.map_err(refused("listen on the loopback"))?,
            door,
            sibling,
            token: Token::random().map_err(refused("draw the token of the network gate"))?,
            judge: Judge::new(policy.network().clone()),
            upstreams: upstreams(command)?,
        }))
    }

    /// The port that the profile has to let through.
    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds the variables that make programs use the gate, with the token in them.
    pub(super) fn add_variables(&self, environment: &mut Vec<CString>, policy: &Policy) {
        proxy::add_variables(environment, policy, &self.token.proxy(self.address));
    }

    /// Has somebody asked about hosts on nobody's list.
    pub(super) fn ask(self, decider: Arc<dyn Decider>) -> Self {
        Self {
            judge: self.judge.asking(decider, PATIENCE),
            ..self
        }
    }

    /// Serves it.
    pub(super) fn open(self) -> Result<Opened, LaunchError> {
        let doors = Doors {
            proxy: Some(self.door.into()),
            token: Some(self.token),
            ..Doors::default()
        };
        let dialer = Dialer {
            judge: Arc::new(self.judge),
            lookup: Box::new(System),
            upstreams: self.upstreams,
        };
        Ok(Opened {
            gate: opened(doors, dialer)?,
            _sibling: self.sibling,
        })
    }
}

/// A port of the loopback that nobody else has on either address.
fn port() -> io::Result<(TcpListener, Option<OwnedFd>)> {
    let mut refusal = io::ErrorKind::AddrInUse.into();
    for _ in 0..TRIES {
        let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = door.local_addr()?.port();
        let sibling = match socket(AddressFamily::INET6, SocketType::STREAM, None) {
            // Without IPv6 there is no other address.
            Err(Errno::AFNOSUPPORT) => return Ok((door, None)),
            other => other?,
        };
        rustix::io::fcntl_setfd(&sibling, rustix::io::FdFlags::CLOEXEC)?;
        // It never listens: whoever knocks there is refused.
        match bind(&sibling, &SocketAddr::from((Ipv6Addr::LOCALHOST, port))) {
            Ok(()) => return Ok((door, Some(sibling))),
            Err(Errno::ADDRNOTAVAIL) => return Ok((door, None)),
            Err(errno) => refusal = errno.into(),
        }
    }
    Err(refusal)
}

// Nothing here needs a Mac, so it is tried everywhere.
#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::process::Command as Process;
    use std::sync::Mutex;

    use ringfence_core::plan::{EngineChoice, HostFacts, compile};
    use ringfence_gate::Destination;
    use ringfence_gate::event::Outcome;
    use ringfence_gate::judge::Answer;

    use super::*;
    use crate::{Policy as Wanted, Sandbox};

    /// A server of this machine that says that it was reached, for as long as the test runs.
    fn origin() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let _ = client.read(&mut [0; 4096]);
                let _ = client.write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached",
                );
            }
        });
        address
    }

    /// The gate that a session on a Mac would have, and the variables it would be told of it by.
    fn session(wanted: Wanted) -> (Opening, Vec<CString>) {
        let policy = Sandbox::new(wanted).unwrap().walls().unwrap().policy;
        let facts = HostFacts::named("macos-15").unwrap();
        let plan = compile(&policy, &facts, EngineChoice::Auto);
        assert_eq!(plan.gaps(), []);
        let command = Command {
            program: "curl".into(),
            arguments: Vec::new(),
            directory: "/".into(),
            environment: Vec::new(),
        };
        let opening = Opening::new(&plan, &policy, &command).unwrap().unwrap();
        let mut environment = vec![CString::new("http_proxy=http://elsewhere.test").unwrap()];
        opening.add_variables(&mut environment, &policy);
        (opening, environment)
    }

    /// What curl gets with these variables and no others.
    fn curl(environment: &[CString], arguments: &[&str]) -> String {
        let variables = environment.iter().map(|variable| {
            let (name, value) = variable.to_str().unwrap().split_once('=').unwrap();
            (name, value)
        });
        let done = Process::new("curl")
            .env_clear()
            .envs(variables)
            // Hosts of the loopback are meant to be asked without a proxy, and are all there is here.
            .args(["--silent", "--max-time", "20", "--noproxy", ""])
            .args(["--write-out", " %{http_code}"])
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    }

    #[test]
    fn what_a_session_is_told_lets_it_in_and_nobody_else() {
        let project = tempfile::tempdir().unwrap();
        let (allowed, denied) = (origin(), origin());
        let wanted = || Wanted::agent(project.path()).host(allowed.to_string());
        let (opening, environment) = session(wanted());
        let (other, others) = session(wanted());
        let at = format!("127.0.0.1:{}", opening.port());
        let url = |address: SocketAddr| format!("http://{address}/");
        let (opened, _other) = (opening.open().unwrap(), other.open().unwrap());
        assert_eq!(curl(&environment, &[&url(allowed)]), "reached 200");
        assert!(curl(&environment, &[&url(denied)]).ends_with(" 403"));
        // By the same port, with nothing to say, and with what another session was told.
        let strange = curl(&[], &["--proxy", &at, &url(allowed)]);
        assert!(strange.ends_with(" 407"), "{strange}");
        let named = |variable: &&CString| variable.to_bytes().starts_with(b"http_proxy=");
        let (_, theirs) = others
            .iter()
            .find(named)
            .unwrap()
            .to_str()
            .unwrap()
            .split_at(11);
        assert_eq!(
            curl(&[], &["--proxy", theirs, &url(allowed)]),
            "reached 200"
        );
        let swapped = theirs.rsplit_once('@').unwrap().0;
        let swapped = format!("{swapped}@{at}");
        let strange = curl(&[], &["--proxy", &swapped, &url(allowed)]);
        assert!(strange.ends_with(" 407"), "{strange}");
        let (attempts, _) = opened.gate.attempts();
        let all = |outcome| {
            let all = attempts.iter().filter(|attempt| attempt.verdict == outcome);
            all.map(|attempt| attempt.times.max(1)).sum::<u64>()
        };
        assert_eq!((all(Outcome::Allowed), all(Outcome::Refused)), (1, 3));
    }

    #[test]
    fn every_variable_has_the_token_and_what_the_policy_sets_stays() {
        let project = tempfile::tempdir().unwrap();
        let wanted = Wanted::agent(project.path())
            .host("a.test")
            .set_env("HTTPS_PROXY", "mine");
        let (opening, environment) = session(wanted);
        let proxy = opening.token.proxy(opening.address);
        let with = |variable: &&CString| variable.to_str().unwrap().ends_with(&proxy);
        let naming = environment.iter().filter(with).count();
        assert_eq!(naming, 11, "{naming} of twelve, and one is the policy's");
        let begins = |text: &str| {
            let all = environment.iter();
            all.filter(|variable| variable.to_bytes().starts_with(text.as_bytes()))
                .count()
        };
        assert_eq!(begins("http_proxy=http://elsewhere"), 0, "the caller's own");
        assert_eq!(begins("HTTPS_PROXY="), 0, "that is the policy's to set");
        assert!(!format!("{opening:?}").contains(&proxy[20..40]));
    }

    #[test]
    fn the_port_is_nobody_elses_on_either_address() {
        let (door, sibling) = port().unwrap();
        let port = door.local_addr().unwrap().port();
        let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
        if sibling.is_none() {
            assert!(
                TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err(),
                "no IPv6"
            );
            return;
        }
        let taken = TcpListener::bind(v6).map_err(|error| error.kind());
        assert_eq!(taken.err(), Some(io::ErrorKind::AddrInUse));
        let refused = TcpStream::connect(v6).map_err(|error| error.kind());
        assert_eq!(refused.err(), Some(io::ErrorKind::ConnectionRefused));
        drop(sibling);
        assert!(TcpListener::bind(v6).is_ok(), "it was held by that alone");
    }

    /// Somebody who says no, and remembers to what.
    #[derive(Debug, Default)]
    struct Asked(Mutex<Vec<String>>);

    impl Decider for Asked {
        fn decide(&self, destination: &Destination) -> Answer {
            self.0.lock().unwrap().push(destination.to_string());
            Answer::Deny
        }
    }

    #[test]
    fn somebody_is_asked_about_a_host_that_is_not_listed() {
        let project = tempfile::tempdir().unwrap();
        let wanted = Wanted::agent(project.path()).host("a.test");
        let (opening, environment) = session(wanted);
        let asked = Arc::new(Asked::default());
        let decider: Arc<dyn Decider> = Arc::<Asked>::clone(&asked);
        let _opened = opening.ask(decider).open().unwrap();
        let told = curl(&environment, &["http://b.test/"]);
        assert!(told.contains("it was denied when asked"), "{told}");
        assert_eq!(*asked.0.lock().unwrap(), ["b.test:80"]);
    }
}
