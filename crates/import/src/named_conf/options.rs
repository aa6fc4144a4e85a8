//! Options that are a number, a name or a switch on both sides.

use super::clauses::Clauses;
use super::statement::Cursor;
use super::value::{self, Size};
use super::zones::Source;
use super::{Importer, left};
use crate::document::{Effect, ReportLine, Value};
use crate::error::ImportError;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// A key: its section and its name.
type Key = (&'static str, &'static str);

/// Octets that the cache may have.
const CACHE_BYTES: RangeInclusive<u64> = 1 << 20..=3 << 30;
/// Octets that a UDP reply may have.
const UDP_BYTES: RangeInclusive<u64> = 512..=4096;
/// Queries that may wait.
const WAITING: RangeInclusive<u64> = 1..=1_000_000;
/// Most queries that may wait for the same answer.
const WAITING_PER_ANSWER_MAX: u64 = 100_000;
/// Default number of queries that may wait.
pub(super) const WAITING_DEFAULT: u64 = 16_384;
/// Greatest number of `resolver-query-timeout` that means seconds; greater ones are milliseconds.
const TIMEOUT_SECONDS_MAX: u64 = 300;

/// Options that are times on both sides, the key, and its range in seconds. A greatest time stands
/// before the least, which may not be above it.
const TIMES: [(&str, Key, RangeInclusive<u64>); 7] = [
    ("max-cache-ttl", ("cache", "ttl-max"), 1..=30 * 86_400),
    ("min-cache-ttl", ("cache", "ttl-min"), 0..=3600),
    ("max-ncache-ttl", ("cache", "negative-ttl-max"), 1..=86_400),
    ("min-ncache-ttl", ("cache", "negative-ttl-min"), 0..=3600),
    ("servfail-ttl", ("cache", "failure-ttl-max"), 1..=300),
    ("max-stale-ttl", ("cache", "stale"), 0..=30 * 86_400),
    ("stale-answer-ttl", ("cache", "stale-ttl"), 1..=3600),
];

/// Options that are whole numbers on both sides, the key, and its range.
const NUMBERS: [(&str, Key, RangeInclusive<u64>); 3] = [
    ("edns-udp-size", ("zone.forward", "buffer-size"), UDP_BYTES),
    ("max-udp-size", ("edns", "buffer-size"), UDP_BYTES),
    ("tcp-clients", ("tcp", "connections-max"), 1..=1_000_000),
];

/// The numbers of `rate-limit`, each with its key and range.
const RATE_NUMBERS: [(&str, Key, RangeInclusive<u64>); 5] = [
    ("responses-per-second", ("rate-limit", "responses-per-second"), 1..=1_000_000),
    ("slip", ("rate-limit", "slip"), 0..=10),
    ("ipv4-prefix-length", ("rate-limit", "prefix-v4"), 8..=32),
    ("ipv6-prefix-length", ("rate-limit", "prefix-v6"), 16..=128),
    ("max-table-size", ("rate-limit", "table-size"), 1024..=16_777_216),
];

impl<'s> Importer<'s> {
    /// Reads all options.
    pub(super) fn options(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        self.stale(options)?;
        self.waiting_times(options)?;
        self.times(options)?;
        self.refetching(options)?;
        self.waiting(options)?;
        for (keyword, key, range) in NUMBERS {
            self.number(options, keyword, key, &range)?;
        }
        if let Some(mut cursor) = options.take("max-cache-size")? {
            match cursor.value("a size", value::size)? {
                Size::Bytes(bytes) => {
                    let bytes = self.within(cursor, bytes, &CACHE_BYTES);
                    self.set(("cache", "bytes"), format!("{bytes} B").as_str(), cursor);
                }
                Size::Relative => {
                    let why = "cache.bytes is 256 MiB unless you say how much";
                    self.leave(cursor, Effect::Differs, why);
                }
            }
        }
        if let Some(mut cursor) = options.take("tcp-idle-timeout")? {
            let tenths: u64 = cursor.parsed("a time in tenths of a second")?;
            let seconds = self.within(cursor, tenths.div_ceil(10), &(1..=3600));
            self.set(("tcp", "idle-timeout"), format!("{seconds}s").as_str(), cursor);
        }
        self.cookies(options)?;
        self.identity(options)?;
        self.order(options)?;
        self.rate_limit(options)
    }

