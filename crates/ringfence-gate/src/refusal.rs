//! What a client is told, in words that a person and a program can act on.

use std::fmt::Write;

use ringfence_core::host::Host;

use crate::Destination;
use crate::judge::Reason;

/// Why a client did not get what it asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Refusal {
    /// What it sent cannot be read in one way only.
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// It did not say the session's token, so it may be anybody.
    Stranger,
    /// It may not be reached.
    Policy {
        /// What was asked for.
        destination: Destination,
        /// Why not.
        reason: Reason,
    },
    /// It may be reached, and could not be.
    Unreachable {
        /// What was asked for.
        destination: Destination,
        /// What happened.
        failure: Failure,
    },
}

/// What went wrong on the way to an allowed host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// It did not answer in time.
    Late,
    /// Its name could not be looked up.
    Lookup,
    /// Nobody listens there.
    Refused,
    /// There is no way there, or the connection broke.
    Unreachable,
    /// The caller's own proxy did not let it through.
    Upstream,
}

impl Refusal {
    /// The status of an HTTP answer.
    pub fn status(&self) -> (u16, &'static str) {
        match self {
            Self::Malformed { .. } => (400, "Bad Request"),
            Self::Stranger => (407, "Proxy Authentication Required"),
            Self::Policy { .. } => (403, "Forbidden"),
            Self::Unreachable {
                failure: Failure::Late,
                ..
            } => (504, "Gateway Timeout"),
            Self::Unreachable { .. } => (502, "Bad Gateway"),
        }
    }

    /// The kind of error, by its name in RFC 9209.
    pub fn proxy_status(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "http_request_error",
            Self::Stranger => "http_request_denied",
            Self::Policy { reason, .. } => match reason {
                Reason::Address { .. } => "destination_ip_prohibited",
                Reason::Denied | Reason::NotListed { .. } | Reason::TimedOut => {
                    "http_request_denied"
                }
            },
            Self::Unreachable { failure, .. } => match failure {
                Failure::Late => "connection_timeout",
                Failure::Lookup => "dns_error",
                Failure::Refused => "connection_refused",
                Failure::Unreachable => "destination_unavailable",
                Failure::Upstream => "proxy_internal_response",
            },
        }
    }

    /// The reason in one line.
    pub fn line(&self) -> String {
        match self {
            Self::Malformed { why } => format!("the request was not understood: {why}"),
            Self::Stranger => "the token of the session was not said".to_owned(),
            Self::Policy {
                destination,
                reason,
            } => match reason {
                Reason::Address { address, what } => format!(
                    "{destination} leads to {address}, which is not a public address ({what})"
                ),
                Reason::Denied => format!("{destination} is not allowed: it was denied when asked"),
                Reason::NotListed { origin } => {
                    format!("{destination} is not allowed: no rule lists it ({origin})")
                }
                Reason::TimedOut => {
                    format!("{destination} is not allowed: nobody answered in time")
                }
            },
            Self::Unreachable {
                destination,
                failure,
            } => {
                let what = match failure {
                    Failure::Late => "did not answer in time",
                    Failure::Lookup => "could not be looked up",
                    Failure::Refused => "refused the connection",
                    Failure::Unreachable => "could not be reached",
                    Failure::Upstream => "was not let through by the proxy of this network",
                };
                format!("{destination} is allowed, and {what}")
            }
        }
    }

    /// The flag that lets it through with the next start, if one does.
    pub fn fix(&self) -> Option<String> {
        let Self::Policy {
            destination: Destination { host, port },
            reason,
        } = self
        else {
            return None;
        };
        Some(match reason {
            // Beside the name, which is allowed already.
            Reason::Address { address, .. } => flag(&Host::Ip(*address), *port),
            Reason::Denied | Reason::NotListed { .. } | Reason::TimedOut if is_localhost(host) => {
                format!("--loopback-out {port}")
            }
            Reason::Denied | Reason::NotListed { .. } | Reason::TimedOut => flag(host, *port),
        })
    }

    /// What would make it work, in words, if the client can have the user do anything: who was asked has
    /// answered.
    pub fn remedy(&self) -> Option<String> {
        let Self::Policy {
            destination,
            reason,
        } = self
        else {
            return None;
        };
        let fix = self.fix()?;
        match reason {
            Reason::Denied | Reason::TimedOut => None,
            Reason::Address { .. } => Some(format!("{fix} as well")),
            Reason::NotListed { .. } if is_localhost(&destination.host) => Some(format!(
                "{fix}, for a service of the host; the session's own loopback needs no proxy"
            )),
            Reason::NotListed { .. } => Some(fix),
        }
    }

    /// The whole HTTP answer. The connection ends after it.
    pub fn to_http(&self, method: &str) -> Vec<u8> {
        let (status, words) = self.status();
        let mut body = format!("ringfence: {}\n", self.line());
        if let Some(remedy) = self.remedy() {
            let _ = writeln!(
                body,
                "To allow it, start the session with {remedy}\nRetrying does not help before that."
            );
        }
        let challenge = match self {
            Self::Stranger => "Proxy-Authenticate: Basic realm=\"ringfence\"\r\n",
            _ => "",
        };
        let mut out = format!(
            "HTTP/1.1 {status} {words}\r\n{challenge}Proxy-Status: ringfence; error={}\r\nVia: 1.1 ringfence\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.proxy_status(),
            body.len()
        );
        if method != "HEAD" {
            out.push_str(&body);
        }
        out.into_bytes()
    }
}

