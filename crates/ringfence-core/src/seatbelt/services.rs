//! Services and devices of macOS that a confined program may use.
//!
//! A service runs outside, as somebody else's program: what it does for a caller, it does with its
//! own rights. So the list is short, and each entry says what it is for. Not on it, on purpose:
//! launchd and the launch services (start programs outside), Apple Events (make other programs act), the
//! pasteboard, the keychain's servers, preferences (write outside), Spotlight and file events (tell
//! names of hidden files), the window server.

use crate::settings::NetworkMode;

/// A service that may be asked.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Its global name.
    pub name: &'static str,
    /// What it is for.
    pub why: &'static str,
    /// The least of the network that a policy must allow for it.
    pub from: NetworkMode,
}

/// Every service that may be asked.
pub const SERVICES: &[Service] = &[
    Service {
        name: "com.apple.system.opendirectoryd.libinfo",
        why: "names of users and groups",
        from: NetworkMode::None,
    },
    Service {
        name: "com.apple.system.opendirectoryd.membership",
        why: "who is in which group",
        from: NetworkMode::None,
    },
    Service {
        name: "com.apple.system.notification_center",
        why: "the C library asks whether the time zone changed",
        from: NetworkMode::None,
    },
    Service {
        name: "com.apple.system.logger",
        why: "syslog",
        from: NetworkMode::None,
    },
    Service {
        name: "com.apple.logd",
        why: "the system's log, which every framework writes to",
        from: NetworkMode::None,
    },
    Service {
        name: "com.apple.bsd.dirhelper",
        why: "where the user's temporary directory is",
        from: NetworkMode::None,
    },
    Service {
        name: "com.apple.SystemConfiguration.configd",
        why: "proxies and interfaces",
        from: NetworkMode::All,
    },
    Service {
        name: "com.apple.SystemConfiguration.DNSConfiguration",
        why: "which name servers to ask",
        from: NetworkMode::All,
    },
    Service {
        name: "com.apple.dnssd.service",
        why: "looking up names",
        from: NetworkMode::All,
    },
    Service {
        name: "com.apple.trustd",
        why: "checking certificates",
        from: NetworkMode::All,
    },
    Service {
        name: "com.apple.trustd.agent",
        why: "checking certificates, for the user",
        from: NetworkMode::All,
    },
];

/// Devices that hold nothing of anybody's.
pub const DEVICES: &[&str] = &[
    "/dev/dtracehelper",
    "/dev/fd",
    "/dev/null",
    "/dev/ptmx",
    "/dev/random",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/urandom",
    "/dev/zero",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_for_others_is_listed() {
        let dangerous = [
            "launchd",
            "launchservices",
            "lsd",
            "appleevents",
            "pasteboard",
            "securityd",
            "securityserver",
            "cfprefsd",
            "spotlight",
            "metadata",
            "fsevents",
            "windowserver",
            "tccd",
            "xpc",
            "coreservices",
            "dock",
        ];
        for service in SERVICES {
            let name = service.name.to_lowercase();
            assert!(!dangerous.iter().any(|word| name.contains(word)), "{name}");
            assert!(!service.why.is_empty());
        }
    }

    #[test]
    fn names_are_looked_up_only_with_a_network() {
        for service in SERVICES {
            let looks_up = service.name.contains("dns") || service.name.contains("DNS");
            assert!(
                !looks_up || service.from == NetworkMode::All,
                "{}",
                service.name
            );
        }
    }
}
