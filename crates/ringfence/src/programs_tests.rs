use std::collections::HashMap;

use super::*;
use crate::elf::tests::object;

/// Files in memory.
#[derive(Default)]
struct Tree(HashMap<PathBuf, Vec<u8>>);

impl Tree {
    fn with(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.insert(PathBuf::from(path), bytes.into());
        self
    }

    fn closure(&self, program: &str) -> Vec<String> {
        let found = closure(Path::new(program), self);
        found
            .into_iter()
            .map(|path| path.to_str().unwrap().to_owned())
            .collect()
    }
}

impl Files for Tree {
    fn open(&self, path: &Path) -> Option<Box<dyn Image>> {
        Some(Box::new(self.0.get(path)?.clone()))
    }
}

fn library(needs: &[&str]) -> Vec<u8> {
    object(None, needs, None, None)
}

fn system() -> Tree {
    Tree::default()
        .with("/lib64/ld.so", library(&[]))
        .with("/lib/x86_64-linux-gnu/libc.so.6", library(&["ld.so"]))
}

#[test]
fn a_program_needs_its_loader_and_libraries_all_the_way_down() {
    let tree = system()
        .with(
            "/usr/bin/tool",
            object(Some("/lib64/ld.so"), &["liba.so", "libc.so.6"], None, None),
        )
        .with("/usr/lib/liba.so", library(&["libb.so", "libc.so.6"]))
        .with("/lib/libb.so", library(&["liba.so"]))
        .with("/usr/lib/unrelated.so", library(&[]));

    assert_eq!(
        tree.closure("/usr/bin/tool"),
        [
            "/lib64/ld.so",
            "/usr/lib/liba.so",
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/libb.so",
        ]
    );
}

#[test]
fn a_static_program_and_what_is_no_program_need_nothing() {
    let tree = Tree::default()
        .with("/static", library(&[]))
        .with("/text", "hello");
    assert!(tree.closure("/static").is_empty());
    assert!(tree.closure("/text").is_empty());
    assert!(tree.closure("/absent").is_empty());
}

#[test]
fn own_search_lists_hold_for_direct_needs_only() {
    let tree = system()
        .with(
            "/opt/app/bin/tool",
            object(None, &["liba.so"], None, Some("$ORIGIN/../lib:relative")),
        )
        .with("/opt/app/lib/liba.so", library(&["libb.so"]))
        .with("/opt/app/lib/libb.so", library(&[]));

    assert_eq!(tree.closure("/opt/app/bin/tool"), ["/opt/app/lib/liba.so"]);
}

#[test]
fn inherited_search_lists_hold_all_the_way_down() {
    let tree = system()
        .with(
            "/opt/app/tool",
            object(None, &["liba.so"], Some("${ORIGIN}/lib"), None),
        )
        .with("/opt/app/lib/liba.so", library(&["libb.so"]))
        .with("/opt/app/lib/libb.so", library(&[]));

    assert_eq!(
        tree.closure("/opt/app/tool"),
        ["/opt/app/lib/liba.so", "/opt/app/lib/libb.so"]
    );
}

#[test]
fn a_program_cannot_ask_for_what_is_no_library() {
    let tree = system()
        .with(
            "/project/evil",
            object(
                Some("/home/me/.ssh/id_rsa"),
                &["/home/me/.ssh/id_rsa", "id_rsa"],
                None,
                Some("/home/me/.ssh"),
            ),
        )
        .with("/home/me/.ssh/id_rsa", "-----BEGIN KEY-----");
    assert!(tree.closure("/project/evil").is_empty());

    let script = system()
        .with("/project/evil", "#!/home/me/.ssh/id_rsa\n")
        .with("/home/me/.ssh/id_rsa", "-----BEGIN KEY-----");
    assert!(script.closure("/project/evil").is_empty());
}

#[test]
fn a_library_for_another_processor_is_passed_over() {
    let mut foreign = library(&[]);
    foreign[18] = 183;
    let tree = system()
        .with("/tool", object(None, &["liba.so"], None, None))
        .with("/lib/x86_64-linux-gnu/liba.so", foreign)
        .with("/usr/lib/liba.so", library(&[]));
    assert_eq!(tree.closure("/tool"), ["/usr/lib/liba.so"]);
}

#[test]
fn a_script_needs_its_interpreter_and_what_that_needs() {
    let tree = system().with("/tool", "#! /bin/sh -e\necho hello\n").with(
        "/bin/sh",
        object(Some("/lib64/ld.so"), &["libc.so.6"], None, None),
    );
    assert_eq!(
        tree.closure("/tool"),
        ["/bin/sh", "/lib64/ld.so", "/lib/x86_64-linux-gnu/libc.so.6"]
    );
}

