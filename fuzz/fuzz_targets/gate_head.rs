//! Heads of HTTP messages: what is read can be written again and is read the same, and a host that
//! is accepted is the host that stands there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_gate::Destination;
use ringfence_gate::head::{self, Request, Response};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(end)) = head::end(bytes) else {
        return;
    };
    let head = &bytes[..end];
    if let Ok(request) = Request::parse(head) {
        for (name, value) in request.fields.end_to_end() {
            assert!(!name.is_empty() && !value.iter().any(|byte| b"\r\n\0".contains(byte)));
        }
        let mut again = format!(
            "{} {} {}\r\n",
            request.method,
            request.target,
            request.version.as_str()
        )
        .into_bytes();
        for name in ["host", "content-length", "transfer-encoding"] {
            for value in request.fields.all(name) {
                again.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
            }
        }
        again.extend(b"\r\n");
        let second = Request::parse(&again).expect("what was read can be read again");
        assert_eq!(request.body(), second.body());
        assert_eq!(request.fields.one("host"), second.fields.one("host"));
        if let Ok(destination) = Destination::parse(request.target.as_bytes(), Some(80)) {
            let printed = destination.to_string();
            assert_eq!(Destination::parse(printed.as_bytes(), None), Ok(destination));
        }
    }
    if let Ok(response) = Response::parse(head) {
        let _ = response.body("GET");
    }
});
