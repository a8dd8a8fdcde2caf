//! Files: reading, writing, and everything that changes one without writing to it.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid, XattrFlags,
    inotify,
};

use super::{Answer, Arguments, calls, int, number, text};

pub(super) fn perform(name: &str, arguments: Arguments<'_>) -> Option<Answer> {
    let path = || Path::new(&arguments[0]);
    let second = || Path::new(&arguments[1]);
    Some(match name {
        "read" => read(path()).map(|_content| None),
        "cat" => read(path()).map(Some),
        "list" => list(path()),
        "write" => write(OpenOptions::new().write(true), path()),
        "append" => write(OpenOptions::new().append(true), path()),
        "create" => write(OpenOptions::new().write(true).create_new(true), path()),
        "overwrite" => write(
            OpenOptions::new().write(true).create(true).truncate(true),
            path(),
        ),
        // Truncating without asking for the right to write.
        "open-truncating" => done(rustix::fs::open(
            path(),
            OFlags::RDONLY | OFlags::TRUNC | OFlags::NONBLOCK,
            Mode::empty(),
        )),
        "truncate" => {
            let path = CString::new(path().as_os_str().as_bytes()).unwrap();
            calls::with_text(libc::SYS_truncate, &path, 0)
        }
        "mkdir" => done(fs::create_dir(path())),
        "fold" => done(fold(path())),
        "rmdir" => done(fs::remove_dir(path())),
        "unlink" => done(fs::remove_file(path())),
        "rename" => done(fs::rename(path(), second())),
        "exchange" => done(rustix::fs::renameat_with(
            CWD,
            path(),
            CWD,
            second(),
            RenameFlags::EXCHANGE,
        )),
        "link" => done(fs::hard_link(path(), second())),
        "symlink" => done(std::os::unix::fs::symlink(path(), second())),
        "fifo" => node(path(), FileType::Fifo, 0),
        "device" => node(path(), FileType::CharacterDevice, rustix::fs::makedev(1, 3)),
        "chmod" => {
            let mode = int(number(arguments, 1)).cast_unsigned();
            done(fs::set_permissions(
                path(),
                fs::Permissions::from_mode(mode),
            ))
        }
        "chown" => {
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            done(chown(path(), user, group))
        }
        "utimes" => done(rustix::fs::utimensat(
            CWD,
            path(),
            &LONG_AGO,
            AtFlags::empty(),
        )),
        "setxattr" => done(rustix::fs::setxattr(
            path(),
            "user.ringfence",
            b"x",
            XattrFlags::empty(),
        )),
        "chdir" => done(std::env::set_current_dir(path())),
        "stat" => done(fs::metadata(path())),
        "readlink" => done(fs::read_link(path())),
        "open-path" => done(rustix::fs::open(path(), OFlags::PATH, Mode::empty())),
        "watch" => done(watch(path())),
        "handle" => {
            // A good address, so that only the call itself can be refused.
            let path = CString::new(path().as_os_str().as_bytes()).unwrap();
            calls::handle(&path)
        }
        "fill" => fill(path(), number(arguments, 1)),
        "inodes" => inodes(path(), number(arguments, 1)),
        // By descriptor.
        "reopen" => reopen(text(arguments, 0), text(arguments, 1)),
        "read-below" => {
            let directory = descriptor(int(number(arguments, 0)));
            done(rustix::fs::openat(
                directory,
                second(),
                OFlags::RDONLY,
                Mode::empty(),
            ))
        }
        "fchmod" => {
            let file = descriptor(int(number(arguments, 0)));
            done(rustix::fs::fchmod(file, Mode::from_raw_mode(0o777)))
        }
        "fchdir" => done(rustix::process::fchdir(descriptor(int(number(
            arguments, 0,
        ))))),
        "descriptors" => descriptors(),
        _ => return None,
    })
}

const LONG_AGO: Timestamps = Timestamps {
    last_access: Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    },
    last_modification: Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    },
};

fn done<T, E: Into<std::io::Error>>(result: Result<T, E>) -> Answer {
    result.map(|_done| None).map_err(Into::into)
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut content = Vec::new();
    // A pipe without a writer would wait for ever.
    File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?
        .read_to_end(&mut content)?;
    Ok(String::from_utf8_lossy(&content).into_owned())
}

fn list(path: &Path) -> Answer {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(Some(names.join(" ")))
}

fn write(options: &mut OpenOptions, path: &Path) -> Answer {
    let mut file = options
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    done(file.write_all(b"written"))
}

fn node(path: &Path, kind: FileType, device: u64) -> Answer {
    done(rustix::fs::mknodat(
        CWD,
        path,
        kind,
        Mode::from_raw_mode(0o600),
        device,
    ))
}

fn chown(path: &Path, user: Uid, group: Gid) -> rustix::io::Result<()> {
    rustix::fs::chownat(CWD, path, Some(user), Some(group), AtFlags::empty())
}

fn watch(path: &Path) -> rustix::io::Result<i32> {
    let watcher = inotify::init(inotify::CreateFlags::empty())?;
    inotify::add_watch(watcher, path, inotify::WatchFlags::ALL_EVENTS)
}

/// Writes real bytes until so many mebibytes are there or something refuses.
fn fill(path: &Path, mebibytes: u64) -> Answer {
    let mut file = File::create(path)?;
    let block = vec![0xa5_u8; 1 << 20];
    for _ in 0..mebibytes {
        file.write_all(&block)?;
    }
    Ok(None)
}

/// Makes so many empty files.
fn inodes(path: &Path, count: u64) -> Answer {
    fs::create_dir_all(path)?;
    for index in 0..count {
        File::create(path.join(index.to_string()))?;
    }
    Ok(None)
}

/// Opens an open file again by its number, to read or to write.
fn reopen(number: &str, mode: &str) -> Answer {
    let path = Path::new("/proc/self/fd").join(number);
    match mode {
        "read" => done(File::open(path)),
        "write" => write(OpenOptions::new().write(true), &path),
        "truncate" => done(rustix::fs::open(
            path,
            OFlags::RDONLY | OFlags::TRUNC | OFlags::NONBLOCK,
            Mode::empty(),
        )),
        "cut" => done(rustix::fs::open(
            path,
            OFlags::WRONLY | OFlags::TRUNC | OFlags::NONBLOCK,
            Mode::empty(),
        )),
        other => panic!("no mode {other}"),
    }
}

/// One of the three that every process has.
fn descriptor(number: i32) -> BorrowedFd<'static> {
    match number {
        0 => rustix::stdio::stdin(),
        1 => rustix::stdio::stdout(),
        2 => rustix::stdio::stderr(),
        other => panic!("descriptor {other} belongs to nobody"),
    }
}

/// The numbers of all open files, without the one that lists them.
fn descriptors() -> Answer {
    let mut numbers = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let target = fs::read_link(Path::new("/proc/self/fd").join(&name));
        let listing = target.is_ok_and(|target| target.ends_with("fd"));
        if !listing {
            numbers.push(name.to_str().unwrap().parse::<u32>().unwrap());
        }
    }
    numbers.sort_unstable();
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    Ok(Some(numbers.join(" ")))
}

/// Lets an empty directory no longer tell capital letters from small ones.
fn fold(path: &Path) -> std::io::Result<()> {
    const CASEFOLD: u32 = 0x4000_0000;
    let directory = File::open(path)?;
    let flags = rustix::fs::ioctl_getflags(&directory)?;
    let flags = rustix::fs::IFlags::from_bits_retain(flags.bits() | CASEFOLD);
    Ok(rustix::fs::ioctl_setflags(&directory, flags)?)
}