fn is_localhost(host: &Host) -> bool {
    match host {
        Host::Ip(address) => address.to_canonical().is_loopback(),
        Host::Name(name) => name.as_str() == "localhost" || name.as_str().ends_with(".localhost"),
    }
}

/// The flag that would allow a host on a port.
pub fn flag(host: &Host, port: u16) -> String {
    match port {
        80 | 443 => format!("--allow-host {host}"),
        port => format!("--allow-host {host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Refusal {
        Refusal::Policy {
            destination: Destination::parse(text.as_bytes(), None).unwrap(),
            reason: Reason::NotListed {
                origin: "the default of the preset `agent`".to_owned(),
            },
        }
    }

    #[test]
    fn a_refusal_names_the_host_the_rule_and_the_flag() {
        let text = String::from_utf8(policy("denied.test:443").to_http("CONNECT")).unwrap();
        let expected = "HTTP/1.1 403 Forbidden\r\n\
            Proxy-Status: ringfence; error=http_request_denied\r\n\
            Via: 1.1 ringfence\r\n\
            Content-Type: text/plain; charset=utf-8\r\n\
            Content-Length: 211\r\n\
            Connection: close\r\n\r\n\
            ringfence: denied.test:443 is not allowed: no rule lists it (the default of the preset `agent`)\n\
            To allow it, start the session with --allow-host denied.test\n\
            Retrying does not help before that.\n";
        assert_eq!(
            text.split_once("Content-Length"),
            expected
                .split_once("Content-Length")
                .map(|(a, _)| a)
                .zip(text.split_once("Content-Length").map(|(_, b)| b))
        );
        assert!(text.ends_with("before that.\n"), "{text}");
        assert!(text.contains("--allow-host denied.test\n"), "{text}");
    }

    #[test]
    fn the_flag_says_the_port_where_it_has_to() {
        assert_eq!(
            policy("denied.test:22").remedy().as_deref(),
            Some("--allow-host denied.test:22")
        );
        assert_eq!(
            policy("[2606:4700::1]:22").remedy().as_deref(),
            Some("--allow-host [2606:4700::1]:22")
        );
        for own in ["localhost:3000", "127.0.0.1:3000", "[::1]:3000"] {
            let remedy = policy(own).remedy().unwrap();
            assert!(remedy.starts_with("--loopback-out 3000"), "{remedy}");
        }
    }

    #[test]
    fn a_name_that_leads_to_a_private_address_needs_that_allowed_too() {
        let address = Refusal::Policy {
            destination: Destination::parse(b"db.test:5432", None).unwrap(),
            reason: Reason::Address {
                address: "10.0.0.7".parse().unwrap(),
                what: "private",
            },
        };
        assert_eq!(address.fix().as_deref(), Some("--allow-host 10.0.0.7:5432"));
        assert!(address.remedy().unwrap().ends_with(" as well"));
    }

    #[test]
    fn the_answer_to_head_has_no_body() {
        let text = policy("denied.test:80").to_http("HEAD");
        assert!(text.ends_with(b"\r\n\r\n"));
    }
}
