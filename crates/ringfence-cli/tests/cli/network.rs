//! What people see of the network gate. Nothing here reaches any network: every host is refused.
use crate::world::World;

/// Asks the gate for a host, in bash alone.
const ASK: &str = r"exec 3<>/dev/tcp/127.0.0.1/61080
printf 'CONNECT denied.invalid:443 HTTP/1.1\r\nHost: denied.invalid:443\r\n\r\n' >&3
cat <&3";

#[test]
fn a_refused_host_is_told_to_the_program_the_user_and_the_report() {
    let world = World::public();
    let report = world.home().join("report.json");
    let path = report.to_str().unwrap();

    let ran = world.run(&[
        "run",
        "--allow-host",
        "allowed.invalid",
        "--report",
        path,
        "--",
        "bash",
        "-c",
        ASK,
    ]);

    assert!(ran.out.starts_with("HTTP/1.1 403 Forbidden"), "{ran:?}");
    assert!(ran.out.contains("--allow-host denied.invalid\n"), "{ran:?}");
    assert_eq!(
        ran.errors,
        "ringfence: refused on the network: denied.invalid:443 (`--allow-host denied.invalid` allows this)\n"
    );
    let text = std::fs::read_to_string(report).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    let attempts = report["network"].as_array().unwrap();
    assert_eq!(attempts.len(), 1, "{report}");
    assert_eq!(attempts[0]["host"], "denied.invalid");
    assert_eq!(attempts[0]["port"], 443);
    assert_eq!(attempts[0]["way"], "connect");
    assert_eq!(attempts[0]["verdict"], "refused");
    assert_eq!(attempts[0]["fix"], "--allow-host denied.invalid");
}

#[test]
fn without_hosts_there_is_no_gate() {
    let world = World::public();
    for flags in [&["--net", "none"][..], &[]] {
        let mut arguments = vec!["run"];
        arguments.extend(flags);
        arguments.extend(["--", "bash", "-c", ASK]);
        let ran = world.run(&arguments);
        assert!(ran.out.is_empty(), "{ran:?}");
        assert!(ran.errors.contains("Connection refused"), "{ran:?}");
        let variables = world.run(&["run", "--net", "none", "--", "env"]);
        assert!(
            !variables.out.to_lowercase().contains("proxy"),
            "{variables:?}"
        );
    }
}

#[test]
fn a_host_and_a_mode_cannot_be_asked_for_at_once() {
    let world = World::new();
    let ran = world.run(&[
        "run",
        "--net",
        "all",
        "--allow-host",
        "a.invalid",
        "--",
        "true",
    ]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
