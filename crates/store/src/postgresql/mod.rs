//! A store in PostgreSQL.
//!
//! One table, a row for each record; a trigger announces changes by NOTIFY, whichever program makes
//! them:
//!
//! ```sql
//! INSERT INTO zonda_records (owner, type, ttl, data)
//! VALUES ('www.example.org', 'A', 300, '192.0.2.1');
//! ```
//!
//! A table that was dropped or restored has lost its trigger, and announces nothing. So all records
//! are compared from time to time, and a missing table or trigger is created.

#[cfg(feature = "tls")]
mod connector;
#[cfg(not(feature = "tls"))]
#[path = "no_connector.rs"]
mod connector;
mod parameters;
mod server;

use super::limit::{READ_MAX, READ_TIME_MAX, ReadLimit, TEXT_MAX};
use super::record_set::{normal, normal_owner, without_final_dot};
use super::zone_names::ZoneNames;
use super::{Changes, RecordSet, Store, StoreError, Watch};
use postgres::Client;
use postgres::config::Host;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use server::{ANSWER, SILENCE, Server};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use zonda_wire::{Name, Type};

/// How many times as long as a connection may take to come up a call may take that needs moments:
/// to connect, with greeting and table, or to look at the triggers.
const CALL_FACTOR: u32 = 3;
/// Calls that may wait for the server at a time, those included that are not waited for any more.
const CALLS_MAX: usize = 4;
/// Default time between two comparisons of all records.
const COMPARE_EVERY: Duration = Duration::from_secs(30);
/// Makes table and trigger, one program at a time. An owner is short enough for a notification.
const MAKE_TABLE: &str = "
    BEGIN;
    SELECT pg_advisory_xact_lock(hashtext('zonda_records'));
    CREATE TABLE IF NOT EXISTS zonda_records (
        owner text NOT NULL CHECK (length(owner) BETWEEN 1 AND 1100),
        type text NOT NULL,
        ttl integer NOT NULL DEFAULT 300 CHECK (ttl >= 0),
        data text NOT NULL,
        PRIMARY KEY (owner, type, data)
    );
    CREATE OR REPLACE FUNCTION zonda_records_changed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'TRUNCATE' THEN
            PERFORM pg_notify('zonda_records', '');
            RETURN NULL;
        END IF;
        IF TG_OP <> 'INSERT' THEN
            PERFORM pg_notify('zonda_records', OLD.owner);
        END IF;
        IF TG_OP <> 'DELETE' THEN
            PERFORM pg_notify('zonda_records', NEW.owner);
        END IF;
        RETURN NULL;
    END $$;
    DROP TRIGGER IF EXISTS zonda_records_changed ON zonda_records;
    CREATE TRIGGER zonda_records_changed AFTER INSERT OR UPDATE OR DELETE ON zonda_records
        FOR EACH ROW EXECUTE FUNCTION zonda_records_changed();
    DROP TRIGGER IF EXISTS zonda_records_emptied ON zonda_records;
    CREATE TRIGGER zonda_records_emptied AFTER TRUNCATE ON zonda_records
        FOR EACH STATEMENT EXECUTE FUNCTION zonda_records_changed();
    COMMIT";
/// How many of the two triggers the table has, if it is there, and how many of them are enabled for
/// changes of clients.
const TRIGGERS: &str = "SELECT count(*), count(*) FILTER (WHERE tgenabled IN ('O', 'A'))
    FROM pg_trigger WHERE tgrelid = to_regclass('zonda_records')
    AND tgname IN ('zonda_records_changed', 'zonda_records_emptied')";
/// All rows of the zones whose names are $1, empty for the root; no text that is longer than $2.
const LOAD: &str = "SELECT left(owner, 1200), left(type, 80), ttl,
        CASE WHEN octet_length(data) <= $2 THEN data END FROM zonda_records
    WHERE EXISTS (
        SELECT FROM unnest($1::text[]) AS zone WHERE zone = ''
            OR lower(rtrim(owner, '.')) = zone
            OR right(lower(rtrim(owner, '.')), length(zone) + 1) = '.' || zone)
    ORDER BY owner, type, data";
