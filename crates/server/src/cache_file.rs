//! The file that holds the cache while the server does not run.
//!
//! Read before the server answers; written by a thread of its own, so that neither workers nor
//! clients wait for the disk, and once more when the server ends or hands its sockets over. A file
//! that is of no use is told of and costs a cold start, no more.
//!
//! Deliberately absent: its format, and how it is replaced at once (`zonda_cache::persist`).

use crate::atomic_file;
use crate::watchdog::Watchdog;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use zonda_cache::persist::{self, Clocks};
use zonda_cache::{Cache, Flushes, Policy};
use zonda_deferral::Clock;
use zonda_zone::{HashSeed, LookupName};

/// How often it is told how far a large file was read.
const TELL_INTERVAL: Duration = Duration::from_secs(5);
/// Octets that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Fills an empty cache from a file that another process wrote, with the answers of these sources,
/// for as long as the policy of each lets them be kept.
pub fn load(path: &Path, cache: &Cache, sources: &[(u32, Policy)], seed: HashSeed, clock: Clock) {
    let start = Instant::now();
    persist::remove_leftovers(path);
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return, // the first start
        Err(error) => return refuse(path, &error),
    };
    let mut name = LookupName::default();
    let policy_of = |source: u32| sources.iter().find(|(known, _)| *known == source);
    let policy = |source: u32| policy_of(source).map_or_else(Policy::default, |it| it.1);
    let loaded = persist::read(cache, file, clocks(clock), &policy, |source, octets| {
        name.set(octets, seed);
        policy_of(source).map(|_| name.hash(0))
    });
    match loaded {
        Ok(count) => {
            let (path, took) = (path.display(), start.elapsed());
            tracing::info!(%path, count, ?took, "answers read");
        }
        Err(error) => refuse(path, &error),
    }
}

/// Opens a file that it is told of how far it was read.
fn open(path: &Path) -> io::Result<BufReader<Progress>> {
    let (file, told) = (atomic_file::open_own(path)?, Instant::now());
    let size = file.metadata()?.len();
    let progress = Progress { file, path: path.to_owned(), size, done: 0, told };
    Ok(BufReader::with_capacity(BUFFER_BYTES, progress))
}

/// Tells that a file is of no use.
fn refuse(path: &Path, error: &dyn std::error::Error) {
    let path = path.display();
    tracing::error!(
        %path, %error,
        "cannot use the file of cached answers; the server starts with an empty cache"
    );
}

/// A file that is being read.
struct Progress {
    file: File,
    path: PathBuf,
    /// Octets of the file, and how many of them were read.
    size: u64,
    done: u64,
    /// When the progress was last reported.
    told: Instant,
}

impl Read for Progress {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.done += count as u64;
        if self.told.elapsed() >= TELL_INTERVAL {
            self.told = Instant::now();
            let percent = 100 * self.done / self.size.max(1);
            tracing::info!(path = %self.path.display(), percent, "reading answers");
        }
        Ok(count)
    }
}

/// The file of a running server's cache.
pub struct CacheFile {
    path: PathBuf,
    cache: Arc<Cache>,
    clock: Clock,
    /// The contents of the cache when the file was last written. Locked while it is written, so
    /// that this happens once at a time.
    written: Mutex<Option<Content>>,
    orders: Sender<Order>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Counters of the file.
    pub counters: Counters,
}

/// What can be told of the file.
#[derive(Default)]
pub struct Counters {
    /// How often the file was written.
    pub written: AtomicU64,
    /// How often the file could not be written.
    pub failed: AtomicU64,
    /// When the file was last written, seconds since 1970; 0: never.
    pub written_at: AtomicU64,
}

/// Tells whether a cache has changed: what was put in and what was taken out on demand.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Content(u64, Flushes);

/// What the thread is to do.
enum Order {
    Write,
    End,
}

impl CacheFile {
    /// Writes a cache to a file at every interval from now on, in a thread that `watchdog` watches.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn keep(
        path: PathBuf,
        interval: Duration,
        cache: Arc<Cache>,
        clock: Clock,
        watchdog: &Arc<Watchdog>,
    ) -> io::Result<Arc<Self>> {
        let (orders, received) = channel();
        let file = Arc::new(Self {
            written: Mutex::new(Some(Content::of(&cache))),
            path,
            cache,
            clock,
            orders,
            thread: Mutex::default(),
            counters: Counters::default(),
        });
        let writer = Arc::clone(&file);
        let work = move || writer.run(&received, interval);
        let thread = watchdog.spawn("cache-file", work)?;
        *file.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(file)
    }

    /// Writes when it is time to, or told to. Returns whether it was told to end.
    fn run(&self, orders: &Receiver<Order>, interval: Duration) -> bool {
        loop {
            match orders.recv_timeout(interval) {
                Ok(Order::Write) | Err(RecvTimeoutError::Timeout) => self.write(),
                Ok(Order::End) => return true,
                Err(RecvTimeoutError::Disconnected) => return false, // yet `self` has the sender
            }
        }
    }

    /// Has the file written soon; does not wait for that.
    pub fn write_soon(&self) {
        let _ = self.orders.send(Order::Write); // if the thread has ended, so has the server
    }

    /// Writes the file, if there is anything new, and waits for it.
    pub fn write(&self) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let content = Content::of(&self.cache);
        if *written == Some(content) {
            return;
        }
        let (start, clocks) = (Instant::now(), clocks(self.clock));
        let path = self.path.display();
        match persist::save(&self.cache, &self.path, clocks) {
            Ok(count) => {
                *written = Some(content);
                self.counters.written.fetch_add(1, Relaxed);
                self.counters.written_at.store(clocks.unix_secs, Relaxed);
                let took = start.elapsed();
                tracing::debug!(%path, count, ?took, "answers written");
            }
            Err(error) => {
                self.counters.failed.fetch_add(1, Relaxed);
                tracing::error!(
                    %path, %error,
                    "answers cannot be written to their file; the server must be able to write to \
                     the directory of cache.persist"
                );
            }
        }
    }

    /// Ends the thread, once it has written what it is writing.
    pub fn end(&self) {
        let _ = self.orders.send(Order::End);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join(); // a panic was logged by its hook
        }
    }
}

impl Content {
    /// Returns the present contents of a cache.
    fn of(cache: &Cache) -> Self {
        Self(cache.stats().inserts, cache.flushes())
    }
}

/// The present, for a file.
fn clocks(clock: Clock) -> Clocks {
    let now = clock.now();
    Clocks { now_secs: now.monotonic_secs(), unix_secs: now.unix_secs.into() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn a_file_that_another_user_may_have_filled_is_not_read() {
        let path = std::env::temp_dir().join(format!("zonda-cache-file-{}", std::process::id()));
        for (mode, is_read) in [(0o600, true), (0o644, true), (0o620, true), (0o602, false)] {
            fs::write(&path, "zondaca1").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(open(&path).is_ok(), is_read, "{mode:o}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        if chown(&path, None, Some(12_345)).is_ok() {
            fs::set_permissions(&path, Permissions::from_mode(0o620)).unwrap();
            let error = open(&path).err().unwrap();
            assert!(error.to_string().contains("chmod go-w"), "{error}");
        }
        if chown(&path, Some(12_345), None).is_ok() {
            let error = open(&path).err().unwrap();
            assert!(error.to_string().contains("another user's"), "{error}");
        }
        fs::remove_file(&path).unwrap();
    }
}
