//! The time of day where this machine is, and for how long it has been running.

use std::{fmt, mem};

/// Nanoseconds since the machine was started, its sleep included. As cheap to read as the clock
/// that stands still meanwhile.
#[must_use]
pub fn boot_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    debug_assert_eq!(result, 0, "Linux has this clock since 2.6.39");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64 // neither is negative
}

/// A moment as clocks on the wall show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// 1 to 31.
    pub day: u8,
    /// 0 is January.
    pub month: u8,
    /// Year with all of its digits.
    pub year: i64,
    /// 0 is Sunday.
    pub weekday: u8,
    /// Hour, minute and second.
    pub time: [u8; 3],
}

impl LocalTime {
    /// Returns the moment so many seconds after 1970 began in Greenwich.
    #[must_use]
    pub fn of(since_1970_secs: i64) -> Self {
        let secs = since_1970_secs;
        // SAFETY: a zeroed `tm` is valid; the call reads one `time_t` and writes one `tm`, or fails
        // and leaves it as it is.
        let tm = unsafe {
            let mut tm: libc::tm = mem::zeroed();
            libc::localtime_r(&secs, &mut tm);
            tm
        };
        Self {
            day: tm.tm_mday as u8,
            month: tm.tm_mon as u8,
            year: i64::from(tm.tm_year) + 1900,
            weekday: tm.tm_wday as u8,
            time: [tm.tm_hour as u8, tm.tm_min as u8, tm.tm_sec as u8],
        }
    }
}

impl fmt::Display for LocalTime {
    /// Writes the time as ctime(3) does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let Self { day, month, year, weekday, time: [hour, minute, second] } = *self;
        let (weekday, month) = (DAYS[usize::from(weekday % 7)], MONTHS[usize::from(month % 12)]);
        write!(f, "{weekday} {month} {day:>2} {hour:02}:{minute:02}:{second:02} {year}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    #[test]
    fn the_time_since_the_start_of_the_machine_passes_as_any() {
        let (start, began_at) = (Instant::now(), boot_nanos());
        sleep(Duration::from_millis(5));
        let inner = Duration::from_nanos(boot_nanos() - began_at);
        assert!(inner >= Duration::from_millis(5) && inner <= start.elapsed(), "{inner:?}");
    }

    #[test]
    fn a_moment_is_written_as_date_writes_it() {
        let arguments = ["-d", "@1795258642", "+%a %b %e %H:%M:%S %Y"];
        let output = Command::new("date").args(arguments).env("LC_ALL", "C").output();
        let expected = output.expect("coreutils are there").stdout;
        let expected = String::from_utf8_lossy(&expected);
        assert_eq!(LocalTime::of(1_795_258_642).to_string(), expected.trim_end());
    }
}
