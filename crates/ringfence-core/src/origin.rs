//! Where a value came from.
//!
//! Every value that reaches a policy keeps its origin, so that any verdict can name the line
//! that decided it. Nothing here decides anything: [`Layer`] only orders origins by strength.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::request::Scope;
use crate::settings::Preset;

/// Who wrote a value, weakest first.
///
/// A rule of a stronger layer replaces one of a weaker layer for the same path.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layer {
    /// ringfence itself: presets and built-in lists.
    BuiltIn,
    /// The user's settings file.
    User,
    /// The project's settings file; it may only narrow.
    Project,
    /// What somebody who was asked has granted.
    Grant,
    /// `RINGFENCE_RO` and `RINGFENCE_RW`.
    Environment,
    /// A command-line flag, or a call to a builder of the library.
    Flag,
}

/// A list or default that ships with ringfence.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BuiltIn {
    /// Directories of the project that could not be looked into.
    Closed,
    /// Shell start-up files and `~/.config`, readable in a terminal.
    Dotfiles,
    /// The drives of Windows, seen from WSL.
    Drives,
    /// The variables that pass by default.
    Environment,
    /// Git metadata of the project.
    Git,
    /// The homes of other users.
    Homes,
    /// The limits of a kind.
    Limits,
    /// What a preset says.
    Preset(Preset),
    /// The supervisor's own program.
    Program,
    /// The project itself.
    Project,
    /// Files in the project that run later, outside.
    Protected,
    /// Directories that hold the sockets of the host.
    Runtime,
    /// Keys, tokens and histories.
    Secrets,
    /// What every session has its own of: devices and processes.
    Session,
    /// The directories every program needs.
    SystemPaths,
    /// Where compilers and package managers keep their programs and caches.
    Toolchains,
    /// Temporary directories.
    Tmp,
}

/// Where a value was written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// It ships with ringfence.
    BuiltIn(BuiltIn),
    /// An environment variable of ringfence's own.
    Environment {
        /// The variable's name.
        name: &'static str,
    },
    /// A settings file.
    File {
        /// [`Layer::User`] or [`Layer::Project`].
        layer: Layer,
        /// The file, as it was opened.
        path: Arc<Path>,
        /// Counted from one.
        line: u32,
        /// Counted from one, in characters.
        column: u32,
    },
    /// A command-line flag.
    Flag {
        /// With its dashes: `--read`.
        name: &'static str,
    },
    /// Somebody was asked and said yes.
    Grant {
        /// For how long.
        scope: Scope,
    },
    /// A call to the library.
    Library,
}

impl Origin {
    /// How strong a value from here is.
    pub fn layer(&self) -> Layer {
        match self {
            Self::BuiltIn(_) => Layer::BuiltIn,
            Self::Environment { .. } => Layer::Environment,
            Self::File { layer, .. } => *layer,
            Self::Flag { .. } | Self::Library => Layer::Flag,
            Self::Grant { .. } => Layer::Grant,
        }
    }
}

impl fmt::Display for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str(
                "built-in rule for directories that cannot be listed, until `chmod u+rx` lets them be",
            ),
            Self::Dotfiles => f.write_str("built-in list of shell start-up files"),
            Self::Environment => f.write_str("built-in list of variables"),
            Self::Git => f.write_str("built-in git metadata rule"),
            Self::Drives => f.write_str("built-in rule for drives of Windows"),
            Self::Homes => f.write_str("built-in list of homes"),
            Self::Limits => f.write_str("built-in limits"),
            Self::Preset(preset) => write!(f, "preset {preset}"),
            Self::Program => f.write_str("built-in rule for ringfence's own program"),
            Self::Project => f.write_str("built-in project rule"),
            Self::Protected => f.write_str("built-in list of files that run later"),
            Self::Runtime => f.write_str("built-in list of socket directories"),
            Self::Secrets => f.write_str("built-in secrets list"),
            Self::Session => f.write_str("built-in session rule"),
            Self::SystemPaths => f.write_str("built-in system paths"),
            Self::Toolchains => f.write_str("built-in toolchain paths"),
            Self::Tmp => f.write_str("built-in temporary directories"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(list) => list.fmt(f),
            Self::Environment { name } => write!(f, "environment variable {name}"),
            Self::File {
                path, line, column, ..
            } => write!(f, "{}:{line}:{column}", crate::text::printable_path(path)),
            Self::Flag { name } => write!(f, "flag {name}"),
            Self::Grant { scope } => write!(f, "granted {scope}"),
            Self::Library => f.write_str("library call"),
        }
    }
}

/// As programs read it: `{"layer": "user", "text": "…", "path": "…", "line": 3, "column": 5}`.
impl Serialize for Origin {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("layer", &self.layer())?;
        map.serialize_entry("text", &self.to_string())?;
        if let Self::File {
            path, line, column, ..
        } = self
        {
            map.serialize_entry("path", &path.to_string_lossy())?;
            map.serialize_entry("line", line)?;
            map.serialize_entry("column", column)?;
        }
        map.end()
    }
}

