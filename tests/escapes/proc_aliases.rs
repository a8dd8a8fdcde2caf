//! 21, 48: other names for the same file, and other processes, through `/proc`.

use ringfence_core::plan::Step;
use ringfence_testkit::{Canary, Hands, binaries, case, denied, for_each_user, op};

#[test]
fn no_name_in_proc_leads_past_the_masks() {
    for_each_user(binaries!(), |world| {
        let secret = world.home(".ssh/id_canary");
        let below_root = secret.strip_prefix("/").unwrap().display().to_string();
        let alias = |start: &str| format!("/proc/{start}/root/{below_root}");
        let mut cases = Vec::new();
        for start in ["self", "thread-self"] {
            cases.push(denied(op!["read", alias(start)], "ENOENT"));
        }
        let cwd = "/proc/self/cwd/../home/.ssh/id_canary";
        cases.push(denied(op!["read", cwd], "ENOENT"));
        let written = world.outside("canary");
        let written = written.strip_prefix("/").unwrap().display().to_string();
        let written = format!("/proc/self/root/{written}");
        cases.push(denied(op!["write", written], "EROFS"));
        world.check(&world.setup(), &cases);

        // The first process keeps itself to itself, whoever asks.
        let own = [
            case(op!["read", alias("1")], "-", "EACCES"),
            case(op!["read", "/proc/1/fd/0"], "-", "EACCES"),
            case(op!["readlink", "/proc/1/fd/3"], "-", "EACCES"),
            case(op!["list", "/proc/1/cwd"], "-", "EACCES"),
            case(op!["read", "/proc/1/environ"], "-", "EACCES"),
            case(op!["read", "/proc/1/mem"], "-", "EACCES"),
            case(op!["read", "/proc/1/maps"], "-", "EACCES"),
            case(op!["readlink", "/proc/1/exe"], "-", "EACCES"),
            case(op!["readlink", "/proc/1/ns/mnt"], "-", "EACCES"),
        ];
        world.check_confined(&world.setup(), &own);
    });
}

#[test]
fn only_processes_of_the_session_are_seen() {
    for_each_user(binaries!(), |world| {
        let mut canary = Canary::start(world.command("sleep").arg("60"));
        let process = format!("/proc/{}", canary.pid());
        let mut cases = Vec::new();
        for file in ["environ", "maps", "cmdline", "mountinfo"] {
            cases.push(denied(op!["read", format!("{process}/{file}")], "ENOENT"));
        }
        cases.push(denied(op!["stat", format!("{process}/root")], "ENOENT"));
        cases.push(denied(op!["list", format!("{process}/fd")], "ENOENT"));
        world.control_listing(&cases);
        world.check_confined(&world.setup(), &cases);
        // The helper was the second one, and is gone.
        for (hands, expected) in [
            (Hands::Ahead, "ok:1 2"),
            (Hands::One, "ok:1 2"),
            (Hands::Two, "ok:1 3"),
        ] {
            let seen = world.inside(&world.setup().by(hands), ["processes"]);
            assert_eq!(seen.line(), expected, "the first process and the probe");
        }
        canary.assert_alive();
        // The mount of `/proc` is what hides them.
        let shown = world.inside(
            &world.setup().without(Step::Root),
            [op!["stat", &process]].concat(),
        );
        assert_eq!(shown.line(), "ok");
    });
}
