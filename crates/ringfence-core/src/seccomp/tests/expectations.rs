//! What must happen to known techniques and to ordinary work, written by hand.
//!
//! Nothing here is read from the rules: numbers and flags are those of the kernel's headers, so a
//! wrong constant over there shows up here.

use super::super::decision::Verdict;
use super::super::explain;
use super::super::spec::{Arch, FilterSpec, InetSockets, Listening, UnixSockets};
use super::super::table::Syscall;
use super::worlds::{Filter, every_filter, named_specs, native};

pub(super) fn both(make: fn(Arch) -> FilterSpec) -> [Filter; 2] {
    Arch::ALL.map(|arch| Filter::new(make(arch)))
}

#[test]
fn the_dangerous_are_refused_in_every_filter() {
    let dangerous = "acct add_key adjtimex bpf chroot clock_adjtime clock_settime clone3 \
        create_module delete_module fanotify_init fanotify_mark fchroot finit_module \
        fsconfig fsmount fsopen fspick init_module io_uring_enter io_uring_register \
        io_uring_setup ioperm iopl kexec_file_load kexec_load keyctl listns \
        lookup_dcookie modify_ldt mount mount_setattr move_mount name_to_handle_at \
        nfsservctl open_by_handle_at open_tree open_tree_attr perf_event_open \
        pivot_root quotactl quotactl_fd reboot request_key setdomainname sethostname \
        setns settimeofday swapoff swapon syslog umount2 userfaultfd uselib vhangup";
    for Filter { spec, program } in every_filter() {
        for name in dangerous.split_whitespace() {
            let call = Syscall::named(name).unwrap();
            let Some(number) = call.number(spec.arch) else {
                continue;
            };
            for args in [[0; 6], [u64::MAX; 6], [1; 6]] {
                let run = program.run(&native(spec, u32::from(number), args));
                let expected = if name == "clone3" {
                    "ENOSYS"
                } else {
                    run.verdict.name()
                };
                assert!(
                    matches!(run.verdict, Verdict::Refuse(_)),
                    "{name} in {spec:?}"
                );
                assert_eq!(run.verdict.name(), expected);
            }
        }
    }
}

#[test]
fn the_ordinary_is_allowed_in_every_filter() {
    let ordinary = "arch_prctl brk capset close_range copy_file_range dup epoll_ctl execve \
        execveat exit_group fchownat fcntl flock fork fsetxattr futex getcwd getpid \
        getrandom getrlimit inotify_add_watch io_setup landlock_create_ruleset \
        landlock_restrict_self linkat madvise membarrier memfd_create mkdirat \
        mknodat mlock mmap mprotect mremap mseal openat openat2 pidfd_open \
        pidfd_send_signal pipe2 pkey_alloc ppoll prctl pselect6 read recvmsg \
        renameat2 restart_syscall rseq rt_sigreturn sendfile \
        setpgid setresuid setsid splice statx symlinkat tgkill \
        timerfd_create umask uretprobe utimensat vfork wait4 write";
    for Filter { spec, program } in every_filter() {
        let names = ordinary.split_whitespace();
        for name in names.filter(|name| !super::creating::are_asked(spec, name)) {
            let call = Syscall::named(name).unwrap();
            let Some(number) = call.number(spec.arch) else {
                continue;
            };
            let run = program.run(&native(spec, u32::from(number), [u64::MAX; 6]));
            assert_eq!(run.verdict, Verdict::Allow, "{name} in {spec:?}");
            assert!(
                !run.reads_arguments,
                "{name} would run the program on every call"
            );
        }
    }
}

#[test]
fn numbers_of_the_future_are_answered_as_by_an_older_kernel() {
    for Filter { spec, program } in every_filter() {
        for number in (473..1024).chain([u32::MAX, i32::MAX.cast_unsigned(), 0x4000_0000]) {
            let run = program.run(&native(spec, number, [0; 6]));
            assert_eq!(run.verdict.name(), "ENOSYS", "{number}");
        }
    }
}