/// Zones up to which the server is told all; it compares each row with each zone.
const ZONES_MAX: usize = 16;
/// All rows of an owner, which is $1; no text that is longer than $2.
const GET: &str = "SELECT left(owner, 1200), left(type, 80), ttl,
        CASE WHEN octet_length(data) <= $2 THEN data END FROM zonda_records
    WHERE owner = $1 ORDER BY type, data";
/// Takes the rows of an owner and a type away.
const REMOVE: &str = "DELETE FROM zonda_records WHERE owner = $1 AND type = $2";
/// Adds rows of an owner and a type.
const ADD: &str = "INSERT INTO zonda_records (owner, type, ttl, data)
    SELECT $1::text, $2::text, $3::integer, unnest($4::text[]) ON CONFLICT DO NOTHING";

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    server: Arc<Server>,
    compare_every: Duration,
    read_max: u64,
    client: Mutex<Option<Client>>,
    /// Calls that wait for the server.
    calls: Calls,
}

impl fmt::Debug for PostgresStore {
    /// Writes the hosts and the database, and no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("hosts", &self.server.config.get_hosts())
            .field("database", &self.server.config.get_dbname())
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Returns hosts and database, `host,host/database`, without user and password: what the
    /// bindings show of a store.
    #[doc(hidden)]
    #[must_use]
    pub fn place(&self) -> String {
        let host = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(folder) => folder.display().to_string(),
        };
        let hosts: Vec<String> = self.server.config.get_hosts().iter().map(host).collect();
        let database = self.server.config.get_dbname().map(|name| format!("/{name}"));
        hosts.join(",") + &database.unwrap_or_default()
    }

    /// In the database that these parameters name: a URL such as
    /// `postgresql://user:password@127.0.0.1/database`, or `host=127.0.0.1 user=…`. It is connected
    /// to when it is needed; the table `zonda_records` is made if it is missing.
    ///
    /// `sslmode` says whether connections are encrypted: `disable`, `prefer`, which is the default
    /// and verifies no certificate, or `require` and `verify-full`, which both verify that the
    /// server's certificate is for the host and leads to a public root, or with `sslrootcert=FILE`
    /// to one of the certificates in a file of PEM form. The file is read for each connection.
    ///
    /// # Errors
    /// When the parameters are none, the file cannot be read, or encryption is required and the
    /// program was built without the feature `encrypted`.
    pub fn new(parameters: &str) -> Result<Self, StoreError> {
        let server = Arc::new(Server::new(parameters)?);
        let (client, calls) = (Mutex::new(None), Calls::default());
        Ok(Self { server, compare_every: COMPARE_EVERY, read_max: READ_MAX, client, calls })
    }

    /// Sets how many octets are read at a time at most, as the configuration says.
    #[doc(hidden)]
    #[must_use]
    pub fn read_max(mut self, octets: u64) -> Self {
        self.read_max = octets;
        self
    }

    /// Sets how often all records are compared, for changes without a trigger; by default every 30
    /// seconds.
    #[must_use]
    pub fn compare_every(mut self, interval: Duration) -> Self {
        self.compare_every = interval;
        self
    }

    /// How long a call may take that needs moments.
    fn call_max(&self) -> Duration {
        self.server.connect_max() * CALL_FACTOR
    }

    /// Connects; the table is there then.
    fn connect(&self) -> Result<Client, StoreError> {
        let server = Arc::clone(&self.server);
        self.calls.wait(self.call_max(), move || connect(&server))
    }

    /// Does something with a connection; once more if that had become stale, or if the table was
    /// dropped, which is made anew.
    fn with<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Client) -> Result<T, Failure> + Clone + Send + 'static,
    ) -> Result<T, StoreError> {
        let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = slot.take() {
            let (known, done) = self.work(known, work.clone())?;
            match done {
                Err(_) if known.is_closed() => {}
                Err(Failure::Database(error))
                    if error.code() == Some(&SqlState::UNDEFINED_TABLE) =>
                {
                    tracing::warn!("the table zonda_records is gone; it is made anew");
                }
                done => {
                    *slot = Some(known);
                    return done.map_err(Failure::into_store_error);
                }
            }
        }
        let (fresh, done) = self.work(self.connect()?, work)?;
        *slot = Some(fresh);
        done.map_err(Failure::into_store_error)
    }

    /// Does something with a connection, which is lost where that takes too long.
    fn work<T: Send + 'static>(
        &self,
        mut client: Client,
        work: impl Fn(&mut Client) -> Result<T, Failure> + Send + 'static,
    ) -> Result<(Client, Result<T, Failure>), StoreError> {
        self.calls.wait(READ_TIME_MAX, move || {
            let done = work(&mut client);
            Ok((client, done))
        })
    }

    /// The records that a statement finds for its first parameter.
    fn read<P: ToSql + Clone + Send + Sync + 'static>(
        &self,
        statement: &'static str,
        parameter: P,
    ) -> Result<Vec<RecordSet>, StoreError> {
        let read_max = self.read_max;
        self.with(move |client| sets(client, statement, &parameter, ReadLimit::new(read_max)))
    }
}

