//! 43: git's own tools below its commands, which write objects and move references without any hook.
//! At level `write` a session may do that, and each reference that it moved is told; below it may
//! not.

use std::fs;

use ringfence::changes::Before;
use ringfence::git::Search;
use ringfence_core::path::AbsPath;
use ringfence_testkit::{World, binaries, for_each_user};

use crate::git_metadata::{host, inside, level};

/// Puts a protected name into a commit, moves the main branch to it, and deletes another.
const PLUMBING: &str = "blob=$(echo evil | git hash-object -w --stdin) &&
    git update-index --add --cacheinfo 100644,$blob,.vscode/tasks.json &&
    commit=$(git commit-tree -m evil -p HEAD $(git write-tree)) &&
    git update-ref refs/heads/main $commit && git update-ref -d refs/heads/other &&
    git update-ref refs/tags/evil $commit";

fn repository(world: &World) {
    host(
        world,
        &world.project(""),
        "git init -q -b main . && git config user.name n && git config user.email e@example.org &&
         git commit -q --allow-empty -m first && git branch other && git branch same &&
         git pack-refs --all && git commit -q --allow-empty -m second",
    );
}

#[test]
fn no_reference_is_moved_in_silence() {
    for_each_user(binaries!(), |world| {
        let project = fs::canonicalize(world.project("")).unwrap();
        let search = Search::new(AbsPath::parse(project).unwrap());
        // The control: whoever is not confined does all of it.
        repository(world);
        host(world, &world.project(""), PLUMBING);
        fs::remove_dir_all(world.project(".git")).unwrap();

        repository(world);
        let before = Before::look(&search);
        let done = inside(world, &level(world, "read"), PLUMBING);
        assert_ne!(done.status, 0);
        let changes = before.compare();
        assert_eq!((changes.references.count, changes.complete), (0, true));

        let before = Before::look(&search);
        inside(world, &level(world, "write"), PLUMBING).assert_status(0);
        let changes = before.compare();
        let told = changes.references.moved.iter().map(|moved| {
            assert_eq!(moved.repository, ".git");
            let there = (moved.before.is_some(), moved.after.is_some());
            (&moved.name[..], there)
        });
        let told: Vec<_> = told.collect();
        assert_eq!(
            told,
            [
                ("refs/heads/main", (true, true)),
                ("refs/heads/other", (true, false)),
                ("refs/tags/evil", (false, true)),
            ]
        );
        assert!(changes.complete);
        // The commit has the name; the project does not.
        host(
            world,
            &world.project(""),
            "git cat-file -e main:.vscode/tasks.json && test ! -e .vscode",
        );
        fs::remove_dir_all(world.project(".git")).unwrap();
    });
}
