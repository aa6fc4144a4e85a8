//! Transfers: keys, the clients that may transfer a zone, the servers that are notified of its
//! versions, and the primaries of a zone.

use super::acl::{Clients, Rule, overlap};
use super::clauses::Clauses;
use super::left::{self, SOURCE};
use super::statement::{Cursor, Element, Statement};
use super::zones::{Defaults, Source, written};
use super::{Importer, value};
use crate::document::{Effect, Value};
use crate::error::{ImportError, Place, Problem};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::slice;
use zonda_wire::Name;
use zonda_wire::tsig::Algorithm;

/// Servers that a zone is transferred from, or that are notified of it.
const SERVERS_MAX: usize = 64;
/// Named lists of servers that may lie within each other.
const DEPTH_MAX: usize = 32;
/// The port of servers that are given without one.
const PORT: u16 = 53;
/// Statements of named lists that are read for one list of servers: a list that names another
/// twice, which names another twice, would take for ever.
const STEPS_MAX: usize = 10_000;
/// The greatest value of a least time between two checks of a serial, seconds.
const DAY: u64 = 86_400;
/// The greatest value of a greatest time between them, seconds.
const YEAR: u64 = 365 * DAY;
/// Networks of all clients.
const ANY: [&str; 2] = ["0.0.0.0/0", "::/0"];

/// A key that messages are signed with.
pub struct Key<'s> {
    /// The name as it is written.
    pub name: String,
    /// The name of the algorithm, in lower case.
    pub algorithm: String,
    /// The secret in base 64.
    pub secret: &'s str,
    /// The statement that defines the key.
    pub statement: &'s Statement,
    /// Whether a transfer needs the key, so that it is written.
    pub is_needed: bool,
}

impl Key<'_> {
    /// Whether messages can be signed with the key.
    fn is_usable(&self) -> bool {
        self.algorithm.parse::<Algorithm>().is_ok()
    }
}

/// Named lists of servers: the port for those that have none, and the servers.
pub type RemoteServers<'s> = HashMap<String, (Option<u16>, &'s [Statement])>;

/// The statements that say what transfers a zone allows.
#[derive(Clone, Copy, Default)]
pub struct TransferClauses<'s> {
    /// The clients that may transfer it.
    allow: Option<Cursor<'s>>,
    /// The servers that are notified, beside those of its NS records.
    also_notify: Option<Cursor<'s>>,
    /// Whether servers are notified, and which.
    notify: Option<Cursor<'s>>,
}

/// The terms of transfers of a zone, as they are written.
pub struct Transfers {
    /// The clients that may transfer it.
    pub to: Vec<String>,
    /// The servers that are notified.
    pub notify: Vec<String>,
    /// The place of the statement that says so.
    pub origin: Place,
}

/// The primaries of a zone and how it follows them, as they are written.
pub struct Primaries {
    /// The primaries, each with its port and key.
    pub from: Vec<String>,
    /// Keys of `[zone.secondary]` beside them, and the places of their statements.
    pub keys: Vec<(&'static str, Value, Place)>,
}

/// A list of servers as far as it was read.
#[derive(Default)]
struct RemoteList {
    /// The servers, and how they are written.
    servers: Vec<(SocketAddr, String)>,
    /// Number of servers that are too many.
    left: usize,
    /// Number of statements that were read.
    steps: usize,
}

impl<'s> TransferClauses<'s> {
    /// Takes the statements of a zone or of the options.
    pub fn take(clauses: &mut Clauses<'s>) -> Result<Self, ImportError> {
        Ok(Self {
            allow: clauses.take("allow-transfer")?,
            also_notify: clauses.take("also-notify")?,
            notify: clauses.take("notify")?,
        })
    }

    /// These statements, and those of the options where there is none.
    fn or(self, options: Self) -> Self {
        Self {
            allow: self.allow.or(options.allow),
            also_notify: self.also_notify.or(options.also_notify),
            notify: self.notify.or(options.notify),
        }
    }
}

impl<'s> Importer<'s> {
    /// Reads the keys and the named lists of servers.
    pub(super) fn keys_and_remote_servers(
        &mut self,
        top: &mut Clauses<'s>,
    ) -> Result<(), ImportError> {
        for cursor in top.take_all("key") {
            self.key(cursor)?;
        }
        for keyword in ["primaries", "masters", "remote-servers"] {
            for mut cursor in top.take_all(keyword) {
                let name = cursor.word("the name of a list of servers")?;
                let port = self.port_and_source(&mut cursor)?;
                let list = cursor.block("`{`")?;
                cursor.end()?;
                self.remote_servers.insert(name.to_ascii_lowercase(), (port, list));
            }
        }
        Ok(())
    }

