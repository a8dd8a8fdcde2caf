//! Services of the host that nobody inside may reach, and a process that nobody inside may touch.

use std::io::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often somebody came.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// So often, once at least so many have arrived: who has been sent off may still be on the way.
    #[track_caller]
    pub fn at_least(&self, count: usize) -> usize {
        let arrived = || self.0.load(Ordering::SeqCst) >= count;
        crate::wait_until(&format!("{count} arrive"), arrived);
        self.settled()
    }

    /// So often, after a moment for those who are on the way.
    pub fn settled(&self) -> usize {
        std::thread::sleep(Duration::from_millis(30));
        self.0.load(Ordering::SeqCst)
    }

    fn count(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// One listener of each kind. Their threads end with the test's process.
#[derive(Debug)]
pub struct Listeners {
    /// `127.0.0.1` and `[::1]`, with their ports.
    pub tcp: Vec<String>,
    /// An UDP socket on the loopback.
    pub udp: String,
    /// The name of an abstract socket.
    pub abstract_name: String,
    /// Connections and packets that arrived on any of them.
    pub arrived: Counter,
}

impl Listeners {
    /// Starts all of them; the unix sockets as `stream.sock` and `dgram.sock` in `directory`, open
    /// to everybody.
    pub fn start(directory: &Path) -> Self {
        let arrived = Counter::default();
        let mut tcp = Vec::new();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            tcp.push(listener.local_addr().unwrap().to_string());
            let counter = arrived.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    counter.count();
                    let _ = stream.map(|mut stream| stream.write_all(b"hello"));
                }
            });
        }
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let udp_address = udp.local_addr().unwrap().to_string();
        let counter = arrived.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while udp.recv(&mut buffer).is_ok() {
                counter.count();
            }
        });
        let abstract_name = format!("ringfence-{}", directory.display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        accept(UnixListener::bind_addr(&address).unwrap(), &arrived);
        let stream = directory.join("stream.sock");
        accept(UnixListener::bind(&stream).unwrap(), &arrived);
        let dgram = directory.join("dgram.sock");
        let socket = UnixDatagram::bind(&dgram).unwrap();
        for path in [stream, dgram] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let counter = arrived.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while socket.recv(&mut buffer).is_ok() {
                counter.count();
            }
        });
        Self {
            tcp,
            udp: udp_address,
            abstract_name,
            arrived,
        }
    }
}

fn accept(listener: UnixListener, arrived: &Counter) {
    let counter = arrived.clone();
    std::thread::spawn(move || {
        for _stream in listener.incoming() {
            counter.count();
        }
    });
}

/// A process of the host's, of the user who launches.
#[derive(Debug)]
pub struct Canary(Child);

impl Canary {
    /// Starts it.
    pub fn start(command: &mut Command) -> Self {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Fails the test unless it lives.
    #[track_caller]
    pub fn assert_alive(&mut self) {
        assert_eq!(self.0.try_wait().unwrap(), None, "the canary is dead");
    }

    /// Ends it, and says whether somebody else had done so before.
    ///
    /// Of two signals that end a process the kernel keeps the first, however long the process
    /// takes to follow it: so this needs no time to be sure.
    pub fn was_ended_before(mut self) -> bool {
        self.0.kill().unwrap();
        let status = self.0.wait().unwrap();
        status.signal() != Some(libc::SIGKILL)
    }
}

impl Drop for Canary {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
