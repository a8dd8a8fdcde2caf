//! Probes say yes where the thing works and tell the kernel's answer where it does not.

use ringfence_sys::namespaces::Namespaces;
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::seccomp::{self, Load};
use ringfence_sys::switches::{CONTAINER_MARKS, ContainerMark, Switch};
use ringfence_sys::{Errno, probe, process};

use crate::harness::{as_each_user, as_plain};
use crate::namespaces::enter;
use crate::spawn::{all_namespaces, refuse};

type Probe = fn() -> Result<(), Errno>;

/// Every probe that should hold on a host that is fit for this suite.
const PROBES: [(&str, Probe); 7] = [
    ("namespaces", || probe::namespaces(all_namespaces())),
    ("proc", probe::proc_mount),
    ("mounts", probe::mount_api),
    ("loopback", probe::loopback_device),
    ("landlock", probe::landlock),
    ("seccomp", probe::seccomp_filter),
    ("listener", probe::seccomp_listener),
];

#[test]
fn this_host_passes_and_is_left_as_it_was() {
    as_each_user(|_, _| {
        let mounts = std::fs::read("/proc/self/mountinfo").unwrap();
        for (name, probe) in PROBES {
            assert_eq!(probe(), Ok(()), "{name}");
        }
        for namespace in Namespaces::all().iter() {
            assert_eq!(probe::namespaces(namespace), Ok(()), "{namespace:?}");
        }
        assert_eq!(std::fs::read("/proc/self/mountinfo").unwrap(), mounts);
        assert_eq!(process::has_no_new_privs(), Ok(false));
        assert_eq!(crate::harness::status("Seccomp"), "0");
    });
}

#[test]
fn refusals_around_us_are_told() {
    const REFUSALS: [(libc::c_long, i32, &str); 5] = [
        (libc::SYS_open_tree, libc::ENOSYS, "mounts"),
        (libc::SYS_fsopen, libc::ENOSYS, "proc"),
        (libc::SYS_landlock_restrict_self, libc::ENOSYS, "landlock"),
        (libc::SYS_seccomp, libc::EACCES, "seccomp"),
        (libc::SYS_clone3, libc::EPERM, "namespaces"),
    ];
    for (number, errno, name) in REFUSALS {
        as_each_user(|subject, _| {
            let (_, probe) = PROBES.into_iter().find(|probe| probe.0 == name).unwrap();
            assert_eq!(probe(), Ok(()));
            process::no_new_privs(subject).unwrap();
            seccomp::load(subject, &refuse(number, errno), Load::empty()).unwrap();
            assert_eq!(probe(), Err(Errno::from_raw_os_error(errno)), "{name}");
        });
    }
}

#[test]
fn nested_namespace_without_allowance_is_refused() {
    as_each_user(|subject, _| {
        enter(subject, Namespaces::MOUNT);
        assert_eq!(probe::namespaces(Namespaces::empty()), Ok(()));
        std::fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
        let refused = probe::namespaces(Namespaces::empty());
        assert_eq!(refused, Err(Errno::NOSPC));
        let proc_dir = ProcDir::open().unwrap();
        assert_eq!(Switch::MaxUserNamespaces.read(&proc_dir), Ok(Some(0)));
    });
}

#[test]
fn second_listener_is_told_to_be_impossible() {
    as_each_user(|subject, _| {
        process::no_new_privs(subject).unwrap();
        let filter = refuse(libc::SYS_acct, libc::EPERM);
        let listener = seccomp::load_with_listener(subject, &filter, Load::empty()).unwrap();
        assert_eq!(probe::seccomp_listener(), Err(Errno::BUSY));
        drop(listener);
        assert_eq!(probe::seccomp_listener(), Ok(()));
    });
}

#[test]
fn tun_is_a_matter_of_the_files_rights() {
    as_plain(|_| {
        let opened = std::fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/net/tun");
        let expected = opened.map(|_| ()).map_err(|error| error.raw_os_error());
        let probed = probe::tun_device().map_err(|errno| Some(errno.raw_os_error()));
        assert_eq!(probed, expected);
    });
}

#[test]
fn switches_agree_with_their_files() {
    as_each_user(|_, _| {
        let proc_dir = ProcDir::open().unwrap();
        for switch in [
            Switch::AppArmorRestrictsUserNamespaces,
            Switch::DmesgRestrict,
            Switch::LegacyTiocsti,
            Switch::MaxUserNamespaces,
            Switch::UnprivilegedUserNamespaces,
            Switch::YamaPtraceScope,
        ] {
            let path = format!("/proc/{}", switch.path().to_str().unwrap());
            let expected = std::fs::read_to_string(path).ok();
            let expected = expected.map(|text| text.trim().parse().unwrap());
            assert_eq!(switch.read(&proc_dir), Ok(expected), "{switch:?}");
        }
    });
}

#[test]
fn user_namespace_is_a_mark_of_a_container() {
    as_each_user(|subject, _| {
        let proc_dir = ProcDir::open().unwrap();
        for mark in CONTAINER_MARKS {
            mark.is_present(&proc_dir).unwrap();
        }
        enter(subject, Namespaces::empty());
        let mark = ContainerMark::UserNamespace;
        assert_eq!(mark.is_present(&proc_dir), Ok(true));
    });
}
