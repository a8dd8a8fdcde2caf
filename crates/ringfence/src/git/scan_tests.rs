use super::super::cache::TICK;
use super::*;

fn root() -> (tempfile::TempDir, AbsPath) {
    let directory = tempfile::tempdir().unwrap();
    let path = std::fs::canonicalize(directory.path()).unwrap();
    (directory, AbsPath::parse(path).unwrap())
}

fn make(root: &AbsPath, directories: &[&str]) {
    for directory in directories {
        std::fs::create_dir_all(root.below(directory).as_path()).unwrap();
    }
}

fn seen(places: &[Place]) -> Vec<(String, What)> {
    let places = places.iter();
    let mut seen: Vec<(String, What)> = places
        .map(|place| (place.directory.display().to_string(), place.what))
        .collect();
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    seen
}

#[test]
fn every_kind_of_repository_is_found() {
    let (_guard, root) = root();
    make(
        &root,
        &[
            ".git/sub/.git",
            "a/b/.git",
            // Three names are quickly made, and hide nothing.
            "bare/objects/inner/.git",
            "bare/vendor/.git",
            "bare/refs",
            "almost/objects",
            "almost/refs/.git",
            "plain",
        ],
    );
    std::fs::write(root.below("bare/HEAD").as_path(), "").unwrap();
    std::fs::write(root.below("plain/.git").as_path(), "gitdir: x").unwrap();
    std::os::unix::fs::symlink("a", root.below("link").as_path()).unwrap();
    std::os::unix::fs::symlink(".", root.below("loop").as_path()).unwrap();

    let (places, _, _) = walk(&root, None).unwrap();

    let expected = [
        ("", What::GitDirectory),
        ("a/b", What::GitDirectory),
        ("almost/refs", What::GitDirectory),
        ("bare", What::Bare),
        ("bare/objects/inner", What::GitDirectory),
        ("bare/vendor", What::GitDirectory),
        ("plain", What::GitFile),
    ];
    let expected = expected.map(|(path, what)| (path.to_owned(), what));
    assert_eq!(seen(&places), expected);
}

/// Waits until nothing in a tree can change again within the same tick.
fn settle() {
    std::thread::sleep(TICK * 2);
}

#[test]
fn what_is_remembered_is_not_listed_again_and_what_changed_is() {
    let (_guard, root) = root();
    make(&root, &["a/b/c", "d/e", "f"]);
    settle();
    let (_, Changed(first), tree) = walk(&root, None).unwrap();
    assert_eq!(first, 7);
    let (_, Changed(second), tree) = walk(&root, Some(tree)).unwrap();
    assert_eq!(second, 0);

    make(&root, &["a/b/.git", "g/.git"]);
    settle();
    let (places, Changed(listed), tree) = walk(&root, Some(tree)).unwrap();
    // The root, `a/b` and `g`.
    assert_eq!(listed, 3);
    let expected = ["a/b", "g"].map(|path| (path.to_owned(), What::GitDirectory));
    assert_eq!(seen(&places), expected);

    // An exchange of two directories is seen, although both are as old as they were.
    std::fs::rename(root.below("d").as_path(), root.below("x").as_path()).unwrap();
    std::fs::rename(root.below("a").as_path(), root.below("d").as_path()).unwrap();
    std::fs::rename(root.below("x").as_path(), root.below("a").as_path()).unwrap();
    let (places, _, _) = walk(&root, Some(tree)).unwrap();
    let expected = ["d/b", "g"].map(|path| (path.to_owned(), What::GitDirectory));
    assert_eq!(seen(&places), expected);
}

#[test]
fn a_directory_that_just_changed_is_not_believed_the_next_time() {
    let (_guard, root) = root();
    for round in 0..200 {
        let name = format!("d{round}");
        make(&root, &[&name]);
        let (_, _, tree) = walk(&root, None).unwrap();
        make(&root, &[&format!("{name}/.git")]);
        let (places, _, _) = walk(&root, Some(tree)).unwrap();
        assert!(seen(&places).contains(&(name, What::GitDirectory)));
    }
}

#[test]
fn a_directory_that_became_a_link_is_not_followed() {
    let (_guard, root) = root();
    let (_other_guard, other) = self::root();
    make(&root, &["a/b"]);
    make(&other, &["b/.git"]);
    settle();
    let (_, _, tree) = walk(&root, None).unwrap();
    std::fs::rename(root.below("a").as_path(), other.below("old").as_path()).unwrap();
    std::os::unix::fs::symlink(other.as_path(), root.below("a").as_path()).unwrap();
    let (places, _, _) = walk(&root, Some(tree)).unwrap();
    assert_eq!(places, []);
}

#[test]
fn another_spelling_is_a_directory_like_any_other_where_cases_are_told_apart() {
    let (_guard, root) = root();
    make(&root, &["a/.GIT/b/.git", "a/.Git/c/.git", "d/.giT"]);
    std::fs::write(root.below("d/.Git").as_path(), "gitdir: x").unwrap();

    let (places, _, _) = walk(&root, None).unwrap();

    let expected = ["a/.GIT/b", "a/.Git/c"];
    let expected = expected.map(|path| (path.to_owned(), What::GitDirectory));
    assert_eq!(seen(&places), expected);
}

/// A directory with a path that nobody could mount below is closed where it begins to be one, and asked
/// about each time.
#[test]
fn what_is_too_deep_is_closed_and_not_remembered() {
    let (_guard, root) = root();
    let long = ["x".repeat(250).as_str()]
        .repeat(LONGEST / 250 + 1)
        .join("/");
    let deep = ["d"].repeat(DEEPEST + 1).join("/");
    make(&root, &[&format!("{long}/.git"), &format!("{deep}/.git")]);
    settle();
    let (places, Changed(first), tree) = walk(&root, None).unwrap();
    let closed = |path: &str| {
        let all = Path::new(path).ancestors();
        let fits = |path: &Path| {
            path.components().count() <= DEEPEST
                && root.below(path).as_path().as_os_str().len() <= LONGEST
        };
        let first = all.take_while(|path| !fits(path)).last().unwrap();
        (first.display().to_string(), What::Closed)
    };
    let mut expected = [closed(&long), closed(&deep)];
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(seen(&places), expected);
    assert_eq!(
        Tree::from_bytes(&tree.to_bytes(&root), &root)
            .unwrap()
            .repositories(),
        2
    );

    let (again, Changed(listed), _) = walk(&root, Some(tree)).unwrap();
    assert_eq!(seen(&again), expected);
    assert_eq!((listed, first > 2), (2, true));
}
