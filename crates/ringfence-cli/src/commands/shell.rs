//! `ringfence shell`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use ringfence::launch::Linger;
use ringfence_core::settings::Kind;

use super::run::{Job, Terminal, start};
use crate::args::ShellArguments;

pub(super) fn run(arguments: &ShellArguments) -> ExitCode {
    let asked = std::env::var_os("SHELL");
    let accounts = std::fs::read("/etc/passwd").unwrap_or_default();
    let own = rustix::process::getuid().as_raw();
    let shell = login_shell(asked, &accounts, own);
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
fn login_shell(asked: Option<OsString>, accounts: &[u8], own: u32) -> OsString {
    use std::os::unix::ffi::OsStringExt as _;
    if let Some(asked) = asked.filter(|shell| Path::new(shell).is_absolute()) {
        return asked;
    }
    let mut lines = accounts.split(|byte| *byte == b'\n');
    let shell = lines.find_map(|line| {
        let mut fields = line.split(|byte| *byte == b':').skip(2);
        let user: u32 = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let shell = OsString::from_vec(fields.nth(3)?.to_vec());
        (user == own && Path::new(&shell).is_absolute()).then_some(shell)
    });
    shell.unwrap_or_else(|| OsString::from("/bin/sh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &[u8] = b"root:x:0:0:root:/root:/bin/bash\n\
        broken line\n\
        none:x:5:5::/:\n\
        me:x:1000:1000:Me,,,:/home/me:/usr/bin/zsh\n";

    #[test]
    fn the_session_names_the_shell_before_the_account_does() {
        let asked = || Some(OsString::from("/usr/bin/fish"));
        assert_eq!(login_shell(asked(), ACCOUNTS, 1000), "/usr/bin/fish");
        assert_eq!(login_shell(None, ACCOUNTS, 1000), "/usr/bin/zsh");
        let odd = Some(OsString::from("fish"));
        assert_eq!(login_shell(odd, ACCOUNTS, 0), "/bin/bash");
    }

    #[test]
    fn an_account_without_a_shell_gets_the_plain_one() {
        for user in [5, 77] {
            assert_eq!(login_shell(None, ACCOUNTS, user), "/bin/sh");
        }
        assert_eq!(login_shell(None, b"", 0), "/bin/sh");
        assert_eq!(login_shell(None, b":::::::", 0), "/bin/sh");
    }
}
