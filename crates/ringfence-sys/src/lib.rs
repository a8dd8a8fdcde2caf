//! The only unsafe code of ringfence: thin wrappers over kernel calls.
//!
//! This crate owns the seam between Rust and the kernel and nothing else. It holds no policy,
//! decides no order and retries nothing that was refused: a call either did what its name
//! says or returns the kernel's own answer as an [`Errno`].
//!
//! Two kinds of function live here, and the signature tells them apart.
//!
//! - Most only make or read things: they open, map, probe, parse. Anybody may call them.
//! - Those that change the *calling process* (its descriptors, signals, root, rights) take a
//!   [`Subject`], the proof that this process exists to be confined. A [`Subject`] is handed
//!   to the code that runs in a new child, so code that would restrict the caller of the
//!   library does not compile.
//!
//! Everything that takes a [`Subject`] may run between fork and exec: it allocates nothing,
//! takes no lock, logs nothing, cannot panic, and reports failure by value. A test binary
//! whose allocator aborts in such a child holds that promise.
#![cfg_attr(
    any(target_os = "linux", target_os = "macos"),
    expect(
        unsafe_code,
        reason = "this crate is the fence: docs/UNSAFE.md lists every block"
    )
)]

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub use macos::*;

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod unix;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use unix::*;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod unsupported;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use unsupported::*;
