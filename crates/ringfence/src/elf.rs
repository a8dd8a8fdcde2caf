//! What a program asks its loader for.
//!
//! Reads the few parts of a 64-bit little-endian ELF file that name other files: the loader, the
//! libraries, and where to search for them. Nothing is mapped, run or trusted: every number in the
//! file may be a lie, so each one is checked against a bound before it is used, and a file that
//! makes no sense is simply not a program.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes that can be read at any place.
pub trait Image {
    /// Fills `into` from `offset`; `None` if there is not that much.
    fn read(&self, offset: u64, into: &mut [u8]) -> Option<()>;
}

impl Image for [u8] {
    fn read(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(into.len())?;
        into.copy_from_slice(self.get(start..end)?);
        Some(())
    }
}

impl Image for Vec<u8> {
    fn read(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        self.as_slice().read(offset, into)
    }
}

impl Image for File {
    fn read(&self, offset: u64, into: &mut [u8]) -> Option<()> {
        self.read_exact_at(into, offset).ok()
    }
}

/// The files that a program or library names.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Names {
    /// The processor it is made for, as ELF numbers them.
    pub machine: u16,
    /// Its loader; none for a static program and for most libraries.
    pub loader: Option<Vec<u8>>,
    /// The libraries it needs, in order.
    pub libraries: Vec<Vec<u8>>,
    /// Where to search, for itself and for everything it loads, unless `own_search` is there.
    pub inherited_search: Option<Vec<u8>>,
    /// Where to search for the libraries it needs itself.
    pub own_search: Option<Vec<u8>>,
}

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const ENTRY: usize = 16;

/// Real programs have about a dozen segments and some fifty dynamic entries.
const MOST_SEGMENTS: u16 = 512;
const MOST_ENTRIES: u64 = 4096;
const MOST_LIBRARIES: usize = 1024;
/// The longest path a system call takes; search lists may be longer, and are then no use.
const LONGEST_NAME: usize = 4096;

const KIND_PROGRAM: u16 = 2;
const KIND_SHARED: u16 = 3;

const SEGMENT_LOAD: u32 = 1;
const SEGMENT_DYNAMIC: u32 = 2;
const SEGMENT_LOADER: u32 = 3;

const ENTRY_END: u64 = 0;
const ENTRY_LIBRARY: u64 = 1;
const ENTRY_STRINGS: u64 = 5;
const ENTRY_STRINGS_SIZE: u64 = 10;
const ENTRY_INHERITED_SEARCH: u64 = 15;
const ENTRY_OWN_SEARCH: u64 = 29;

/// Reads the names in a file; `None` if it is no program or library that this reader knows.
pub fn names(image: &dyn Image) -> Option<Names> {
    let mut header = [0; HEADER];
    image.read(0, &mut header)?;
    // The mark, 64 bits, little end first, first version.
    if !header.starts_with(&[0x7f, b'E', b'L', b'F', 2, 1, 1]) {
        return None;
    }
    if !matches!(u16_at(&header, 16)?, KIND_PROGRAM | KIND_SHARED) {
        return None;
    }
    let count = u16_at(&header, 56)?;
    if usize::from(u16_at(&header, 54)?) != SEGMENT || count > MOST_SEGMENTS {
        return None;
    }
    let table = u64_at(&header, 32)?;
    let mut segments = Vec::with_capacity(count.into());
    for index in 0..u64::from(count) {
        let mut bytes = [0; SEGMENT];
        image.read(table.checked_add(index * 56)?, &mut bytes)?;
        segments.push(Segment::read(&bytes)?);
    }
    let mut names = Names {
        machine: u16_at(&header, 18)?,
        ..Names::default()
    };
    let of_kind = |kind| segments.iter().find(move |segment| segment.kind == kind);
    if let Some(segment) = of_kind(SEGMENT_LOADER) {
        names.loader = Some(string(image, segment.offset, segment.size)?);
    }
    if let Some(dynamic) = of_kind(SEGMENT_DYNAMIC) {
        read_dynamic(image, dynamic, &segments, &mut names)?;
    }
    Some(names)
}