/// Connects to a server; the table is there then.
fn connect(server: &Server) -> Result<Client, Failure> {
    let mut client = server.connect()?;
    if Triggers::of(&mut client)? == Triggers::Missing {
        client.batch_execute(MAKE_TABLE)?;
    }
    Ok(client)
}

/// Why a call failed.
enum Failure {
    /// The server says so, or cannot be reached.
    Database(postgres::Error),
    /// This program says so: a limit, or a server that cannot be connected to.
    Store(StoreError),
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// Returns what the store's users get. Not a `From`, which the page of `StoreError` would show.
    fn into_store_error(self) -> StoreError {
        match self {
            Self::Database(error) => StoreError::failed(error),
            Self::Store(error) => error,
        }
    }
}

/// Calls that wait for a server, each in a thread of its own: the client has a small runtime in it,
/// and may not be used from code that itself runs in one, as handlers do; and it waits for as long
/// as the server says nothing.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

impl Calls {
    /// Waits for a call, no longer than to a limit. What it returns later is dropped.
    fn wait<T: Send + 'static>(
        &self,
        limit: Duration,
        call: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.0.load(Relaxed) >= CALLS_MAX {
            let why = "the server has answered none of the last calls; they are still waited for";
            return Err(StoreError::failed(why));
        }
        let (sender, returned) = sync_channel(1);
        let calls = Arc::clone(&self.0);
        calls.fetch_add(1, Relaxed);
        let run = move || {
            let done = catch_unwind(AssertUnwindSafe(call));
            calls.fetch_sub(1, Relaxed);
            let _ = sender.send(done); // it may have been too late
        };
        if let Err(error) = std::thread::Builder::new().spawn(run) {
            self.0.fetch_sub(1, Relaxed);
            return Err(StoreError::failed(error));
        }
        match returned.recv_timeout(limit) {
            Ok(Ok(done)) => done.map_err(Failure::into_store_error),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => {
                let secs = limit.as_secs();
                Err(StoreError::failed(format!(
                    "the server has not answered within {secs} seconds"
                )))
            }
        }
    }
}

impl Drop for PostgresStore {
    /// Closes the connection, also where it may not be used.
    fn drop(&mut self) {
        let client = self.client.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(client));
        });
    }
}

impl Store for PostgresStore {
    fn load(&self, zone: &Name) -> Result<Vec<RecordSet>, StoreError> {
        self.load_all(std::slice::from_ref(zone))
    }

    fn load_all(&self, zones: &[Name]) -> Result<Vec<RecordSet>, StoreError> {
        let common = [ZoneNames::new(zones).common_ancestor().clone()];
        let asked = if zones.len() > ZONES_MAX { &common[..] } else { zones };
        let names = asked.iter().map(|zone| match &*without_final_dot(&zone.to_lowercase()) {
            "." => String::new(),
            name => name.to_owned(),
        });
        self.read(LOAD, names.collect::<Vec<_>>())
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        self.read(GET, owner.to_owned())
    }

    fn set(&self, records: &RecordSet) -> Result<(), StoreError> {
        self.set_many(std::slice::from_ref(records))
    }

