//! What a program must not inherit: descriptors, signals, limits, keys.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

use ringfence_sys::process::{Dumpable, Limit, LimitedResource};
use ringfence_sys::signals::{self, Disposition, Mask, SignalFd};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Ended;
use ringfence_sys::{Errno, Signal, Subject, descriptors, keyring, process};
use rustix::process::{getpid, kill_process};

use crate::harness::{World, as_each_user, as_plain, in_child, os_error, pipe, status};

fn open_numbers() -> Vec<i32> {
    let listing = std::fs::read_dir("/proc/self/fd").unwrap();
    let mut numbers: Vec<i32> = listing
        .map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    numbers.sort_unstable();
    // The listing's own descriptor is gone by now.
    numbers.retain(|number| std::fs::read_link(format!("/proc/self/fd/{number}")).is_ok());
    numbers
}

#[test]
fn every_descriptor_above_the_standard_ones_is_closed() {
    as_each_user(|subject, _| {
        let before = open_numbers();
        let leak = File::open("/").unwrap();
        // SAFETY: duplicates a descriptor that is open.
        let high = unsafe { libc::fcntl(leak.as_raw_fd(), libc::F_DUPFD, 200) };
        assert!(high >= 200);
        assert!(open_numbers().len() >= before.len() + 2);
        let kept = std::mem::ManuallyDrop::new(leak);
        descriptors::close_from(subject, 3).unwrap();
        assert_eq!(open_numbers(), [0, 1, 2]);
        assert_eq!(rustix_error(kept.as_raw_fd()), libc::EBADF);
        // The harness writes its verdict by exit status; its pipe is gone too.
    });
}

fn rustix_error(fd: i32) -> i32 {
    // SAFETY: asks about a number; nothing is changed.
    let rc = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    assert_eq!(rc, -1);
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

#[test]
fn range_closes_its_bounds_and_nothing_else() {
    in_child(|subject| {
        let file = File::open("/").unwrap();
        for number in 100..=104 {
            descriptors::place(subject, file.as_fd(), number).unwrap();
        }
        descriptors::close_between(subject, 101, 103).unwrap();
        let left: Vec<_> = open_numbers()
            .into_iter()
            .filter(|fd| (100..=104).contains(fd))
            .collect();
        assert_eq!(left, [100, 104]);
        let refused = descriptors::place(subject, file.as_fd(), -1);
        assert_eq!(refused, Err(Errno::BADF));
    });
}

#[test]
fn marking_closes_at_exec_only() {
    in_child(|subject| {
        let file = File::open("/").unwrap();
        descriptors::place(subject, file.as_fd(), 150).unwrap();
        // SAFETY: asks about an open descriptor.
        let flags = || unsafe { libc::fcntl(150, libc::F_GETFD) };
        assert_eq!(flags(), 0);
        descriptors::close_from_at_exec(subject, 3).unwrap();
        assert_eq!(flags(), libc::FD_CLOEXEC);
    });
}

#[test]
fn standard_streams_may_be_any_permutation() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 1, 1], [40, 0, 41]] {
        in_child(|subject| {
            let world = World::new();
            for number in [0, 1, 2, 40, 41] {
                let file = File::open(world.file(&number.to_string(), "x")).unwrap();
                descriptors::place(subject, file.as_fd(), number).unwrap();
            }
            let borrow = |number| {
                // SAFETY: all of these numbers were opened above and stay open.
                unsafe { std::os::fd::BorrowedFd::borrow_raw(number) }
            };
            descriptors::place_standard(subject, order.map(borrow)).unwrap();
            for (place, source) in order.into_iter().enumerate() {
                let target = std::fs::read_link(format!("/proc/self/fd/{place}")).unwrap();
                let name = target.file_name().unwrap().to_str().unwrap();
                assert_eq!(name, source.to_string());
                let place = i32::try_from(place).unwrap();
                // SAFETY: asks about an open descriptor.
                assert_eq!(unsafe { libc::fcntl(place, libc::F_GETFD) }, 0);
            }
        });
    }
}

#[test]
fn dispositions_and_mask_of_a_strange_parent_are_forgotten() {
    as_each_user(|subject, _| {
        for signal in [libc::SIGPIPE, libc::SIGCHLD, 33, 64] {
            signals::ignore(subject, signal).unwrap();
            assert_eq!(signals::disposition(signal), Ok(Disposition::Ignored));
        }
        Mask::block_all().unwrap();
        assert!(Mask::current().unwrap().contains(33));
        signals::reset(subject).unwrap();
        assert_eq!(Mask::current(), Ok(Mask::EMPTY));
        for signal in 1..=64 {
            assert_eq!(signals::disposition(signal), Ok(Disposition::Default));
        }
        assert_eq!(status("SigIgn"), "0000000000000000");
        assert_eq!(status("SigCgt"), "0000000000000000");
        assert_eq!(status("SigBlk"), "0000000000000000");
        assert_eq!(signals::disposition(65), Err(Errno::INVAL));
        // But what `nohup` and a shell's background jobs mean by it stays.
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
            signals::ignore(subject, signal).unwrap();
        }
        signals::reset(subject).unwrap();
        assert_eq!(status("SigIgn"), "0000000000000007");
        let unstoppable = signals::ignore(subject, libc::SIGKILL);
        assert_eq!(unstoppable, Err(Errno::INVAL));
    });
}

