//! 59: keys of the host's session.

use ringfence_core::plan::Step;
use ringfence_testkit::{Setup, binaries, case, for_each_user, op};

#[test]
fn no_key_of_the_session_outside_is_found() {
    for_each_user(binaries!(), |world| {
        let mut setup = world.setup();
        setup.key = Some("ringfence-canary".to_owned());
        let find = op!["key", "ringfence-canary"];
        let answer = |setup: &Setup| world.inside(setup, &find).line().to_owned();
        assert_eq!(answer(&setup), "EPERM");
        // Each of the two guards holds alone.
        assert_eq!(answer(&setup.clone().without(Step::Keyring)), "EPERM");
        assert_eq!(answer(&setup.clone().without(Step::Seccomp)), "ENOKEY");
        let calls = [
            case(
                op![
                    "call",
                    libc::SYS_add_key.to_string(),
                    "@user",
                    "@x",
                    "@y",
                    "1",
                    "-3"
                ],
                "",
                "EPERM",
            ),
            case(
                op![
                    "call",
                    libc::SYS_request_key.to_string(),
                    "@user",
                    "@x",
                    "0",
                    "-3"
                ],
                "",
                "EPERM",
            ),
            case(
                op!["call", libc::SYS_keyctl.to_string(), "0", "-3", "0"],
                "",
                "EPERM",
            ),
        ];
        world.check_confined(&setup, &calls);
    });
}

/// The control of the test above: with neither guard the key is there.
#[test]
fn the_key_is_there_to_be_found() {
    for_each_user(binaries!(), |world| {
        let mut setup = world.setup_with(r#""preset": "track", "on_gap": "report""#);
        setup.key = Some("ringfence-canary".to_owned());
        let found = world.inside(&setup, ["key", "ringfence-canary"]);
        assert_eq!(found.line(), "ok");
    });
}
