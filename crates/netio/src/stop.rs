//! Ends a thread that blocks in a receive call.
//!
//! A worker that can be stopped would have to poll a second descriptor or receive with a
//! time-out; both cost CPU on every batch. Instead the handle sends a signal that does nothing but
//! interrupt the call. It may arrive just before the call begins and be lost, so the handle repeats
//! it until the worker confirms that it has seen the request.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{mem, ptr, thread};

use libc::c_int;

use crate::check;

/// Time between two signals to a worker that has not seen the request.
const REPEAT_EVERY: Duration = Duration::from_millis(1);

/// Makes the two ends of one worker's stop request. Fails if no signal number is free for it.
pub fn stop_channel() -> io::Result<(StopHandle, StopToken)> {
    wake_signal()?;
    let shared = Arc::new(Shared::default());
    Ok((StopHandle { shared: Arc::clone(&shared) }, StopToken { shared }))
}

/// State shared by the handle and the token.
#[derive(Debug, Default)]
struct Shared {
    /// The handle wants the worker to stop.
    requested: AtomicBool,
    /// The worker has seen the request, or is gone.
    acknowledged: AtomicBool,
    /// The worker's thread; 0 before [`StopToken::enter`].
    thread_id: AtomicI32,
}

/// The worker's end. Dropping it acknowledges, so a worker that panics is not waited for.
#[derive(Debug)]
pub struct StopToken {
    /// State that the token shares.
    shared: Arc<Shared>,
}

impl StopToken {
    /// Names the calling thread as the one to interrupt. Call it before the first blocking call.
    pub fn enter(&self) {
        // SAFETY: both calls have no preconditions; the set is initialised before it is used.
        unsafe {
            let mut signals: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&mut signals);
            if let Ok(signal) = wake_signal() {
                libc::sigaddset(&mut signals, signal);
            }
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &signals, ptr::null_mut());
            self.shared.thread_id.store(libc::gettid(), Ordering::Release);
        }
    }

    /// Whether to stop. Ask before every blocking call; a `true` acknowledges the request.
    #[inline]
    pub fn is_requested(&self) -> bool {
        let requested = self.shared.requested.load(Ordering::Acquire);
        if requested {
            self.shared.acknowledged.store(true, Ordering::Release);
        }
        requested
    }
}

impl Drop for StopToken {
    fn drop(&mut self) {
        self.shared.acknowledged.store(true, Ordering::Release);
    }
}

/// The owner's end.
#[derive(Debug)]
pub struct StopHandle {
    /// State that the handle shares.
    shared: Arc<Shared>,
}

impl StopHandle {
    /// Asks the worker to stop and interrupts its blocking call, without waiting.
    pub fn request(&self) {
        self.shared.requested.store(true, Ordering::Release);
        self.wake();
    }

    /// Interrupts the worker's blocking call, if it has not acknowledged yet.
    fn wake(&self) {
        let thread_id = self.shared.thread_id.load(Ordering::Acquire);
        if self.is_acknowledged() || thread_id == 0 {
            return;
        }
        if let Ok(signal) = wake_signal() {
            // SAFETY: tgkill takes three integers. Should the thread be gone and its id in use
            // again, another thread of this process runs the handler, which does nothing.
            unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread_id, signal) };
        }
    }

    /// Whether the worker has seen the request or is gone.
    fn is_acknowledged(&self) -> bool {
        self.shared.acknowledged.load(Ordering::Acquire)
    }
}

/// Stops many workers: asks all of them, then repeats until each has seen it.
///
/// Returns whether all have before `deadline`; those that have not go on without hearing more of
/// it.
pub fn stop_all<'a>(handles: impl IntoIterator<Item = &'a StopHandle>, deadline: Instant) -> bool {
    let mut waiting: Vec<&StopHandle> = handles.into_iter().collect();
    waiting.iter().for_each(|handle| handle.request());
    loop {
        waiting.retain(|handle| !handle.is_acknowledged());
        if waiting.is_empty() || Instant::now() >= deadline {
            return waiting.is_empty();
        }
        thread::sleep(REPEAT_EVERY);
        waiting.iter().for_each(|handle| handle.wake());
    }
}

/// Returns the signal that wakes workers: the first real-time signal without a handler, taken once.
fn wake_signal() -> io::Result<c_int> {
    static SIGNAL: OnceLock<Result<c_int, io::ErrorKind>> = OnceLock::new();
    (*SIGNAL.get_or_init(|| claim_signal().map_err(|error| error.kind()))).map_err(io::Error::from)
}

/// Puts a handler on a free real-time signal.
fn claim_signal() -> io::Result<c_int> {
    /// Does nothing: that the signal was handled is what ends the system call.
    extern "C" fn wake(_signal: c_int) {}

    for signal in libc::SIGRTMIN()..=libc::SIGRTMAX() {
        // SAFETY: an all-zero sigaction is valid: default action, empty mask, no flags. Without
        // SA_RESTART the call ends with EINTR. The handler touches nothing, so it may run anywhere.
        unsafe {
            let mut current: libc::sigaction = mem::zeroed();
            check(libc::sigaction(signal, ptr::null(), &mut current))?;
            if current.sa_sigaction != libc::SIG_DFL {
                continue;
            }
            let mut ours: libc::sigaction = mem::zeroed();
            ours.sa_sigaction = wake as extern "C" fn(c_int) as libc::sighandler_t;
            check(libc::sigaction(signal, &ours, ptr::null_mut()))?;
        }
        return Ok(signal);
    }
    Err(io::ErrorKind::ResourceBusy.into())
}
