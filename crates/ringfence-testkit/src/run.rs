//! One run of a program, and the cases that a run is held against.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything here takes, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until something holds, for as long as it may take on a machine that is busy with other things.
///
/// For what is sure to come: where a time is promised, that is what the test has to measure.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Fails the test unless something keeps within a time that is promised, in one of three tries: a machine
/// that is held up by something else is not so each time, whoever breaks the promise is.
#[track_caller]
pub fn keeps_within(promised: Duration, what: &str, mut took: impl FnMut() -> Duration) {
    let mut tries = Vec::new();
    while tries.len() < 3 {
        tries.push(took());
        if tries.last().is_some_and(|took| *took < promised) {
            return;
        }
    }
    panic!("{what}: {tries:?}, and {promised:?} was promised");
}

/// Waits until something holds, for a time that is promised; whether it came to that. Of a while in which
/// this very process did not get to run only a moment counts: then nobody else ran either.
pub fn comes_within(promised: Duration, mut holds: impl FnMut() -> bool) -> bool {
    const MOMENT: Duration = Duration::from_millis(50);
    let mut left = promised;
    let mut looked = Instant::now();
    while !holds() {
        if left.is_zero() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
        left = left.saturating_sub(looked.elapsed().min(MOMENT));
        looked = Instant::now();
    }
    true
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// The exit status, as a shell would say it.
    pub status: i32,
    /// What it printed, line by line.
    pub lines: Vec<String>,
    /// What it complained about.
    pub stderr: String,
}

impl Done {
    /// Runs a command to its end, and ends it if that does not come.
    #[track_caller]
    pub fn of(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stdout.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let complaints = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stderr.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let start = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if start.elapsed() > PATIENCE {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("{command:?} did not end within {PATIENCE:?}");
            }
            std::thread::sleep(Duration::from_micros(500));
        };
        let text = reader.join().unwrap();
        let lines = String::from_utf8_lossy(&text)
            .lines()
            .map(str::to_owned)
            .collect();
        Self {
            status: std::os::unix::process::ExitStatusExt::signal(&status)
                .map_or_else(|| status.code().unwrap(), |signal| 128 + signal),
            lines,
            stderr: String::from_utf8_lossy(&complaints.join().unwrap()).into_owned(),
        }
    }

    /// Everything it printed.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// The only line it printed; fails the test if it did not end well.
    #[track_caller]
    pub fn line(&self) -> &str {
        self.assert_status(0);
        match &self.lines[..] {
            [line] => line,
            lines => panic!("expected one line, got {lines:?}; {}", self.stderr),
        }
    }

    /// Fails the test unless it exited so.
    #[track_caller]
    pub fn assert_status(&self, status: i32) {
        assert_eq!(
            self.status,
            status,
            "stdout: {}\nstderr: {}",
            self.text(),
            self.stderr
        );
    }
}

/// One thing for the probe to do, and what must become of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The operation and its arguments.
    pub operation: Vec<OsString>,
    /// What the probe says without a sandbox.
    pub free: String,
    /// What it says inside.
    pub confined: String,
}

/// Something that works outside and is refused inside.
pub fn denied<S: AsRef<OsStr>>(operation: impl IntoIterator<Item = S>, errno: &str) -> Case {
    case(operation, "ok", errno)
}

/// Something and its two answers.
pub fn case<S: AsRef<OsStr>>(
    operation: impl IntoIterator<Item = S>,
    free: &str,
    confined: &str,
) -> Case {
    let operation = operation.into_iter().map(|part| part.as_ref().to_owned());
    Case {
        operation: operation.collect(),
        free: free.to_owned(),
        confined: confined.to_owned(),
    }
}

/// Fails the test with everything that is not as expected, at once.
#[track_caller]
pub(crate) fn compare<'a>(
    what: &str,
    done: &Done,
    cases: &'a [Case],
    expected: impl Fn(&'a Case) -> &'a str,
) {
    assert_eq!(
        (done.status, done.lines.len()),
        (0, cases.len()),
        "{what}: the probe must answer {} times and end well\nstdout: {}\nstderr: {}",
        cases.len(),
        done.text(),
        done.stderr
    );
    let wrong: Vec<String> = cases
        .iter()
        .zip(&done.lines)
        .filter(|(case, line)| expected(case) != line.as_str())
        .map(|(case, line)| {
            let operation = case.operation.join(OsStr::new(" "));
            let operation = operation.display();
            format!("{operation}: expected {}, got {line}", expected(case))
        })
        .collect();
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}