    /// Reads options that are times.
    fn times(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        let mut greatest = HashMap::new();
        for (keyword, key, range) in TIMES {
            let Some(mut cursor) = options.take(keyword)? else { continue };
            let seconds = cursor.value("a time", value::seconds)?;
            cursor.end()?;
            let above = keyword.strip_prefix("min-").and_then(|what| greatest.get(what));
            let most = above.map_or(*range.end(), |above| *range.end().min(above));
            let seconds = self.within(cursor, seconds, &(*range.start()..=most));
            if let Some(what) = keyword.strip_prefix("max-") {
                greatest.insert(what, seconds);
            }
            self.set(key, format!("{seconds}s").as_str(), cursor);
        }
        Ok(())
    }

    /// Reads whether answers are fetched anew before they expire.
    fn refetching(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        if let Some(mut cursor) = options.take("prefetch")? {
            if cursor.passes("0") {
                self.set(("cache", "prefetch"), "0 %", cursor);
            } else {
                let why = "what is asked for repeatedly is fetched anew in the last tenth of its \
                           TTL, or what cache.prefetch says";
                self.leave(cursor, Effect::Differs, why);
            }
        }
        Ok(())
    }

    /// Reads how many may wait, and how many of them for the same answer.
    fn waiting(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        let all =
            self.number(options, "recursive-clients", ("forwarding", "waiting-max"), &WAITING)?;
        let most = all.unwrap_or(WAITING_DEFAULT).min(WAITING_PER_ANSWER_MAX);
        if let Some(mut cursor) = options.take("max-clients-per-query")? {
            let number = match cursor.parsed("a number")? {
                0 => most, // no limit
                number => self.within(cursor, number, &(1..=most)),
            };
            self.set(("forwarding", "waiting-per-answer-max"), number, cursor);
        }
        Ok(())
    }

    /// Reads what decides whether expired answers are given.
    fn stale(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        let Some(mut cursor) = options.take("stale-answer-enable")? else {
            self.stale_by_default();
            return Ok(());
        };
        if !cursor.value("`yes` or `no`", value::yes_or_no)? {
            self.set(("cache", "stale"), "0s", cursor);
            for cursor in options.take_all("max-stale-ttl") {
                self.leave(cursor, Effect::Needless, "`stale-answer-enable no`");
            }
        }
        Ok(())
    }

    /// Reads after which times a client is answered all the same.
    fn waiting_times(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        if let Some(mut cursor) = options.take("stale-answer-client-timeout")? {
            let off = cursor.passes("off") || cursor.passes("disabled");
            if !off {
                let millis: u64 = cursor.parsed("a time in milliseconds")?;
                let millis = self.within(cursor, millis, &(0..=60_000));
                self.forward_set("stale-after", format!("{millis} ms").as_str(), cursor);
            }
        }
        if let Some(mut cursor) = options.take("resolver-query-timeout")? {
            let number: u64 = cursor.parsed("a time")?;
            let millis = match number {
                0 => return Ok(()), // the default
                1..=TIMEOUT_SECONDS_MAX => number * 1000,
                _ => number,
            };
            let millis = self.within(cursor, millis, &(100..=60_000));
            self.forward_set("timeout", format!("{millis} ms").as_str(), cursor);
        }
        Ok(())
    }

    /// Reports that expired answers are served although named did not serve them.
    fn stale_by_default(&mut self) {
        let mut zones = self.zones.iter();
        let forwarded = zones.find(|zone| matches!(zone.source, Source::Servers(..)));
        let Some(place) = forwarded.map(|zone| zone.origin.clone()) else { return };
        let why = "`no` where it is not said; here, expired answers are given when no server \
            answers, unless `stale = \"0s\"` in [cache]";
        let (what, why) = ("stale-answer-enable".to_owned(), why.to_owned());
        self.left.push(ReportLine { place, effect: Effect::Differs, what, why });
    }

    /// Notes a key of all zones that are forwarded.
    fn forward_set(&mut self, key: &'static str, value: impl Into<Value>, from: Cursor<'s>) {
        self.set(("zone.forward", key), value, from);
    }

    /// Reads a whole number; returns what was taken.
    fn number(
        &mut self,
        clauses: &mut Clauses<'s>,
        keyword: &str,
        key: Key,
        range: &RangeInclusive<u64>,
    ) -> Result<Option<u64>, ImportError> {
        let Some(mut cursor) = clauses.take(keyword)? else { return Ok(None) };
        let number = cursor.parsed("a number")?;
        cursor.end()?;
        let number = self.within(cursor, number, range);
        self.set(key, number, cursor);
        Ok(Some(number))
    }

