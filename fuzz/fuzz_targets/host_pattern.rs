//! A host and a pattern: parsed values print as themselves, and no spelling gets past a pattern.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_core::host::{Host, HostPattern, Target};

fuzz_target!(|text: &str| {
    let (first, second) = text.split_once('\n').unwrap_or((text, text));
    let host = Host::parse(first).ok();
    if let Some(host) = &host {
        let printed = host.to_string();
        assert_eq!(Host::parse(&printed).as_ref(), Ok(host), "{printed:?}");
        assert!(printed.is_ascii(), "{printed:?}");
    }
    let (Ok(one), Ok(two)) = (first.parse::<HostPattern>(), second.parse::<HostPattern>()) else {
        return;
    };
    assert_eq!(one.to_string().parse().as_ref(), Ok(&one));
    let Target::Exact(named) = one.target() else {
        assert!(one.to_string().starts_with("*."));
        return;
    };
    for port in [1, 22, 80, 443, 65535] {
        let both = one.matches(named, port) && two.matches(named, port);
        let meeting = one.meet(&two).is_some_and(|meeting| meeting.matches(named, port));
        assert_eq!(meeting, both, "{one} and {two} at {port}");
        assert!(!one.covers(&two) || !two.matches(named, port) || one.matches(named, port));
    }
});
