//! Many sessions of one user at once.

use crate::stage::{PLAIN, Stage, for_each_user};

/// Starts many sessions from a session keyring, which everybody has who has logged in, and prints how each ended.
const CROWD: &str = "
import collections, ctypes, platform, subprocess, sys
KEYCTL = {'x86_64': 250, 'aarch64': 219}[platform.machine()]
JOIN_SESSION_KEYRING = 1
assert ctypes.CDLL(None).syscall(KEYCTL, JOIN_SESSION_KEYRING, None) > 0
pipe = subprocess.PIPE
crowd = [subprocess.Popen(sys.argv[2:], stdout=pipe, stderr=pipe, text=True) for _ in range(int(sys.argv[1]))]
ends = collections.Counter((*one.communicate(), one.returncode) for one in crowd)
print(*(f'{many} x {end}' for end, many in ends.items()), sep='\\n')
";

fn ends(stage: &Stage, many: &str, flags: &[&str], command: &[&str]) -> String {
    let program = stage.program.to_str().unwrap();
    let words = [
        &["-c", CROWD, many, program, "run"],
        flags,
        &["--"],
        command,
    ]
    .concat();
    let ran = stage
        .world
        .ran(&stage.other("python3", &words).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    ran.out
}

#[test]
fn two_hundred_at_once_all_succeed() {
    for_each_user(|stage| {
        let ends = ends(stage, "200", &[], &["echo", "here"]);
        assert_eq!(ends, "200 x ('here\\n', '', 0)\n");
    });
}

/// A plain user has no more than 200 keys as a rule, two of which are the account's and one the login's.
/// Whoever comes when all are taken waits for one.
#[test]
fn one_more_than_there_are_keys_for_waits() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let stage = Stage::new(Some(PLAIN));
    let bound = std::fs::read_to_string("/proc/sys/kernel/keys/maxkeys").unwrap();
    let many: usize = bound.trim().parse().unwrap();
    assert!(many <= 1000, "{many} keys: this host cannot show it");
    let flags = ["--engine", "landlock", "--on-gap", "report"];
    for flags in [&flags[..], &[]] {
        let ends = ends(&stage, &(many + 10).to_string(), flags, &["sleep", "1"]);
        assert!(ends.contains(", 0)"), "{ends}");
        assert!(!ends.contains(", 125)"), "{ends}");
    }
}
