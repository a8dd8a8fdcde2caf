//! One module for each command.

#[cfg(target_os = "linux")]
mod ahead;
pub(crate) mod approve;
mod bare;
mod check;
mod completions;
mod doctor;
mod explain;
mod fallback;
mod grants;
mod hook;
pub(crate) mod judged;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod linger;
mod log;
mod man;
mod mistyped;
mod preview;
mod question;
mod refusal;
mod run;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod sessions;
mod settings;
mod shell;
mod trust;

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser as _};
use ringfence_core::plan::HostFacts;

use crate::args::{Cli, Command, Run};
use crate::exit::Exit;
use crate::output::complain;

/// Does what was typed.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    #[cfg(target_os = "linux")]
    let ahead = ahead::guess(&arguments);
    let command = match parse(&arguments) {
        Ok(command) => command,
        Err(error) => return mistyped::say(&arguments, error).into(),
    };
    let done = match command {
        Command::Run(arguments) => {
            return run::run(
                &arguments,
                #[cfg(target_os = "linux")]
                Some(&ahead),
            );
        }
        Command::Shell(arguments) => return shell::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Doctor { json } => Ok(doctor::run(json.into())),
        Command::Check(arguments) => check::run(&arguments),
        Command::Hook(arguments) => hook::run(&arguments),
        Command::Grants(arguments) => grants::run(&arguments.command),
        Command::Trust(arguments) => trust::run(&arguments),
        Command::Settings(arguments) => settings::run(&arguments.command),
        Command::Sessions(arguments) => sessions::run(&arguments.command),
        Command::Log(arguments) => log::run(&arguments),
        Command::Completions { shell } => completions::run(shell),
        Command::Man { dir } => man::run(dir.as_deref()),
    };
    done.unwrap_or_else(|exit| exit).into()
}

/// Where no session can run there is none to show.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod sessions {
    use crate::args::SessionsCommand;
    use crate::exit::Exit;
    use crate::output::complain;

    pub(super) fn run(_command: &SessionsCommand) -> Result<Exit, Exit> {
        complain("sessions cannot run on this system", None);
        Err(Exit::No)
    }
}

/// Does what was typed on Windows.
pub(crate) fn run_from_windows(word: Option<&std::ffi::OsStr>) -> ExitCode {
    let arguments = word.and_then(std::ffi::OsStr::to_str);
    let arguments = arguments.and_then(|word| ringfence_core::wsl::decode(word).ok());
    let Some(arguments) = arguments else {
        complain(&ringfence_core::wsl::WslError::Garbled.to_string(), None);
        return Exit::Refused.into();
    };
    let name = std::iter::once("ringfence".to_owned());
    run(name.chain(arguments).map(OsString::from))
}

/// Takes the arguments apart.
///
/// `run` is on the way of every command that anybody confines, so its own flags are tried first:
/// describing all other commands takes longer than reading its line. Whatever is not a plain
/// `run` (help, a mistake) is read again with everything described, for a whole answer.
fn parse(arguments: &[OsString]) -> Result<Command, clap::Error> {
    if let [_, rest @ ..] = arguments
        && rest.first().is_some_and(|word| word == "run")
        && let Some(run) = parse_run(rest)
    {
        return Ok(Command::Run(Box::new(run.arguments)));
    }
    let read = match arguments {
        [name, help, commands @ ..] if help == "help" => {
            Cli::try_parse_from(helped(name, commands))
        }
        _ => Cli::try_parse_from(arguments),
    };
    read.map(|cli| cli.command)
}

/// `ringfence help run` is `ringfence run --help`: as a command of its own it would bring a copy of every
/// other into completions and manual pages.
fn helped(name: &OsString, commands: &[OsString]) -> Vec<OsString> {
    let commands = commands.iter().skip_while(|word| *word == "help");
    let words = std::iter::once(name).chain(commands).cloned();
    words.chain(["--help".into()]).collect()
}

fn parse_run(arguments: &[OsString]) -> Option<Run> {
    // There is one in the life of a process, and giving it back takes as long as reading the line.
    let mut described = ManuallyDrop::new(Run::command());
    let mut read = described.try_get_matches_from_mut(arguments).ok()?;
    Run::from_arg_matches_mut(&mut read).ok()
}

/// An error and everything that led to it, in one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// The facts of the host that a plan is for: a named one, one from a file, or this one.
fn host_facts(wanted: Option<&OsString>) -> Result<HostFacts, Exit> {
    let Some(wanted) = wanted else {
        return Ok(ringfence::probe::thorough().facts);
    };
    if let Some(facts) = wanted.to_str().and_then(HostFacts::named) {
        return Ok(facts);
    }
    let shown = ringfence_core::text::printable_os(wanted);
    let read = std::fs::read_to_string(wanted).map_err(|error| {
        let names = HostFacts::NAMED.join(", ");
        complain(
            &format!("cannot read host facts from {shown}: {error}"),
            Some(&format!("name a file, or one of: {names}")),
        );
        Exit::Usage
    })?;
    serde_json::from_str(&read).map_err(|error| {
        complain(&format!("{shown} does not hold host facts: {error}"), None);
        Exit::Usage
    })
}

#[cfg(test)]
mod tests {
    use clap::ValueHint;

    use super::*;

    /// The flags of a command and of those below it whose value is a path.
    fn path_flags(command: &clap::Command, found: &mut Vec<String>) {
        for argument in command.get_arguments() {
            let hint = argument.get_value_hint();
            let is_path = [ValueHint::AnyPath, ValueHint::DirPath, ValueHint::FilePath];
            if let (true, Some(long)) = (is_path.contains(&hint), argument.get_long()) {
                found.push(format!("--{long}"));
            }
        }
        for below in command.get_subcommands() {
            path_flags(below, found);
        }
    }

    /// A path of Windows that is not translated would be another path inside, or none.
    #[test]
    fn every_path_crosses_to_wsl_as_one() {
        let mut found = Vec::new();
        path_flags(&Cli::command(), &mut found);
        // A name or a path, so without a hint.
        found.extend(["--host-facts", "--unix-socket"].map(str::to_owned));
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, ringfence_core::wsl::PATH_FLAGS);
    }
}
