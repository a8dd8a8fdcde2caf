//! HTTP/1 requests that are passed on one by one.
//!
//! Each request is read whole, judged, and written anew for its own host: what a client says about
//! an earlier request holds for that request alone. Bodies are carried in the pieces they come in,
//! with their lengths checked; answers likewise. Nothing is followed and nothing is kept.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ringfence_core::host::Host;

use crate::Destination;
use crate::event::{Entry, Log, Outcome, Way};
use crate::head::{self, Body, Request, Response, Version};
use crate::refusal::{Failure, Refusal};
use crate::relay::relay;
use crate::serve::Shared;
use crate::stream::Stream;

/// How long a client may take for a head, and may be idle between two.
const HEAD: Duration = Duration::from_mins(1);
/// How long either side may be silent in the middle of something.
const SILENCE: Duration = Duration::from_mins(10);
/// How much of a body is carried at once.
const PIECE: usize = 64 << 10;
/// How long a line between two chunks may be.
const LONGEST_LINE: usize = 4096;

/// The fields of a connection that becomes a web socket.
const WEBSOCKET: &[u8] = b"Connection: Upgrade\r\nUpgrade: websocket\r\n";

/// What the clients of a door mean when they do not say where to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Door<'d> {
    /// They speak to a proxy.
    Proxy,
    /// They believe that they speak to this host; the attempt is written down already.
    Direct(&'d Destination, &'d Arc<Entry>),
}

/// What to do after a client was served.
pub(crate) enum Next {
    /// A tunnel was asked for; nothing was answered yet.
    Tunnel(Destination),
    /// Nothing more.
    Over,
}

/// A connection that is kept for the next request to the same host.
struct Kept {
    destination: Destination,
    stream: Stream,
}

/// Serves requests until the client has had enough.
///
/// Of a door that leads to one host, `server` is the connection to it.
pub(crate) fn serve(
    shared: &Shared,
    client: &mut Stream,
    server: Option<Stream>,
    door: Door<'_>,
) -> io::Result<Next> {
    let mut kept = match (door, server) {
        (Door::Direct(destination, _), Some(stream)) => Some(Kept {
            destination: destination.clone(),
            stream,
        }),
        _ => None,
    };
    loop {
        let Some(text) = read_head(client)? else {
            return Ok(Next::Over);
        };
        let request = match Request::parse(&text) {
            Ok(request) => request,
            Err(error) => return refuse(shared, client, "GET", &malformed(&error), door),
        };
        let method = request.method;
        if matches!(door, Door::Proxy) && !is_known(shared, &request) {
            shared.log.stranger(Way::Http);
            return answer(client, method, &Refusal::Stranger);
        }
        if method == "CONNECT" && matches!(door, Door::Proxy) {
            return match Destination::parse(request.target.as_bytes(), None) {
                Ok(destination) => Ok(Next::Tunnel(destination)),
                Err(error) => {
                    let log = &shared.log;
                    log.refused(Way::Connect, request.target, 0, &error.to_string(), None);
                    answer(client, method, &malformed(&error))
                }
            };
        }
        let asked = match Asked::new(&request, door) {
            Ok(asked) => asked,
            Err(refusal) => return refuse(shared, client, method, &refusal, door),
        };
        match pass_on(shared, client, &mut kept, &asked, door)? {
            Passed::Again => {}
            Passed::Over => return Ok(Next::Over),
        }
    }
}

/// Whether a request comes from the session, where others could send one.
fn is_known(shared: &Shared, request: &Request<'_>) -> bool {
    let Some(token) = &shared.token else {
        return true;
    };
    let said = request.fields.one("proxy-authorization");
    said.ok().flatten().is_some_and(|said| token.is_in(said))
}

/// A request that can be passed on.
struct Asked<'r> {
    request: &'r Request<'r>,
    destination: Destination,
    path: String,
    body: Body,
}

enum Passed {
    Again,
    Over,
}

fn malformed(error: &dyn std::error::Error) -> Refusal {
    Refusal::Malformed {
        why: error.to_string(),
    }
}

fn misfit(why: &str) -> Refusal {
    Refusal::Malformed {
        why: why.to_owned(),
    }
}

