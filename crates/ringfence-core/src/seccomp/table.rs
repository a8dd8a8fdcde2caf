//! Every system call of the two architectures by name, with its numbers.
//!
//! Owns the names and the numbers and nothing else; what is said about a call is in
//! [`rules`](super::rules). A number that is not in here is a call nobody has judged yet, and the
//! filter answers it as a kernel without that call would.
//!
//! Made from the `__NR_` lines of `asm/unistd_64.h` in the x86 and arm64 UAPI headers of Linux
//! 7.3-rc7 (Debian's `linux-libc-dev`), joined by name, in the order of the x86-64 numbers; arm64
//! has no call that x86-64 lacks. To move to a newer kernel, append its new calls, judge each of
//! them in `rules`, and review the change of the recorded verdicts.

use super::Arch;

/// In place of a number: the architecture never had this call.
const ABSENT: u16 = u16::MAX;

macro_rules! number {
    (-) => {
        ABSENT
    };
    ($number:literal) => {
        $number
    };
}

macro_rules! syscalls {
    ($($variant:ident $name:literal $x86_64:tt $aarch64:tt,)*) => {
        /// A system call, whatever its number.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum Syscall {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        impl Syscall {
            /// All of them, in the order of their x86-64 numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        /// One row for each variant of [`Syscall`], in the same order.
        const ROWS: &[Row] = &rows([$(
            ($name, number!($x86_64), number!($aarch64)),
        )*]);

        /// Their names, one behind the other.
        const NAMES: &str = concat!($($name,)*);
    };
}

/// What the table says of a call. Its name is a place in a text and no address: every address in a
/// table is one that each start of the program has to mend.
#[derive(Clone, Copy)]
struct Row {
    /// Where its name begins in [`NAMES`].
    name: u16,
    length: u16,
    x86_64: u16,
    aarch64: u16,
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "all names together have some thousand bytes, which is looked at"
)]
const fn rows<const COUNT: usize>(named: [(&str, u16, u16); COUNT]) -> [Row; COUNT] {
    let nothing = Row {
        name: 0,
        length: 0,
        x86_64: ABSENT,
        aarch64: ABSENT,
    };
    let mut rows = [nothing; COUNT];
    let (mut at, mut begin) = (0, 0);
    while at < COUNT {
        let (name, x86_64, aarch64) = named[at];
        rows[at] = Row {
            name: begin as u16,
            length: name.len() as u16,
            x86_64,
            aarch64,
        };
        begin += name.len();
        at += 1;
    }
    assert!(begin <= u16::MAX as usize);
    rows
}

impl Syscall {
    /// The kernel's name for it.
    pub const fn name(self) -> &'static str {
        let row = &ROWS[self as usize];
        let (_, from) = NAMES.split_at(row.name as usize);
        from.split_at(row.length as usize).0
    }

    /// Its number on `arch`, or `None` where it does not exist.
    pub const fn number(self, arch: Arch) -> Option<u16> {
        let row = &ROWS[self as usize];
        let number = match arch {
            Arch::Aarch64 => row.aarch64,
            Arch::X86_64 => row.x86_64,
        };
        if number == ABSENT { None } else { Some(number) }
    }

    /// The call with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|call| call.name() == name)
    }

    /// The call with this number on `arch`.
    pub fn numbered(arch: Arch, number: u32) -> Option<Self> {
        let number = u16::try_from(number).ok()?;
        let has_it = |call: &Self| call.number(arch) == Some(number);
        Self::ALL.iter().copied().find(has_it)
    }
}

