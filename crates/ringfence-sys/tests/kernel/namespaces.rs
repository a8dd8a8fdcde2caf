//! User namespaces, id maps, loopback and host name.

use std::net::{TcpListener, TcpStream};

use ringfence_sys::files::OpenFlags;
use ringfence_sys::namespaces::{self, IdMap, Namespaces};
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::{Errno, Subject, loopback};

use crate::harness::{as_each_user, as_root, ids, os_error, pin};
use crate::spawn::all_namespaces;

/// Moves a test's process into namespaces of its own, itself mapped to itself.
pub(crate) fn enter(subject: &Subject, further: Namespaces) {
    let (uid, gid) = ids();
    let proc_dir = ProcDir::open().unwrap();
    namespaces::unshare(subject, further | Namespaces::USER).unwrap();
    namespaces::map_ids(subject, &proc_dir, IdMap::same(uid), IdMap::same(gid)).unwrap();
}

fn link(name: &str) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap()
}

#[test]
fn every_namespace_is_new() {
    const NAMES: [&str; 6] = ["user", "mnt", "net", "ipc", "uts", "cgroup"];
    as_each_user(|subject, _| {
        let before = NAMES.map(link);
        enter(subject, all_namespaces());
        for (name, old) in NAMES.into_iter().zip(before) {
            assert_ne!(link(name), old);
        }
    });
}

#[test]
fn caller_stays_itself_inside() {
    as_each_user(|subject, _| {
        let before = ids();
        enter(subject, Namespaces::empty());
        assert_eq!(ids(), before);
        let (map, groups) = (
            std::fs::read_to_string("/proc/self/uid_map").unwrap(),
            std::fs::read_to_string("/proc/self/setgroups").unwrap(),
        );
        let words: Vec<_> = map.split_whitespace().collect();
        assert_eq!(words, [&before.0.to_string(), &before.0.to_string(), "1"]);
        assert_eq!(groups, "deny\n");
    });
}

#[test]
fn foreign_id_is_not_mapped_by_a_plain_user() {
    as_each_user(|subject, who| {
        if crate::harness::is_root() {
            crate::harness::become_plain(subject);
        }
        let proc_dir = ProcDir::open().unwrap();
        namespaces::unshare(subject, Namespaces::USER).unwrap();
        let refused = namespaces::map_ids(subject, &proc_dir, IdMap::same(0), IdMap::same(0));
        assert_eq!(refused, Err(Errno::PERM), "{who:?}");
    });
}

#[test]
fn loopback_works_once_it_is_up() {
    as_each_user(|subject, _| {
        TcpListener::bind("127.0.0.1:0").unwrap();
        enter(subject, Namespaces::NET);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let unreachable = os_error(TcpStream::connect(address));
        assert_eq!(unreachable, Some(libc::ENETUNREACH));
        loopback::bring_up(subject).unwrap();
        TcpStream::connect(address).unwrap();
        loopback::bring_up(subject).unwrap();
    });
}

#[test]
fn foreign_loopback_is_left_alone() {
    crate::harness::as_plain(|subject| {
        assert_eq!(loopback::bring_up(subject), Err(Errno::PERM));
    });
}

#[test]
fn host_name_changes_inside_only() {
    as_each_user(|subject, _| {
        let before = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        enter(subject, Namespaces::UTS);
        namespaces::set_host_name(subject, b"inside").unwrap();
        let inside = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(inside, "inside\n");
        assert_ne!(before, inside);
        let too_long = namespaces::set_host_name(subject, &[b'x'; 65]);
        assert_eq!(too_long, Err(Errno::INVAL));
    });
    let outside = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_ne!(outside, "inside\n");
}

#[test]
fn foreign_host_name_is_left_alone() {
    crate::harness::as_plain(|subject| {
        let refused = namespaces::set_host_name(subject, b"outside");
        assert_eq!(refused, Err(Errno::PERM));
    });
}

#[test]
fn only_the_root_of_a_procfs_is_one() {
    as_each_user(|_, _| {
        ProcDir::verified(pin("/proc")).unwrap();
        for other in ["/", "/proc/self", "/proc/sys", "/dev"] {
            let refused = ProcDir::verified(pin(other));
            assert_eq!(refused.unwrap_err(), Errno::NODEV, "{other}");
        }
    });
}

#[test]
fn mount_over_a_switch_makes_the_write_fail() {
    as_each_user(|subject, _| {
        enter(subject, Namespaces::MOUNT);
        let decoy = tempfile::NamedTempFile::new().unwrap();
        let proc_dir = ProcDir::open().unwrap();
        proc_dir.write_file(c"self/comm", b"before").unwrap();
        let decoy_path = std::ffi::CString::new(decoy.path().to_str().unwrap()).unwrap();
        // SAFETY: C strings, or null where the kernel ignores it.
        let rc = unsafe {
            libc::mount(
                decoy_path.as_ptr(),
                c"/proc/self/comm".as_ptr(),
                std::ptr::null(),
                libc::MS_BIND,
                std::ptr::null(),
            )
        };
        assert_eq!(rc, 0);
        let refused = proc_dir.write_file(c"self/comm", b"after");
        assert_eq!(refused, Err(Errno::XDEV));
        assert_eq!(std::fs::read(decoy.path()).unwrap(), b"");
    });
}

#[test]
fn file_that_does_not_fit_is_no_answer() {
    as_each_user(|_, _| {
        let proc_dir = ProcDir::open().unwrap();
        let mut buffer = [0; 8];
        let cut = proc_dir.read_file(c"self/status", &mut buffer);
        assert_eq!(cut, Err(Errno::NOBUFS));
        let mut buffer = [0; 8192];
        let whole = proc_dir.read_file(c"self/status", &mut buffer).unwrap();
        assert!(whole.starts_with(b"Name:"));
        let climbing = proc_dir.open_file(c"../etc/passwd", OpenFlags::RDONLY);
        assert_eq!(climbing.unwrap_err(), Errno::XDEV);
    });
}

#[test]
fn namespaces_of_a_child_can_be_joined() {
    as_root(|subject| {
        fn hold(_subject: &Subject, (): &mut ()) -> u8 {
            loop {
                // SAFETY: has no demands.
                unsafe { libc::pause() };
            }
        }
        use ringfence_sys::spawn::{Memory, Spawn};
        use std::os::fd::AsFd;
        let spawn = Spawn::new(Memory::Copied).namespaces(Namespaces::UTS | Namespaces::NET);
        let child = spawn.start(&mut (), hold).unwrap();
        let theirs = format!("/proc/{}/ns/uts", child.pid().as_raw_pid());
        let theirs = std::fs::read_link(theirs).unwrap();
        assert_ne!(link("uts"), theirs);
        namespaces::join(subject, child.as_fd(), Namespaces::UTS).unwrap();
        assert_eq!(link("uts"), theirs);
        child.signal(ringfence_sys::Signal::KILL).unwrap();
        child.wait().unwrap();
    });
}
