//! Running ringfence inside WSL for somebody who called it on Windows.
//!
//! Owns the translation of paths and arguments, and of the command line for `wsl.exe`. Pure: what it
//! makes is started elsewhere.
//!
//! `wsl.exe` takes a command line apart by rules of its own, and what it makes of quotes and
//! backslashes is not written down anywhere. So the arguments cross as one word of hexadecimal
//! digits, which every such rule leaves alone, and are taken apart again inside.

use std::fmt::Write as _;

/// The first argument of a call that comes from Windows; the second holds the others.
pub const ENCODED: &str = "--ringfence-arguments-from-windows";

/// Flags whose value is a path.
pub const PATH_FLAGS: [&str; 12] = [
    "--allow-protected",
    "--dir",
    "--exec",
    "--file",
    "--hide",
    "--host-facts",
    "--project",
    "--read",
    "--report",
    "--request-write",
    "--unix-socket",
    "--write",
];

/// A path as Linux sees it, and in which distribution.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LinuxPath {
    /// The distribution that the path names; `None` for one that every distribution sees.
    pub distribution: Option<String>,
    /// The path.
    pub path: String,
}

/// Why a path or an argument cannot be taken over.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WslError {
    /// It is relative to the current directory of a drive, which Linux has no word for.
    #[error("{path:?} is relative to a drive; write it in full")]
    DriveRelative {
        /// As it was written.
        path: String,
    },
    /// It is on another machine, or no path of files at all.
    #[error("{path:?} is not on a drive of this machine")]
    Elsewhere {
        /// As it was written.
        path: String,
    },
    /// Two paths name different distributions.
    #[error("{path:?} is in another distribution than the directory")]
    OtherDistribution {
        /// As it was written.
        path: String,
    },
    /// The digits of the arguments are wrong.
    #[error("the arguments from Windows cannot be read")]
    Garbled,
    /// An argument holds a zero byte, which no program could be given.
    #[error("an argument holds a zero byte")]
    Nul,
}

