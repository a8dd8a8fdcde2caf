//! The text of a git configuration file.
//!
//! Read to know what git would obey, never to obey it. So reading is lenient: where git would stop
//! with an error, the rest is still read, because a line that is overlooked here could be one that
//! somebody mends later. The length of a text is bounded by whoever read it.

/// One variable: `section.name` or `section.subsection.name`, and what it is set to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Variable {
    /// Section and name in lower case; the subsection, if any, as it was written.
    pub key: String,
    /// Quotes and escapes undone; `true` where nothing was written.
    pub value: String,
}

/// All variables of a file, in their order.
pub fn parse(text: &str) -> Vec<Variable> {
    let mut out = Vec::new();
    let mut section = String::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while let Some(first) = rest.chars().next() {
        rest = match first {
            _ if first.is_whitespace() => rest.get(first.len_utf8()..).unwrap_or_default(),
            '#' | ';' => after_line(rest),
            '[' => {
                let (name, after) = header(rest.get(1..).unwrap_or_default());
                section = name;
                after
            }
            _ => {
                let (variable, after) = variable(&section, rest);
                out.push(variable);
                after
            }
        };
    }
    out
}

fn after_line(text: &str) -> &str {
    text.find('\n')
        .and_then(|end| text.get(end + 1..))
        .unwrap_or_default()
}

/// `section]`, `section.subsection]` or `section "subsection"]`.
fn header(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut quoted = false;
    while let Some((at, character)) = characters.next() {
        match (quoted, character) {
            (false, ']') => return (name, text.get(at + 1..).unwrap_or_default()),
            (_, '\n') => return (name, text.get(at..).unwrap_or_default()),
            (false, '"') => {
                name.push('.');
                quoted = true;
            }
            (true, '"') => quoted = false,
            (true, '\\') => name.extend(characters.next().map(|(_, escaped)| escaped)),
            (true, other) => name.push(other),
            (false, other) if other.is_whitespace() => {}
            (false, other) => name.push(other.to_ascii_lowercase()),
        }
    }
    (name, "")
}

/// `name`, `name = value`, to the end of its last line.
fn variable<'t>(section: &str, text: &'t str) -> (Variable, &'t str) {
    let end = text.find(['=', '\n', '#', ';']).unwrap_or(text.len());
    let name = text.get(..end).unwrap_or_default().trim();
    let key = format!("{section}.{}", name.to_ascii_lowercase());
    let after = text.get(end..).unwrap_or_default();
    match after.strip_prefix('=') {
        None => {
            let value = "true".to_owned();
            (Variable { key, value }, after_line(after))
        }
        Some(written) => {
            let (value, after) = value(written);
            (Variable { key, value }, after)
        }
    }
}

fn value(text: &str) -> (String, &str) {
    let text = text.trim_start_matches([' ', '\t']);
    let mut out = String::new();
    // Blanks count only if something follows them, or if they are quoted.
    let mut kept = 0;
    let mut quoted = false;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (quoted, character) {
            (_, '\n') => {
                out.truncate(kept);
                return (out, text.get(at + 1..).unwrap_or_default());
            }
            (false, '#' | ';') => {
                out.truncate(kept);
                return (out, after_line(text.get(at..).unwrap_or_default()));
            }
            (_, '"') => {
                quoted = !quoted;
                kept = out.len();
            }
            (_, '\\') => {
                match characters.next() {
                    // Goes on in the next line.
                    None | Some((_, '\n')) => continue,
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'b')) => out.push('\u{8}'),
                    Some((_, other)) => out.push(other),
                }
                kept = out.len();
            }
            (_, '\r') => {}
            (_, other) => {
                out.push(other);
                if quoted || !other.is_whitespace() {
                    kept = out.len();
                }
            }
        }
    }
    out.truncate(kept);
    (out, "")
}

/// What a variable makes git do with a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Obeyed {
    /// Another file of the same kind as this one.
    Include,
    /// A directory whose programs git runs, or a file that says when it runs some.
    Path,
    /// A program, with arguments; a shell may run it.
    Program,
    /// Where the working tree is.
    Worktree,
}

/// Whether a variable names something that git would run or read as configuration.
pub fn obeyed(key: &str) -> Option<Obeyed> {
    let (section, rest) = key.split_once('.')?;
    let name = rest.rsplit_once('.').map_or(rest, |(_, name)| name);
    Some(match (section, name) {
        // What a template has is copied into every new repository, hooks and configuration.
        ("core", "attributesfile" | "excludesfile" | "hookspath")
        | ("gitflow", "hooks")
        | ("init", "templatedir") => Obeyed::Path,
        ("core", "worktree") => Obeyed::Worktree,
        ("include" | "includeif", "path") => Obeyed::Include,
        _ if PROGRAMS.iter().any(|(known, names)| {
            *known == section && names.is_none_or(|names| names.contains(&name))
        }) =>
        {
            Obeyed::Program
        }
        _ => return None,
    })
}

/// Whether a variable has git read a further file of the same directory.
pub fn is_about_more_files(key: &str) -> bool {
    key == "extensions.worktreeconfig"
}