#[test]
fn new_namespaces_are_refused_and_threads_are_not() {
    const SIGCHLD: u64 = 17;
    const FORK: u64 = 0x0120_0000 | SIGCHLD;
    const PTHREAD: u64 = 0x003d_0f00;
    const POSIX_SPAWN: u64 = 0x0000_4100 | SIGCHLD;
    for filter in both(FilterSpec::namespaces) {
        for flags in [
            0,
            SIGCHLD,
            FORK,
            PTHREAD,
            POSIX_SPAWN,
            FORK | 0x1000,
            FORK | 0x8000_0000,
        ] {
            assert_eq!(filter.says("clone", &[flags]), "allow", "{flags:#x}");
        }
        // In clone this bit belongs to the exit signal and makes no time namespace.
        assert_eq!(filter.says("clone", &[0x80]), "allow");
        for flag in [
            0x0002_0000,
            0x0200_0000,
            0x0400_0000,
            0x0800_0000,
            0x1000_0000,
            0x2000_0000,
            0x4000_0000,
        ] {
            for flags in [
                flag,
                flag | FORK,
                flag | PTHREAD,
                flag | 0xffff_ffff_0000_0000,
            ] {
                assert_eq!(filter.says("clone", &[flags]), "EPERM", "{flags:#x}");
            }
            assert_eq!(filter.says("unshare", &[flag]), "EPERM", "{flag:#x}");
            assert_eq!(filter.says("unshare", &[flag | 0x200]), "EPERM");
        }
        for own in [0, 0x100, 0x200, 0x400, 0x800, 0x1_0000, 0x4_0000, 0x600] {
            assert_eq!(filter.says("unshare", &[own]), "allow", "{own:#x}");
        }
        // CLONE_NEWTIME, UNSHARE_EMPTY_MNTNS, and what may come in the upper word.
        for flags in [0x80, 0x10_0000, 1 << 32, 1 << 37, 0x200 | 1 << 63] {
            assert_eq!(filter.says("unshare", &[flags]), "EPERM", "{flags:#x}");
        }
    }
}

#[test]
fn nothing_types_into_the_terminal() {
    for filter in every_filter() {
        // TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, TIOCEXCL.
        for request in [0x5412, 0x541c, 0x5423, 0x541d, 0x540c] {
            for upper in [0, 1, 0xdead, 0xffff_ffff] {
                assert_eq!(
                    filter.says("ioctl", &[0, request | upper << 32, 0]),
                    "EPERM"
                );
            }
        }
        // TCGETS, TIOCGWINSZ, TIOCSCTTY, TIOCSPGRP, FIONREAD, FIONBIO, FIOCLEX, FICLONE.
        for request in [
            0x5401,
            0x5413,
            0x540e,
            0x5410,
            0x541b,
            0x5421,
            0x5451,
            0x4004_9409,
        ] {
            assert_eq!(
                filter.says("ioctl", &[0, request, 0]),
                "allow",
                "{request:#x}"
            );
        }
    }
}

/// Subvolumes (made, copied, removed), names made by cloning, and keys of encrypted directories.
#[test]
fn file_systems_are_asked_for_nothing_that_no_other_layer_sees() {
    let btrfs = [0x01, 0x0e, 0x0f, 0x17, 0x18, 0x3f].map(|number| 0x5000_9400 | number);
    let others = [0x4020_bc10, 0x4020_bc11, 0x4030_bc1d, 0x4018_6f04];
    for filter in both(FilterSpec::namespaces) {
        let keys = [0xc050_6617, 0xc040_6618, 0xc040_6619];
        for request in btrfs.into_iter().chain(others).chain(keys) {
            assert_eq!(filter.says("ioctl", &[3, request, 0]), "EPERM");
        }
    }
}

