//! Landlock, seccomp and capabilities.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use ringfence_sys::landlock::{self, AccessFs, AccessNet, Handled, Restrict, Ruleset, Scope};
use ringfence_sys::seccomp::{self, Load, SockFilter};
use ringfence_sys::spawn::{Memory, Spawn};
use ringfence_sys::wait::Ended;
use ringfence_sys::{Errno, Signal, Subject, capabilities, process};

use rustix::thread::NanosleepRelativeResult;

use crate::harness::{World, as_each_user, as_plain, as_root, os_error, pin, status};
use crate::spawn::refuse;

fn abi() -> u32 {
    landlock::abi().expect("this suite needs a kernel with Landlock")
}

fn enforce(subject: &Subject, ruleset: &Ruleset) {
    process::no_new_privs(subject).unwrap();
    ruleset.restrict_self(subject, Restrict::empty()).unwrap();
}

#[test]
fn read_rule_stops_at_its_path() {
    // Made and removed out here: inside, the removal would be denied.
    let world = World::new();
    let paths = (world.file("granted", "g"), world.file("neighbour", "n"));
    as_each_user(|subject, _| {
        let (granted, neighbour) = &paths;
        fs::read(granted).unwrap();
        fs::read(neighbour).unwrap();

        let ruleset = Ruleset::new(abi(), Handled::of_abi(abi())).unwrap();
        let rule = AccessFs::READ_FILE;
        ruleset.allow_path(pin(granted).as_fd(), rule).unwrap();
        enforce(subject, &ruleset);

        assert_eq!(fs::read(granted).unwrap(), b"g");
        assert_eq!(os_error(fs::read(neighbour)), Some(libc::EACCES));
        assert_eq!(os_error(fs::write(granted, "x")), Some(libc::EACCES));
    });
}

#[test]
fn port_rule_stops_at_its_port() {
    as_each_user(|subject, _| {
        assert!(abi() >= 4, "this suite needs Landlock with TCP rules");
        let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [granted, other] = listeners.each_ref().map(|each| each.local_addr().unwrap());
        TcpStream::connect(granted).unwrap();
        TcpStream::connect(other).unwrap();

        let handled = Handled {
            net: AccessNet::of_abi(abi()),
            ..Handled::default()
        };
        let ruleset = Ruleset::new(abi(), handled).unwrap();
        let access = AccessNet::CONNECT_TCP;
        ruleset.allow_port(granted.port(), access).unwrap();
        enforce(subject, &ruleset);

        TcpStream::connect(granted).unwrap();
        assert_eq!(os_error(TcpStream::connect(other)), Some(libc::EACCES));
        let bound = TcpListener::bind("127.0.0.1:0");
        assert_eq!(os_error(bound), Some(libc::EACCES));
    });
}

/// A process outside the domain that ends by itself: nobody inside could end it.
fn nap(_subject: &Subject, (): &mut ()) -> u8 {
    let short = rustix::thread::Timespec {
        tv_sec: 0,
        tv_nsec: 200_000_000,
    };
    let slept = rustix::thread::nanosleep(&short);
    u8::from(!matches!(slept, NanosleepRelativeResult::Ok))
}

#[test]
fn signal_scope_holds() {
    as_each_user(|subject, _| {
        assert!(abi() >= 6, "this suite needs Landlock with scopes");
        let brother = Spawn::new(Memory::Copied).start(&mut (), nap).unwrap();
        brother.signal(Signal::CONT).unwrap();
        let handled = Handled {
            scope: Scope::all(),
            ..Handled::default()
        };
        let ruleset = Ruleset::new(abi(), handled).unwrap();
        enforce(subject, &ruleset);
        assert_eq!(brother.signal(Signal::CONT), Err(Errno::PERM));
        assert_eq!(brother.signal(Signal::KILL), Err(Errno::PERM));
        assert_eq!(brother.wait(), Ok(Ended::Exited(0)));
    });
}

#[test]
fn ruleset_needs_no_new_privs_of_a_plain_user() {
    as_plain(|subject| {
        let ruleset = Ruleset::new(abi(), Handled::of_abi(abi())).unwrap();
        let refused = ruleset.restrict_self(subject, Restrict::empty());
        assert_eq!(refused, Err(Errno::PERM));
        process::no_new_privs(subject).unwrap();
        ruleset.restrict_self(subject, Restrict::empty()).unwrap();
        assert_eq!(os_error(File::open("/")), Some(libc::EACCES));
    });
}

#[test]
fn unknown_right_is_an_error_and_never_dropped() {
    as_plain(|_| {
        let unknown = Handled {
            fs: AccessFs::from_bits_retain(1 << 62),
            ..Handled::default()
        };
        assert_eq!(Ruleset::new(abi(), unknown).unwrap_err(), Errno::INVAL);
        let ruleset = Ruleset::new(abi(), Handled::of_abi(abi())).unwrap();
        let root = pin("/");
        let wild = AccessFs::from_bits_retain(1 << 62);
        assert_eq!(ruleset.allow_path(root.as_fd(), wild), Err(Errno::INVAL));
        let null = pin("/dev/null");
        let senseless = AccessFs::READ_DIR;
        assert_eq!(
            ruleset.allow_path(null.as_fd(), senseless),
            Err(Errno::INVAL)
        );
        let sense = AccessFs::FOR_FILES & AccessFs::of_abi(abi());
        ruleset.allow_path(null.as_fd(), sense).unwrap();
    });
}

