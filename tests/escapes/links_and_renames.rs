//! 20, 22: carrying a file over the boundary, by hard link or by rename.

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, case, denied, for_each_user, op};

#[test]
fn nothing_is_linked_or_moved_across() {
    for_each_user(binaries!(), |world| {
        let canary = world.outside("canary");
        let (source, target) = (world.project("src/file"), world.outside("moved"));
        let cases = [
            denied(op!["link", &canary, world.project("linked")], "EXDEV"),
            denied(op!["link", &source, world.outside("linked")], "EROFS"),
            denied(op!["exchange", &canary, world.project("README")], "EXDEV"),
            denied(op!["rename", &canary, world.project("taken")], "EXDEV"),
            denied(op!["rename", &source, &target], "EXDEV"),
            denied(
                op!["rename", world.outside("dir"), world.project("dir")],
                "EXDEV",
            ),
        ];
        world.control(&cases);
        for left in ["linked", "taken"] {
            std::fs::remove_file(world.project(left)).unwrap();
        }
        std::fs::remove_dir_all(world.project("dir")).unwrap();
        for file in ["src/file", "README"] {
            std::fs::write(world.project(file), "project\n").unwrap();
        }
        world.own();
        world.check_confined(&world.setup(), &cases);

        // Both layers claim it: each holds alone.
        world.check_confined(&world.setup().without(Step::Landlock), &cases);
        let landlock: Vec<_> = cases
            .iter()
            .map(|each| {
                // The kernel names a link across rules `EXDEV`, and a move of what may not be
                // removed `EACCES`.
                let errno = match each.operation[0].to_str() {
                    Some("link") if each.confined == "EXDEV" => "EXDEV",
                    _ => "EACCES",
                };
                denied(&each.operation, errno)
            })
            .collect();
        world.check_confined(&world.setup().without(Step::Root), &landlock);
    });
}

#[test]
fn within_the_project_both_work() {
    for_each_user(binaries!(), |world| {
        let (file, deeper) = (world.project("src/file"), world.project("deep"));
        let cases = [
            case(op!["mkdir", &deeper], "ok", "ok"),
            case(op!["link", &file, deeper.join("linked")], "ok", "ok"),
            case(op!["rename", &file, deeper.join("file")], "ok", "ok"),
            case(op!["rename", deeper.join("file"), &file], "ok", "ok"),
            case(
                op!["rename", &deeper, world.project("src/deep")],
                "ok",
                "ok",
            ),
        ];
        world.control(&cases);
        std::fs::remove_dir_all(world.project("src/deep")).unwrap();
        world.check_confined(&world.setup(), &cases);
    });
}
