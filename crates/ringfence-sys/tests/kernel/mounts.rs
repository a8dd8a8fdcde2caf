//! Mounts by descriptor and by the older call, and what is known of them afterwards.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use ringfence_sys::files::{self, CWD, Kind, OpenFlags, StatFlags};
use ringfence_sys::mountinfo;
use ringfence_sys::mounts::{self, Attributes, Change, Filesystem, Propagation, Reach};
use ringfence_sys::namespaces::Namespaces;
use ringfence_sys::procfs::ProcDir;
use ringfence_sys::{Errno, Subject, oldmounts, statmount};

use crate::harness::{World, as_each_user, ids, os_error, pin};
use crate::namespaces::enter;

fn private_world(subject: &Subject) -> World {
    let world = World::new();
    make_private(subject);
    world
}

fn make_private(subject: &Subject) {
    enter(subject, Namespaces::MOUNT);
    let whole = Change::forbid(Attributes::empty()).with_propagation(Propagation::Private);
    mounts::mount_setattr(subject, CWD, c"/", whole, Reach::Recursive).unwrap();
}

fn tmpfs(attributes: Attributes) -> OwnedFd {
    let filesystem = Filesystem::open(c"tmpfs").unwrap();
    filesystem.set(c"size", c"64k").unwrap();
    filesystem.set(c"mode", c"0777").unwrap();
    filesystem.mount(attributes).unwrap()
}

fn attach(subject: &Subject, tree: &OwnedFd, path: &Path) {
    mounts::move_mount(subject, tree.as_fd(), pin(path).as_fd(), c"").unwrap();
}

#[test]
fn new_filesystem_keeps_its_options() {
    as_each_user(|subject, _| {
        let world = private_world(subject);
        let place = world.dir("place");
        attach(
            subject,
            &tmpfs(Attributes::NOSUID | Attributes::NODEV),
            &place,
        );
        fs::write(place.join("small"), "x").unwrap();
        let full = os_error(fs::write(place.join("large"), vec![0; 100_000]));
        assert_eq!(full, Some(libc::ENOSPC));
        let facts = files::filesystem(pin(&place)).unwrap();
        assert_eq!(facts.magic, files::TMPFS_MAGIC);
        assert!(facts.flags.contains(StatFlags::NOSUID | StatFlags::NODEV));
        assert!(!facts.flags.contains(StatFlags::RDONLY));
        let unknown = Filesystem::open(c"tmpfs").unwrap().set(c"nonsense", c"1");
        assert_eq!(unknown, Err(Errno::INVAL));
        assert_eq!(Filesystem::open(c"nonsense").unwrap_err(), Errno::NODEV);
        mounts::detach(subject, &c_path(&place)).unwrap();
    });
}

fn c_path(path: &Path) -> std::ffi::CString {
    std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).unwrap()
}

#[test]
fn read_only_reaches_the_mounts_below() {
    as_each_user(|subject, _| {
        let world = private_world(subject);
        let (source, target) = (world.dir("source"), world.dir("target"));
        fs::create_dir(source.join("below")).unwrap();
        attach(subject, &tmpfs(Attributes::empty()), &source.join("below"));
        fs::write(source.join("below/file"), "before").unwrap();

        let tree = mounts::open_tree(pin(&source).as_fd(), c"", Reach::Recursive).unwrap();
        let demanded = Attributes::RDONLY | Attributes::NOSUID | Attributes::NODEV;
        let change = Change::forbid(demanded);
        mounts::mount_setattr(subject, tree.as_fd(), c"", change, Reach::Recursive).unwrap();
        attach(subject, &tree, &target);

        assert_eq!(fs::read(target.join("below/file")).unwrap(), b"before");
        for path in ["file", "below/file", "below/new"] {
            let refused = os_error(fs::write(target.join(path), "after"));
            assert_eq!(refused, Some(libc::EROFS), "{path}");
        }
        fs::write(source.join("below/file"), "source stays writable").unwrap();
        statmount::verify(pin(&target).as_fd(), demanded).unwrap();

        // The mutation: one mount below that lost the attribute.
        let single = Change {
            set: Attributes::empty(),
            clear: Attributes::RDONLY,
            propagation: Propagation::Keep,
        };
        let below = pin(target.join("below"));
        mounts::mount_setattr(subject, below.as_fd(), c"", single, Reach::Single).unwrap();
        let caught = statmount::verify(pin(&target).as_fd(), demanded);
        assert_eq!(caught, Err(Errno::PERM));
        fs::write(target.join("below/file"), "so the check was right").unwrap();
        unmount(subject, &[&target, &source.join("below")]);
    });
}