#[test]
fn a_script_that_leaves_the_search_to_env_needs_both() {
    for line in [
        "#!/usr/bin/env python3\n",
        "#!/usr/bin/env -S A=b python3 -u",
    ] {
        let tree = Tree::default()
            .with("/tool", line)
            .with("/usr/bin/env", library(&[]))
            .with("/usr/bin/python3", library(&[]));
        assert_eq!(tree.closure("/tool"), ["/usr/bin/env", "/usr/bin/python3"]);
    }
}

#[test]
fn scripts_that_name_each_other_come_to_an_end() {
    let tree = Tree::default().with("/a", "#!/b\n").with("/b", "#!/a\n");
    assert_eq!(tree.closure("/a"), ["/b", "/a"]);
}

#[test]
fn a_program_that_asks_for_far_too_much_is_not_followed_for_ever() {
    struct Hall(Vec<u8>, Cell<usize>);
    impl Files for Hall {
        fn open(&self, path: &Path) -> Option<Box<dyn Image>> {
            self.1.set(self.1.get() + 1);
            // Every library is there, but none of its needs is where it could be.
            let there = path.to_str()?.ends_with('0') || path == Path::new("/tool");
            there.then(|| Box::new(self.0.clone()) as Box<dyn Image>)
        }
    }
    let names: Vec<String> = (0..1000).map(|number| format!("lib{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hall = Hall(object(None, &names, None, None), Cell::new(0));

    let found = closure(Path::new("/tool"), &hall);

    assert_eq!(found.len(), 100);
    assert!(hall.1.get() <= MOST_LOOKS + 10, "{}", hall.1.get());
}

/// One entry, in the layout that glibc writes.
fn cache_of(name: &str, path: &str) -> Vec<u8> {
    let mut out = b"glibc-ld.so.cache1.1".to_vec();
    let strings = name.len() + path.len() + 2;
    let start = 48 + 24;
    for word in [1, u32::try_from(strings).unwrap(), 2, 0, 0, 0, 0] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    let after = u32::try_from(start + name.len() + 1).unwrap();
    for word in [0x0303, start.try_into().unwrap(), after, 0, 0, 0_u32] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.extend_from_slice(path.as_bytes());
    out.push(0);
    out
}

#[test]
fn a_library_of_the_cache_brings_the_cache_along() {
    let program = object(None, &["libx.so"], None, None);
    let tree = system()
        .with("/tool", program)
        .with("/opt/x/libx.so", library(&[]))
        .with(CACHE, cache_of("libx.so", "/opt/x/libx.so"));
    assert_eq!(tree.closure("/tool"), [CACHE, "/opt/x/libx.so"]);
}

#[test]
fn an_old_cache_has_the_new_one_behind_it() {
    let mut both = b"ld.so-1.7.0\0".to_vec();
    both.extend_from_slice(&1_u32.to_ne_bytes());
    both.resize(16 + 12, 0);
    both.resize(32, 0);
    both.extend_from_slice(&cache_of("libx.so", "/x"));
    assert_eq!(cache(&both), [(b"libx.so".to_vec(), b"/x".to_vec())]);
}

#[test]
fn a_damaged_cache_is_empty_or_harmless() {
    let good = cache_of("libx.so", "/x");
    for length in 0..good.len() {
        let _ = cache(&good[..length].to_vec());
    }
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] = 0xff;
        let _ = cache(&bad);
    }
}

/// The loader itself is the judge: what it says it would load is what is found.
#[test]
#[cfg(target_os = "linux")]
fn the_loader_agrees() {
    let mut compared = 0;
    for program in [
        "/usr/bin/env",
        "/bin/sh",
        "/usr/bin/ls",
        "/usr/bin/git",
        "/usr/bin/curl",
    ] {
        let canonical = |path: &Path| path.canonicalize().unwrap();
        let Ok(output) = std::process::Command::new("ldd").arg(program).output() else {
            continue;
        };
        if !output.status.success() {
            continue;
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let mut expected: Vec<PathBuf> = text
            .lines()
            .filter_map(|line| {
                let line = line.split_once("=> ").map_or(line, |(_, path)| path);
                let path = line.trim().split(' ').next()?;
                path.starts_with('/').then(|| canonical(Path::new(path)))
            })
            .collect();
        let found = closure(Path::new(program), &OnDisk);
        let mut found: Vec<PathBuf> = found
            .iter()
            .filter(|path| *path != Path::new(CACHE))
            .map(|path| canonical(path))
            .collect();
        for list in [&mut expected, &mut found] {
            list.sort();
            list.dedup();
        }
        assert_eq!(found, expected, "{program}");
        compared += 1;
    }
    assert!(compared > 0, "there was no program to compare");
}