/// A part of the file, and where it is in memory.
struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    size: u64,
}

impl Segment {
    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            kind: u32_at(bytes, 0)?,
            offset: u64_at(bytes, 8)?,
            address: u64_at(bytes, 16)?,
            size: u64_at(bytes, 32)?,
        })
    }
}

fn read_dynamic(
    image: &dyn Image,
    dynamic: &Segment,
    segments: &[Segment],
    names: &mut Names,
) -> Option<()> {
    let (mut strings, mut strings_size) = (None, 0);
    let mut libraries = Vec::new();
    let (mut inherited, mut own) = (None, None);
    let entries = (dynamic.size / 16).min(MOST_ENTRIES);
    for index in 0..entries {
        let mut bytes = [0; ENTRY];
        image.read(dynamic.offset.checked_add(index * 16)?, &mut bytes)?;
        let value = u64_at(&bytes, 8)?;
        match u64_at(&bytes, 0)? {
            ENTRY_END => break,
            ENTRY_LIBRARY if libraries.len() < MOST_LIBRARIES => libraries.push(value),
            ENTRY_LIBRARY => return None,
            ENTRY_STRINGS => strings = Some(value),
            ENTRY_STRINGS_SIZE => strings_size = value,
            ENTRY_INHERITED_SEARCH => inherited = Some(value),
            ENTRY_OWN_SEARCH => own = Some(value),
            _ => {}
        }
    }
    // A static program that can be moved has a table without strings to speak of.
    if libraries.is_empty() && inherited.is_none() && own.is_none() {
        return Some(());
    }
    let strings = in_file(segments, strings?)?;
    let text = |offset: u64| {
        let left = strings_size.checked_sub(offset)?;
        string(image, strings.checked_add(offset)?, left)
    };
    for library in libraries {
        names.libraries.push(text(library)?);
    }
    names.inherited_search = match inherited {
        Some(offset) => Some(text(offset)?),
        None => None,
    };
    names.own_search = match own {
        Some(offset) => Some(text(offset)?),
        None => None,
    };
    Some(())
}

/// Where in the file an address of memory comes from.
fn in_file(segments: &[Segment], address: u64) -> Option<u64> {
    segments
        .iter()
        .filter(|segment| segment.kind == SEGMENT_LOAD)
        .find_map(|segment| {
            let below = address.checked_sub(segment.address)?;
            (below < segment.size).then(|| segment.offset.checked_add(below))?
        })
}

