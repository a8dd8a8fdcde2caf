//! What a command is told: its variables, its arguments, where it starts, where its program may be.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ringfence_core::path::AbsPath;
use ringfence_core::policy::{Access, EnvVerdict, Policy};

use crate::launch::{Command, LaunchError};

/// The variables that pass and those that are set, as `NAME=VALUE`.
pub(super) fn environment(
    policy: &Policy,
    command: &Command,
    given: &[(OsString, OsString)],
) -> Result<Vec<CString>, LaunchError> {
    let rules = policy.environment();
    let mut out: Vec<CString> = Vec::new();
    let mut names: Vec<&OsStr> = Vec::new();
    let mut push = |name: &OsStr, value: &OsStr| {
        let mut text = Vec::with_capacity(name.len() + value.len() + 1);
        text.extend_from_slice(name.as_bytes());
        text.push(b'=');
        text.extend_from_slice(value.as_bytes());
        let text = CString::new(text).map_err(|_| LaunchError::Nul { what: "a variable" })?;
        out.push(text);
        Ok(())
    };
    // What was set last is what holds.
    for (name, value) in given.iter().rev() {
        if !names.contains(&name.as_os_str()) && !name.is_empty() {
            names.push(name);
            push(name, value)?;
        }
    }
    let set_by_caller = names.clone();
    for (name, value) in &command.environment {
        // Of two variables with one name programs see the first, so only that one counts.
        if names.contains(&name.as_os_str()) || name.is_empty() {
            continue;
        }
        names.push(name);
        // A name that is not text is on nobody's list.
        let verdict = name.to_str().map(|name| rules.verdict(name));
        if matches!(verdict, Some(EnvVerdict::Passes(_)))
            || (verdict.is_none() && policy.only_tracks())
        {
            push(name, value)?;
        }
    }
    for (name, value) in rules.set() {
        if set_by_caller.contains(&OsStr::new(name)) {
            continue;
        }
        push(OsStr::new(name), OsStr::new(&value.value))?;
    }
    Ok(out)
}

pub(super) fn directory(policy: &Policy, directory: &Path) -> Result<CString, LaunchError> {
    let hidden = || LaunchError::Directory {
        directory: directory.to_owned(),
    };
    let path = AbsPath::parse(directory).map_err(|_| hidden())?;
    if policy.files().access(&path).access == Access::None {
        return Err(hidden());
    }
    CString::new(directory.as_os_str().as_bytes()).map_err(|_| LaunchError::Nul {
        what: "the working directory",
    })
}

pub(super) fn arguments(command: &Command) -> Result<Vec<CString>, LaunchError> {
    std::iter::once(&command.program)
        .chain(&command.arguments)
        .map(|argument| {
            CString::new(argument.as_bytes()).map_err(|_| LaunchError::Nul {
                what: "an argument",
            })
        })
        .collect()
}

/// Where the program may be, in the order in which a shell would look.
pub(super) fn programs(
    command: &Command,
    environment: &[CString],
) -> Result<Vec<CString>, LaunchError> {
    let nul = |_| LaunchError::Nul {
        what: "the program's name",
    };
    let name = command.program.as_bytes();
    if name.is_empty() || name.contains(&b'/') {
        return Ok(vec![CString::new(name).map_err(nul)?]);
    }
    let path = environment
        .iter()
        .find_map(|variable| variable.to_bytes().strip_prefix(b"PATH="))
        .unwrap_or(b"/usr/local/bin:/usr/bin:/bin");
    path.split(|byte| *byte == b':')
        .map(|directory| {
            // An empty entry means the working directory.
            let directory = if directory.is_empty() {
                b"."
            } else {
                directory
            };
            let path = Path::new(OsStr::from_bytes(directory)).join(OsStr::from_bytes(name));
            CString::new(path.as_os_str().as_bytes()).map_err(nul)
        })
        .collect()
}
