//! `ringfence log`.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::time::Duration;

use ringfence::audit::{Reader, files};
use ringfence::place::{Lookout, Surroundings};
use ringfence_core::text::{escape_lines, printable};
use serde_json::Value;

use crate::args::Log;
use crate::exit::Exit;
use crate::output::{answer, answer_exactly, complain};

/// How often a trail is looked at that somebody follows.
const OFTEN: Duration = Duration::from_millis(200);

pub(super) fn run(arguments: &Log) -> Result<Exit, Exit> {
    let surroundings = Surroundings::of_user(&Lookout::new()).map_err(|error| {
        complain(&error.to_string(), Some(error.help()));
        Exit::Usage
    })?;
    let Some(state) = surroundings.state else {
        complain(
            "there is nowhere to look for the audit trail",
            Some("set HOME or XDG_STATE_HOME"),
        );
        return Err(Exit::Usage);
    };
    // From before the past is read, so that nothing falls between.
    let mut reader = Reader::at_end(&state);
    let mut found = false;
    let mut past = VecDeque::new();
    for path in files(&state) {
        let file = File::open(&path).map_err(|error| unreadable(&error))?;
        for line in BufReader::new(file).split(b'\n') {
            let line = line.map_err(|error| unreadable(&error))?;
            let Some(event) = of_session(&line, arguments) else {
                continue;
            };
            found = true;
            if !is_wanted(&event, arguments) {
                continue;
            }
            let Some(last) = arguments.last else {
                let said = say(&event, arguments);
                if said != Exit::Success {
                    return Ok(said);
                }
                continue;
            };
            past.push_back(event);
            if past.len() > last {
                past.pop_front();
            }
        }
    }
    for event in past {
        let said = say(&event, arguments);
        if said != Exit::Success {
            return Ok(said);
        }
    }
    if !arguments.follow {
        return match &arguments.session {
            Some(name) if !found => Err(unknown(name)),
            _ => Ok(Exit::Success),
        };
    }
    loop {
        for line in reader.new_lines().map_err(|error| unreadable(&error))? {
            let event = of_session(&line, arguments);
            let event = event.filter(|event| is_wanted(event, arguments));
            let said = event.map_or(Exit::Success, |event| say(&event, arguments));
            if said != Exit::Success {
                return Ok(said);
            }
        }
        std::thread::sleep(OFTEN);
    }
}

fn unreadable(error: &std::io::Error) -> Exit {
    complain(&format!("the audit trail cannot be read: {error}"), None);
    Exit::Refused
}

fn unknown(name: &str) -> Exit {
    complain(
        &format!("there is no session called {name} in the audit trail"),
        Some("`ringfence log` shows those there are; old ones are put aside and removed in time"),
    );
    Exit::No
}

/// Whether an event is of a kind that was asked for.
fn is_wanted(event: &Value, arguments: &Log) -> bool {
    !arguments.denials || matches!(event["event"].as_str(), Some("denial" | "refused"))
}

/// An event of the session that was asked for. What is none of ours is left out.
fn of_session(line: &[u8], arguments: &Log) -> Option<Value> {
    let event = serde_json::from_slice::<Value>(line).ok()?;
    let wanted = arguments.session.as_deref().is_none_or(|wanted| {
        let is = |key: &str| event[key].as_str() == Some(wanted);
        is("session") || is("name")
    });
    wanted.then_some(event)
}

fn say(event: &Value, arguments: &Log) -> Exit {
    if arguments.json {
        let mut text = ringfence_core::text::escape_json(&event.to_string()).into_owned();
        text.push('\n');
        return answer_exactly(&text);
    }
    answer(&sentence(event))
}

/// A text in which names were made printable when it was written: what is hidden in it is shown, and
/// a backslash is one.
fn on_one_line(text: &str) -> String {
    escape_lines(text).replace('\n', "\\n")
}

/// One event for people.
fn sentence(event: &Value) -> String {
    let text = |key: &str| printable(event[key].as_str().unwrap_or("?"));
    let told = |key: &str| on_one_line(event[key].as_str().unwrap_or("?"));
    let mut out = format!("{}  {:16}  ", text("time"), text("name"));
    // Writing to a String cannot fail.
    let _ = match event["event"].as_str() {
        Some("start") => {
            let words = event["command"].as_array().into_iter().flatten();
            let words: Vec<String> = words
                .map(|word| printable(word.as_str().unwrap_or("?")))
                .collect();
            let gaps = event["gaps"].as_array().map_or(0, Vec::len);
            let gaps = match gaps {
                0 => String::new(),
                1 => ", one rule does not hold".to_owned(),
                count => format!(", {count} rules do not hold"),
            };
            write!(
                out,
                "started  {} in {} ({}{gaps})",
                words.join(" "),
                text("directory"),
                text("engine")
            )
        }
        Some("end") => {
            let how = match event["cause"].as_str() {
                Some("exited") => format!("exit {}", event["status"]),
                Some("killed") => format!("signal {}", event["signal"]),
                Some("limit") => format!("over its limit of {}", text("limit")),
                Some("name-made") => "for making a protected name".to_owned(),
                Some("name-not-held") => "when a protected name could be held no longer".to_owned(),
                Some("wall-time") => "over its limit of wall time".to_owned(),
                _ => "from outside".to_owned(),
            };
            write!(out, "ended    {how} after {} ms", event["milliseconds"])
        }
        Some("refused") => write!(out, "refused  {}", told("error")),
        Some("denial") => write!(
            out,
            "denied   {} {} ({}{})",
            text("what"),
            told("target"),
            match event["count"].as_u64() {
                Some(0 | 1) => String::new(),
                _ => format!("{} times; ", event["count"]),
            },
            told("fix")
        ),
        Some("decision") => {
            let scope = match event["scope"].as_str() {
                Some("thread") => " for this thread",
                Some("always") => " for always",
                _ => "",
            };
            let (request, answer, by) = (told("request"), told("answer"), told("by"));
            write!(out, "decided  {request}: {answer}{scope} (by {by})")
        }
        _ => write!(out, "{}", on_one_line(&event.to_string())),
    };
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_by_somebody_else_cannot_draw() {
        let event = serde_json::json!({
            "time": "2026-01-01T00:00:00.000Z",
            "name": "a\u{1b}[2J",
            "event": "start",
            "command": ["x\u{202e}\n", 7],
            "directory": "/p\u{7}",
            "engine": "namespaces",
            "gaps": [],
        });
        let line = sentence(&event);
        assert_eq!(
            line,
            "2026-01-01T00:00:00.000Z  a\\u{1b}[2J        started  x\\u{202e}\\n ? in /p\\u{7} (namespaces)\n"
        );
        // A name that was made printable when it was written stays as it is; a forged one cannot draw.
        for (written, shown) in [
            (r"/p/new\nline\\", r"/p/new\nline\\"),
            ("/p/new\nline\u{1b}", r"/p/new\nline\u{1b}"),
        ] {
            for (event, field) in [
                ("denial", "target"),
                ("decision", "request"),
                ("refused", "error"),
                ("unknown", "what"),
            ] {
                let line = sentence(&serde_json::json!({ "event": event, field: written }));
                assert_eq!(line.lines().count(), 1, "{line}");
                assert!(!line.contains('\u{1b}'), "{line}");
                assert!(line.contains(shown) || event == "unknown", "{line}");
            }
        }
        for event in ["{}", "[]", "7", r#"{"event":"end"}"#, r#"{"event":7}"#] {
            let event: Value = serde_json::from_str(event).unwrap();
            assert_eq!(sentence(&event).lines().count(), 1);
        }
    }
}
