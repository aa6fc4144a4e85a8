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

use super::record_set::{normal_owner, without_final_dot};
use super::{Changes, RecordSet, Store, StoreError, Watch};
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Client, Config, NoTls, Row};
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use zonda_wire::{Name, Type};

/// How long a connection may take to come up.
const CONNECT: Duration = Duration::from_secs(3);
/// After so long a silence the other end is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(10);
/// Default time between two comparisons of all records.
const COMPARE_EVERY: Duration = Duration::from_secs(30);
/// How long it may take to say so, or to acknowledge what was sent.
const ANSWER: Duration = Duration::from_secs(5);
/// How long the server may take for a statement, and wait for a lock of the table, milliseconds.
const LIMITS: &str = "-c statement_timeout=60000 -c lock_timeout=5000";
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
/// All rows of a zone, whose name is $1, empty for the root.
const LOAD: &str = "SELECT owner, type, ttl, data FROM zonda_records
    WHERE $1::text = '' OR lower(rtrim(owner, '.')) = $1
        OR right(lower(rtrim(owner, '.')), length($1) + 1) = '.' || $1
    ORDER BY owner, type, data";
/// All rows of an owner.
const GET: &str = "SELECT owner, type, ttl, data FROM zonda_records
    WHERE owner = $1 ORDER BY type, data";
/// Takes the rows of an owner and a type away.
const REMOVE: &str = "DELETE FROM zonda_records WHERE owner = $1 AND type = $2";
/// Adds rows of an owner and a type.
const ADD: &str = "INSERT INTO zonda_records (owner, type, ttl, data)
    SELECT $1::text, $2::text, $3::integer, unnest($4::text[]) ON CONFLICT DO NOTHING";

/// A store in a PostgreSQL database.
///
/// Connections are not encrypted: reach the server on this machine, or through a tunnel.
pub struct PostgresStore {
    config: Config,
    compare_every: Duration,
    client: Mutex<Option<Client>>,
}

impl PostgresStore {
    /// In the database that these parameters name: a URL such as
    /// `postgresql://user:password@127.0.0.1/database`, or `host=127.0.0.1 user=…`. It is connected
    /// to when it is needed; the table `zonda_records` is made if it is missing.
    ///
    /// # Errors
    /// When the parameters are none.
    pub fn new(parameters: &str) -> Result<Self, StoreError> {
        let mut config = parameters.parse::<Config>().map_err(StoreError::failed)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("zonda");
        }
        if config.get_options().is_none() {
            config.options(LIMITS);
        }
        config.keepalives_idle(SILENCE).tcp_user_timeout(ANSWER);
        Ok(Self { config, compare_every: COMPARE_EVERY, client: Mutex::new(None) })
    }

    /// Sets how often all records are compared, for changes without a trigger; by default every 30
    /// seconds.
    #[must_use]
    pub fn compare_every(mut self, interval: Duration) -> Self {
        self.compare_every = interval;
        self
    }

    /// Connects; the table is there then.
    fn connect(&self) -> Result<Client, postgres::Error> {
        let mut client = self.config.connect(NoTls)?;
        if Triggers::of(&mut client)? == Triggers::Missing {
            client.batch_execute(MAKE_TABLE)?;
        }
        Ok(client)
    }

    /// Does something with a connection; once more if that had become stale, or if the table was
    /// dropped, which is made anew.
    ///
    /// In a thread of its own: the client has a small runtime in it, and may not be used from code
    /// that itself runs in one, as handlers do.
    fn with<T: Send>(
        &self,
        work: impl Fn(&mut Client) -> Result<T, postgres::Error> + Send,
    ) -> Result<T, StoreError> {
        let work = move || {
            let mut slot = self.client.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(mut known) = slot.take() {
                match work(&mut known) {
                    Err(_) if known.is_closed() => {}
                    Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                        tracing::warn!("the table zonda_records is gone; it is made anew");
                    }
                    done => {
                        *slot = Some(known);
                        return done;
                    }
                }
            }
            let mut fresh = self.connect()?;
            let done = work(&mut fresh);
            *slot = Some(fresh);
            done
        };
        let done = std::thread::scope(|scope| scope.spawn(work).join());
        done.unwrap_or_else(|panic| resume_unwind(panic)).map_err(StoreError::failed)
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
        let zone = without_final_dot(&zone.to_lowercase());
        let zone = if zone == "." { "" } else { &zone };
        Ok(sets(&self.with(|client| client.query(LOAD, &[&zone]))?))
    }

    fn get(&self, owner: &str) -> Result<Vec<RecordSet>, StoreError> {
        Ok(sets(&self.with(|client| client.query(GET, &[&owner]))?))
    }

    fn set(&self, records: &RecordSet) -> Result<(), StoreError> {
        let RecordSet { owner, rtype, ttl_secs, data, .. } = &records.normal()?;
        let ttl_secs = i32::try_from(*ttl_secs).unwrap_or(i32::MAX); // the normal form has no more
        self.with(|client| {
            let mut transaction = client.transaction()?;
            transaction.execute(REMOVE, &[owner, rtype])?;
            transaction.execute(ADD, &[owner, rtype, &ttl_secs, data])?;
            transaction.commit()
        })
    }

    fn remove(&self, owner: &str, rtype: Type) -> Result<bool, StoreError> {
        let (owner, rtype) = (normal_owner(owner)?, rtype.to_string());
        Ok(self.with(|client| client.execute(REMOVE, &[&owner, &rtype]))? > 0)
    }

    fn watch(&self, _: &Name) -> Result<Box<dyn Watch>, StoreError> {
        let open = || -> Result<Client, postgres::Error> {
            let mut client = self.connect()?;
            client.batch_execute("LISTEN zonda_records")?;
            Ok(client)
        };
        let opened = std::thread::scope(|scope| scope.spawn(open).join());
        let opened = opened.unwrap_or_else(|panic| resume_unwind(panic));
        let client = Some(opened.map_err(StoreError::failed)?);
        let (now, compare_every) = (Instant::now(), self.compare_every);
        let triggers = Triggers::Enabled;
        Ok(Box::new(PostgresWatch { client, heard: now, compare_every, compared: now, triggers }))
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

/// Rows, which are in order, as sets. A set has the lowest time to live of its records.
fn sets(rows: &[Row]) -> Vec<RecordSet> {
    let mut sets: Vec<RecordSet> = Vec::new();
    for row in rows {
        let (owner, rtype): (String, String) = (row.get(0), row.get(1));
        let (ttl_secs, data): (i32, String) = (row.get(2), row.get(3));
        let ttl_secs = u32::try_from(ttl_secs).unwrap_or_default(); // the table has none below 0
        match sets.last_mut() {
            Some(last) if last.owner == owner && last.rtype == rtype => {
                last.ttl_secs = last.ttl_secs.min(ttl_secs);
                last.data.push(data);
            }
            _ => sets.push(RecordSet::new(owner, rtype, ttl_secs, [data])),
        }
    }
    sets
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
        let Some(client) = &mut self.client else { return Ok(Changes::none()) };
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
            return Err(StoreError::failed("the server has closed the connection"));
        }
        if self.compared.elapsed() >= self.compare_every {
            self.compared = Instant::now();
            self.triggers =
                Self::check_triggers(client, self.triggers).map_err(StoreError::failed)?;
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