#[rustfmt::skip]
syscalls! {
    Read "read" 0 63,
    Write "write" 1 64,
    Open "open" 2 -,
    Close "close" 3 57,
    Stat "stat" 4 -,
    Fstat "fstat" 5 80,
    Lstat "lstat" 6 -,
    Poll "poll" 7 -,
    Lseek "lseek" 8 62,
    Mmap "mmap" 9 222,
    Mprotect "mprotect" 10 226,
    Munmap "munmap" 11 215,
    Brk "brk" 12 214,
    RtSigaction "rt_sigaction" 13 134,
    RtSigprocmask "rt_sigprocmask" 14 135,
    RtSigreturn "rt_sigreturn" 15 139,
    Ioctl "ioctl" 16 29,
    Pread64 "pread64" 17 67,
    Pwrite64 "pwrite64" 18 68,
    Readv "readv" 19 65,
    Writev "writev" 20 66,
    Access "access" 21 -,
    Pipe "pipe" 22 -,
    Select "select" 23 -,
    SchedYield "sched_yield" 24 124,
    Mremap "mremap" 25 216,
    Msync "msync" 26 227,
    Mincore "mincore" 27 232,
    Madvise "madvise" 28 233,
    Shmget "shmget" 29 194,
    Shmat "shmat" 30 196,
    Shmctl "shmctl" 31 195,
    Dup "dup" 32 23,
    Dup2 "dup2" 33 -,
    Pause "pause" 34 -,
    Nanosleep "nanosleep" 35 101,
    Getitimer "getitimer" 36 102,
    Alarm "alarm" 37 -,
    Setitimer "setitimer" 38 103,
    Getpid "getpid" 39 172,
    Sendfile "sendfile" 40 71,
    Socket "socket" 41 198,
    Connect "connect" 42 203,
    Accept "accept" 43 202,
    Sendto "sendto" 44 206,
    Recvfrom "recvfrom" 45 207,
    Sendmsg "sendmsg" 46 211,
    Recvmsg "recvmsg" 47 212,
    Shutdown "shutdown" 48 210,
    Bind "bind" 49 200,
    Listen "listen" 50 201,
    Getsockname "getsockname" 51 204,
    Getpeername "getpeername" 52 205,
    Socketpair "socketpair" 53 199,
    Setsockopt "setsockopt" 54 208,
    Getsockopt "getsockopt" 55 209,
    Clone "clone" 56 220,
    Fork "fork" 57 -,
    Vfork "vfork" 58 -,
    Execve "execve" 59 221,
    Exit "exit" 60 93,
    Wait4 "wait4" 61 260,
    Kill "kill" 62 129,
    Uname "uname" 63 160,
    Semget "semget" 64 190,
    Semop "semop" 65 193,
    Semctl "semctl" 66 191,
    Shmdt "shmdt" 67 197,
    Msgget "msgget" 68 186,
    Msgsnd "msgsnd" 69 189,
    Msgrcv "msgrcv" 70 188,
    Msgctl "msgctl" 71 187,
    Fcntl "fcntl" 72 25,
    Flock "flock" 73 32,
    Fsync "fsync" 74 82,
    Fdatasync "fdatasync" 75 83,
    Truncate "truncate" 76 45,
    Ftruncate "ftruncate" 77 46,
    Getdents "getdents" 78 -,
    Getcwd "getcwd" 79 17,
    Chdir "chdir" 80 49,
    Fchdir "fchdir" 81 50,
    Rename "rename" 82 -,
    Mkdir "mkdir" 83 -,
    Rmdir "rmdir" 84 -,
    Creat "creat" 85 -,
    Link "link" 86 -,
    Unlink "unlink" 87 -,
    Symlink "symlink" 88 -,
    Readlink "readlink" 89 -,
    Chmod "chmod" 90 -,
    Fchmod "fchmod" 91 52,
    Chown "chown" 92 -,
    Fchown "fchown" 93 55,
    Lchown "lchown" 94 -,
    Umask "umask" 95 166,
    Gettimeofday "gettimeofday" 96 169,
    Getrlimit "getrlimit" 97 163,
    Getrusage "getrusage" 98 165,
    Sysinfo "sysinfo" 99 179,
    Times "times" 100 153,
    Ptrace "ptrace" 101 117,
    Getuid "getuid" 102 174,
    Syslog "syslog" 103 116,
    Getgid "getgid" 104 176,
    Setuid "setuid" 105 146,
    Setgid "setgid" 106 144,
    Geteuid "geteuid" 107 175,
    Getegid "getegid" 108 177,
    Setpgid "setpgid" 109 154,
    Getppid "getppid" 110 173,
    Getpgrp "getpgrp" 111 -,
    Setsid "setsid" 112 157,
    Setreuid "setreuid" 113 145,
    Setregid "setregid" 114 143,
    Getgroups "getgroups" 115 158,
    Setgroups "setgroups" 116 159,
    Setresuid "setresuid" 117 147,
    Getresuid "getresuid" 118 148,
    Setresgid "setresgid" 119 149,
    Getresgid "getresgid" 120 150,
    Getpgid "getpgid" 121 155,
    Setfsuid "setfsuid" 122 151,
    Setfsgid "setfsgid" 123 152,
    Getsid "getsid" 124 156,
    Capget "capget" 125 90,
    Capset "capset" 126 91,
    RtSigpending "rt_sigpending" 127 136,
    RtSigtimedwait "rt_sigtimedwait" 128 137,
    RtSigqueueinfo "rt_sigqueueinfo" 129 138,
    RtSigsuspend "rt_sigsuspend" 130 133,
    Sigaltstack "sigaltstack" 131 132,
    Utime "utime" 132 -,
    Mknod "mknod" 133 -,
    Uselib "uselib" 134 -,
    Personality "personality" 135 92,
    Ustat "ustat" 136 -,
    Statfs "statfs" 137 43,
    Fstatfs "fstatfs" 138 44,
    Sysfs "sysfs" 139 -,
    Getpriority "getpriority" 140 141,
    Setpriority "setpriority" 141 140,
    SchedSetparam "sched_setparam" 142 118,
    SchedGetparam "sched_getparam" 143 121,
    SchedSetscheduler "sched_setscheduler" 144 119,
    SchedGetscheduler "sched_getscheduler" 145 120,
    SchedGetPriorityMax "sched_get_priority_max" 146 125,
    SchedGetPriorityMin "sched_get_priority_min" 147 126,
    SchedRrGetInterval "sched_rr_get_interval" 148 127,
    Mlock "mlock" 149 228,
    Munlock "munlock" 150 229,
    Mlockall "mlockall" 151 230,
    Munlockall "munlockall" 152 231,
    Vhangup "vhangup" 153 58,
    ModifyLdt "modify_ldt" 154 -,
    PivotRoot "pivot_root" 155 41,
    Sysctl "_sysctl" 156 -,
    Prctl "prctl" 157 167,
    ArchPrctl "arch_prctl" 158 -,
    Adjtimex "adjtimex" 159 171,
    Setrlimit "setrlimit" 160 164,
    Chroot "chroot" 161 51,
    Sync "sync" 162 81,
    Acct "acct" 163 89,
    Settimeofday "settimeofday" 164 170,
    Mount "mount" 165 40,
    Umount2 "umount2" 166 39,
    Swapon "swapon" 167 224,
    Swapoff "swapoff" 168 225,
    Reboot "reboot" 169 142,
    Sethostname "sethostname" 170 161,
    Setdomainname "setdomainname" 171 162,
    Iopl "iopl" 172 -,
    Ioperm "ioperm" 173 -,
    CreateModule "create_module" 174 -,
    InitModule "init_module" 175 105,
    DeleteModule "delete_module" 176 106,
    GetKernelSyms "get_kernel_syms" 177 -,
    QueryModule "query_module" 178 -,
    Quotactl "quotactl" 179 60,
    Nfsservctl "nfsservctl" 180 42,
    Getpmsg "getpmsg" 181 -,
    Putpmsg "putpmsg" 182 -,
    AfsSyscall "afs_syscall" 183 -,
    Tuxcall "tuxcall" 184 -,
    Security "security" 185 -,
    Gettid "gettid" 186 178,
    Readahead "readahead" 187 213,
    Setxattr "setxattr" 188 5,
    Lsetxattr "lsetxattr" 189 6,
    Fsetxattr "fsetxattr" 190 7,
    Getxattr "getxattr" 191 8,
    Lgetxattr "lgetxattr" 192 9,
    Fgetxattr "fgetxattr" 193 10,
    Listxattr "listxattr" 194 11,
    Llistxattr "llistxattr" 195 12,
    Flistxattr "flistxattr" 196 13,
    Removexattr "removexattr" 197 14,
    Lremovexattr "lremovexattr" 198 15,
    Fremovexattr "fremovexattr" 199 16,
    Tkill "tkill" 200 130,
    Time "time" 201 -,
    Futex "futex" 202 98,
    SchedSetaffinity "sched_setaffinity" 203 122,
    SchedGetaffinity "sched_getaffinity" 204 123,
    SetThreadArea "set_thread_area" 205 -,
    IoSetup "io_setup" 206 0,
    IoDestroy "io_destroy" 207 1,
    IoGetevents "io_getevents" 208 4,
    IoSubmit "io_submit" 209 2,
    IoCancel "io_cancel" 210 3,
    GetThreadArea "get_thread_area" 211 -,
    LookupDcookie "lookup_dcookie" 212 18,
    EpollCreate "epoll_create" 213 -,
    EpollCtlOld "epoll_ctl_old" 214 -,
    EpollWaitOld "epoll_wait_old" 215 -,
    RemapFilePages "remap_file_pages" 216 234,
    Getdents64 "getdents64" 217 61,
    SetTidAddress "set_tid_address" 218 96,
    RestartSyscall "restart_syscall" 219 128,
    Semtimedop "semtimedop" 220 192,
    Fadvise64 "fadvise64" 221 223,
    TimerCreate "timer_create" 222 107,
    TimerSettime "timer_settime" 223 110,
    TimerGettime "timer_gettime" 224 108,
    TimerGetoverrun "timer_getoverrun" 225 109,
    TimerDelete "timer_delete" 226 111,
    ClockSettime "clock_settime" 227 112,
    ClockGettime "clock_gettime" 228 113,
    ClockGetres "clock_getres" 229 114,
    ClockNanosleep "clock_nanosleep" 230 115,
    ExitGroup "exit_group" 231 94,
    EpollWait "epoll_wait" 232 -,
    EpollCtl "epoll_ctl" 233 21,
    Tgkill "tgkill" 234 131,
    Utimes "utimes" 235 -,
    Vserver "vserver" 236 -,
    Mbind "mbind" 237 235,
    SetMempolicy "set_mempolicy" 238 237,
    GetMempolicy "get_mempolicy" 239 236,
    MqOpen "mq_open" 240 180,
    MqUnlink "mq_unlink" 241 181,
    MqTimedsend "mq_timedsend" 242 182,
    MqTimedreceive "mq_timedreceive" 243 183,
    MqNotify "mq_notify" 244 184,
    MqGetsetattr "mq_getsetattr" 245 185,
    KexecLoad "kexec_load" 246 104,
    Waitid "waitid" 247 95,
    AddKey "add_key" 248 217,
    RequestKey "request_key" 249 218,
    Keyctl "keyctl" 250 219,
    IoprioSet "ioprio_set" 251 30,
    IoprioGet "ioprio_get" 252 31,
    InotifyInit "inotify_init" 253 -,
    InotifyAddWatch "inotify_add_watch" 254 27,
    InotifyRmWatch "inotify_rm_watch" 255 28,
    MigratePages "migrate_pages" 256 238,
    Openat "openat" 257 56,
    Mkdirat "mkdirat" 258 34,
    Mknodat "mknodat" 259 33,
    Fchownat "fchownat" 260 54,
    Futimesat "futimesat" 261 -,
    Newfstatat "newfstatat" 262 79,
    Unlinkat "unlinkat" 263 35,
    Renameat "renameat" 264 38,
    Linkat "linkat" 265 37,
    Symlinkat "symlinkat" 266 36,
    Readlinkat "readlinkat" 267 78,
    Fchmodat "fchmodat" 268 53,
    Faccessat "faccessat" 269 48,
    Pselect6 "pselect6" 270 72,
    Ppoll "ppoll" 271 73,
    Unshare "unshare" 272 97,
    SetRobustList "set_robust_list" 273 99,
    GetRobustList "get_robust_list" 274 100,
    Splice "splice" 275 76,
    Tee "tee" 276 77,
    SyncFileRange "sync_file_range" 277 84,
    Vmsplice "vmsplice" 278 75,
    MovePages "move_pages" 279 239,
    Utimensat "utimensat" 280 88,
    EpollPwait "epoll_pwait" 281 22,
    Signalfd "signalfd" 282 -,
    TimerfdCreate "timerfd_create" 283 85,
    Eventfd "eventfd" 284 -,
    Fallocate "fallocate" 285 47,
    TimerfdSettime "timerfd_settime" 286 86,
    TimerfdGettime "timerfd_gettime" 287 87,
    Accept4 "accept4" 288 242,
    Signalfd4 "signalfd4" 289 74,
    Eventfd2 "eventfd2" 290 19,
    EpollCreate1 "epoll_create1" 291 20,
    Dup3 "dup3" 292 24,
    Pipe2 "pipe2" 293 59,
    InotifyInit1 "inotify_init1" 294 26,
    Preadv "preadv" 295 69,
    Pwritev "pwritev" 296 70,
    RtTgsigqueueinfo "rt_tgsigqueueinfo" 297 240,
    PerfEventOpen "perf_event_open" 298 241,
    Recvmmsg "recvmmsg" 299 243,
    FanotifyInit "fanotify_init" 300 262,
    FanotifyMark "fanotify_mark" 301 263,
    Prlimit64 "prlimit64" 302 261,
    NameToHandleAt "name_to_handle_at" 303 264,
    OpenByHandleAt "open_by_handle_at" 304 265,
    ClockAdjtime "clock_adjtime" 305 266,
    Syncfs "syncfs" 306 267,
    Sendmmsg "sendmmsg" 307 269,
    Setns "setns" 308 268,
    Getcpu "getcpu" 309 168,
    ProcessVmReadv "process_vm_readv" 310 270,
    ProcessVmWritev "process_vm_writev" 311 271,
    Kcmp "kcmp" 312 272,
    FinitModule "finit_module" 313 273,
    SchedSetattr "sched_setattr" 314 274,
    SchedGetattr "sched_getattr" 315 275,
    Renameat2 "renameat2" 316 276,
    Seccomp "seccomp" 317 277,
    Getrandom "getrandom" 318 278,
    MemfdCreate "memfd_create" 319 279,
    KexecFileLoad "kexec_file_load" 320 294,
    Bpf "bpf" 321 280,
    Execveat "execveat" 322 281,
    Userfaultfd "userfaultfd" 323 282,
    Membarrier "membarrier" 324 283,
    Mlock2 "mlock2" 325 284,
    CopyFileRange "copy_file_range" 326 285,
    Preadv2 "preadv2" 327 286,
    Pwritev2 "pwritev2" 328 287,
    PkeyMprotect "pkey_mprotect" 329 288,
    PkeyAlloc "pkey_alloc" 330 289,
    PkeyFree "pkey_free" 331 290,
    Statx "statx" 332 291,
    IoPgetevents "io_pgetevents" 333 292,
    Rseq "rseq" 334 293,
    Uretprobe "uretprobe" 335 -,
    Uprobe "uprobe" 336 -,
    PidfdSendSignal "pidfd_send_signal" 424 424,
    IoUringSetup "io_uring_setup" 425 425,
    IoUringEnter "io_uring_enter" 426 426,
    IoUringRegister "io_uring_register" 427 427,
    OpenTree "open_tree" 428 428,
    MoveMount "move_mount" 429 429,
    Fsopen "fsopen" 430 430,
    Fsconfig "fsconfig" 431 431,
    Fsmount "fsmount" 432 432,
    Fspick "fspick" 433 433,
    PidfdOpen "pidfd_open" 434 434,
    Clone3 "clone3" 435 435,
    CloseRange "close_range" 436 436,
    Openat2 "openat2" 437 437,
    PidfdGetfd "pidfd_getfd" 438 438,
    Faccessat2 "faccessat2" 439 439,
    ProcessMadvise "process_madvise" 440 440,
    EpollPwait2 "epoll_pwait2" 441 441,
    MountSetattr "mount_setattr" 442 442,
    QuotactlFd "quotactl_fd" 443 443,
    LandlockCreateRuleset "landlock_create_ruleset" 444 444,
    LandlockAddRule "landlock_add_rule" 445 445,
    LandlockRestrictSelf "landlock_restrict_self" 446 446,
    MemfdSecret "memfd_secret" 447 447,
    ProcessMrelease "process_mrelease" 448 448,
    FutexWaitv "futex_waitv" 449 449,
    SetMempolicyHomeNode "set_mempolicy_home_node" 450 450,
    Cachestat "cachestat" 451 451,
    Fchmodat2 "fchmodat2" 452 452,
    MapShadowStack "map_shadow_stack" 453 453,
    FutexWake "futex_wake" 454 454,
    FutexWait "futex_wait" 455 455,
    FutexRequeue "futex_requeue" 456 456,
    Statmount "statmount" 457 457,
    Listmount "listmount" 458 458,
    LsmGetSelfAttr "lsm_get_self_attr" 459 459,
    LsmSetSelfAttr "lsm_set_self_attr" 460 460,
    LsmListModules "lsm_list_modules" 461 461,
    Mseal "mseal" 462 462,
    Setxattrat "setxattrat" 463 463,
    Getxattrat "getxattrat" 464 464,
    Listxattrat "listxattrat" 465 465,
    Removexattrat "removexattrat" 466 466,
    OpenTreeAttr "open_tree_attr" 467 467,
    FileGetattr "file_getattr" 468 468,
    FileSetattr "file_setattr" 469 469,
    Listns "listns" 470 470,
    RseqSliceYield "rseq_slice_yield" 471 471,
    Fchroot "fchroot" 472 472,
}
