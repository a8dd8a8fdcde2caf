use std::ffi::CString;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use ringfence_sys::exec::{StringArray, execve, fexecve};
use ringfence_sys::failure::Failure;
use ringfence_sys::namespaces::Namespaces;
use ringfence_sys::seccomp::{self, Load, SockFilter};
use ringfence_sys::signals::Mask;
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::{Ended, reap_any};
use ringfence_sys::{Errno, Signal, Subject, descriptors, process};

use crate::harness::{as_each_user, as_root, in_child, os_error, pipe};

const BOTH: [Memory; 2] = [Memory::Copied, Memory::Shared];

/// Every namespace that a plain user gets together with a user namespace.
pub(crate) fn all_namespaces() -> Namespaces {
    Namespaces::all() - Namespaces::TIME
}

struct Seen {
    pid: i32,
    mask: Option<Mask>,
}

fn look(_subject: &Subject, seen: &mut Seen) -> u8 {
    // SAFETY: has no demands.
    seen.pid = unsafe { libc::getpid() };
    seen.mask = Mask::current().ok();
    7
}

#[test]
fn status_of_the_body_is_the_exit_status() {
    as_each_user(|_, _| {
        for memory in BOTH {
            let mut seen = Seen { pid: 0, mask: None };
            let child = Spawn::new(memory).start(&mut seen, look).unwrap();
            assert_eq!(child.wait(), Ok(Ended::Exited(7)));
            assert_eq!(child.wait(), Err(Errno::CHILD));
        }
    });
}

#[test]
fn only_a_child_with_shared_memory_writes_to_ours() {
    as_each_user(|_, _| {
        let mut seen = Seen { pid: 0, mask: None };
        let child = Spawn::new(Memory::Copied).start(&mut seen, look).unwrap();
        child.wait().unwrap();
        assert_eq!((seen.pid, seen.mask), (0, None));

        let child = Spawn::new(Memory::Shared).start(&mut seen, look).unwrap();
        assert_eq!(seen.pid, child.pid().as_raw_pid());
        child.wait().unwrap();
    });
}

#[test]
fn child_starts_with_every_signal_blocked_and_the_caller_keeps_its_mask() {
    in_child(|_| {
        let before = Mask::current().unwrap();
        let mut seen = Seen { pid: 0, mask: None };
        let child = Spawn::new(Memory::Shared).start(&mut seen, look).unwrap();
        child.wait().unwrap();
        let inside = seen.mask.unwrap();
        for signal in (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal)) {
            assert!(inside.contains(signal), "{signal}");
        }
        assert_eq!(Mask::current(), Ok(before));
        assert!(!before.contains(libc::SIGTERM));
    });
}

#[test]
fn new_pid_namespace_begins_at_one() {
    as_each_user(|_, _| {
        let mut seen = Seen { pid: 0, mask: None };
        let plain = Spawn::new(Memory::Shared).start(&mut seen, look).unwrap();
        plain.wait().unwrap();
        assert_ne!(seen.pid, 1);

        let spawn = Spawn::new(Memory::Shared).namespaces(all_namespaces());
        let child = spawn.start(&mut seen, look).unwrap();
        assert_eq!(child.wait(), Ok(Ended::Exited(7)));
        assert_eq!(seen.pid, 1);
    });
}

#[test]
fn namespaces_without_a_user_namespace_need_root() {
    as_each_user(|subject, who| {
        let mut seen = Seen { pid: 0, mask: None };
        let spawn = Spawn::new(Memory::Shared).namespaces(Namespaces::NET);
        if crate::harness::is_root() {
            spawn.start(&mut seen, look).unwrap().wait().unwrap();
            crate::harness::become_plain(subject);
        }
        let refused = spawn.start(&mut seen, look).unwrap_err();
        assert_eq!(refused, Errno::PERM, "{who:?}");
    });
}

struct Program {
    path: CString,
    file: Option<OwnedFd>,
    arguments: StringArray,
    environment: StringArray,
    refusal: Option<Errno>,
}

impl Program {
    fn new(path: &str, arguments: &[&str]) -> Self {
        let strings = |list: &[&str]| {
            list.iter()
                .map(|text| CString::new(*text).unwrap())
                .collect()
        };
        Self {
            path: CString::new(path).unwrap(),
            file: None,
            arguments: strings(arguments),
            environment: strings(&["CANARY=yes"]),
            refusal: None,
        }
    }
}

