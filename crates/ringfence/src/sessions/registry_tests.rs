use std::fs;

use super::*;

/// A registry of its own, and room beside it.
fn registry() -> (tempfile::TempDir, Registry) {
    let room = tempfile::tempdir().unwrap();
    let registry = Registry::open(&room.path().join("sessions")).unwrap();
    (room, registry)
}

fn about() -> About {
    About::new(None, &["true".into()]).unwrap()
}

fn text(entry: &Entry) -> String {
    let name = entry.name.to_str().unwrap();
    fs::read_to_string(entry.registry.path.join(name)).unwrap()
}

fn read(entry: &Entry) -> Record {
    serde_json::from_str(&text(entry)).unwrap()
}

#[test]
fn nothing_is_made_or_started_that_was_not_written_down() {
    let (room, registry) = registry();
    let mut entry = registry.announce(&about()).unwrap();
    let (mark, _) = Mark::draw().unwrap().unwrap();
    entry.bear(mark);
    assert_eq!(text(&entry), "", "nothing was made yet");

    let path = room.path().join("tmp");
    let planned = DirectoryIdentity::planned(path.clone());
    entry.expect(Making::Directory(planned.clone())).unwrap();
    let record = read(&entry);
    assert_eq!((record.tmp, record.mark), (Some(planned), Some(mark)));

    fs::create_dir(&path).unwrap();
    let made = DirectoryIdentity::at(path).unwrap();
    entry.make(Making::Directory(made.clone()));
    entry.settle().unwrap();
    let record = read(&entry);
    assert_eq!(record.tmp, Some(made));
    assert_eq!((record.world.boot, record.first), (None, None));

    let own = rustix::process::getpid().as_raw_nonzero().get();
    entry.started(own, Linger::No).unwrap();
    let record = read(&entry);
    assert_eq!(record.first, ProcessIdentity::of(own));
    assert_eq!(record.world, World::ours().unwrap());
}

#[test]
fn what_is_written_is_not_written_again() {
    let (_room, registry) = registry();
    let mut entry = registry.announce(&about()).unwrap();
    entry.settle().unwrap();
    let path = registry.path.join(entry.name.to_str().unwrap());
    fs::write(&path, "x").unwrap();

    entry.settle().unwrap();

    assert_eq!(text(&entry), "x");
}

/// A supervisor that was killed before it knew its first process leaves a record without one.
#[test]
fn what_was_left_is_found_without_the_first_process() {
    for made in [false, true] {
        let (room, registry) = registry();
        let path = room.path().join("tmp");
        let mut entry = registry.announce(&about()).unwrap();
        let planned = DirectoryIdentity::planned(path.clone());
        entry.expect(Making::Directory(planned)).unwrap();
        fs::create_dir(&path).unwrap();
        if made {
            entry.make(Making::Directory(
                DirectoryIdentity::at(path.clone()).unwrap(),
            ));
            entry.settle().unwrap();
        }
        fs::write(path.join("file"), "").unwrap();
        // As if it had been killed: nobody holds the lock, and nobody has its number.
        let left = registry.path.join(format!("{}.0123456789abcdef", i32::MAX));
        fs::write(&left, text(&entry)).unwrap();

        registry.clean_quickly();

        assert!(!left.try_exists().unwrap());
        // By its name alone it goes only if it is empty.
        assert_eq!(path.try_exists().unwrap(), !made);
        assert!(!text(&entry).is_empty(), "this one is held");
    }
}
