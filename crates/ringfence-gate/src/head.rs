//! Heads of HTTP/1 messages, read strictly.
//!
//! Two programs that read one message in two ways are how requests are smuggled. So only what the
//! standard lets a sender write is read at all: lines end in CRLF, names are tokens, no line goes
//! on in the next one, and a body has one length. Everything else is an error, never a guess.

/// The largest head that is read.
pub const LARGEST: usize = 32 << 10;
/// How many fields a head may have.
pub const MOST_FIELDS: usize = 128;

/// A request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request<'b> {
    /// `GET` and the like.
    pub method: &'b str,
    /// What is asked for, as it was written.
    pub target: &'b str,
    /// Which version.
    pub version: Version,
    /// The fields.
    pub fields: Fields<'b>,
}

/// The head of a response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Response<'b> {
    /// Which version.
    pub version: Version,
    /// 200 and the like.
    pub status: u16,
    /// Words that nobody reads.
    pub reason: &'b [u8],
    /// The fields.
    pub fields: Fields<'b>,
}

/// HTTP/1.0 or HTTP/1.1; no other version is spoken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// The fields of a head, in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Fields<'b>(Vec<(&'b str, &'b [u8])>);

/// How long a body is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Body {
    /// In pieces that say their own length.
    Chunked,
    /// This many bytes.
    Length(u64),
    /// There is none, or of a response: until the connection ends.
    Unsaid,
}

/// Why bytes are not a head.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HeadError {
    /// A field that is not one.
    #[error("a header field is malformed")]
    Field,
    /// More than one length, or none that is one.
    #[error("the length of the body can be read in two ways")]
    Framing,
    /// The first line is none.
    #[error("the first line is malformed")]
    Line,
    /// Too long.
    #[error("the head is too large")]
    Size,
    /// Not HTTP/1.0 or HTTP/1.1.
    #[error("only HTTP/1.0 and HTTP/1.1 are spoken here")]
    Version,
}

/// Where a head ends, if all of it is there: the number of its bytes.
///
/// # Errors
///
/// [`HeadError::Size`] if it is too large already.
pub fn end(bytes: &[u8]) -> Result<Option<usize>, HeadError> {
    let mark = b"\r\n\r\n";
    let found = bytes.windows(mark.len()).position(|window| window == mark);
    match found {
        Some(at) if at + mark.len() <= LARGEST => Ok(Some(at + mark.len())),
        None if bytes.len() < LARGEST => Ok(None),
        _ => Err(HeadError::Size),
    }
}

impl<'b> Request<'b> {
    /// Reads a whole head, as [`end`] found it.
    ///
    /// # Errors
    ///
    /// See [`HeadError`].
    pub fn parse(head: &'b [u8]) -> Result<Self, HeadError> {
        let (line, fields) = split_head(head)?;
        let line = str::from_utf8(line).map_err(|_| HeadError::Line)?;
        let mut words = line.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(HeadError::Line);
        };
        let visible = |byte: u8| (0x21..0x7f).contains(&byte);
        if !is_token(method.as_bytes()) || target.is_empty() || !target.bytes().all(visible) {
            return Err(HeadError::Line);
        }
        Ok(Self {
            method,
            target,
            version: Version::parse(version.as_bytes())?,
            fields: Fields::parse(fields)?,
        })
    }

    /// How long its body is.
    ///
    /// # Errors
    ///
    /// [`HeadError::Framing`] where two programs could disagree.
    pub fn body(&self) -> Result<Body, HeadError> {
        match self.fields.framing()? {
            Body::Chunked if self.version == Version::Http10 => Err(HeadError::Framing),
            Body::Unsaid => Ok(Body::Length(0)),
            body => Ok(body),
        }
    }
}

impl<'b> Response<'b> {
    /// Reads a whole head, as [`end`] found it.
    ///
    /// # Errors
    ///
    /// See [`HeadError`].
    pub fn parse(head: &'b [u8]) -> Result<Self, HeadError> {
        let (line, fields) = split_head(head)?;
        let (version, rest) = line.split_at_checked(8).ok_or(HeadError::Line)?;
        let version = Version::parse(version)?;
        let rest = rest.strip_prefix(b" ").ok_or(HeadError::Line)?;
        let (digits, rest) = rest.split_at_checked(3).ok_or(HeadError::Line)?;
        let mut status = 0;
        for byte in digits {
            let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10);
            status = status * 10 + u16::from(digit.ok_or(HeadError::Line)?);
        }
        let reason = match rest.split_first() {
            None => rest,
            Some((b' ', reason)) => reason,
            Some(_) => return Err(HeadError::Line),
        };
        if status < 100 || !reason.iter().all(|byte| is_text(*byte)) {
            return Err(HeadError::Line);
        }
        Ok(Self {
            version,
            status,
            reason,
            fields: Fields::parse(fields)?,
        })
    }

    /// How long its body is, as the answer to a request of this method.
    ///
    /// # Errors
    ///
    /// [`HeadError::Framing`] where two programs could disagree.
    pub fn body(&self, method: &str) -> Result<Body, HeadError> {
        let body = self.fields.framing()?;
        if method == "HEAD" || matches!(self.status, 100..200 | 204 | 304) {
            return Ok(Body::Length(0));
        }
        Ok(body)
    }
}

