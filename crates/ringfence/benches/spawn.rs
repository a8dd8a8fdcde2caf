//! What a session costs a large program: the same command started from a small process, and from one
//! with 64 threads and 2 GiB of touched memory.
//!
//! Only the ratio counts, and it is printed. Each side runs in a process of its own, since memory
//! that was touched once changes what a fork costs for good. With `--test` both are small and one
//! round is run: it must work, its numbers mean nothing.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench ends when something is wrong, and prints what it found"
)]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use ringfence::{Policy, Sandbox, Stdio};

    const SIDE: &str = "RINGFENCE_BENCH_SIDE";
    const THREADS: usize = 64;

    pub(super) fn main() {
        let test = std::env::args().any(|argument| argument == "--test");
        match std::env::var(SIDE).as_deref() {
            Ok("small") => println!("{}", measure(0, rounds(test)).as_nanos()),
            Ok("large") => {
                let megabytes = if test { 16 } else { 2048 };
                let threads = if test { 2 } else { THREADS };
                println!(
                    "{}",
                    large(megabytes << 20, threads, rounds(test)).as_nanos()
                );
            }
            _ => compare(),
        }
    }

    fn rounds(test: bool) -> usize {
        if test { 1 } else { 100 }
    }

    /// Runs both sides in turn, so that whatever else the machine does is shared between them.
    fn compare() {
        let (small, large) = (side("small"), side("large"));
        let thousandths = large.saturating_mul(1000) / small.max(1);
        println!(
            "spawn: small {small} ns, large {large} ns, ratio {}.{:03} (goal: at most 2)",
            thousandths / 1000,
            thousandths % 1000
        );
    }

    fn side(name: &str) -> u128 {
        let own = std::env::current_exe().expect("a bench knows its program");
        let output = Command::new(own)
            .args(std::env::args_os().skip(1))
            .env(SIDE, name)
            .output()
            .expect("a bench can start itself");
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().expect("each side prints one number")
    }

    fn large(bytes: usize, threads: usize, rounds: usize) -> Duration {
        // Written, not only asked for: what was never touched is not copied.
        let ballast = vec![1_u8; bytes];
        for _ in 0..threads {
            std::thread::spawn(|| {
                loop {
                    std::thread::park();
                }
            });
        }
        measure(usize::from(*ballast.last().unwrap_or(&0)), rounds)
    }

    /// The median of starting a command and hearing of its end.
    fn measure(_ballast: usize, rounds: usize) -> Duration {
        let project = tempfile::tempdir().expect("a bench needs a project");
        let sandbox =
            Sandbox::new(Policy::agent(project.path())).expect("this host can enforce it");
        let mut took: Vec<Duration> = (0..rounds)
            .map(|_| {
                let started = Instant::now();
                let report = sandbox.command("/bin/true").stdin(Stdio::null()).status();
                assert!(report.expect("it starts").success());
                started.elapsed()
            })
            .collect();
        took.sort_unstable();
        took.get(rounds / 2).copied().unwrap_or_default()
    }
}