/// A number for how configurations are read and what of them is obeyed, so that nothing is believed that
/// was found in another way: it is one of this very file.
pub const GENERATION: u64 = {
    let text = include_bytes!("config.rs");
    let (mut number, mut at) = (0xcbf2_9ce4_8422_2325_u64, 0);
    while at < text.len() {
        number = (number ^ text[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    number
};

/// Variables whose value git runs, by section; without names, all of a section.
const PROGRAMS: &[(&str, Option<&[&str]>)] = &[
    ("alias", None),
    ("annex", None),
    ("browser", None),
    (
        "core",
        Some(&[
            "alternaterefscommand",
            "askpass",
            "editor",
            "fsmonitor",
            "gitproxy",
            "pager",
            "sshcommand",
        ]),
    ),
    ("credential", Some(&["helper"])),
    ("diff", Some(&["command", "external", "textconv"])),
    ("difftool", Some(&["cmd", "path"])),
    ("filter", Some(&["clean", "process", "smudge"])),
    ("gc", Some(&["recentobjectshook"])),
    ("gpg", Some(&["defaultkeycommand", "program"])),
    ("guitool", None),
    ("hook", Some(&["command"])),
    ("imap", Some(&["tunnel"])),
    ("instaweb", Some(&["browser", "httpd", "modulepath"])),
    ("interactive", None),
    ("lfs", Some(&["clean", "path", "smudge"])),
    ("man", None),
    ("merge", Some(&["driver"])),
    ("mergetool", Some(&["cmd", "path"])),
    ("pager", None),
    ("remote", Some(&["receivepack", "uploadpack", "vcs"])),
    (
        "sendemail",
        Some(&["cccmd", "headercmd", "sendmailcmd", "smtpserver", "tocmd"]),
    ),
    ("sequence", Some(&["editor"])),
    ("submodule", Some(&["update"])),
    ("tar", Some(&["command"])),
    ("trailer", Some(&["cmd", "command"])),
    ("uploadpack", Some(&["packobjectshook"])),
];

/// The words of a command line that could be paths: those with a slash in them.
pub fn paths_in(command: &str) -> impl Iterator<Item = &str> {
    command
        .split(|character: char| character.is_whitespace() || "'\"|&;()<>!=`$".contains(character))
        .filter(|word| word.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let variables = parse(text).into_iter();
        variables
            .map(|variable| (variable.key, variable.value))
            .collect()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn what_git_writes_is_read() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tbare = false ; why\n\
                    [remote \"Or\\\"igin\"]\n\turl = https://x/y#z\n\
                    [Core] HooksPath=\".git hooks\"  # here\n\
                    [alias]\n\tx = \"!sh -c \\\"a\\\"\" b\\\n  c\n\tflag\n[a.B]c=1";
        assert_eq!(
            read(text),
            [
                pair("core.repositoryformatversion", "0"),
                pair("core.bare", "false"),
                pair("remote.Or\"igin.url", "https://x/y"),
                pair("core.hookspath", ".git hooks"),
                pair("alias.x", "!sh -c \"a\" b  c"),
                pair("alias.flag", "true"),
                pair("a.b.c", "1"),
            ]
        );
    }

    #[test]
    fn what_git_obeys_is_known() {
        for (key, expected) in [
            ("core.hookspath", Some(Obeyed::Path)),
            ("core.attributesfile", Some(Obeyed::Path)),
            ("init.templatedir", Some(Obeyed::Path)),
            ("gitflow.path.hooks", Some(Obeyed::Path)),
            ("gc.recentobjectshook", Some(Obeyed::Program)),
            ("imap.tunnel", Some(Obeyed::Program)),
            ("lfs.customtransfer.x.path", Some(Obeyed::Program)),
            ("lfs.extension.x.clean", Some(Obeyed::Program)),
            ("sendemail.work.smtpserver", Some(Obeyed::Program)),
            ("core.worktree", Some(Obeyed::Worktree)),
            ("include.path", Some(Obeyed::Include)),
            ("includeif.gitdir:~/x/.path", Some(Obeyed::Include)),
            ("filter.lfs.clean", Some(Obeyed::Program)),
            ("credential.https://x.y.helper", Some(Obeyed::Program)),
            ("gpg.ssh.program", Some(Obeyed::Program)),
            ("user.name", None),
            ("remote.origin.url", None),
        ] {
            assert_eq!(obeyed(key), expected, "{key}");
        }
        let words: Vec<&str> = paths_in("!f() { ./tools/a \"$1\"|b/c; }; f").collect();
        assert_eq!(words, ["./tools/a", "b/c"]);
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd(text in "[\\[\\]a.\"\\\\=#; \n\t\u{e9}\u{feff}]{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn a_quoted_value_comes_back(value in "[ -~]{0,30}") {
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
            let text = format!("[a \"b\"]\n\tc = \"{escaped}\" # d\n");
            prop_assert_eq!(read(&text), [pair("a.b.c", &value)]);
        }
    }
}
