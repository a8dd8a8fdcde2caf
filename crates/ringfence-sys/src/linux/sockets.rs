//! Unix sockets between our own processes, and descriptors passed over them.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};

/// How many descriptors one message carries at most.
pub const MOST_DESCRIPTORS: usize = 8;

/// A pair of connected sockets that keep the bounds of messages.
///
/// # Errors
///
/// For want of descriptors.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
}

/// Sends one message with descriptors. A peer that is gone is an error, never a signal.
///
/// # Errors
///
/// [`Errno::INVAL`] for an empty message or too many descriptors; [`Errno::PIPE`] without a
/// peer.
pub fn send(
    socket: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    // A message of no bytes cannot be told from the end.
    if message.is_empty() || descriptors.len() > MOST_DESCRIPTORS {
        return Err(Errno::INVAL);
    }
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::NOBUFS);
    }
    let slices = [IoSlice::new(message)];
    let sent =
        retry_on_intr(|| sendmsg(socket.as_fd(), &slices, &mut control, SendFlags::NOSIGNAL))?;
    if sent == message.len() {
        Ok(())
    } else {
        Err(Errno::MSGSIZE)
    }
}

/// What arrived.
#[derive(Debug)]
pub struct Received {
    /// How many bytes of the buffer were filled; zero means that the peer is gone.
    pub length: usize,
    /// The descriptors that came along, in order, all close-on-exec.
    pub descriptors: [Option<OwnedFd>; MOST_DESCRIPTORS],
}

/// Receives one message with its descriptors.
///
/// # Errors
///
/// [`Errno::MSGSIZE`] if the message or its descriptors did not fit: a part is not kept.
/// [`Errno::AGAIN`] if the socket does not block and nothing is there.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<Received, Errno> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let answer = retry_on_intr(|| {
        recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let mut descriptors = [const { None }; MOST_DESCRIPTORS];
    let mut slots = descriptors.iter_mut();
    let mut overflow = false;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            for file in files {
                match slots.next() {
                    Some(slot) => *slot = Some(file),
                    None => overflow = true,
                }
            }
        }
    }
    if overflow
        || answer
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(Errno::MSGSIZE);
    }
    Ok(Received {
        length: answer.bytes,
        descriptors,
    })
}
