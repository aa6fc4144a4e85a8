//! Numbers as people read them.

use super::statistics::Difference;

/// Three significant digits, thousands grouped: `1,234,567`, `123`, `12.3`, `1.23`, `0.123`.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 => grouped(value),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A whole number with its thousands grouped.
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

/// A share with its sign: `+12 %`, `−3.4 %`, and multiples from four times on: `5.2 ×`.
pub fn change(share: f64) -> String {
    let sign = if share < 0.0 { '−' } else { '+' };
    match share.abs() * 100.0 {
        percent if percent >= 300.0 => format!("{} ×", short(1.0 + share)),
        percent if percent >= 9.95 => format!("{sign}{percent:.0} %"),
        percent => format!("{sign}{percent:.1} %"),
    }
}

/// A difference in a table.
pub fn difference(difference: Difference) -> String {
    match difference {
        Difference::None => "no difference".to_owned(),
        Difference::Share(share) => change(share),
        Difference::Once(share) => format!("{}, once", change(share)),
        Difference::Unknown => "–".to_owned(),
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
    fn a_change_has_its_sign_and_large_ones_are_multiples() {
        assert_eq!(change(-0.034), "−3.4 %");
        assert_eq!(change(0.123), "+12 %");
        assert_eq!(change(4.2), "5.20 ×");
    }
}
