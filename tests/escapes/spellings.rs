//! 41: a protected name in other letters, where the file system takes them for the same.

use ringfence_testkit::{Who, binaries, for_each_user, is_root, not_run};

use super::submounts::in_own_mounts;

/// How a script says that the kernel cannot do that.
const CANNOT: i32 = 77;

/// The whole of it, on kernels that can fold names without a disk, is in `tests/kernels`.
#[test]
fn another_spelling_of_a_protected_name_is_refused() {
    if !is_root() {
        not_run("root, to mount something over the project");
        return;
    }
    for_each_user(binaries!(), |world| {
        let (user, group) = world.ids();
        let script = format!(
            "mount -t tmpfs -o casefold,mode=0755 none '{project}' 2>/dev/null || exit {CANNOT}
             cd '{project}'
             '{probe}' fold . > /dev/null; chown {user}:{group} .
             $AS '{probe}' mkdir .GIT
             test -d .git && echo one
             rmdir .GIT
             $AS '{confine}' '{setup}' '{probe}' mkdir .GIT , create .Vscode , symlink x .EnvRC \
                 , mkdir .gi\u{200c}t , mkdir .GitHub , mkdir .GitHub/Workflows , create .gitx
             find . | sort | tr '\\n' ' '",
            project = world.project("").display(),
            probe = world.path("bin/probe").display(),
            confine = world.path("bin/confine").display(),
            setup = world.setup().to_argument().display(),
        );
        let done = in_own_mounts(world, &script);
        if done.status == CANNOT {
            if world.who() == Who::Caller {
                not_run(
                    "casefold, a kernel whose file systems in memory can fold names (6.13, with CONFIG_UNICODE)",
                );
            }
            return;
        }
        done.assert_status(0);
        let (control, rest) = done.lines.split_at(2);
        assert_eq!(control, ["ok", "one"], "the control");
        let refused = ["EROFS", "EROFS", "EROFS", "EROFS", "ok", "EROFS", "ok"];
        let (answers, left) = rest.split_at(refused.len());
        assert_eq!(answers, refused);
        assert_eq!(left, [". ./.GitHub ./.gitx "]);
    });
}