/// The world's directory cannot be removed while something is mounted in it.
fn unmount(subject: &Subject, paths: &[&Path]) {
    for path in paths {
        mounts::detach(subject, &c_path(path)).unwrap();
    }
}

#[test]
fn facts_by_number_and_by_text_agree() {
    as_each_user(|subject, _| {
        let world = private_world(subject);
        let place = world.dir("with blank");
        attach(
            subject,
            &tmpfs(Attributes::NOEXEC | Attributes::NODEV),
            &place,
        );
        let id = statmount::mount_id(pin(&place).as_fd()).unwrap();
        let by_number = statmount::statmount(id).unwrap();
        assert_eq!(by_number.attributes, Attributes::NOEXEC | Attributes::NODEV);
        assert_eq!(by_number.magic, files::TMPFS_MAGIC);
        assert!(!by_number.shared);

        let proc_dir = ProcDir::open().unwrap();
        let mut buffer = vec![0; 1 << 20];
        let text = proc_dir.read_file(c"self/mountinfo", &mut buffer).unwrap();
        let path = place.as_os_str().as_encoded_bytes();
        let by_text = mountinfo::mounts(text)
            .map(Option::unwrap)
            .find(|mount| mountinfo::unescaped(mount.point).eq(path.iter().copied()))
            .unwrap();
        assert_eq!(by_text.attributes, by_number.attributes);
        assert_eq!(by_text.kind, b"tmpfs");
        assert!(!by_text.shared && !by_text.slave);
        unmount(subject, &[&place]);
    });
}

#[test]
fn too_many_mounts_are_an_error() {
    as_each_user(|_, _| {
        let root = statmount::MountId::NAMESPACE_ROOT;
        let mut none = [];
        let full = statmount::listmount(root, &mut none);
        assert_eq!(full, Err(Errno::NOBUFS));
    });
}

#[test]
fn older_call_binds_what_was_opened() {
    as_each_user(|subject, _| {
        let world = private_world(subject);
        let (source, target) = (world.dir("source"), world.dir("target"));
        fs::write(source.join("file"), "here").unwrap();
        let (from, to) = (pin(&source), pin(&target));
        // The names are taken away after the opening: only descriptors count.
        fs::rename(&source, world.path("elsewhere")).unwrap();
        world.dir("source");
        oldmounts::bind(subject, from.as_fd(), to.as_fd(), Reach::Single).unwrap();
        assert_eq!(fs::read(target.join("file")).unwrap(), b"here");
        fs::write(target.join("file"), "still writable").unwrap();

        let on_top = pin(&target);
        let all = Attributes::RDONLY | Attributes::NOSUID | Attributes::NODEV;
        oldmounts::remount(subject, on_top.as_fd(), all).unwrap();
        let refused = os_error(fs::write(target.join("file"), "x"));
        assert_eq!(refused, Some(libc::EROFS));
        let flags = files::filesystem(pin(&target)).unwrap().flags;
        assert!(flags.contains(StatFlags::RDONLY | StatFlags::NOSUID | StatFlags::NODEV));

        let place = world.dir("place");
        let kind = c"tmpfs";
        let options = c"size=64k";
        oldmounts::mount_new(subject, kind, pin(&place).as_fd(), all, options).unwrap();
        let refused = os_error(fs::write(place.join("file"), "x"));
        assert_eq!(refused, Some(libc::EROFS));
        unmount(subject, &[&target, &place]);
    });
}

