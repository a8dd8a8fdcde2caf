//! What the probe finds about itself.

use std::fs;
use std::path::Path;

use ringfence_sys::process::LimitedResource;
use ringfence_sys::signals::{Disposition, Mask, disposition};

use super::{Answer, Arguments, text};

pub(super) fn perform(name: &str, arguments: Arguments<'_>) -> Option<Answer> {
    Some(match name {
        // The lines of `/proc/self/status` that tell of confinement.
        "status" => status("/proc/self/status"),
        "status-of-threads" => threads(),
        "namespaces" => namespaces(),
        "environment" => {
            let mut names: Vec<String> = std::env::vars_os()
                .map(|(name, _)| name.to_string_lossy().into_owned())
                .collect();
            names.sort();
            Ok(Some(names.join(" ")))
        }
        "variable" => Ok(std::env::var(text(arguments, 0)).ok()),
        "directory" => std::env::current_dir().map(|path| Some(path.display().to_string())),
        "signals" => signals(),
        "limits" => Ok(Some(format!(
            "{:?} {:?}",
            ringfence_sys::process::limit(LimitedResource::Core),
            ringfence_sys::process::limit(LimitedResource::Nproc),
        ))),
        "umask" => {
            let line = line_of("/proc/self/status", "Umask:");
            line.map(Some)
        }
        "mounts" => mounts(text(arguments, 0)),
        "processes" => processes(),
        "search-processes" => search(text(arguments, 0)),
        "ids" => Ok(Some(format!(
            "{} {}",
            rustix::process::getuid().as_raw(),
            rustix::process::geteuid().as_raw()
        ))),
        _ => return None,
    })
}

const TELLING: [&str; 8] = [
    "CapInh:",
    "CapPrm:",
    "CapEff:",
    "CapBnd:",
    "CapAmb:",
    "NoNewPrivs:",
    "Seccomp:",
    "Seccomp_filters:",
];

fn status(path: impl AsRef<Path>) -> Answer {
    let text = fs::read_to_string(path)?;
    let lines = text
        .lines()
        .filter(|line| TELLING.iter().any(|name| line.starts_with(name)))
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(""));
    Ok(Some(lines.collect::<Vec<_>>().join(" ")))
}

/// Starts some threads and compares what each of them may do.
fn threads() -> Answer {
    let wait = std::sync::Arc::new(std::sync::Barrier::new(5));
    for _ in 0..4 {
        let wait = std::sync::Arc::clone(&wait);
        std::thread::spawn(move || {
            wait.wait();
            std::thread::park();
        });
    }
    wait.wait();
    let mut seen = Vec::new();
    for entry in fs::read_dir("/proc/self/task")? {
        seen.push(status(entry?.path().join("status"))?.unwrap());
    }
    assert_eq!(seen.len(), 5);
    seen.dedup();
    Ok(Some(seen.join("; ")))
}

fn namespaces() -> Answer {
    let mut out = Vec::new();
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"] {
        let target = fs::read_link(Path::new("/proc/self/ns").join(name))?;
        out.push(target.display().to_string());
    }
    Ok(Some(out.join(" ")))
}

/// Which signals are blocked, and which do something unusual.
fn signals() -> Answer {
    let mut strange = Vec::new();
    for signal in 1..=64 {
        // Neither can be anything but what it is.
        if signal == libc::SIGKILL || signal == libc::SIGSTOP {
            continue;
        }
        // The runtime of this very program ignores it.
        if signal == libc::SIGPIPE {
            continue;
        }
        // So it does with these two, to tell of exhausted stacks.
        if signal == libc::SIGSEGV || signal == libc::SIGBUS {
            continue;
        }
        if !matches!(disposition(signal), Ok(Disposition::Default) | Err(_)) {
            strange.push(signal.to_string());
        }
    }
    let blocked = Mask::current()?;
    Ok(Some(format!(
        "blocked {:?} unusual [{}]",
        blocked == Mask::EMPTY,
        strange.join(" ")
    )))
}

fn line_of(path: &str, name: &str) -> std::io::Result<String> {
    let text = fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.unwrap_or_default().trim().to_owned())
}

/// The options of every mount at or below a path that lacks one of those wanted.
fn mounts(wanted: &str) -> Answer {
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    let wanted: Vec<&str> = wanted.split('+').collect();
    let mut lacking = Vec::new();
    for line in text.lines() {
        let mut fields = line.split(' ');
        let at = fields.nth(4).unwrap();
        let options: Vec<&str> = fields.next().unwrap().split(',').collect();
        if wanted.iter().any(|option| !options.contains(option)) {
            lacking.push(at.to_owned());
        }
    }
    lacking.sort();
    Ok(Some(lacking.join(" ")))
}

/// How many processes can be seen.
fn processes() -> Answer {
    let mut numbers = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        if let Ok(number) = name.to_string_lossy().parse::<u32>() {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    Ok(Some(numbers.join(" ")))
}

/// Looks for a text in everything that processes show about themselves, but for this one, which
/// was given the text.
fn search(wanted: &str) -> Answer {
    let wanted = wanted.as_bytes();
    let own = rustix::process::getpid().as_raw_nonzero().get().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let number = name.parse::<u32>().is_ok() || name == "self" || name == "thread-self";
        if !number {
            continue;
        }
        for file in ["environ", "cmdline", "comm", "maps", "mountinfo", "status"] {
            let itself = name == own || name == "self" || name == "thread-self";
            if itself && file == "cmdline" {
                continue;
            }
            let content = fs::read(Path::new("/proc").join(&name).join(file));
            let content = content.unwrap_or_default();
            if content.windows(wanted.len()).any(|part| part == wanted) {
                found.push(format!("{name}/{file}"));
            }
        }
    }
    Ok(Some(found.join(" ")))
}
