//! What a judge says, and what it keeps of a look-up's answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use ringfence_core::origin::{Located, Origin};
use ringfence_core::policy::Network;

use super::*;

/// A policy that lists these hosts.
pub(crate) fn network(patterns: &[&str]) -> Network {
    let origin = Origin::Flag {
        name: "--allow-host",
    };
    let hosts = patterns
        .iter()
        .map(|pattern| Located::new(pattern.parse().unwrap(), origin.clone()))
        .collect();
    Network::of_hosts(hosts, origin)
}

fn destination(text: &str) -> Destination {
    Destination::parse(text.as_bytes(), None).unwrap()
}

#[test]
fn an_empty_list_means_nothing() {
    let judge = Judge::new(network(&[]));
    for text in ["a.test:443", "93.184.216.34:80", "[2606:4700::1]:443"] {
        let verdict = judge.judge(&destination(text));
        assert!(matches!(
            verdict,
            Verdict::Refused(Reason::NotListed { .. })
        ));
    }
}

#[test]
fn a_list_means_what_it_says() {
    let judge = Judge::new(network(&["*.ok.test", "one.test:22", "93.184.216.34:*"]));
    for (text, allowed) in [
        ("a.ok.test:443", true),
        ("a.ok.test:80", true),
        ("a.ok.test:22", false),
        ("ok.test:443", false),
        ("evilok.test:443", false),
        ("ok.test.evil.test:443", false),
        ("one.test:22", true),
        ("one.test:443", false),
        ("93.184.216.34:9", true),
        ("93.184.216.35:443", false),
        ("[::ffff:93.184.216.34]:443", false),
        ("127.0.0.1:443", false),
        ("localhost:443", false),
    ] {
        let verdict = judge.judge(&destination(text));
        assert_eq!(
            matches!(verdict, Verdict::Allowed { .. }),
            allowed,
            "{text}"
        );
    }
    assert!(judge.knows_name(&Host::parse("one.test").unwrap()));
    assert!(judge.knows_name(&Host::parse("x.ok.test").unwrap()));
    assert!(!judge.knows_name(&Host::parse("ok.test").unwrap()));
    assert!(!judge.knows_name(&Host::parse("denied.test").unwrap()));
}

#[test]
fn mixed_answers_are_filtered() {
    let judge = Judge::new(network(&["a.test", "10.0.0.7:443"]));
    let addresses = |texts: &[&str]| -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    };
    let vet = |texts: &[&str], port| judge.vet(addresses(texts), port);
    assert_eq!(
        vet(&["10.0.0.1", "93.184.216.34", "93.184.216.34"], 443),
        Ok(addresses(&["93.184.216.34"]))
    );
    assert_eq!(
        vet(&["::ffff:93.184.216.34"], 443),
        Ok(addresses(&["93.184.216.34"])),
        "dialled as what it stands for"
    );
    let loopback = Reason::Address {
        address: "127.0.0.1".parse().unwrap(),
        what: "loopback",
    };
    assert_eq!(vet(&["127.0.0.1", "10.0.0.1"], 443), Err(loopback.clone()));
    assert_eq!(vet(&["::ffff:7f00:1"], 443), Err(loopback));
    assert_eq!(vet(&["10.0.0.7"], 443), Ok(addresses(&["10.0.0.7"])));
    assert!(vet(&["10.0.0.7"], 80).is_err(), "listed for another port");
    assert_eq!(vet(&[], 443), Ok(Vec::new()));
}

/// Says yes to one host, no to another, and nothing about the rest.
#[derive(Debug, Default)]
struct Somebody {
    asked: AtomicUsize,
    /// Held by a test for as long as the slow answer is not to come.
    slow: Mutex<()>,
}

impl Decider for Somebody {
    fn decide(&self, destination: &Destination) -> Answer {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match destination.to_string().as_str() {
            "yes.test:443" => Answer::Allow,
            "slow.test:443" => {
                drop(self.slow.lock());
                Answer::Allow
            }
            _ => Answer::Deny,
        }
    }
}

#[test]
fn somebody_is_asked_once_and_silence_means_no() {
    let somebody = Arc::new(Somebody::default());
    let asking =
        |patience| Judge::new(network(&["listed.test"])).asking(somebody.clone(), patience);
    let judge = asking(Duration::from_mins(1));
    let judged = |text| judge.judge(&destination(text));
    let asked = || somebody.asked.load(Ordering::Relaxed);
    assert!(matches!(judged("listed.test:443"), Verdict::Allowed { .. }));
    assert_eq!(asked(), 0, "listed: not asked");
    for _ in 0..3 {
        assert!(matches!(judged("yes.test:443"), Verdict::Allowed { .. }));
        assert_eq!(judged("no.test:443"), Verdict::Refused(Reason::Denied));
    }
    assert_eq!(asked(), 2);
    for own in [
        "127.0.0.1:80",
        "[::1]:80",
        "10.0.0.1:80",
        "localhost:80",
        "x.localhost:80",
    ] {
        let verdict = judged(own);
        assert!(
            matches!(verdict, Verdict::Refused(Reason::NotListed { .. })),
            "{own}"
        );
    }
    assert_eq!(asked(), 2, "nobody can know what these mean");
    assert_eq!(judged("yes.test:80"), Verdict::Refused(Reason::Denied));
    // Silence, and an answer that is kept although it comes too late for the first who waited.
    let judge = asking(Duration::from_millis(100));
    let judged = |text| judge.judge(&destination(text));
    let silent = somebody.slow.lock();
    assert_eq!(judged("slow.test:443"), Verdict::Refused(Reason::TimedOut));
    drop(silent);
    let late = (0..600).any(|_| matches!(judged("slow.test:443"), Verdict::Allowed { .. }));
    assert!(late, "the answer was forgotten");
    assert_eq!(asked(), 4, "asked once");
}