/// `SOCK_CLOEXEC | SOCK_NONBLOCK`.
const FLAGS: u64 = 0o2_004_000;

#[test]
fn families_are_an_allow_list() {
    for filter in every_filter() {
        for family in 0..64 {
            let named = matches!(family, 1 | 2 | 10 | 16);
            for kind in 0..16 {
                let answer = filter.says("socket", &[family, kind, 0]);
                assert!(
                    named || answer == "EAFNOSUPPORT",
                    "{family} {kind} {answer}"
                );
                let pair = filter.says("socketpair", &[family, kind, 0]);
                assert!(
                    family == 1 || pair == "EAFNOSUPPORT",
                    "{family} {kind} {pair}"
                );
            }
        }
        assert_eq!(filter.says("socket", &[u64::MAX, 1, 0]), "EAFNOSUPPORT");
    }
}

#[test]
fn internet_sockets_follow_the_spec() {
    // Family, type, protocol; then open, refused, TCP and UDP ports, TCP ports.
    let table: &[([u64; 3], [&str; 4])] = &[
        ([2, 1, 0], ["allow", "EACCES", "allow", "allow"]),
        ([2, 1 | FLAGS, 6], ["allow", "EACCES", "allow", "allow"]),
        ([10, 1, 6], ["allow", "EACCES", "allow", "allow"]),
        ([2, 2, 0], ["allow", "EACCES", "allow", "EACCES"]),
        ([10, 2 | FLAGS, 17], ["allow", "EACCES", "allow", "EACCES"]),
        // Ping.
        ([2, 2, 1], ["allow", "EACCES", "EPROTONOSUPPORT", "EACCES"]),
        (
            [10, 2, 58],
            ["allow", "EACCES", "EPROTONOSUPPORT", "EACCES"],
        ),
        // Multipath TCP, SMC, SCTP, UDP-Lite, L2TP, DCCP, raw, SOCK_PACKET.
        (
            [2, 1, 262],
            [
                "EPROTONOSUPPORT",
                "EACCES",
                "EPROTONOSUPPORT",
                "EPROTONOSUPPORT",
            ],
        ),
        (
            [10, 1, 262],
            [
                "EPROTONOSUPPORT",
                "EACCES",
                "EPROTONOSUPPORT",
                "EPROTONOSUPPORT",
            ],
        ),
        (
            [2, 1, 256],
            [
                "EPROTONOSUPPORT",
                "EACCES",
                "EPROTONOSUPPORT",
                "EPROTONOSUPPORT",
            ],
        ),
        (
            [2, 1, 132],
            [
                "EPROTONOSUPPORT",
                "EACCES",
                "EPROTONOSUPPORT",
                "EPROTONOSUPPORT",
            ],
        ),
        (
            [2, 2, 136],
            ["EPROTONOSUPPORT", "EACCES", "EPROTONOSUPPORT", "EACCES"],
        ),
        (
            [2, 2, 115],
            ["EPROTONOSUPPORT", "EACCES", "EPROTONOSUPPORT", "EACCES"],
        ),
        ([2, 6, 33], ["EPERM", "EACCES", "EPERM", "EPERM"]),
        ([2, 3, 1], ["EPERM", "EACCES", "EPERM", "EPERM"]),
        ([2, 5, 132], ["EPERM", "EACCES", "EPERM", "EPERM"]),
        ([2, 10, 0], ["EPERM", "EACCES", "EPERM", "EPERM"]),
    ];
    let choices = [
        InetSockets::Open,
        InetSockets::Refused,
        InetSockets::TcpAndUdpPorts,
        InetSockets::TcpPorts,
    ];
    for base in both(FilterSpec::namespaces)
        .into_iter()
        .chain(both(FilterSpec::strictest))
    {
        let filters = choices.map(|inet| Filter::new(FilterSpec { inet, ..base.spec }));
        for (args, answers) in table {
            let tall = args.map(|arg| arg | 0xdead_beef << 32);
            for (filter, answer) in filters.iter().zip(answers) {
                assert_eq!(
                    filter.says("socket", args),
                    *answer,
                    "{args:?} {:?}",
                    filter.spec
                );
                assert_eq!(
                    filter.says("socket", &tall),
                    *answer,
                    "{tall:?} {:?}",
                    filter.spec
                );
            }
        }
    }
}

