//! `ringfence hook install` and `uninstall`: the change of an agent's settings.
//!
//! The file is replaced as a whole or not at all, and one that cannot be read for certain is left as
//! it is. What the change is, is worked out in the libraries; here it is shown or done.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use ringfence::place::{Lookout, Surroundings};
use ringfence_core::policy::Seen;
use ringfence_core::text::{printable, printable_path};
use ringfence_shell::command_line;
use ringfence_shell::hook::{self, Agent, SettingsError};

use crate::args::{HookChange, HookInstall};
use crate::exit::Exit;
use crate::output::{answer, complain};

/// Far more than anybody's settings.
const LARGEST: u64 = 16 << 20;

pub(super) fn install(arguments: &HookInstall) -> Result<Exit, Exit> {
    let agent = arguments.change.agent;
    let mut words = vec![program()?, "hook".to_owned(), agent.name().to_owned()];
    if arguments.rules != ringfence_shell::RuleSet::Default {
        words.extend(["--rules".to_owned(), arguments.rules.name().to_owned()]);
    }
    let command = command_line(&words);
    change(&arguments.change, |text| {
        hook::install(agent, text, &command)
    })?;
    if agent == Agent::Codex && !arguments.change.print {
        answer("codex runs it once you have reviewed and trusted it there\n");
    }
    Ok(Exit::Success)
}

pub(super) fn uninstall(arguments: &HookChange) -> Result<Exit, Exit> {
    change(arguments, |text| hook::uninstall(arguments.agent, text))?;
    Ok(Exit::Success)
}

/// Shows or makes the change that `edit` describes.
fn change(
    arguments: &HookChange,
    edit: impl Fn(&str) -> Result<Option<String>, SettingsError>,
) -> Result<(), Exit> {
    let path = settings_file(arguments)?;
    let shown = printable_path(&path);
    let before = read(&path).map_err(|error| {
        complain(&format!("cannot read {shown}: {error}"), None);
        Exit::Refused
    })?;
    let text = before.as_deref().unwrap_or_default();
    let after = edit(text).map_err(|error| {
        let help = "nothing was changed; `--print` shows what would be, and docs/SHELL.md what belongs there";
        complain(&format!("{shown}: {error}"), Some(help));
        Exit::Refused
    })?;
    let Some(after) = after else {
        answer(&format!("{shown}: nothing to change\n"));
        return Ok(());
    };
    if arguments.print {
        answer(&difference(&shown, text, &after));
        return Ok(());
    }
    replace(&path, before.as_deref(), &after).map_err(|error| {
        complain(
            &format!("cannot change {shown}: {error}"),
            Some("nothing was changed"),
        );
        Exit::Refused
    })?;
    answer(&format!("{shown}: changed\n"));
    Ok(())
}

/// The file that was named, or the agent's own.
fn settings_file(arguments: &HookChange) -> Result<PathBuf, Exit> {
    let agent = arguments.agent;
    if let Some(file) = &arguments.file {
        return followed(file);
    }
    let no_file = |message: &str| {
        complain(message, Some("name the file with `--file`"));
        Exit::Usage
    };
    let Some(usual) = agent.settings_path() else {
        complain(&SettingsError::NoSettings.to_string(), None);
        return Err(Exit::Usage);
    };
    if let Some((variable, name)) = agent.settings_variable()
        && let Some(directory) = std::env::var_os(variable).filter(|value| !value.is_empty())
    {
        return followed(&Path::new(&directory).join(name));
    }
    let surroundings = Surroundings::of_user(&Lookout::new());
    let home = surroundings.ok().and_then(|surroundings| surroundings.home);
    let home = home.ok_or_else(|| no_file("there is no home directory to find the settings in"))?;
    followed(&home.as_path().join(usual))
}

/// People keep their settings elsewhere and link to them: then what the link leads to is changed, and
/// the link stays.
fn followed(path: &Path) -> Result<PathBuf, Exit> {
    match Lookout::new().look(path) {
        Seen::At(found, _) => Ok(found.as_path().to_owned()),
        Seen::Absent => Ok(path.to_owned()),
        Seen::Unreadable(reason) => {
            complain(&format!("{}: {reason}", printable_path(path)), None);
            Err(Exit::Refused)
        }
    }
}

/// This program, by the name that will still lead to it after an update: its place on `PATH`, if
/// that is where it was found.
fn program() -> Result<String, Exit> {
    let unknown = |reason: &str| {
        complain(
            &format!("the place of this program cannot be told: {reason}"),
            None,
        );
        Exit::Refused
    };
    let own = std::env::current_exe().map_err(|error| unknown(&error.to_string()))?;
    let identity = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
    let here = identity(&own);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("ringfence"))
        .find(|candidate| here.is_some() && identity(candidate) == here);
    let program = found.unwrap_or(own);
    let named = program.file_name().is_some_and(|name| name == "ringfence");
    let Some(text) = program.to_str().filter(|_| named) else {
        // An agent's settings are text, and `uninstall` must know the entry again.
        return Err(unknown(
            "it is not called `ringfence`, or its path is not UTF-8",
        ));
    };
    Ok(text.to_owned())
}

fn read(path: &Path) -> io::Result<Option<String>> {
    let data = match fs::metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !data.is_file() || data.len() > LARGEST {
        return Err(io::Error::other("it is not a plain file of ordinary size"));
    }
    fs::read_to_string(path).map(Some)
}

/// Puts `after` in the place of `before`: a new file beside it takes its name, so that a reader
/// finds one or the other, and never half of either.
fn replace(path: &Path, before: Option<&str>, after: &str) -> io::Result<()> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(directory)?;
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.new", std::process::id()));
    let beside = directory.join(name);
    let mode = fs::metadata(path).map_or(0o600, |data| data.permissions().mode() & 0o7777);
    let written = write_new(&beside, after, mode).and_then(|()| {
        // Whoever changed it meanwhile must not lose that.
        if read(path)?.as_deref() != before {
            return Err(io::Error::other(
                "it was changed by somebody else meanwhile",
            ));
        }
        fs::rename(&beside, path)
    });
    if written.is_err() {
        // There may be nothing to remove; what counts is the error.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

/// The lines that change, with a few around them.
fn difference(name: &str, before: &str, after: &str) -> String {
    const AROUND: usize = 3;
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let shorter = old.len().min(new.len());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail = old.iter().rev().zip(new.iter().rev());
    let tail = tail.take_while(same).count().min(shorter - head);
    let mut out = format!("{name}\n");
    let mut lines = |sign: char, lines: &[&str]| {
        for line in lines {
            let _ = writeln!(out, "{sign} {}", printable(line));
        }
    };
    lines(' ', &old[head.saturating_sub(AROUND)..head]);
    lines('-', &old[head..old.len() - tail]);
    lines('+', &new[head..new.len() - tail]);
    let rest = old.len() - tail;
    lines(' ', &old[rest..old.len().min(rest + AROUND)]);
    out
}
