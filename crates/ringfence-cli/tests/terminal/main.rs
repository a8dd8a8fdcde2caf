//! `ringfence shell` and `run --tty`, driven as a person drives them: a test holds the outer end of a
//! terminal, types, and reads what is shown. Every test runs as root, where the tests do, and as a
//! user without rights.
#![cfg(target_os = "linux")]

#[cfg(test)]
mod driver;
#[cfg(test)]
mod ends;
#[cfg(test)]
mod guardian;
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod prompt;
#[cfg(test)]
mod streams;
