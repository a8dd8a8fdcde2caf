//! Names of errors, so that tests compare what people read.

use rustix::io::Errno;

/// The C name of an error; its number if it has none here.
pub fn name(errno: Errno) -> String {
    NAMES
        .iter()
        .find(|(known, _)| *known == errno.raw_os_error())
        .map_or_else(
            || format!("E#{}", errno.raw_os_error()),
            |(_, name)| (*name).to_owned(),
        )
}

/// The C name of what the standard library was told.
pub fn of(error: &std::io::Error) -> String {
    Errno::from_io_error(error).map_or_else(|| format!("not the kernel: {error}"), name)
}

macro_rules! names {
    ($($name:ident)*) => { &[$((libc::$name, stringify!($name)),)*] };
}

const NAMES: &[(i32, &str)] = names![
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOSYS ENOTEMPTY ELOOP
    ENODATA EOVERFLOW ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT
    ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN
    ENETUNREACH ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ETIMEDOUT ECONNREFUSED
    EHOSTUNREACH EALREADY EINPROGRESS ESTALE EDQUOT ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED
];
