//! Addresses that mean names, for programs that know no proxy.
//!
//! Inside a session an allowed name has an address of the session's own loopback that means this
//! name and nothing else. Whoever connects to it is carried to the gate: not by that address,
//! where a server inside might listen, but by a second one that means the name and the port
//! together, on the one port where the gate itself listens. Both kinds of address are handed out
//! one after the other and never change their meaning while the session lives.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::{Mutex, PoisonError};

use ringfence_core::host::Host;

use crate::Destination;
use crate::judge::Judge;

/// Where the gate listens for HTTP and SOCKS clients, inside.
pub const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 61_080);
/// The port on which connections are carried to the gate, on any address inside.
pub const CARRIER_PORT: u16 = 61_081;
/// Where names are asked for, inside: where a well-known service of many hosts also is.
pub const NAME_SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 53), 53);

/// Addresses that mean a name: 127.192.0.0/10.
const NAMES: u32 = 0x7fc0_0000;
/// Addresses that mean a destination: 127.128.0.0/10.
const DESTINATIONS: u32 = 0x7f80_0000;
/// What both have of their own.
const OWN_BITS: u32 = 0x003f_ffff;
/// How many of each a session can have. One that wants more has only itself to blame.
const MOST: usize = 16_384;

/// What the addresses of one session mean.
#[derive(Debug, Default)]
pub struct Names(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    names: Table<Host>,
    destinations: Table<Destination>,
}

#[derive(Debug)]
struct Table<T> {
    by_value: HashMap<T, u32>,
    by_number: Vec<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            by_value: HashMap::new(),
            by_number: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    /// The number of a value, a new one if it has none yet.
    fn number(&mut self, value: &T) -> Option<u32> {
        if let Some(number) = self.by_value.get(value) {
            return Some(*number);
        }
        if self.by_number.len() >= MOST {
            return None;
        }
        self.by_number.push(value.clone());
        // Numbers begin with one: the first address of a range looks like the range itself.
        let number = u32::try_from(self.by_number.len()).ok()?;
        self.by_value.insert(value.clone(), number);
        Some(number)
    }

    fn value(&self, number: u32) -> Option<&T> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.by_number.get(index)
    }
}

/// What becomes of a connection that a program inside makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carried {
    /// It goes where the program said: that stays inside, or fails.
    AsIs,
    /// It goes to the gate.
    Here(SocketAddrV4),
}

impl Names {
    /// The address that means a name; `None` if there are too many.
    pub fn address(&self, host: &Host) -> Option<Ipv4Addr> {
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = tables.names.number(host)?;
        Some(Ipv4Addr::from_bits(NAMES | number))
    }

    /// What a connection that was carried here is for.
    pub fn destination(&self, address: Ipv4Addr) -> Option<Destination> {
        let number = own_bits(address, DESTINATIONS)?;
        let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.destinations.value(number).cloned()
    }

    /// Where a connection to this address has to go.
    ///
    /// Only what may come to something is carried: an address that nobody allows fails the way it
    /// does where there is no network.
    pub fn carry(&self, to: SocketAddr, judge: &Judge) -> Carried {
        let Some(destination) = self.meant(to) else {
            return Carried::AsIs;
        };
        let named = matches!(destination.host, Host::Name(_));
        if !named && !judge.may_allow(&destination) {
            return Carried::AsIs;
        }
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tables.destinations.number(&destination) {
            Some(number) => Carried::Here(SocketAddrV4::new(
                Ipv4Addr::from_bits(DESTINATIONS | number),
                CARRIER_PORT,
            )),
            None => Carried::AsIs,
        }
    }

    /// What somebody means who connects to this address; `None` if it is inside.
    pub fn meant(&self, to: SocketAddr) -> Option<Destination> {
        let address = to.ip().to_canonical();
        let port = to.port();
        if port == 0 || address.is_unspecified() {
            return None;
        }
        if let IpAddr::V4(address) = address
            && let Some(number) = own_bits(address, NAMES)
        {
            let tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let host = tables.names.value(number)?.clone();
            return Some(Destination { host, port });
        }
        let outside = !address.is_loopback();
        outside.then(|| Destination::of(SocketAddr::new(address, port)))
    }
}

fn own_bits(address: Ipv4Addr, range: u32) -> Option<u32> {
    let bits = address.to_bits();
    (bits & !OWN_BITS == range).then_some(bits & OWN_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::network;

    #[test]
    fn an_address_means_one_name_and_no_other() {
        let (names, judge) = (Names::default(), Judge::new(network(&["*.ok.test"])));
        let host = |text| Host::parse(text).unwrap();
        let first = names.address(&host("a.ok.test")).unwrap();
        let second = names.address(&host("b.ok.test")).unwrap();
        assert_ne!(first, second);
        assert_eq!(names.address(&host("A.ok.test.")), Some(first));
        assert!(first.is_loopback());
        let to = |address: Ipv4Addr, port| SocketAddr::from((address, port));
        let Carried::Here(carrier) = names.carry(to(first, 22), &judge) else {
            panic!("not carried");
        };
        assert_eq!(carrier.port(), CARRIER_PORT);
        let meant = names.destination(*carrier.ip()).unwrap();
        assert_eq!(meant.to_string(), "a.ok.test:22");
        let mapped = SocketAddr::from((second.to_ipv6_mapped(), 443));
        assert!(matches!(names.carry(mapped, &judge), Carried::Here(_)));
        let Carried::Here(other) = names.carry(to(second, 22), &judge) else {
            panic!("not carried");
        };
        assert_ne!(other, carrier);
    }

    #[test]
    fn what_is_inside_stays_inside() {
        let (names, judge) = (Names::default(), Judge::new(network(&["93.184.216.34:22"])));
        for (address, carried) in [
            ("127.0.0.1:80", false),
            ("127.192.0.1:80", false),
            ("127.128.0.1:61081", false),
            ("0.0.0.0:80", false),
            ("[::1]:80", false),
            ("[::]:80", false),
            ("[::ffff:127.0.0.1]:80", false),
            ("93.184.216.34:0", false),
            ("93.184.216.34:80", false),
            ("93.184.216.35:22", false),
            ("93.184.216.34:22", true),
            ("[::ffff:93.184.216.34]:22", true),
        ] {
            let outcome = names.carry(address.parse().unwrap(), &judge);
            assert_eq!(matches!(outcome, Carried::Here(_)), carried, "{address}");
        }
    }

    #[test]
    fn a_session_has_only_so_many() {
        let names = Names::default();
        for number in 0..MOST {
            let host = Host::parse(&format!("n{number}.test")).unwrap();
            assert!(names.address(&host).is_some());
        }
        assert_eq!(names.address(&Host::parse("more.test").unwrap()), None);
        assert!(names.address(&Host::parse("n1.test").unwrap()).is_some());
    }
}
