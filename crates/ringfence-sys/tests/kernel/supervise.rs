//! What the supervisor's side uses: notifications, sockets, timers, terminals, cgroups.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ringfence_sys::cgroup::{self, Group};
use ringfence_sys::events::{self, Polled, Ready, Timer};
use ringfence_sys::notify::{self, Answer, AtExec, Listener};
use ringfence_sys::seccomp::{self, Load, SockFilter};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::terminal::{self, Output, Size};
use ringfence_sys::wait::Ended;
use ringfence_sys::{Errno, Pid, Signal, Subject, process, signals, sockets};

use crate::harness::{World, as_each_user, as_plain, as_root, in_child, os_error};

/// A program that passes one system call on to the listener.
fn pass_on(number: libc::c_long) -> [SockFilter; 4] {
    let mut program = crate::spawn::refuse(number, 0);
    program[2].k = 0x7fc0_0000;
    program
}

struct Notified {
    socket: OwnedFd,
    filter: [SockFilter; 4],
}

/// Sends its listener out, then makes the call four times and reports what came back.
fn make_calls(subject: &Subject, notified: &mut Notified) -> u8 {
    if process::no_new_privs(subject).is_err() {
        return 1;
    }
    let listener = seccomp::load_with_listener(subject, &notified.filter, Load::empty());
    let Ok(listener) = listener else {
        return 2;
    };
    if sockets::send(&notified.socket, b"l", &[listener.as_fd()]).is_err() {
        return 3;
    }
    drop(listener);
    // SAFETY: the path is a C string.
    let open = || unsafe {
        libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            c"/no/such/file".as_ptr(),
            libc::O_RDONLY,
            0,
        )
    };
    let errno = || std::io::Error::last_os_error().raw_os_error();
    if open() != -1 || errno() != Some(libc::EDOM) {
        return 4;
    }
    if open() != 1234 {
        return 5;
    }
    if open() != -1 || errno() != Some(libc::ENOENT) {
        return 6;
    }
    let Ok(given) = i32::try_from(open()) else {
        return 7;
    };
    let mut byte = [0_u8; 1];
    // SAFETY: reads one byte into a live buffer.
    let count = unsafe { libc::read(given, byte.as_mut_ptr().cast(), 1) };
    if (count, byte) == (1, *b"c") { 0 } else { 8 }
}

#[test]
fn supervisor_answers_for_the_kernel() {
    let world = World::new();
    let canary = world.file("canary", "canary");
    as_each_user(|_, _| {
        assert_eq!(notify::sizes_agree(), Ok(true));
        let (ours, theirs) = sockets::pair().unwrap();
        let mut notified = Notified {
            socket: theirs,
            filter: pass_on(libc::SYS_openat),
        };
        let child = Spawn::new(Memory::Copied).start(&mut notified, make_calls);
        let child = child.unwrap();
        let mut buffer = [0; 8];
        let received = sockets::receive(&ours, &mut buffer).unwrap();
        let [Some(listener), ..] = received.descriptors else {
            panic!("no listener came");
        };
        let listener = Listener::new(listener);
        listener.wake_synchronously().unwrap();

        let first = listener.receive().unwrap();
        assert_eq!(i64::from(first.number), libc::SYS_openat);
        assert_eq!(first.pid, child.pid().as_raw_pid().unsigned_abs());
        let pid = Pid::from_raw(first.pid.cast_signed()).unwrap();
        let mut path = [0; 13];
        let count = notify::read_memory(pid, first.arguments[1], &mut path);
        assert_eq!((count, &path), (Ok(13), b"/no/such/file"));
        assert_eq!(notify::read_memory(pid, 8, &mut path), Err(Errno::FAULT));
        assert_eq!(listener.still_waits(first.id), Ok(true));
        listener.answer(first.id, Answer::Fail(Errno::DOM)).unwrap();
        assert_eq!(listener.still_waits(first.id), Ok(false));
        let late = listener.answer(first.id, Answer::Continue);
        assert!(matches!(late, Err(Errno::NOENT | Errno::INPROGRESS)));

        let second = listener.receive().unwrap();
        listener.answer(second.id, Answer::Return(1234)).unwrap();
        let third = listener.receive().unwrap();
        listener.answer(third.id, Answer::Continue).unwrap();
        let fourth = listener.receive().unwrap();
        let file = File::open(&canary).unwrap();
        listener
            .add_fd(fourth.id, file.as_fd(), AtExec::Close)
            .unwrap();
        assert_eq!(child.wait(), Ok(Ended::Exited(0)));
    });
}

