//! A store in Redis or Valkey.
//!
//! ```text
//! key      labels from the right, between colons      org:example:www
//! field    type                                       A
//! value    {"ttl":300,"data":["192.0.2.1"]}           or what DinoDNS writes, see `value`
//! channel  zonda:changes                              the owner whose records were written
//! ```
//!
//! Changes by other programs are announced by the server's keyspace notifications if they are on
//! (`notify-keyspace-events`, at least `Kghx`); a periodic comparison of all records finds further
//! ones.

mod address;
mod connection;
mod key;
mod stream;
#[cfg(not(feature = "tls"))]
#[path = "no_tls_stream.rs"]
mod tls_stream;
#[cfg(feature = "tls")]
mod tls_stream;
mod value;

use super::limit::READ_MAX;
use super::record_set::{normal, normal_owner};
use super::zone_names::ZoneNames;
use super::{Changes, RecordSet, Store, StoreError, Watch};
use address::Address;
use connection::{Connection, Reply};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use zonda_wire::{Name, Type};

/// Keys that one step of a scan looks at.
const SCAN_COUNT: &str = "1000";
/// Keys that are asked for at a time.
const KEYS_AT_A_TIME: usize = 500;
/// Default time between two comparisons of all records.
const COMPARE_EVERY: Duration = Duration::from_secs(30);
/// After so long a silence the server is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(10);
/// How long it may take to say so.
const PONG: Duration = Duration::from_secs(5);
/// Messages that are taken at a time.
const MESSAGES_MAX: usize = 10_000;
/// Octets of messages that are taken at a time.
const MESSAGES_BYTES_MAX: u64 = 64 << 20;
/// How often a change is tried whose keys other programs change at the same time.
const TRIES: usize = 3;
/// The channel on which this store announces what it has written.
const CHANNEL: &str = "zonda:changes";

/// A store in a Redis server.
pub struct RedisStore {
    address: Address,
    prefix: String,
    compare_every: Duration,
    read_max: u64,
    connection: Mutex<Option<Connection>>,
}

impl fmt::Debug for RedisStore {
    /// Writes the address without its password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore")
            .field("address", &format_args!("{}", self.address))
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl RedisStore {
    /// Returns the server's `host:port`: what the bindings show of a store.
    #[doc(hidden)]
    #[must_use]
    pub fn place(&self) -> String {
        self.address.to_string()
    }

    /// In the server at a URL such as `redis://127.0.0.1:6379`, in full
    /// `redis://user:password@host:port/database`. With `rediss://` the connection is encrypted
    /// by TLS, and the server must have a certificate for the host in the URL: one that leads to a
    /// public root, or with `rediss://host/?ca=FILE` to one of the certificates in a file of PEM
    /// form, which is read for each connection. It is connected to when it is needed.
    ///
    /// # Errors
    /// When the URL is none of these, the file cannot be read, or the program was built without
    /// the feature `encrypted`.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let address: Address = url.parse().map_err(|why: String| StoreError::config(why))?;
        if let Some(trust) = &address.trust {
            let server = address.to_string();
            trust.check().map_err(|error| StoreError::config(ServerError { server, error }))?;
        }
        let connection = Mutex::new(None);
        let (prefix, compare_every) = (String::new(), COMPARE_EVERY);
        Ok(Self { address, prefix, compare_every, read_max: READ_MAX, connection })
    }

    /// Sets how many octets are read at a time at most, as the configuration says.
    #[doc(hidden)]
    #[must_use]
    pub fn read_max(mut self, octets: u64) -> Self {
        self.read_max = octets;
        self
    }

    /// Puts this before each key. DinoDNS has none, as is the default.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets how often all records are compared, for changes without a notification; by default
    /// every 30 seconds.
    #[must_use]
    pub fn compare_every(mut self, interval: Duration) -> Self {
        self.compare_every = interval;
        self
    }

    /// The key of an owner.
    fn key(&self, owner: &str) -> String {
        format!("{}{}", self.prefix, key::of_owner(owner))
    }

    /// The owner whose records a key has.
    fn owner(&self, key: &str) -> String {
        key::owner(key.strip_prefix(&self.prefix).unwrap_or(key))
    }

    /// A pattern of the keys of a zone, and of few other keys.
    fn pattern(&self, zone: &Name) -> String {
        let key = key::of_owner(&zone.to_string());
        format!("{}{}*", key::literal(&self.prefix), key::in_any_case(&key))
    }