#[test]
fn older_call_sets_propagation() {
    as_each_user(|subject, _| {
        enter(subject, Namespaces::MOUNT);
        let private = Propagation::Private;
        oldmounts::propagate(subject, c"/", private, Reach::Recursive).unwrap();
        let text = fs::read("/proc/self/mountinfo").unwrap();
        assert!(mountinfo::mounts(&text).all(|mount| !mount.unwrap().shared));
    });
}

#[test]
fn old_root_is_gone_after_the_pivot() {
    // Made and removed out here: inside, it is out of reach in the end.
    let world = World::new();
    let (canary, place) = (world.file("canary", "secret"), world.dir("root"));
    as_each_user(|subject, _| {
        make_private(subject);
        let root = tmpfs(Attributes::empty());
        attach(subject, &root, &place);
        fs::write(place.join("inside"), "x").unwrap();
        fs::read(&canary).unwrap();
        let directory = pin(&place);
        mounts::pivot_root(subject, directory.as_fd()).unwrap();

        let names: Vec<_> = fs::read_dir("/").unwrap().collect();
        assert_eq!(names.len(), 1);
        fs::read("/inside").unwrap();
        assert_eq!(os_error(fs::read(&canary)), Some(libc::ENOENT));
        assert_eq!(os_error(fs::read("/../../etc/passwd")), Some(libc::ENOENT));
        assert_eq!(std::env::current_dir().unwrap(), Path::new("/"));
    });
}

#[test]
fn plain_directory_is_no_new_root() {
    as_each_user(|subject, _| {
        let world = private_world(subject);
        let directory = pin(world.dir("plain"));
        let refused = mounts::pivot_root(subject, directory.as_fd());
        assert_eq!(refused, Err(Errno::INVAL));
    });
}

#[test]
fn procfs_of_a_new_pid_namespace_shows_only_that() {
    use ringfence_sys::namespaces::{IdMap, map_ids};
    use ringfence_sys::spawn::{Memory, Spawn};
    use ringfence_sys::wait::Ended;
    struct Context {
        proc_dir: ProcDir,
        user: IdMap,
        group: IdMap,
    }
    fn mount_proc(subject: &Subject, context: &mut Context) -> u8 {
        if map_ids(subject, &context.proc_dir, context.user, context.group).is_err() {
            return 1;
        }
        let Ok(filesystem) = Filesystem::open(c"proc") else {
            return 2;
        };
        let Ok(tree) = filesystem.mount(Attributes::NOSUID) else {
            return 3;
        };
        let Ok(inside) = ProcDir::verified(tree) else {
            return 4;
        };
        let mut buffer = [0; 4096];
        let Ok(text) = inside.read_file(c"1/status", &mut buffer) else {
            return 5;
        };
        let own = text.windows(7).any(|window| window == b"\nPid:\t1");
        if own { 0 } else { 6 }
    }
    as_each_user(|_, _| {
        let (uid, gid) = ids();
        let mut context = Context {
            proc_dir: ProcDir::open().unwrap(),
            user: IdMap::same(uid),
            group: IdMap::same(gid),
        };
        let spawn = Spawn::new(Memory::Shared)
            .namespaces(Namespaces::USER | Namespaces::PID | Namespaces::MOUNT);
        let child = spawn.start(&mut context, mount_proc).unwrap();
        assert_eq!(child.wait(), Ok(Ended::Exited(0)));
    });
}

