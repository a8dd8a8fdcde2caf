//! SOCKS clients: passwords are read whole or not at all, an accepted name is the name that was sent, and more bytes never change a request.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringfence_gate::Destination;
use ringfence_gate::socks::{self, Demanded, Read};

fuzz_target!(|bytes: &[u8]| {
    for demanded in [Demanded::Nothing, Demanded::Password] {
        let _ = socks::greeting(bytes, demanded);
    }
    if let Some(Read::Whole(said, length)) = socks::credentials(bytes) {
        assert_eq!(length, 3 + said.user.len() + said.password.len());
        for cut in 0..length {
            assert_eq!(socks::credentials(&bytes[..cut]), Some(Read::Unfinished));
        }
    }
    let Ok(Read::Whole(destination, length)) = socks::request(bytes) else {
        return;
    };
    assert!(length <= bytes.len());
    assert_eq!(
        socks::request(&bytes[..length]),
        Ok(Read::Whole(destination.clone(), length))
    );
    for cut in 0..length {
        assert_eq!(socks::request(&bytes[..cut]), Ok(Read::Unfinished));
    }
    if bytes[3] == 3 {
        let name = &bytes[5..5 + usize::from(bytes[4])];
        assert!(!name.iter().any(|byte| *byte <= b' ' || *byte == 0x7f || *byte == b'%'));
        assert_eq!(Destination::new(name, destination.port), Ok(destination));
    }
});