/// A value and where it was written.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub origin: Origin,
}

impl<T> Located<T> {
    /// Pairs a value with its origin.
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }

    /// A value that ships with ringfence.
    pub fn built_in(value: T, list: BuiltIn) -> Self {
        Self::new(value, Origin::BuiltIn(list))
    }
}

/// How far somebody has read: an offset and its column. The default has read nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    offset: usize,
    column: usize,
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A settings file being read: its name, for origins, and its text, for lines and columns.
#[derive(Clone, Debug)]
pub struct Source {
    layer: Layer,
    path: Arc<Path>,
    text: Arc<str>,
    /// Where each line starts, so that a position is a search and not a count: a file holds as
    /// many positions as values, and its writer may be hostile.
    lines: Arc<[usize]>,
}

impl Source {
    /// Names a text.
    pub fn new(layer: Layer, path: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let starts = text.match_indices('\n').map(|(newline, _)| newline + 1);
        Self {
            layer,
            path: Arc::from(path.into()),
            lines: std::iter::once(0).chain(starts).collect(),
            text,
        }
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose file it is.
    pub fn layer(&self) -> Layer {
        self.layer
    }

    /// Line and column, both from one, of a byte offset; past the end means the end.
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let (line, cursor) = self.find(Cursor::default(), offset);
        (line, number(cursor.column))
    }

    /// Line of an offset, and the cursor there; columns are counted on from `before` if that is
    /// on the same line.
    fn find(&self, before: Cursor, offset: usize) -> (u32, Cursor) {
        let mut end = offset.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let line = self.lines.partition_point(|start| *start <= end);
        let start = self.lines[line - 1];
        let (from, columns) = if (start..=end).contains(&before.offset) && before.column > 0 {
            (before.offset, before.column)
        } else {
            (start, 1)
        };
        let cursor = Cursor {
            offset: end,
            column: columns + self.text[from..end].chars().count(),
        };
        (number(line), cursor)
    }

    /// The byte offset of a line and column, both from one; the inverse of [`Self::position`].
    pub fn offset(&self, line: u32, column: u32) -> Option<usize> {
        let text = self.line(line)?;
        let start = self.line_start(line)?;
        let before = usize::try_from(column).ok()?.checked_sub(1)?;
        let mut characters = text.char_indices().map(|(offset, _)| offset);
        let offset = characters.nth(before).unwrap_or(text.len());
        Some(start + offset)
    }

    /// Where a line starts, in bytes; lines count from one.
    pub fn line_start(&self, line: u32) -> Option<usize> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        self.lines.get(index).copied()
    }

    /// The text of a line, without its end; lines count from one.
    pub fn line(&self, line: u32) -> Option<&str> {
        let start = self.line_start(line)?;
        let rest = &self.text[start..];
        let text = rest.split_once('\n').map_or(rest, |(text, _)| text);
        Some(text.strip_suffix('\r').unwrap_or(text))
    }

    /// The origin of what stands at a byte offset.
    pub fn origin(&self, offset: usize) -> Origin {
        self.origin_after(Cursor::default(), offset).0
    }

    /// The same for somebody who reads on: a long line is then counted once, not once a value.
    pub(crate) fn origin_after(&self, before: Cursor, offset: usize) -> (Origin, Cursor) {
        let (line, cursor) = self.find(before, offset);
        let origin = Origin::File {
            layer: self.layer,
            path: Arc::clone(&self.path),
            line,
            column: number(cursor.column),
        };
        (origin, cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let source = Source::new(Layer::User, "s.json", "a\nöb\n");

        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(2), (2, 1));
        assert_eq!(source.position(3), (2, 1), "inside ö counts as ö");
        assert_eq!(source.position(4), (2, 2));
        assert_eq!(source.position(99), (3, 1));
    }

    #[test]
    fn reading_on_counts_as_reading_anew() {
        let source = Source::new(Layer::User, "s.json", "ab\ncöd e\n\nf");
        let mut cursor = Cursor::default();
        for offset in [0, 1, 4, 5, 8, 9, 7, 10, 12, 11, 2, 99] {
            let (origin, next) = source.origin_after(cursor, offset);
            assert_eq!(origin, source.origin(offset), "{offset}");
            cursor = next;
        }
    }

    #[test]
    fn an_offset_is_found_again_from_its_position() {
        let source = Source::new(Layer::User, "s.json", "a\r\nöb\n\n  x");

        for offset in [0, 1, 3, 5, 6, 7, 8, 10, 11] {
            let (line, column) = source.position(offset);
            assert_eq!(source.offset(line, column), Some(offset), "{offset}");
        }
        assert_eq!(source.line(1), Some("a"));
        assert_eq!(source.line(4), Some("  x"));
        assert_eq!(source.line(5), None);
        assert_eq!(source.offset(0, 1), None);
        assert_eq!(source.offset(2, 99), Some(6), "past the end means the end");
    }
}
