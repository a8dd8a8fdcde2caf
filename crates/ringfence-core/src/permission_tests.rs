//! What covers what.

use proptest::prelude::*;

use super::*;

fn host(text: &str) -> Permission {
    Permission::Host(text.parse().unwrap())
}

fn write(text: &str) -> Permission {
    Permission::Write(AbsPath::parse(text).unwrap())
}

fn set(permissions: &[Permission]) -> Permissions {
    permissions.iter().cloned().collect()
}

#[test]
fn nothing_covers_nothing() {
    let none = Permissions::new();
    for wanted in [host("a.org"), write("/a"), Permission::AnyHost] {
        assert!(!none.covers(&wanted));
    }
}

#[test]
fn a_subtree_covers_what_is_below_and_neither_neighbour_nor_parent() {
    let granted = set(&[write("/a/b")]);
    assert!(granted.covers(&write("/a/b")));
    assert!(granted.covers(&write("/a/b/c/d")));
    assert!(!granted.covers(&write("/a/bc")));
    assert!(!granted.covers(&write("/a")));
}

#[test]
fn a_wildcard_covers_names_below_and_not_the_apex() {
    let granted = set(&[host("*.example.org")]);
    assert!(granted.covers(&host("a.example.org")));
    assert!(granted.covers(&host("a.b.example.org")));
    assert!(granted.covers(&host("*.b.example.org")));
    assert!(!granted.covers(&host("example.org")));
    assert!(!granted.covers(&host("evilexample.org")));
    assert!(!granted.covers(&host("a.example.org:22")), "another port");
    assert!(!granted.covers(&Permission::AnyHost));
}

#[test]
fn any_host_covers_hosts_and_any_write_covers_writes_and_neither_the_other() {
    let hosts = set(&[Permission::AnyHost]);
    assert!(hosts.covers(&host("a.org:22")));
    assert!(!hosts.covers(&write("/a")) && !hosts.covers(&Permission::WriteAll));
    let writes = set(&[Permission::WriteAll]);
    assert!(writes.covers(&write("/a")));
    assert!(!writes.covers(&host("a.org")) && !writes.covers(&Permission::AnyHost));
}

#[test]
fn running_outside_covers_nothing_else_and_is_not_the_fallback() {
    let outside = set(&[Permission::Unsandboxed]);
    for wanted in [
        host("a.org"),
        write("/a"),
        Permission::WriteAll,
        Permission::AnyHost,
        Permission::Git(GitLevel::Read),
        Permission::Fallback,
    ] {
        assert!(!outside.covers(&wanted), "{wanted}");
    }
    assert!(!set(&[Permission::Fallback]).covers(&Permission::Unsandboxed));
}

#[test]
fn recording_prunes_what_is_narrower_and_keeps_what_is_broader() {
    let mut all = set(&[write("/a/b"), host("x.example.org"), write("/z")]);
    all.insert(write("/a"));
    all.insert(host("*.example.org"));
    assert_eq!(all, set(&[write("/z"), write("/a"), host("*.example.org")]));
    all.insert(write("/a/c"));
    all.insert(host("y.example.org"));
    assert_eq!(all.iter().count(), 3, "a broader one stands already");
    all.insert(Permission::AnyHost);
    assert_eq!(all, set(&[write("/z"), write("/a"), Permission::AnyHost]));
    let mut git = set(&[Permission::Git(GitLevel::Read)]);
    git.insert(Permission::Git(GitLevel::Write));
    assert_eq!(git, set(&[Permission::Git(GitLevel::Write)]));
}

#[test]
fn permissions_read_back_as_they_are_written() {
    for permission in [
        host("*.example.org:8443"),
        write("/a b"),
        Permission::AnyHost,
        Permission::Git(GitLevel::Write),
        Permission::Fallback,
    ] {
        let text = serde_json::to_string(&permission).unwrap();
        assert_eq!(
            serde_json::from_str::<Permission>(&text).unwrap(),
            permission,
            "{text}"
        );
    }
    for wrong in [
        r#"{"kind":"host","value":"*"}"#,
        r#"{"kind":"write","value":"relative"}"#,
        r#"{"kind":"everything"}"#,
    ] {
        assert!(
            serde_json::from_str::<Permission>(wrong).is_err(),
            "{wrong}"
        );
    }
}

fn permission() -> impl Strategy<Value = Permission> {
    let name = "[ab]{1,2}";
    let hosts = (
        any::<bool>(),
        name,
        name,
        prop_oneof![Just(""), Just(":22"), Just(":*")],
    );
    let hosts = hosts.prop_map(|(wild, a, b, port)| {
        let star = if wild { "*." } else { "" };
        host(&format!("{star}{a}.{b}.org{port}"))
    });
    let paths = proptest::collection::vec(name, 0..4);
    let paths = paths.prop_map(|names| write(&format!("/{}", names.join("/"))));
    let levels = prop_oneof![
        Just(GitLevel::Read),
        Just(GitLevel::Write),
        Just(GitLevel::Full)
    ];
    prop_oneof![
        4 => hosts,
        4 => paths,
        1 => levels.prop_map(Permission::Git),
        1 => Just(Permission::AnyHost),
        1 => Just(Permission::WriteAll),
        1 => Just(Permission::Unsandboxed),
        1 => Just(Permission::Fallback),
    ]
}

proptest! {
    #[test]
    fn covering_is_an_order(a in permission(), b in permission(), c in permission()) {
        prop_assert!(a.covers(&a));
        prop_assert!(!(a.covers(&b) && b.covers(&c)) || a.covers(&c));
        if a.covers(&b) && b.covers(&a) {
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn pruning_loses_nothing_and_keeps_nothing_twice(all in proptest::collection::vec(permission(), 0..12)) {
        let set = set(&all);
        for wanted in &all {
            prop_assert!(set.covers(wanted), "{} was lost", wanted);
        }
        for kept in &set {
            prop_assert!(all.contains(kept), "{} was made up", kept);
            prop_assert_eq!(set.iter().filter(|other| other.covers(kept)).count(), 1);
        }
    }
}
