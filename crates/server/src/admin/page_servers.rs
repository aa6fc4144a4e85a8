//! The addresses at which pages are answered. They come and go at reloads.
//!
//! As with listeners, new ones are bound before the configuration is published, and those that are
//! gone are closed after it. What could fail is done when they are bound.
//!
//! Deliberately absent: `address`, `bind-statistics`, tokens and the Unix socket of the interface,
//! which a restart changes. A page at an address of these waits for the restart as well, if the new
//! configuration leaves it to the page.

use super::page_sockets::{self, PageMap, PageSocket, Pages, bind_one, page_map};
use crate::listen::overlaps;
use crate::listeners::OFFERED;
use crate::shared_ports::SharedPorts;
use crate::watchdog::Watchdog;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use zonda_config::Admin;

/// How long sockets of addresses that are answered no more are waited for.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// How often it is looked meanwhile.
const LOOK: Duration = Duration::from_millis(1);

/// Starts the task, of this name, that answers pages at a socket; none where the server has ended.
/// Needs the context of a runtime.
pub(super) type ServePages = Box<
    dyn Fn(&str, tokio::net::TcpListener, Arc<Mutex<Pages>>) -> Option<JoinHandle<()>>
        + Send
        + Sync,
>;

/// The addresses at which pages are answered.
#[derive(Default)]
pub struct PageServers(Mutex<State>);

/// The addresses, and what starts their tasks.
#[derive(Default)]
struct State {
    /// What starts tasks, while the server runs.
    starter: Option<Starter>,
    running: Vec<PageServer>,
}

/// What starts the tasks that answer pages.
struct Starter {
    serve: ServePages,
    runtime: Handle,
    /// What knows the tasks by their names.
    watchdog: Arc<Watchdog>,
}

/// An address at which pages are answered.
struct PageServer {
    /// The address in the configuration, where the port may be 0.
    address: SocketAddr,
    /// A handle on the socket, for a successor.
    socket: TcpListener,
    pages: Arc<Mutex<Pages>>,
    /// The name of the task.
    name: String,
    task: JoinHandle<()>,
}

/// A socket that is bound and known to the runtime.
struct BoundPage {
    address: SocketAddr,
    pages: Pages,
    socket: TcpListener,
    listener: tokio::net::TcpListener,
    /// The name of the task that will answer.
    name: String,
}

/// The pages of a configuration, with the sockets of addresses that are new.
pub struct BoundPages {
    /// All that the configuration has.
    all: PageMap,
    /// The pages that can be answered without a restart.
    wanted: PageMap,
    new: Vec<BoundPage>,
    /// Sockets that share their port until those are closed that are gone.
    sharing: SharedPorts,
}

impl PageServers {
    /// Answers pages from now on. Needs the context of a runtime.
    ///
    /// # Errors
    /// When a socket cannot be served.
    pub(super) fn start(
        &self,
        bound: Vec<PageSocket>,
        serve: ServePages,
        watchdog: &Arc<Watchdog>,
    ) -> io::Result<()> {
        let mut state = self.lock();
        let starter = Starter { serve, runtime: Handle::current(), watchdog: Arc::clone(watchdog) };
        for socket in bound {
            let bound = starter.prepare(socket)?;
            state.running.extend(starter.start(bound));
        }
        state.starter = Some(starter);
        Ok(())
    }

    /// Binds the addresses of pages that a configuration has and that are not answered. Those that
    /// meet an address of the interface as it is `running` wait for a restart.
    ///
    /// # Errors
    /// Why one cannot be bound, and then none is; or, if a successor has the sockets, too, that no
    /// address can come or go.
    pub fn bind(
        &self,
        config: &Admin,
        running: &Admin,
        is_offered: bool,
    ) -> Result<BoundPages, String> {
        let all = page_map(config);
        page_sockets::check(config, &all).map_err(|error| error.to_string())?;
        let mut wanted = all.clone();
        wanted.retain(|address, _| !waits_for_restart(*address, running));
        let state = self.lock();
        let is_running =
            |address: &SocketAddr| state.running.iter().any(|it| it.address == *address);
        let is_same = wanted.len() == state.running.len() && wanted.keys().all(is_running);
        if is_offered && !is_same {
            return Err(OFFERED.to_owned());
        }
        let mut bound =
            BoundPages { all, wanted, new: Vec::new(), sharing: SharedPorts::default() };
        let BoundPages { all, wanted, new, sharing } = &mut bound;
        for (address, named) in wanted.iter().filter(|(address, _)| !is_running(address)) {
            let starter = state.starter.as_ref().ok_or("the server stops, or has not begun yet")?;
            let is_shared = state.share_with_gone(*address, wanted, sharing);
            let socket = bind_one((*address, named), (config, all), is_shared);
            let Some(socket) = socket.map_err(|error| error.to_string())? else { continue };
            let socket = PageSocket { address: *address, pages: named.pages, socket };
            let page = starter.prepare(socket);
            let page = page.map_err(|error| format!("{address} cannot be answered at: {error}"))?;
            if is_shared {
                sharing.add(page.socket.as_fd()).map_err(|error| error.to_string())?;
            }
            new.push(page);
        }
        Ok(bound)
    }

