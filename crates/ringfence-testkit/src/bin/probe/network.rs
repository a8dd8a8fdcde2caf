//! Sockets of every kind.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

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
        "unix-serve-itself" => unix_serve_itself(Path::new(&arguments[0])),
        "unix-datagram-itself" => unix_datagram_itself(Path::new(&arguments[0])),
        "unix-serve-for" => unix_serve_for(Path::new(&arguments[0]), number(arguments, 1)),
        "abstract" => {
            let address = SocketAddr::from_abstract_name(text(arguments, 0)).unwrap();
            done(UnixStream::connect_addr(&address))
        }
        "talk" => talk(text(arguments, 0), arguments.get(1..).unwrap_or_default()),
        "resolve" => resolve(text(arguments, 0)),
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

/// Says one thing after the other and tells what came back after each; `\\r`, `\\n`, `\\0` and
/// `\\xNN` are what they are elsewhere.
fn talk(address: &str, words: Arguments<'_>) -> Answer {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut heard = Vec::new();
    for (index, _) in words.iter().enumerate() {
        if let Err(error) = stream.write_all(&unescaped(text(words, index))) {
            heard.extend(format!("<{}>", ringfence_testkit::errno::of(&error)).bytes());
            break;
        }
        let last = index + 1 == words.len();
        loop {
            let mut bytes = [0; 4096];
            match stream.read(&mut bytes) {
                Ok(0) => {
                    heard.extend(b"<end>");
                    break;
                }
                Ok(count) => heard.extend(&bytes[..count]),
                Err(error) => {
                    heard.extend(format!("<{}>", ringfence_testkit::errno::of(&error)).bytes());
                    break;
                }
            }
            if !last {
                break;
            }
            // Whoever has more to say does so soon, even on a busy machine.
            stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        }
    }
    Ok(Some(String::from_utf8_lossy(&heard).into_owned()))
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            out.extend(character.to_string().bytes());
            continue;
        }
        match rest.next().unwrap() {
            'r' => out.push(b'\r'),
            'n' => out.push(b'\n'),
            '0' => out.push(0),
            'x' => {
                let digits: String = rest.by_ref().take(2).collect();
                out.push(u8::from_str_radix(&digits, 16).unwrap());
            }
            other => out.extend(other.to_string().bytes()),
        }
    }
    out
}

fn resolve(name: &str) -> Answer {
    let found = (name, 0).to_socket_addrs()?;
    let mut found: Vec<String> = found.map(|address| address.ip().to_string()).collect();
    found.sort();
    found.dedup();
    Ok(Some(found.join(" ")))
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
    Write::write_all(&mut accepted, b"hello")?;
    let mut hello = [0; 5];
    done(client.read_exact(&mut hello))
}

/// The same at a path.
fn unix_serve_itself(path: &Path) -> Answer {
    let server = UnixListener::bind(path)?;
    let mut client = UnixStream::connect(path)?;
    let (mut accepted, _from) = server.accept()?;
    accepted.write_all(b"hello")?;
    let mut hello = [0; 5];
    done(client.read_exact(&mut hello))
}

/// A datagram to itself, by path.
fn unix_datagram_itself(path: &Path) -> Answer {
    let server = UnixDatagram::bind(path)?;
    UnixDatagram::unbound()?.send_to(b"hello", path)?;
    let mut hello = [0; 5];
    done(server.recv(&mut hello))
}

/// Listens at a path for so many milliseconds, open to everybody.
fn unix_serve_for(path: &Path, milliseconds: u64) -> Answer {
    let server = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777))?;
    let _thread = std::thread::spawn(move || server.incoming().flatten().for_each(drop));
    std::thread::sleep(Duration::from_millis(milliseconds));
    Ok(None)
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
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    Ok(Some(came.to_string()))
}
