//! Indexes that git wrote, and some that it never would.

use super::*;
use std::path::Path;
use std::process::Command;

/// A repository with a few files, and its index in this version.
fn repository(format: &str, version: &str) -> (tempfile::TempDir, Vec<u8>) {
    let guard = tempfile::tempdir().unwrap();
    let script = format!(
        "git init -q --object-format={format} . && mkdir -p a/b .vscode && echo x > a/b/c
         echo y > a/b/d && echo z > .vscode/tasks.json && ln -s a link && git add . &&
         git update-index --index-version {version} && git add -N . && touch new && git add -N new"
    );
    git(guard.path(), &script);
    let bytes = std::fs::read(guard.path().join(".git/index")).unwrap();
    (guard, bytes)
}

fn git(directory: &Path, script: &str) {
    let status = Command::new("sh")
        .args(["-ec", script])
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status()
        .unwrap();
    assert!(status.success(), "{script}");
}

fn paths(bytes: &[u8], name_length: usize) -> Result<(Vec<String>, Rest), Unread> {
    let mut paths = Vec::new();
    let rest = read(bytes, name_length, |entry| {
        assert_eq!(entry.object.len(), name_length);
        paths.push(String::from_utf8_lossy(entry.path).into_owned());
    })?;
    Ok((paths, rest))
}

/// An index with one entry, as somebody writes it who knows the format.
fn with_entry(path: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
    bytes.extend([0; 24]);
    bytes.extend(0o100_755_u32.to_be_bytes());
    bytes.extend([0; 12]);
    bytes.extend([7; 20]);
    bytes.extend(u16::try_from(length).unwrap().to_be_bytes());
    bytes.extend(path);
    let size = bytes.len() - HEADER;
    bytes.resize(HEADER + ((size + 8) & !7), 0);
    bytes
}

fn finished(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend([0; 20]);
    bytes
}

fn extension(name: &[u8], data: &[u8]) -> Vec<u8> {
    let size = u32::try_from(data.len()).unwrap();
    [name, &size.to_be_bytes(), data].concat()
}

#[test]
fn what_git_writes_is_read_in_every_version() {
    for (format, length) in [("sha1", 20), ("sha256", 32)] {
        for version in ["2", "3", "4"] {
            let (_guard, bytes) = repository(format, version);
            let (read, rest) = paths(&bytes, length).unwrap();
            let expected = [".vscode/tasks.json", "a/b/c", "a/b/d", "link", "new"];
            assert_eq!(read, expected, "{format} {version}");
            assert_eq!(rest, Rest::default());
        }
    }
}

#[test]
fn a_shared_index_is_named() {
    for version in ["2", "4"] {
        let (guard, _) = repository("sha1", version);
        let change = "git update-index --split-index && echo new > a/b/c && git add a/b/c &&
            touch more && git add more";
        git(guard.path(), change);
        let directory = guard.path().join(".git");
        let bytes = std::fs::read(directory.join("index")).unwrap();
        let (read, rest) = paths(&bytes, 20).unwrap();
        // Entries of files that changed a moment ago stand here once more.
        let (last, others) = read.split_last().unwrap();
        assert_eq!(last, "more", "{version}");
        assert!(others.iter().all(String::is_empty));
        assert!(rest.replaces);
        let name: Vec<String> = rest
            .shared
            .unwrap()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let shared = directory.join(format!("sharedindex.{}", name.concat()));
        let (read, _) = paths(&std::fs::read(shared).unwrap(), 20).unwrap();
        assert_eq!(read.len(), 5);
    }
}

