//! `ringfence shell`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use ringfence::account::Account;
use ringfence::launch::Linger;
use ringfence_core::settings::Kind;

use super::run::{Job, Terminal, start};
use crate::args::ShellArguments;
use crate::exit::Exit;
use crate::output::complain;
use crate::record::Record;

pub(super) fn run(arguments: &ShellArguments) -> ExitCode {
    if arguments.session.shell_policy.is_some() {
        // It would hold for the name of the shell, and look as if it held for what is typed.
        complain(
            "--shell-policy reads a command before it runs, and nobody can read what will be typed",
            Some("use it with `ringfence run`, or take it away: the sandbox holds all the same"),
        );
        if let Ok(record) = Record::open(&arguments.session) {
            record.refused(Exit::Usage);
        }
        return Exit::Usage.into();
    }
    let asked = std::env::var_os("SHELL");
    let shell = login_shell(asked, || Account::of_process().shell);
    start(&Job {
        kind: Kind::Terminal,
        flags: &arguments.session,
        // A wrapped shell is nobody's first process, so it has to be told that it is a login shell.
        command: &[shell, OsString::from("-l")],
        terminal: Terminal::IfThere,
        linger: Linger::No,
        lingering: None,
        #[cfg(target_os = "linux")]
        ahead: None,
    })
}

/// The user's shell: what the session says, else what the account says, else the one that every
/// system has.
fn login_shell(asked: Option<OsString>, of_account: impl FnOnce() -> Option<OsString>) -> OsString {
    let asked = asked.filter(|shell| Path::new(shell).is_absolute());
    let shell = asked.or_else(of_account);
    shell.unwrap_or_else(|| OsString::from("/bin/sh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_names_the_shell_before_the_account_does() {
        let zsh = || Some(OsString::from("/usr/bin/zsh"));
        let asked = |shell: &str| Some(OsString::from(shell));
        assert_eq!(login_shell(asked("/usr/bin/fish"), zsh), "/usr/bin/fish");
        assert_eq!(login_shell(asked("fish"), zsh), "/usr/bin/zsh");
        assert_eq!(login_shell(None, zsh), "/usr/bin/zsh");
        assert_eq!(login_shell(None, || None), "/bin/sh");
    }
}
