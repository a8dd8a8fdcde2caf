//! 14: writing outside through a symbolic link that was made inside.

use ringfence_core::plan::Step;
use ringfence_testkit::{binaries, case, denied, for_each_user, op};

#[test]
fn a_link_made_inside_leads_nowhere_new() {
    for_each_user(binaries!(), |world| {
        let up = "../".repeat(20);
        let up = format!("{up}{}", world.outside("canary").display());
        let links = [
            (world.project("absolute"), world.outside("")),
            (world.project("relative"), "../outside".into()),
            (world.project("deep"), up.into()),
            (world.project("dangling"), world.outside("new")),
            (world.project("first"), "second".into()),
            (world.project("second"), "absolute".into()),
        ];
        let writes = [
            ("write", world.project("absolute/canary")),
            ("append", world.project("absolute/dir/canary")),
            ("create", world.project("absolute/new-1")),
            ("create", world.project("relative/new-2")),
            ("write", world.project("deep")),
            ("overwrite", world.project("dangling")),
            ("write", world.project("first/canary")),
            ("mkdir", world.project("first/new-3")),
            ("unlink", world.project("relative/dir/canary")),
        ];
        let refused = |errno: &str| {
            let writes = writes.iter();
            let cases = writes.map(|(what, path)| denied(op![what, path], errno));
            cases.collect::<Vec<_>>()
        };
        let mut cases = Vec::new();
        for (link, target) in &links {
            cases.push(case(op!["symlink", target, link], "ok", "ok"));
        }
        // A link that comes into its place by being renamed.
        let aside = world.project("aside");
        let late = world.project("late");
        cases.push(case(op!["symlink", "../outside", &aside], "ok", "ok"));
        cases.push(case(op!["rename", &aside, &late], "ok", "ok"));
        cases.push(denied(op!["write", late.join("canary")], "EROFS"));
        cases.extend(refused("EROFS"));
        world.control(&cases);
        for (link, _) in &links {
            std::fs::remove_file(link).unwrap();
        }
        std::fs::remove_file(&late).unwrap();
        world.check_confined(&world.setup(), &cases);

        // Both layers claim it: each holds alone.
        let mounts = world.setup().without(Step::Landlock);
        world.check_confined(&mounts, &refused("EROFS"));
        let landlock = world.setup().without(Step::Root);
        world.check_confined(&landlock, &refused("EACCES"));
    });
}
