//! What may run between fork and exec allocates nothing.
//!
//! The allocator of this binary looks at a flag that the child's body raises first: from then
//! on any allocation or release ends the process with a status of its own.
#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "an allocator is unsafe by nature")]

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::ffi::CString;
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::sync::{Mutex, PoisonError};

    use ringfence_sys::exec::{StringArray, execve};
    use ringfence_sys::failure::Failure;
    use ringfence_sys::files::{self, CWD};
    use ringfence_sys::landlock::{self, AccessFs, Handled, Restrict, Ruleset};
    use ringfence_sys::mounts::{self, Attributes, Change, Filesystem, Propagation, Reach};
    use ringfence_sys::namespaces::{self, IdMap, Namespaces};
    use ringfence_sys::process::{self, Dumpable, Limit, LimitedResource};
    use ringfence_sys::procfs::ProcDir;
    use ringfence_sys::seccomp::{self, Load, SockFilter};
    use ringfence_sys::spawn::{Memory, Spawn};
    use ringfence_sys::wait::Ended;
    use ringfence_sys::{
        Errno, Signal, Subject, capabilities, descriptors, keyring, loopback, mountinfo, oldmounts,
        signals, statmount,
    };
    use rustix::process::{getpid, getppid};

    const ALLOCATED: i32 = 99;

    /// The pid in which nothing may be allocated. A pid and not a flag: a child that shares
    /// our memory must not forbid its parent to allocate.
    static FORBIDDEN: AtomicI32 = AtomicI32::new(0);

    /// One test at a time: there is one such pid.
    static TURN: Mutex<()> = Mutex::new(());

    struct Watchful;

    fn check() {
        let forbidden = FORBIDDEN.load(Ordering::Relaxed);
        if forbidden != 0 && forbidden == getpid().as_raw_pid() {
            // SAFETY: has no demands.
            unsafe { libc::_exit(ALLOCATED) }
        }
    }

    // SAFETY: hands everything to the system's allocator, or ends the process.
    unsafe impl GlobalAlloc for Watchful {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            check();
            // SAFETY: passed on from the caller.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            check();
            // SAFETY: passed on from the caller.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Watchful = Watchful;

    fn forbid() {
        FORBIDDEN.store(getpid().as_raw_pid(), Ordering::Relaxed);
    }

    struct Prepared {
        proc_dir: ProcDir,
        user: IdMap,
        group: IdMap,
        ruleset: Ruleset,
        filter: [SockFilter; 1],
        program: CString,
        arguments: StringArray,
        environment: StringArray,
        standard: [OwnedFd; 3],
        report: OwnedFd,
        target: CString,
        failed: Option<(u16, Errno)>,
    }

    fn everything(subject: &Subject, prepared: &mut Prepared) -> u8 {
        forbid();
        match confine(subject, prepared) {
            Ok(never) => match never {},
            Err((act, errno)) => {
                let failure = Failure {
                    act,
                    errno,
                    detail: 0,
                };
                prepared.failed = Some((act, errno));
                if failure.send(&prepared.report).is_ok() {
                    1
                } else {
                    2
                }
            }
        }
    }

    /// Every wrapper that is meant for a child, in the order of a launch.
    fn confine(
        subject: &Subject,
        prepared: &Prepared,
    ) -> Result<std::convert::Infallible, (u16, Errno)> {
        let at = |act: u16| move |errno: Errno| (act, errno);
        let all = Attributes::RDONLY | Attributes::NOSUID | Attributes::NODEV;
        process::die_with_parent(subject, getppid(), Signal::KILL).map_err(at(1))?;
        namespaces::map_ids(subject, &prepared.proc_dir, prepared.user, prepared.group)
            .map_err(at(2))?;
        loopback::bring_up(subject).map_err(at(3))?;
        namespaces::set_host_name(subject, b"inside").map_err(at(4))?;
        let private = Change::forbid(Attributes::empty()).with_propagation(Propagation::Private);
        mounts::mount_setattr(subject, CWD, c"/", private, Reach::Recursive).map_err(at(5))?;
        oldmounts::propagate(subject, c"/", Propagation::Private, Reach::Recursive)
            .map_err(at(6))?;
        let root = mounts::open_tree(CWD, c"/", Reach::Recursive).map_err(at(7))?;
        mounts::mount_setattr(
            subject,
            root.as_fd(),
            c"",
            Change::forbid(all),
            Reach::Recursive,
        )
        .map_err(at(8))?;
        // Opened in here: a descriptor from outside belongs to another mount namespace.
        let target = files::pin_exact(CWD, &prepared.target).map_err(at(9))?;
        mounts::move_mount(subject, root.as_fd(), target.as_fd(), c"").map_err(at(38))?;
        let top = files::pin(root.as_fd(), c".").map_err(at(10))?;
        statmount::verify(top.as_fd(), all).map_err(at(11))?;
        let fresh = Filesystem::open(c"proc").map_err(at(12))?;
        let fresh = fresh.mount(Attributes::NOSUID).map_err(at(13))?;
        mounts::move_mount(subject, fresh.as_fd(), top.as_fd(), c"proc").map_err(at(14))?;
        mounts::pivot_root(subject, top.as_fd()).map_err(at(15))?;
        let inside = ProcDir::open().map_err(at(16))?;
        let mut buffer = [0; 16384];
        let text = inside
            .read_file(c"self/mountinfo", &mut buffer)
            .map_err(at(17))?;
        if !mountinfo::mounts(text).all(|mount| mount.is_some()) {
            return Err((18, Errno::BADMSG));
        }
        files::identify(&inside).map_err(at(19))?;
        keyring::join_new_session(subject).map_err(at(20))?;
        process::set_name(subject, c"inside").map_err(at(21))?;
        process::new_session(subject).map_err(at(22))?;
        process::set_umask(subject, 0o022);
        let none = Limit {
            current: Some(1),
            maximum: Some(1),
        };
        process::set_limit(subject, LimitedResource::Core, none).map_err(at(23))?;
        process::reset_personality(subject).map_err(at(24))?;
        process::become_subreaper(subject).map_err(at(25))?;
        process::set_dumpable(subject, Dumpable::No).map_err(at(26))?;
        process::set_dumpable(subject, Dumpable::Yes).map_err(at(27))?;
        let mut random = [0; 16];
        process::fill_random(&mut random).map_err(at(28))?;
        capabilities::lock_secure_bits(subject).map_err(at(29))?;
        capabilities::drop_all(subject).map_err(at(30))?;
        process::no_new_privs(subject).map_err(at(31))?;
        let [input, output, error] = &prepared.standard;
        descriptors::place_standard(subject, [input.as_fd(), output.as_fd(), error.as_fd()])
            .map_err(at(32))?;
        descriptors::close_from_at_exec(subject, 3).map_err(at(33))?;
        prepared
            .ruleset
            .restrict_self(subject, Restrict::empty())
            .map_err(at(34))?;
        seccomp::load(subject, &prepared.filter, Load::empty()).map_err(at(35))?;
        signals::reset(subject).map_err(at(36))?;
        let refused = execve(
            subject,
            &prepared.program,
            &prepared.arguments,
            &prepared.environment,
        );
        Err((37, refused))
    }

    fn prepare(target: &std::path::Path) -> (Prepared, OwnedFd) {
        let abi = landlock::abi().unwrap();
        let handled = Handled {
            fs: AccessFs::of_abi(abi),
            ..Handled::default()
        };
        let ruleset = Ruleset::new(abi, handled).unwrap();
        let root = files::pin(CWD, c"/").unwrap();
        ruleset.allow_path(root.as_fd(), handled.fs).unwrap();
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let target = CString::new(target.as_os_str().as_encoded_bytes()).unwrap();
        let prepared = Prepared {
            proc_dir: ProcDir::open().unwrap(),
            user: IdMap::same(rustix::process::geteuid().as_raw()),
            group: IdMap::same(rustix::process::getegid().as_raw()),
            ruleset,
            filter: [SockFilter {
                code: 0x06,
                jt: 0,
                jf: 0,
                k: 0x7fff_0000,
            }],
            program: c"/bin/sh".into(),
            arguments: StringArray::new(vec![c"sh".into(), c"-c".into(), c"exit 42".into()]),
            environment: StringArray::new(vec![]),
            standard: [null(), null(), null()],
            report: writer,
            target,
            failed: None,
        };
        (prepared, reader)
    }

    #[test]
    fn whole_launch_allocates_nothing() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let target = tempfile::tempdir().unwrap();
        for memory in [Memory::Copied, Memory::Shared] {
            let (mut prepared, reader) = prepare(target.path());
            let spawn = Spawn::new(memory).namespaces(Namespaces::all() - Namespaces::TIME);
            let child = spawn.start(&mut prepared, everything).unwrap();
            let ended = child.wait();
            drop(prepared);
            let failure = Failure::receive(&reader).unwrap();
            assert_eq!((ended, failure), (Ok(Ended::Exited(42)), None));
        }
    }

    #[test]
    fn failure_allocates_nothing_either() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let target = tempfile::tempdir().unwrap();
        for memory in [Memory::Copied, Memory::Shared] {
            let (mut prepared, reader) = prepare(target.path());
            prepared.program = c"/no/such/program".into();
            let spawn = Spawn::new(memory).namespaces(Namespaces::all() - Namespaces::TIME);
            let child = spawn.start(&mut prepared, everything).unwrap();
            assert_eq!(child.wait(), Ok(Ended::Exited(1)));
            let failure = Failure::receive(&reader).unwrap().unwrap();
            assert_eq!((failure.act, failure.errno), (37, Errno::NOENT));
        }
    }

    #[test]
    fn allocation_would_be_noticed() {
        fn allocate(_subject: &Subject, (): &mut ()) -> u8 {
            forbid();
            let boxed = std::hint::black_box(Box::new(1_u8));
            *boxed
        }
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for memory in [Memory::Copied, Memory::Shared] {
            let child = Spawn::new(memory).start(&mut (), allocate).unwrap();
            let status = ALLOCATED.to_le_bytes()[0];
            assert_eq!(child.wait(), Ok(Ended::Exited(status)));
        }
    }
}
