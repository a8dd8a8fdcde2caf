//! A program that starts wrapped commands as itself: it has a `main` of its own, which asks first.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the whole program is a test"
)]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    ringfence::shim::run_if_asked();
    let cases: [(&str, fn()); 4] = [
        (
            "a_wrapped_command_is_confined",
            linux::a_wrapped_command_is_confined,
        ),
        (
            "nothing_is_seen_in_arguments_or_variables",
            linux::nothing_is_seen_in_arguments_or_variables,
        ),
        (
            "a_wrapped_command_ends_with_its_starter",
            linux::a_wrapped_command_ends_with_its_starter,
        ),
        (
            "a_forged_request_starts_nothing",
            linux::a_forged_request_starts_nothing,
        ),
    ];
    for (name, case) in cases {
        case();
        println!("test {name} ... ok");
    }
    linux::also_as_plain_user();
    println!("test result: {} passed; 0 failed", cases.len());
}

#[cfg(target_os = "linux")]
mod linux {
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::time::{Duration, Instant};

    use ringfence::{Policy, Sandbox, Wrapped};

    /// Runs this whole program again as a user without rights.
    pub(super) fn also_as_plain_user() {
        use std::os::unix::fs::{PermissionsExt, chown};
        use std::os::unix::process::CommandExt;
        const PLAIN: u32 = 54_321;
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let top = tempfile::tempdir_in("/var/lib").unwrap();
        let everybody = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(top.path(), everybody).unwrap();
        let program = top.path().join("program");
        let copied = Command::new("cp")
            .arg(std::env::current_exe().unwrap())
            .arg(&program)
            .status();
        assert!(copied.unwrap().success());
        let own = top.path().join("own");
        std::fs::create_dir(&own).unwrap();
        chown(&own, Some(PLAIN), Some(PLAIN)).unwrap();
        let status = Command::new(program)
            .env("RINGFENCE_TEST_HOME", &own)
            .env("HOME", &own)
            .current_dir(&own)
            .uid(PLAIN)
            .gid(PLAIN)
            .status();
        assert!(status.unwrap().success(), "as a plain user");
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let home = std::env::var_os("RINGFENCE_TEST_HOME");
        let top = tempfile::tempdir_in(home.unwrap_or_else(|| "/var/lib".into())).unwrap();
        let project = top.path().canonicalize().unwrap().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.with_file_name("neighbour"), "secret").unwrap();
        (top, project)
    }

    fn wrapped(project: &Path, script: &str) -> Wrapped {
        let sandbox = Sandbox::new(Policy::strict(project)).unwrap();
        sandbox.wrap(["sh", "-c", script]).unwrap()
    }

    fn command(wrapped: &Wrapped, project: &Path) -> Command {
        let mut command = Command::new(&wrapped.program);
        command.args(&wrapped.arguments).current_dir(project);
        command
    }

    pub(super) fn a_wrapped_command_is_confined() {
        let (_top, project) = place();
        let neighbour = project.with_file_name("neighbour");
        let script = format!("cat {}; pwd; exit 6", neighbour.display());
        let free = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(free.stdout.starts_with(b"secret"), "the control");

        let wrapped = wrapped(&project, &script);
        let output = command(&wrapped, &project).output().unwrap();

        assert_eq!(output.status.code(), Some(6));
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(shown.trim_end(), project.to_str().unwrap());
    }

    pub(super) fn nothing_is_seen_in_arguments_or_variables() {
        let (_top, project) = place();
        let wrapped = wrapped(&project, "echo a-secret-word; sleep 1000");
        let all = format!("{} {:?}", wrapped.program.display(), wrapped.arguments);
        assert!(!all.contains("secret") && !all.contains("project"), "{all}");
        let mut child = command(&wrapped, &project)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut shown = [0; 14];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut shown).unwrap();
        for file in ["cmdline", "environ"] {
            let seen = std::fs::read(format!("/proc/{}/{file}", child.id())).unwrap();
            assert!(!String::from_utf8_lossy(&seen).contains("secret"), "{file}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(super) fn a_wrapped_command_ends_with_its_starter() {
        let (_top, project) = place();
        let mark = format!("{}.5", 5_000_000 + std::process::id());
        let wrapped = wrapped(
            &project,
            &format!("(setsid sleep {mark} &); echo there; sleep {mark}"),
        );
        let mut child = command(&wrapped, &project)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut there = [0; 6];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut there).unwrap();
        // The word comes from the shell: whoever it started may still be on the way into its program, and has no arguments then.
        wait_until(30, "both sleep", || processes_with(&mark) > 1);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until(2, "nothing survives", || processes_with(&mark) == 0);
    }

    /// Of a while in which this very process did not get to run only a moment counts: then nobody else ran
    /// either.
    fn wait_until(seconds: u64, what: &str, is_so: impl Fn() -> bool) {
        let mut left = Duration::from_secs(seconds);
        let mut looked = Instant::now();
        while !is_so() {
            assert!(!left.is_zero(), "{what}");
            std::thread::sleep(Duration::from_millis(10));
            left = left.saturating_sub(looked.elapsed().min(Duration::from_millis(50)));
            looked = Instant::now();
        }
    }

    pub(super) fn a_forged_request_starts_nothing() {
        let own = std::env::current_exe().unwrap();
        for number in ["0", "7", "x", "-1", "999999999999"] {
            let output = Command::new(&own)
                .args(["--ringfence-session--", number])
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(125), "{number}");
            assert!(output.stdout.is_empty(), "the program itself must not run");
        }
    }

    /// How many processes sleep for so long (the shell, whose script says it too, is not one of them).
    fn processes_with(mark: &str) -> usize {
        let entries = std::fs::read_dir("/proc").unwrap();
        let lines =
            entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
        let asleep = format!("sleep\0{mark}\0");
        lines.filter(|line| line == asleep.as_bytes()).count()
    }
}
