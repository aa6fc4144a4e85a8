//! The interface of a node's own DNS cache: made before the server listens, made again when it is
//! gone, removed when the server stops.
//!
//! The interface outlives a process that is killed, and the next one takes it over. A process that
//! stops leaves it alone if another one has taken it over.

use crate::watchdog::Watchdog;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zonda_config::NodeLocal;
use zonda_netio::interface::{
    FormerInterface, InterfaceError, InterfaceWatch, LocalInterface, Repair,
};
use zonda_netio::{Poller, Wake};

/// How often the interface is looked at without a notice of the kernel.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);
/// How long notices are gathered: the interfaces of many pods may change at once.
const GATHERING: Duration = Duration::from_millis(50);

/// The interface could not be made, or taken over.
#[derive(Debug)]
pub struct NodeLocalError {
    /// The name of the interface.
    interface: String,
    /// Why it could not be had.
    error: InterfaceError,
}

impl fmt::Display for NodeLocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot make the interface {} of [node-local]: {}", self.interface, self.error)
    }
}

impl std::error::Error for NodeLocalError {}

/// What the running server has of the interface.
#[derive(Debug)]
pub struct NodeInterface {
    interface: LocalInterface,
    /// How often the interface, or an address of it, was made again.
    pub repairs: AtomicU64,
    /// How often that failed.
    pub failures: AtomicU64,
}

impl NodeInterface {
    /// Marks the interface as this process's again, as a successor that took it over has gone away.
    pub fn take_back(&self) {
        if let Err(error) = self.interface.claim() {
            let interface = self.interface.name();
            tracing::error!(interface, %error, "the interface cannot be taken back");
        }
        self.remove_foreign();
    }

    /// Takes addresses of another configuration from the interface.
    fn remove_foreign(&self) {
        let interface = self.interface.name();
        match self.interface.remove_foreign() {
            Ok(0) => {}
            Ok(addresses) => {
                tracing::info!(interface, addresses, "addresses of another configuration removed");
            }
            Err(error) => tracing::warn!(
                interface, %error, "addresses of another configuration cannot be removed"
            ),
        }
    }

    /// Makes the interface and its addresses again where they are gone. A failure is logged unless
    /// the look before failed as well; whether this one did.
    fn look(&self, was_failing: bool) -> bool {
        let interface = self.interface.name();
        match self.interface.repair() {
            Ok(Repair::Whole | Repair::Foreign) => return false,
            Ok(Repair::Made) => {
                tracing::warn!(interface, "the interface was gone and is made again");
            }
            Ok(Repair::Completed(parts)) => {
                tracing::warn!(interface, parts, "parts of the interface were gone and are back");
            }
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                if !was_failing {
                    tracing::error!(interface, %error, "the interface cannot be made again");
                }
                return true;
            }
        }
        self.repairs.fetch_add(1, Ordering::Relaxed);
        false
    }
}

/// The interface while the server starts: what was done is undone if it does not.
pub struct ClaimedInterface {
    own: Arc<NodeInterface>,
    /// The interface as it was found, until the server has started.
    former: Option<FormerInterface>,
}

impl ClaimedInterface {
    /// Makes the interface of a configuration, if it has one, or takes over the one that is there.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn claim(config: Option<&NodeLocal>) -> Result<Option<Self>, NodeLocalError> {
        let Some(NodeLocal { interface: name, addresses }) = config else { return Ok(None) };
        let interface = LocalInterface::new(name.clone(), addresses.clone(), &process());
        let former =
            interface.claim().map_err(|error| NodeLocalError { interface: name.clone(), error })?;
        let addresses = addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
        match former {
            FormerInterface::Absent => {
                tracing::info!(interface = name, addresses, "interface made");
            }
            FormerInterface::Present { .. } => {
                tracing::info!(interface = name, addresses, "interface taken over");
            }
        }
        let (repairs, failures) = Default::default();
        let own = Arc::new(NodeInterface { interface, repairs, failures });
        Ok(Some(Self { own, former: Some(former) }))
    }

    /// What other threads have of the interface.
    pub fn own(&self) -> Arc<NodeInterface> {
        Arc::clone(&self.own)
    }

    /// Looks after the interface from now on, on which are no other addresses any more.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub fn keep(mut self, watchdog: &Arc<Watchdog>) -> io::Result<KeptInterface> {
        let kept = KeptInterface::start(Arc::clone(&self.own), watchdog)?;
        self.former = None;
        self.own.remove_foreign(); // as late as this, for a start that fails leaves them there
        Ok(kept)
    }
}

impl Drop for ClaimedInterface {
    fn drop(&mut self) {
        if let Some(former) = self.former.take() {
            self.own.interface.give_back(&former);
        }
    }
}

/// A text that tells this process from any other one, also in another container: the number of the
/// process alone would not.
fn process() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{} {}", std::process::id(), now.as_nanos())
}

/// The interface while the server runs, and the thread that looks after it.
pub struct KeptInterface {
    own: Arc<NodeInterface>,
    is_ending: Arc<AtomicBool>,
    wake: Arc<Wake>,
    thread: JoinHandle<()>,
}

impl KeptInterface {
    /// Starts the thread.
    fn start(own: Arc<NodeInterface>, watchdog: &Arc<Watchdog>) -> io::Result<Self> {
        let (is_ending, wake) = (Arc::<AtomicBool>::default(), Arc::new(Wake::new()?));
        let (mut poller, watch) = (Poller::new()?, InterfaceWatch::open()?);
        poller.add(&watch, 0)?;
        poller.add(&*wake, 1)?;
        let (looked_at, ends) = (Arc::clone(&own), Arc::clone(&is_ending));
        let thread = watchdog.spawn("node-local", move || {
            // It may have gone before notices were listened to.
            let mut is_failing = looked_at.look(false);
            loop {
                let ready = poller.wait(Some(LOOK_INTERVAL)).map(|ready| ready.count());
                if ends.load(Ordering::Acquire) {
                    return true;
                }
                let Ok(ready) = ready else { return false };
                if ready == 0 || watch.take() {
                    thread::sleep(GATHERING);
                    watch.take();
                    is_failing = looked_at.look(is_failing);
                }
            }
        })?;
        Ok(Self { own, is_ending, wake, thread })
    }

    /// Looks after the interface no more, and removes it unless another process has taken it over.
    pub fn end(self) {
        self.is_ending.store(true, Ordering::Release);
        self.wake.wake();
        let _ = self.thread.join(); // what a panic did is in the watchdog
        let interface = self.own.interface.name();
        match self.own.interface.remove() {
            Ok(true) => tracing::info!(interface, "interface removed"),
            Ok(false) => tracing::info!(interface, "interface left to the process that has it now"),
            Err(error) => tracing::error!(interface, %error, "interface not removed"),
        }
    }
}
