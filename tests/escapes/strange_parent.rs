//! 54, 63: what a strange parent leaves to its children.

use std::process::Command;

use ringfence_core::plan::Step;
use ringfence_testkit::{Done, binaries, case, for_each_user, op};

#[test]
fn a_session_starts_from_a_clean_state() {
    for_each_user(binaries!(), |world| {
        let mut setup = world.setup();
        setup.strange_parent = true;
        let before = world.inside(&setup, ["signals"]);
        // Of what the parent ignores only a hang-up is left: `nohup` means the whole session.
        assert_eq!(before.line(), "ok:blocked true unusual [1]");
        // It can still end, and be waited for.
        let done = world.run(&setup, ["sh", "-c", "(exit 3) & wait $!; exit $?"]);
        assert_eq!(done.status, 3);
        let done = world.run(&setup, ["sh", "-c", "kill -TERM $$"]);
        assert_eq!(done.status, 128 + libc::SIGTERM);
        let broken = world.run(&setup, ["sh", "-c", "yes | head -1 >/dev/null; echo done"]);
        assert_eq!(broken.text(), "done");
    });
}

#[test]
fn a_session_without_standard_streams_ends_well() {
    for_each_user(binaries!(), |world| {
        let marker = world.project("marker");
        let script = format!(
            "exec '{}' '{}' touch '{}' <&- >&- 2>&-",
            world.path("bin/confine").display(),
            world.setup().to_argument().display(),
            marker.display(),
        );
        let mut command: Command = world.command("sh");
        Done::of(command.args(["-c", &script])).assert_status(0);
        assert!(marker.try_exists().unwrap());
    });
}

/// A host may hand the dumps of crashed programs to one of its own, which then looks at what the
/// session prepared. The kernel skips that for one limit only, which is one byte.
#[test]
fn no_dump_leaves_the_session() {
    for_each_user(binaries!(), |world| {
        let limit = world.run(
            &world.setup(),
            ["sh", "-c", "ulimit -Hc; ulimit -Sc; cat /proc/self/limits"],
        );
        let line = limit
            .lines
            .iter()
            .find(|line| line.starts_with("Max core file size"));
        let words: Vec<_> = line.unwrap().split_whitespace().collect();
        assert_eq!(words, ["Max", "core", "file", "size", "1", "1", "bytes"]);
        let crash = world.inside(&world.setup(), ["crash"]);
        assert_eq!(crash.status, 128 + libc::SIGABRT);
        let left: Vec<_> = std::fs::read_dir(world.project("")).unwrap().collect();
        assert_eq!(left.len(), 2, "{left:?}");
        // It can be read, and neither raised nor lowered: dumps of no bytes at all are handed over.
        let bad = u64::MAX.to_string();
        let cases = [
            case(
                op!["call", libc::SYS_prlimit64.to_string(), "0", "4", "0", &bad],
                "EFAULT",
                "EFAULT",
            ),
            case(
                op!["call", libc::SYS_prlimit64.to_string(), "0", "4", &bad, "0"],
                "EFAULT",
                "ENOSYS",
            ),
            case(
                op!["call", libc::SYS_setrlimit.to_string(), "4", &bad],
                "EFAULT",
                "ENOSYS",
            ),
        ];
        world.check(&world.setup(), &cases);
        world.mutation(&world.setup().without(Step::Seccomp), &cases);
    });
}