    /// Reads a key.
    fn key(&mut self, mut cursor: Cursor<'s>) -> Result<(), ImportError> {
        let statement = cursor.statement();
        let name: Name = cursor.parsed("the name of a key")?;
        let mut clauses = Clauses::new(cursor.block("`{`")?);
        cursor.end()?;
        let mut word = |keyword: &str, wanted: &str| match clauses.take(keyword)? {
            Some(mut cursor) => cursor.word(wanted),
            None => Err(statement.cursor().expected(&format!("a key with its `{keyword}`"))),
        };
        let algorithm = word("algorithm", "the name of an algorithm")?.to_ascii_lowercase();
        let secret = word("secret", "a secret in base 64")?;
        let name = written(&name);
        let key = Key { name, algorithm, secret, statement, is_needed: false };
        self.keys.insert(key.name.clone(), key);
        Ok(())
    }

    /// Finds a key that a transfer needs; none if it cannot be used, which is reported.
    pub(super) fn needed_key(
        &mut self,
        cursor: &mut Cursor<'s>,
    ) -> Result<Option<String>, ImportError> {
        let begin = *cursor;
        let name: Name = cursor.parsed("the name of a key")?;
        let name = written(&name);
        let Some(key) = self.keys.get_mut(&name) else {
            return Err(begin.problem(Problem::UnknownKey(name)));
        };
        if !key.is_usable() {
            let why = format!("keys are for {}", Algorithm::ALL.map(Algorithm::name).join(", "));
            self.left.push(left::because(key.statement, Effect::Lost, &why));
            return Ok(None);
        }
        key.is_needed = true;
        Ok(Some(name))
    }

    /// Reports the keys that no transfer needs.
    pub(super) fn leave_other_keys(&mut self) {
        let others = self.keys.values().filter(|key| !key.is_needed);
        let why = "no transfer is signed with it, nor any update; commands reach the server on \
            the Unix socket admin.socket";
        let usable = others.filter(|key| key.is_usable());
        let lines = usable.map(|key| left::because(key.statement, Effect::Needless, why));
        self.left.extend(lines);
    }

    /// Reads what transfers a zone allows.
    pub(super) fn transfers(
        &mut self,
        clauses: TransferClauses<'s>,
        defaults: &Defaults<'s>,
    ) -> Result<Option<Transfers>, ImportError> {
        let TransferClauses { allow, also_notify, notify } = clauses.or(defaults.transfers);
        let to = match allow {
            Some(cursor) => self.transfer_clients(cursor)?,
            None => Vec::new(),
        };
        let names_others = self.notifies_others(notify)?;
        let mut notified = Vec::new();
        if let Some(cursor) = also_notify.filter(|_| names_others.is_some()) {
            notified = self.remote_list(cursor)?;
            if names_others == Some(true) {
                let why = "the servers of the zone's NS records are not notified, only these";
                self.leave(cursor, Effect::Differs, why);
            }
        }
        let Some(allow) = allow.filter(|_| !to.is_empty()) else {
            let why = "no client may transfer the zone, so that none is notified: write \
                `allow-transfer`; before BIND 9.20, any may without it";
            let others = also_notify.filter(|_| !notified.is_empty());
            others.into_iter().for_each(|it| self.leave(it, Effect::Lost, why));
            return Ok(None);
        };
        let origin = allow.statement().place().clone();
        Ok(Some(Transfers { to, notify: notified, origin }))
    }

