//! What was typed and not understood: what is wrong with it, and what would be right.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Run;
use crate::exit::Exit;
use crate::output::{answer, tell, visible};
use crate::record::Record;

/// What other tools call it, and what does it here.
const CALLED_OTHERWISE: [(&[&str], &str); 20] = [
    (
        &["--allow-read", "--ro", "--ro-bind", "--ro-bind-try"],
        "`--read PATH` lets a path be read, where it stands",
    ),
    (
        &[
            "--allow-write",
            "--bind",
            "--bind-try",
            "--dev-bind",
            "--mount",
            "--rw",
            "--volume",
            "--whitelist",
        ],
        "`--write PATH` lets a path be written, where it stands",
    ),
    (
        &["--allow-exec", "--allow-run"],
        "`--exec PATH` lets a path be read and run",
    ),
    (
        &["--blacklist", "--deny", "--deny-read", "--deny-write"],
        "`--hide PATH` lets nobody use a path",
    ),
    (
        &["--allow-domain", "--allow-net", "--allow-network"],
        "`--allow-host HOST` lets a host be reached, `--net all` every one",
    ),
    (
        &["--network", "--share-net"],
        "`--net all` lets every host be reached, `--allow-host HOST` one",
    ),
    (
        &["--deny-net", "--no-net", "--no-network", "--unshare-net"],
        "`--net none`, which most presets begin with",
    ),
    (
        &["--port", "--publish"],
        "`--loopback-in PORT` lets a server inside be reached",
    ),
    (&["--allow-env"], "`--env NAME` lets a variable pass"),
    (
        &["--env-file", "--setenv"],
        "`--set-env NAME=VALUE` sets a variable",
    ),
    (
        &["--clearenv", "--unsetenv"],
        "leave it out: only variables that are listed pass, see `ringfence settings show`",
    ),
    (
        &["--max-time", "--time-limit", "--timeout"],
        "`--limit wall=5s` ends a command that takes longer",
    ),
    (
        &["--max-memory", "--mem", "--memory"],
        "`--limit memory=2GiB` bounds its memory",
    ),
    (
        &["--max-processes", "--pids-limit"],
        "`--limit processes=100` bounds how many there are",
    ),
    (
        &["--chdir", "--cwd", "--workdir"],
        "`cd` there first; `--project PATH` names the project",
    ),
    (&["--policy", "--profile"], "`--preset NAME` names a policy"),
    (
        &["--interactive", "--pty"],
        "`--tty` gives the command a terminal of its own",
    ),
    (&["--tmpfs"], "`--tmp private`, which is what most have"),
    (
        &[
            "--cap-drop",
            "--die-with-parent",
            "--new-session",
            "--no-new-privs",
            "--rm",
            "--seccomp",
            "--unshare-all",
            "--unshare-cgroup",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-user",
            "--unshare-uts",
        ],
        "leave it out: what it asks for is so without it",
    ),
    (
        &["--allow-all", "--no-sandbox", "--privileged"],
        "`--preset track` restricts nothing, and nothing survives it",
    ),
];

/// Says it. Help and version are answers; everything else is a mistake.
pub(super) fn say(arguments: &[OsString], mut error: clap::Error) -> Exit {
    let starts = arguments
        .get(1)
        .is_some_and(|word| word == "run" || word == "shell");
    if starts && error.kind() == ErrorKind::UnknownArgument {
        advise(&mut error);
    }
    let text = error.render().to_string();
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return answer(&text);
    }
    tell(&visible(&text));
    // A status of 2 may be the command's, too: whoever listens has to be told whose it is.
    if let Some(number) = descriptor(arguments).filter(|_| starts) {
        let (what, _) = text.split_once("\n\n").unwrap_or((&text, ""));
        let what = what.trim_start_matches("error: ").trim_end();
        Record::of_mistake(number, what);
    }
    Exit::Usage
}

