//! What a session tells whoever holds it, while it happens.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use ringfence::audit::Denied;
use ringfence::core::plan::LimitName;
use ringfence::launch::{Answer, Decider, Destination};
use ringfence::{Cause, Event, Happened, Policy, Running, Sandbox, Signal, Size, Stdio};
use rustix::event::{PollFd, PollFlags, poll};

use crate::policies::place;
use crate::world::also_as_plain_user;

fn next(session: &mut Running) -> Happened {
    session.events().next().unwrap().happened
}

fn json(event: &Event) -> serde_json::Value {
    serde_json::from_str(&event.to_json().unwrap()).unwrap()
}

#[test]
fn events_come_in_order_and_end_with_the_report() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    for terminal in [false, true] {
        let mut command = sandbox.command("sh");
        command
            .args(["-c", "kill -STOP $$; read x; exit 9"])
            .stdin(Stdio::piped());
        if terminal {
            command.pty(Size::default());
        }
        let mut session = command.spawn().unwrap();
        let Happened::Started(started) = next(&mut session) else {
            panic!("it starts");
        };
        assert_eq!(
            (&*started.command[0], started.process),
            ("sh".as_ref(), session.id())
        );
        let stopped = next(&mut session);
        assert!(
            matches!(stopped, Happened::Stopped { signal: 19 }),
            "{stopped:?}"
        );
        session.signal(Signal::CONT);
        let continued = next(&mut session);
        assert!(matches!(continued, Happened::Continued), "{continued:?}");
        session.stdin.take().unwrap().write_all(b"x\n").unwrap();
        let rest: Vec<Event> = session.events().collect();
        let [Happened::Ended(ended)] = &rest
            .iter()
            .map(|event| event.happened.clone())
            .collect::<Vec<_>>()[..]
        else {
            panic!("{rest:?}");
        };
        assert_eq!(ended.report.cause, Cause::Exited { status: 9 });
        assert!(session.try_event().unwrap().is_none());
    }
    also_as_plain_user("events::events_come_in_order_and_end_with_the_report");
}

#[test]
fn events_say_whose_they_are() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let events = |script: &str| -> Vec<Event> {
        let mut session = sandbox.command("sh").args(["-c", script]).spawn().unwrap();
        session.events().collect()
    };
    let (one, other) = (events("mkdir .vscode; exit 0"), events("exit 0"));
    assert_eq!((one.len(), other.len()), (3, 2), "{one:?} {other:?}");
    for event in &one {
        assert_eq!(event.session.id, one[0].session.id);
        assert!(event.session.name.starts_with("sh-"), "{event:?}");
        let json = json(event);
        assert_eq!(json["session"], *event.session.id);
        assert_eq!(json["name"], *event.session.name);
    }
    assert_ne!(one[0].session.id, other[0].session.id);
}

/// Tries everything that ringfence itself says no to, and waits until somebody has heard of it.
const TRIES: &str = "
import os, socket, sys
def tried(act):
    try: act()
    except OSError as error: print(error, file=sys.stderr)
for _ in range(3):
    tried(lambda: os.mkdir('.vscode'))
    tried(lambda: socket.socket(socket.AF_UNIX).connect('host.socket'))
    tried(lambda: socket.create_connection(('denied.test', 80)))
sys.stdin.read()
";

#[test]
fn denials_are_told_while_the_session_runs() {
    let (_top, project) = place();
    // Outside all of it works, as far as there is a name service.
    let listener = UnixListener::bind(project.join("host.socket")).unwrap();
    let policy = Policy::agent(&project).host("allowed.test");
    let sandbox = Sandbox::new(policy).unwrap();
    let mut command = sandbox.command("python3");
    command
        .args(["-c", TRIES])
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    let mut session = command.spawn().unwrap();
    assert!(matches!(next(&mut session), Happened::Started(_)));
    let mut told = Vec::new();
    for _ in 0..3 {
        let event = session.events().next().unwrap();
        let line = json(&event);
        assert_eq!(
            (&line["version"], &line["event"]),
            (&1.into(), &"denial".into())
        );
        assert!(
            line["time"]
                .as_str()
                .is_some_and(|time| time.ends_with('Z'))
        );
        let Happened::Denied(denial) = event.happened else {
            panic!("{event:?}");
        };
        assert_eq!(line["target"], denial.target);
        told.push((denial.what, denial.fix));
    }
    // Still running: nobody has closed its input.
    assert!(session.try_wait().unwrap().is_none());
    told.sort_by_key(|(_, fix)| fix.clone());
    assert_eq!(
        told[0],
        (Denied::Host, "--allow-host denied.test".to_owned())
    );
    assert_eq!(
        told[1],
        (Denied::Name, "--allow-protected .vscode".to_owned())
    );
    assert_eq!(told[2].0, Denied::UnixSocket);
    assert!(told[2].1.starts_with("--unix-socket "), "{}", told[2].1);
    drop(session.stdin.take());
    let rest: Vec<Event> = session.events().collect();
    let [
        Event {
            happened: Happened::Ended(ended),
            ..
        },
    ] = &rest[..]
    else {
        panic!("each is told once: {rest:?}");
    };
    assert!(ended.report.success());
    assert_eq!(
        ended.report.denials[0].count, 3,
        "{:?}",
        ended.report.denials
    );
    assert!(!project.join(".vscode").try_exists().unwrap());
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "nobody came");
    also_as_plain_user("events::denials_are_told_while_the_session_runs");
}

