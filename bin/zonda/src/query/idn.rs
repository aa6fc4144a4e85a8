//! Names with letters beyond ASCII, as they are in the DNS: `xn--` and Punycode (RFC 3492).
//!
//! Letters become lower case, and full stops of other scripts dots. Deliberately absent: the rest
//! of what browsers do (UTS 46): combined forms of letters stay as they were typed.

/// Separators of labels beside the dot (rfc3490#3.1).
const DOTS: [char; 3] = ['\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// A name in ASCII; nothing where a label cannot be written so.
pub fn to_ascii(name: &str) -> Option<String> {
    if name.is_ascii() {
        return Some(name.to_owned());
    }
    let labels = name.split(|c| c == '.' || DOTS.contains(&c)).map(|label| {
        if label.is_ascii() {
            return Some(label.to_owned());
        }
        let lower: Vec<char> = label.chars().flat_map(char::to_lowercase).collect();
        Some(format!("xn--{}", punycode(&lower)?))
    });
    Some(labels.collect::<Option<Vec<_>>>()?.join("."))
}

/// rfc3492#5
const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 128;

/// Letters in Punycode (rfc3492#6.3); nothing where numbers overflow.
fn punycode(label: &[char]) -> Option<String> {
    let mut output: String = label.iter().filter(|c| c.is_ascii()).collect();
    let basic = output.len() as u32; // a label is an argument of a command
    if basic > 0 {
        output.push('-');
    }
    let (mut n, mut delta, mut bias, mut handled) = (INITIAL_N, 0u32, INITIAL_BIAS, basic);
    while (handled as usize) < label.len() {
        let next = label.iter().map(|c| *c as u32).filter(|c| *c >= n).min()?;
        delta = delta.checked_add((next - n).checked_mul(handled + 1)?)?;
        n = next;
        for code in label.iter().map(|c| *c as u32) {
            if code < n {
                delta = delta.checked_add(1)?;
            }
            if code == n {
                push_number(&mut output, delta, bias);
                bias = adapt(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        n += 1;
    }
    Some(output)
}

/// Appends a number of variable length (rfc3492#3.3).
fn push_number(output: &mut String, number: u32, bias: u32) {
    let mut left = number;
    for k in (BASE..).step_by(BASE as usize) {
        let threshold = k.saturating_sub(bias).clamp(T_MIN, T_MAX);
        if left < threshold {
            break;
        }
        output.push(digit(threshold + (left - threshold) % (BASE - threshold)));
        left = (left - threshold) / (BASE - threshold);
    }
    output.push(digit(left));
}

/// A digit: a to z are 0 to 25, 0 to 9 are 26 to 35.
fn digit(value: u32) -> char {
    char::from(if value < 26 { b'a' + value as u8 } else { b'0' + (value - 26) as u8 })
}

/// The bias after a number (rfc3492#6.1).
fn adapt(delta: u32, points: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > ((BASE - T_MIN) * T_MAX) / 2 {
        delta /= BASE - T_MIN;
        k += BASE;
    }
    k + (BASE - T_MIN + 1) * delta / (delta + SKEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_ascii_are_what_registries_have_them_under() {
        for (name, ascii) in [
            ("www.example.org.", "www.example.org."),
            ("bücher.example", "xn--bcher-kva.example"),
            ("MÜNCHEN.de", "xn--mnchen-3ya.de"),
            ("日本語。jp", "xn--wgv71a119e.jp"),
            ("ドメイン名例.jp", "xn--eckwd4c7cu47r2wf.jp"),
            ("faß.example", "xn--fa-hia.example"),
            ("правда.test", "xn--80aafi6cg.test"),
        ] {
            assert_eq!(to_ascii(name).as_deref(), Some(ascii));
        }
    }
}