/// Puts in the tips what helps. That a flag could be meant as the command is no help: nobody means it.
fn advise(error: &mut clap::Error) {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let (name, _) = typed.split_once('=').unwrap_or((typed, ""));
    let known = CALLED_OTHERWISE.iter();
    let known = known.filter(|(names, _)| names.contains(&name));
    let tips: Vec<StyledStr> = known.map(|(_, tip)| (*tip).into()).collect();
    error.remove(ContextKind::Suggested);
    if !tips.is_empty() {
        // What only looks alike does something else.
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// What `--json-fd` says, as far as anybody can tell from words that are not understood.
///
/// Where the command begins nothing more is ours. It begins with the first word that is neither a flag
/// nor the value of one that we know.
fn descriptor(arguments: &[OsString]) -> Option<u32> {
    let run = Run::command();
    let words = arguments.iter().skip(2).map(|word| word.to_string_lossy());
    let mut words = words.take_while(|word| word != "--").peekable();
    let number = loop {
        let word = words.next()?;
        if word == "--json-fd" {
            break words.next()?.into_owned();
        }
        if let Some(number) = word.strip_prefix("--json-fd=") {
            break number.to_owned();
        }
        if !word.starts_with('-') {
            return None;
        }
        if takes_a_value(&run, &word) {
            let _ = words.next_if(|value| !value.starts_with('-'));
        }
    };
    number.parse().ok().filter(|number| *number >= 3)
}

/// Whether the next word belongs to a flag. That of one nobody knows may be the command.
fn takes_a_value(run: &clap::Command, flag: &str) -> bool {
    let Some(name) = flag.strip_prefix("--") else {
        // None of a single letter does.
        return false;
    };
    let mut known = run.get_arguments();
    known.any(|known| known.get_long() == Some(name) && known.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_found_among_words_that_make_no_sense() {
        for (line, found) in [
            ("ringfence run --json-fd 5 --bogus -- true", Some(5)),
            ("ringfence run --bogus --json-fd=7", Some(7)),
            ("ringfence shell --json-fd 3 x", Some(3)),
            ("ringfence run --bogus -- true --json-fd 5", None),
            ("ringfence run --json-fd", None),
            ("ringfence run --json-fd -- 5", None),
            ("ringfence run --json-fd 2", None),
            ("ringfence run --json-fd five", None),
            ("ringfence run --bogus", None),
            // What is the command's.
            ("ringfence run --bogus cmd --json-fd 5", None),
            ("ringfence run --bogus cmd --json-fd=5", None),
            ("ringfence run --preset agnet cmd --json-fd 5", None),
            ("ringfence run --preset=agnet cmd --json-fd 5", None),
            ("ringfence run -v --odd -t cmd --json-fd 5", None),
            ("ringfence run --write --json-fd 5 cmd", Some(5)),
            (
                "ringfence run --preset agnet --write x --json-fd 5 cmd",
                Some(5),
            ),
            ("ringfence run -v --bogus=x --json-fd 5 cmd", Some(5)),
        ] {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(descriptor(&words), found, "{line}");
        }
    }

    #[test]
    fn no_flag_of_one_letter_takes_a_value() {
        let run = Run::command();
        let mut short = run
            .get_arguments()
            .filter(|flag| flag.get_short().is_some());
        assert!(short.all(|flag| !flag.get_action().takes_values()));
    }

    /// A flag of ours in the table would never be looked up; one that a tip names has to be there.
    #[test]
    fn tips_name_flags_that_there_are() {
        let run = Run::command();
        let ours: Vec<String> = run
            .get_arguments()
            .filter_map(|argument| argument.get_long())
            .map(|long| format!("--{long}"))
            .collect();
        for (names, tip) in CALLED_OTHERWISE {
            for name in names {
                assert!(!ours.iter().any(|flag| flag == name), "{name}");
            }
            for word in tip.split(['`', ' ']) {
                let is_flag = word.starts_with("--");
                assert!(!is_flag || ours.iter().any(|flag| flag == word), "{word}");
            }
        }
    }
}