impl<'r> Asked<'r> {
    fn new(request: &'r Request<'r>, door: Door<'_>) -> Result<Self, Refusal> {
        let body = request.body().map_err(|error| malformed(&error))?;
        let host = request.fields.one("host");
        let host = host.map_err(|_| misfit("there is more than one Host"))?;
        if request.method == "CONNECT" || request.method == "PRI" {
            return Err(misfit("this method has no place here"));
        }
        let said = match host {
            None if request.version == Version::Http11 => return Err(misfit("there is no Host")),
            None => None,
            Some(host) => {
                let parsed = Destination::parse(host, Some(understood(door)));
                Some(parsed.map_err(|error| malformed(&error))?)
            }
        };
        let (destination, path) = match door {
            Door::Proxy => absolute(request.target)?,
            Door::Direct(destination, _) => {
                let path = request.target;
                if !path.starts_with('/') && path != "*" {
                    return Err(misfit("this is not a proxy; the target is not a path"));
                }
                (destination.clone(), path.to_owned())
            }
        };
        match said {
            Some(said) if said != destination => Err(misfit("the Host is not the one asked for")),
            _ => Ok(Self {
                request,
                destination,
                path,
                body,
            }),
        }
    }

    /// The head as it is passed on.
    fn head(&self) -> Vec<u8> {
        let request = self.request;
        let mut out = format!(
            "{} {} {}\r\nHost: {}\r\n",
            request.method,
            self.path,
            request.version.as_str(),
            self.destination.host_header()
        )
        .into_bytes();
        fields(&mut out, request.fields.end_to_end());
        if self.body == Body::Chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        if self.wants_websocket() {
            out.extend_from_slice(WEBSOCKET);
        }
        out.extend_from_slice(b"\r\n");
        out
    }

    /// Whether the connection is to become a web socket: one stream to the host that was judged. No
    /// other protocol is changed to, since it might carry requests of its own.
    fn wants_websocket(&self) -> bool {
        let fields = &self.request.fields;
        let websocket = fields.one("upgrade").ok().flatten();
        websocket.is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
            && fields.lists("connection", "upgrade")
            && self.body == Body::Length(0)
    }

    fn client_stays(&self) -> bool {
        let fields = &self.request.fields;
        let closes =
            fields.lists("connection", "close") || fields.lists("proxy-connection", "close");
        self.request.version == Version::Http11 && !closes
    }
}

fn understood(door: Door<'_>) -> u16 {
    match door {
        Door::Proxy => 80,
        Door::Direct(destination, _) => destination.port,
    }
}

/// Host and path of a whole address.
fn absolute(target: &str) -> Result<(Destination, String), Refusal> {
    let rest = match target.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some(_) => {
            return Err(misfit(
                "only http:// is passed on; use CONNECT for the rest",
            ));
        }
        None => return Err(misfit("this is a proxy; the target has no host")),
    };
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    let destination = Destination::parse(authority.as_bytes(), Some(80));
    let destination = destination.map_err(|error| malformed(&error))?;
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    };
    Ok((destination, path))
}

fn fields<'f>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'f str, &'f [u8])>) {
    for (name, value) in fields {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }
}

/// Reads a head; `None` if the client ends before one begins.
fn read_head(stream: &mut Stream) -> io::Result<Option<Vec<u8>>> {
    let deadline = Instant::now() + HEAD;
    loop {
        match head::end(&stream.buffer) {
            Ok(Some(end)) => return Ok(Some(stream.take(end))),
            Ok(None) => {}
            // Read as it is, it says what is wrong with it.
            Err(_) => {
                let all = stream.buffer.len();
                return Ok(Some(stream.take(all)));
            }
        }
        if stream.fill(deadline)? == 0 {
            return Ok(None);
        }
    }
}

fn refuse(
    shared: &Shared,
    client: &mut Stream,
    method: &str,
    refusal: &Refusal,
    door: Door<'_>,
) -> io::Result<Next> {
    match door {
        Door::Proxy => {
            let line = refusal.line();
            shared
                .log
                .refused(Way::Http, "(unreadable)", 0, &line, None);
        }
        Door::Direct(_, entry) => entry.refuses(Outcome::Refused, refusal),
    }
    answer(client, method, refusal)
}

fn answer(client: &mut Stream, method: &str, refusal: &Refusal) -> io::Result<Next> {
    client.write_all(&refusal.to_http(method), HEAD)?;
    Ok(Next::Over)
}