#[test]
fn blocked_signals_are_read_from_a_descriptor() {
    in_child(|_| {
        let mask = Mask::EMPTY.with(libc::SIGUSR1).with(libc::SIGTERM);
        let before = mask.block().unwrap();
        assert!(!before.contains(libc::SIGUSR1));
        let arrivals = SignalFd::new(mask).unwrap();
        assert_eq!(arrivals.take(), Ok(None));
        kill_process(getpid(), Signal::USR1).unwrap();
        let arrived = arrivals.take().unwrap().unwrap();
        let own = getpid().as_raw_pid().unsigned_abs();
        assert_eq!((arrived.signal, arrived.sender), (libc::SIGUSR1, own));
        assert_eq!(arrivals.take(), Ok(None));
        before.restore().unwrap();
    });
}

struct Orphan {
    parent: Option<ringfence_sys::Pid>,
    ready: File,
    verdict: Option<Errno>,
}

fn die_with_parent(subject: &Subject, orphan: &mut Orphan) -> u8 {
    use std::io::Write;
    match process::die_with_parent(subject, orphan.parent, Signal::KILL) {
        Ok(()) => {}
        Err(errno) => {
            orphan.verdict = Some(errno);
            return 9;
        }
    }
    if orphan.ready.write_all(b"!").is_err() {
        return 8;
    }
    loop {
        // SAFETY: has no demands.
        unsafe { libc::pause() };
    }
}

#[test]
fn child_dies_with_the_thread_that_started_it() {
    use std::io::Read;
    in_child(|_| {
        let (mut reader, writer) = pipe();
        let own = Some(getpid());
        let starter = std::thread::spawn(move || {
            let mut orphan = Orphan {
                parent: own,
                ready: writer,
                verdict: None,
            };
            let child = Spawn::new(Memory::Copied);
            let child = child.start(&mut orphan, die_with_parent).unwrap();
            let mut byte = [0];
            reader.read_exact(&mut byte).unwrap();
            assert_eq!(child.try_wait(), Ok(None));
            child
        });
        let child = starter.join().unwrap();
        assert_eq!(child.wait(), Ok(Ended::Killed { signal: 9 }));
    });
}

#[test]
fn parent_that_is_already_gone_is_noticed() {
    in_child(|_| {
        let (_reader, writer) = pipe();
        let mut orphan = Orphan {
            parent: ringfence_sys::Pid::from_raw(1),
            ready: writer,
            verdict: None,
        };
        let child = Spawn::new(Memory::Shared).start(&mut orphan, die_with_parent);
        assert_eq!(child.unwrap().wait(), Ok(Ended::Exited(9)));
        assert_eq!(orphan.verdict, Some(Errno::SRCH));
    });
}

#[test]
fn process_that_is_not_dumpable_is_closed_to_its_user() {
    as_plain(|subject| {
        std::fs::read("/proc/self/environ").unwrap();
        let own = getpid().as_raw_pid();
        process::set_dumpable(subject, Dumpable::No).unwrap();
        // The reader must be another process: one may always look at itself.
        let mut spy = Spy {
            target: own,
            errno: 0,
        };
        let child = Spawn::new(Memory::Shared)
            .start(&mut spy, look_into)
            .unwrap();
        child.wait().unwrap();
        assert_eq!(spy.errno, libc::EACCES);
        process::set_dumpable(subject, Dumpable::Yes).unwrap();
        let child = Spawn::new(Memory::Shared)
            .start(&mut spy, look_into)
            .unwrap();
        child.wait().unwrap();
        assert_eq!(spy.errno, 0);
    });
}

struct Spy {
    target: i32,
    errno: i32,
}

fn look_into(_subject: &Subject, spy: &mut Spy) -> u8 {
    let mut path = [0_u8; 32];
    let text = b"/proc/";
    path[..text.len()].copy_from_slice(text);
    let mut digits = [0_u8; 10];
    let mut length = 0;
    let mut rest = spy.target.unsigned_abs();
    while rest > 0 {
        digits[length] = b'0' + (rest % 10).to_le_bytes()[0];
        rest /= 10;
        length += 1;
    }
    for (slot, digit) in path[text.len()..]
        .iter_mut()
        .zip(digits[..length].iter().rev())
    {
        *slot = *digit;
    }
    path[text.len() + length..][..8].copy_from_slice(b"/environ");
    // SAFETY: the path ends in a NUL: the buffer was zero and is longer than the text.
    let fd = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY) };
    spy.errno = if fd < 0 {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(-1)
    } else {
        0
    };
    0
}

