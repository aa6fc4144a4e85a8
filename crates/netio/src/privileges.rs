//! What the process gives up: the rights of root.

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::ptr;

use libc::{c_char, c_int, gid_t, uid_t};

use crate::check;

/// Why privileges could not be dropped.
#[derive(Debug)]
pub enum PrivilegeError {
    /// No such user in the system's database.
    UnknownUser,
    /// No such group.
    UnknownGroup,
    /// The named user is root, so that there is nothing to gain.
    UserIsRoot,
    /// A system call failed; without root's rights only the present user can be "changed" to.
    System(io::Error),
    /// The calls succeeded, yet root's rights can be had back. The process should end.
    Regained,
}

impl std::fmt::Display for PrivilegeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownUser => f.write_str("no such user on this system"),
            Self::UnknownGroup => f.write_str("no such group on this system"),
            Self::UserIsRoot => f.write_str("the user is root; name an unprivileged one"),
            Self::System(error) => write!(f, "cannot change to the user: {error}"),
            Self::Regained => f.write_str("root's rights could be regained after the change"),
        }
    }
}

impl std::error::Error for PrivilegeError {}

impl From<io::Error> for PrivilegeError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Privileges that a process kept because it had no right to give them up.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RetainedPrivileges {
    /// Supplementary groups that are none of the user's.
    pub groups: Vec<gid_t>,
}

/// Becomes `user` for good: the user's groups, the group (the user's own if not given), the user
/// id, and no rights beside them but that to low ports, if it had that without being root.
///
/// User and groups change for all threads. Capabilities (capabilities(7)) and the promise to gain
/// no privileges through any later program (prctl(2)) are those of the calling thread, and of all
/// that it starts from then on. Bind sockets and open files first.
///
/// # Errors
/// When there is no such user, it is root, or the system refuses. A process that runs as the user
/// already and may not change its groups keeps them.
pub fn drop_privileges(
    user: &str,
    group: Option<&str>,
) -> Result<RetainedPrivileges, PrivilegeError> {
    let account = look_up_user(user)?.ok_or(PrivilegeError::UnknownUser)?;
    let gid = match group {
        Some(group) => look_up_group(group)?.ok_or(PrivilegeError::UnknownGroup)?,
        None => account.gid,
    };
    if account.uid == 0 {
        return Err(PrivilegeError::UserIsRoot);
    }
    // The right to do so goes with the user.
    empty_bounding_set()?;
    // SAFETY: these take integers and a C string, and change only this process.
    unsafe {
        let is_user_already = (libc::geteuid(), libc::getegid()) == (account.uid, gid);
        match check(libc::initgroups(account.name.as_ptr(), gid)) {
            Err(error) if is_user_already && error.raw_os_error() == Some(libc::EPERM) => {}
            changed => _ = changed?,
        }
        check(libc::setresgid(gid, gid, gid))?;
        check(libc::setresuid(account.uid, account.uid, account.uid))?;
        keep_only_low_ports()?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        let (mut real, mut effective, mut saved) = (0, 0, 0);
        check(libc::getresuid(&mut real, &mut effective, &mut saved))?;
        if [real, effective, saved].contains(&0) || libc::setuid(0) == 0 {
            return Err(PrivilegeError::Regained);
        }
    }
    let own = groups_of(&account, gid);
    let groups = present_groups()?.into_iter().filter(|group| !own.contains(group)).collect();
    Ok(RetainedPrivileges { groups })
}

/// Leaves no capability that a later program could get, if the calling thread may do so.
fn empty_bounding_set() -> io::Result<()> {
    for capability in 0..libc::c_ulong::from(u64::BITS) {
        // SAFETY: takes integers.
        let dropped = check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) });
        match dropped.as_ref().map_err(io::Error::raw_os_error) {
            Ok(_) => {}
            // There are no more, or the thread has no right to; it gains nothing by them.
            Err(Some(libc::EINVAL | libc::EPERM)) => return Ok(()),
            Err(_) => return dropped.map(drop),
        }
    }
    Ok(())
}

/// The version of capget(2) whose sets have 64 bits, in two halves.
const CAPABILITY_VERSION: u32 = 0x2008_0522;
/// The capability to bind ports below 1024, as a bit of the lower half.
const NET_BIND_SERVICE: u32 = 1 << 10;

/// The header of a call that sets capabilities: the version, and the thread.
#[repr(C)]
struct CapabilityHeader {
    /// Format of the call: [`CAPABILITY_VERSION`].
    version: u32,
    /// A thread; 0 is the calling one.
    pid: c_int,
}

/// One half of a thread's sets of capabilities.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Capabilities {
    /// Capabilities that are in force.
    effective: u32,
    /// Capabilities that may be put into force.
    permitted: u32,
    /// Capabilities that a program may inherit.
    inheritable: u32,
}