    /// Does something with a connection; once more if that had become stale.
    fn with<T>(&self, work: impl Fn(&mut Connection) -> io::Result<T>) -> Result<T, StoreError> {
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut known) = slot.take() {
            known.allow(self.read_max);
            match work(&mut known) {
                Ok(done) => {
                    *slot = Some(known);
                    return Ok(done);
                }
                Err(error) if is_limit(&error) => return Err(self.failed(error)),
                Err(_) => {}
            }
        }
        let mut fresh = Connection::open(&self.address).map_err(|error| self.failed(error))?;
        fresh.allow(self.read_max);
        let done = work(&mut fresh).map_err(|error| self.failed(error))?;
        *slot = Some(fresh);
        Ok(done)
    }

    /// An error that says of which server it is.
    fn failed(&self, error: io::Error) -> StoreError {
        StoreError::failed(ServerError { server: self.address.to_string(), error })
    }

    /// The records that keys hold; keys that are no hashes are passed over.
    fn read(&self, connection: &mut Connection, keys: &[String]) -> io::Result<Vec<RecordSet>> {
        for key in keys {
            connection.send(&["HGETALL", key])?;
        }
        let mut sets = Vec::new();
        for key in keys {
            let owner = self.owner(key);
            match connection.receive()? {
                Reply::List(fields) => {
                    let (pairs, _) = fields.as_chunks::<2>();
                    sets.extend(pairs.iter().map(|[field, value]| {
                        value::records(&owner, &field.text(), &value.text())
                    }));
                }
                Reply::Failure(why) if why.starts_with("WRONGTYPE") => {}
                other => return Err(other.unexpected()),
            }
        }
        Ok(sets)
    }

    /// The keys of zones, each once.
    fn keys(&self, connection: &mut Connection, zones: &ZoneNames) -> io::Result<Vec<String>> {
        let pattern = self.pattern(zones.common_ancestor());
        let (mut cursor, mut keys) = ("0".to_owned(), BTreeSet::new());
        loop {
            let reply =
                connection.call(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", SCAN_COUNT])?;
            let Reply::List(parts) = &reply else { return Err(reply.unexpected()) };
            let [next, Reply::List(found)] = &parts[..] else { return Err(reply.unexpected()) };
            let found = found.iter().map(Reply::text);
            keys.extend(found.filter(|key| zones.concern(&self.owner(key))));
            cursor = next.text();
            if cursor == "0" {
                return Ok(keys.into_iter().collect());
            }
        }
    }

    /// Runs commands, each with the owner that it changes and the owner's key, and announces the
    /// owners, in one step; returns the first reply.
    fn change(&self, commands: &[(&str, Vec<&str>)]) -> Result<Reply, StoreError> {
        self.with(|connection| {
            for _ in 0..TRIES {
                watch_hashes(connection, commands)?;
                if let Some(first) = self.try_to_change(connection, commands)? {
                    return Ok(first);
                }
            }
            Err(io::Error::other("other programs change the same keys all the time; try it again"))
        })
    }

    /// Runs commands and announces their owners in one step; returns the first reply, or nothing if
    /// a key that is watched has changed.
    fn try_to_change(
        &self,
        connection: &mut Connection,
        commands: &[(&str, Vec<&str>)],
    ) -> io::Result<Option<Reply>> {
        let channel = format!("{}{CHANNEL}", self.prefix);
        connection.send(&["MULTI"])?;
        for (_, command) in commands {
            connection.send(command)?;
        }
        for (owner, _) in commands {
            connection.send(&["PUBLISH", &channel, owner])?;
        }
        connection.send(&["EXEC"])?;
        // OK, QUEUED for each, and the results of all; a first failure causes the later ones.
        let mut failure = None;
        for _ in 0..=2 * commands.len() {
            let reply = connection.receive()?;
            failure = failure.or(matches!(reply, Reply::Failure(_)).then_some(reply));
        }
        match (failure, connection.receive()?) {
            (Some(failure), _) => Err(failure.unexpected()),
            (None, Reply::List(mut replies)) => {
                match replies.iter().position(|it| matches!(it, Reply::Failure(_))) {
                    Some(failed) => Err(replies.swap_remove(failed).unexpected()),
                    None if replies.is_empty() => Err(io::Error::other("nothing was done")),
                    None => Ok(Some(replies.swap_remove(0))),
                }
            }
            (None, Reply::Nothing) => Ok(None),
            (None, other) => Err(other.unexpected()),
        }
    }
}

/// An error of a connection, and of which server it is.
#[derive(Debug)]
struct ServerError {
    /// Host and port.
    server: String,
    error: io::Error,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis at {}: {}", self.server, self.error)
    }
}

