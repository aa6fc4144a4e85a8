//! A store in PostgreSQL.
//!
//! One table, a row for each record; a trigger tells changes by NOTIFY, whoever makes them:
//!
//! ```sql
//! INSERT INTO zonda_records (owner, type, ttl, data)
//! VALUES ('www.example.org', 'A', 300, '192.0.2.1');
//! ```

use super::record_set::{normal_owner, without_final_dot};
use super::{Changes, RecordSet, Store, StoreError, Watch};
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
/// How long it may take to say so, or to acknowledge what was sent.
const ANSWER: Duration = Duration::from_secs(5);
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
/// Whether the table is there, with its trigger.
const HAS_TABLE: &str = "SELECT EXISTS (SELECT FROM pg_trigger
    WHERE tgrelid = to_regclass('zonda_records') AND tgname = 'zonda_records_emptied')";
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
        config.keepalives_idle(SILENCE).tcp_user_timeout(ANSWER);
        Ok(Self { config, client: Mutex::new(None) })
    }

    /// Connects; the table is there then.
    fn connect(&self) -> Result<Client, postgres::Error> {
        let mut client = self.config.connect(NoTls)?;
        if !client.query_one(HAS_TABLE, &[])?.get::<_, bool>(0) {
            client.batch_execute(MAKE_TABLE)?;
        }
        Ok(client)
    }

    /// Does something with a connection; once more if that had become stale.
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
        Ok(Box::new(PostgresWatch { client, heard: Instant::now() }))
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

/// Notices changes.
struct PostgresWatch {
    /// Taken when it is dropped.
    client: Option<Client>,
    /// When the server said something last.
    heard: Instant,
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
        Ok(changes)
    }
}

/// Takes what the server tells; whether it told anything.
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
