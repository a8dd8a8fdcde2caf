//! Other processes: signalling them, starting them, outliving everybody.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ringfence_sys::Subject;
use ringfence_sys::signals::Mask;
use ringfence_sys::spawn::{Memory, Spawn};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal};

use super::{Answer, Arguments, int, number};

pub(super) fn perform(name: &str, arguments: Arguments<'_>) -> Option<Answer> {
    Some(match name {
        "kill" => {
            let pid = Pid::from_raw(int(number(arguments, 0))).unwrap();
            done(rustix::process::kill_process(pid, Signal::KILL))
        }
        // Everybody in this process's group, with a signal that ends whoever does not expect it.
        "kill-group" => {
            // This very process is in the group too, and wants to tell.
            Mask::block_all().unwrap();
            done(rustix::process::kill_current_process_group(Signal::USR1))
        }
        "pidfd-kill" => pidfd_kill(number(arguments, 0)),
        "run" => run(arguments),
        "exec-memory" => exec_memory(arguments),
        "sleep" => {
            std::thread::sleep(Duration::from_millis(number(arguments, 0)));
            Ok(None)
        }
        "exit" => std::process::exit(int(number(arguments, 0))),
        "crash" => std::process::abort(),
        // Leaves a process behind that nobody is the parent of, deaf to signals, and growing a file.
        "daemon" => daemon(&arguments[0]),
        "half-daemon" => half_daemon(&arguments[0]),
        "grow" => grow(Path::new(&arguments[0])),
        "storm" => storm(&arguments[0], number(arguments, 1)),
        // Processes that are never there for long: each starts the next and goes.
        "hop" => hop(&arguments[0], number(arguments, 1)),
        "daemons" => daemons(number(arguments, 0)),
        _ => return None,
    })
}

fn done<T, E: Into<std::io::Error>>(result: Result<T, E>) -> Answer {
    result.map(|_done| None).map_err(Into::into)
}

fn pidfd_kill(number: u64) -> Answer {
    let pid = Pid::from_raw(int(number)).unwrap();
    let flags = rustix::process::PidfdFlags::empty();
    let process = rustix::process::pidfd_open(pid, flags)?;
    done(rustix::process::pidfd_send_signal(process, Signal::KILL))
}

/// Runs a program and says what it printed and how it ended.
fn run(arguments: Arguments<'_>) -> Answer {
    let output = Command::new(&arguments[0])
        .args(&arguments[1..])
        .stdin(Stdio::null())
        .output()?;
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let ended = output.status.signal().map_or_else(
        || output.status.code().unwrap().to_string(),
        |signal| format!("signal {signal}"),
    );
    Ok(Some(format!("{printed} [{ended}]")))
}

/// Becomes a copy of this program that was never a file, and goes on there.
fn exec_memory(arguments: Arguments<'_>) -> Answer {
    let memory = memfd_create("probe", MemfdFlags::empty())?;
    let mut file = fs::File::from(memory);
    file.write_all(&fs::read("/proc/self/exe")?)?;
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    Err(Command::new(path).args(arguments).exec())
}

fn itself() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

fn daemon(file: &std::ffi::OsStr) -> Answer {
    // Deaf to everything that can be ignored; children inherit it.
    Mask::block_all().unwrap();
    done(itself().arg("half-daemon").arg(file).spawn())
}

fn half_daemon(file: &std::ffi::OsStr) -> Answer {
    rustix::process::setsid()?;
    done(itself().arg("grow").arg(file).spawn())
}

/// Appends to a file until it cannot any more, or nobody stopped it for a minute.
fn grow(path: &Path) -> Answer {
    rustix::process::setsid().ok();
    for _ in 0..6000 {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)?
            .write_all(b".")?;
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(None)
}

/// How many generations live on one stack; each stands on the frames of the last.
const GENERATIONS: u32 = 200;

/// Lives for a moment in each of many processes, for a minute at most.
fn hop(file: &std::ffi::OsStr, until: u64) -> Answer {
    Mask::block_all().unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    let now = now.unwrap().as_secs();
    let until = if until == 0 { now + 60 } else { until };
    if now >= until {
        return Ok(None);
    }
    let mut hopping = Hopping {
        file: OpenOptions::new().append(true).create(true).open(file)?,
        name: file.to_owned(),
        until,
        left: GENERATIONS,
    };
    done(Spawn::new(Memory::Copied).start(&mut hopping, next_hop))
}

struct Hopping {
    file: fs::File,
    name: std::ffi::OsString,
    until: u64,
    left: u32,
}

fn next_hop(_subject: &Subject, hopping: &mut Hopping) -> u8 {
    rustix::process::setsid().ok();
    hopping.file.write_all(b".").ok();
    hopping.left -= 1;
    if hopping.left == 0 {
        // A fresh stack.
        let _error = itself()
            .arg("hop")
            .arg(&hopping.name)
            .arg(hopping.until.to_string())
            .exec();
        return 1;
    }
    u8::from(Spawn::new(Memory::Copied).start(hopping, next_hop).is_err())
}

/// So many processes that nobody is the parent of, each in a session of its own, for a minute.
fn daemons(count: u64) -> Answer {
    for _ in 0..count {
        let child = Spawn::new(Memory::Copied).start(&mut (), |_, ()| {
            rustix::process::setsid().ok();
            u8::from(
                Spawn::new(Memory::Copied)
                    .start(&mut (), |_, ()| {
                        std::thread::sleep(Duration::from_mins(1));
                        0
                    })
                    .is_err(),
            )
        })?;
        child.wait()?;
    }
    Ok(Some(count.to_string()))
}

/// Keeps having children that do the same, each in a session of its own.
fn storm(file: &std::ffi::OsStr, left: u64) -> Answer {
    Mask::block_all().unwrap();
    rustix::process::setsid().ok();
    if left == 0 {
        return grow(Path::new(file));
    }
    for _ in 0..2 {
        itself()
            .arg("storm")
            .arg(file)
            .arg((left - 1).to_string())
            .spawn()?;
    }
    Ok(None)
}