#[test]
fn brokered_sockets_go_nowhere_by_themselves() {
    for base in both(FilterSpec::namespaces) {
        let brokered = Filter::new(FilterSpec {
            unix: UnixSockets::Brokered,
            ..base.spec
        });
        for (kind, socket, pair) in [
            (1, "allow", "allow"),
            (5, "allow", "allow"),
            (2, "EACCES", "EACCES"),
            (3, "EACCES", "EACCES"),
        ] {
            assert_eq!(brokered.says("socket", &[1, kind | FLAGS, 0]), socket);
            assert_eq!(brokered.says("socketpair", &[1, kind | FLAGS, 0]), pair);
        }
        for arguments in [[0, 0, 0], [3, u64::MAX, 16], [u64::MAX, 1 << 32, u64::MAX]] {
            assert_eq!(brokered.says("connect", &arguments), "ask");
            assert_eq!(base.says("connect", &arguments), "allow");
        }
    }
}

#[test]
fn host_sockets_are_out_of_reach_without_unix_sockets() {
    for base in both(FilterSpec::namespaces) {
        let refused = Filter::new(FilterSpec {
            unix: UnixSockets::Refused,
            ..base.spec
        });
        for (kind, open_pair, refused_pair) in [
            (1, "allow", "allow"),
            (5, "allow", "allow"),
            (2, "allow", "EACCES"),
            (3, "EACCES", "EACCES"),
        ] {
            let plain = if kind == 3 { "EPERM" } else { "allow" };
            assert_eq!(base.says("socket", &[1, kind | FLAGS, 0]), plain);
            assert_eq!(refused.says("socket", &[1, kind | FLAGS, 0]), "EACCES");
            assert_eq!(base.says("socketpair", &[1, kind | FLAGS, 0]), open_pair);
            assert_eq!(
                refused.says("socketpair", &[1, kind | FLAGS, 0]),
                refused_pair
            );
            assert_eq!(
                refused.says("socketpair", &[1 | 1 << 32, kind | 1 << 32]),
                refused_pair
            );
        }
    }
}

#[test]
fn netlink_speaks_of_routes_only() {
    for (route, none) in both(FilterSpec::namespaces)
        .into_iter()
        .zip(both(FilterSpec::strictest))
    {
        for protocol in 0..32 {
            let expected = if protocol == 0 {
                "allow"
            } else {
                "EPROTONOSUPPORT"
            };
            assert_eq!(route.says("socket", &[16, 3, protocol]), expected);
            assert_eq!(none.says("socket", &[16, 3, protocol]), "EAFNOSUPPORT");
        }
    }
}

#[test]
fn fast_open_is_refused_where_port_rules_hold() {
    const FAST_OPEN: u64 = 0x2000_0000;
    for filter in every_filter() {
        let by_port = matches!(
            filter.spec.inet,
            InetSockets::TcpPorts | InetSockets::TcpAndUdpPorts
        );
        let expected = if by_port { "EOPNOTSUPP" } else { "allow" };
        for more in [0, 0x4000, 0xffff_ffff_0000_0000] {
            let flags = FAST_OPEN | more;
            assert_eq!(filter.says("sendto", &[0, 0, 0, flags]), expected);
            assert_eq!(filter.says("sendmsg", &[0, 0, flags]), expected);
            assert_eq!(filter.says("sendmmsg", &[0, 0, 0, flags]), expected);
            assert_eq!(filter.says("sendto", &[0, 0, 0, more]), "allow");
            assert_eq!(filter.says("sendmsg", &[0, 0, more]), "allow");
        }
        let listens = filter.spec.listening == Listening::Allowed;
        assert_eq!(filter.says("listen", &[3, 1]) == "allow", listens);
    }
}

