//! 133: trees that are too deep, too closed or too oddly named to be walked, in the project and in the
//! temporary directory: every launch looks at the one and removes the other.

use std::fs;
use std::path::Path;

use ringfence_testkit::{Done, Setup, World, binaries, for_each_user, not_run};

use super::protected_names::PYTHON;

/// Fills the directory it is told: a tree whose bottom has no path, names as long as names can be with
/// repositories on the way, names that a shell or a terminal would act on, directories closed to
/// everybody, and many files.
const FILL: &str = r#"
import os, sys
def dig(name, levels):
    for level in range(levels):
        os.mkdir(name)
        os.chdir(name)
        yield level
top = sys.argv[1]
os.chdir(top)
for _ in dig('d', 2200): pass
os.chdir(top)
for level in dig('x' * 255, 20):
    os.mkdir('.git')
    # Where nobody can name it any more, nobody is let to make it.
    if level < 10:
        open('.git/config', 'w').write('[core]\n\tfsmonitor = touch marker\n')
os.chdir(top)
for name in b'line\nbreak', b'\x1b[31m', b'-rf', b'not\xfftext', b'$(touch marker)', b'*', b'"':
    os.makedirs(name + b'/.git/hooks')
os.makedirs('closed/in/.git')
os.chmod('closed/in', 0)
os.chmod('closed', 0)
os.mkdir('many')
for number in range(1000):
    os.close(os.open('many/%d' % number, os.O_CREAT | os.O_WRONLY))
print('filled')
"#;

/// Few enough descriptors that nobody can hold one for each level.
fn with_few_descriptors(world: &World, setup: &Setup, words: &[&str], tmp: &Path) -> Done {
    let confined = world.confine(setup, words);
    let mut command = world.command("prlimit");
    command
        .arg("--nofile=256:256")
        .arg(confined.get_program())
        .args(confined.get_args())
        .env("TMPDIR", tmp);
    Done::of(&mut command)
}

#[test]
fn trees_that_nobody_can_walk_hold_nobody_up() {
    if !Path::new(PYTHON).try_exists().unwrap() {
        return not_run("python3, for calls that no shell makes");
    }
    for_each_user(binaries!(), |world| {
        let (tmp, bomb) = (world.path("tmp"), world.project("bomb"));
        for directory in [&tmp, &bomb] {
            fs::create_dir(directory).unwrap();
        }
        world.own();
        let mut landlock = world.setup_with(r#""on_gap": "report""#);
        landlock.landlock_engine = true;
        let full = world.setup_with(r#""git": "full""#);
        let into = |setup: &Setup, directory: &str| {
            let fill = [PYTHON, "-c", FILL, directory];
            let done = with_few_descriptors(world, setup, &fill, &tmp);
            assert_eq!(done.line(), "filled");
        };
        // In its own temporary directory: all of it goes with the session, whatever holds it.
        let shell = format!("exec {PYTHON} -c \"$0\" \"$TMPDIR\"");
        let own = ["sh", "-c", &shell, FILL];
        let done = with_few_descriptors(world, &landlock, &own, &tmp);
        assert_eq!(done.line(), "filled");
        assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "something is left");
        // In the project: the next session starts, and protects what it can name.
        into(&full, bomb.to_str().unwrap());
        let done = with_few_descriptors(world, &world.setup(), &["echo", "started"], &tmp);
        assert_eq!(done.line(), "started");
        assert!(!world.project("marker").try_exists().unwrap());
        let hook = [
            "sh",
            "-c",
            "cd bomb/-rf && echo x > .git/hooks/post-checkout",
        ];
        let done = with_few_descriptors(world, &world.setup(), &hook, &tmp);
        assert_ne!(done.status, 0);
        // Not even the world itself can remove it as it removes other things.
        let script = "chmod 700 closed && chmod 700 closed/in && rm -rf ../bomb";
        let removed = world
            .command("sh")
            .args(["-c", script])
            .current_dir(&bomb)
            .status();
        assert!(removed.unwrap().success());
    });
}