#[test]
fn places_for_threads_must_be_those_of_the_entries() {
    for version in ["2", "4"] {
        let (guard, _) = repository("sha1", version);
        let many = "for i in $(seq 20); do : > a/$i; done; git config index.threads 4; git add a";
        git(guard.path(), many);
        let bytes = std::fs::read(guard.path().join(".git/index")).unwrap();
        assert!(bytes.windows(4).any(|part| part == b"IEOT"), "{version}");
        assert_eq!(paths(&bytes, 20).unwrap().0.len(), 25, "{version}");
    }
    let entries = with_entry(b"a", 1);
    let place = u32::try_from(entries.len()).unwrap().to_be_bytes();
    let end = |place: [u8; 4]| extension(b"EOIE", &[&place[..], &[0; 20]].concat());
    let table = |start: u32, count: u32| {
        let numbers = [1, start, count].map(u32::to_be_bytes);
        extension(b"IEOT", &numbers.concat())
    };
    let read = |extensions: &[Vec<u8>]| {
        paths(
            &finished([entries.clone(), extensions.concat()].concat()),
            20,
        )
    };
    read(&[table(12, 1), end(place)]).unwrap();
    read(&[extension(b"TREE", b"anything"), end(place)]).unwrap();
    for wrong in [
        vec![table(12, 1), end([0, 0, 0, 12])],
        vec![table(16, 1), end(place)],
        vec![table(12, 2), end(place)],
        vec![table(12, 0), end(place)],
        vec![extension(b"IEOT", &[0; 4])],
        vec![extension(b"link", &[0; 19])],
        vec![extension(b"link", &[1; 20]), extension(b"link", &[1; 20])],
        // It hides what follows from whoever goes by its own size.
        vec![b"TREE\xff\xff\xff\xff".to_vec()],
        vec![vec![0; 3]],
    ] {
        assert_eq!(read(&wrong), Err(Unread::Damaged), "{wrong:?}");
    }
}

#[test]
fn nothing_is_read_in_two_ways() {
    let (read, _) = paths(&finished(with_entry(b".git/hooks/x", 12)), 20).unwrap();
    assert_eq!(read, [".git/hooks/x"]);
    let long = vec![b'a'; 5000];
    let (read, _) = paths(&finished(with_entry(&long, LENGTH)), 20).unwrap();
    assert_eq!(read[0].len(), 5000);
    // A length that says something else than the zero at the end; an entry without a path.
    for (path, length) in [(&b"ab\0cd"[..], 5), (b"ab", 1), (b"ab", LENGTH), (b"", 0)] {
        let bytes = finished(with_entry(path, length));
        assert_eq!(paths(&bytes, 20), Err(Unread::Damaged), "{path:?} {length}");
    }
    for bytes in [
        &b""[..],
        b"DIRC",
        b"DIRC\0\0\0\x02\0\0\0\0",
        b"DIRC\0\0\0\x05",
        &[0; 100],
    ] {
        assert_eq!(paths(bytes, 20), Err(Unread::Foreign), "{bytes:?}");
    }
}

#[test]
fn no_bytes_stop_the_reader() {
    for version in ["2", "3", "4"] {
        let (_guard, bytes) = repository("sha1", version);
        for length in 0..bytes.len() {
            assert!(paths(&bytes[..length], 20).is_err(), "{length}");
        }
        for at in 0..bytes.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = byte;
                let _ = paths(&changed, 20);
                let _ = paths(&changed, 32);
            }
        }
    }
}

#[test]
fn paths_are_those_that_git_makes() {
    for good in [
        "a",
        "a/b",
        ".gitignore",
        ".github/x",
        "a/.gitx",
        "git",
        "...",
        "a~1",
        "x.git",
    ] {
        assert!(is_of_git(good.as_bytes(), 0o100_644), "{good}");
    }
    for bad in [
        "",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "./a",
        "a/../b",
        "a/..",
        "../a",
        ".git",
        ".git/hooks/x",
        "a/.git/config",
        ".GIT/x",
        ".Git",
        "GIT~1/x",
        "git~1",
        ".git./x",
        ".git /x",
        ".git . .",
        ".git::$INDEX_ALLOCATION/x",
        ".git\\hooks",
        "a\\.git\\x",
        ".g\u{200c}it/x",
        "\u{feff}.GIT/x",
    ] {
        assert!(!is_of_git(bad.as_bytes(), 0o100_644), "{bad}");
    }
    assert!(is_of_git(b"a/", DIRECTORY) && !is_of_git(b"a//", DIRECTORY));
    assert!(!is_of_git(b"\xff/.git", 0o100_644) && is_of_git(b"\xff", 0o100_644));
}
