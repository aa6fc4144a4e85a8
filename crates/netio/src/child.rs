//! Child processes that stay on given CPUs and do not outlive their parent.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use libc::{c_int, pid_t};

use crate::check;
use crate::process::cpu_set;

/// Starts a program as the leader of a process group of its own, on these CPUs only (on those of
/// the caller when there are none).
///
/// It gets SIGTERM when the calling *thread* ends, however that ends; so start it from a thread
/// that stays.
pub fn spawn(command: &mut Command, cpus: &[usize]) -> io::Result<Child> {
    let set = if cpus.is_empty() { None } else { Some(cpu_set(cpus)?) };
    // SAFETY: the call only returns a number.
    let parent = unsafe { libc::getpid() };
    command.process_group(0);
    let prepare = move || {
        // SAFETY: these calls are safe between fork and exec, take numbers, and read one set that
        // the closure owns.
        unsafe {
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM))?;
            if let Some(set) = &set {
                check(libc::sched_setaffinity(0, size_of_val(set), set))?;
            }
            // A parent that ended before the request above is not noticed by it.
            if libc::getppid() == parent { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
        }
    };
    // SAFETY: `prepare` makes system calls only, and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

/// Asks every process of the group that `leader` leads to end.
pub fn end_group(leader: &Child) -> io::Result<()> {
    signal_group(leader, libc::SIGTERM)
}

/// Ends every process of the group that `leader` leads, without asking.
pub fn kill_group(leader: &Child) -> io::Result<()> {
    signal_group(leader, libc::SIGKILL)
}

/// Ends every process of the group that the process with this id leads, without asking. The leader
/// must not have been waited for, as its id may be that of another process then.
pub fn kill_group_of(leader: u32) -> io::Result<()> {
    signal(leader, libc::SIGKILL)
}

/// Whether a process of the group that `leader` leads is still there.
pub fn group_exists(leader: &Child) -> bool {
    signal_group(leader, 0).is_ok()
}

/// Sends a signal to a group; 0 sends nothing, and fails when there is no such group.
fn signal_group(leader: &Child, signal_number: c_int) -> io::Result<()> {
    signal(leader.id(), signal_number)
}

/// Sends a signal to the group that the process with this id leads.
fn signal(leader: u32, signal: c_int) -> io::Result<()> {
    let group = pid_t::try_from(leader).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the call takes two numbers.
    check(unsafe { libc::killpg(group, signal) }).map(drop)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;
    use std::process::Stdio;
    use std::thread;

    use super::*;
    use crate::process::allowed_cpus;

    #[test]
    fn a_child_runs_on_its_cpus_only() {
        let cpu = *allowed_cpus().unwrap().last().unwrap();
        let mut command = Command::new("grep");
        command.args(["Cpus_allowed_list", "/proc/self/status"]).stdout(Stdio::piped());
        let mut child = spawn(&mut command, &[cpu]).unwrap();
        let mut text = String::new();
        child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(text.trim(), format!("Cpus_allowed_list:\t{cpu}"));
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it() {
        let start = || spawn(Command::new("sleep").arg("60"), &[]).unwrap();
        let mut child = thread::spawn(start).join().unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(!group_exists(&child));
    }

    #[test]
    fn a_process_group_is_ended_with_all_its_processes() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 60 & sleep 60 & wait"]);
        let mut child = spawn(&mut command, &[]).unwrap();
        assert!(group_exists(&child));
        kill_group(&child).unwrap();
        child.wait().unwrap();
        while group_exists(&child) {
            thread::yield_now();
        }
    }
}