/// What Linux calls a path of Windows. A path without a drive is relative, and stays so.
///
/// # Errors
///
/// If it is none that Linux could see.
pub fn linux_path(windows: &str) -> Result<LinuxPath, WslError> {
    let elsewhere = || WslError::Elsewhere {
        path: windows.to_owned(),
    };
    let slashes = windows.replace('\\', "/");
    // `\\?\` says that nobody should take the path apart any more; what is behind it is the same.
    let verbatim = slashes.strip_prefix("//?/");
    let rest = verbatim.unwrap_or(&slashes);
    let unc = match verbatim {
        Some(rest) => strip_prefix_ignoring_case(rest, "UNC/"),
        None => rest.strip_prefix("//"),
    };
    if let Some(unc) = unc {
        let (server, share) = unc.split_once('/').ok_or_else(elsewhere)?;
        let inside = ["wsl$", "wsl.localhost"];
        if !inside
            .iter()
            .any(|known| server.eq_ignore_ascii_case(known))
        {
            return Err(elsewhere());
        }
        let (distribution, path) = share.split_once('/').unwrap_or((share, ""));
        if distribution.is_empty() {
            return Err(elsewhere());
        }
        return Ok(LinuxPath {
            distribution: Some(distribution.to_owned()),
            path: format!("/{}", joined(path)),
        });
    }
    let mut characters = rest.chars();
    let (first, second) = (characters.next(), characters.next());
    match (first, second) {
        (Some(drive), Some(':')) if drive.is_ascii_alphabetic() => {
            let below = characters.as_str();
            if !below.starts_with('/') {
                return Err(WslError::DriveRelative {
                    path: windows.to_owned(),
                });
            }
            let drive = drive.to_ascii_lowercase();
            let below = joined(below);
            let slash = if below.is_empty() { "" } else { "/" };
            Ok(LinuxPath {
                distribution: None,
                path: format!("/mnt/{drive}{slash}{below}"),
            })
        }
        _ if verbatim.is_some() => Err(elsewhere()),
        // A colon elsewhere names a stream of a file, or a device.
        _ if rest.contains(':') => Err(elsewhere()),
        _ => Ok(LinuxPath {
            distribution: None,
            path: slashes,
        }),
    }
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Names with one slash between them.
fn joined(path: &str) -> String {
    let names: Vec<&str> = path
        .split('/')
        .filter(|name| !name.is_empty() && *name != ".")
        .collect();
    names.join("/")
}

/// The command line that runs ringfence inside WSL: the arguments of `wsl.exe`, without its name.
///
/// # Errors
///
/// If the directory, or a path among the arguments, is none that Linux could see.
pub fn command_line(directory: &str, arguments: &[String]) -> Result<Vec<String>, WslError> {
    let directory = linux_path(directory)?;
    let arguments = translated(arguments, directory.distribution.as_deref())?;
    let mut words = Vec::new();
    if let Some(distribution) = &directory.distribution {
        words.extend(["--distribution".to_owned(), distribution.clone()]);
    }
    words.extend(["--cd".to_owned(), directory.path]);
    // Not through a shell: there is nothing for one to do.
    words.extend(["--exec", "ringfence", ENCODED].map(str::to_owned));
    words.push(encode(&arguments)?);
    Ok(words)
}

/// The arguments with the paths in flags translated; the command's own are nobody's to change.
fn translated(arguments: &[String], distribution: Option<&str>) -> Result<Vec<String>, WslError> {
    let path = |text: &str| {
        let translated = linux_path(text)?;
        if translated.distribution.is_some() && translated.distribution.as_deref() != distribution {
            return Err(WslError::OtherDistribution {
                path: text.to_owned(),
            });
        }
        Ok(translated.path)
    };
    let mut out = Vec::with_capacity(arguments.len());
    let mut left = arguments.iter();
    while let Some(argument) = left.next() {
        if argument == "--" {
            out.push(argument.clone());
            break;
        }
        if PATH_FLAGS.contains(&argument.as_str()) {
            out.push(argument.clone());
            if let Some(value) = left.next() {
                out.push(path(value)?);
            }
        } else if let Some((flag, value)) = argument.split_once('=')
            && PATH_FLAGS.contains(&flag)
        {
            out.push(format!("{flag}={}", path(value)?));
        } else {
            out.push(argument.clone());
        }
    }
    out.extend(left.cloned());
    Ok(out)
}

/// Arguments as one word.
fn encode(arguments: &[String]) -> Result<String, WslError> {
    let mut out = String::new();
    for argument in arguments {
        if argument.contains('\0') {
            return Err(WslError::Nul);
        }
        for byte in argument.bytes() {
            let _ = write!(out, "{byte:02x}");
        }
        out.push_str("00");
    }
    Ok(out)
}

/// The arguments that were made into one word.
///
/// # Errors
///
/// If it is not such a word.
pub fn decode(word: &str) -> Result<Vec<String>, WslError> {
    let digits = word.as_bytes().chunks(2);
    let bytes = digits.map(|pair| {
        let pair = std::str::from_utf8(pair)
            .ok()
            .filter(|pair| pair.len() == 2)?;
        // A sign would be taken for a digit.
        let hexadecimal = pair.bytes().all(|byte| byte.is_ascii_hexdigit());
        hexadecimal
            .then(|| u8::from_str_radix(pair, 16).ok())
            .flatten()
    });
    let bytes: Option<Vec<u8>> = bytes.collect();
    let mut bytes = bytes.ok_or(WslError::Garbled)?;
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    if bytes.pop() != Some(0) {
        return Err(WslError::Garbled);
    }
    let words = bytes.split(|byte| *byte == 0);
    let words = words.map(|word| String::from_utf8(word.to_vec()).map_err(|_| WslError::Garbled));
    words.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Found = Result<(Option<String>, String), WslError>;

    fn on(path: &str) -> Found {
        linux_path(path).map(|path| (path.distribution, path.path))
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "to be compared with what may fail"
    )]
    fn plain(path: &str) -> Found {
        Ok((None, path.to_owned()))
    }

    #[test]
    fn drives_are_below_mnt() {
        assert_eq!(on(r"C:\Users\me\p"), plain("/mnt/c/Users/me/p"));
        assert_eq!(on(r"d:/x//y/./"), plain("/mnt/d/x/y"));
        assert_eq!(on(r"C:\"), plain("/mnt/c"));
        assert_eq!(on(r"\\?\E:\a b\ä"), plain("/mnt/e/a b/ä"));
        assert_eq!(on(r"src\main.rs"), plain("src/main.rs"));
        assert_eq!(on("/usr/bin"), plain("/usr/bin"));
    }

    #[test]
    fn a_distribution_has_its_own_files() {
        let home = |name: &str| Ok((Some(name.to_owned()), "/home/me".to_owned()));
        assert_eq!(on(r"\\wsl$\Ubuntu\home\me"), home("Ubuntu"));
        assert_eq!(on(r"\\WSL.localhost\Debian\home\me\"), home("Debian"));
        assert_eq!(on(r"\\?\UNC\wsl.localhost\Debian\home\me"), home("Debian"));
        assert_eq!(on(r"\\wsl$\Ubuntu").unwrap().1, "/");
    }

    #[test]
    fn what_linux_cannot_see_is_refused() {
        for path in [
            r"\\server\share\x",
            r"\\wsl$\",
            r"\\wsl$",
            r"\\.\COM1",
            r"file.txt:stream",
            r"\\?\Volume{1}\x",
        ] {
            assert!(
                matches!(on(path), Err(WslError::Elsewhere { .. })),
                "{path}"
            );
        }
        assert!(matches!(on("C:x"), Err(WslError::DriveRelative { .. })));
        assert!(matches!(on("C:"), Err(WslError::DriveRelative { .. })));
    }

    fn words(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn flags_are_translated_and_the_command_is_not() {
        let arguments = words(&[
            "run",
            "--write",
            r"C:\out",
            r"--read=D:\in",
            "--net",
            "none",
            "--",
            "tool",
            "--write",
            r"C:\x",
        ]);
        let line = command_line(r"C:\p", &arguments).unwrap();
        assert_eq!(
            &line[..5],
            &words(&["--cd", "/mnt/c/p", "--exec", "ringfence", ENCODED])[..]
        );
        assert!(line[5].bytes().all(|byte| byte.is_ascii_hexdigit()));
        let expected = [
            "run",
            "--write",
            "/mnt/c/out",
            "--read=/mnt/d/in",
            "--net",
            "none",
            "--",
            "tool",
            "--write",
            r"C:\x",
        ];
        assert_eq!(decode(&line[5]), Ok(words(&expected)));
    }

    #[test]
    fn a_directory_in_a_distribution_chooses_it() {
        let line = command_line(r"\\wsl$\Ubuntu\home\me", &words(&["doctor"])).unwrap();
        assert_eq!(
            &line[..4],
            &words(&["--distribution", "Ubuntu", "--cd", "/home/me"])[..]
        );
        let same = words(&["run", "--read", r"\\wsl.localhost\Ubuntu\etc", "x"]);
        assert!(command_line(r"\\wsl$\Ubuntu\home\me", &same).is_ok());
        assert!(matches!(
            command_line(r"C:\", &same),
            Err(WslError::OtherDistribution { .. })
        ));
    }

    #[test]
    fn what_is_not_such_a_word_is_refused() {
        for word in ["0", "zz00", "6", "61", "+100", "6100é0", "ff00"] {
            assert_eq!(decode(word), Err(WslError::Garbled), "{word}");
        }
        assert_eq!(decode(""), Ok(Vec::new()));
        assert_eq!(decode("00"), Ok(vec![String::new()]));
    }

    proptest! {
        #[test]
        fn any_arguments_cross_unharmed(arguments in prop::collection::vec("[^\0]{0,12}", 0..6)) {
            prop_assert_eq!(decode(&encode(&arguments).unwrap()), Ok(arguments));
        }

        #[test]
        fn any_path_is_answered(path in "\\PC{0,24}|[A-Za-z:\\\\/.$?]{0,16}") {
            if let Ok(found) = linux_path(&path) {
                prop_assert!(!found.path.contains('\\'), "{:?}", found);
            }
        }
    }
}