    /// Reads `notify`: whether servers beside those of `also-notify` are notified; none if no
    /// server is.
    fn notifies_others(&mut self, notify: Option<Cursor<'s>>) -> Result<Option<bool>, ImportError> {
        let Some(mut cursor) = notify else { return Ok(Some(true)) };
        let before = cursor;
        let word = cursor.word("`yes`, `no` or `explicit`")?;
        cursor.end()?;
        match word.to_ascii_lowercase().as_str() {
            "explicit" => Ok(Some(false)),
            "master-only" | "primary-only" => {
                self.leave(before, Effect::Differs, "secondaries notify servers, too");
                Ok(Some(true))
            }
            word => match value::yes_or_no(word) {
                Some(false) => Ok(None),
                Some(true) => {
                    let why = "only the servers that `also-notify` lists are notified";
                    self.leave(before, Effect::Differs, why);
                    Ok(Some(true))
                }
                None => Err(before.expected("`yes`, `no` or `explicit`")),
            },
        }
    }

    /// Reads the clients that may transfer or change a zone.
    pub(super) fn transfer_clients(
        &mut self,
        mut cursor: Cursor<'s>,
    ) -> Result<Vec<String>, ImportError> {
        let whole = cursor;
        while !matches!(cursor.peek(), Some((Element::Block(_), _))) {
            let _ = cursor.word("`{`")?; // `port` and `transport` of BIND 9.18
        }
        let list = cursor.block("`{`")?;
        cursor.end()?;
        let (mut to, mut is_ended, mut within) = (Vec::new(), false, None::<Vec<Clients>>);
        for statement in list {
            let mut client = statement.cursor();
            if is_ended {
                break;
            }
            if let Some(networks) = self.only_within(statement)? {
                within = Some(match within {
                    Some(former) => overlaps(&former, &networks),
                    None => networks,
                });
                continue;
            }
            if client.passes("key") {
                if let Some(name) = self.needed_key(&mut client)? {
                    match &within {
                        None => to.push(format!("key {name}")),
                        Some(within) => to.extend(
                            networks_of(within).map(|network| format!("{network} key {name}")),
                        ),
                    }
                }
                client.end()?;
                continue;
            }
            for Rule { matches, who } in self.acls.rules(slice::from_ref(statement))? {
                let is_any = who == Clients::Any;
                match (matches, &within) {
                    _ if is_ended => {}
                    (true, Some(within)) => {
                        to.extend(networks_of(&overlaps(within, &[who])));
                        is_ended = is_any;
                    }
                    (true, None) if is_any => {
                        to.extend(ANY.map(str::to_owned));
                        is_ended = true;
                    }
                    (true, None) => to.extend(networks_of(&[who])),
                    (false, _) if is_any => {
                        if !std::ptr::eq(statement, list.last().unwrap_or(statement)) {
                            let why = "behind `none` no client has the right";
                            self.leave(whole, Effect::Needless, why);
                        }
                        is_ended = true;
                    }
                    (false, _) => {
                        let why = "clients that are excluded cannot be said here: no address and \
                            no key that follows has the right";
                        self.leave(whole, Effect::Differs, why);
                        is_ended = true;
                    }
                }
            }
        }
        let mut seen = HashSet::new();
        to.retain(|client| seen.insert(client.clone()));
        if to.is_empty() && whole.statement().says("none") {
            self.leave(whole, Effect::Needless, "it is always so");
        }
        Ok(to)
    }

    /// Reads an element that excludes all clients but those of some networks, which the elements
    /// behind it are for then: `!{ !NETWORK; any; }`. None if it is another element.
    fn only_within(
        &mut self,
        statement: &'s Statement,
    ) -> Result<Option<Vec<Clients>>, ImportError> {
        let mut cursor = statement.cursor();
        let (true, Some((Element::Block(list), _))) = (cursor.passes_not(), cursor.peek()) else {
            return Ok(None);
        };
        let told = self.acls.left.len();
        let rules = self.acls.rules(list)?;
        let is_plain = |rule: &Rule| !rule.matches && matches!(rule.who, Clients::Network(_));
        match rules.split_last() {
            Some((Rule { matches: true, who: Clients::Any }, excluded))
                if excluded.iter().all(is_plain) =>
            {
                Ok(Some(excluded.iter().map(|rule| rule.who.clone()).collect()))
            }
            _ => {
                self.acls.left.truncate(told); // it is read once more
                Ok(None)
            }
        }
    }

