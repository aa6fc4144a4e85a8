//! Headers of messages, for `sendmsg(2)` and the calls like it.
//!
//! glibc and musl differ in the integer types of lengths and in the padding beside them, so that
//! headers are made here alone.

use libc::{c_int, c_void, cmsghdr, iovec, mmsghdr, msghdr};
use std::mem;

/// A message of `count` parts, without an address and control messages.
#[inline]
pub(crate) fn message(parts: *mut iovec, count: usize) -> msghdr {
    // SAFETY: integers and pointers, all of which may be zero.
    let mut header: msghdr = unsafe { mem::zeroed() };
    header.msg_iov = parts;
    header.msg_iovlen = count as _;
    header
}

/// The same message with room for an address, or with the address itself.
#[inline]
pub(crate) fn with_name<T>(mut header: msghdr, name: *mut T, len: libc::socklen_t) -> msghdr {
    header.msg_name = name.cast::<c_void>();
    header.msg_namelen = len;
    header
}

/// The same message with room for control messages of so many octets, or with such messages.
#[inline]
pub(crate) fn with_control<T>(mut header: msghdr, control: *mut T, len: usize) -> msghdr {
    header.msg_control = control.cast::<c_void>();
    header.msg_controllen = len as _;
    header
}

/// One of several messages that a call takes.
#[inline]
pub(crate) fn of_several(header: msghdr) -> mmsghdr {
    mmsghdr { msg_hdr: header, msg_len: 0 }
}

/// The octets of control messages that a message has room for, or that the kernel has written.
#[inline]
pub(crate) fn control_len(header: &msghdr) -> usize {
    header.msg_controllen as _
}

/// The parts of a message.
#[inline]
pub(crate) fn part_count(header: &msghdr) -> usize {
    header.msg_iovlen as _
}

/// The octets of a control message, its header included.
#[inline]
pub(crate) fn control_message_len(header: &cmsghdr) -> usize {
    header.cmsg_len as _
}

/// The header of a control message of a level and type, with data of so many octets behind it.
pub(crate) fn control(level: c_int, kind: c_int, data_bytes: usize) -> cmsghdr {
    let mut header = NO_CONTROL;
    // SAFETY: arithmetic on its argument.
    header.cmsg_len = unsafe { libc::CMSG_LEN(data_bytes as _) } as _;
    header.cmsg_level = level;
    header.cmsg_type = kind;
    header
}

/// The header of no control message.
// SAFETY: integers, all of which may be zero.
pub(crate) const NO_CONTROL: cmsghdr = unsafe { mem::zeroed() };
