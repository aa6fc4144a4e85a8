//! `cache [TTL] [ZONES…] { … }`.

use super::Importer;
use super::key;
use super::lexer::Token;
use super::parser::Line;
use super::setting::Scalar;
use super::source::Kind;
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
        let mut is_stale_set = false;
        for option in &line.block {
            match option.name() {
                "success" => self.cache_limits(option, &mut ttls[0], "ttl-min")?,
                "denial" => self.cache_limits(option, &mut ttls[1], "negative-ttl-min")?,
                "prefetch" => self.prefetch(option)?,
                "serve_stale" => {
                    self.serve_stale(option)?;
                    is_stale_set = true;
                }
                "servfail" => self.failures(option)?,
                "disable" => self.cache_nothing(option)?,
                "keepttl" => {
                    self.leave(option, Lost, "TTLs of cached answers always count down");
                }
                _ => self.lose_option(option),
            }
        }
        for (key, ttl, most) in
            [("ttl-max", ttls[0], 30 * 86_400), ("negative-ttl-max", ttls[1], 86_400)]
        {
            let seconds = self.within(line, ttl, (1, most));
            self.set(("cache", key), Scalar::Time(Duration::from_secs(seconds)), line);
        }
        if !is_stale_set {
            let why = "without `serve_stale`, expired answers are given too when no upstream \
                answers, unless `stale = \"0s\"` in [cache]";
            self.leave(line, Differs, why);
        }
        Ok(())
    }

    /// Reads `success` and `denial`: `CAPACITY [TTL] [MINTTL]`.
    fn cache_limits(
        &mut self,
        option: &Line,
        ttl: &mut u64,
        key: &'static str,
    ) -> Result<(), ImportError> {
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
        if let Some(token) = arguments.get(2) {
            let seconds = self.within(option, number(token)?.min(*ttl), (0, 3600));
            self.set(("cache", key), Scalar::Time(Duration::from_secs(seconds)), option);
        }
        match arguments.get(3) {
            Some(more) => Err(more.expected("the end of the line")),
            None => Ok(()),
        }
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

    /// Reads `serve_stale [DURATION] [immediate | verify [TIMEOUT]]`.
    fn serve_stale(&mut self, option: &Line) -> Result<(), ImportError> {
        let mut time = STALE_DEFAULT;
        let mut arguments = option.arguments();
        if let Some((first, rest)) = arguments.split_first()
            && let Some(given) = read_duration(&first.text)
        {
            time = given;
            arguments = rest;
        }
        let after = match arguments {
            [] => Some(Duration::ZERO),
            [mode, ..] if mode.is("immediate") => Some(Duration::ZERO),
            [mode] if mode.is("verify") || mode.is("verified") => None,
            [mode, time] if mode.is("verify") || mode.is("verified") => {
                let after = read_duration(&time.text);
                Some(after.ok_or_else(|| time.expected("a duration such as `500ms`"))?)
            }
            [mode, ..] => return Err(mode.expected("`immediate` or `verify`")),
        };
        let most = Duration::from_secs(30 * 86_400);
        let time = self.time_within(option, time, (Duration::ZERO, most));
        self.set(("cache", "stale"), Scalar::Time(time), option);
        if let Some(after) = after {
            let after = self.time_within(option, after, (Duration::ZERO, Duration::from_secs(60)));
            self.current().stale_after = Some((after, option.place().clone()));
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

    /// Reads `disable success|denial [ZONES…]`: what the server has itself is never cached.
    fn cache_nothing(&mut self, option: &Line) -> Result<(), ImportError> {
        let zones = match option.arguments() {
            [kind, zones @ ..] if kind.is("success") || kind.is("denial") => key::all_zones(zones)?,
            [kind, ..] => return Err(kind.expected("`success` or `denial`")),
            [] => return Err(option.expected("`success` or `denial`")),
        };
        let block = self.blocks.len() - 1;
        self.uncached.push((zones, block, option.place().clone(), option.summary()));
        Ok(())
    }

    /// Reports answers that must not be cached, and are: those of upstreams.
    pub(super) fn report_uncached(&mut self) {
        for (zones, block, place, what) in std::mem::take(&mut self.uncached) {
            let zones = if zones.is_empty() { self.blocks[block].zones() } else { zones };
            let is_forwarded = zones.iter().any(|zone| {
                let pieces = self.pieces(zone);
                let has = |kind| pieces.iter().any(|piece| piece.kind == kind);
                has(Kind::Forward) && !has(Kind::Kubernetes)
            });
            if is_forwarded {
                self.leave_at(&place, Lost, what, "answers of upstreams are always cached");
            }
        }
    }
}