fn begin(log: &Log, asked: &Asked<'_>, door: Door<'_>) -> Arc<Entry> {
    match door {
        Door::Proxy => log.begin(Way::Http, &asked.destination),
        Door::Direct(_, entry) => Arc::clone(entry),
    }
}

/// Passes one request on, and its answer back.
fn pass_on(
    shared: &Shared,
    client: &mut Stream,
    kept: &mut Option<Kept>,
    asked: &Asked<'_>,
    door: Door<'_>,
) -> io::Result<Passed> {
    let entry = begin(&shared.log, asked, door);
    let method = asked.request.method;
    let refused = |client: &mut Stream, outcome, refusal: &Refusal| {
        entry.refuses(outcome, refusal);
        answer(client, method, refusal).map(|_| Passed::Over)
    };
    // Every request is judged, whatever was allowed before it.
    match shared.dialer.decide(&asked.destination) {
        Ok(rule) => entry.allowed(&rule),
        Err(refusal) => return refused(client, Outcome::Refused, &refusal),
    }
    let reused = kept
        .take()
        .filter(|kept| kept.destination == asked.destination);
    let mut server = match reused {
        Some(kept) => kept.stream,
        None => match shared.dialer.dial(&asked.destination, &client.stop) {
            Ok(server) => server,
            Err(refusal) => return refused(client, outcome(&refusal), &refusal),
        },
    };
    if asked.request.fields.lists("expect", "100-continue") {
        client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n", SILENCE)?;
    }
    let sent = server
        .write_all(&asked.head(), SILENCE)
        .and_then(|()| carry(client, &mut server, asked.body, &entry.sent));
    if let Err(error) = &sent
        && error.kind() == ErrorKind::InvalidData
    {
        return refused(client, Outcome::Refused, &misfit("its body is malformed"));
    }
    // A server may answer before it has read everything. But what is then left of the body must
    // never pass for a request.
    let broken = || Refusal::Unreachable {
        destination: asked.destination.clone(),
        failure: Failure::Unreachable,
    };
    let Ok(Some(text)) = response_head(&mut server) else {
        return refused(client, Outcome::Failed, &broken());
    };
    let response = Response::parse(&text);
    let body = response.as_ref().map_err(|error| *error);
    let body = body.and_then(|response| response.body(method));
    let (Ok(response), Ok(body)) = (response, body) else {
        return refused(client, Outcome::Failed, &broken());
    };
    if response.status == 101 {
        return if asked.wants_websocket() {
            client.write_all(&changing_text(&response), SILENCE)?;
            let ended = relay(client, &mut server, &entry, None);
            entry.done();
            ended.map(|_| Passed::Over)
        } else {
            refused(client, Outcome::Failed, &broken())
        };
    }
    let stays = asked.client_stays() && body != Body::Unsaid && sent.is_ok();
    client.write_all(&response_text(&response, body, stays), SILENCE)?;
    carry(&mut server, client, body, &entry.received)?;
    entry.done();
    let server_stays =
        response.version == Version::Http11 && !response.fields.lists("connection", "close");
    if stays && server_stays {
        *kept = Some(Kept {
            destination: asked.destination.clone(),
            stream: server,
        });
    }
    Ok(if stays { Passed::Again } else { Passed::Over })
}

fn outcome(refusal: &Refusal) -> Outcome {
    match refusal {
        Refusal::Unreachable { .. } => Outcome::Failed,
        _ => Outcome::Refused,
    }
}

