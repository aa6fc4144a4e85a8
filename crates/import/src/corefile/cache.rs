//! `cache [TTL] [ZONES…] { … }`.

use super::key;
use super::lexer::Token;
use super::parser::Line;
use super::setting::{Scalar, Setting};
use super::source::Kind;
use super::{Block, Importer};
use crate::document::Effect::{Differs, Lost};
use crate::error::ImportError;
use crate::value::read_duration;
use std::time::Duration;

/// Entries that CoreDNS's cache has room for by default.
const CAPACITY_DEFAULT: u64 = 9984;
/// Longest times of CoreDNS for answers, and for names that do not exist, in seconds.
const TTLS_DEFAULT: [u64; 2] = [3600, 1800];
/// Time for which CoreDNS gives expired answers by default.
const STALE_DEFAULT: Duration = Duration::from_secs(3600);
/// Shortest time for which CoreDNS keeps answers by default.
const TTL_MIN_DEFAULT: Duration = Duration::from_secs(5);
/// TTLs of expired answers.
const STALE_TTLS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(3600));
/// Part of its TTL in which CoreDNS fetches an answer again by default, in percent.
const PREFETCH_PART_DEFAULT: u64 = 10;

impl Importer<'_> {
    /// Reads `cache`.
    pub(super) fn cache(&mut self, line: &Line) -> Result<(), ImportError> {
        let mut ttls = TTLS_DEFAULT;
        let mut arguments = line.arguments();
        if let Some((first, rest)) = arguments.split_first()
            && let Ok(ttl) = first.text.parse()
        {
            ttls = [ttl, ttl];
            arguments = rest;
        }
        let zones = key::all_zones(arguments)?;
        if !zones.is_empty() && !self.current().zones().iter().all(|own| zones.contains(own)) {
            self.leave(line, Differs, "answers for all names are cached");
        }
        let (mut is_stale_set, mut mins, mut uncached) = (false, [None; 2], [None; 2]);
        for option in &line.block {
            match option.name() {
                "success" => mins[0] = self.cache_limits(option, &mut ttls[0])?,
                "denial" => mins[1] = self.cache_limits(option, &mut ttls[1])?,
                "prefetch" => self.prefetch(option)?,
                "serve_stale" => {
                    self.serve_stale(option)?;
                    is_stale_set = true;
                }
                "servfail" => self.failures(option)?,
                "disable" => {
                    if let Some(kind) = self.cache_nothing(option)? {
                        uncached[kind] = Some(option);
                    }
                }
                "keepttl" => {
                    self.leave(option, Lost, "TTLs of cached answers always count down");
                }
                "serve_stale_policy" => {
                    let why = "an expired answer is given, whatever it says, if there is no newer";
                    self.leave(option, Lost, why);
                }
                _ => self.lose_option(option),
            }
        }
        for (kind, key, ttl, most) in
            [(0, "ttl-max", ttls[0], 30 * 86_400), (1, "negative-ttl-max", ttls[1], 86_400)]
        {
            if let Some(option) = uncached[kind] {
                self.cache_time(key, Duration::ZERO, option);
                continue;
            }
            let seconds = self.within(line, ttl, (1, most));
            self.cache_time(key, Duration::from_secs(seconds), line);
        }
        for (kind, key, min, ttl) in
            [(0, "ttl-min", mins[0], ttls[0]), (1, "negative-ttl-min", mins[1], ttls[1])]
        {
            if let Some(option) = uncached[kind] {
                self.cache_time(key, Duration::ZERO, option);
                continue;
            }
            let (min, origin) = min.unwrap_or((TTL_MIN_DEFAULT.as_secs(), line));
            let seconds = self.within(origin, min.min(ttl), (0, 3600));
            self.cache_time(key, Duration::from_secs(seconds), origin);
        }
        if !is_stale_set {
            let why = "without `serve_stale`, expired answers are given too when no upstream \
                answers, unless `stale = \"0s\"` in [cache]";
            self.leave(line, Differs, why);
        }
        Ok(())
    }

    /// Notes how long answers of the block are cached.
    fn cache_time(&mut self, key: &'static str, time: Duration, line: &Line) {
        let times = &mut self.current().cache_times;
        times.retain(|(known, ..)| *known != key); // the last one counts
        times.push((key, time, line.place().clone()));
    }

    /// Sets how long answers are cached: for the whole server if all blocks that forward say the
    /// same, and for the zones of each of them otherwise.
    pub(super) fn settle_cache_times(&mut self) {
        let forwards = |block: &Block| block.sources.iter().any(|it| it.kind == Kind::Forward);
        let is_any = self.blocks.iter().any(forwards);
        let mut blocks =
            self.blocks.iter().filter(|it| !it.cache_times.is_empty() && (!is_any || forwards(it)));
        let times = |block: &Block| -> Vec<(&'static str, Duration)> {
            block.cache_times.iter().map(|(key, time, _)| (*key, *time)).collect()
        };
        let Some(first) = blocks.next() else { return };
        let is_zero = |(_, time): &(&str, Duration)| time.is_zero();
        let are_alike = blocks.all(|block| times(block) == times(first));
        let has_none = times(first).iter().any(|it| it.0.ends_with("ttl-max") && is_zero(it));
        if are_alike && !has_none {
            let whole = first.cache_times.clone();
            self.settings.extend(whole.into_iter().map(|(key, time, origin)| Setting {
                key: ("cache", key),
                value: Scalar::Time(time),
                origin,
            }));
            self.blocks.iter_mut().for_each(|block| block.cache_times.clear());
        }
    }

    /// Reads `success` and `denial`, `CAPACITY [TTL] [MINTTL]`; returns the last with its line.
    fn cache_limits<'l>(
        &mut self,
        option: &'l Line,
        ttl: &mut u64,
    ) -> Result<Option<(u64, &'l Line)>, ImportError> {
        let number =
            |token: &Token| token.text.parse::<u64>().map_err(|_| token.expected("a number"));
        let arguments = option.arguments();
        let Some(capacity) = arguments.first() else {
            return Err(option.expected("the number of entries"));
        };
        if number(capacity)? != CAPACITY_DEFAULT {
            self.leave(option, Differs, "cache.bytes is the size of the cache, for all blocks");
        }
        if let Some(token) = arguments.get(1) {
            *ttl = number(token)?;
        }
        if let Some(more) = arguments.get(3) {
            return Err(more.expected("the end of the line"));
        }
        let min = arguments.get(2).map(number).transpose()?;
        Ok(min.map(|min| (min, option)))
    }

    /// Reads `prefetch AMOUNT [DURATION [PERCENTAGE%]]`.
    fn prefetch(&mut self, option: &Line) -> Result<(), ImportError> {
        let Some(amount) = option.arguments().first() else {
            return Err(option.expected("a number of queries"));
        };
        let count: u64 = amount.text.parse().map_err(|_| amount.expected("a number"))?;
        let part = match option.arguments().get(2) {
            _ if count == 0 => 0,
            None => PREFETCH_PART_DEFAULT,
            Some(token) => {
                let part = token.text.strip_suffix('%').and_then(|it| it.parse().ok());
                part.ok_or_else(|| token.expected("a share such as `10%`"))?
            }
        };
        let part = self.within(option, part, (0, 50));
        self.set(("cache", "prefetch"), Scalar::Text(format!("{part} %")), option);
        if count > 0 {
            let why = "answers that clients get repeatedly are fetched again, whatever the number \
                of queries and the time between them";
            self.leave(option, Differs, why);
        }
        Ok(())
    }

    /// Reads `serve_stale [DURATION [immediate [TTL [PAUSE]] | verify [TIMEOUT [TTL [PAUSE]]]]]`.
    fn serve_stale(&mut self, option: &Line) -> Result<(), ImportError> {
        const WANTED: &str = "a duration such as `500ms`";
        let time = |token: &Token| read_duration(&token.text).ok_or_else(|| token.expected(WANTED));
        let (first, mode, more) = match option.arguments() {
            [] => (None, None, &[][..]),
            [first] => (Some(first), None, &[][..]),
            [first, mode, more @ ..] => (Some(first), Some(mode), more),
        };
        let (timeout, more) = match (mode, more) {
            (None, _) => (Some(None), more),
            (Some(mode), more) if mode.is("immediate") => (Some(None), more),
            (Some(mode), []) if mode.is("verify") => (None, more),
            (Some(mode), [timeout, more @ ..]) if mode.is("verify") => (Some(Some(timeout)), more),
            (Some(mode), _) => return Err(mode.expected("`immediate` or `verify`")),
        };
        if let [_, _, more, ..] = more {
            return Err(more.expected("the end of the line"));
        }
        let age = first.map(time).transpose()?.unwrap_or(STALE_DEFAULT);
        let most = Duration::from_secs(30 * 86_400);
        let age = self.time_within(option, age, (Duration::ZERO, most));
        self.cache_time("stale", age, option);
        if let Some(timeout) = timeout {
            let after = timeout.map(time).transpose()?.unwrap_or(Duration::ZERO);
            let after = self.time_within(option, after, (Duration::ZERO, Duration::from_secs(60)));
            self.current().stale_after = Some((after, option.place().clone()));
        }
        // TTLs of zero are not kept by clients, which would ask again at once.
        let ttl = more.first().map(time).transpose()?.unwrap_or(Duration::ZERO);
        let ttl = self.time_within(option, Duration::from_secs(ttl.as_secs()), STALE_TTLS);
        self.set(("cache", "stale-ttl"), Scalar::Time(ttl), option);
        if let Some(pause) = more.get(1) {
            time(pause)?;
            let why = "an upstream that failed is asked again as soon as it may answer, for \
                whatever name";
            self.leave(option, Differs, why);
        }
        Ok(())
    }

    /// Reads `servfail DURATION`.
    fn failures(&mut self, option: &Line) -> Result<(), ImportError> {
        let time = option.duration()?;
        let range = (Duration::from_secs(1), Duration::from_secs(300));
        let time = self.time_within(option, time, range);
        let time = Duration::from_secs(time.as_secs());
        self.set(("cache", "failure-ttl-max"), Scalar::Time(time), option);
        Ok(())
    }

    /// Reads `disable success|denial [ZONES…]`: what the server has itself is never cached. Returns
    /// the place of the kind if that is for all zones of the block.
    fn cache_nothing(&mut self, option: &Line) -> Result<Option<usize>, ImportError> {
        let (kind, zones) = match option.arguments() {
            [kind, zones @ ..] if kind.is("success") => (0, key::all_zones(zones)?),
            [kind, zones @ ..] if kind.is("denial") => (1, key::all_zones(zones)?),
            [kind, ..] => return Err(kind.expected("`success` or `denial`")),
            [] => return Err(option.expected("`success` or `denial`")),
        };
        if zones.is_empty() || self.covers_block(&zones) {
            return Ok(Some(kind));
        }
        let block = self.blocks.len() - 1;
        self.uncached.push((zones, block, option.place().clone(), option.summary()));
        Ok(None)
    }

    /// Reports answers that must not be cached, and are: those of upstreams.
    pub(super) fn report_uncached(&mut self) {
        for (zones, block, place, what) in std::mem::take(&mut self.uncached) {
            let mut views = self.views_of(block).iter().filter_map(|view| self.views.get(*view));
            let is_forwarded = views.any(|view| {
                zones.iter().any(|zone| {
                    let owner = view.owner(zone);
                    let pieces = owner.map_or_else(Vec::new, |owner| self.pieces(owner, zone));
                    let has = |kind| pieces.iter().any(|piece| piece.kind == kind);
                    has(Kind::Forward) && !has(Kind::Kubernetes)
                })
            });
            if is_forwarded {
                self.leave_at(
                    &place,
                    Lost,
                    what,
                    "answers of upstreams are cached for all names of a zone, or for none",
                );
            }
        }
    }
}
