//! Sockets of every kind.

use std::io::Read;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;

use rustix::net::{
    AddressFamily, Protocol, RawProtocol, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
    sendto, socket_with, socketpair,
};

use super::{Answer, Arguments, int, number, text};

pub(super) fn perform(name: &str, arguments: Arguments<'_>) -> Option<Answer> {
    Some(match name {
        "tcp" => tcp(text(arguments, 0)),
        "udp" => udp(text(arguments, 0)),
        "unix" => done(UnixStream::connect(Path::new(&arguments[0]))),
        "unix-datagram" => datagram(Path::new(&arguments[0])),
        "unix-pair" => pair(Path::new(&arguments[0]), SocketType::DGRAM),
        "unix-stream-pair" => pair(Path::new(&arguments[0]), SocketType::STREAM),
        "unix-listen" => done(UnixListener::bind(Path::new(&arguments[0]))),
        "abstract" => {
            let address = SocketAddr::from_abstract_name(text(arguments, 0)).unwrap();
            done(UnixStream::connect_addr(&address))
        }
        "listen" => done(TcpListener::bind(text(arguments, 0))),
        "serve-itself" => serve_itself(),
        "serve-for" => serve_for(text(arguments, 0), number(arguments, 1)),
        "socket" => socket(
            number(arguments, 0),
            number(arguments, 1),
            number(arguments, 2),
        ),
        _ => return None,
    })
}

fn done<T, E: Into<std::io::Error>>(result: Result<T, E>) -> Answer {
    result.map(|_done| None).map_err(Into::into)
}

fn tcp(address: &str) -> Answer {
    let mut stream = TcpStream::connect(address)?;
    let mut hello = [0; 5];
    done(stream.read_exact(&mut hello))
}

fn udp(address: &str) -> Answer {
    let any = if address.starts_with('[') {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    done(UdpSocket::bind(any)?.send_to(b"x", address))
}

fn datagram(path: &Path) -> Answer {
    done(UnixDatagram::unbound()?.send_to(b"x", path))
}

/// One end of a connected pair, pointed at somebody else.
fn pair(path: &Path, kind: SocketType) -> Answer {
    let (end, _other) = socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None)?;
    let address = SocketAddrUnix::new(path)?;
    done(sendto(&end, b"x", SendFlags::empty(), &address))
}

fn socket(family: u64, kind: u64, protocol: u64) -> Answer {
    let family = u16::try_from(family).unwrap();
    let protocol = RawProtocol::new(int(protocol).cast_unsigned());
    done(socket_with(
        AddressFamily::from_raw(family),
        SocketType::from_raw(int(kind).cast_unsigned()),
        SocketFlags::CLOEXEC,
        protocol.map(Protocol::from_raw),
    ))
}

/// A server and its client, both in here.
fn serve_itself() -> Answer {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(server.local_addr()?)?;
    let (mut accepted, _from) = server.accept()?;
    std::io::Write::write_all(&mut accepted, b"hello")?;
    let mut hello = [0; 5];
    done(client.read_exact(&mut hello))
}

/// Listens for so many milliseconds; says how many came.
fn serve_for(address: &str, milliseconds: u64) -> Answer {
    let server = TcpListener::bind(address)?;
    server.set_nonblocking(true)?;
    let start = std::time::Instant::now();
    let mut came = 0;
    while start.elapsed().as_millis() < u128::from(milliseconds) {
        match server.accept() {
            Ok(_) => came += 1,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
    Ok(Some(came.to_string()))
}