#[test]
fn pinned_path_is_what_it_was() {
    as_each_user(|_, _| {
        let world = World::new();
        let file = world.file("file", "x");
        std::os::unix::fs::symlink(&file, world.path("link")).unwrap();
        let base = pin(world.path(""));
        let identity = files::identify(files::pin_exact(CWD, &c_path(&file)).unwrap()).unwrap();
        assert_eq!((identity.kind, identity.size), (Kind::Regular, 1));
        assert_eq!(files::identify(pin(&file)).unwrap(), identity);
        assert_eq!(
            files::identify(pin("/dev/null")).unwrap().stands_for,
            (1, 3)
        );

        let through_link = files::pin(base.as_fd(), c"link").unwrap();
        assert_eq!(files::identify(through_link).unwrap(), identity);
        let refused = files::pin_exact(base.as_fd(), c"link");
        assert_eq!(refused.unwrap_err(), Errno::LOOP);
        files::pin_beneath(base.as_fd(), c"file").unwrap();
        let climbing = files::pin_beneath(base.as_fd(), c"../../etc");
        assert_eq!(climbing.unwrap_err(), Errno::XDEV);
        let magic = files::pin(CWD, c"/proc/self/exe");
        assert_eq!(magic.unwrap_err(), Errno::LOOP);
        let opened = files::openat2(
            base.as_fd(),
            c"file",
            OpenFlags::RDONLY,
            files::FileMode::empty(),
            files::Resolve::BENEATH,
        );
        let opened = File::from(opened.unwrap());
        assert_eq!(opened.metadata().unwrap().len(), 1);
    });
}

#[test]
fn descriptor_from_before_the_namespace_is_not_mounted() {
    as_each_user(|subject, _| {
        let world = World::new();
        let (source, target) = (world.dir("source"), world.dir("target"));
        let (old_source, old_target) = (pin(&source), pin(&target));
        make_private(subject);
        let (new_source, new_target) = (pin(&source), pin(&target));
        let clone = |fd: &OwnedFd| mounts::open_tree(fd.as_fd(), c"", Reach::Recursive);
        assert_eq!(clone(&old_source).unwrap_err(), Errno::INVAL);
        let tree = clone(&new_source).unwrap();
        let refused = mounts::move_mount(subject, tree.as_fd(), old_target.as_fd(), c"");
        assert_eq!(refused, Err(Errno::INVAL));
        let (from, to) = (old_source.as_fd(), new_target.as_fd());
        let refused = oldmounts::bind(subject, from, to, Reach::Single);
        assert_eq!(refused, Err(Errno::INVAL));
        // So a launcher opens again inside, and compares what it finds.
        let (before, after) = (files::identify(&old_source), files::identify(&new_source));
        assert_eq!(before.unwrap(), after.unwrap());
        mounts::move_mount(subject, tree.as_fd(), new_target.as_fd(), c"").unwrap();
        unmount(subject, &[&target]);
    });
}

#[test]
fn places_are_made_where_they_are_named_and_nowhere_else() {
    as_each_user(|_, _| {
        let world = World::new();
        let base = pin(world.path(""));
        let mode = files::FileMode::from_raw_mode(0o755);
        files::make_directory(base.as_fd(), c"directory", mode).unwrap();
        files::make_file(base.as_fd(), c"file", mode).unwrap();
        files::make_link(base.as_fd(), c"link", c"elsewhere").unwrap();
        assert!(world.path("directory").is_dir() && world.path("file").is_file());
        let target = fs::read_link(world.path("link")).unwrap();
        assert_eq!(target, Path::new("elsewhere"));
        // The planted link is neither followed nor replaced.
        for made in [
            files::make_directory(base.as_fd(), c"link", mode),
            files::make_file(base.as_fd(), c"link", mode),
            files::make_link(base.as_fd(), c"link", c"x"),
        ] {
            assert_eq!(made, Err(Errno::EXIST));
        }
        assert!(!world.path("elsewhere").try_exists().unwrap());
        for made in [
            files::make_directory(base.as_fd(), c"link/x", mode),
            files::make_file(base.as_fd(), c"../x", mode),
            files::make_link(base.as_fd(), c"/x", c"x"),
        ] {
            assert_eq!(made, Err(Errno::INVAL));
        }
    });
}