#[derive(Debug)]
struct No;

impl Decider for No {
    fn decide(&self, _destination: &Destination) -> Answer {
        Answer::Deny
    }
}

#[test]
fn answers_are_told() {
    let (_top, project) = place();
    let policy = Policy::agent(&project).host("allowed.test");
    let sandbox = Sandbox::new(policy).unwrap();
    let script = "import socket
try: print(socket.create_connection(('asked.test', 80)).recv(1))
except OSError: pass";
    let mut command = sandbox.command("python3");
    command.args(["-c", script]).asking(Arc::new(No));
    let mut session = command.spawn().unwrap();
    let events: Vec<Event> = session.events().collect();
    let decided = events
        .iter()
        .find(|event| matches!(event.happened, Happened::Decided { .. }));
    let line = json(decided.unwrap());
    assert_eq!(line["event"], "decision");
    assert_eq!(
        (&line["request"], &line["answer"]),
        (&"asked.test:80".into(), &"denied".into())
    );
    let denied = events.iter().any(|event| matches!(&event.happened, Happened::Denied(denial) if denial.target == "asked.test:80"));
    assert!(denied, "{events:?}");
    also_as_plain_user("events::answers_are_told");
}

#[test]
fn a_limit_is_told_before_the_end() {
    let (_top, project) = place();
    let policy = Policy::agent(&project).wall_time(Duration::from_secs(1));
    let sandbox = Sandbox::new(policy).unwrap();
    let mut session = sandbox.command("sleep").arg("1000").spawn().unwrap();
    let events: Vec<Event> = session.events().collect();
    let names: Vec<serde_json::Value> = events
        .iter()
        .map(|event| json(event)["event"].clone())
        .collect();
    assert_eq!(names, ["start", "limit", "end"]);
    let limit = &events[1].happened;
    assert!(
        matches!(limit, Happened::Limited(LimitName::Wall)),
        "{limit:?}"
    );
    let end = json(&events[2]);
    assert_eq!(
        (&end["cause"], &end["engine"]),
        (&"wall-time".into(), &"namespaces".into())
    );
}

/// A command that does nothing but stop and go on cannot fill its holder's memory.
#[test]
fn a_storm_of_stops_is_not_told_without_end() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let storm = "import os, signal, time
parent = os.getpid()
if os.fork() == 0:
    for _ in range(5000):
        os.kill(parent, signal.SIGSTOP); time.sleep(0.0002); os.kill(parent, signal.SIGCONT); time.sleep(0.0002)
    os.kill(parent, signal.SIGTERM)
    os._exit(0)
while True: time.sleep(1)";
    let mut session = sandbox
        .command("python3")
        .args(["-c", storm])
        .spawn()
        .unwrap();
    assert_eq!(session.wait().unwrap().cause, Cause::Killed { signal: 15 });
    let told = session.events().count();
    let _ = writeln!(
        std::io::stderr(),
        "{told} events of 10000 stops and continues were told"
    );
    assert!((3..=1026).contains(&told), "{told}");
}

#[test]
fn events_can_be_polled_for() {
    let (_top, project) = place();
    let sandbox = Sandbox::new(Policy::agent(&project)).unwrap();
    let mut session = sandbox
        .command("mkdir")
        .arg(".vscode")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut told = Vec::new();
    while !matches!(told.last(), Some(Happened::Ended(_))) {
        while let Some(event) = session.try_event().unwrap() {
            told.push(event.happened);
        }
        if !matches!(told.last(), Some(Happened::Ended(_))) {
            poll(
                &mut [PollFd::from_borrowed_fd(session.events_fd(), PollFlags::IN)],
                None,
            )
            .unwrap();
        }
    }
    assert!(
        matches!(
            &told[..],
            [
                Happened::Started(_),
                Happened::Denied(_),
                Happened::Ended(_)
            ]
        ),
        "{told:?}"
    );
}
