//! What the process may use: CPUs, time, descriptors; and whose rights it has.

use std::io;
use std::mem;
use std::ptr;
use std::thread;
use std::time::Duration;

use libc::{c_int, gid_t, uid_t};

use crate::check;

/// CPUs that this process may use at once, at least 1: the smaller of its affinity mask and its
/// cgroup's quota. A quota of 1.5 CPUs counts as 1, since a second worker would be throttled for
/// most of every period, which clients see as latency.
pub fn available_cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of the CPU that the calling thread runs on at the moment.
#[must_use]
pub fn current_cpu() -> Option<usize> {
    // SAFETY: the call has no arguments and touches no memory of this process.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Returns the numbers of the CPUs that the calling thread may run on, ascending.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: a zeroed set is an empty set; the call writes at most its size; CPU_ISSET is asked
    // only about numbers below the set's size.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        check(libc::sched_getaffinity(0, size_of_val(&set), &mut set))?;
        let cpus = 0..libc::CPU_SETSIZE as usize;
        Ok(cpus.filter(|&cpu| libc::CPU_ISSET(cpu, &set)).collect())
    }
}

/// Keeps the calling thread on these CPUs.
pub fn pin_thread(cpus: &[usize]) -> io::Result<()> {
    let set = cpu_set(cpus)?;
    // SAFETY: the call reads one set.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) }).map(drop)
}

/// Returns the set of these CPUs.
pub(crate) fn cpu_set(cpus: &[usize]) -> io::Result<libc::cpu_set_t> {
    // SAFETY: a zeroed set is an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: `cpu` is below the set's size.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    Ok(set)
}

/// CPU time that the calling thread has used, user and system.
pub fn thread_cpu_time() -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec.
    check(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) })?;
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Has the calling thread's timers end when they are due, not up to 50 µs later.
pub fn use_exact_timers() -> io::Result<()> {
    // SAFETY: takes integers; 1 is a nanosecond, 0 would mean the default.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) }).map(drop)
}

/// Has the scheduler let the calling thread run soon after it wakes, and then no longer than
/// `slice` while other threads want its CPU (Linux 6.12; older ones take no notice). Its share of
/// the CPU stays the same.
pub fn use_short_slices(slice: Duration) -> io::Result<()> {
    // SAFETY: all zeros are a valid value of integers.
    let mut attributes: libc::sched_attr = unsafe { mem::zeroed() };
    let size = size_of_val(&attributes) as libc::c_uint;
    let place = ptr::from_mut(&mut attributes);
    // SAFETY: 0 is the calling thread; the call writes at most `size` octets.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, place, size, 0) } as c_int)?;
    attributes.sched_runtime = slice.as_nanos() as u64; // far less than 2⁶⁴ ns
    let place = ptr::from_ref(&attributes);
    // SAFETY: the call reads as many octets as the value says that it has.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, place, 0) } as c_int).map(drop)
}

/// Has the calling thread go behind other threads that want its CPU: its niceness, -20 to 19, is at
/// least this from now on.
pub fn be_nice(niceness: i8) -> io::Result<()> {
    // SAFETY: both take integers; 0 is the calling thread. The first one cannot fail for a
    // thread that runs.
    check(unsafe {
        let before = libc::getpriority(libc::PRIO_PROCESS, 0);
        libc::setpriority(libc::PRIO_PROCESS, 0, before.max(niceness.into()))
    })
    .map(drop)
}

/// Raises the limit of open descriptors to `wanted`, or as far as this process may; returns the
/// limit in force, the former one if it may not be changed. Never lowers it.
pub fn raise_descriptor_limit(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes one rlimit.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    let set = |current: u64, hard: u64| {
        let limit = libc::rlimit { rlim_cur: current, rlim_max: hard };
        // SAFETY: the call reads one rlimit.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }).map(|_| current)
    };
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    // Only the privileged may raise the hard limit.
    set(wanted, limit.rlim_max.max(wanted))
        .or_else(|_| set(wanted.min(limit.rlim_max), limit.rlim_max))
        .or(Ok(limit.rlim_cur))
}

/// Returns the user whose rights the process has.
#[must_use]
pub fn effective_user() -> uid_t {
    // SAFETY: the call takes nothing, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether the process has the rights of a group.
#[must_use]
pub fn is_in_group(group: gid_t) -> bool {
    // SAFETY: the call takes nothing, and cannot fail.
    if unsafe { libc::getegid() } == group {
        return true;
    }
    // SAFETY: with a length of 0, the call writes nothing, and returns how many groups there are.
    let count = unsafe { libc::getgroups(0, std::ptr::null_mut()) };
    let mut groups = vec![0; usize::try_from(count).unwrap_or_default()];
    // SAFETY: the list has room for `count` groups; if there are more by now, the call fails.
    let count = unsafe { libc::getgroups(count.max(0), groups.as_mut_ptr()) };
    groups.truncate(usize::try_from(count).unwrap_or_default());
    groups.contains(&group)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn at_least_one_cpu_is_available_and_no_more_than_allowed() {
        assert!((1..=allowed_cpus().unwrap().len()).contains(&available_cpus()));
    }

    #[test]
    fn a_pinned_thread_may_run_on_its_cpu_only() {
        thread::spawn(|| {
            let cpu = *allowed_cpus().unwrap().last().unwrap();
            pin_thread(&[cpu]).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [cpu]);
        })
        .join()
        .unwrap();
        assert!(pin_thread(&[1 << 20]).is_err());
    }

    #[test]
    fn a_thread_only_ever_becomes_nicer() {
        let niceness = || {
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let fields = stat.rsplit(')').next().unwrap().split_whitespace();
            fields.clone().nth(16).unwrap().parse::<i8>().unwrap()
        };
        let told = thread::spawn(move || {
            be_nice(15).unwrap();
            let first = niceness();
            be_nice(3).unwrap();
            (first, niceness())
        });
        let (first, second) = told.join().unwrap();
        assert!(first >= 15 && second == first, "{first}, {second}");
    }

    #[test]
    fn a_thread_may_ask_for_short_slices_without_rights() {
        let asked = thread::spawn(|| use_short_slices(Duration::from_micros(100)));
        asked.join().unwrap().unwrap();
    }

    #[test]
    fn cpu_time_of_a_thread_grows_with_its_work() {
        let before = thread_cpu_time().unwrap();
        while thread_cpu_time().unwrap() == before {}
        use_exact_timers().unwrap();
    }

    #[test]
    fn the_descriptor_limit_is_never_lowered() {
        let before = raise_descriptor_limit(0).unwrap();
        assert_eq!(raise_descriptor_limit(16).unwrap(), before);
        assert!(raise_descriptor_limit(before).unwrap() >= before);
    }
}