impl Version {
    fn parse(text: &[u8]) -> Result<Self, HeadError> {
        match text {
            b"HTTP/1.0" => Ok(Self::Http10),
            b"HTTP/1.1" => Ok(Self::Http11),
            _ => Err(HeadError::Version),
        }
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }
}

/// Fields that are between two neighbours and go no further.
const HOP_BY_HOP: [&str; 11] = [
    "connection",
    "expect",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "proxy-status",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

impl<'b> Fields<'b> {
    fn parse(mut rest: &'b [u8]) -> Result<Self, HeadError> {
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let (line, after) = split_line(rest).ok_or(HeadError::Field)?;
            rest = after;
            let colon = line.iter().position(|byte| *byte == b':');
            let colon = colon.ok_or(HeadError::Field)?;
            let (name, value) = line.split_at(colon);
            let value = trim(value.get(1..).unwrap_or_default());
            // A name with a space in front is the old way to go on with the line before.
            if !is_token(name) || !value.iter().all(|byte| is_text(*byte)) {
                return Err(HeadError::Field);
            }
            if fields.len() >= MOST_FIELDS {
                return Err(HeadError::Size);
            }
            let name = str::from_utf8(name).map_err(|_| HeadError::Field)?;
            fields.push((name, value));
        }
        Ok(Self(fields))
    }

    /// Every value of a field.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'b [u8]> {
        self.0
            .iter()
            .filter(move |(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// The value of a field that can only stand once.
    ///
    /// # Errors
    ///
    /// [`HeadError::Field`] if it stands more than once.
    pub fn one(&self, name: &str) -> Result<Option<&'b [u8]>, HeadError> {
        let mut all = self.all(name);
        let first = all.next();
        if all.next().is_some() {
            return Err(HeadError::Field);
        }
        Ok(first)
    }

    /// Whether a list holds a word, in any case.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.all(name)
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|part| trim(part).eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The fields that go further: all but those between two neighbours, and `Host`.
    pub fn end_to_end(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> {
        self.0.iter().copied().filter(|(name, _)| {
            let stays = HOP_BY_HOP.iter().any(|hop| name.eq_ignore_ascii_case(hop))
                || name.eq_ignore_ascii_case("host")
                || self.lists("connection", name);
            // Whoever writes `Connection: content-length` wants the body to be misread.
            !stays || name.eq_ignore_ascii_case("content-length")
        })
    }

    fn framing(&self) -> Result<Body, HeadError> {
        let mut lengths = self.all("content-length");
        let length = lengths.next();
        let mut codings = self.all("transfer-encoding");
        let coding = codings.next();
        if codings.next().is_some() || lengths.next().is_some() {
            return Err(HeadError::Framing);
        }
        match (length, coding) {
            (None, None) => Ok(Body::Unsaid),
            (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::Chunked),
            (Some(length), None) => decimal(length).map(Body::Length).ok_or(HeadError::Framing),
            _ => Err(HeadError::Framing),
        }
    }
}

/// The size of a chunk, from its line without the end; extensions are not passed on.
///
/// # Errors
///
/// [`HeadError::Framing`] for anything that is not hexadecimal.
pub fn chunk_size(line: &[u8]) -> Result<u64, HeadError> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let digits = trim(digits);
    if digits.is_empty() || digits.len() > 15 {
        return Err(HeadError::Framing);
    }
    let mut size: u64 = 0;
    for byte in digits {
        let digit = char::from(*byte).to_digit(16).ok_or(HeadError::Framing)?;
        size = size << 4 | u64::from(digit);
    }
    Ok(size)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let text = str::from_utf8(digits).ok()?;
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// The first line, and the lines of the fields without the empty one.
fn split_head(head: &[u8]) -> Result<(&[u8], &[u8]), HeadError> {
    if head.len() > LARGEST {
        return Err(HeadError::Size);
    }
    let head = head.strip_suffix(b"\r\n").ok_or(HeadError::Line)?;
    split_line(head).ok_or(HeadError::Line)
}

/// One line, which must end in CRLF and hold neither of the two.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text
        .iter()
        .position(|byte| *byte == b'\r' || *byte == b'\n')?;
    let (line, rest) = text.split_at(at);
    Some((line, rest.strip_prefix(b"\r\n")?))
}

fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

fn is_token(text: &[u8]) -> bool {
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(text: &str) -> Result<Request<'_>, HeadError> {
        Request::parse(text.as_bytes())
    }

    #[test]
    fn a_request_is_read() {
        let text = "GET http://a.test/x HTTP/1.1\r\nHost: a.test\r\nX-Y:  1 \r\n\r\n";
        assert_eq!(end(text.as_bytes()), Ok(Some(text.len())));
        let request = request(text).unwrap();
        assert_eq!((request.method, request.target), ("GET", "http://a.test/x"));
        assert_eq!(request.version, Version::Http11);
        assert_eq!(request.fields.one("HOST"), Ok(Some(&b"a.test"[..])));
        assert_eq!(request.fields.one("x-y"), Ok(Some(&b"1"[..])));
        assert_eq!(request.body(), Ok(Body::Length(0)));
    }

    #[test]
    fn heads_that_could_be_read_in_two_ways_are_refused() {
        for (text, error) in [
            ("GET  / HTTP/1.1\r\n\r\n", HeadError::Line),
            ("GET /\r\n\r\n", HeadError::Line),
            ("GET / x HTTP/1.1\r\n\r\n", HeadError::Line),
            ("G(T / HTTP/1.1\r\n\r\n", HeadError::Line),
            ("GET /\u{1} HTTP/1.1\r\n\r\n", HeadError::Line),
            ("GET /\u{e4} HTTP/1.1\r\n\r\n", HeadError::Line),
            ("GET / HTTP/2.0\r\n\r\n", HeadError::Version),
            ("GET / HTTP/1.1 \r\n\r\n", HeadError::Line),
            ("GET / HTTP/1.1\n\n", HeadError::Line),
            ("GET / HTTP/1.1\r\na: b\n\r\n", HeadError::Field),
            ("GET / HTTP/1.1\r\na: b\r\n c\r\n\r\n", HeadError::Field),
            ("GET / HTTP/1.1\r\na : b\r\n\r\n", HeadError::Field),
            ("GET / HTTP/1.1\r\n: b\r\n\r\n", HeadError::Field),
            ("GET / HTTP/1.1\r\nab\r\n\r\n", HeadError::Field),
            ("GET / HTTP/1.1\r\na: b\0c\r\n\r\n", HeadError::Field),
            ("GET / HTTP/1.1\r\na: b\rc\r\n\r\n", HeadError::Field),
        ] {
            assert_eq!(request(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_body_has_one_length() {
        for (fields, expected) in [
            ("Content-Length: 5", Ok(Body::Length(5))),
            ("Transfer-Encoding: Chunked", Ok(Body::Chunked)),
            (
                "Content-Length: 5\r\nContent-Length: 5",
                Err(HeadError::Framing),
            ),
            ("Content-Length: 5, 5", Err(HeadError::Framing)),
            ("Content-Length: +5", Err(HeadError::Framing)),
            ("Content-Length: ", Err(HeadError::Framing)),
            (
                "Content-Length: 99999999999999999999999",
                Err(HeadError::Framing),
            ),
            (
                "Content-Length: 5\r\nTransfer-Encoding: chunked",
                Err(HeadError::Framing),
            ),
            ("Transfer-Encoding: gzip, chunked", Err(HeadError::Framing)),
            ("Transfer-Encoding: identity", Err(HeadError::Framing)),
            ("Transfer-Encoding: xchunked", Err(HeadError::Framing)),
        ] {
            let text = format!("POST / HTTP/1.1\r\n{fields}\r\n\r\n");
            assert_eq!(request(&text).unwrap().body(), expected, "{fields}");
        }
        let old = request("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        assert_eq!(old.body(), Err(HeadError::Framing));
    }

    #[test]
    fn fields_between_neighbours_go_no_further() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, X-Own\r\nX-Own: 1\r\n\
                    Upgrade: h2c\r\nTE: trailers\r\nProxy-Authorization: x\r\nAccept: b\r\n\
                    Content-Length: 0\r\nconnection: content-length\r\n\r\n";
        let request = request(text).unwrap();
        let names: Vec<&str> = request.fields.end_to_end().map(|(name, _)| name).collect();
        assert_eq!(names, ["Accept", "Content-Length"]);
    }

    #[test]
    fn a_response_is_read() {
        let text = b"HTTP/1.1 200 All right\r\nContent-Length: 3\r\n\r\n";
        let response = Response::parse(text).unwrap();
        assert_eq!(response.status, 200);
        assert_eq!(response.body("GET"), Ok(Body::Length(3)));
        assert_eq!(response.body("HEAD"), Ok(Body::Length(0)));
        let open = Response::parse(b"HTTP/1.0 200\r\n\r\n").unwrap();
        assert_eq!(open.body("GET"), Ok(Body::Unsaid));
        for text in [
            "HTTP/1.1 20 x",
            "HTTP/1.1 2000",
            "HTTP/1.1 099 x",
            "HTTP/3 200",
            "x",
        ] {
            let head = format!("{text}\r\n\r\n");
            assert!(Response::parse(head.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_end_somewhere() {
        assert_eq!(end(&vec![b'a'; LARGEST - 1]), Ok(None));
        assert_eq!(end(&vec![b'a'; LARGEST]), Err(HeadError::Size));
        let many = "a: b\r\n".repeat(MOST_FIELDS + 1);
        let text = format!("GET / HTTP/1.1\r\n{many}\r\n");
        assert_eq!(request(&text), Err(HeadError::Size));
        assert_eq!(chunk_size(b"1aF;x=y"), Ok(0x1af));
        for line in ["", ";", "-1", "0x1", "g", "1 2", "fffffffffffffffff"] {
            assert!(chunk_size(line.as_bytes()).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_head_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::parse(&bytes);
            let _ = Response::parse(&bytes);
        }
    }
}
