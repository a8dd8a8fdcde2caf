//! The words that settings are written in.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::nearest;

/// A closed set of words, the same in files, flags and output.
pub trait Word: Copy + Sized + 'static {
    /// What the set is called in a message: "preset".
    const WHAT: &'static str;
    /// Every word with its value.
    const WORDS: &'static [(&'static str, Self)];

    /// The value of a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, value)| *value)
    }

    /// All words in one line: "`agent`, `strict`, `terminal` or `track`".
    fn choices() -> String {
        let mut out = String::new();
        for (index, (word, _)) in Self::WORDS.iter().enumerate() {
            out.push_str(match index {
                0 => "",
                last if last + 1 == Self::WORDS.len() => " or ",
                _ => ", ",
            });
            out.push('`');
            out.push_str(word);
            out.push('`');
        }
        out
    }
}

/// A word that is not in its set.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{word:?} is not a {what}; write {choices}{}", nearest.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default())]
pub struct UnknownWord {
    word: String,
    what: &'static str,
    choices: String,
    nearest: Option<&'static str>,
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $what:literal, { $($(#[$vmeta:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $word)] $variant,)*
        }

        impl Word for $name {
            const WHAT: &'static str = $what;
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),*];
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word,)* })
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(word: &str) -> Result<Self, UnknownWord> {
                Self::from_word(word).ok_or_else(|| UnknownWord {
                    word: word.to_owned(),
                    what: Self::WHAT,
                    choices: Self::choices(),
                    nearest: nearest(word, Self::WORDS.iter().map(|(word, _)| *word)),
                })
            }
        }
    };
}

words! {
    /// Where a policy starts from.
    Preset, "preset", {
        /// Reads everything but secrets and git metadata; writes the project and a private `/tmp`;
        /// no network.
        Agent = "agent",
        /// Reads system trees, the project and toolchains; the rest of the home does not exist.
        Strict = "strict",
        /// A person's shell: system paths, dotfiles, the project; all of the network.
        Terminal = "terminal",
        /// No restriction: only the promise that nothing survives.
        Track = "track",
    }
}

words! {
    /// Whose command it is.
    Kind, "kind", {
        /// An agent's command, as `ringfence run` starts it.
        Tool = "tool",
        /// A person's shell, as `ringfence shell` starts it.
        Terminal = "terminal",
    }
}

words! {
    /// The kinds that the restrictions hold for.
    ApplyTo, "kind to apply to", {
        /// A person's shell only.
        Terminal = "terminal",
        /// An agent's command only.
        Tool = "tool",
        /// Both of them.
        Both = "both",
        /// None: the settings are written down, not applied.
        Neither = "neither",
    }
}

words! {
    /// How much of the project's git metadata a command may use, least first.
    GitLevel, "git level", {
        /// Contents can be neither read nor written.
        Hidden = "hidden",
        /// `git status`, `log` and `diff` work.
        Read = "read",
        /// `git commit` works; what makes git run something stays read-only.
        Write = "write",
        /// Everything.
        Full = "full",
    }
}

words! {
    /// What to do when the host cannot enforce a rule, strictest first.
    OnGap, "answer to a gap", {
        /// Refuse to launch.
        Refuse = "refuse",
        /// Launch, and list the gap in the report.
        Report = "report",
    }
}

words! {
    /// Which temporary directories a command sees, strictest first.
    Tmp, "kind of temporary directory", {
        /// Its own, empty at the start and gone at the end.
        Private = "private",
        /// The host's.
        Host = "host",
    }
}

words! {
    /// How much of the network a command may use, least first.
    NetworkMode, "network mode", {
        /// Nothing outside the session.
        None = "none",
        /// The listed hosts.
        Hosts = "hosts",
        /// Everything.
        All = "all",
    }
}

words! {
    /// What a rule for shell commands does, least strict first.
    ShellAction, "rule action", {
        /// Run without asking.
        Allow = "allow",
        /// Ask first.
        Ask = "ask",
        /// Do not run.
        Deny = "deny",
    }
}

words! {
    /// The operating systems that settings can tell apart.
    Os, "operating system", {
        /// Linux, WSL included.
        Linux = "linux",
        /// macOS.
        Macos = "macos",
        /// Windows outside WSL.
        Windows = "windows",
    }
}

