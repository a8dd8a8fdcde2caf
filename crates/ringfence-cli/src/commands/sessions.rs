//! `ringfence sessions`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ringfence::place::{Lookout, Surroundings};
use ringfence::sessions::{Registry, RegistryError, Session, State};
use ringfence_core::text::printable;
use serde::Serialize;

use crate::args::SessionsCommand;
use crate::exit::Exit;
use crate::output::{answer, answer_json, complain, tell, visible};

/// The answer, for programs.
#[derive(Serialize)]
struct Record<'a> {
    version: u32,
    sessions: &'a [Session],
}

impl<'a> Record<'a> {
    fn of(sessions: &'a [Session]) -> Self {
        let version = 1;
        Self { version, sessions }
    }
}

pub(super) fn run(command: &SessionsCommand) -> Result<Exit, Exit> {
    let registry = open()?;
    let Some(registry) = registry else {
        // Nobody has ever started a session, so there is none.
        return match command {
            SessionsCommand::List { json: true } => Ok(answer_json(&Record::of(&[]))),
            SessionsCommand::List { json: false } => Ok(answer("no sessions\n")),
            SessionsCommand::Kill { names } => Err(unknown(names)),
            SessionsCommand::Clean => Ok(answer("nothing was left behind\n")),
        };
    };
    match command {
        SessionsCommand::List { json } => {
            let sessions = registry.sessions().map_err(|error| refused(&error))?;
            if *json {
                return Ok(answer_json(&Record::of(&sessions)));
            }
            Ok(answer(&table(&sessions, SystemTime::now())))
        }
        SessionsCommand::Kill { names } => {
            let mut exit = Exit::Success;
            for name in names {
                if let Err(error) = end(&registry, name) {
                    exit = refused(&error);
                }
            }
            Ok(exit)
        }
        SessionsCommand::Clean => {
            let cleaned = registry.clean().map_err(|error| refused(&error))?;
            let mut out = String::new();
            for session in &cleaned {
                // Writing to a String cannot fail.
                let _ = writeln!(
                    out,
                    "removed what was left of {} ({})",
                    session.name,
                    printable(&session.command)
                );
            }
            if cleaned.is_empty() {
                out.push_str("nothing was left behind\n");
            }
            Ok(answer(&out))
        }
    }
}

/// Ends every session with this name, and says which.
fn end(registry: &Registry, name: &str) -> Result<(), RegistryError> {
    let mut sessions = registry.sessions()?;
    sessions.retain(|session| session.name == name || session.id == name);
    if sessions.len() < 2 {
        registry.kill(name)?;
        tell(&visible(&format!("ended {name}\n")));
        return Ok(());
    }
    for session in sessions {
        match registry.kill(&session.id) {
            // It ended by itself meanwhile.
            Err(RegistryError::NoSuch { .. }) => continue,
            ended => ended?,
        };
        let command = printable(&session.command);
        tell(&visible(&format!(
            "ended {name} ({}, {command})\n",
            session.id
        )));
    }
    Ok(())
}

fn open() -> Result<Option<Registry>, Exit> {
    let surroundings = Surroundings::of_user(&Lookout::new()).map_err(|error| {
        complain(&error.to_string(), Some(error.help()));
        Exit::Usage
    })?;
    let Some(path) = surroundings.sessions() else {
        complain(
            "there is nowhere to look for sessions",
            Some("set HOME or XDG_RUNTIME_DIR"),
        );
        return Err(Exit::Usage);
    };
    if !path.is_dir() {
        return Ok(None);
    }
    Registry::open(&path)
        .map(Some)
        .map_err(|error| refused(&error))
}

fn unknown(names: &[String]) -> Exit {
    complain(
        &format!("there is no session called {}", names.join(", ")),
        Some("`ringfence sessions list` shows those there are"),
    );
    Exit::No
}

fn refused(error: &RegistryError) -> Exit {
    complain(&super::with_causes(error), None);
    Exit::No
}

/// One line for each session.
fn table(sessions: &[Session], now: SystemTime) -> String {
    if sessions.is_empty() {
        return "no sessions\n".to_owned();
    }
    let heads = ["NAME", "AGE", "PROCESSES", "MEMORY", "PROJECT", "COMMAND"].map(str::to_owned);
    let mut rows = vec![heads];
    for session in sessions {
        let name = match (session.state, session.linger) {
            (State::LeftBehind, _) => format!("{} (left behind)", session.name),
            (State::Live, true) => format!("{} (lingers)", session.name),
            (State::Live, false) => session.name.clone(),
        };
        let age = now.duration_since(session.started).unwrap_or_default();
        rows.push([
            name,
            age_text(age),
            session.processes.to_string(),
            size(session.memory),
            ringfence_core::text::printable_path(&PathBuf::from(&session.project)),
            printable(&session.command),
        ]);
    }
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{cell:width$}  ");
        }
        out.push_str(&row[5]);
        out.push('\n');
    }
    out
}

fn age_text(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        seconds @ 3600..86_400 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        seconds => format!("{}d{}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes / 1024;
    let mut unit = 0;
    while value >= 10_240 && unit + 1 < UNITS.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_short() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (61, "1m1s"),
            (3661, "1h1m"),
            (90_000, "1d1h"),
        ] {
            assert_eq!(age_text(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(size(0), "0 KiB");
        assert_eq!(size(5 << 20), "5120 KiB");
        assert_eq!(size(50 << 20), "50 MiB");
        assert_eq!(size(50 << 40), "50 TiB");
    }
}
