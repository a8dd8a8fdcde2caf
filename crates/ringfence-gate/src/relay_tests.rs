//! Relays between real sockets, with a look at what the client says.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::*;
use crate::Destination;
use crate::agreement::Agreement;
use crate::answer::tests::{again, hello};
use crate::event::{Log, Way as By};
use crate::hello::tests::{message, name_extension, records};

/// Both ends of a relay, which is held to a host.
struct Held {
    client: TcpStream,
    server: TcpStream,
    relay: JoinHandle<io::Result<Ended>>,
    /// The relay ends with it at the latest.
    _end: std::os::fd::OwnedFd,
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    near.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    (near, listener.accept().unwrap().0)
}

impl Held {
    fn to(target: &'static str) -> Self {
        let (client, inside) = pair();
        let (server, outside) = pair();
        let (stop, end) = crate::stream::pipe().unwrap();
        let stop = Arc::new(stop);
        let relay = std::thread::spawn(move || {
            let destination = Destination::parse(target.as_bytes(), None).unwrap();
            let entry = Log::default().begin(By::Connect, &destination);
            let mut agreement = Agreement::new(&destination);
            let mut inside = Stream::new(inside, Arc::clone(&stop))?;
            let mut outside = Stream::new(outside, stop)?;
            relay(
                &mut inside,
                &mut outside,
                &entry,
                Some(&mut agreement as &mut dyn Inspect),
            )
        });
        Self {
            client,
            server,
            relay,
            _end: end,
        }
    }

    /// The client says this, and the server hears it.
    #[track_caller]
    fn there(&mut self, words: &[u8]) {
        self.client.write_all(words).unwrap();
        let mut heard = vec![0; words.len()];
        self.server.read_exact(&mut heard).unwrap();
        assert_eq!(heard, words);
    }

    /// The server says this, and the client hears it.
    #[track_caller]
    fn back(&mut self, words: &[u8]) {
        self.server.write_all(words).unwrap();
        let mut heard = vec![0; words.len()];
        self.client.read_exact(&mut heard).unwrap();
        assert_eq!(heard, words);
    }

    /// Why the relay ended by itself; the server has heard nothing more.
    #[track_caller]
    fn refused(mut self) -> String {
        // A relay that finds nothing wrong ends with them.
        for end in [&self.client, &self.server] {
            let _ = end.shutdown(Shutdown::Write);
        }
        let ended = self.relay.join().unwrap().unwrap();
        let Ended::Refused(why) = ended else {
            panic!("{ended:?}");
        };
        let mut rest = Vec::new();
        let _ = self.server.read_to_end(&mut rest);
        assert_eq!(rest, b"");
        why
    }

    #[track_caller]
    fn ends(self) {
        drop((self.client, self.server));
        let _ = self.relay.join().unwrap();
    }
}

fn client_hello(name: &str) -> Vec<u8> {
    records(&message(&name_extension(name.as_bytes())), 64)
}

#[test]
fn a_second_hello_for_another_host_does_not_arrive() {
    let mut held = Held::to("allowed.test:443");
    held.there(&client_hello("allowed.test"));
    held.back(&again());
    held.there(b"\x14\x03\x03\0\x01\x01");
    held.client.write_all(&client_hello("denied.test")).unwrap();
    let why = held.refused();
    assert!(why.contains("is not the host"), "{why}");
}

/// What may go on goes on at once, and what follows the answer as fast as ever.
#[test]
fn a_connection_that_agrees_is_carried() {
    let mut held = Held::to("allowed.test:443");
    held.there(&client_hello("allowed.test"));
    // Early data, in pieces that are no whole records.
    held.there(b"\x17\x03\x03\0\x08half");
    held.there(b"done\x17\x03\x03\0\x01.");
    held.back(&again()[..30]);
    held.back(&again()[30..]);
    held.there(&client_hello("allowed.test"));
    held.back(&hello());
    held.there(b"\x16\x03");
    held.back(b"anything");
    let large = vec![7; 1 << 20];
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let mut client = &held.client;
            let large = &large;
            scope.spawn(move || client.write_all(large).unwrap());
            let mut heard = vec![0; large.len()];
            held.server.read_exact(&mut heard).unwrap();
            assert!(heard == *large);
        });
    }
    held.ends();
}

/// A client that has said nothing wrong may wait, and may go.
#[test]
fn a_client_that_leaves_is_not_refused() {
    for target in ["allowed.test:443", "allowed.test:25"] {
        let held = Held::to(target);
        held.client.shutdown(Shutdown::Write).unwrap();
        let mut held = held;
        held.back(b"220 a greeting\r\n");
        held.ends();
        let mut held = Held::to(target);
        held.there(&client_hello("allowed.test"));
        held.client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(held.server.read(&mut [0]).unwrap(), 0);
        held.back(&hello());
        held.ends();
    }
}
