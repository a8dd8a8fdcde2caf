//! Redirections.

use super::word::Place;
use super::{Parsed, Parser, is_name_part, is_name_start};
use crate::{Code, HoleKind, Redirection, RedirectionKind, RefusalKind, Word, device};

impl Parser<'_, '_> {
    /// The length of a descriptor (`2` or `{fd}`) directly in front of `<` or `>`.
    fn descriptor(&self) -> Option<usize> {
        let mut length = 0;
        if self.peek() == b'{' && is_name_start(self.at(1)) {
            length = 2;
            while is_name_part(self.at(length)) {
                length += 1;
            }
            if self.at(length) != b'}' {
                return None;
            }
            length += 1;
        } else {
            while self.at(length).is_ascii_digit() {
                length += 1;
            }
        }
        // `2<(x)` is one word with a substitution in it.
        let redirects = matches!(self.at(length), b'<' | b'>') && self.at(length + 1) != b'(';
        redirects.then_some(length)
    }

    pub(super) fn at_redirection(&self) -> bool {
        match self.peek() {
            b'<' | b'>' => self.at(1) != b'(',
            b'&' => self.at(1) == b'>',
            b'0'..=b'9' | b'{' => self.descriptor().is_some(),
            _ => false,
        }
    }

    pub(super) fn redirection(&mut self) -> Parsed<Redirection> {
        let start = self.pos;
        let length = if self.peek() == b'&' {
            0
        } else {
            self.descriptor().unwrap_or(0)
        };
        let descriptor =
            std::str::from_utf8(self.src.get(start..start + length).unwrap_or_default())
                .ok()
                .and_then(|digits| digits.parse().ok());
        self.pos += length;
        let (kind, length) = match (self.peek(), self.at(1), self.at(2)) {
            (b'&', b'>', b'>') => (RedirectionKind::Append, 3),
            (b'<', b'<', b'<') => (RedirectionKind::HereString, 3),
            (b'<', b'<', b'-') => (RedirectionKind::Heredoc, 3),
            (b'<', b'<', _) => (RedirectionKind::Heredoc, 2),
            (b'<', b'&', _) => (RedirectionKind::DuplicateInput, 2),
            (b'<', b'>', _) => (RedirectionKind::ReadWrite, 2),
            (b'<', _, _) => (RedirectionKind::Read, 1),
            (b'>', b'>', _) => (RedirectionKind::Append, 2),
            (b'&', b'>', _) | (b'>', b'|' | b'&', _) => (RedirectionKind::Write, 2),
            (b'>', _, _) => (RedirectionKind::Write, 1),
            _ => return self.refuse(RefusalKind::Unexpected),
        };
        let operator = self.pos;
        let strips_tabs = kind == RedirectionKind::Heredoc && length == 3;
        let duplicates = self.peek() == b'>' && self.at(1) == b'&';
        let both = self.peek() == b'&';
        self.pos += length;
        if kind == RedirectionKind::Heredoc {
            let target = self.heredoc_start(strips_tabs)?;
            self.find(Code::Heredoc, start);
            return Ok(Redirection {
                span: self.since(start),
                kind,
                descriptor,
                target,
            });
        }
        self.blanks()?;
        let target = self.word(Place::Argument)?;
        let kind = if duplicates && names_descriptor(&target) {
            RedirectionKind::Duplicate
        } else {
            kind
        };
        if duplicates && kind == RedirectionKind::Write {
            self.expanded_twice(operator, &target)?;
        }
        if both || duplicates || kind == RedirectionKind::HereString {
            self.only_bash(operator);
        }
        let redirection = Redirection {
            span: self.since(start),
            kind,
            descriptor,
            target,
        };
        if let Some(code) = code(&redirection) {
            self.out.find(code, redirection.span);
        }
        Ok(redirection)
    }

    /// bash expands the file of `>&` once to see whether it is a descriptor, and what came of that
    /// again: `>& 'a$(cmd)'` runs `cmd`.
    fn expanded_twice(&mut self, operator: usize, target: &Word) -> Parsed<()> {
        let live = target.text.contains(['$', '`', '<', '>']);
        if live {
            return self.refuse_at(operator, RefusalKind::AmbiguousRedirection);
        }
        if !target.holes.is_empty() {
            self.find(Code::ComputedCode, operator);
        }
        Ok(())
    }
}

/// Whether the target of `>&` is certain to be a descriptor, or `-`.
fn names_descriptor(target: &Word) -> bool {
    target.literal().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(text);
        !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn code(redirection: &Redirection) -> Option<Code> {
    match redirection.kind {
        RedirectionKind::Append | RedirectionKind::ReadWrite | RedirectionKind::Write => {
            let substitution = matches!(
                redirection.target.holes.as_slice(),
                [hole] if hole.kind == HoleKind::ProcessSubstitution && redirection.target.text.is_empty()
            );
            let harmless = substitution
                || redirection
                    .target
                    .literal()
                    .is_some_and(device::is_harmless);
            (!harmless).then_some(Code::RedirectOut)
        }
        RedirectionKind::HereString | RedirectionKind::Heredoc => Some(Code::Heredoc),
        RedirectionKind::Read => Some(Code::RedirectIn),
        RedirectionKind::Duplicate | RedirectionKind::DuplicateInput => None,
    }
}