#[test]
fn options_that_load_code_are_refused() {
    for filter in every_filter() {
        for (level, option, expected) in [
            (6, 31, "ENOPROTOOPT"),
            (17, 100, "ENOPROTOOPT"),
            (1, 26, "EPERM"),
            (1, 50, "EPERM"),
            (1, 51, "EPERM"),
            (1, 52, "EPERM"),
            // SO_REUSEADDR, SO_KEEPALIVE, TCP_NODELAY, IP_TTL, IPV6_V6ONLY.
            (1, 2, "allow"),
            (1, 9, "allow"),
            (6, 1, "allow"),
            (0, 2, "allow"),
            (41, 26, "allow"),
        ] {
            for upper in [0, 7 << 32] {
                let args = [3, level | upper, option | upper];
                assert_eq!(filter.says("setsockopt", &args), expected, "{args:?}");
            }
        }
    }
}

#[test]
fn set_id_bits_are_refused_in_every_chmod() {
    for filter in both(FilterSpec::namespaces) {
        for (mode, expected) in [
            (0o755, "allow"),
            (0o1777, "allow"),
            (0o10_0644, "allow"),
            (0o4755, "EPERM"),
            (0o2755, "EPERM"),
            (0o6000, "EPERM"),
            (0o4755 | 1 << 32, "EPERM"),
        ] {
            assert_eq!(filter.says("fchmod", &[3, mode]), expected, "{mode:o}");
            assert_eq!(filter.says("fchmodat", &[3, 0, mode]), expected);
            assert_eq!(filter.says("fchmodat2", &[3, 0, mode, 0x1000]), expected);
            if filter.spec.arch == Arch::X86_64 {
                assert_eq!(filter.says("chmod", &[0, mode]), expected);
            }
        }
    }
    for arch in Arch::ALL {
        let [_, (_, debugger), ..] =
            named_specs(arch).map(|(name, spec)| (name, Filter::new(spec)));
        assert_eq!(debugger.says("fchmod", &[3, 0o4755]), "allow");
    }
}

#[test]
fn other_processes_are_out_of_reach() {
    let family = "ptrace process_vm_readv process_vm_writev pidfd_getfd process_madvise kcmp";
    for arch in Arch::ALL {
        let [(_, namespaces), (_, debugger), ..] =
            named_specs(arch).map(|(name, spec)| (name, Filter::new(spec)));
        for name in family.split_whitespace() {
            assert_eq!(namespaces.says(name, &[0]), "EPERM");
            assert_eq!(debugger.says(name, &[0]), "allow");
        }
    }
    for [own, host] in [Arch::X86_64, Arch::Aarch64]
        .map(|arch| [FilterSpec::namespaces(arch), FilterSpec::strictest(arch)].map(Filter::new))
    {
        // A call, and the answer where host processes are in sight.
        for (name, args, expected) in [
            ("prlimit64", [0, 7, 0x7fff_0000, 0], "allow"),
            ("prlimit64", [42, 7, 0, 0], "allow"),
            ("prlimit64", [42, 7, 0x7fff_0000, 0], "EPERM"),
            ("prlimit64", [42, 7, 0x7fff_0000_0000, 0], "EPERM"),
            ("prlimit64", [1 << 32, 7, 0x7fff_0000, 0], "allow"),
            ("move_pages", [0; 4], "allow"),
            ("move_pages", [1, 0, 0, 0], "EPERM"),
            ("migrate_pages", [1, 0, 0, 0], "EPERM"),
            ("sched_setaffinity", [0; 4], "allow"),
            ("sched_setaffinity", [42, 8, 0, 0], "EPERM"),
            ("sched_setscheduler", [42, 0, 0, 0], "EPERM"),
            ("sched_setparam", [42, 0, 0, 0], "EPERM"),
            ("sched_setattr", [42, 0, 0, 0], "EPERM"),
            ("setpriority", [0, 0, 19, 0], "allow"),
            ("setpriority", [0, 42, 19, 0], "EPERM"),
            ("setpriority", [2, 0, 19, 0], "EPERM"),
            ("ioprio_set", [1, 0, 0, 0], "allow"),
            ("ioprio_set", [1, 42, 0, 0], "EPERM"),
            ("ioprio_set", [3, 0, 0, 0], "EPERM"),
            ("ioprio_set", [0, 0, 0, 0], "EPERM"),
        ] {
            assert_eq!(host.says(name, &args), expected, "{name} {args:?}");
            assert_eq!(own.says(name, &args), "allow", "{name} {args:?}");
        }
        // A process group reaches over the edge of a pid namespace.
        for (name, args) in [
            ("setpriority", [1, 0, 19, 0]),
            ("setpriority", [1, 42, 19, 0]),
            ("ioprio_set", [2, 0, 0, 0]),
        ] {
            assert_eq!(host.says(name, &args), "EPERM", "{name} {args:?}");
            assert_eq!(own.says(name, &args), "EPERM", "{name} {args:?}");
        }
    }
}