/// Drops all capabilities of the calling thread but that to bind low ports. The ambient ones, which
/// later programs would have, are dropped too.
fn keep_only_low_ports() -> io::Result<()> {
    let mut header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut present = [Capabilities::default(); 2];
    let place = present.as_mut_ptr();
    // SAFETY: the call reads a header of this version and writes two halves.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, place) } as c_int)?;
    let low_ports = Capabilities {
        effective: present[0].effective & NET_BIND_SERVICE,
        permitted: present[0].permitted & NET_BIND_SERVICE,
        inheritable: present[0].inheritable & NET_BIND_SERVICE,
    };
    let kept = [low_ports, Capabilities::default()];
    if kept == present {
        return Ok(());
    }
    // SAFETY: the call reads a header of this version and two halves.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, kept.as_ptr()) } as c_int)
        .map(drop)
}

/// Groups of a user or process at most; the kernel's limit, `NGROUPS_MAX`.
const GROUPS_MAX: usize = 65_536;

/// Returns the groups of a user, and `gid`.
fn groups_of(account: &Account, gid: gid_t) -> Vec<gid_t> {
    let mut groups = vec![gid; GROUPS_MAX];
    let mut count = GROUPS_MAX as c_int;
    // SAFETY: the call reads a C string and writes at most `count` groups.
    let found =
        unsafe { libc::getgrouplist(account.name.as_ptr(), gid, groups.as_mut_ptr(), &mut count) };
    groups.truncate(if found < 0 { 1 } else { count as usize });
    groups
}

/// Returns the supplementary groups of the process.
fn present_groups() -> io::Result<Vec<gid_t>> {
    let mut groups = vec![0; GROUPS_MAX];
    // SAFETY: the call writes at most as many groups as there is room for.
    let count = check(unsafe { libc::getgroups(GROUPS_MAX as c_int, groups.as_mut_ptr()) })?;
    groups.truncate(count as usize);
    Ok(groups)
}

/// A user of the system.
struct Account {
    /// Name as the system writes it.
    name: CString,
    /// Number of the user.
    uid: uid_t,
    /// Number of the primary group.
    gid: gid_t,
}

/// Bytes for the strings of one user or group entry; a group with many members needs the most.
const ENTRY_BYTES: usize = 1 << 20;

/// Finds a user by name.
fn look_up_user(user: &str) -> io::Result<Option<Account>> {
    let Ok(name) = CString::new(user) else { return Ok(None) };
    let mut strings = vec![0; ENTRY_BYTES];
    // SAFETY: a zeroed passwd may be overwritten; the call writes within `strings`; on success
    // `found` is null or the entry, whose name is a C string in `strings`.
    unsafe {
        let (mut entry, mut found): (libc::passwd, _) = (mem::zeroed(), ptr::null_mut());
        let strings: &mut [c_char] = &mut strings;
        succeed(libc::getpwnam_r(
            name.as_ptr(),
            &mut entry,
            strings.as_mut_ptr(),
            strings.len(),
            &mut found,
        ))?;
        let found = !found.is_null();
        Ok(found.then(|| Account {
            name: CStr::from_ptr(entry.pw_name).to_owned(),
            uid: entry.pw_uid,
            gid: entry.pw_gid,
        }))
    }
}

/// Finds a group's id by its name.
fn look_up_group(group: &str) -> io::Result<Option<gid_t>> {
    let Ok(name) = CString::new(group) else { return Ok(None) };
    let mut strings = vec![0; ENTRY_BYTES];
    // SAFETY: as in `look_up_user`.
    unsafe {
        let (mut entry, mut found): (libc::group, _) = (mem::zeroed(), ptr::null_mut());
        let strings: &mut [c_char] = &mut strings;
        succeed(libc::getgrnam_r(
            name.as_ptr(),
            &mut entry,
            strings.as_mut_ptr(),
            strings.len(),
            &mut found,
        ))?;
        Ok((!found.is_null()).then_some(entry.gr_gid))
    }
}

/// Turns the error number that getpwnam_r(3) returns into an error. Some systems say "not found" by
/// one of these numbers rather than by a null entry.
fn succeed(error: c_int) -> io::Result<()> {
    match error {
        0 | libc::ENOENT | libc::ESRCH => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn unknown_and_privileged_users_are_refused() {
        let error = |user, group| drop_privileges(user, group).unwrap_err();
        assert!(matches!(error("no-such-user", None), PrivilegeError::UnknownUser));
        assert!(matches!(error("nul\0", None), PrivilegeError::UnknownUser));
        assert!(matches!(error("root", None), PrivilegeError::UserIsRoot));
        assert!(matches!(error("nobody", Some("no-such-group")), PrivilegeError::UnknownGroup));
    }
}
