//! Secrets in the start-up files of shells.
//!
//! A shell without its start-up files is a poor shell, so policies for people let them be read; and
//! some people keep tokens in them. Which variables look like that is found here from the text
//! alone, line by line: it is for a warning, decides nothing, and never returns a value.

use std::collections::BTreeSet;

/// Start-up files of shells and sessions, by the names that people have them under.
pub const STARTUP_FILES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_profile",
    ".bashrc",
    ".config/fish/config.fish",
    ".cshrc",
    ".kshrc",
    ".pam_environment",
    ".profile",
    ".tcshrc",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// What the name of a secret has in it.
const WORDS: [&str; 4] = ["KEY", "PASSWORD", "SECRET", "TOKEN"];
/// Names of shells' own that have it too.
const HARMLESS: [&str; 4] = ["KEYBOARD_HACK", "KEYMAP", "KEYTIMEOUT", "LESSKEY"];
/// How the name of a file begins, which is no secret itself.
const PLACES: [&str; 10] = [
    "$HOME/", "${HOME}/", "/Users/", "/etc/", "/home/", "/opt/", "/root/", "/usr/", "/var/", "~",
];

/// The variables that a start-up file gives a value that looks like a secret, in order.
pub fn secrets_in(text: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        for statement in statements(line) {
            assigned(&statement, &mut |name, value| {
                if is_secret(name) && is_literal(value) {
                    found.insert(name.to_owned());
                }
            });
        }
    }
    found.into_iter().collect()
}

/// The commands of a line, word by word, with their quotes; comments are left out.
fn statements(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (_, '\\') => {
                word.push(character);
                word.extend(characters.next());
                continue;
            }
            (Some(open), _) => {
                if open == character {
                    quote = None;
                }
            }
            (None, '"' | '\'') => quote = Some(character),
            (None, '#') if word.is_empty() => break,
            (None, ';' | '&' | '|') => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                all.push(std::mem::take(&mut words));
                continue;
            }
            (None, _) if character.is_whitespace() => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                continue;
            }
            (None, _) => {}
        }
        word.push(character);
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    all.push(words);
    all
}

/// Tells every variable that a command sets, with the value as it is written.
fn assigned(words: &[String], tell: &mut dyn FnMut(&str, &str)) {
    let mut words = words.iter().map(String::as_str).peekable();
    while words
        .next_if(|word| matches!(*word, "{" | "builtin" | "command" | "do" | "else" | "then"))
        .is_some()
    {}
    match words.peek().copied() {
        Some("declare" | "export" | "local" | "readonly" | "typeset") => {
            for word in words.skip(1) {
                if let Some((name, value)) = word.split_once('=') {
                    tell(name, value);
                }
            }
        }
        // `setenv NAME value`, and `set -gx NAME value`.
        Some("set" | "setenv") => {
            let mut words = words.skip(1).skip_while(|word| word.starts_with('-'));
            if let (Some(name), Some(value)) = (words.next(), words.next()) {
                tell(name, value);
            }
        }
        Some(first) => {
            let mut all = words.clone();
            while let Some((name, value)) = all.next().and_then(|word| word.split_once('=')) {
                tell(name, value);
            }
            // `NAME DEFAULT=value`, of the environment that PAM gives.
            let value = words.nth(1).and_then(|word| word.strip_prefix("DEFAULT="));
            if let Some(value) = value {
                tell(first, value);
            }
        }
        None => {}
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.strip_suffix('+').unwrap_or(name);
    let plain = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let upper = name.to_ascii_uppercase();
    !name.is_empty()
        && name.chars().all(plain)
        && WORDS.iter().any(|word| upper.contains(word))
        && !HARMLESS.contains(&upper.as_str())
}

/// Whether the value itself stands there: not the name of a file, and nothing that is looked up.
fn is_literal(value: &str) -> bool {
    let value = value.trim_matches(['"', '\'']);
    let looked_up = ["$(", "`", "<("]
        .iter()
        .any(|begin| value.starts_with(begin));
    let variable = value.strip_prefix('$').is_some_and(|rest| {
        let name = rest.trim_start_matches('{').trim_end_matches('}');
        name.chars()
            .all(|each| each.is_ascii_alphanumeric() || each == '_')
    });
    let place = PLACES.iter().any(|begin| value.starts_with(begin));
    !value.is_empty() && !looked_up && !variable && !place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_look_like_secrets_are_named() {
        let text = r#"
            # export COMMENTED_TOKEN=abc
            export ACME_TOKEN=abc123 EDITOR=vim  # OTHER_TOKEN=x
            if true; then DB_PASSWORD='p w; d'; fi
            typeset -gx api_key="zzz"
            declare -x A=1 CLIENT_SECRET=s
            set -gx FISH_TOKEN fff
            setenv CSH_KEY ccc
            PAM_SECRET DEFAULT=ppp
            GH_TOKEN=ghp gh pr list
            [ -f x ] && { export LATE_KEY=l; } || true
        "#;
        let expected = [
            "ACME_TOKEN",
            "CLIENT_SECRET",
            "CSH_KEY",
            "DB_PASSWORD",
            "FISH_TOKEN",
            "GH_TOKEN",
            "LATE_KEY",
            "PAM_SECRET",
            "api_key",
        ];
        assert_eq!(secrets_in(text), expected);
    }

    #[test]
    fn what_is_looked_up_or_is_a_place_is_no_secret() {
        let text = r#"
            export A_TOKEN="$(pass show a)" B_TOKEN=`cat b` C_TOKEN=$OTHER D_TOKEN="${OTHER}"
            export SSH_KEY=~/.ssh/id E_KEY_FILE=/etc/key F_KEY="$HOME/.k" EMPTY_TOKEN= G_TOKEN=""
            KEYTIMEOUT=1
            export PATH="$HOME/bin:$PATH"
            bindkey -v
            alias token='echo'
            echo "SPOKEN_TOKEN=abc"
            set -o vi
            export EXPORTED_TOKEN
        "#;
        assert_eq!(secrets_in(text), Vec::<String>::new());
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_odd(text in ".{0,200}") {
            secrets_in(&text);
        }

        #[test]
        fn a_value_is_never_told(value in "[a-z0-9]{8,20}") {
            let text = format!("export X_TOKEN={value}; Y_KEY=\"{value}\"\nset -gx Z_SECRET {value}");
            let names = secrets_in(&text);
            proptest::prop_assert_eq!(&names, &["X_TOKEN", "Y_KEY", "Z_SECRET"]);
        }
    }
}
