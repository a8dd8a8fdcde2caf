//! The rules for calls that bring a name into the world.
//!
//! Which name lies in memory, where a filter cannot look. So where names are protected that do not
//! exist yet, and so cannot be mounted over, every such call waits until the supervisor has looked
//! at a copy. The call is then made by its caller: the answer says no to programs that ask for a
//! protected name, and those that exchange it after it was read are found by their result.

use super::decision::{Argument, Decision, INT, Look, Rule, Verdict, When};
use super::rules::{allow, case};
use super::spec::Creating;
use super::table::Syscall;

const ASKED: When = When::Creating(Creating::Asked);

const ASK: Decision = Decision::End(
    Verdict::Ask,
    "it may make a protected name, which lies in memory; the supervisor looks at a copy",
);

/// `O_CREAT`, on every processor that is known here.
const CREATE: u64 = 0o100;

const EXISTING: Decision = allow("opens what is there, and makes nothing");

static OPEN_FLAGS: Look = Look {
    argument: Argument::Second,
    cases: &[case("without O_CREAT", &[0], EXISTING)],
    mask: CREATE & INT,
    otherwise: ASK,
    what: "flags",
};

static OPENAT_FLAGS: Look = Look {
    argument: Argument::Third,
    cases: &[case("without O_CREAT", &[0], EXISTING)],
    mask: CREATE & INT,
    otherwise: ASK,
    what: "flags",
};

/// All rules about making names.
pub(super) static RULES: &[Rule] = &[
    Rule {
        calls: &[
            Syscall::Bind,
            Syscall::Creat,
            Syscall::Link,
            Syscall::Linkat,
            Syscall::Mkdir,
            Syscall::Mkdirat,
            Syscall::Mknod,
            Syscall::Mknodat,
            // Its flags lie in memory, too.
            Syscall::Openat2,
            Syscall::Rename,
            Syscall::Renameat,
            Syscall::Renameat2,
            Syscall::Symlink,
            Syscall::Symlinkat,
        ],
        decision: ASK,
        when: ASKED,
    },
    // One more question, where somebody answers anyway.
    Rule {
        calls: &[Syscall::InotifyInit, Syscall::InotifyInit1],
        decision: Decision::End(
            Verdict::Ask,
            "every user has only so many; the supervisor bounds the session's before its first",
        ),
        when: ASKED,
    },
    Rule {
        calls: &[Syscall::Open],
        decision: Decision::Look(&OPEN_FLAGS),
        when: ASKED,
    },
    Rule {
        calls: &[Syscall::Openat],
        decision: Decision::Look(&OPENAT_FLAGS),
        when: ASKED,
    },
];
