//! What becomes of a policy.

use ringfence::words::{EngineChoice, OnGap};
use ringfence::{Policy, Sandbox, SandboxError};

use crate::world::also_as_plain_user;

/// A project in a directory that no policy grants.
pub(crate) fn place() -> (tempfile::TempDir, std::path::PathBuf) {
    let home = std::env::var_os("RINGFENCE_TEST_HOME");
    let top = tempfile::tempdir_in(home.unwrap_or_else(|| "/var/lib".into())).unwrap();
    let project = top.path().canonicalize().unwrap().join("project");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.with_file_name("neighbour"), "secret").unwrap();
    (top, project)
}

#[test]
fn what_is_not_granted_is_not_there() {
    let (_top, project) = place();
    let neighbour = project.with_file_name("neighbour");
    let read = |policy: Policy| {
        let sandbox = Sandbox::new(policy).unwrap();
        let output = sandbox.command("cat").arg(&neighbour).output().unwrap();
        (output.report.success(), output.stdout)
    };
    // The control, the denial, and the grant.
    let seen = (true, b"secret".to_vec());
    assert_eq!(read(Policy::track(&project)), seen);
    assert_eq!(read(Policy::strict(&project)), (false, Vec::new()));
    assert_eq!(read(Policy::strict(&project).read(&neighbour)), seen);
    assert!(!read(Policy::agent(&project).hide(&neighbour)).0);
    also_as_plain_user("policies::what_is_not_granted_is_not_there");
}

#[test]
fn a_policy_that_this_host_cannot_enforce_makes_no_sandbox() {
    let (_top, project) = place();
    let landlock: EngineChoice = "landlock".parse().unwrap();
    let weak = || Policy::agent(&project).engine(landlock);
    let refusal = Sandbox::new(weak()).unwrap_err();
    assert!(
        matches!(&refusal, SandboxError::Gaps { gaps } if !gaps.is_empty()),
        "{refusal:?}"
    );
    // Only by name, and then it is in every report.
    let sandbox = Sandbox::new(weak().on_gap(OnGap::Report)).unwrap();
    let report = sandbox.command("true").status().unwrap();
    assert!(report.success() && !report.is_fully_enforced());
    let strong = Sandbox::new(Policy::agent(&project)).unwrap();
    let report = strong.command("true").status().unwrap();
    assert!(report.is_fully_enforced());
    also_as_plain_user("policies::a_policy_that_this_host_cannot_enforce_makes_no_sandbox");
}

#[test]
fn a_policy_that_makes_no_sense_says_everything_that_is_wrong() {
    let (_top, project) = place();
    let absent = project.join("absent");
    let refusals = [
        Sandbox::new(Policy::agent(&absent)),
        Sandbox::new(Policy::agent(&project).write(&absent)),
        Sandbox::new(Policy::agent(&project).host("")),
        Sandbox::new(Policy::agent(&project).pass_env("A=B")),
        Sandbox::new(Policy::agent(&project).set_env("", "x")),
        Sandbox::new(Policy::agent(&project).write_protected("../x")),
    ];
    for refusal in refusals {
        let refusal = refusal.unwrap_err();
        let understood = matches!(
            refusal,
            SandboxError::Place(_) | SandboxError::Policy { .. }
        );
        assert!(understood, "{refusal:?}");
    }
    let two = Policy::agent(&project).pass_env("A=B").pass_env("*");
    let Err(SandboxError::Policy { mistakes }) = Sandbox::new(two) else {
        panic!("nothing is wrong with it");
    };
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
}

#[test]
fn what_a_policy_names_is_looked_up_for_every_command() {
    let (_top, project) = place();
    let granted = project.with_file_name("granted");
    std::fs::create_dir(&granted).unwrap();
    let sandbox = Sandbox::new(Policy::strict(&project).write(&granted)).unwrap();
    let status = |sandbox: &Sandbox| sandbox.command("true").status();
    assert!(status(&sandbox).unwrap().success());
    // It must not be widened to what is there instead, nor made.
    std::fs::remove_dir(&granted).unwrap();
    assert!(status(&sandbox).is_err());
    assert!(!granted.try_exists().unwrap());
    std::fs::create_dir(&granted).unwrap();
    assert!(status(&sandbox).unwrap().success());
}
