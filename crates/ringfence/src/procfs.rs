//! Reading what the kernel writes anew for every reader.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, read};

/// Reads a file of `/proc` or `/sys` whole.
///
/// Such a file says that it is empty. Whoever believes that reads it in a dozen small pieces; most
/// fit into one page.
pub(crate) fn whole(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    const PAGE: usize = 4096;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = open(path.as_ref(), flags, Mode::empty())?;
    let mut text = vec![0; PAGE];
    let mut length = 0;
    loop {
        if length == text.len() {
            text.resize(2 * length, 0);
        }
        match read(&file, &mut text[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    text.truncate(length);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_whole_is_what_is_read_in_pieces() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for length in [0, 1, 4095, 4096, 4097, 20_000] {
            let text: Vec<u8> = (0..length).map(|at: u32| at.to_le_bytes()[0]).collect();
            std::fs::write(file.path(), &text).unwrap();
            assert_eq!(whole(file.path()).unwrap(), text, "{length}");
        }
        let stat = whole("/proc/self/stat").unwrap();
        assert!(stat.starts_with(std::process::id().to_string().as_bytes()));
        assert!(whole("/proc/self/nothing").is_err());
    }
}