fn become_program(subject: &Subject, program: &mut Program) -> u8 {
    let refusal = match &program.file {
        None => execve(
            subject,
            &program.path,
            &program.arguments,
            &program.environment,
        ),
        Some(file) => fexecve(
            subject,
            file.as_fd(),
            &program.arguments,
            &program.environment,
        ),
    };
    program.refusal = Some(refusal);
    127
}

#[test]
fn child_becomes_another_program_with_its_arguments_and_environment() {
    as_each_user(|_, _| {
        for memory in BOTH {
            for by_descriptor in [false, true] {
                let mut program = Program::new(
                    "/bin/sh",
                    &[
                        "sh",
                        "-c",
                        "test \"$1-$CANARY\" = 'a b-yes' && exit 42",
                        "x",
                        "a b",
                    ],
                );
                if by_descriptor {
                    program.file = Some(std::fs::File::open("/bin/sh").unwrap().into());
                }
                let child = Spawn::new(memory)
                    .start(&mut program, become_program)
                    .unwrap();
                assert_eq!(child.wait(), Ok(Ended::Exited(42)));
                assert_eq!(program.refusal, None);
            }
        }
    });
}

#[test]
fn refused_exec_says_why() {
    as_each_user(|_, _| {
        for (path, errno) in [("/no/such/program", Errno::NOENT), ("/etc", Errno::ACCESS)] {
            let mut program = Program::new(path, &["x"]);
            let spawn = Spawn::new(Memory::Shared);
            let child = spawn.start(&mut program, become_program).unwrap();
            assert_eq!(child.wait(), Ok(Ended::Exited(127)));
            assert_eq!(program.refusal, Some(errno));
        }
    });
}

struct Reporter {
    pipe: OwnedFd,
}

fn report(_subject: &Subject, reporter: &mut Reporter) -> u8 {
    let failure = Failure {
        act: 3,
        errno: Errno::ROFS,
        detail: 99,
    };
    match failure.send(&reporter.pipe) {
        Ok(()) => 1,
        Err(_) => 2,
    }
}

#[test]
fn failure_arrives_and_silence_is_success() {
    in_child(|_| {
        let (reader, writer) = pipe();
        let mut reporter = Reporter {
            pipe: writer.into(),
        };
        let child = Spawn::new(Memory::Copied)
            .start(&mut reporter, report)
            .unwrap();
        let failure = Failure::receive(&reader).unwrap().unwrap();
        assert_eq!(
            (failure.act, failure.errno, failure.detail),
            (3, Errno::ROFS, 99)
        );
        assert_eq!(child.wait(), Ok(Ended::Exited(1)));

        drop(reporter);
        assert_eq!(Failure::receive(&reader), Ok(None));

        let (reader, mut writer) = pipe();
        writer.write_all(b"noise").unwrap();
        assert_eq!(Failure::receive(&reader), Err(Errno::BADMSG));
    });
}

fn sleep(_subject: &Subject, (): &mut ()) -> u8 {
    loop {
        // SAFETY: has no demands.
        unsafe { libc::pause() };
    }
}

#[test]
fn signal_by_descriptor_reaches_the_child_and_not_a_dead_one() {
    as_each_user(|_, _| {
        let child = Spawn::new(Memory::Copied).start(&mut (), sleep).unwrap();
        assert_eq!(child.try_wait(), Ok(None));
        child.signal(Signal::KILL).unwrap();
        assert_eq!(child.wait(), Ok(Ended::Killed { signal: 9 }));
        assert_eq!(child.signal(Signal::KILL), Err(Errno::SRCH));
    });
}

fn panicking(_subject: &Subject, (): &mut ()) -> u8 {
    panic!("on purpose")
}

#[test]
fn panic_ends_the_child_and_not_the_caller() {
    in_child(|_| {
        // The runner's hook must not take this for a failure of the test.
        std::panic::set_hook(Box::new(|_| {}));
        for memory in BOTH {
            let child = Spawn::new(memory).start(&mut (), panicking).unwrap();
            assert_eq!(
                child.wait(),
                Ok(Ended::Killed {
                    signal: libc::SIGABRT
                })
            );
        }
    });
}

#[test]
fn panic_of_a_first_process_ends_it_too() {
    in_child(|_| {
        std::panic::set_hook(Box::new(|_| {}));
        for memory in BOTH {
            let spawn = Spawn::new(memory).namespaces(Namespaces::USER | Namespaces::PID);
            let child = spawn.start(&mut (), panicking).unwrap();
            assert_eq!(child.wait(), Ok(Ended::Exited(134)));
        }
    });
}