    fn set_many(&self, records: &[RecordSet]) -> Result<(), StoreError> {
        let records = normal(records)?;
        self.with(move |client| {
            let mut transaction = client.transaction()?;
            for RecordSet { owner, rtype, ttl_secs, data, .. } in &records {
                let ttl_secs = i32::try_from(*ttl_secs).unwrap_or(i32::MAX); // it has no more
                transaction.execute(REMOVE, &[owner, rtype])?;
                transaction.execute(ADD, &[owner, rtype, &ttl_secs, data])?;
            }
            Ok(transaction.commit()?)
        })
    }

    fn remove(&self, owner: &str, rtype: Type) -> Result<bool, StoreError> {
        let (owner, rtype) = (normal_owner(owner)?, rtype.to_string());
        Ok(self.with(move |client| Ok(client.execute(REMOVE, &[&owner, &rtype])?))? > 0)
    }

    fn watch(&self, _: &Name) -> Result<Box<dyn Watch>, StoreError> {
        let server = Arc::clone(&self.server);
        let client = self.calls.wait(self.call_max(), move || {
            let mut client = connect(&server)?;
            client.batch_execute("LISTEN zonda_records")?;
            Ok(client)
        });
        let client = Some(client?);
        let (now, compare_every) = (Instant::now(), self.compare_every);
        let triggers = Triggers::Enabled;
        let (heard, compared) = (now, now);
        let (calls, call_max) = (self.calls.clone(), self.call_max());
        Ok(Box::new(PostgresWatch {
            client,
            heard,
            compare_every,
            compared,
            triggers,
            calls,
            call_max,
        }))
    }

    fn watch_all(&self, _: &[Name]) -> Result<Box<dyn Watch>, StoreError> {
        self.watch(&Name::root()) // a watch hears of all names
    }
}

/// Whether the table announces its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Triggers {
    /// The triggers announce changes.
    Enabled,
    /// The triggers are disabled, by intention.
    Disabled,
    /// There are no triggers, or no table.
    Missing,
}

impl Triggers {
    /// Asks the server.
    fn of(client: &mut Client) -> Result<Self, postgres::Error> {
        let row = client.query_one(TRIGGERS, &[])?;
        Ok(match (row.get::<_, i64>(0), row.get::<_, i64>(1)) {
            (2, 2) => Self::Enabled,
            (2, _) => Self::Disabled,
            _ => Self::Missing,
        })
    }
}

/// The sets of the rows that a statement finds, which are in order. A set has the lowest
/// time to live of its records.
fn sets(
    client: &mut Client,
    statement: &str,
    parameter: &(dyn ToSql + Sync),
    mut limit: ReadLimit,
) -> Result<Vec<RecordSet>, Failure> {
    let mut rows = client.query_raw(statement, [parameter, &TEXT_MAX])?;
    let mut sets: Vec<RecordSet> = Vec::new();
    while let Some(row) = rows.next()? {
        let (owner, rtype): (String, String) = (row.get(0), row.get(1));
        let (ttl_secs, data): (i32, Option<String>) = (row.get(2), row.get(3));
        limit.count(owner.len() + rtype.len() + data.as_ref().map_or(0, String::len))?;
        let ttl_secs = u32::try_from(ttl_secs).unwrap_or_default(); // the table has none below 0
        let Some(data) = data else {
            let why = format!("data of over {TEXT_MAX} octets");
            sets.push(RecordSet::unreadable(owner, rtype, why));
            continue;
        };
        match sets.last_mut() {
            Some(last) if last.owner == owner && last.rtype == rtype => {
                last.ttl_secs = last.ttl_secs.min(ttl_secs);
                last.data.push(data);
            }
            _ => sets.push(RecordSet::new(owner, rtype, ttl_secs, [data])),
        }
    }
    Ok(sets)
}

/// Watches for changes of the table.
struct PostgresWatch {
    /// Taken when it is dropped.
    client: Option<Client>,
    /// When the server said something last.
    heard: Instant,
    compare_every: Duration,
    /// When all was compared last.
    compared: Instant,
    /// What the triggers were like then.
    triggers: Triggers,
    /// Calls of the store that wait for the server.
    calls: Calls,
    /// How long a call may take that needs moments.
    call_max: Duration,
}

