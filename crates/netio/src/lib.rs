//! Sockets, descriptors and the process, as Linux has them.
//!
//! The only crate with unsafe code; its interface is safe.
//!
//! | module | what it holds |
//! |---|---|
//! | [`udp`] | one bound UDP socket and its options |
//! | [`batch`] | datagrams received together, answered in place, sent together |
//! | [`replies`] | replies that are sent later than their queries' batch |
//! | [`client`] | connected UDP sockets and what they send and receive together |
//! | [`clock`] | the time of day where this machine is, and how long it has been running |
//! | [`poller`], [`wake`], [`alarm`] | waits for any of several descriptors; wakes a thread |
//! | [`stop`] | ends a thread that blocks in a receive call |
//! | [`tcp`] | listening TCP sockets, and connections to servers |
//! | [`directory`] | files by their names in an open directory |
//! | [`mod@file`] | files that are opened where they are said to be, locks between processes |
//! | [`interface`] | interfaces that lead nowhere, and notices that one is gone |
//! | [`local`] | Unix sockets for their owner alone, and the user at the other end |
//! | [`descriptors`] | sockets passed over a Unix socket, and what kind each one is |
//! | [`supervisor`] | socket activation and state notices of systemd |
//! | [`memory`] | huge pages |
//! | [`memory_file`] | files without a place on any disk |
//! | [`process`] | CPUs, time, descriptor limit |
//! | [`privileges`] | the rights of root, and how they are given up |
//! | [`child`] | child processes that stay on given CPUs and do not outlive their parent |
//!
//! Deliberately absent: DNS, threads, the runtime, logging. Callers decide what an error means.

pub mod alarm;
pub mod batch;
pub mod child;
pub mod client;
pub mod clock;
pub mod descriptors;
pub mod directory;
pub mod file;
mod headers;
#[cfg(feature = "interface")]
pub mod interface;
pub mod local;
pub mod memory;
pub mod memory_file;
mod message;
mod options;
pub mod poller;
pub mod privileges;
pub mod process;
pub mod replies;
#[cfg(feature = "interface")]
mod rtnetlink;
pub mod stop;
pub mod supervisor;
pub mod tcp;
pub mod udp;
pub mod wake;

pub use alarm::Alarm;
pub use batch::{Datagram, DatagramBatch};
pub use client::{ClientSocket, ReceiveBatch, SendBatch, SendCall, is_exhaustion, is_icmp};
pub use directory::{Directory, FileStatus};
pub use memory_file::MemoryFile;
pub use message::SendResult;
pub use options::share_port;
pub use poller::Poller;
pub use replies::{ReplyBatch, ReplyPath};
pub use stop::{StopHandle, StopToken, stop_channel};
pub use udp::{UdpOptions, UdpSocket};
pub use wake::Wake;

/// Turns the −1 of a system call into the error it left in `errno`.
fn check(result: libc::c_int) -> std::io::Result<libc::c_int> {
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result) }
}