    /// Reads a list of servers, with the port and the key of each.
    fn remote_list(&mut self, mut cursor: Cursor<'s>) -> Result<Vec<String>, ImportError> {
        let port = self.port_and_source(&mut cursor)?;
        let list = cursor.block("`{`")?;
        cursor.end()?;
        let mut read = RemoteList::default();
        self.remotes((port, list), 0, &mut read)?;
        if read.left > 0 {
            let why = "a zone has at most 64 such servers";
            self.leave(cursor, Effect::Lost, why);
        }
        Ok(read.servers.into_iter().map(|(_, written)| written).collect())
    }

    /// Appends the servers of a list, and counts those that are too many.
    fn remotes(
        &mut self,
        (port, list): (Option<u16>, &'s [Statement]),
        depth: usize,
        read: &mut RemoteList,
    ) -> Result<(), ImportError> {
        for statement in list {
            let mut server = statement.cursor();
            let begin = server;
            read.steps += 1;
            if read.steps > STEPS_MAX {
                let what = "servers and lists of one list of servers";
                return Err(begin.problem(Problem::TooMuch(what, STEPS_MAX)));
            }
            let word = server.word("the address of a server")?;
            let own_port = self.port_and_source(&mut server)?;
            let Ok(address) = word.parse::<IpAddr>() else {
                let Some(named) = self.remote_servers.get(&word.to_ascii_lowercase()).copied()
                else {
                    return Err(begin.expected("the address of a server, or the name of a list"));
                };
                if depth == DEPTH_MAX {
                    let what = "lists of servers within each other (does one hold itself?)";
                    return Err(begin.problem(Problem::TooMuch(what, DEPTH_MAX)));
                }
                let port = own_port.or(named.0).or(port);
                self.remotes((port, named.1), depth + 1, read)?;
                continue;
            };
            let key = match server.passes("key") {
                true => Some(self.needed_key(&mut server)?),
                false => None,
            };
            if server.passes("tls") {
                let tls = server.word("the name of a `tls` statement")?;
                if !tls.eq_ignore_ascii_case("none") {
                    self.leave(begin, Effect::Lost, "zones are transferred over TCP, not over TLS");
                    continue;
                }
            }
            server.end()?;
            if key == Some(None) {
                continue; // unsigned, it would be asked for what it does not answer
            }
            let address = SocketAddr::new(address, own_port.or(port).unwrap_or(PORT));
            let mut written = match address.port() {
                PORT => address.ip().to_string(),
                _ => address.to_string(),
            };
            if let Some(Some(key)) = key {
                written.push_str(&format!(" key {key}"));
            }
            if read.servers.iter().any(|(other, _)| *other == address) {
                self.leave(begin, Effect::Needless, "this server stands there already");
            } else if read.servers.len() == SERVERS_MAX {
                read.left += 1;
            } else {
                read.servers.push((address, written));
            }
        }
        Ok(())
    }

    /// Reads `port`, and passes over the address that messages are sent from.
    fn port_and_source(&mut self, cursor: &mut Cursor<'s>) -> Result<Option<u16>, ImportError> {
        let mut port = None;
        loop {
            let begin = *cursor;
            if cursor.passes("port") {
                let is_port = |word: &str| word.parse().ok().filter(|it| *it > 0);
                port = Some(cursor.value("a port", is_port)?);
            } else if cursor.passes("source") || cursor.passes("source-v6") {
                cursor.word("an address")?;
                self.leave(begin, Effect::Differs, SOURCE);
            } else {
                return Ok(port);
            }
        }
    }

    /// Imports a zone that is transferred from primaries.
    pub(super) fn secondary(
        &mut self,
        statement: &'s Statement,
        name: &Name,
        clauses: &mut Clauses<'s>,
        defaults: &Defaults<'s>,
    ) -> Result<(), ImportError> {
        let primaries = match clauses.take("primaries")? {
            Some(primaries) => Some(primaries),
            None => clauses.take("masters")?,
        };
        let from = match primaries {
            Some(cursor) => self.remote_list(cursor)?,
            None => Vec::new(),
        };
        let Some(origin) = primaries.filter(|_| !from.is_empty()) else {
            let why = "there is no primary that it could be transferred from";
            self.lose_zone(statement.cursor(), name, why);
            return Ok(());
        };
        let mut keys = Vec::new();
        for (keyword, key) in CLIENTS {
            let Some(cursor) = clauses.take(keyword)? else { continue };
            let clients = self.transfer_clients(cursor)?;
            if !clients.is_empty() {
                let place = cursor.statement().place().clone();
                keys.push((key, Value::from(&clients[..]), place));
            }
        }
        for pair in TIMES {
            self.check_times(clauses, &pair, &mut keys)?;
        }
        for keyword in ["file", "masterfile-format"] {
            for cursor in clauses.take_all(keyword) {
                let why = "the zone is kept in the directory `state`";
                self.leave(cursor, Effect::Needless, why);
            }
        }
        let access = self.access(clauses.take("allow-query")?)?.or_else(|| defaults.query());
        let access = access.filter(|(rules, _)| rules != &["allow any"]);
        let transfers = self.transfers(TransferClauses::take(clauses)?, defaults)?;
        let place = origin.statement().place().clone();
        let source = Source::Primaries(Primaries { from, keys }, place);
        self.add_zone(statement, name, source, access, transfers)
    }

    /// Reads the least and the greatest of a time between two checks of a serial.
    fn check_times(
        &mut self,
        clauses: &mut Clauses<'s>,
        [least, greatest]: &[TimeKey; 2],
        keys: &mut Vec<(&'static str, Value, Place)>,
    ) -> Result<(), ImportError> {
        let mut read = |time: &TimeKey| -> Result<_, ImportError> {
            let Some(mut cursor) = clauses.take(time.keyword)? else { return Ok(None) };
            let whole = cursor;
            let seconds = cursor.value("a time", value::seconds)?;
            cursor.end()?;
            let kept = seconds.clamp(1, time.most);
            if kept != seconds {
                let why = format!("`{}` is from 1 to {} seconds", time.key, time.most);
                self.leave(whole, Effect::Differs, &why);
            }
            Ok(Some((kept, whole)))
        };
        let (from, to) = (read(least)?, read(greatest)?);
        let mut written_least = from;
        if let Some((to, whole)) = to
            && from.map_or(least.default, |(from, _)| from) > to
        {
            written_least = Some((to, whole)); // the configuration refuses one above the greatest
            if let Some((_, whole)) = from {
                let why = "it is above the greatest, and is lowered to that";
                self.leave(whole, Effect::Differs, why);
            }
        }
        for (time, written) in [(least, written_least), (greatest, to)] {
            if let Some((seconds, whole)) = written {
                let text = format!("{seconds}s");
                keys.push((time.key, Value::from(&*text), whole.statement().place().clone()));
            }
        }
        Ok(())
    }
}

/// The statements of a secondary that list clients, and the keys of `[zone.secondary]`.
const CLIENTS: [(&str, &str); 2] =
    [("allow-notify", "notify-from"), ("allow-update-forwarding", "update-from")];

/// A bound of the time between two checks of a serial.
struct TimeKey {
    /// The statement of BIND's.
    keyword: &'static str,
    /// The key of `[zone.secondary]`.
    key: &'static str,
    /// The value where there is none, seconds.
    default: u64,
    /// The greatest value, seconds.
    most: u64,
}

/// The bounds of both times: the least and the greatest of each.
const TIMES: [[TimeKey; 2]; 2] = {
    const fn key(keyword: &'static str, key: &'static str, default: u64, most: u64) -> TimeKey {
        TimeKey { keyword, key, default, most }
    }
    [
        [
            key("min-refresh-time", "refresh-min", 60, DAY),
            key("max-refresh-time", "refresh-max", 28 * DAY, YEAR),
        ],
        [
            key("min-retry-time", "retry-min", 30, DAY),
            key("max-retry-time", "retry-max", 14 * DAY, YEAR),
        ],
    ]
};

/// The networks in sets of clients, as they are written.
fn networks_of(clients: &[Clients]) -> impl Iterator<Item = String> {
    clients.iter().filter_map(|clients| match clients {
        Clients::Network(network) => Some(network.to_string()),
        Clients::Any | Clients::List(_) => None,
    })
}

/// The clients that are in a set of both lists.
fn overlaps(first: &[Clients], second: &[Clients]) -> Vec<Clients> {
    let pairs = first.iter().flat_map(|one| second.iter().map(move |other| (one, other)));
    pairs.filter_map(|(one, other)| overlap(one, other)).collect()
}
