//! Git's index: which files a repository has, and what is staged for each.
//!
//! Git checks a path when it puts it into the index, and not when it reads the index from the disk.
//! So an entry that somebody wrote there by hand is checked out wherever its path leads, hooks
//! included. Here all of it is read, as data with bounds, in versions 2 to 4; whatever git might
//! read in another way than we do is an error. Its checksum proves nothing: git does not look.

/// What stands before every index.
const SIGNATURE: &[u8] = b"DIRC";
/// Signature, version, number of entries.
const HEADER: usize = 12;
/// Times, numbers, owner and size of a file, before the name of its content.
const STATUS: usize = 40;
/// Where the mode is in these.
const MODE: usize = 24;
/// The part of an entry's flags that is the length of its path, or that it is at least as long.
const LENGTH: usize = 0xfff;
/// The flag of an entry that has two bytes more of them, and those of the latter that git knows.
const EXTENDED: usize = 0x4000;
const EXTENDED_KNOWN: usize = 0x6000;

/// A directory, where an index leaves out what is in it.
const DIRECTORY: u32 = 0o040_000;
/// A symbolic link.
pub(crate) const LINK: u32 = 0o120_000;
/// A commit of another repository.
pub(crate) const COMMIT: u32 = 0o160_000;

/// What is staged under one path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Entry<'a> {
    /// Its path in the working tree; empty if it stands for one of the shared index.
    pub path: &'a [u8],
    /// What kind of thing it is.
    pub mode: u32,
    /// The name of its content.
    pub object: &'a [u8],
}

impl Entry<'_> {
    /// Whether something can be reached through it that has no entry of its own.
    pub(crate) fn leads_on(&self) -> bool {
        matches!(self.mode & 0o170_000, LINK | COMMIT)
    }
}

/// What an index says besides its entries.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Rest {
    /// The name of the shared index that holds the other entries.
    pub shared: Option<Vec<u8>>,
    /// Whether entries of the shared one have another content here.
    pub replaces: bool,
}

/// Why an index was not read to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unread {
    /// Git takes it for one, and we cannot say what it finds in it.
    Damaged,
    /// Git does not take it for one, and stops.
    Foreign,
}

