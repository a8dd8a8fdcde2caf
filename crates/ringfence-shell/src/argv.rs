//! From the words of a command line to the text that runs exactly them.
//!
//! A program that starts `["bash", "-c", text]`, or `["git", "push"]`, has words and no text. Written
//! as text they are read by the same door as everything else, so that wrappers, shells and their code
//! are found the same way.

/// Words that are more than words where a command begins.
const RESERVED: &[&str] = &[
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
];

/// The bash text that runs exactly `words`, each quoted where it has to be.
///
/// # Examples
///
/// ```
/// use ringfence_shell::{Code, Ir, command_line};
///
/// let text = command_line(["env", "bash", "-lc", "make; cd /tmp"]);
/// assert_eq!(text, "env bash -lc 'make; cd /tmp'");
/// assert!(Ir::from_bash(&text).has(Code::Cd));
/// ```
pub fn command_line<I>(words: I) -> String
where
    I: IntoIterator,
    I::Item: AsRef<str>,
{
    let mut text = String::new();
    for (position, word) in words.into_iter().enumerate() {
        let word = word.as_ref();
        if position > 0 {
            text.push(' ');
        }
        if is_plain(word) && (position > 0 || !RESERVED.contains(&word)) {
            text.push_str(word);
            continue;
        }
        text.push('\'');
        text.push_str(&word.replace('\'', r"'\''"));
        text.push('\'');
    }
    text
}

/// Whether bash reads `word` as nothing but itself, wherever it stands.
fn is_plain(word: &str) -> bool {
    let plain = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'.' | b'/' | b'-' | b'+' | b',' | b'@')
    };
    !word.is_empty() && word.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Code, Ir};

    fn words_of(text: &str) -> Vec<String> {
        let ir = Ir::from_bash(text);
        assert_eq!(ir.refusal, None, "{text}");
        let words = ir.commands[0].words.iter();
        words
            .map(|word| word.literal().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn words_that_mean_something_are_quoted() {
        for word in [
            "if", "time", "A=b", "{", "[[", "!", "~", "a*", "", "$x", "#", "a\nb", "&",
        ] {
            assert_eq!(words_of(&command_line([word, word])), [word, word]);
        }
        assert_eq!(command_line(["make", "if"]), "make if");
    }

    #[test]
    fn code_in_a_word_is_found_at_its_place() {
        let text = command_line(["nice", "bash", "-c", "make && cd /tmp"]);
        let span = Ir::from_bash(&text).first(Code::Cd).unwrap();
        assert_eq!(&text[span.start as usize..span.end as usize], "cd /tmp");
        // Quotes had to be written otherwise, so only the word can be named.
        let text = command_line(["bash", "-c", "echo 'a'; cd /tmp"]);
        let span = Ir::from_bash(&text).first(Code::Cd).unwrap();
        assert_eq!(span.start as usize, text.find('\'').unwrap());
    }

    proptest! {
        #[test]
        fn any_words_come_back_as_they_were(words in prop::collection::vec("[^\0\u{1}\r\u{7f}]{0,20}", 1..6)) {
            // Direction marks and the like are read, and denied; they are never lost.
            prop_assert_eq!(words_of(&command_line(&words)), words);
        }
    }
}