/// The caller's session, as the kernel numbers it here: 0 where its leader lives outside this
/// pid namespace, as under `unshare --pid --fork` or a build service's runner. `rustix` has
/// no answer for that and panics.
fn session_leader() -> i32 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name may hold spaces and parentheses; what follows its last one is numbers.
    let numbers = stat.rsplit_once(") ").unwrap().1;
    numbers.split(' ').nth(3).unwrap().parse().unwrap()
}

#[test]
fn small_attributes_are_set_and_read_back() {
    as_each_user(|subject, _| {
        assert_eq!(process::has_no_new_privs(), Ok(false));
        process::no_new_privs(subject).unwrap();
        assert_eq!(process::has_no_new_privs(), Ok(true));
        assert_eq!(status("NoNewPrivs"), "1");

        process::set_name(subject, c"ringfence-test").unwrap();
        assert_eq!(status("Name"), "ringfence-test");

        process::set_umask(subject, 0o077);
        assert_eq!(process::set_umask(subject, 0o022), 0o077);
        assert_eq!(status("Umask"), "0022");

        process::become_subreaper(subject).unwrap();

        let own = getpid().as_raw_nonzero().get();
        assert_ne!(session_leader(), own);
        process::new_session(subject).unwrap();
        assert_eq!(session_leader(), own);
        assert_eq!(process::new_session(subject), Err(Errno::PERM));
        assert_eq!(os_error(File::open("/dev/tty")), Some(libc::ENXIO));
    });
}

#[test]
fn limits_hold_and_cannot_be_raised_again() {
    as_plain(|subject| {
        let files = LimitedResource::Nofile;
        let few = Limit {
            current: Some(16),
            maximum: Some(16),
        };
        process::set_limit(subject, files, few).unwrap();
        assert_eq!(process::limit(files), few);
        let opened: Vec<_> = (0..32).map(|_| File::open("/")).collect();
        let refused = opened.into_iter().find_map(Result::err).unwrap();
        assert_eq!(refused.raw_os_error(), Some(libc::EMFILE));
        let many = Limit {
            current: Some(17),
            maximum: Some(17),
        };
        let raised = process::set_limit(subject, files, many);
        assert_eq!(raised.unwrap_err(), Errno::PERM);
    });
}

#[test]
fn personality_of_a_strange_parent_is_forgotten() {
    as_each_user(|subject, _| {
        const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;
        // SAFETY: takes one integer.
        unsafe { libc::personality(ADDR_NO_RANDOMIZE) };
        assert_eq!(process::personality(), Ok(0x0004_0000));
        process::reset_personality(subject).unwrap();
        assert_eq!(process::personality(), Ok(0));
    });
}

#[test]
fn key_of_the_old_session_is_out_of_reach() {
    as_each_user(|subject, _| {
        // Ours to spoil, not the session of whoever runs the tests.
        keyring::join_new_session(subject).unwrap();
        let ours = keyring::session_serial().unwrap();
        add_key();
        assert!(find_key() > 0);
        keyring::join_new_session(subject).unwrap();
        assert_ne!(keyring::session_serial(), Ok(ours));
        assert_eq!(find_key(), -1);
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert_eq!(errno, Some(libc::ENOKEY));
    });
}

const SESSION: i32 = -3;

fn add_key() {
    let (kind, name, value) = (c"user", c"ringfence-canary", b"secret");
    // SAFETY: two C strings and a value with its length.
    let serial = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            kind.as_ptr(),
            name.as_ptr(),
            value.as_ptr(),
            value.len(),
            SESSION,
        )
    };
    assert!(serial > 0, "{}", std::io::Error::last_os_error());
}

fn find_key() -> libc::c_long {
    const KEYCTL_SEARCH: i32 = 10;
    let (kind, name) = (c"user", c"ringfence-canary");
    // SAFETY: two C strings; no destination keyring.
    unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            KEYCTL_SEARCH,
            SESSION,
            kind.as_ptr(),
            name.as_ptr(),
            0,
        )
    }
}

#[test]
fn random_bytes_differ() {
    let (mut first, mut second) = ([0; 300], [0; 300]);
    process::fill_random(&mut first).unwrap();
    process::fill_random(&mut second).unwrap();
    assert_ne!(first, second);
    process::fill_random(&mut []).unwrap();
}

#[test]
fn process_with_threads_is_no_subject() {
    in_child(|_| {
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv().is_err());
        assert_eq!(Subject::this_process().unwrap_err(), Errno::BUSY);
        drop(stop);
        other.join().unwrap();
    });
}
