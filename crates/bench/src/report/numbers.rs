//! Numbers as people read them.

use super::figures::Figure;
use crate::paired::{Interval, Relation};

/// Three significant digits, thousands grouped: `1,234,567`, `123`, `12.3`, `1.23`, `0.123`.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => grouped(value),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Returns a whole number with its thousands grouped.
pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 && digits != "0" { "−" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number of queries a second: whole from a hundred on.
pub fn rate(value: f64) -> String {
    if value < 100.0 { short(value) } else { grouped(value) }
}

/// Returns a share with its sign: `+12 %`, `−3.4 %`, and multiples from four times on: `5.2 ×`.
pub fn change(share: f64) -> String {
    let sign = if share < 0.0 { '−' } else { '+' };
    match share.abs() * 100.0 {
        percent if percent >= 300.0 => format!("{} ×", short(1.0 + share)),
        percent if percent >= 9.95 => format!("{sign}{percent:.0} %"),
        percent => format!("{sign}{percent:.1} %"),
    }
}

/// Returns a change of a figure: of loss, which may begin at none, percentage points.
pub fn change_of(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Loss | Figure::TailLoss => {
            let sign = if value < 0.0 { '−' } else { '+' };
            format!("{sign}{} points", short(value.abs() * 100.0))
        }
        _ => change(value),
    }
}

/// Returns what a change lies between: `−3.0 % to +11 %`.
pub fn interval(figure: Figure, interval: &Interval) -> String {
    let [low, high] = [interval.low, interval.high].map(|it| match it {
        it if it > 99.0 => "more than 100 ×".to_owned(),
        it => change_of(figure, it),
    });
    format!("{low} to {high}")
}

/// Returns a relation in a column of numbers: the change where there is one, `=` where figures are
/// level, and `?` where that is undecided.
pub fn relation(figure: Figure, relation: &Relation) -> String {
    match relation {
        Relation::Differs(found) => change_of(figure, found.change),
        Relation::Level(_) => "=".to_owned(),
        Relation::Undecided(_) => "?".to_owned(),
        Relation::Once(change) => format!("{}, once", change_of(figure, *change)),
    }
}

/// Returns a time in microseconds as people say it: `87.0 µs`, `12.3 ms`, `1.20 s`.
pub fn time(micros: f64) -> String {
    match micros {
        micros if micros >= 999_500.0 => format!("{} s", short(micros / 1e6)),
        micros if micros >= 999.5 => format!("{} ms", short(micros / 1e3)),
        micros => format!("{} µs", short(micros)),
    }
}

/// Writes a time as a tick of an axis, without needless digits.
pub fn time_tick(micros: f64) -> String {
    let text = time(micros);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number} {unit}")
}

/// Returns a sentence with its beginning in upper case, but for the name of a server, which stays
/// as typed.
pub fn capital(text: &str) -> String {
    let words = ["in ", "only ", "nothing ", "ahead ", "queries ", "memory", "start "];
    match words.iter().any(|word| text.starts_with(word)) {
        true => text[..1].to_uppercase() + &text[1..],
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_groups() {
        let cases = [(1_234_567.0, "1,234,567"), (99.96, "100"), (12.34, "12.3"), (1.0, "1.00")];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
        assert_eq!(grouped(-1234.0), "−1,234");
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        assert_eq!(
            [0.5, 87.0, 12_345.0, 1.2e6].map(time),
            ["0.500 µs", "87.0 µs", "12.3 ms", "1.20 s"]
        );
        assert_eq!([200.0, 1000.0, 5e6].map(time_tick), ["200 µs", "1 ms", "5 s"]);
    }

    #[test]
    fn a_change_has_its_sign_and_large_ones_are_multiples() {
        assert_eq!(change(-0.034), "−3.4 %");
        assert_eq!(change(0.123), "+12 %");
        assert_eq!(change(4.2), "5.20 ×");
        assert_eq!(change_of(Figure::Loss, 0.02), "+2.00 points");
    }

    #[test]
    fn a_change_within_noise_is_shown_as_an_interval() {
        let wide = Interval { low: -0.35, change: 0.6, high: 3.0 };
        assert_eq!(interval(Figure::Qps, &wide), "−35 % to 4.00 ×");
        assert_eq!(
            interval(Figure::Qps, &Interval { high: 1e6, ..wide }),
            "−35 % to more than 100 ×"
        );
        assert_eq!(relation(Figure::Qps, &Relation::Undecided(Some(wide))), "?");
    }
}