    /// Answers the pages of a configuration, and no page besides, if it is in force by now; `admin`
    /// is of the one that is.
    pub fn follow(&self, bound: BoundPages, admin: &Admin) {
        if page_map(admin) != bound.all {
            return;
        }
        let BoundPages { wanted, new, sharing, .. } = bound;
        let mut state = self.lock();
        let is_gone = |it: &mut PageServer| !wanted.contains_key(&it.address);
        let gone: Vec<_> = state.running.extract_if(.., is_gone).collect();
        for known in &state.running {
            *lock(&known.pages) = wanted[&known.address].pages;
        }
        let State { starter, running } = &mut *state;
        let Some(starter) = starter else { return }; // the server has ended
        for page in new {
            let address = page.address;
            running.extend(starter.start(page));
            tracing::info!(%address, "pages are answered");
        }
        let watchdog = Arc::clone(&starter.watchdog);
        drop(state);
        close(gone, &watchdog);
        drop(sharing);
    }

    /// Descriptors of all sockets, for a successor.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        let state = self.lock();
        state.running.iter().map(|it| it.socket.as_fd().try_clone_to_owned()).collect()
    }

    /// Accepts no more connections: the sockets are a successor's.
    pub fn stop(&self) {
        self.lock().running.iter().for_each(|it| it.task.abort());
    }

    /// Lets go of all sockets, as the server has ended.
    pub fn end(&self) {
        *self.lock() = State::default();
    }

    /// The addresses, for a moment.
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

impl State {
    /// Has the sockets of pages that are gone share their port, where the kernel would refuse the
    /// address beside one of them: a single one beside all addresses. Returns whether there is one.
    fn share_with_gone(
        &self,
        address: SocketAddr,
        wanted: &PageMap,
        sharing: &mut SharedPorts,
    ) -> bool {
        let gone = self.running.iter().filter(|it| !wanted.contains_key(&it.address));
        let beside: Vec<_> = gone.filter(|it| overlaps(it.address, address)).collect();
        for server in &beside {
            if let Err(error) = sharing.share(server.socket.as_fd()) {
                tracing::debug!(%error, "the socket of a page does not share its port");
            }
        }
        !beside.is_empty()
    }
}

impl Starter {
    /// Has the runtime know a socket, by all that can fail.
    fn prepare(&self, socket: PageSocket) -> io::Result<BoundPage> {
        let PageSocket { address, pages, socket } = socket;
        let name = format!("admin-pages-{}", socket.local_addr()?);
        let _context = self.runtime.enter();
        let listener = tokio::net::TcpListener::from_std(socket.try_clone()?)?;
        Ok(BoundPage { address, pages, socket, listener, name })
    }

    /// Answers pages at an address; none where the server has ended.
    fn start(&self, bound: BoundPage) -> Option<PageServer> {
        let BoundPage { address, pages, socket, listener, name } = bound;
        let (pages, _context) = (Arc::new(Mutex::new(pages)), self.runtime.enter());
        let task = (self.serve)(&name, listener, Arc::clone(&pages))?;
        Some(PageServer { address, socket, pages, name, task })
    }
}

/// Accepts no more connections at addresses, and waits until their sockets are closed, so that
/// another process may have the addresses. Connections that were accepted have a page no more from
/// their next request on.
fn close(gone: Vec<PageServer>, watchdog: &Watchdog) {
    let closed = gone.into_iter().map(|server| {
        let PageServer { address, socket, pages, name, task } = server;
        drop(socket);
        let mut pages = lock(&pages);
        *pages = Pages { is_loopback: pages.is_loopback, ..Pages::default() };
        task.abort();
        (address, name, task)
    });
    let (closed, start) = (closed.collect::<Vec<_>>(), Instant::now());
    while start.elapsed() < CLOSE_MAX && !closed.iter().all(|(.., task)| task.is_finished()) {
        thread::sleep(LOOK);
    }
    for (address, name, task) in closed {
        if task.is_finished() {
            watchdog.forget(&name);
            tracing::info!(%address, "pages are answered no more");
        } else {
            tracing::warn!(%address, "pages are answered no more soon: the socket is still open");
        }
    }
}

/// Whether a page has to wait for a restart, as its address meets one that only a restart changes.
fn waits_for_restart(address: SocketAddr, running: &Admin) -> bool {
    let waits = page_sockets::meets_interface(address, running);
    if waits {
        tracing::warn!(
            %address,
            "pages are answered at the address from the next start on: `address` or \
             `bind-statistics` of [admin] has it until then"
        );
    }
    waits
}

/// Locks what is written whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