    /// Returns the number, or the next one that Zonda takes.
    fn within(&mut self, cursor: Cursor<'s>, number: u64, range: &RangeInclusive<u64>) -> u64 {
        let taken = number.clamp(*range.start(), *range.end());
        if taken != number {
            let why = format!("Zonda takes {} to {}", range.start(), range.end());
            self.leave(cursor, Effect::Differs, &why);
        }
        taken
    }

    /// Reads what is said about DNS cookies.
    fn cookies(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        if let Some(mut cursor) = options.take("answer-cookie")?
            && !cursor.value("`yes` or `no`", value::yes_or_no)?
        {
            self.set(("edns", "cookies"), false, cursor);
        }
        let mut secrets = Vec::new();
        let all = options.take_all("cookie-secret");
        for mut cursor in all.iter().copied() {
            secrets.push(cursor.value("32 hexadecimal digits", |word| {
                let is_secret = word.len() == 32 && word.bytes().all(|c| c.is_ascii_hexdigit());
                is_secret.then(|| word.to_owned())
            })?);
        }
        if let Some(first) = all.first() {
            self.set(("edns", "cookie-secrets"), &secrets[..], *first);
        }
        Ok(())
    }

    /// Reads what the server says about itself.
    fn identity(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        for (keyword, keys) in [
            ("version", &[("identity", "version")][..]),
            ("server-id", &[("identity", "server-id"), ("edns", "nsid")]),
        ] {
            let Some(mut cursor) = options.take(keyword)? else { continue };
            let text = cursor.word("text")?;
            cursor.end()?;
            match text {
                "none" => {} // as when it is not said
                "hostname" if keyword == "server-id" => {
                    self.leave(cursor, Effect::Lost, "write the name of the machine");
                }
                text if (1..=128).contains(&text.len()) => {
                    for key in keys {
                        self.set(*key, text, cursor);
                    }
                }
                _ => self.leave(cursor, Effect::Lost, "at most 128 octets are sent"),
            }
        }
        if let Some(cursor) = options.take("hostname")?
            && !cursor.statement().says("none")
        {
            self.leave(cursor, Effect::Differs, "`server-id` answers hostname.bind too");
        }
        Ok(())
    }

    /// Reads in which order records are given.
    fn order(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        let Some(mut cursor) = options.take("rrset-order")? else { return Ok(()) };
        let orders = cursor.block("`{`")?;
        cursor.end()?;
        let order = match orders {
            [order] if order.elements.len() == 2 => order,
            _ => {
                self.leave(cursor, Effect::Lost, "answers.rotate is for all sets or for none");
                return Ok(());
            }
        };
        let mut order = order.cursor();
        if !order.passes("order") {
            return Err(order.expected("`order`"));
        }
        match order.word("an order")? {
            "cyclic" | "random" => self.set(("answers", "rotate"), true, cursor),
            _ => self.set(("answers", "rotate"), false, cursor),
        }
        Ok(())
    }

    /// Reads the statement `rate-limit`.
    fn rate_limit(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        let Some(mut cursor) = options.take("rate-limit")? else { return Ok(()) };
        let mut limits = Clauses::new(cursor.block("`{`")?);
        cursor.end()?;
        if let Some(mut log_only) = limits.take("log-only")?
            && log_only.value("`yes` or `no`", value::yes_or_no)?
        {
            self.leave(cursor, Effect::Lost, "limits cannot be tried with `log-only`");
            return Ok(());
        }
        for (keyword, key, range) in RATE_NUMBERS {
            self.number(&mut limits, keyword, key, &range)?;
        }
        if let Some(mut window) = limits.take("window")? {
            let seconds = window.parsed("a number of seconds")?;
            let seconds = self.within(window, seconds, &(1..=3600));
            self.set(("rate-limit", "window"), format!("{seconds}s").as_str(), window);
        }
        if let Some(mut exempt) = limits.take("exempt-clients")? {
            let clients = self.clients(exempt, exempt.block("`{`")?)?;
            if !clients.is_empty() {
                self.set(("rate-limit", "exempt"), &clients[..], exempt);
            }
        }
        let why = "one limit is for responses of every kind: `responses-per-second`";
        let rest = limits.rest().map(|it| left::because(it, Effect::Lost, why));
        self.left.extend(rest);
        Ok(())
    }
}
