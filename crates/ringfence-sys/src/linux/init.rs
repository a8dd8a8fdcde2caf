//! The program that the first process of a session becomes, and how to become it.
//!
//! The program itself is in `init/`, is built by this crate's build script, and knows nothing but
//! [what it is told](wire::Orders). It is run from a sealed memory file: there is no path under
//! which it could be replaced, and nothing has to be installed.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, retry_on_intr, write};

use super::exec::{self, StringArray};
use super::subject::Subject;

#[path = "../../init/wire.rs"]
pub mod wire;

use wire::{NAME, Orders};

/// The program, as the build script made it.
const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));

/// The program in a file that cannot be changed any more.
#[derive(Debug)]
pub struct Program(OwnedFd);

impl Program {
    /// Lays it out in memory.
    ///
    /// # Errors
    ///
    /// [`Errno::ACCESS`] where `vm.memfd_noexec` forbids programs in memory files.
    pub fn new() -> Result<Self, Errno> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = match memfd_create(NAME, flags | MemfdFlags::EXEC) {
            // Before Linux 6.3 every memory file could be run, and nobody had to say so.
            Err(Errno::INVAL) => memfd_create(NAME, flags)?,
            other => other?,
        };
        let mut rest = BYTES;
        while !rest.is_empty() {
            let count = retry_on_intr(|| write(&file, rest))?;
            rest = rest.get(count..).unwrap_or_default();
        }
        let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
        fcntl_add_seals(&file, seals)?;
        Ok(Self(file))
    }

    /// Becomes it. Returns only to say why it could not.
    pub fn run(&self, subject: &Subject, told: &Told) -> Errno {
        exec::fexecve(subject, self.0.as_fd(), &told.arguments, &told.environment)
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What the first process is started with, made before it exists.
///
/// Anybody inside can read its arguments, and nobody its environment, since it hides its memory. So
/// the command's words lie in front of the command's variables, and not among the arguments.
#[derive(Debug)]
pub struct Told {
    arguments: StringArray,
    environment: StringArray,
}

impl Told {
    /// The orders, the names of the program to run, the command's arguments and its variables.
    ///
    /// # Errors
    ///
    /// [`Errno::TOOBIG`] for more of either than can be counted.
    pub fn new(
        orders: &Orders,
        programs: Vec<CString>,
        arguments: Vec<CString>,
        environment: Vec<CString>,
    ) -> Result<Self, Errno> {
        let count = |words: &[CString]| u32::try_from(words.len()).map_err(|_| Errno::TOOBIG);
        let orders = Orders {
            programs: count(&programs)?,
            arguments: count(&arguments)?,
            ..*orders
        };
        // Digits only: there is no NUL among them.
        let orders = CString::new(orders.to_text()).map_err(|_| Errno::INVAL)?;
        let words = programs.into_iter().chain(arguments);
        // In its place comes the null pointer that the arguments end in.
        let words = words.chain(std::iter::once(CString::default()));
        Ok(Self {
            arguments: [NAME.to_owned(), orders].into_iter().collect(),
            environment: words.chain(environment).collect(),
        })
    }
}