impl std::error::Error for ServerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Has the server watch the keys of several commands, so that these are run only if no key changes
/// before; Redis would run the rest of them where one fails. A single one needs no such care.
///
/// # Errors
/// When a key holds something else than a hash.
fn watch_hashes(connection: &mut Connection, commands: &[(&str, Vec<&str>)]) -> io::Result<()> {
    let keys: Vec<&str> =
        commands.iter().filter_map(|(_, command)| command.get(1).copied()).collect();
    if keys.len() < 2 {
        return Ok(());
    }
    connection.send(&[&["WATCH"][..], &keys].concat())?;
    for key in &keys {
        connection.send(&["TYPE", key])?;
    }
    let watched = connection.receive()?;
    if matches!(watched, Reply::Failure(_)) {
        return Err(watched.unexpected());
    }
    for key in &keys {
        let reply = connection.receive()?;
        if matches!(reply, Reply::Failure(_)) {
            return Err(reply.unexpected());
        }
        let kind = reply.text();
        if !matches!(&*kind, "none" | "hash") {
            // The connection is given up, and the watch with it.
            return Err(io::Error::other(format!(
                "the key {key} holds a {kind}, and records are in a hash: remove the key"
            )));
        }
    }
    Ok(())
}

impl Store for RedisStore {
    fn load(&self, zone: &Name) -> Result<Vec<RecordSet>, StoreError> {
        self.load_all(std::slice::from_ref(zone))
    }

    fn load_all(&self, zones: &[Name]) -> Result<Vec<RecordSet>, StoreError> {
        let zones = ZoneNames::new(zones);
        self.with(|connection| {
            let mut sets = Vec::new();
            for keys in self.keys(connection, &zones)?.chunks(KEYS_AT_A_TIME) {
                sets.extend(self.read(connection, keys)?);
            }
            Ok(sets)
        })
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        let key = self.key(owner);
        self.with(|connection| self.read(connection, std::slice::from_ref(&key)))
    }

    fn set(&self, records: &RecordSet) -> Result<(), StoreError> {
        self.set_many(std::slice::from_ref(records))
    }

    fn set_many(&self, records: &[RecordSet]) -> Result<(), StoreError> {
        let records = normal(records)?;
        if records.is_empty() {
            return Ok(());
        }
        let written: Vec<_> =
            records.iter().map(|set| (self.key(&set.owner), value::of(set))).collect();
        let mut commands = Vec::with_capacity(records.len());
        for (set, (key, value)) in records.iter().zip(&written) {
            commands.push((set.owner.as_str(), vec!["HSET", key, &set.rtype, value]));
        }
        self.change(&commands).map(drop)
    }

    fn remove(&self, owner: &str, rtype: Type) -> Result<bool, StoreError> {
        let owner = normal_owner(owner)?;
        let (key, rtype) = (self.key(&owner), rtype.to_string());
        let removed = self.change(&[(&owner, vec!["HDEL", &key, &rtype])])?;
        Ok(matches!(removed, Reply::Number(count) if count > 0))
    }

    fn watch(&self, zone: &Name) -> Result<Box<dyn Watch>, StoreError> {
        self.watch_all(std::slice::from_ref(zone))
    }

    fn watch_all(&self, zones: &[Name]) -> Result<Box<dyn Watch>, StoreError> {
        let open = || -> io::Result<RedisWatch> {
            let mut connection = Connection::open(&self.address)?;
            connection.allow(MESSAGES_BYTES_MAX); // each zone is acknowledged
            let keyspace = format!("__keyspace@{}__:{}", self.address.database, self.prefix);
            warn_if_silent(&mut connection, self);
            let channel = format!("{}{CHANNEL}", self.prefix);
            connection.call(&["SUBSCRIBE", &channel])?;
            for zone in zones {
                let keys = self.pattern(zone);
                let events = format!("__keyspace@{}__:{keys}", self.address.database);
                connection.call(&["PSUBSCRIBE", &events])?;
            }
            let now = Instant::now();
            let (heard, compared, pinged) = (now, now, None);
            let compare_every = self.compare_every;
            Ok(RedisWatch { connection, keyspace, compare_every, heard, compared, pinged })
        };
        match open() {
            Ok(watch) => Ok(Box::new(watch)),
            Err(error) => Err(self.failed(error)),
        }
    }
}

/// Whether an error is that of a limit, which another connection would meet as well.
fn is_limit(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::QuotaExceeded
}