impl PostgresWatch {
    /// Checks whether the table still announces its changes, and creates what is missing. A failure
    /// to create is logged once; changes are found by comparison then.
    fn check_triggers(client: &mut Client, before: Triggers) -> Result<Triggers, postgres::Error> {
        let found = Triggers::of(client)?;
        match found {
            Triggers::Enabled => return Ok(found),
            Triggers::Disabled if before != found => tracing::warn!(
                "the triggers of zonda_records are disabled; changes are seen at the next \
                 comparison only"
            ),
            Triggers::Disabled => {}
            Triggers::Missing => match client.batch_execute(MAKE_TABLE) {
                Ok(()) => {
                    tracing::warn!("zonda_records or its triggers were gone; they are made anew");
                    return Ok(Triggers::Enabled);
                }
                Err(error) => {
                    client.batch_execute("ROLLBACK")?;
                    if before != found {
                        let error = StoreError::failed(error);
                        tracing::warn!(
                            %error,
                            "zonda_records has lost its triggers, and they cannot be made anew; \
                             changes are seen at the next comparison only"
                        );
                    }
                }
            },
        }
        Ok(found)
    }
}

impl Drop for PostgresWatch {
    /// As that of the store.
    fn drop(&mut self) {
        let client = self.client.take();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(client));
        });
    }
}

impl Watch for PostgresWatch {
    fn wait(&mut self, patience: Duration) -> Result<Changes, StoreError> {
        let closed = || StoreError::failed("the server has closed the connection");
        let client = self.client.as_mut().ok_or_else(closed)?;
        let mut changes = Changes::none();
        let heard = listen(client, patience, &mut changes).map_err(StoreError::failed)?;
        if heard {
            self.heard = Instant::now();
        } else if self.heard.elapsed() > SILENCE {
            // A connection whose other end is gone without a word must not be waited for forever.
            client.is_valid(ANSWER).map_err(StoreError::failed)?;
            self.heard = Instant::now();
        }
        if client.is_closed() {
            return Err(closed());
        }
        if self.compared.elapsed() >= self.compare_every {
            self.compared = Instant::now();
            let (mut client, before) = (self.client.take().ok_or_else(closed)?, self.triggers);
            let (client, triggers) = self.calls.wait(self.call_max, move || {
                let found = Self::check_triggers(&mut client, before)?;
                Ok((client, found))
            })?;
            (self.client, self.triggers) = (Some(client), triggers);
            changes.merge(Changes::all());
        }
        Ok(changes)
    }
}

/// Takes notifications of the server; returns whether there were any.
fn listen(
    client: &mut Client,
    patience: Duration,
    changes: &mut Changes,
) -> Result<bool, postgres::Error> {
    let mut notifications = client.notifications();
    let mut next = notifications.timeout_iter(patience).next()?;
    let has_heard = next.is_some();
    while let Some(notification) = next {
        match notification.payload() {
            "" => changes.merge(Changes::all()),
            owner => changes.add(owner),
        }
        next = notifications.iter().next()?;
    }
    Ok(has_heard)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_server_that_never_greets_is_not_waited_for_for_long_nor_by_many_threads() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("postgres://me@127.0.0.1:{port}/dns?connect_timeout=1");
        let store = PostgresStore::new(&url).unwrap();
        let asked = Instant::now();
        for _ in 0..CALLS_MAX {
            let error = store.get("www.a.test").unwrap_err().to_string();
            assert_eq!(error, "the server has not answered within 3 seconds");
        }
        assert!(asked.elapsed() < Duration::from_secs(3) * (CALLS_MAX as u32 + 1));
        let error = store.get("www.a.test").unwrap_err().to_string();
        assert!(error.contains("answered none of the last calls"), "{error}");
        drop(listener); // the connections are reset
        let limit = Instant::now() + Duration::from_secs(10);
        while store.calls.0.load(Relaxed) > 0 {
            assert!(Instant::now() < limit, "threads still wait for a server that is gone");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
