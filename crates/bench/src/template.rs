//! Text with places to fill in: configurations of servers, zones and queries of suites.
//!
//! `${name}` stands for a value. A line `%for NAME in LIST` repeats the lines up to `%end` for each
//! item of a list, or of `1..N`, where `${NAME.ip}` is the address of that number in 10.0.0.0/8.
//! Nothing else is special, so that braces, percent signs and at
//! signs of other languages stay what they are. Loops do not nest.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;

/// What can be filled in.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Values by name.
    pub scalars: BTreeMap<String, String>,
    /// Lists by name, for loops.
    pub lists: BTreeMap<String, Vec<String>>,
}

impl Values {
    /// Sets a value.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.scalars.insert(name.to_owned(), value.to_string());
    }

    /// Fills in a text without loops.
    pub fn fill(&self, text: &str) -> Result<String, TemplateError> {
        let mut filled = String::with_capacity(text.len());
        self.fill_into(&mut filled, text, None)?;
        Ok(filled)
    }

    /// Fills in a text with loops.
    pub fn fill_lines(&self, text: &str) -> Result<String, TemplateError> {
        let mut filled = String::with_capacity(text.len());
        let mut lines = text.split_inclusive('\n');
        while let Some(line) = lines.next() {
            let Some(head) = line.strip_prefix("%for ") else {
                self.fill_into(&mut filled, line, None)?;
                continue;
            };
            let (name, list) = head.trim().split_once(" in ").ok_or(TemplateError::Loop)?;
            let body: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "%end").collect();
            let body = body.concat();
            let mut with_address = body.contains(&format!("${{{name}.ip}}")).then(|| self.clone());
            for item in self.items(list)? {
                let values = match (&mut with_address, item.parse()) {
                    (Some(values), Ok(number)) => {
                        values.set(&format!("{name}.ip"), address_of(number));
                        &*values
                    }
                    _ => self,
                };
                values.fill_into(&mut filled, &body, Some((name, &item)))?;
            }
        }
        Ok(filled)
    }

    /// Returns the items of `LIST` or `1..N`.
    fn items(&self, list: &str) -> Result<Vec<String>, TemplateError> {
        let list = self.fill(list)?;
        let missing = || TemplateError::Unknown(list.clone());
        if let Some(items) = self.lists.get(&list) {
            return Ok(items.clone());
        }
        let (first, last) = list.split_once("..").ok_or_else(missing)?;
        let first: u64 = first.parse().map_err(|_| missing())?;
        let last: u64 = last.parse().map_err(|_| missing())?;
        Ok((first..=last).map(|number| number.to_string()).collect())
    }

    /// Appends a text; `local` is a name that goes before all the rest, with its value.
    pub fn fill_into(
        &self,
        filled: &mut String,
        text: &str,
        local: Option<(&str, &str)>,
    ) -> Result<(), TemplateError> {
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').ok_or(TemplateError::Unclosed)?;
            let value = local.filter(|(local, _)| *local == name).map(|(_, value)| value);
            let value = value.or_else(|| self.scalars.get(name).map(String::as_str));
            filled.push_str(before);
            filled.push_str(value.ok_or_else(|| TemplateError::Unknown(name.to_owned()))?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(())
    }
}

/// Returns the address of a number in 10.0.0.0/8.
#[must_use]
pub fn address_of(number: u64) -> Ipv4Addr {
    let [.., high, middle, low] = number.to_be_bytes();
    Ipv4Addr::new(10, high, middle, low)
}

/// A fault of a template.
#[derive(Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// A name or list that has no value here.
    Unknown(String),
    /// A `${` without its brace.
    Unclosed,
    /// A `%for` without `in`.
    Loop,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "`{name}` has no value here"),
            Self::Unclosed => f.write_str("`${` without `}`"),
            Self::Loop => f.write_str("write `%for NAME in LIST`"),
        }
    }
}

impl std::error::Error for TemplateError {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn values() -> Values {
        let mut values = Values::default();
        values.set("port", 5300);
        values.lists.insert("zones".to_owned(), vec!["a.test".to_owned(), "b.test".to_owned()]);
        values
    }

    #[test]
    fn values_and_loops_are_filled_in_and_all_else_is_left() {
        let text = "x@${port} {{ .Name }} 5%\n%for zone in zones\nzone ${zone} {\n}\n%end\nend\n";
        let filled = "x@5300 {{ .Name }} 5%\nzone a.test {\n}\nzone b.test {\n}\nend\n";
        assert_eq!(values().fill_lines(text).unwrap(), filled);
    }

    #[test]
    fn a_loop_counts_up_to_a_value() {
        let text = "%for n in 5298..${port}\n${n} \n%end\n";
        assert_eq!(values().fill_lines(text).unwrap(), "5298 \n5299 \n5300 \n");
    }

    #[test]
    fn a_loop_over_numbers_has_an_address_for_each() {
        let filled = values().fill_lines("%for n in 255..257\n${n}: ${n.ip}\n%end\n").unwrap();
        assert_eq!(filled, "255: 10.0.0.255\n256: 10.0.1.0\n257: 10.0.1.1\n");
        let error = values().fill_lines("%for zone in zones\n${zone.ip}\n%end\n").unwrap_err();
        assert_eq!(error.to_string(), "`zone.ip` has no value here");
    }

    #[test]
    fn what_has_no_value_is_named() {
        let error = |text: &str| values().fill_lines(text).unwrap_err().to_string();
        assert_eq!(error("${prot}"), "`prot` has no value here");
        assert_eq!(error("%for a in nothing\n%end\n"), "`nothing` has no value here");
        assert_eq!(error("${port"), "`${` without `}`");
    }
}
