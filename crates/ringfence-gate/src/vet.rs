//! Which addresses a name may lead to.
//!
//! A name on the list says nothing about where it points: whoever owns it can point it at the
//! host's own services, at the network the host is in, or at the machine that hands out the
//! credentials of a cloud. So every address that a look-up gives is held against this table, and
//! only what is open to the whole Internet passes. Addresses that are written in the list
//! themselves are the user's own decision.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not dialled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NotPublic(pub &'static str);

/// Refused IPv4 ranges, by their first address and the length of their prefix.
const V4: [([u8; 4], u32, &str); 17] = [
    ([0, 0, 0, 0], 8, "this network"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "shared by a carrier"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([168, 63, 129, 16], 32, "cloud metadata"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "reserved"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "reserved"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "benchmarking"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved"),
    ([255, 255, 255, 255], 32, "broadcast"),
];

/// Refused IPv6 ranges; what is not in `2000::/3` is refused without being listed.
const V6: [([u16; 8], u32, &str); 4] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "reserved"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
];

/// Where a network without IPv4 of its own keeps the rest of it (RFC 6052).
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// Lets an address pass that is open to the whole Internet.
///
/// # Errors
///
/// What the address is instead.
pub fn public(address: IpAddr) -> Result<(), NotPublic> {
    match address {
        IpAddr::V4(address) => public_v4(address),
        IpAddr::V6(address) => public_v6(address),
    }
}

fn public_v4(address: Ipv4Addr) -> Result<(), NotPublic> {
    let bits = address.to_bits();
    for (range, length, what) in V4 {
        let range = Ipv4Addr::from(range).to_bits();
        if (bits ^ range).leading_zeros() >= length {
            return Err(NotPublic(what));
        }
    }
    Ok(())
}

fn public_v6(address: Ipv6Addr) -> Result<(), NotPublic> {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return public_v4(mapped);
    }
    let [p0, p1, p2, p3, p4, p5, high, low] = address.segments();
    if [p0, p1, p2, p3, p4, p5] == NAT64 {
        let bits = u32::from(high) << 16 | u32::from(low);
        return public_v4(Ipv4Addr::from_bits(bits));
    }
    if p0 >> 13 != 1 {
        return Err(NotPublic(v6_kind(address)));
    }
    for (range, length, what) in V6 {
        let range = Ipv6Addr::from(range).to_bits();
        if (address.to_bits() ^ range).leading_zeros() >= length {
            return Err(NotPublic(what));
        }
    }
    Ok(())
}

fn v6_kind(address: Ipv6Addr) -> &'static str {
    if address.is_loopback() {
        "loopback"
    } else if address.is_unique_local() {
        "private"
    } else if address.is_unicast_link_local() {
        "link-local"
    } else if address.is_multicast() {
        "multicast"
    } else {
        "reserved"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kind(text: &str) -> Option<&'static str> {
        let refused = public(text.parse().unwrap()).err();
        refused.map(|NotPublic(what)| what)
    }

    #[test]
    fn addresses_of_every_kind() {
        for (address, expected) in [
            ("93.184.216.34", None),
            ("1.1.1.1", None),
            ("100.63.255.255", None),
            ("100.128.0.1", None),
            ("172.15.0.1", None),
            ("172.32.0.1", None),
            ("198.17.0.1", None),
            ("198.20.0.1", None),
            ("168.63.129.15", None),
            ("2606:4700::1111", None),
            ("2a00:1450::1", None),
            ("64:ff9b::5db8:d822", None),
            ("::ffff:1.1.1.1", None),
            ("0.0.0.0", Some("this network")),
            ("0.1.2.3", Some("this network")),
            ("10.0.0.1", Some("private")),
            ("100.64.0.1", Some("shared by a carrier")),
            ("100.100.100.200", Some("shared by a carrier")),
            ("127.0.0.1", Some("loopback")),
            ("127.255.255.255", Some("loopback")),
            ("168.63.129.16", Some("cloud metadata")),
            ("169.254.169.254", Some("link-local")),
            ("172.16.0.1", Some("private")),
            ("172.31.255.255", Some("private")),
            ("192.0.0.192", Some("reserved")),
            ("192.0.2.1", Some("documentation")),
            ("192.168.1.1", Some("private")),
            ("198.18.0.1", Some("benchmarking")),
            ("198.19.255.255", Some("benchmarking")),
            ("224.0.0.251", Some("multicast")),
            ("255.255.255.255", Some("reserved")),
            ("::", Some("reserved")),
            ("::1", Some("loopback")),
            ("::127.0.0.1", Some("reserved")),
            ("::ffff:127.0.0.1", Some("loopback")),
            ("::ffff:7f00:1", Some("loopback")),
            ("::ffff:169.254.169.254", Some("link-local")),
            ("64:ff9b::7f00:1", Some("loopback")),
            ("64:ff9b::a9fe:a9fe", Some("link-local")),
            ("64:ff9b:1::1", Some("reserved")),
            ("100::1", Some("reserved")),
            ("2001::1", Some("reserved")),
            ("2001:1ff::1", Some("reserved")),
            ("2001:db8::1", Some("documentation")),
            ("2002:7f00:1::", Some("6to4")),
            ("3fff::1", Some("documentation")),
            ("fc00::1", Some("private")),
            ("fd00:ec2::254", Some("private")),
            ("fe80::1", Some("link-local")),
            ("fec0::1", Some("reserved")),
            ("ff02::1", Some("multicast")),
        ] {
            assert_eq!(kind(address), expected, "{address}");
        }
    }

    proptest! {
        #[test]
        fn a_mapped_address_is_judged_as_what_it_is(bits: u32) {
            let plain = Ipv4Addr::from_bits(bits);
            let mapped = IpAddr::V6(plain.to_ipv6_mapped());
            prop_assert_eq!(public(mapped), public(IpAddr::V4(plain)));
        }

        #[test]
        fn what_the_standard_library_calls_local_never_passes(bits: u32) {
            let address = Ipv4Addr::from_bits(bits);
            let local = address.is_loopback() || address.is_private() || address.is_link_local()
                || address.is_multicast() || address.is_unspecified() || address.is_broadcast()
                || address.is_documentation();
            prop_assert!(!local || public(IpAddr::V4(address)).is_err());
        }
    }
}
