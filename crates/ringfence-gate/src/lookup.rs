//! Names to addresses, outside.
//!
//! A name is looked up exactly as it was judged: no search list may make another name of it. So
//! the host's own file of names is read here, and the system's resolver is asked for a name that
//! ends in a dot.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use ringfence_core::host::Name;

/// Somebody who knows the addresses of names.
pub trait Lookup: Send + Sync {
    /// Every address of a name, in the order in which they should be tried.
    ///
    /// # Errors
    ///
    /// Whatever kept it from being looked up; the attempt is over then.
    fn addresses(&self, name: &Name) -> io::Result<Vec<IpAddr>>;
}

/// The host's own way.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Lookup for System {
    fn addresses(&self, name: &Name) -> io::Result<Vec<IpAddr>> {
        if let Ok(text) = std::fs::read_to_string("/etc/hosts") {
            let listed = listed(&text, name.as_str());
            if !listed.is_empty() {
                return Ok(listed);
            }
        }
        let absolute = format!("{}.", name.as_str());
        let found = (absolute.as_str(), 0).to_socket_addrs()?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

/// What a file of names says about a name.
fn listed(text: &str, name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse().ok()) else {
            continue;
        };
        if words.any(|word| word.eq_ignore_ascii_case(name)) {
            found.push(address);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_names_is_read_as_it_is() {
        let text = "# c\n127.0.0.1 localhost\n\n93.184.216.34\tA.test b.test # x.test\n::1 b.test\nfoo bar\n";
        let addresses =
            |name| -> Vec<String> { listed(text, name).iter().map(ToString::to_string).collect() };
        assert_eq!(addresses("a.test"), ["93.184.216.34"]);
        assert_eq!(addresses("b.test"), ["93.184.216.34", "::1"]);
        assert!(addresses("x.test").is_empty() && addresses("bar").is_empty());
    }
}