#[test]
fn children_are_reaped_by_whoever_waits_for_all() {
    in_child(|_| {
        assert_eq!(reap_any(), Err(Errno::CHILD));
        let mut seen = Seen { pid: 0, mask: None };
        let child = Spawn::new(Memory::Copied).start(&mut seen, look).unwrap();
        let reaped = ringfence_sys::wait::wait_any().unwrap();
        assert_eq!(reaped, (child.pid(), Ended::Exited(7)));
        let child = Spawn::new(Memory::Copied).start(&mut (), sleep).unwrap();
        assert_eq!(reap_any(), Ok(None));
        child.signal(Signal::TERM).unwrap();
        // Blocked in the child, so it stays pending.
        assert_eq!(reap_any(), Ok(None));
        child.signal(Signal::KILL).unwrap();
        assert_eq!(child.wait(), Ok(Ended::Killed { signal: 9 }));
    });
}

#[test]
fn caller_that_ignores_its_children_still_learns_the_status() {
    in_child(|subject| {
        ringfence_sys::signals::ignore(subject, libc::SIGCHLD).unwrap();
        let mut seen = Seen { pid: 0, mask: None };
        let child = Spawn::new(Memory::Copied).start(&mut seen, look).unwrap();
        assert_eq!(child.wait(), Ok(Ended::Exited(7)));
    });
}

/// A program that answers one system call with `errno` and allows the rest.
pub(crate) fn refuse(number: libc::c_long, errno: i32) -> [SockFilter; 4] {
    let number = u32::try_from(number).unwrap();
    let errno = u32::try_from(errno).unwrap();
    let insn = |code, jt, jf, k| SockFilter { code, jt, jf, k };
    [
        insn(0x20, 0, 0, 0),
        insn(0x15, 0, 1, number),
        insn(0x06, 0, 0, 0x0005_0000 | errno),
        insn(0x06, 0, 0, 0x7fff_0000),
    ]
}

#[test]
fn older_call_is_used_where_clone3_is_missing() {
    as_each_user(|subject, _| {
        process::no_new_privs(subject).unwrap();
        let filter = refuse(libc::SYS_clone3, libc::ENOSYS);
        seccomp::load(subject, &filter, Load::empty()).unwrap();
        for memory in BOTH {
            let mut seen = Seen { pid: 0, mask: None };
            let spawn = Spawn::new(memory).namespaces(all_namespaces());
            let child = spawn.start(&mut seen, look).unwrap();
            assert_eq!(child.wait(), Ok(Ended::Exited(7)));
            if memory == Memory::Shared {
                assert_eq!(seen.pid, 1);
            }
            let timed = spawn.namespaces(Namespaces::USER | Namespaces::TIME);
            assert_eq!(timed.start(&mut seen, look).unwrap_err(), Errno::NOSYS);
            let nowhere = std::fs::File::open("/dev/null").unwrap();
            let grouped = spawn.cgroup(nowhere.as_fd());
            assert_eq!(grouped.start(&mut seen, look).unwrap_err(), Errno::NOSYS);
        }
    });
}

#[test]
fn any_other_refusal_of_clone3_is_final() {
    as_each_user(|subject, _| {
        process::no_new_privs(subject).unwrap();
        let filter = refuse(libc::SYS_clone3, libc::EPERM);
        seccomp::load(subject, &filter, Load::empty()).unwrap();
        let mut seen = Seen { pid: 0, mask: None };
        let refused = Spawn::new(Memory::Copied).start(&mut seen, look);
        assert_eq!(refused.unwrap_err(), Errno::PERM);
    });
}

fn wait_for_end_of_pipe(_subject: &Subject, pipe: &mut std::fs::File) -> u8 {
    u8::from(pipe.read(&mut [0]).is_err())
}

