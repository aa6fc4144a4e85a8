//! Limits that a run must keep, so that it can gate a deployment.

use std::fmt;
use std::time::Duration;

use super::Outcome;

/// Limits; those that are absent are kept by any run. A run without a reply keeps no other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Lost and unsent queries as a share of those to be sent; 0–1.
    pub loss_max: Option<f64>,
    /// The 99th percentile of the time to reply; a query without reply is slower than any.
    pub p99_max: Option<Duration>,
    /// Replies that are wrong or incorrect.
    pub wrong_max: Option<Ceiling>,
}

/// The most that there may be of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ceiling {
    /// A number of events.
    Count(u64),
    /// A share of those sent; 0–1.
    Share(f64),
}

impl Ceiling {
    /// Returns how many there may be when so many were sent.
    fn of(self, sent: u64) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Share(share) => share * sent as f64,
        }
    }
}

impl fmt::Display for Ceiling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Share(share) => write!(f, "{} %", 100.0 * share),
        }
    }
}

/// A limit that was broken, and by what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BrokenLimit {
    /// The share that was lost, and the most that may be; 0–1.
    Loss(f64, f64),
    /// The 99th percentile, and the most that it may be.
    P99(Duration, Duration),
    /// Replies that are wrong or incorrect, and the most that may be.
    Wrong(u64, Ceiling),
    /// The share that had no reply, more than one in a hundred, and the most that the 99th
    /// percentile may be.
    Unanswered(f64, Duration),
    /// No query was answered, so that nothing is known of the server.
    NoReply,
}

impl fmt::Display for BrokenLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loss(found, limit) => {
                write!(f, "lost {} %, at most {} % may be", 100.0 * found, 100.0 * limit)
            }
            Self::P99(found, limit) => {
                write!(f, "the 99th percentile is {found:?}, at most {limit:?} may be")
            }
            Self::Unanswered(share, limit) => write!(
                f,
                "{} % had no reply, so that the 99th percentile is more than {limit:?}",
                100.0 * share
            ),
            Self::Wrong(found, limit) => {
                write!(f, "{found} replies are wrong or incorrect, at most {limit} may be")
            }
            Self::NoReply => f.write_str("no query was answered"),
        }
    }
}

impl Limits {
    /// Returns the limits that a run has broken.
    #[must_use]
    pub fn broken_by(&self, outcome: &Outcome) -> Vec<BrokenLimit> {
        let mut broken = Vec::new();
        if let Some(limit) = self.loss_max.filter(|limit| outcome.loss() > *limit) {
            broken.push(BrokenLimit::Loss(outcome.loss(), limit));
        }
        let is_answered = outcome.traffic.completed > 0;
        if let Some(limit) = self.p99_max.filter(|_| is_answered) {
            match outcome.percentile_of_all(99.0) {
                None => broken.push(BrokenLimit::Unanswered(outcome.loss(), limit)),
                Some(p99) if p99 > limit => broken.push(BrokenLimit::P99(p99, limit)),
                Some(_) => {}
            }
        }
        let traffic = &outcome.traffic;
        let wrong = traffic.wrong + traffic.incorrect;
        let is_broken = |most: &Ceiling| wrong as f64 > most.of(traffic.sent);
        broken.extend(self.wrong_max.filter(is_broken).map(|most| BrokenLimit::Wrong(wrong, most)));
        if !is_answered && *self != Self::default() {
            broken.push(BrokenLimit::NoReply);
        }
        broken
    }
}

/// Reads a share with its sign, `0.1%`: a bare number could be meant as percent or not.
///
/// # Errors
/// What was expected.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').or((text == "0").then_some(text));
    let share = number.and_then(|number| number.trim_end().parse::<f64>().ok());
    let share = share.map(|percent| percent / 100.0).filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share with its %, such as 0.1%".to_owned())
}

/// Reads a number, or a share if it is one of percent: `3` or `0.1%`.
///
/// # Errors
/// What was expected.
pub fn parse_most(text: &str) -> Result<Ceiling, String> {
    if text.ends_with('%') {
        return parse_share(text).map(Ceiling::Share);
    }
    let count = text.parse().map(Ceiling::Count);
    count.map_err(|_| "expected a number or a share, such as 3 or 0.1%".to_owned())
}

/// Reads a time: a number of seconds, or a number with its unit, `us`, `ms`, `s`, `m`, `h` or `d`.
///
/// # Errors
/// What was expected.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time: seconds, or 500us, 2ms, 1s, 30m or 6h".to_owned();
    let units = [
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
        ("", 1.0),
    ];
    let number = |(name, unit): &(&str, f64)| Some((text.strip_suffix(name)?, *unit));
    let (number, unit) = units.iter().find_map(number).ok_or_else(expected)?;
    let secs = number.trim_end().parse::<f64>().map_err(|_| expected())? * unit;
    Duration::try_from_secs_f64(secs).map_err(|_| expected())
}

/// Reads a time as [`parse_time`] does, and refuses none.
///
/// # Errors
/// What was expected.
pub fn parse_time_above_0(text: &str) -> Result<Duration, String> {
    let time = parse_time(text)?;
    if time.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(time) }
}

/// Reads a rate in queries per second.
///
/// # Errors
/// What was expected.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "expected queries per second, a number above 0 such as 20000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_times_are_read_with_their_units() {
        assert_eq!(parse_share("0.1%"), Ok(0.001));
        assert_eq!((parse_share("50 %"), parse_share("0")), (Ok(0.5), Ok(0.0)));
        for text in ["101%", "some", "0.5", "1", "-1%", "%"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
        assert_eq!(parse_most("3"), Ok(Ceiling::Count(3)));
        assert_eq!(parse_most("50%"), Ok(Ceiling::Share(0.5)));
        assert!(parse_most("0.5").is_err() && parse_most("101%").is_err());
        assert_eq!(parse_time("2ms"), Ok(Duration::from_millis(2)));
        assert_eq!(parse_time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_time("30us"), Ok(Duration::from_micros(30)));
        assert_eq!(parse_time("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_time("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_time("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "s", "-1s", "-1", "2 weeks", "nan", "inf", "1e30"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert!(parse_time_above_0("0").is_err() && parse_time_above_0("0ms").is_err());
        assert!(
            parse_rate("abc").is_err() && parse_rate("-5").is_err() && parse_rate("0").is_err()
        );
    }
}