/// A text that ends in a zero byte within `most` bytes; never an empty one.
fn string(image: &dyn Image, offset: u64, most: u64) -> Option<Vec<u8>> {
    const STEP: usize = 64;
    let most = usize::try_from(most)
        .unwrap_or(LONGEST_NAME)
        .min(LONGEST_NAME);
    let mut text = Vec::new();
    while text.len() < most {
        let mut step = [0; STEP];
        let length = STEP.min(most - text.len());
        let start = offset.checked_add(u64::try_from(text.len()).ok()?)?;
        let piece = step.get_mut(..length)?;
        if image.read(start, piece).is_none() {
            // Near the end of the file there may be less than a whole step.
            for (index, byte) in piece.iter_mut().enumerate() {
                let at = start.checked_add(u64::try_from(index).ok()?)?;
                let mut one = [0];
                image.read(at, &mut one)?;
                *byte = one[0];
                if one[0] == 0 {
                    break;
                }
            }
        }
        match piece.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(piece.get(..end)?);
                return (!text.is_empty()).then_some(text);
            }
            None => text.extend_from_slice(piece),
        }
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A small shared object with the names that are asked for.
    pub(crate) fn object(
        loader: Option<&str>,
        libraries: &[&str],
        inherited: Option<&str>,
        own: Option<&str>,
    ) -> Vec<u8> {
        let mut strings = vec![0];
        let mut add = |text: &str| {
            let at = strings.len() as u64;
            strings.extend_from_slice(text.as_bytes());
            strings.push(0);
            at
        };
        let loader = loader.map(|loader| (add(loader), loader.len() as u64 + 1));
        let mut entries: Vec<(u64, u64)> = Vec::new();
        for library in libraries {
            entries.push((ENTRY_LIBRARY, add(library)));
        }
        if let Some(inherited) = inherited {
            entries.push((ENTRY_INHERITED_SEARCH, add(inherited)));
        }
        if let Some(own) = own {
            entries.push((ENTRY_OWN_SEARCH, add(own)));
        }
        let strings_at = 64 + 3 * 56;
        let dynamic_at = strings_at + strings.len() as u64;
        // Loaded somewhere else than where it is in the file, as real ones are.
        let base = 0x40_0000;
        entries.push((ENTRY_STRINGS, base + strings_at));
        entries.push((ENTRY_STRINGS_SIZE, strings.len() as u64));
        entries.push((ENTRY_END, 0));
        let size = dynamic_at + entries.len() as u64 * 16;

        let mut out = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
        out.resize(16, 0);
        out.extend_from_slice(&KIND_SHARED.to_le_bytes());
        out.extend_from_slice(&62_u16.to_le_bytes());
        out.resize(32, 0);
        out.extend_from_slice(&64_u64.to_le_bytes());
        out.resize(54, 0);
        out.extend_from_slice(&56_u16.to_le_bytes());
        out.extend_from_slice(&3_u16.to_le_bytes());
        out.resize(64, 0);
        let (loader_at, loader_size) = loader.unwrap_or((0, 0));
        let loader_kind = if loader.is_some() { SEGMENT_LOADER } else { 0 };
        for (kind, offset, length) in [
            (SEGMENT_LOAD, 0, size),
            (SEGMENT_DYNAMIC, dynamic_at, entries.len() as u64 * 16),
            (loader_kind, strings_at + loader_at, loader_size),
        ] {
            out.extend_from_slice(&kind.to_le_bytes());
            out.extend_from_slice(&0_u32.to_le_bytes());
            for word in [offset, base + offset, base + offset, length, length, 8] {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        out.extend_from_slice(&strings);
        for (tag, value) in entries {
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&value.to_le_bytes());
        }
        out
    }

    #[test]
    fn every_name_is_found() {
        let image = object(
            Some("/lib/ld.so"),
            &["libc.so.6", "libm.so.6"],
            Some("/a:/b"),
            Some("$ORIGIN/../lib"),
        );

        assert_eq!(
            names(&image),
            Some(Names {
                machine: 62,
                loader: Some(b"/lib/ld.so".to_vec()),
                libraries: vec![b"libc.so.6".to_vec(), b"libm.so.6".to_vec()],
                inherited_search: Some(b"/a:/b".to_vec()),
                own_search: Some(b"$ORIGIN/../lib".to_vec()),
            })
        );
    }

    #[test]
    fn a_static_program_names_nothing() {
        let image = object(None, &[], None, None);
        let names = names(&image).unwrap();
        assert_eq!((names.loader, names.libraries), (None, Vec::new()));
    }

    #[test]
    fn this_test_itself_names_a_c_library_or_nothing() {
        let own = File::open("/proc/self/exe").unwrap();
        let names = names(&own).unwrap();
        let libc = |library: &Vec<u8>| library.starts_with(b"libc.");
        assert_eq!(
            names.loader.is_some(),
            names.libraries.iter().any(libc),
            "{names:?}"
        );
    }

    #[test]
    fn a_file_cut_short_anywhere_is_no_program() {
        let image = object(Some("/lib/ld.so"), &["libc.so.6"], None, None);
        for length in 0..image.len() - 16 {
            assert_eq!(names(&image[..length].to_vec()), None, "{length}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = names(&bytes);
        }

        #[test]
        fn any_damage_gets_an_answer(
            at in proptest::collection::vec((0_usize..400, any::<u8>()), 1..8),
        ) {
            let mut image = object(Some("/lib/ld.so"), &["libc.so.6"], Some("/a"), None);
            for (index, byte) in at {
                if let Some(place) = image.get_mut(index) {
                    *place = byte;
                }
            }
            if let Some(names) = names(&image) {
                prop_assert!(names.libraries.len() <= MOST_LIBRARIES);
            }
        }
    }
}
