//! Socket options that socket2 has no name for.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, socklen_t};
use socket2::SockRef;

use crate::check;

/// Types whose bytes the kernel may read or write as an option's value.
pub(crate) trait OptionValue: Copy {}
impl OptionValue for c_int {}
impl<const N: usize> OptionValue for [u32; N] {}

/// Sets option `name` of `level`.
pub(crate) fn set<T: OptionValue>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: T,
) -> io::Result<()> {
    let len = size_of::<T>() as socklen_t;
    // SAFETY: the kernel reads `len` bytes of `value`, which lives until the call returns.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), len)
    })?;
    Ok(())
}

/// Lets sockets that are bound from now on have the same port as a bound one, or not; returns
/// whether that differs from before.
///
/// # Errors
/// When the kernel refuses it.
pub fn share_port(socket: BorrowedFd<'_>, is_shared: bool) -> io::Result<bool> {
    let socket = SockRef::from(&socket);
    let differs = socket.reuse_port()? != is_shared;
    if differs {
        socket.set_reuse_port(is_shared)?;
    }
    Ok(differs)
}

/// Reads option `name` of `level`; an error if the kernel's value is of another size.
pub(crate) fn get<T: OptionValue>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of `value`, and updates `len`.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &mut len)
    })?;
    if len as usize != size_of::<T>() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // SAFETY: `OptionValue` types are integers, valid for any bytes, and all were written.
    Ok(unsafe { value.assume_init() })
}
