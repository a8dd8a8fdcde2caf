//! Does named things, one after the other, and says what the kernel answered to each.
//!
//! `probe OPERATION ARGUMENT... , OPERATION ...` prints one line for each: `ok`, `ok:` and something
//! to compare, or the name of the error. A refusal is an answer: the exit status is 0 unless an
//! operation was misspelt.
#![expect(
    clippy::exit,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test program: whatever is wrong with it must end the test"
)]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod own;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod terminal;

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    for operation in arguments.split(|argument| argument == ",") {
        let [name, arguments @ ..] = operation else {
            panic!("an operation without a name");
        };
        println!("{}", perform(name.to_str().unwrap(), arguments));
    }
}

/// What an operation answers: something to compare, or an error.
#[cfg(target_os = "linux")]
type Answer = Result<Option<String>, std::io::Error>;

/// The arguments of an operation.
#[cfg(target_os = "linux")]
type Arguments<'a> = &'a [std::ffi::OsString];

#[cfg(target_os = "linux")]
fn perform(name: &str, arguments: Arguments<'_>) -> String {
    let rooms = [
        files::perform,
        network::perform,
        own::perform,
        processes::perform,
        calls::perform,
        terminal::perform,
    ];
    let answer = rooms
        .iter()
        .find_map(|room| room(name, arguments))
        .unwrap_or_else(|| panic!("no operation {name}"));
    match answer {
        Ok(None) => "ok".to_owned(),
        Ok(Some(text)) => format!("ok:{}", text.escape_debug()),
        Err(error) => ringfence_testkit::errno::of(&error),
    }
}

/// An argument as text.
#[cfg(target_os = "linux")]
fn text(arguments: Arguments<'_>, index: usize) -> &str {
    arguments[index].to_str().unwrap()
}

/// An argument as a number, with `0x` or `0o` if it is not decimal, and signed.
#[cfg(target_os = "linux")]
fn number(arguments: Arguments<'_>, index: usize) -> u64 {
    parse(text(arguments, index)).unwrap()
}

#[cfg(target_os = "linux")]
fn parse(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return u64::from_str_radix(octal, 8).ok();
    }
    let signed = || text.parse::<i64>().map(i64::cast_unsigned).ok();
    text.parse().ok().or_else(signed)
}

/// The low half of a number, as most calls read it.
#[cfg(target_os = "linux")]
fn int(number: u64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}
