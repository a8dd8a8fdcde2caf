//! A program that is granted as a file runs, and brings nothing but its own libraries.

use ringfence::core::settings::Preset;

use crate::world::{World, also_as_plain_user};

/// Nothing of the system but three programs, two of them named through links.
fn bare() -> World {
    World::new(Preset::Strict)
        .without_system()
        .executable("/bin/sh")
        .executable("/usr/bin/cat")
        .executable("/bin/ls")
}

#[test]
fn a_granted_program_runs_and_sees_nothing_else() {
    let world = bare();
    let reads = [
        format!("cat {}", world.neighbour.display()),
        "cat /etc/passwd".to_owned(),
        "cat /usr/bin/env".to_owned(),
        "/usr/bin/env".to_owned(),
        "ls /etc".to_owned(),
        "ls /usr/lib/os-release".to_owned(),
    ];
    for read in &reads {
        assert!(world.control(read), "{read} must work unconfined");
    }

    assert_eq!(
        world.shell("echo works; ls /bin/sh"),
        (0, "works\n/bin/sh\n".to_owned())
    );
    for read in &reads {
        let (status, out) = world.shell(read);
        assert_ne!(status, 0, "{read}: {out}");
    }
    let (status, out) = world.shell("ls /usr/bin");
    assert_eq!((status, out.as_str()), (0, "cat\ndash\nls\nsh\n"));
    also_as_plain_user("programs::a_granted_program_runs_and_sees_nothing_else");
}

#[test]
fn without_the_grant_it_does_not_run() {
    let world = World::new(Preset::Strict)
        .without_system()
        .executable("/usr/bin/cat");
    let refused = world.launch("/bin/sh", &["-c", "true"]);
    assert_eq!(refused.unwrap_err().exit_status(), 127);
}

#[test]
fn the_loader_is_there_under_the_name_that_programs_use() {
    let world = bare();
    let (status, out) = world.shell("ls -l /lib64/ld-linux-x86-64.so.2");
    assert_eq!(status, 0, "{out}");
    assert!(
        out.contains("->") || cfg!(not(target_arch = "x86_64")),
        "{out}"
    );
}

#[test]
fn a_script_in_the_project_runs_with_its_interpreter() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new(Preset::Strict).without_system();
    let script = world.project.join("tool");
    std::fs::write(&script, "#!/bin/sh\necho ran > result\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let world = world.executable(&script);

    let report = world.launch(script.to_str().unwrap(), &[]).unwrap();

    assert_eq!(report.cause.exit_status(), 0);
    let result = std::fs::read_to_string(world.project.join("result")).unwrap();
    assert_eq!(result, "ran\n");
}

#[test]
fn a_library_that_is_hidden_stays_hidden() {
    use ringfence::core::path::AbsPath;
    use ringfence::core::policy::Access;
    use ringfence::core::settings::SettingPath;
    let mut world = bare();
    let lib = std::fs::canonicalize("/lib").unwrap();
    let access = |world: &World| {
        let rules = world.policy().files().clone();
        let below = |path: &AbsPath| path.as_path().starts_with(&lib);
        let libraries = rules.rules().iter().filter(|rule| below(&rule.path));
        libraries.map(|rule| rule.access).collect::<Vec<_>>()
    };
    assert!(access(&world).contains(&Access::Execute));

    let hide = &mut world.keys.secrets.hide;
    hide.push(SettingPath(lib.clone()), crate::world::flag());

    assert_eq!(access(&world), [Access::None]);
}
