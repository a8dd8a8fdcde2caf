//! Sessions on a tokio runtime with a single thread, which nothing may hold up.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use ringfence::{Cause, Happened, Policy, Sandbox};

    fn sandbox() -> (tempfile::TempDir, Sandbox) {
        let top = tempfile::tempdir_in("/var/lib")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let project = top.path().canonicalize().unwrap();
        let sandbox = Sandbox::new(Policy::agent(project)).unwrap();
        (top, sandbox)
    }

    fn run(future: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(future);
    }

    #[test]
    fn many_commands_wait_at_once() {
        let (_top, sandbox) = sandbox();
        run(async {
            let started = Instant::now();
            let mut sessions: Vec<_> = (0..20)
                .map(|_| sandbox.command("sleep").arg("3").spawn().unwrap())
                .collect();
            for session in &mut sessions {
                assert!(session.wait_async().await.unwrap().success());
            }
            assert!(
                started.elapsed() < Duration::from_secs(50),
                "one after the other"
            );
        });
    }

    #[test]
    fn output_comes_whole_from_both_streams() {
        let (_top, sandbox) = sandbox();
        run(async {
            let script = "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2; exit 5";
            let output = sandbox
                .command("sh")
                .args(["-c", script])
                .output_async()
                .await;
            let output = output.unwrap();
            assert_eq!(
                (output.stdout.len(), output.stderr.len()),
                (300_000, 200_000)
            );
            assert_eq!(output.report.cause, Cause::Exited { status: 5 });
        });
    }

    #[test]
    fn events_come_one_after_the_other() {
        let (_top, sandbox) = sandbox();
        run(async {
            let mut command = sandbox.command("sh");
            command.args(["-c", "mkdir .vscode 2> /dev/null; sleep 0.2; exit 6"]);
            let mut session = command.spawn().unwrap();
            let mut told = Vec::new();
            while let Some(event) = session.next_event_async().await.unwrap() {
                told.push(event.happened);
            }
            let [
                Happened::Started(_),
                Happened::Denied(denial),
                Happened::Ended(ended),
            ] = &told[..]
            else {
                panic!("{told:?}");
            };
            assert!(denial.target.ends_with("/.vscode"), "{denial:?}");
            assert_eq!(ended.report.cause, Cause::Exited { status: 6 });
            assert!(session.next_event_async().await.unwrap().is_none());
        });
    }

    #[test]
    fn a_dropped_future_ends_what_it_owns() {
        let (_top, sandbox) = sandbox();
        let mark = format!("{}.25", 6_000_000 + std::process::id());
        run(async {
            let mut command = sandbox.command("sleep");
            command.arg(&mark);
            let soon = Duration::from_millis(500);
            let ended = tokio::time::timeout(soon, command.output_async()).await;
            assert!(ended.is_err(), "it does not end by itself");
        });
        let entries = std::fs::read_dir("/proc").unwrap();
        let lines =
            entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
        let mut lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
        assert!(!lines.any(|line| line.contains(&mark)));
    }
}
