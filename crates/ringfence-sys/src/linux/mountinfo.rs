//! `/proc/self/mountinfo`, line by line, in place.
//!
//! Pure and allocation-free, so that a child can check its own mounts; the text comes from a
//! buffer of the caller ([`ProcDir::read_file`](super::procfs::ProcDir::read_file)).

use super::mounts::Attributes;

/// One mount, as borrowed from a line. Paths keep the kernel's octal escapes: see
/// [`unescaped`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mount<'a> {
    /// Its number, unique while it exists.
    pub id: u32,
    /// The number of the mount it hangs on.
    pub parent: u32,
    /// Which directory of its filesystem it shows.
    pub root: &'a [u8],
    /// Where it is, seen from the reader's root.
    pub point: &'a [u8],
    /// What it forbids.
    pub attributes: Attributes,
    /// Whether it exchanges events with other mounts.
    pub shared: bool,
    /// Whether it receives events from a master.
    pub slave: bool,
    /// The type of filesystem.
    pub kind: &'a [u8],
    /// What was mounted, by the filesystem's own account.
    pub source: &'a [u8],
    /// Options of the filesystem, as opposed to the mount.
    pub super_options: &'a [u8],
}

/// The mounts of a whole file, each `None` for a line that is not as the kernel writes it:
/// a caller that verifies must take that for a failure.
pub fn mounts(text: &[u8]) -> impl Iterator<Item = Option<Mount<'_>>> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(parse)
}

/// One line, or `None` if it is not as the kernel writes it.
pub fn parse(line: &[u8]) -> Option<Mount<'_>> {
    let mut words = line.split(|byte| *byte == b' ');
    let id = number(words.next()?)?;
    let parent = number(words.next()?)?;
    let _device = words.next()?;
    let root = words.next()?;
    let point = words.next()?;
    let attributes = attributes(words.next()?);
    let (mut shared, mut slave) = (false, false);
    loop {
        match words.next()? {
            b"-" => break,
            tag => {
                shared |= tag.starts_with(b"shared:");
                slave |= tag.starts_with(b"master:");
            }
        }
    }
    Some(Mount {
        id,
        parent,
        root,
        point,
        attributes,
        shared,
        slave,
        kind: words.next()?,
        source: words.next()?,
        super_options: words.next()?,
    })
}

fn attributes(options: &[u8]) -> Attributes {
    options
        .split(|byte| *byte == b',')
        .fold(Attributes::empty(), |all, option| {
            all | match option {
                b"ro" => Attributes::RDONLY,
                b"nosuid" => Attributes::NOSUID,
                b"nodev" => Attributes::NODEV,
                b"noexec" => Attributes::NOEXEC,
                b"nosymfollow" => Attributes::NOSYMFOLLOW,
                _ => Attributes::empty(),
            }
        })
}

fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The bytes of a path with the kernel's `\040` escapes resolved.
pub fn unescaped(text: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (first, mut after) = rest.split_first()?;
        let mut byte = *first;
        if byte == b'\\'
            && let [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] = after
        {
            byte = (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0');
            after = tail;
        }
        rest = after;
        Some(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_with_tags_is_read_whole() {
        let line = b"36 35 98:0 /mnt1 /mnt\\0402 ro,noatime,nosuid shared:1 master:7 - ext3 /dev/root rw,errors=continue";

        let mount = parse(line).unwrap();

        assert_eq!(
            mount,
            Mount {
                id: 36,
                parent: 35,
                root: b"/mnt1",
                point: b"/mnt\\0402",
                attributes: Attributes::RDONLY | Attributes::NOSUID,
                shared: true,
                slave: true,
                kind: b"ext3",
                source: b"/dev/root",
                super_options: b"rw,errors=continue",
            }
        );
        assert_eq!(unescaped(mount.point).collect::<Vec<_>>(), b"/mnt 2");
    }

    #[test]
    fn broken_lines_are_reported_and_not_skipped() {
        for line in [
            &b"x 35 98:0 / / rw - ext3 a rw"[..],
            b"36 35 98:0 / / rw ext3 a rw",
            b"36 35 98:0 / / rw - ext3 a",
            b"36",
            b"",
        ] {
            assert_eq!(parse(line), None);
        }
        let text = b"36 35 98:0 / / rw - ext3 a rw\nnonsense\n";
        let found = mounts(text)
            .map(|mount| mount.is_some())
            .collect::<Vec<_>>();
        assert_eq!(found, [true, false]);
    }

    #[test]
    fn escapes_that_are_not_octal_stay() {
        for (text, expected) in [
            (&b"a\\134b"[..], &b"a\\b"[..]),
            (b"a\\9", b"a\\9"),
            (b"a\\", b"a\\"),
            (b"\\012", b"\n"),
            (b"\\777", b"\\777"),
        ] {
            assert_eq!(unescaped(text).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn this_machine_is_understood() {
        let text = std::fs::read("/proc/self/mountinfo").unwrap();
        assert!(mounts(&text).count() > 0);
        assert!(mounts(&text).all(|mount| mount.is_some()));
    }
}
