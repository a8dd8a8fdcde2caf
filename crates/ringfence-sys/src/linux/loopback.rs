//! Brings up the loopback device of a new network namespace.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::raw;
use super::subject::Subject;

/// The part of `struct ifreq` that carries flags.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: i16,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40);

const SIOCGIFFLAGS: usize = 0x8913;
const SIOCSIFFLAGS: usize = 0x8914;
const IFF_UP: i16 = 0x1;

/// Switches `lo` on and checks that it is.
///
/// # Errors
///
/// [`Errno::PERM`] in a network namespace that is not ours; [`Errno::NETDOWN`] if the kernel
/// said yes and the device stayed down.
pub fn bring_up(_subject: &Subject) -> Result<(), Errno> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut request = InterfaceRequest {
        name: *b"lo\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        flags: 0,
        rest: [0; 22],
    };
    ask(socket.as_fd(), SIOCGIFFLAGS, &mut request)?;
    request.flags |= IFF_UP;
    ask(socket.as_fd(), SIOCSIFFLAGS, &mut request)?;
    request.flags = 0;
    ask(socket.as_fd(), SIOCGIFFLAGS, &mut request)?;
    if request.flags & IFF_UP == 0 {
        return Err(Errno::NETDOWN);
    }
    Ok(())
}

fn ask(socket: BorrowedFd<'_>, request: usize, value: &mut InterfaceRequest) -> Result<(), Errno> {
    // SAFETY: both requests read and write one `struct ifreq`, 40 bytes on 64-bit machines,
    // and `value` is a live one.
    unsafe {
        raw::call(
            libc::SYS_ioctl,
            [
                raw::fd_word(socket),
                request,
                raw::address_mut(value),
                0,
                0,
                0,
            ],
        )
    }
    .map(|_zero| ())
}
