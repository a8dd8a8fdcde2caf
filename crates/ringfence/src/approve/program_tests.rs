//! Who answers which question, over a descriptor.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;

use ringfence_core::path::AbsPath;
use ringfence_core::permission::Permissions;
use ringfence_core::policy::{Place, Policy};
use ringfence_core::request::Request;
use ringfence_core::settings::{Kind, Settings};
use serde_json::{Value, json};

use super::*;
use crate::approve::bound::bind;
use crate::place::Lookout;

/// Enough for somebody in the same process.
const LONG: Duration = Duration::from_secs(20);

fn policy() -> Policy {
    let place = Place {
        kind: Kind::Tool,
        os: crate::place::OS,
        home: None,
        account_home: None,
        project: AbsPath::root(),
        own: Vec::new(),
        program: None,
        sockets: Vec::new(),
        toolchains: Vec::new(),
        secrets: Vec::new(),
        runtimes: Vec::new(),
        repositories: Vec::new(),
    };
    let lookout = Lookout::new();
    crate::programs::resolve(&Settings::new(), &place, &lookout).unwrap()
}

/// Asks for a host, and says what came of it.
fn ask(over: &mut OverDescriptor, host: &str) -> Result<Answer, AskError> {
    let host = Permission::Host(host.parse().unwrap());
    let request = Request {
        permissions: [host].into_iter().collect::<Permissions>(),
        reason: None,
    };
    let directory = Path::new("/");
    over.ask(&Question {
        binding: bind(&[], directory, &policy(), &request.permissions),
        command: &[],
        directory,
        request: &request,
        paths: &[],
        thread: None,
        longest: Scope::Always,
        obstacle: None,
    })
}

/// The other end: reads questions, and answers those that it is told to.
struct Peer {
    lines: BufReader<UnixStream>,
}

impl Peer {
    fn question(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn answer(&mut self, question: &Value, word: &str) {
        let answer = json!({
            "version": 1,
            "id": question["id"],
            "binding": question["binding"],
            "answer": word,
        });
        let text = format!("{answer}\n");
        self.lines.get_mut().write_all(text.as_bytes()).unwrap();
    }
}

fn pair(patience: Duration) -> (OverDescriptor, Peer) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let lines = BufReader::new(theirs);
    (OverDescriptor::new(ours.into(), patience), Peer { lines })
}

#[test]
fn an_answer_that_comes_too_late_is_no_answer_to_the_next_question() {
    let (mut over, mut peer) = pair(Duration::from_millis(20));
    for late in ["once", "always"] {
        let answer = ask(&mut over, "late.org");
        assert!(matches!(answer, Err(AskError::TimedOut)), "{answer:?}");
        let question = peer.question();
        over.patience = LONG;
        let next = std::thread::spawn(move || {
            peer.answer(&question, late);
            let question = peer.question();
            peer.answer(&question, "deny");
            peer
        });
        let answer = ask(&mut over, "next.org");
        assert!(
            matches!(answer, Ok(Answer::Deny(Scope::Once))),
            "{answer:?}"
        );
        peer = next.join().unwrap();
        over.patience = Duration::from_millis(20);
    }
}

#[test]
fn half_an_answer_is_not_forgotten() {
    let (mut over, mut peer) = pair(Duration::from_millis(20));
    let stream = peer.lines.get_ref().try_clone().unwrap();
    (&stream).write_all(b"{\"version\":1,").unwrap();
    assert!(ask(&mut over, "late.org").is_err());
    let late = peer.question();
    over.patience = LONG;
    let next = std::thread::spawn(move || {
        let rest = format!(
            "\"id\":{},\"binding\":{},\"answer\":\"always\"}}\n",
            late["id"], late["binding"]
        );
        (&stream).write_all(rest.as_bytes()).unwrap();
        let question = peer.question();
        peer.answer(&question, "once");
    });
    let answer = ask(&mut over, "next.org");
    assert!(
        matches!(answer, Ok(Answer::Allow(Scope::Once))),
        "{answer:?}"
    );
    next.join().unwrap();
}

#[test]
fn only_what_was_offered_and_only_for_this_question_counts() {
    for (change, word) in [
        (None, "thread"),
        (None, "retry"),
        (None, "deny-thread"),
        (None, "yes"),
        (Some(("id", json!("0"))), "once"),
        (Some(("binding", json!("0"))), "once"),
    ] {
        let (mut over, mut peer) = pair(LONG);
        let asked = std::thread::spawn(move || {
            let mut question = peer.question();
            if let Some((key, value)) = change {
                question[key] = value;
            }
            peer.answer(&question, word);
        });
        let answer = ask(&mut over, "a.org");
        assert!(
            matches!(answer, Err(AskError::Answer { .. })),
            "{word}: {answer:?}"
        );
        asked.join().unwrap();
    }
}
