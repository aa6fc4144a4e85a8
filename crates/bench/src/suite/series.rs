//! Numbered texts: zones, records and queries by the thousand.

use serde::Deserialize;

use crate::random::scatter;
use crate::template::{TemplateError, Values, address_of};

/// A text for each number of a range. In the text, `${n}` is the number and `${ip}` the address of
/// that number in 10.0.0.0/8.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// The first number, a template.
    #[serde(default = "one")]
    pub from: String,
    /// The last number, a template.
    #[serde(default = "one")]
    pub to: String,
    /// Step from one number to the next; at least 1.
    #[serde(default = "step_by_one")]
    pub step: u64,
    /// How many numbers to draw at random instead of taking each in turn.
    pub draw: Option<u64>,
    /// The texts, of which each number takes one, or each turn where numbers are drawn.
    pub mix: Vec<Part>,
}

/// One text of a mix.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Share of the numbers, in relation to the other parts'.
    #[serde(default = "step_by_one")]
    pub share: u64,
    /// Template of the text.
    pub text: String,
}

/// Returns the default of `from` and `to`.
fn one() -> String {
    "1".to_owned()
}

/// Returns the default of `step` and `share`.
fn step_by_one() -> u64 {
    1
}

impl Series {
    /// Returns all texts, a line each.
    pub fn lines(&self, values: &Values) -> Result<String, TemplateError> {
        let numbers = numbers(values, &self.from, &self.to, self.step)?;
        let mut values = values.clone();
        let mut lines = String::new();
        let mut add = |turn: u64, number: u64| {
            let Some(part) = self.part(turn) else { return Ok(()) };
            set_number(&mut values, number);
            values.fill_into(&mut lines, part, None)?;
            lines.push('\n');
            Ok(())
        };
        match self.draw {
            None => numbers.iter().try_for_each(|&number| add(number, number))?,
            Some(count) if !numbers.is_empty() => {
                let pick = |turn| numbers[(scatter(turn) % numbers.len() as u64) as usize];
                (0..count).try_for_each(|turn| add(turn, pick(turn)))?;
            }
            Some(_) => {}
        }
        Ok(lines)
    }

    /// Returns the text of a number or turn. Neighbours take different parts, the same ones in each
    /// run.
    fn part(&self, number: u64) -> Option<&str> {
        /// A prime, so that numbers spread over all shares before any comes again.
        const STRIDE: u64 = 7919;
        let total: u64 = self.mix.iter().map(|part| part.share).sum();
        let mut left = number.wrapping_mul(STRIDE).checked_rem(total)?;
        for part in &self.mix {
            match left.checked_sub(part.share) {
                Some(rest) => left = rest,
                None => return Some(&part.text),
            }
        }
        None
    }
}

/// Returns the numbers from one template's to another's, both included.
pub fn numbers(
    values: &Values,
    from: &str,
    to: &str,
    step: u64,
) -> Result<Vec<u64>, TemplateError> {
    let number = |text: &str| {
        let filled = values.fill(text)?;
        filled.parse::<u64>().map_err(|_| TemplateError::Unknown(filled))
    };
    Ok((number(from)?..=number(to)?).step_by(step.max(1) as usize).collect())
}

/// Sets `n` and `ip`.
pub fn set_number(values: &mut Values, number: u64) {
    values.set("n", number);
    values.set("ip", address_of(number));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn series(text: &str) -> String {
        let series: Series = toml::from_str(text).unwrap();
        series.lines(&Values::default()).unwrap()
    }

    #[test]
    fn each_number_of_a_range_gives_a_line() {
        let lines = series("from = '1'\nto = '5'\nstep = 2\nmix = [{ text = 'h${n} A ${ip}' }]");
        assert_eq!(lines, "h1 A 10.0.0.1\nh3 A 10.0.0.3\nh5 A 10.0.0.5\n");
    }

    #[test]
    fn a_mix_keeps_its_shares_exactly() {
        let lines = series(
            "from = '0'\nto = '9999'\n\
             mix = [{ share = 705, text = 'a' }, { share = 280, text = 'b' }, \
             { share = 15, text = 'c' }]",
        );
        let count = |text| lines.lines().filter(|line| *line == text).count();
        assert_eq!((count("a"), count("b"), count("c")), (7050, 2800, 150));
    }

    #[test]
    fn what_is_drawn_is_mixed_even_where_there_is_one_number() {
        let text = "from = '1'\nto = '1'\ndraw = 100\n\
             mix = [{ share = 9, text = 'a' }, { text = 'b' }]";
        let lines: Vec<String> = series(text).lines().map(str::to_owned).collect();
        assert!(lines.chunks(10).all(|ten| ten.iter().filter(|line| **line == "b").count() == 1));
    }

    #[test]
    fn draws_cover_the_range_and_come_again() {
        let text = "from = '1'\nto = '10'\ndraw = 1000\nmix = [{ text = '${n}' }]";
        let lines = series(text);
        assert_eq!(lines.lines().count(), 1000);
        let count = |text: &str| lines.lines().filter(|line| *line == text).count();
        assert!((1..=10).all(|n| count(&n.to_string()) > 50));
        assert_eq!(lines, series(text));
    }
}