#[test]
fn message_arrives_whole_with_its_descriptors() {
    as_each_user(|_, _| {
        let (left, right) = sockets::pair().unwrap();
        let (mut reader, writer) = crate::harness::pipe();
        sockets::send(&left, b"hello", &[writer.as_fd()]).unwrap();
        drop(writer);
        let mut buffer = [0; 16];
        let received = sockets::receive(&right, &mut buffer).unwrap();
        assert_eq!(&buffer[..received.length], b"hello");
        let mut files = received.descriptors.into_iter().flatten();
        let mut passed = File::from(files.next().unwrap());
        assert!(files.next().is_none());
        passed.write_all(b"through").unwrap();
        drop(passed);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");

        sockets::send(&left, b"too long for it", &[]).unwrap();
        let cut = sockets::receive(&right, &mut [0; 4]);
        assert_eq!(cut.unwrap_err(), Errno::MSGSIZE);
        assert_eq!(sockets::send(&left, b"", &[]), Err(Errno::INVAL));
        let nine = [left.as_fd(); 9];
        assert_eq!(sockets::send(&left, b"x", &nine), Err(Errno::INVAL));
        drop(left);
        let end = sockets::receive(&right, &mut buffer).unwrap();
        assert_eq!(end.length, 0);
        assert_eq!(sockets::send(&right, b"x", &[]), Err(Errno::PIPE));
    });
}

#[test]
fn timer_goes_off_once_and_not_when_stopped() {
    let timer = Timer::new().unwrap();
    assert_eq!(timer.went_off(), Ok(false));
    for after in [Duration::ZERO, Duration::from_millis(5)] {
        timer.start(after).unwrap();
        let mut polled = [Polled::new(&timer, Ready::IN)];
        assert_eq!(
            events::poll(&mut polled, Some(Duration::from_secs(5))),
            Ok(1)
        );
        assert_eq!(timer.went_off(), Ok(true));
        assert_eq!(timer.went_off(), Ok(false));
    }
    timer.start(Duration::from_millis(20)).unwrap();
    timer.stop().unwrap();
    let mut polled = [Polled::new(&timer, Ready::IN)];
    let waited = events::poll(&mut polled, Some(Duration::from_millis(60)));
    assert_eq!(waited, Ok(0));
}

#[test]
fn sealed_memory_is_read_only_for_good() {
    as_each_user(|_, _| {
        let memory = events::memory_file(c"test").unwrap();
        let mut file = File::from(memory.try_clone().unwrap());
        file.write_all(b"before").unwrap();
        assert_eq!(events::is_sealed(&memory), Ok(false));
        events::seal(&memory).unwrap();
        assert_eq!(events::is_sealed(&memory), Ok(true));
        assert_eq!(os_error(file.write_all(b"after")), Some(libc::EPERM));
        assert_eq!(os_error(file.set_len(1)), Some(libc::EPERM));
        assert_eq!(events::seal(&memory), Err(Errno::PERM));
        let (_reader, writer) = events::pipe().unwrap();
        assert_eq!(events::seal(&writer), Err(Errno::INVAL));
    });
}

