//! Sessions below a process 1 that reaps nobody, as in many a container.

use std::process::{Child, Stdio};

use crate::stage::for_each_user;

/// Process 1 of a pid namespace: starts sessions one after the other and reaps only those whom it
/// started itself, as most programs do. Says after each how many ended processes lie about.
const PROCESS_1: &str = r#"
import os, subprocess, sys, time

def facts():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as file:
                    text = file.read()
            except OSError:
                continue
            yield text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2]

for number in range(5):
    subprocess.run(sys.argv[1:], check=True)
    deadline = time.monotonic() + 60
    # The first process is still on its way out.
    while any(name == "(session)" and state != "Z" for name, state in facts()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    print(sum(state == "Z" for _, state in facts()), flush=True)
    # So long process 1 may take.
    time.sleep(6.1 if number == 0 else 0)
"#;

/// The first session cannot know whom it is left to. Every other one sees what became of that.
#[test]
fn a_process_1_that_reaps_nobody_collects_no_more_than_from_one_session() {
    for_each_user(|stage| {
        let mut engines = vec![
            &["--net", "none"][..],
            &["--engine", "landlock", "--on-gap", "report"],
            &["--preset", "track"],
        ];
        let mut alone = vec!["--pid", "--fork", "--mount-proc"];
        if stage.is_root() {
            engines.push(&["--engine", "bwrap"]);
        } else {
            // Seen from in there bubblewrap belongs to nobody, and is not used.
            alone.extend(["--user", "--map-root-user"]);
        }
        let start = |engine: &&[&str]| {
            let mut arguments = alone.clone();
            arguments.extend(["/usr/bin/python3", "-c", PROCESS_1]);
            arguments.extend([stage.program.to_str().unwrap(), "run"]);
            arguments.extend(*engine);
            arguments.extend(["--", "/bin/true"]);
            let mut command = stage.other("unshare", &arguments);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        // All at once: each takes its time.
        let started: Vec<Child> = engines.iter().map(start).collect();
        for (engine, child) in engines.iter().zip(started) {
            let ran = child.wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{errors}");
            let counts = String::from_utf8(ran.stdout).unwrap();
            let counts: Vec<usize> = counts.lines().map(|line| line.parse().unwrap()).collect();
            assert_eq!(counts.len(), 5, "{errors}");
            // The control: nobody reaps what the first one leaves, which may be bubblewrap's, too.
            assert!(counts[0] >= 1, "{engine:?}: {counts:?}");
            assert_eq!(counts[4], counts[0], "{engine:?}: {counts:?}");
        }
    });
}
