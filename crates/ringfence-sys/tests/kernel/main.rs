//! Every wrapper against the running kernel: first that the act works, then that it is denied,
//! as root and as a plain user, each in a process of its own.
#![cfg(target_os = "linux")]
#![expect(
    unsafe_code,
    reason = "tests fork, and call the kernel behind the wrappers' backs"
)]

#[cfg(test)]
mod confine;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod hygiene;
#[cfg(test)]
mod init;
#[cfg(test)]
mod mounts;
#[cfg(test)]
mod namespaces;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod spawn;
#[cfg(test)]
mod supervise;