#[test]
fn unknown_restrict_flag_is_refused_and_known_ones_are_not() {
    as_plain(|subject| {
        let ruleset = Ruleset::new(abi(), Handled::of_abi(abi())).unwrap();
        process::no_new_privs(subject).unwrap();
        let wild = Restrict::from_bits_retain(1 << 30);
        assert_eq!(ruleset.restrict_self(subject, wild), Err(Errno::INVAL));
        fs::read("/etc/passwd").unwrap();
        let flags = Restrict::LOG_NEW_EXEC_ON | Restrict::LOG_SUBDOMAINS_OFF;
        if abi() >= 7 {
            ruleset.restrict_self(subject, flags).unwrap();
        } else {
            assert_eq!(ruleset.restrict_self(subject, flags), Err(Errno::INVAL));
            ruleset.restrict_self(subject, Restrict::empty()).unwrap();
        }
        assert_eq!(os_error(fs::read("/etc/passwd")), Some(libc::EACCES));
    });
}

#[test]
fn errata_are_told() {
    as_plain(|_| {
        // Every kernel with ABI 7 has at least the first two corrected.
        let errata = landlock::errata().unwrap();
        assert!(abi() < 7 || errata.bits() & 3 == 3, "{errata:?}");
    });
}

#[test]
fn filter_answers_the_call_it_names_and_no_other() {
    as_each_user(|subject, _| {
        // SAFETY: has no demands.
        let ask = || unsafe { libc::syscall(libc::SYS_getuid) };
        assert!(ask() >= 0);
        process::no_new_privs(subject).unwrap();
        let filter = refuse(libc::SYS_getuid, libc::ENOTTY);
        seccomp::load(subject, &filter, Load::empty()).unwrap();
        let uid = ask();
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert_eq!((uid, errno), (-1, Some(libc::ENOTTY)));
        assert!(rustix::process::getppid().is_some());
        assert_eq!(status("Seccomp"), "2");
    });
}

#[test]
fn filter_reaches_every_thread_when_asked() {
    as_each_user(|subject, _| {
        process::no_new_privs(subject).unwrap();
        let (go, wait) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            wait.recv().unwrap();
            // SAFETY: has no demands.
            unsafe { libc::syscall(libc::SYS_getuid) }
        });
        let filter = refuse(libc::SYS_getuid, libc::ENOTTY);
        seccomp::load(subject, &filter, Load::TSYNC).unwrap();
        go.send(()).unwrap();
        assert_eq!(other.join().unwrap(), -1);
    });
}

#[test]
fn filter_needs_no_new_privs_of_a_plain_user() {
    as_plain(|subject| {
        let filter = refuse(libc::SYS_getuid, libc::ENOTTY);
        let refused = seccomp::load(subject, &filter, Load::empty());
        assert_eq!(refused, Err(Errno::ACCESS));
        // SAFETY: has no demands.
        assert!(unsafe { libc::syscall(libc::SYS_getuid) } > 0);
    });
}

#[test]
fn bad_programs_are_refused() {
    as_plain(|subject| {
        process::no_new_privs(subject).unwrap();
        let jump_out = SockFilter {
            code: 0x15,
            jt: 9,
            jf: 9,
            k: 0,
        };
        for program in [vec![], vec![jump_out], vec![jump_out; 70_000]] {
            let refused = seccomp::load(subject, &program, Load::empty());
            assert_eq!(refused, Err(Errno::INVAL));
        }
        assert_eq!(status("Seccomp"), "0");
    });
}

#[test]
fn actions_are_told_apart() {
    as_plain(|_| {
        const RET_USER_NOTIF: u32 = 0x7fc0_0000;
        assert_eq!(seccomp::action_available(RET_USER_NOTIF), Ok(true));
        assert_eq!(seccomp::action_available(0x1234_0000), Ok(false));
    });
}

#[test]
fn second_listener_is_refused_while_the_first_is_open() {
    as_each_user(|subject, _| {
        process::no_new_privs(subject).unwrap();
        let filter = refuse(libc::SYS_getuid, libc::ENOTTY);
        let listener = seccomp::load_with_listener(subject, &filter, Load::empty()).unwrap();
        let second = seccomp::load_with_listener(subject, &filter, Load::empty());
        assert_eq!(second.unwrap_err(), Errno::BUSY);
        drop(listener);
        seccomp::load_with_listener(subject, &filter, Load::empty()).unwrap();
    });
}

const NONE: &str = "0000000000000000";

#[test]
fn root_can_give_up_every_capability() {
    as_root(|subject| {
        assert_ne!(capabilities::read().unwrap().effective, 0);
        assert_ne!(capabilities::read_bounding().unwrap(), 0);
        fs::read("/etc/shadow").unwrap();
        capabilities::lock_secure_bits(subject).unwrap();
        capabilities::drop_all(subject).unwrap();
        assert_eq!(capabilities::read(), Ok(capabilities::Sets::default()));
        assert_eq!(capabilities::read_bounding(), Ok(0));
        for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
            assert_eq!(status(set), NONE, "{set}");
        }
        // SAFETY: the path is a C string; nothing is changed if it is refused, as it must be.
        let rc = unsafe { libc::chroot(c"/".as_ptr()) };
        assert_eq!(rc, -1);
    });
}

#[test]
fn plain_user_may_clear_but_not_shrink_the_bound() {
    as_plain(|subject| {
        assert_eq!(capabilities::drop_all(subject), Err(Errno::PERM));
        capabilities::clear(subject).unwrap();
        assert_eq!(status("CapEff"), NONE);
        assert_ne!(status("CapBnd"), NONE);
    });
}