#[test]
fn child_is_born_in_the_cgroup_it_was_given() {
    as_root(|_| {
        let root = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"]
            .into_iter()
            .find(|path| std::fs::metadata(format!("{path}/cgroup.procs")).is_ok())
            .expect("a version 2 cgroup tree");
        // SAFETY: has no demands.
        let name = format!("ringfence-sys-test-{}", unsafe { libc::getpid() });
        let directory = format!("{root}/{name}");
        std::fs::create_dir(&directory).unwrap();
        let cgroup = std::fs::File::open(&directory).unwrap();

        let mut elsewhere = true;
        for spawn in [
            Spawn::new(Memory::Copied),
            Spawn::new(Memory::Copied).cgroup(cgroup.as_fd()),
        ] {
            let (mut reader, writer) = pipe();
            let child = spawn.start(&mut reader, wait_for_end_of_pipe).unwrap();
            let path = format!("/proc/{}/cgroup", child.pid().as_raw_pid());
            let groups = std::fs::read_to_string(path).unwrap();
            assert_eq!(
                groups.contains(&format!("0::/{name}\n")),
                !elsewhere,
                "{groups}"
            );
            elsewhere = false;
            child.signal(Signal::KILL).unwrap();
            child.wait().unwrap();
            drop(writer);
        }
        std::fs::remove_dir(&directory).unwrap();
        let wrong = std::fs::File::open("/").unwrap();
        let mut nothing = ();
        let refused = Spawn::new(Memory::Copied)
            .cgroup(wrong.as_fd())
            .start(&mut nothing, sleep);
        assert_eq!(refused.unwrap_err(), Errno::BADF);
    });
}

#[test]
fn spawning_from_many_threads_at_once_works() {
    let threads = (0..8).map(|_| {
        std::thread::spawn(|| {
            for _ in 0..50 {
                let noise = vec![1_u8; 4096];
                for memory in BOTH {
                    let mut seen = Seen { pid: 0, mask: None };
                    let child = Spawn::new(memory).start(&mut seen, look).unwrap();
                    assert_eq!(child.wait(), Ok(Ended::Exited(7)));
                }
                drop(noise);
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
}

#[test]
fn shared_stack_is_guarded() {
    fn overflow(_subject: &Subject, depth: &mut u64) -> u8 {
        // Far below the stack's 256 KiB: a frame that nobody could have.
        #[inline(never)]
        fn dig(depth: &mut u64) -> u64 {
            let mut frame = [0_u8; 4096];
            *depth += 1;
            frame[0] = depth.to_le_bytes()[0];
            let below = if *depth == u64::MAX { 0 } else { dig(depth) };
            std::hint::black_box(&mut frame);
            below + u64::from(frame[1])
        }
        dig(depth).to_le_bytes()[0]
    }
    in_child(|_| {
        let mut depth = 0;
        let child = Spawn::new(Memory::Shared)
            .start(&mut depth, overflow)
            .unwrap();
        assert_eq!(
            child.wait(),
            Ok(Ended::Killed {
                signal: libc::SIGSEGV
            })
        );
        assert!(depth < 100, "{depth}");
        assert_eq!(os_error(std::fs::metadata("/")), None);
    });
}

#[derive(Clone, Copy)]
struct Meeting {
    counter: &'static std::sync::atomic::AtomicU32,
    hear: std::os::fd::RawFd,
    tell: std::os::fd::RawFd,
}

fn meet(subject: &Subject, meeting: &mut Meeting) -> u8 {
    let hear = descriptors::own(subject, meeting.hear);
    let tell = descriptors::own(subject, meeting.tell);
    // Only a child that runs while its parent does can hear this.
    let heard = rustix::io::read(&hear, &mut [0; 1]);
    meeting
        .counter
        .fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    let told = rustix::io::write(&tell, b"x");
    u8::from(heard != Ok(1) || told != Ok(1)) + 3
}

fn hold_meetings(subject: &Subject, counter: &mut &'static std::sync::atomic::AtomicU32) -> u8 {
    for _ in 0..100 {
        let (Ok((hear, say)), Ok((listen, tell))) = (
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC),
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC),
        ) else {
            return 1;
        };
        let meeting = Meeting {
            counter,
            hear: hear.as_raw_fd(),
            tell: tell.as_raw_fd(),
        };
        let beside = Spawn::new(Memory::Shared).start_beside(subject, meeting, meet);
        let Ok(beside) = beside else { return 2 };
        let told = rustix::io::write(&say, b"x");
        let heard = rustix::io::read(&listen, &mut [0; 1]);
        if (told, heard, beside.wait()) != (Ok(1), Ok(1), Ok(Ended::Exited(3))) {
            return 3;
        }
    }
    0
}

#[test]
fn a_child_beside_runs_while_its_parent_does_and_in_its_memory() {
    static COUNTER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    // In the place it is made for: a child that shares our memory itself.
    let mut counter = &COUNTER;
    let child = Spawn::new(Memory::Shared).start(&mut counter, hold_meetings);
    assert_eq!(child.unwrap().wait(), Ok(Ended::Exited(0)));
    assert_eq!(COUNTER.load(std::sync::atomic::Ordering::SeqCst), 100);
}