/// The head of the answer that counts: those before it only say that there will be one.
fn response_head(server: &mut Stream) -> io::Result<Option<Vec<u8>>> {
    const MOST: usize = 8;
    for _ in 0..MOST {
        let deadline = Instant::now() + SILENCE;
        let text = loop {
            if let Some(end) = head::end(&server.buffer).map_err(io::Error::other)? {
                break server.take(end);
            }
            if server.fill(deadline)? == 0 {
                return Ok(None);
            }
        };
        let interim = Response::parse(&text)
            .is_ok_and(|response| (100..200).contains(&response.status) && response.status != 101);
        if !interim {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// The answer that makes a connection a web socket.
fn changing_text(response: &Response<'_>) -> Vec<u8> {
    let mut out = b"HTTP/1.1 101 Switching Protocols\r\n".to_vec();
    fields(&mut out, response.fields.end_to_end());
    out.extend_from_slice(WEBSOCKET);
    out.extend_from_slice(b"\r\n");
    out
}

fn response_text(response: &Response<'_>, body: Body, stays: bool) -> Vec<u8> {
    let mut out = format!("{} {} ", response.version.as_str(), response.status).into_bytes();
    out.extend_from_slice(response.reason);
    out.extend_from_slice(b"\r\n");
    fields(&mut out, response.fields.end_to_end());
    if body == Body::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    out.extend_from_slice(b"Via: 1.1 ringfence\r\n");
    if !stays {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}

type Counter = std::sync::atomic::AtomicU64;

/// Carries a body. [`ErrorKind::InvalidData`] if it is not what it says to be.
fn carry(from: &mut Stream, to: &mut Stream, body: Body, counter: &Counter) -> io::Result<()> {
    match body {
        Body::Length(length) => carry_exactly(from, to, length, counter),
        Body::Unsaid => carry_all(from, to, counter),
        Body::Chunked => loop {
            let line = read_line(from)?;
            let size = head::chunk_size(&line).map_err(|_| ErrorKind::InvalidData)?;
            if size == 0 {
                // Trailers end here: who reads them could take them for more than they are.
                while !read_line(from)?.is_empty() {}
                return to.write_all(b"0\r\n\r\n", SILENCE);
            }
            to.write_all(format!("{size:x}\r\n").as_bytes(), SILENCE)?;
            carry_exactly(from, to, size, counter)?;
            if !read_line(from)?.is_empty() {
                return Err(ErrorKind::InvalidData.into());
            }
            to.write_all(b"\r\n", SILENCE)?;
        },
    }
}

fn count(counter: &Counter, bytes: usize) {
    counter.fetch_add(bytes.try_into().unwrap_or(0), Ordering::Relaxed);
}

fn carry_exactly(
    from: &mut Stream,
    to: &mut Stream,
    length: u64,
    counter: &Counter,
) -> io::Result<()> {
    let mut left = length;
    let mut piece = Vec::new();
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let bytes = if from.buffer.is_empty() {
            if piece.is_empty() {
                piece.resize(PIECE.min(most), 0);
            }
            let room = piece.get_mut(..most.min(PIECE)).unwrap_or_default();
            let read = from.read_some(room, Instant::now() + SILENCE)?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            to.write_all(piece.get(..read).unwrap_or_default(), SILENCE)?;
            read
        } else {
            let held = from.take(most);
            to.write_all(&held, SILENCE)?;
            held.len()
        };
        count(counter, bytes);
        left = left.saturating_sub(bytes.try_into().unwrap_or(left));
    }
    Ok(())
}

fn carry_all(from: &mut Stream, to: &mut Stream, counter: &Counter) -> io::Result<()> {
    let held = std::mem::take(&mut from.buffer);
    to.write_all(&held, SILENCE)?;
    count(counter, held.len());
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read_some(&mut piece, Instant::now() + SILENCE)?;
        if read == 0 {
            return Ok(());
        }
        to.write_all(piece.get(..read).unwrap_or_default(), SILENCE)?;
        count(counter, read);
    }
}

/// A line of a chunked body, without its end.
fn read_line(from: &mut Stream) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + SILENCE;
    loop {
        if let Some(at) = from.buffer.iter().position(|byte| *byte == b'\n') {
            let mut line = from.take(at + 1);
            line.pop();
            return match line.pop() {
                Some(b'\r') if !line.contains(&b'\r') => Ok(line),
                _ => Err(ErrorKind::InvalidData.into()),
            };
        }
        if from.buffer.len() > LONGEST_LINE {
            return Err(ErrorKind::InvalidData.into());
        }
        if from.fill(deadline)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Whether bytes begin like a request; `None` if it cannot be told yet.
pub(crate) fn looks_like_request(said: &[u8]) -> Option<bool> {
    const LONGEST_METHOD: usize = 20;
    for (index, byte) in said.iter().enumerate() {
        match byte {
            b'A'..=b'Z' | b'-' => {}
            b' ' => return Some(index > 0),
            _ => return Some(false),
        }
        if index > LONGEST_METHOD {
            return Some(false);
        }
    }
    None
}

/// Whether a name that a TLS client says is the host that was judged.
pub(crate) fn names_host(said: &[u8], host: &Host) -> bool {
    Destination::new(said, 1).is_ok_and(|said| said.host == *host)
}
