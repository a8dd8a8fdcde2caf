//! What the machine's user database says of whoever runs this program.
//!
//! Variables say what somebody wants; this says what is. `HOME` can be unset or lead elsewhere, and
//! the keys of the user still lie where they always did.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Where the database is.
const DATABASE: &str = "/etc/passwd";

/// One account. What is not an absolute path counts as not said.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Account {
    /// Where its files are.
    pub home: Option<PathBuf>,
    /// Its login shell.
    pub shell: Option<OsString>,
}

impl Account {
    /// The account of this process; an empty one if no database that can be read has it.
    pub fn of_process() -> Self {
        let own = rustix::process::getuid().as_raw();
        let accounts = File::open(DATABASE).ok().map(BufReader::new);
        if let Some(found) = accounts.and_then(|accounts| Self::find(accounts, own)) {
            return found;
        }
        Self {
            home: home_elsewhere(own),
            shell: None,
        }
    }

    /// The first account of a user, which is the one that counts.
    pub fn find(accounts: impl BufRead, own: u32) -> Option<Self> {
        // Whoever cannot be read to the end says nothing more.
        let mut lines = accounts.split(b'\n').map_while(Result::ok);
        lines.find_map(|line| {
            let mut fields = line.split(|byte| *byte == b':').skip(2);
            let user: u32 = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
            if user != own {
                return None;
            }
            let path = |field: Option<&[u8]>| {
                let path = OsString::from_vec(field?.to_vec());
                Path::new(&path).is_absolute().then_some(path)
            };
            Some(Self {
                home: path(fields.nth(2)).map(PathBuf::from),
                shell: path(fields.next()),
            })
        })
    }
}

/// Where a system keeps for each user what is over when she leaves.
#[cfg(target_os = "linux")]
const RUNTIMES: &str = "/run/user";

/// The runtime directories that this process may be let write: its user's, and the one that a variable
/// names. Root may write everybody's.
#[cfg(target_os = "linux")]
pub fn runtimes(named: Option<&Path>) -> Vec<PathBuf> {
    let user = rustix::process::getuid();
    let mut runtimes = if user.is_root() {
        // Where nobody is logged in there is none.
        let listed = std::fs::read_dir(RUNTIMES).into_iter().flatten();
        listed.flatten().map(|entry| entry.path()).collect()
    } else {
        vec![Path::new(RUNTIMES).join(user.as_raw().to_string())]
    };
    runtimes.extend(named.map(Path::to_owned));
    runtimes
}

/// No service manager or bus reads what lies there.
#[cfg(not(target_os = "linux"))]
pub fn runtimes(_named: Option<&Path>) -> Vec<PathBuf> {
    Vec::new()
}

/// The home of an account that is not in the file: in a directory service, as all people's are on
/// macOS.
fn home_elsewhere(own: u32) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    // The standard library asks the C library then, which may know more databases.
    if std::env::var_os("HOME").is_none()
        && let Some(home) = std::env::home_dir().filter(|home| home.is_absolute())
    {
        return Some(home);
    }
    if !cfg!(target_os = "macos") {
        return None;
    }
    let mut homes = std::fs::read_dir("/Users").ok()?.filter_map(Result::ok);
    let own = homes.find(|home| {
        let status = home.metadata();
        status.is_ok_and(|status| status.is_dir() && status.uid() == own)
    });
    own.map(|home| home.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNTS: &[u8] = b"root:x:0:0:root:/root:/bin/bash\n\
        broken line\n\
        none:x:5:5::/:\n\
        odd:x:6:6::home:sh\n\
        short:x:7:7\n\
        me:x:1000:1000:Me,,,:/home/me:/usr/bin/zsh\n\
        again:x:1000:1000::/elsewhere:/bin/sh\n";

    fn found(own: u32) -> Option<(Option<PathBuf>, Option<OsString>)> {
        let account = Account::find(ACCOUNTS, own);
        account.map(|account| (account.home, account.shell))
    }

    #[test]
    fn the_first_account_of_a_user_counts() {
        let of = |home: &str, shell: &str| Some((Some(home.into()), Some(shell.into())));
        assert_eq!(found(0), of("/root", "/bin/bash"));
        assert_eq!(found(1000), of("/home/me", "/usr/bin/zsh"));
        assert_eq!(found(77), None);
        assert_eq!(Account::find(&b":::::::"[..], 0), None);
    }

    #[test]
    fn what_is_no_path_is_not_said() {
        assert_eq!(found(5), Some((Some("/".into()), None)));
        assert_eq!(found(6), Some((None, None)));
        assert_eq!(found(7), Some((None, None)));
    }
}