impl ApplyTo {
    /// Whether the restrictions hold for this kind.
    pub fn includes(self, kind: Kind) -> bool {
        match self {
            Self::Both => true,
            Self::Neither => false,
            Self::Terminal => kind == Kind::Terminal,
            Self::Tool => kind == Kind::Tool,
        }
    }
}

impl Kind {
    /// The preset a kind has when nobody names one.
    pub fn default_preset(self) -> Preset {
        match self {
            Self::Terminal => Preset::Terminal,
            Self::Tool => Preset::Agent,
        }
    }
}

/// A bound, or none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// At most this many.
    At(u64),
    /// No bound.
    Unlimited,
}

impl Limit {
    /// The stricter of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        match (self, other) {
            (Self::At(a), Self::At(b)) => Self::At(a.min(b)),
            (Self::At(a), Self::Unlimited) | (Self::Unlimited, Self::At(a)) => Self::At(a),
            (Self::Unlimited, Self::Unlimited) => Self::Unlimited,
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(bound) => bound.fmt(f),
            Self::Unlimited => f.write_str("none"),
        }
    }
}

impl Serialize for Limit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(bound) => serializer.serialize_u64(*bound),
            Self::Unlimited => serializer.serialize_str("none"),
        }
    }
}

/// What a limit counts, and so how it is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// Bytes: `512MiB`, `2GB`, or a plain number.
    Bytes,
    /// Things: a plain number.
    Count,
    /// Time in seconds: `90s`, `10m`, `2h`, or a plain number.
    Seconds,
}

impl Unit {
    /// Reads a limit: `none`, a number, or a number with one of the unit's suffixes.
    ///
    /// # Errors
    ///
    /// What was expected, in words.
    pub fn parse(self, text: &str) -> Result<Limit, &'static str> {
        if text == "none" {
            return Ok(Limit::Unlimited);
        }
        let expected = match self {
            Self::Bytes => "write a size such as `512MiB` or `2GB`, or `none`",
            Self::Count => "write a whole number, or `none`",
            Self::Seconds => "write a time such as `90s`, `10m` or `2h`, or `none`",
        };
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, suffix) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| expected)?;
        let factor: u64 = match (self, suffix) {
            (_, "") | (Self::Bytes, "B") | (Self::Seconds, "s") => 1,
            (Self::Bytes, "KiB" | "K") => 1 << 10,
            (Self::Bytes, "MiB" | "M") => 1 << 20,
            (Self::Bytes, "GiB" | "G") => 1 << 30,
            (Self::Bytes, "TiB" | "T") => 1 << 40,
            (Self::Bytes, "kB" | "KB") => 1_000,
            (Self::Bytes, "MB") => 1_000_000,
            (Self::Bytes, "GB") => 1_000_000_000,
            (Self::Seconds, "m" | "min") => 60,
            (Self::Seconds, "h") => 3_600,
            _ => return Err(expected),
        };
        let total = number.checked_mul(factor).ok_or(expected)?;
        if total == 0 {
            return Err(
                "a limit of zero would end everything at once; write at least 1, or `none`",
            );
        }
        Ok(Limit::At(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_read_back_as_they_are_printed() {
        for (word, preset) in Preset::WORDS {
            assert_eq!(&preset.to_string(), word);
            assert_eq!(word.parse(), Ok(*preset));
        }
        let error = "agnet".parse::<Preset>().unwrap_err().to_string();
        assert_eq!(
            error,
            "\"agnet\" is not a preset; write `agent`, `strict`, `terminal` or `track` (did you mean `agent`?)"
        );
    }

    #[test]
    fn limits_know_their_units() {
        assert_eq!(Unit::Seconds.parse("10m"), Ok(Limit::At(600)));
        assert_eq!(Unit::Bytes.parse("2GiB"), Ok(Limit::At(2 << 30)));
        assert_eq!(Unit::Count.parse("64"), Ok(Limit::At(64)));
        assert_eq!(Unit::Count.parse("none"), Ok(Limit::Unlimited));
        for bad in [
            "",
            "0",
            "-1",
            "1.5",
            "10x",
            "99999999999999999999",
            "9999999999999TiB",
        ] {
            assert!(Unit::Bytes.parse(bad).is_err(), "{bad}");
        }
        assert!(Unit::Count.parse("10m").is_err());
    }
}