#[test]
fn pseudoterminal_behaves_like_one() {
    as_each_user(|subject, _| {
        let pty = terminal::open_pty().unwrap();
        assert!(terminal::is_terminal(&pty.slave));
        let size = Size {
            rows: 33,
            columns: 99,
        };
        terminal::set_size(&pty.master, size).unwrap();
        assert_eq!(terminal::size(&pty.slave), Ok(size));

        let mut master = File::from(pty.master.try_clone().unwrap());
        let mut slave = File::from(pty.slave.try_clone().unwrap());
        // A line may arrive in parts.
        let mut line = || {
            let mut line = Vec::new();
            while !line.ends_with(b"\n") {
                let mut buffer = [0; 64];
                let count = master.read(&mut buffer).unwrap();
                line.extend_from_slice(&buffer[..count]);
            }
            line
        };
        slave.write_all(b"a\n").unwrap();
        assert_eq!(line(), b"a\r\n");
        let before = terminal::make_raw(&pty.slave, Output::AsIs).unwrap();
        slave.write_all(b"b\n").unwrap();
        assert_eq!(line(), b"b\n");
        terminal::restore(&pty.slave, &before).unwrap();
        slave.write_all(b"c\n").unwrap();
        assert_eq!(line(), b"c\r\n");

        // The last copy of the master hangs up on its session: on us.
        signals::ignore(subject, libc::SIGHUP).unwrap();
        process::new_session(subject).unwrap();
        assert_eq!(os_error(File::open("/dev/tty")), Some(libc::ENXIO));
        terminal::take_control(subject, pty.slave.as_fd()).unwrap();
        File::open("/dev/tty").unwrap();

        let null = File::open("/dev/null").unwrap();
        assert_eq!(terminal::size(&null), Err(Errno::NOTTY));
        assert_eq!(
            terminal::make_raw(&null, Output::AsIs).unwrap_err(),
            Errno::NOTTY
        );
        assert!(!terminal::is_terminal(&null));
    });
}

fn root_group() -> Group {
    let text = std::fs::read("/proc/self/mountinfo").unwrap();
    let (mount, _) = cgroup::mount(&text, b"/").expect("a version 2 cgroup tree");
    let path = std::ffi::CString::new(mount.point).unwrap();
    Group::open(&path).unwrap()
}

fn sleep(_subject: &Subject, (): &mut ()) -> u8 {
    loop {
        // SAFETY: has no demands.
        unsafe { libc::pause() };
    }
}

#[test]
fn group_is_frozen_killed_and_removed() {
    as_root(|_| {
        let root = root_group();
        let name = format!("ringfence-sys-group-{}", std::process::id());
        let name = std::ffi::CString::new(name).unwrap();
        let group = root.create(&name).unwrap();
        assert_eq!(root.create(&name).unwrap_err(), Errno::EXIST);
        assert_eq!(group.is_populated(), Ok(false));

        let spawn = Spawn::new(Memory::Copied).cgroup(group.as_fd());
        let children: Vec<_> = (0..5)
            .map(|_| spawn.start(&mut (), sleep).unwrap())
            .collect();
        assert_eq!(group.is_populated(), Ok(true));
        assert_eq!(root.remove(&name), Err(Errno::BUSY));

        let events = group.events().unwrap();
        let mut buffer = [0; 256];
        rustix::io::read(&events, &mut buffer).unwrap();
        group.freeze().unwrap();
        while group.is_frozen() != Ok(true) {
            let mut polled = [Polled::new(&events, Ready::PRI)];
            events::poll(&mut polled, Some(Duration::from_secs(5))).unwrap();
        }
        group.thaw().unwrap();
        group.freeze().unwrap();
        group.kill().unwrap();
        for child in children {
            assert_eq!(child.wait(), Ok(Ended::Killed { signal: 9 }));
        }
        assert_eq!(group.is_populated(), Ok(false));
        root.remove(&name).unwrap();
    });
}

#[test]
fn plain_user_makes_no_group_where_none_was_delegated() {
    as_plain(|_| {
        let refused = root_group().create(c"ringfence-sys-denied");
        assert_eq!(refused.unwrap_err(), Errno::ACCESS);
    });
}

#[test]
fn other_directories_are_no_groups() {
    in_child(|_| {
        assert_eq!(Group::open(c"/tmp").unwrap_err(), Errno::NODEV);
        let text = std::fs::read("/proc/self/cgroup").unwrap();
        assert!(cgroup::own_path(&text).is_some());
        let child = Spawn::new(Memory::Copied).start(&mut (), sleep).unwrap();
        child.signal(Signal::KILL).unwrap();
        child.wait().unwrap();
    });
}
