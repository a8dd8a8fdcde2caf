//! What a command does to the caller's standard streams is undone.

use std::fs;
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_getfl};

use crate::stage::{Stage, for_each_user};

/// Has its output neither wait nor append, and writes over what was there.
const OVERWRITES: &str = "import fcntl, os
flags = fcntl.fcntl(1, fcntl.F_GETFL)
fcntl.fcntl(1, fcntl.F_SETFL, flags & ~os.O_APPEND | os.O_NONBLOCK)
os.lseek(1, 0, 0)
os.write(1, b'O')
";

/// Runs a command with a log to append to; how the caller finds the log afterwards.
fn leaves(mut command: Command, stage: &Stage) -> (OFlags, OFlags) {
    let path = stage.world.write("home/project/log", "one\ntwo\n");
    let log = fs::OpenOptions::new().append(true).open(&path).unwrap();
    let before = fcntl_getfl(&log).unwrap();
    let status = command
        .stdout(Stdio::from(log.try_clone().unwrap()))
        .status()
        .unwrap();
    assert!(status.success());
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, "One\ntwo\n", "the command had its way");
    (before, fcntl_getfl(&log).unwrap())
}

#[test]
fn streams_wait_and_append_as_before() {
    for_each_user(|stage| {
        // The control: without ringfence it stays so.
        let (before, after) = leaves(stage.other("python3", &["-c", OVERWRITES]), stage);
        assert!(before.contains(OFlags::APPEND));
        assert!(after.contains(OFlags::NONBLOCK) && !after.contains(OFlags::APPEND));
        let ways = [
            &["run"][..],
            &["run", "--preset", "track"],
            &["run", "--engine", "landlock", "--on-gap", "report"],
            &["run", "--linger"],
        ];
        for way in ways {
            let command = [way, &["--", "python3", "-c", OVERWRITES]].concat();
            let (before, after) = leaves(stage.command(&command), stage);
            assert_eq!(after, before, "{way:?}");
        }
    });
}
