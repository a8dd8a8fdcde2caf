//! What a session wanted of a network that it does not have.
//!
//! A network of its own has nothing in it but a loopback, so the kernel refuses the rest by itself and
//! tells only the program, which mostly says that something did not work. Where the supervisor makes
//! the connections it knows better.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use ringfence_core::host::Host;
use ringfence_gate::refusal::flag;
use ringfence_sys::Errno;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::audit::{Denial, Denied};
use crate::procfs;

/// Where names are asked for.
const NAME_SERVICE: u16 = 53;
/// A socket that listens, in the tables of the kernel.
const LISTENS: &str = "0A";

/// A connection to outside, from a session that has no way there.
pub(super) fn outside(to: SocketAddr) -> Option<Denial> {
    let address = to.ip().to_canonical();
    // Programs connect to find out which address they would have, and send nothing.
    if to.port() == 0 || address.is_unspecified() {
        return None;
    }
    if to.port() == NAME_SERVICE {
        // The question itself comes with a later call, which nobody sees.
        let target = format!("a name (asked of {to})");
        return Some(denial(target, "--allow-host HOST".to_owned()));
    }
    if address.is_loopback() {
        return None;
    }
    let target = SocketAddr::new(address, to.port()).to_string();
    Some(denial(target, flag(&Host::Ip(address), to.port())))
}

/// A service of the host's, where nothing of the session's listens.
pub(super) fn service(port: u16) -> Option<Denial> {
    let listens = ["tcp", "tcp6"].iter().any(|table| {
        let table = procfs::whole(Path::new("/proc/thread-self/net").join(table));
        let table = table.map(|table| String::from_utf8_lossy(&table).into_owned());
        table.is_ok_and(|table| has_listener(&table, port))
    });
    let target = format!("localhost:{port} of this host");
    listens.then(|| denial(target, format!("--loopback-out {port}")))
}

/// Whether somebody listens on this port where the host's 127.0.0.1 leads.
fn has_listener(table: &str, port: u16) -> bool {
    // Addresses are written as the words of memory they are.
    const PLACES: [&str; 5] = [
        "0100007F",
        "00000000",
        "00000000000000000000000000000000",
        "0000000000000000FFFF00000100007F",
        "0000000000000000FFFF000000000000",
    ];
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (local, state) = (words.next(), words.nth(1));
        let place = local.and_then(|local| local.split_once(':'));
        place.is_some_and(|(address, own)| {
            PLACES.contains(&address) && u16::from_str_radix(own, 16) == Ok(port)
        }) && state == Some(LISTENS)
    })
}

/// Whether nobody was there, of a connection that was made or is on its way: on a loopback the answer is
/// there at once.
pub(super) fn is_refused(socket: &OwnedFd, made: Result<(), Errno>) -> bool {
    match made {
        Err(Errno::CONNREFUSED) => true,
        Err(Errno::INPROGRESS) => {
            let mut asked = [PollFd::new(socket, PollFlags::OUT)];
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            // Looking takes nothing away from whoever asks the socket what went wrong.
            poll(&mut asked, Some(&at_once)).is_ok() && asked[0].revents().contains(PollFlags::ERR)
        }
        _ => false,
    }
}

fn denial(target: String, fix: String) -> Denial {
    Denial {
        what: Denied::Host,
        target,
        count: 1,
        fix,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leads_outside_is_missed() {
        let fix = |to: &str| outside(to.parse().unwrap()).map(|denial| denial.fix);
        assert_eq!(fix("192.0.2.1:443").unwrap(), "--allow-host 192.0.2.1");
        assert_eq!(fix("192.0.2.1:22").unwrap(), "--allow-host 192.0.2.1:22");
        assert_eq!(
            fix("[2001:db8::1]:22").unwrap(),
            "--allow-host [2001:db8::1]:22"
        );
        assert_eq!(fix("127.0.0.53:53").unwrap(), "--allow-host HOST");
        for inside in ["127.0.0.1:443", "[::1]:80", "192.0.2.1:0", "0.0.0.0:80"] {
            assert_eq!(fix(inside), None, "{inside}");
        }
    }

    #[test]
    fn a_listener_is_found_where_the_loopback_leads() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(service(port).unwrap().fix, format!("--loopback-out {port}"));
        // One that is connected, and one that listens elsewhere.
        let table = "  sl  local_address rem_address   st\n\
            0: 0100007F:1538 0100007F:C001 01\n\
            1: 0A00000A:1538 00000000:0000 0A\n\
            2: 00000000000000000000000000000000:0050 00000000:0000 0A\n";
        assert!(!has_listener(table, 0x1538));
        assert!(has_listener(table, 0x50));
        drop(listener);
        assert_eq!(service(port), None);
    }
}