#[test]
fn shared_memory_needs_a_namespace() {
    let calls = "shmget shmat shmctl semget semop semtimedop semctl msgget msgsnd msgrcv \
        msgctl mq_open mq_unlink";
    for name in calls.split_whitespace() {
        for filter in both(FilterSpec::namespaces) {
            assert_eq!(filter.says(name, &[0]), "allow");
        }
        for filter in both(FilterSpec::strictest) {
            assert_eq!(filter.says(name, &[0]), "EPERM");
        }
    }
}

#[test]
fn personalities_and_listeners() {
    for filter in every_filter() {
        for (persona, expected) in [
            (0, "allow"),
            (0xffff_ffff, "allow"),
            (0x0004_0000, "allow"),
            (0x0002_0008, "allow"),
            (0x0040_0000, "EPERM"),
            (0x0010_0000, "EPERM"),
            (0x0044_0000, "EPERM"),
            (0x0000_0006, "EPERM"),
        ] {
            assert_eq!(
                filter.says("personality", &[persona]),
                expected,
                "{persona:#x}"
            );
        }
        for (operation, flags, expected) in [
            (1, 0, "allow"),
            (1, 1, "allow"),
            (1, 8, "EPERM"),
            (1, 9 | 1 << 40, "EPERM"),
            (2, 0, "allow"),
        ] {
            assert_eq!(filter.says("seccomp", &[operation, flags]), expected);
        }
    }
}

#[test]
fn explanations_say_what_and_why() {
    let spec = FilterSpec {
        inet: InetSockets::TcpPorts,
        ..FilterSpec::strictest(Arch::X86_64)
    };
    let text = [
        "socket",
        "openat",
        "unshare",
        "prlimit64",
        "chmod",
        "io_uring_setup",
    ]
    .map(|name| explain(spec, name).unwrap().to_string())
    .join("\n");
    insta::assert_snapshot!("explanations", text);

    let setns = explain(spec, "setns").unwrap();
    assert_eq!(setns.number(), Some(308));
    assert_eq!(
        setns.judgement().map(|judgement| judgement.verdict.name()),
        Some("EPERM")
    );

    let arm = FilterSpec::strictest(Arch::Aarch64);
    assert!(
        explain(arm, "chmod")
            .unwrap()
            .to_string()
            .starts_with("chmod (not on aarch64): ENOSYS")
    );

    let unknown = explain(spec, "opnat").unwrap_err();
    assert_eq!(unknown.nearest, Some("openat"));
    assert_eq!(unknown.to_string(), "no system call is named \"opnat\"");
    assert_eq!(explain(spec, "").unwrap_err().nearest, None);
}
