//! Single calls by their numbers. A bad descriptor or address makes the kernel's own answer differ
//! from a filter's, and keeps the call without effect.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

use ringfence_sys::testing::{Answer as Outcome, Entry, Word, call_in_child};

use super::{Answer, Arguments, int, number, parse, text};

pub(super) fn perform(name: &str, arguments: Arguments<'_>) -> Option<Answer> {
    Some(match name {
        // `call NUMBER WORD...`: a number, or `@` and a text whose address is meant.
        "call" => call(Entry::Native, arguments),
        "x32" => {
            let mut shifted = arguments.to_vec();
            shifted[0] = (number(arguments, 0) | 0x4000_0000).to_string().into();
            call(Entry::Native, &shifted)
        }
        #[cfg(target_arch = "x86_64")]
        "interrupt" => call(Entry::Interrupt, arguments),
        "sweep" => sweep(number(arguments, 0), number(arguments, 1)),
        "key" => key(text(arguments, 0)),
        "vm-read" => memory(libc::SYS_process_vm_readv, number(arguments, 0)),
        "vm-write" => memory(libc::SYS_process_vm_writev, number(arguments, 0)),
        _ => return None,
    })
}

pub(super) fn outcome(outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Returned(_) => Ok(None),
        Outcome::Failed(errno) => Err(errno.into()),
        Outcome::Killed { signal } => Ok(Some(format!("killed {signal}"))),
        Outcome::Silent => Ok(Some("silent".to_owned())),
    }
}

fn call(entry: Entry, arguments: Arguments<'_>) -> Answer {
    let texts: Vec<Option<CString>> = arguments
        .iter()
        .map(|word| {
            let text = word.as_bytes().strip_prefix(b"@")?;
            Some(CString::new(text).unwrap())
        })
        .collect();
    let mut words = [Word::Number(0); 6];
    for (index, word) in words.iter_mut().enumerate() {
        if let Some(argument) = arguments.get(index + 1) {
            *word = match &texts[index + 1] {
                Some(text) => Word::Text(text),
                None => Word::Number(parse(argument.to_str().unwrap()).unwrap()),
            };
        }
    }
    outcome(call_in_child(entry, number(arguments, 0), words)?)
}

/// A call of a text and a number.
pub(super) fn with_text(number: libc::c_long, first: &CStr, second: u64) -> Answer {
    let mut words = [Word::Number(0); 6];
    words[0] = Word::Text(first);
    words[1] = Word::Number(second);
    let number = u64::try_from(number).unwrap();
    outcome(call_in_child(Entry::Native, number, words)?)
}

/// `name_to_handle_at`, with room for a handle and a place for the mount's number.
pub(super) fn handle(path: &CStr) -> Answer {
    const CURRENT_DIRECTORY: u64 = (-100_i64).cast_unsigned();
    // `struct file_handle`: how much room there is, then the room.
    let mut room = [0_u8; 136];
    room[0] = 128;
    let mount = [0_u8; 8];
    let words = [
        Word::Number(CURRENT_DIRECTORY),
        Word::Text(path),
        Word::Bytes(&room),
        Word::Bytes(&mount),
        Word::Number(0),
        Word::Number(0),
    ];
    let number = u64::try_from(libc::SYS_name_to_handle_at).unwrap();
    outcome(call_in_child(Entry::Native, number, words)?)
}

/// Calls every number in a range with arguments that are all bad, through both native numberings.
/// One word for each: the error, or `ok`.
fn sweep(from: u64, to: u64) -> Answer {
    let mut out = Vec::new();
    for number in from..to {
        for bit in [0, 0x4000_0000] {
            // These wait, copy or end the process instead of looking at arguments.
            let harmful = bit == 0 && SLEEPS_OR_FORKS.contains(&number);
            let answer = if harmful {
                "-".to_owned()
            } else {
                let words = [Word::Number(u64::MAX); 6];
                match call_in_child(Entry::Native, number | bit, words)? {
                    Outcome::Returned(_) => "ok".to_owned(),
                    Outcome::Failed(errno) => ringfence_testkit::errno::name(errno),
                    Outcome::Killed { signal } => format!("killed-{signal}"),
                    Outcome::Silent => "silent".to_owned(),
                }
            };
            out.push(format!("{}={answer}", number | bit));
        }
    }
    Ok(Some(out.join(" ")))
}

/// `rt_sigreturn`, `pause`, `clone`, `fork`, `vfork`, `exit`, `exit_group` and their like.
#[cfg(target_arch = "x86_64")]
const SLEEPS_OR_FORKS: [u64; 8] = [15, 34, 56, 57, 58, 60, 130, 231];
#[cfg(target_arch = "aarch64")]
const SLEEPS_OR_FORKS: [u64; 5] = [93, 94, 133, 139, 220];

/// Looks for a key in the session keyring.
fn key(name: &str) -> Answer {
    const SEARCH: u64 = 10;
    const SESSION: u64 = (-3_i64).cast_unsigned();
    let name = CString::new(name).unwrap();
    let words = [
        Word::Number(SEARCH),
        Word::Number(SESSION),
        Word::Text(c"user"),
        Word::Text(&name),
        Word::Number(0),
        Word::Number(0),
    ];
    let number = u64::try_from(libc::SYS_keyctl).unwrap();
    outcome(call_in_child(Entry::Native, number, words)?)
}

/// Reads or writes a word of another process, at an address that is not there.
fn memory(call: libc::c_long, process: u64) -> Answer {
    // `struct iovec` for both sides: an address and a length.
    let room = [0_u8; 8];
    let mut local = [0_u8; 16];
    local[..8].copy_from_slice(&(room.as_ptr().expose_provenance() as u64).to_ne_bytes());
    local[8] = 8;
    let mut remote = [0_u8; 16];
    remote[..8].copy_from_slice(&16_u64.to_ne_bytes());
    remote[8] = 8;
    let words = [
        Word::Number(u64::from(int(process).cast_unsigned())),
        Word::Bytes(&local),
        Word::Number(1),
        Word::Bytes(&remote),
        Word::Number(1),
        Word::Number(0),
    ];
    let number = u64::try_from(call).unwrap();
    outcome(call_in_child(Entry::Native, number, words)?)
}