/// Says if changes by other programs will not be heard of at once.
fn warn_if_silent(connection: &mut Connection, store: &RedisStore) {
    // A server that does not let itself be asked may have them or not.
    let Ok(Reply::List(parts)) = connection.call(&["CONFIG", "GET", "notify-keyspace-events"])
    else {
        return;
    };
    let events = parts.last().map(Reply::text).unwrap_or_default();
    let has = |event| events.contains(event);
    if !(has('K') && (has('A') || (has('g') && has('h')))) {
        let (address, compare_interval) = (&store.address, store.compare_every);
        tracing::warn!(
            %address, notify_keyspace_events = events, ?compare_interval,
            "changes by other programs are seen at the next comparison only; with \
             notify-keyspace-events `Kghx` Redis would announce them"
        );
    }
}

/// Watches for changes of the keys.
struct RedisWatch {
    connection: Connection,
    /// Beginning of the names of the channels of keys, with the prefix of the store's keys.
    keyspace: String,
    compare_every: Duration,
    /// When the server said something last.
    heard: Instant,
    /// When all was compared last.
    compared: Instant,
    /// Since when the server is to say that it is there.
    pinged: Option<Instant>,
}

impl Watch for RedisWatch {
    fn wait(&mut self, patience: Duration) -> Result<Changes, StoreError> {
        let mut changes = self.listen(patience).map_err(StoreError::failed)?;
        if self.compared.elapsed() >= self.compare_every {
            self.compared = Instant::now();
            changes.merge(Changes::all());
        }
        Ok(changes)
    }
}

impl RedisWatch {
    /// Takes what the server says.
    fn listen(&mut self, mut patience: Duration) -> io::Result<Changes> {
        let mut changes = Changes::none();
        self.connection.allow(MESSAGES_BYTES_MAX);
        for _ in 0..MESSAGES_MAX {
            if !self.connection.has_more(patience)? {
                break;
            }
            patience = Duration::ZERO;
            self.heard = Instant::now();
            self.pinged = None;
            let message = self.connection.receive()?;
            let Reply::List(parts) = &message else { return Err(message.unexpected()) };
            let texts: Vec<_> = parts.iter().map(Reply::text).collect();
            match texts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
                ["message", _, owner] => changes.add(owner),
                ["pmessage", _, channel, _] => {
                    if let Some(key) = channel.strip_prefix(&self.keyspace) {
                        changes.add(key::owner(key));
                    }
                }
                _ => {} // a pong
            }
        }
        self.ask_whether_there()?;
        Ok(changes)
    }

    /// A connection whose other end is gone without a word must not be waited for forever.
    fn ask_whether_there(&mut self) -> io::Result<()> {
        match self.pinged {
            Some(since) if since.elapsed() > PONG => Err(io::ErrorKind::TimedOut.into()),
            None if self.heard.elapsed() > SILENCE => {
                self.pinged = Some(Instant::now());
                self.connection.send(&["PING"])?;
                self.connection.flush()
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    /// A server that answers whatever it is asked with the same reply, over and over; its URL.
    fn server(reply: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut command = [0; 1 << 16];
            while stream.read(&mut command).is_ok_and(|count| count > 0) {
                if stream.write_all(reply.as_bytes()).is_err() {
                    return; // the store has read enough
                }
            }
        });
        url
    }

    #[test]
    fn a_scan_that_never_ends_ends_at_a_limit() {
        for reply in ["*2\r\n$1\r\n7\r\n*0\r\n", "*2\r\n$1\r\n7\r\n*1\r\n$10\r\ntest:a:www\r\n"] {
            let store = RedisStore::new(&server(reply)).unwrap().read_max(64 << 10);
            let error = store.load(&"a.test".parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains("the database has more than 65536 octets"), "{error}");
        }
    }

    #[test]
    fn thousands_of_zones_are_watched_over_one_connection() {
        let url =
            server("*3\r\n$10\r\npsubscribe\r\n$32\r\n__keyspace@0__:test:zone-number*\r\n:1\r\n");
        let zones: Vec<Name> =
            (0..3000).map(|number| format!("zone{number}.test").parse().unwrap()).collect();
        RedisStore::new(&url).unwrap().watch_all(&zones).map(drop).unwrap();
    }

    #[test]
    fn a_reply_that_never_ends_ends_at_a_limit() {
        let endless = format!("*9223372036854775807\r\n{}", "$1\r\nx\r\n".repeat(20_000));
        let store = RedisStore::new(&server(endless.leak())).unwrap().read_max(64 << 10);
        let error = store.get("www.a.test").unwrap_err().to_string();
        assert!(error.contains("raise `read-max`"), "{error}");
    }
}
