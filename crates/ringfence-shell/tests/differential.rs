//! bash itself as the judge of what parses: every bash script on this machine that `bash -n` accepts is
//! read by us too, but for exceptions.
//!
//! An exception must have one of the reasons listed in [`is_deliberate`], each of which is a choice that
//! docs/SHELL.md explains. A script that bash accepts and that we call wrong is a bug, and fails.

#![expect(
    clippy::tests_outside_test_module,
    reason = "an integration test is all test"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringfence_shell::{Ir, MAX_TEXT, RefusalKind};

/// Where distributions keep scripts.
const ROOTS: &[&str] = &["/bin", "/etc", "/lib", "/opt", "/sbin", "/usr", "/var/lib"];

/// Fewer scripts than this prove nothing.
const FEWEST: usize = 200;

/// How many of the scripts that bash accepts we must read, in per mille.
const LEAST_READ: usize = 990;

/// Refusals by choice, as opposed to a grammar that differs from bash's.
fn is_deliberate(kind: RefusalKind) -> bool {
    matches!(
        kind,
        RefusalKind::AmbiguousArithmetic
            | RefusalKind::AmbiguousBraces
            | RefusalKind::AmbiguousContinuation
            | RefusalKind::AmbiguousHeredoc
            | RefusalKind::AmbiguousPattern
            | RefusalKind::AmbiguousRedirection
            | RefusalKind::AmbiguousTime
            | RefusalKind::ControlCharacter
            | RefusalKind::NotUtf8
            | RefusalKind::TooDeep
            | RefusalKind::Unsupported
    )
}

fn is_script(path: &Path) -> bool {
    let completion = path
        .parent()
        .is_some_and(|parent| parent.ends_with("bash-completion/completions"));
    let named = path
        .extension()
        .is_some_and(|extension| extension == "bash" || extension == "sh");
    let mut start = [0; 64];
    let Ok(mut file) = fs::File::open(path) else {
        return false;
    };
    let Ok(length) = file.read(&mut start) else {
        return false;
    };
    let first = start[..length]
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    let shebang = first.starts_with("#!")
        && first
            .split(['/', ' ', '\t'])
            .any(|part| matches!(part, "bash" | "dash" | "sh"));
    shebang || ((completion || named) && !first.starts_with("#!"))
}

fn collect(directory: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        let path = entry.path();
        if kind.is_dir() && depth < 12 {
            collect(&path, depth + 1, found);
        } else if kind.is_file() && is_script(&path) {
            // The same tree is often reachable by two names.
            found.push(fs::canonicalize(&path).unwrap_or(path));
        }
    }
}

fn bash_accepts(path: &Path) -> bool {
    Command::new("bash")
        .args(["--norc", "--noprofile", "-n"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .status()
        .is_ok_and(|status| status.success())
}

#[test]
fn reads_almost_every_script_that_bash_accepts() {
    let mut paths = Vec::new();
    for root in ROOTS {
        collect(Path::new(root), 0, &mut paths);
    }
    paths.sort();
    paths.dedup();
    let (mut accepted, mut read) = (0, 0);
    let mut wrong = Vec::new();
    let mut refused: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths {
        let Ok(text) = fs::read(&path) else { continue };
        if text.len() > MAX_TEXT || !bash_accepts(&path) {
            continue;
        }
        accepted += 1;
        let ir = Ir::from_bash(&text);
        match ir.refusal {
            None => read += 1,
            Some(refusal) => {
                let line = text[..refusal.span.start as usize]
                    .split(|&byte| byte == b'\n')
                    .count();
                let place = format!("{}:{line}", path.display());
                if !is_deliberate(refusal.kind) {
                    wrong.push(format!("{place}: {refusal}"));
                }
                refused.entry(refusal.to_string()).or_default().push(place);
            }
        }
    }
    for (reason, places) in &refused {
        println!("{reason}: {}", places.len());
        for place in places {
            println!("    {place}");
        }
    }
    println!("{read} of {accepted} read");
    assert!(
        accepted >= FEWEST,
        "only {accepted} scripts found; this machine cannot judge"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        read * 1000 >= accepted * LEAST_READ,
        "only {read} of {accepted} read"
    );
}
