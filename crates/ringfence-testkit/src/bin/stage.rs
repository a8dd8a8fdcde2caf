//! A network of its own to run a command in: `stage OUTCOME [SPEC]... -- PROGRAM ARGUMENT...`.
//!
//! Started in new network and mount namespaces, with the rights to set them up. Nothing in here
//! can reach any other machine: its addresses, public ones among them, all lie on its own loopback.
//!
//! - `address=A`: this machine has that address.
//! - `name=N=A+B`: the name server knows N. `A/B`: first one, later the other. `!servfail` and
//!   `!silent` are what they say.
//! - `resolver=DIR`: `/etc/resolv.conf` is a link into `/run`, as many distributions have it; copies go
//!   to DIR.
//! - `listen=A:P=KIND`: somebody listens: `http` answers with the request it got, `hello` speaks
//!   first and says everything back, `quiet` only listens, and hangs up when nothing more is said.
//!
//! What was asked and who came is written to OUTCOME as JSON when the command has ended; the exit
//! status is the command's.
#![expect(
    clippy::unwrap_used,
    reason = "a test program: whatever is wrong with it must end the test"
)]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::io::{Read, Write};
    use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
    use std::process::Command;
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, poll};

    /// How long connections may take to end when everybody has. Whoever left somebody behind does not
    /// have all of it told.
    const PATIENCE: Duration = Duration::from_secs(5);

    /// What happened, as the test reads it.
    #[derive(Default)]
    struct Outcome {
        asked: BTreeMap<String, u64>,
        came: BTreeMap<String, u64>,
        said: BTreeMap<String, String>,
        /// Connections that are still served.
        open: usize,
    }

    type Shared = Arc<Mutex<Outcome>>;

    pub(super) fn main() {
        let mut arguments = std::env::args().skip(1);
        let path = arguments.next().unwrap();
        let mut specs: Vec<String> = Vec::new();
        for argument in arguments.by_ref() {
            if argument == "--" {
                break;
            }
            specs.push(argument);
        }
        let command: Vec<String> = arguments.collect();
        run(&["ip", "link", "set", "lo", "up"]);
        let outcome = Shared::default();
        let mut names = BTreeMap::new();
        for spec in &specs {
            match spec.split_once('=').unwrap() {
                ("resolver", directory) => resolver(directory),
                ("address", address) => run(&["ip", "addr", "add", address, "dev", "lo"]),
                ("name", rest) => {
                    let (name, answer) = rest.split_once('=').unwrap();
                    names.insert(name.to_owned(), answer.to_owned());
                }
                _ => {}
            }
        }
        let mut doors = Vec::new();
        for spec in specs.iter().filter_map(|spec| spec.strip_prefix("listen=")) {
            let (address, kind) = spec.split_once('=').unwrap();
            doors.push(Door::open(address.to_owned(), kind.to_owned(), &outcome));
        }
        serve_names(names, &outcome);
        let mut words = command.iter();
        let status = Command::new(words.next().unwrap()).args(words).status();
        let status = status.unwrap();
        // Whoever came right before the end is let in, and whatever was said is heard.
        for door in &doors {
            door.let_in();
        }
        let start = Instant::now();
        while outcome.lock().unwrap().open > 0 && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::write(path, report(&outcome)).unwrap();
        std::process::exit(status.code().unwrap_or(99));
    }

    fn run(words: &[&str]) {
        let status = Command::new(words[0]).args(&words[1..]).status().unwrap();
        assert!(status.success(), "{words:?}");
    }

    /// Makes the file of the resolver a link to one in a `/run` of this network's own.
    fn resolver(directory: &str) {
        const REAL: &str = "/run/systemd/resolve/stub-resolv.conf";
        let etc = format!("{directory}/etc");
        std::fs::create_dir(&etc).unwrap();
        for entry in std::fs::read_dir("/etc").unwrap() {
            let entry = entry.unwrap();
            let copy = format!("{etc}/{}", entry.file_name().to_str().unwrap());
            // What programs need to look names up; a few are enough.
            if entry.file_type().unwrap().is_file() && entry.file_name() != "resolv.conf" {
                let _ = std::fs::copy(entry.path(), copy);
            }
        }
        std::os::unix::fs::symlink(format!("..{REAL}"), format!("{etc}/resolv.conf")).unwrap();
        run(&["mount", "--bind", &etc, "/etc"]);
        run(&["mount", "-t", "tmpfs", "tmpfs", "/run"]);
        std::fs::create_dir_all("/run/systemd/resolve").unwrap();
        std::fs::write(REAL, "nameserver 127.0.0.1\n").unwrap();
    }

    fn report(outcome: &Shared) -> String {
        let outcome = outcome.lock().unwrap();
        serde_json::json!({
            "asked": outcome.asked,
            "came": outcome.came,
            "said": outcome.said,
        })
        .to_string()
    }

    /// Somebody who listens.
    struct Door {
        listener: TcpListener,
        address: String,
        kind: String,
        outcome: Shared,
    }

    impl Door {
        fn open(address: String, kind: String, outcome: &Shared) -> Arc<Self> {
            let listener = TcpListener::bind(&address).unwrap();
            listener.set_nonblocking(true).unwrap();
            outcome.lock().unwrap().came.insert(address.clone(), 0);
            let door = Arc::new(Self {
                listener,
                address,
                kind,
                outcome: Arc::clone(outcome),
            });
            let own = Arc::clone(&door);
            std::thread::spawn(move || {
                loop {
                    let mut watched = [PollFd::new(&own.listener, PollFlags::IN)];
                    // A signal that is caught is nothing to fail for.
                    let _ = poll(&mut watched, None);
                    own.let_in();
                }
            });
            door
        }

        /// Counts and serves everybody who waits to be let in.
        fn let_in(&self) {
            // Held while somebody comes in, so that nobody is in and not counted.
            let mut counted = self.outcome.lock().unwrap();
            while let Ok((stream, _)) = self.listener.accept() {
                *counted.came.entry(self.address.clone()).or_default() += 1;
                counted.open += 1;
                let (address, kind) = (self.address.clone(), self.kind.clone());
                let outcome = Arc::clone(&self.outcome);
                std::thread::spawn(move || {
                    // A client that goes away is nothing to fail for.
                    let _ = match kind.as_str() {
                        "http" => http(stream, &address, &outcome),
                        "hello" => hello(stream, &address, &outcome),
                        _ => quiet(stream, &address, &outcome),
                    };
                    outcome.lock().unwrap().open -= 1;
                });
            }
        }
    }

    fn heard(bytes: &[u8], address: &str, outcome: &Shared) {
        let mut outcome = outcome.lock().unwrap();
        let said = outcome.said.entry(address.to_owned()).or_default();
        said.push_str(&bytes.escape_ascii().to_string());
    }

    fn quiet(mut stream: TcpStream, address: &str, outcome: &Shared) -> std::io::Result<()> {
        let mut bytes = [0; 4096];
        loop {
            let count = stream.read(&mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            heard(&bytes[..count], address, outcome);
            // Whoever has said all there is need not wait for an answer that never comes.
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        }
    }

    fn hello(mut stream: TcpStream, address: &str, outcome: &Shared) -> std::io::Result<()> {
        stream.write_all(b"hello")?;
        let mut bytes = [0; 4096];
        loop {
            let count = stream.read(&mut bytes)?;
            if count == 0 {
                return Ok(());
            }
            heard(&bytes[..count], address, outcome);
            stream.write_all(&bytes[..count])?;
        }
    }

    fn http(mut stream: TcpStream, address: &str, outcome: &Shared) -> std::io::Result<()> {
        let mut held = Vec::new();
        loop {
            let end = loop {
                let end = held.windows(4).position(|window| window == b"\r\n\r\n");
                if let Some(end) = end {
                    break end + 4;
                }
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes)?;
                if count == 0 {
                    heard(&held, address, outcome);
                    return Ok(());
                }
                held.extend_from_slice(&bytes[..count]);
            };
            let head: Vec<u8> = held.drain(..end).collect();
            heard(&head, address, outcome);
            let text = String::from_utf8_lossy(&head).into_owned();
            let length = text.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                let length = name.eq_ignore_ascii_case("content-length");
                length.then(|| value.trim().parse::<usize>().unwrap())
            });
            // Some servers answer before they have read everything.
            let length = length.filter(|_| !text.contains(" /early "));
            while held.len() < length.unwrap_or(0) {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes)?;
                if count == 0 {
                    return Ok(());
                }
                held.extend_from_slice(&bytes[..count]);
            }
            let body: Vec<u8> = held.drain(..length.unwrap_or(0)).collect();
            heard(&body, address, outcome);
            stream.write_all(&answer(&text, &body))?;
        }
    }

    /// An answer that shows the request.
    fn answer(head: &str, body: &[u8]) -> Vec<u8> {
        if head.contains(" /redirect ") {
            let target = "http://denied.test/";
            let text =
                format!("HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n");
            return text.into_bytes();
        }
        if head.contains("Upgrade: ") {
            let changed = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes";
            return changed.as_bytes().to_vec();
        }
        if head.contains(" /chunked ") {
            let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n";
            return text.as_bytes().to_vec();
        }
        let shown = format!(
            "origin saw: {} + {}",
            head.escape_debug(),
            body.escape_ascii()
        );
        let length = shown.len();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nX-Origin: yes\r\n\r\n{shown}")
            .into_bytes()
    }

    fn serve_names(names: BTreeMap<String, String>, outcome: &Shared) {
        let socket = UdpSocket::bind("127.0.0.1:53").unwrap();
        let outcome = Arc::clone(outcome);
        std::thread::spawn(move || {
            let mut asked: BTreeMap<String, u64> = BTreeMap::new();
            loop {
                let mut bytes = [0; 512];
                let (count, asker) = socket.recv_from(&mut bytes).unwrap();
                let question = &bytes[..count];
                let (name, end) = name(question);
                *outcome
                    .lock()
                    .unwrap()
                    .asked
                    .entry(name.clone())
                    .or_default() += 1;
                let address_wanted = question[end..end + 2] == [0, 1];
                let spec = names.get(&name).map(String::as_str);
                let times = asked.entry(name).or_default();
                let spec = match spec.and_then(|spec| spec.split_once('/')) {
                    Some((first, _)) if *times == 0 => Some(first),
                    Some((_, later)) => Some(later),
                    None => spec,
                };
                if address_wanted {
                    *times += 1;
                }
                let (code, addresses) = match spec {
                    None => (3, Vec::new()),
                    Some("!silent") => continue,
                    Some("!servfail") => (2, Vec::new()),
                    Some(list) => (
                        0,
                        list.split('+').map(|text| text.parse().unwrap()).collect(),
                    ),
                };
                let answer = reply(question, end, code, &addresses, address_wanted);
                let _ = socket.send_to(&answer, asker);
            }
        });
    }

    /// The name in a question, and where it ends.
    fn name(question: &[u8]) -> (String, usize) {
        let mut labels = Vec::new();
        let mut at = 12;
        while question[at] != 0 {
            let length = usize::from(question[at]);
            labels.push(String::from_utf8_lossy(&question[at + 1..=at + length]).to_lowercase());
            at += length + 1;
        }
        (labels.join("."), at + 1)
    }

    fn reply(question: &[u8], end: usize, code: u8, addresses: &[IpAddr], wanted: bool) -> Vec<u8> {
        let mut records = Vec::new();
        let mut count = 0;
        for address in addresses {
            let IpAddr::V4(address) = address else {
                continue;
            };
            if wanted {
                count += 1;
                records.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
                records.extend(address.octets());
            }
        }
        let mut out = question[..2].to_vec();
        out.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
        out.extend(&question[12..end + 4]);
        out.extend(records);
        out
    }
}
