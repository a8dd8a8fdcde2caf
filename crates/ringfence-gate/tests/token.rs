//! A gate on a port of the host's loopback, which every process of the machine can knock at: who says
//! the session's token is served, and nobody else. The clients are curl, and bare sockets for what curl
//! would never say.

#![cfg(unix)]

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
    use std::process::Command;
    use std::sync::{Arc, Mutex};

    use ringfence_core::origin::{Located, Origin};
    use ringfence_core::policy::Network;
    use ringfence_gate::dial::Dialer;
    use ringfence_gate::event::Outcome;
    use ringfence_gate::judge::Judge;
    use ringfence_gate::lookup::System;
    use ringfence_gate::serve::{Doors, Gate};
    use ringfence_gate::token::Token;
    use ringfence_gate::upstream::Upstreams;

    /// A server, and every head it was sent.
    struct Origins {
        address: SocketAddr,
        heads: Arc<Mutex<Vec<String>>>,
    }

    impl Origins {
        fn new() -> Self {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = listener.local_addr().unwrap();
            let heads = Arc::new(Mutex::new(Vec::new()));
            let kept = Arc::clone(&heads);
            // It ends with the test.
            std::thread::spawn(move || {
                for client in listener.incoming().flatten() {
                    let kept = Arc::clone(&kept);
                    std::thread::spawn(move || answer(client, &kept));
                }
            });
            Self { address, heads }
        }

        fn heads(&self) -> Vec<String> {
            self.heads.lock().unwrap().clone()
        }
    }

    /// Answers requests for as long as there are any.
    fn answer(mut client: TcpStream, heads: &Mutex<Vec<String>>) {
        let mut text = Vec::new();
        let mut piece = [0; 1024];
        while let Ok(count @ 1..) = client.read(&mut piece) {
            text.extend_from_slice(&piece[..count]);
            if text.ends_with(b"\r\n\r\n") {
                let head = String::from_utf8(std::mem::take(&mut text)).unwrap();
                heads.lock().unwrap().push(head);
                let reached = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nreached";
                client.write_all(reached).unwrap();
            }
        }
    }

    /// A session's gate, as a machine without namespaces would have it.
    struct Session {
        gate: Gate,
        address: SocketAddr,
        token: Option<Token>,
    }

    impl Session {
        fn new(reachable: SocketAddr, token: Option<Token>) -> Self {
            let origin = Origin::Flag {
                name: "--allow-host",
            };
            let host = Located::new(reachable.to_string().parse().unwrap(), origin.clone());
            let network = Network::of_hosts(vec![host], origin);
            let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = door.local_addr().unwrap();
            let doors = Doors {
                proxy: Some(door.into()),
                token: token.clone(),
                ..Doors::default()
            };
            let dialer = Dialer {
                judge: Arc::new(Judge::new(network)),
                lookup: Box::new(System),
                upstreams: Upstreams::default(),
            };
            let gate = Gate::open(doors, dialer).unwrap();
            Self {
                gate,
                address,
                token,
            }
        }

        fn with_token(reachable: SocketAddr) -> Self {
            Self::new(reachable, Some(Token::random().unwrap()))
        }

        /// Name and password, as a session's variables have them.
        fn credentials(&self) -> String {
            let proxy = self.token.as_ref().unwrap().proxy(self.address);
            let (_, rest) = proxy.split_once("://").unwrap();
            rest.split_once('@').unwrap().0.to_owned()
        }

        fn password(&self) -> String {
            self.credentials().split_once(':').unwrap().1.to_owned()
        }

        /// Sends one thing after another over one connection, each once the last was answered.
        fn say(&self, words: &[&[u8]]) -> String {
            let mut client = TcpStream::connect(self.address).unwrap();
            let mut heard = Vec::new();
            for word in words {
                // Whoever has hung up already has said all there is.
                let _ = client.write_all(word);
                let from = heard.len();
                let mut piece = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut piece) {
                    heard.extend_from_slice(&piece[..count]);
                    let answer = &heard[from..];
                    if !answer.starts_with(b"HTTP") || answer.ends_with(b"reached") {
                        break;
                    }
                }
            }
            String::from_utf8_lossy(&heard).into_owned()
        }
    }

    /// The ways in which curl uses a proxy.
    const WAYS: [&[&str]; 3] = [&["http"], &["http", "--proxytunnel"], &["socks5h"]];

    struct Done {
        /// curl's own status.
        status: i32,
        /// The proxy's status and what came of it.
        said: String,
    }

    fn curl(way: &[&str], credentials: &str, proxy: SocketAddr, origin: SocketAddr) -> Done {
        let [scheme, flags @ ..] = way else {
            unreachable!()
        };
        let at = if credentials.is_empty() { "" } else { "@" };
        let done = Command::new("curl")
            .env_clear()
            .args(["--silent", "--max-time", "20", "--noproxy", ""])
            .args(["--write-out", " %{http_code} %{http_connect}"])
            .args(["--proxy", &format!("{scheme}://{credentials}{at}{proxy}")])
            .args(flags)
            .arg(format!("http://{origin}/x"))
            .output()
            .unwrap();
        Done {
            status: done.status.code().unwrap(),
            said: String::from_utf8(done.stdout).unwrap(),
        }
    }

    #[test]
    fn the_session_is_served_and_strangers_are_not() {
        let origins = Origins::new();
        let session = Session::with_token(origins.address);
        let other = Session::with_token(origins.address);
        let own = session.credentials();
        let wrong = own.replace(|letter: char| letter.is_ascii_digit(), "f");
        for way in WAYS {
            let ask = |credentials: &str| curl(way, credentials, session.address, origins.address);
            let before = origins.heads().len();
            let served = ask(&own);
            assert_eq!(served.status, 0, "{way:?}: {}", served.said);
            assert!(
                served.said.starts_with("reached 200"),
                "{way:?}: {}",
                served.said
            );
            assert_eq!(origins.heads().len(), before + 1, "{way:?}");
            for credentials in [
                "",
                "ringfence:",
                "ringfence:0",
                &wrong,
                &other.credentials(),
            ] {
                let refused = ask(credentials);
                let what = format!("{way:?} {credentials}: {}", refused.said);
                assert!(!refused.said.contains("reached"), "{what}");
                match way {
                    // The proxy's own status, where there is one.
                    ["socks5h"] => assert_eq!(refused.status, 97, "{what}"),
                    _ => assert!(refused.said.contains("407"), "{what}"),
                }
                assert_eq!(origins.heads().len(), before + 1, "{what}");
            }
        }
        let (attempts, _) = session.gate.attempts();
        let count = |outcome| {
            let all = attempts.iter().filter(|attempt| attempt.verdict == outcome);
            all.map(|attempt| attempt.times.max(1)).sum::<u64>()
        };
        assert_eq!(count(Outcome::Allowed), 3, "{attempts:?}");
        assert_eq!(count(Outcome::Refused), 15, "{attempts:?}");
    }

    #[test]
    fn without_a_token_anybody_would_be_served() {
        let origins = Origins::new();
        let session = Session::new(origins.address, None);
        for way in WAYS {
            let served = curl(way, "", session.address, origins.address);
            assert!(
                served.said.starts_with("reached 200"),
                "{way:?}: {}",
                served.said
            );
        }
    }

    #[test]
    fn the_token_goes_no_further_than_the_gate() {
        let origins = Origins::new();
        let session = Session::with_token(origins.address);
        for way in WAYS {
            let served = curl(
                way,
                &session.credentials(),
                session.address,
                origins.address,
            );
            assert!(
                served.said.starts_with("reached"),
                "{way:?}: {}",
                served.said
            );
        }
        // Wrong ones might be right elsewhere.
        curl(
            WAYS[0],
            "ringfence:a-word",
            session.address,
            origins.address,
        );
        let heads = origins.heads();
        assert_eq!(heads.len(), 3);
        for head in &heads {
            assert!(head.starts_with("GET /x HTTP/1.1\r\n"), "{head}");
            assert!(
                !head.to_ascii_lowercase().contains("authorization"),
                "{head}"
            );
        }
        let told = format!("{:?} {:?}", session.gate, session.gate.attempts());
        for secret in [session.password().as_str(), "a-word"] {
            assert!(!told.contains(secret), "{told}");
            assert!(heads.iter().all(|head| !head.contains(secret)));
        }
    }

    #[test]
    fn every_request_of_a_connection_says_it() {
        let origins = Origins::new();
        let session = Session::with_token(origins.address);
        let origin = origins.address;
        let basic = base64(&session.credentials());
        let known = format!(
            "GET http://{origin}/x HTTP/1.1\r\nHost: {origin}\r\nProxy-Authorization: Basic {basic}\r\n\r\n"
        );
        let unknown = format!("GET http://{origin}/x HTTP/1.1\r\nHost: {origin}\r\n\r\n");
        let twice = session.say(&[known.as_bytes(), known.as_bytes()]);
        assert_eq!(twice.matches("reached").count(), 2, "{twice}");
        let then_not = session.say(&[known.as_bytes(), unknown.as_bytes()]);
        assert_eq!(then_not.matches("reached").count(), 1, "{then_not}");
        assert!(
            then_not.contains("407 Proxy Authentication Required"),
            "{then_not}"
        );
        assert!(then_not.contains("Proxy-Authenticate: Basic"), "{then_not}");
        // Two that say different things say nothing.
        let both = known.replace("\r\n\r\n", "\r\nProxy-Authorization: Basic eA==\r\n\r\n");
        assert!(session.say(&[both.as_bytes()]).contains("407"));
        // What is asked of no proxy is no way around it.
        let plain = format!("GET /x HTTP/1.1\r\nHost: {origin}\r\n\r\n");
        assert!(session.say(&[plain.as_bytes()]).contains("407"));
        assert_eq!(origins.heads().len(), 3);
    }

    #[test]
    fn no_words_of_socks_lead_around_the_password() {
        let origins = Origins::new();
        let session = Session::with_token(origins.address);
        let mut request = vec![5, 1, 0, 1, 127, 0, 0, 1];
        request.extend(origins.address.port().to_be_bytes());
        let word = |user: &str, password: &str| {
            let mut out = vec![1];
            for part in [user, password] {
                out.push(u8::try_from(part.len()).unwrap());
                out.extend_from_slice(part.as_bytes());
            }
            out
        };
        let right = word("ringfence", &session.password());
        let get = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n";
        let served = session.say(&[&[5, 2, 0, 2], &right, &request, get]);
        assert!(served.contains("reached"), "{served:?}");
        let before = origins.heads().len();
        let wrong = word("ringfence", &"0".repeat(32));
        let tries: [&[&[u8]]; 5] = [
            // No authentication is not chosen, and the request is not heard.
            &[&[5, 1, 0], &request, get],
            &[&[5, 2, 0, 2], &wrong, &request, get],
            // The request in the place of the password.
            &[&[5, 1, 2], &request, get],
            &[&[5, 1, 2], &[1, 0, 0], &request, get],
            // An older version knows no password at all.
            &[&[4, 1, 0, 80, 127, 0, 0, 1, 0], get],
        ];
        for (index, words) in tries.iter().enumerate() {
            let heard = session.say(words);
            assert!(!heard.contains("reached"), "{index}: {heard:?}");
        }
        assert_eq!(origins.heads().len(), before);
    }

    /// As HTTP spells bytes; written out here, so that the gate's own is not held against itself.
    fn base64(text: &str) -> String {
        let done = Command::new("sh")
            .arg("-c")
            .arg("printf %s \"$1\" | base64 | tr -d '\\n'")
            .args(["sh", text])
            .output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    }
}