/// Reads an index; names of contents have so many bytes.
///
/// # Errors
///
/// [`Unread`]; `each` may have been told of entries by then.
pub fn read(
    bytes: &[u8],
    name_length: usize,
    mut each: impl FnMut(Entry<'_>),
) -> Result<Rest, Unread> {
    let version = number(bytes, 4).filter(|version| (2..=4).contains(version));
    let Some(version) = version.filter(|_| bytes.starts_with(SIGNATURE)) else {
        return Err(Unread::Foreign);
    };
    if bytes.len() < HEADER + name_length {
        return Err(Unread::Foreign);
    }
    let count = number(bytes, 8).ok_or(Unread::Damaged)?;
    let mut reader = Reader {
        // The last is the checksum.
        bytes: &bytes[..bytes.len() - name_length],
        at: HEADER,
        name_length,
        compressed: version == 4,
        path: Vec::new(),
        starts: Vec::new(),
    };
    let mut rest = Rest::default();
    for _ in 0..count {
        let entry = reader.entry().ok_or(Unread::Damaged)?;
        rest.replaces |= entry.path.is_empty();
        each(entry);
    }
    reader.extensions(&mut rest).ok_or(Unread::Damaged)?;
    // Nothing else has entries without a path.
    if rest.replaces && rest.shared.is_none() {
        return Err(Unread::Damaged);
    }
    Ok(rest)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    name_length: usize,
    /// Whether each path says only in what it differs from the one before it.
    compressed: bool,
    path: Vec<u8>,
    /// Where each entry starts, and whether its path can be read without the one before it.
    starts: Vec<(usize, bool)>,
}

impl Reader<'_> {
    fn entry(&mut self) -> Option<Entry<'_>> {
        let (bytes, start) = (self.bytes, self.at);
        let object = start.checked_add(STATUS)?;
        let flags_at = object.checked_add(self.name_length)?;
        let mode = word(bytes, start.checked_add(MODE)?)?;
        let flags = short(bytes, flags_at)?;
        let mut at = flags_at + 2;
        if flags & EXTENDED != 0 {
            if short(bytes, at)? & !EXTENDED_KNOWN != 0 {
                return None;
            }
            at += 2;
        }
        let mut kept = 0;
        if self.compressed {
            let dropped;
            (dropped, at) = varint(bytes, at)?;
            kept = self.path.len().checked_sub(dropped)?;
        }
        let tail = bytes.get(at..)?;
        let tail = tail.get(..tail.iter().position(|byte| *byte == 0)?)?;
        self.path.truncate(kept);
        self.path.extend_from_slice(tail);
        // Git believes the length, and stops where it ends: both must say the same.
        let length = flags & LENGTH;
        if length != self.path.len().min(LENGTH) {
            return None;
        }
        at += tail.len();
        self.starts.push((start, kept == 0));
        self.at = if self.compressed {
            at + 1
        } else {
            // Filled up with one to eight zeros.
            start + ((at - start + 8) & !7)
        };
        bytes.get(at..self.at)?;
        Some(Entry {
            path: &self.path,
            mode,
            object: bytes.get(object..flags_at)?,
        })
    }

    /// What follows the entries. Git may start here, or in the midst of them, by places that are
    /// written down at the end: those must be the ones at which we were.
    fn extensions(&mut self, rest: &mut Rest) -> Option<()> {
        let entries_end = self.at;
        let last = self.bytes.len().checked_sub(8 + 4 + self.name_length);
        if let Some(last) = last
            && self.bytes.get(last..)?.starts_with(b"EOIE")
            && number(self.bytes, last + 8)? != entries_end
        {
            return None;
        }
        while self.at < self.bytes.len() {
            let name = self.bytes.get(self.at..self.at.checked_add(4)?)?;
            let size = number(self.bytes, self.at + 4)?;
            let start = self.at + 8;
            let end = start.checked_add(size)?;
            let data = self.bytes.get(start..end)?;
            match name {
                b"IEOT" => self.table(data)?,
                b"link" => {
                    let shared = data.get(..self.name_length)?;
                    if rest.shared.is_some() {
                        return None;
                    }
                    // A name of zeros means none.
                    let some = shared.iter().any(|byte| *byte != 0);
                    rest.shared = some.then(|| shared.to_vec());
                }
                _ => {}
            }
            self.at = end;
        }
        Some(())
    }

    /// Where several threads start to read.
    fn table(&self, data: &[u8]) -> Option<()> {
        if number(data, 0)? != 1 {
            return None;
        }
        let mut entry = 0_usize;
        let blocks = data.get(4..)?.chunks(8);
        for block in blocks {
            let (start, alone) = self.starts.get(entry)?;
            if number(block, 0)? != *start || !alone {
                return None;
            }
            entry = entry.checked_add(number(block, 4)?)?;
        }
        (entry == self.starts.len()).then_some(())
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(word(bytes, at)?).ok()
}

fn short(bytes: &[u8], at: usize) -> Option<usize> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(usize::from(u16::from_be_bytes(two.try_into().ok()?)))
}

/// A number of git's in as many bytes as it needs, and where it ends.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        value = value
            .checked_mul(128)?
            .checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some((value, at));
        }
        value = value.checked_add(1)?;
    }
}

/// Whether git itself would put a path into an index: it leads to something in the working tree,
/// and to none of git's own files, also where capital letters are small ones.
pub fn is_of_git(path: &[u8], mode: u32) -> bool {
    // A directory that stands for what is in it.
    let path = match path.strip_suffix(b"/") {
        Some(directory) if mode == DIRECTORY => directory,
        _ => path,
    };
    let mut parts = path.split(|byte| *byte == b'/');
    parts.all(|part| {
        !matches!(part, b"" | b"." | b"..")
            && !is_git_on_mac(part)
            // A backslash separates as well, on Windows.
            && part.split(|byte| *byte == b'\\').all(|part| !is_git_on_windows(part))
    })
}

/// `.git` or its short name, with what Windows does not see behind it.
fn is_git_on_windows(part: &[u8]) -> bool {
    let name = part.split(|byte| *byte == b':').next().unwrap_or(part);
    let unseen = |byte: &&u8| matches!(**byte, b' ' | b'.');
    let length = name.len() - name.iter().rev().take_while(unseen).count();
    let name = name.get(..length).unwrap_or(name);
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1")
}

/// `.git` with characters in it that macOS does not see.
fn is_git_on_mac(part: &[u8]) -> bool {
    let text = String::from_utf8_lossy(part);
    let seen = text.chars().filter(|character| {
        !matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{206a}'..='\u{206f}' | '\u{feff}')
    });
    seen.map(|character| character.to_ascii_lowercase())
        .eq(".git".chars())
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
