//! What the configuration came out as, each value with its origin: `--print-config`.

use crate::error::Origin;
use crate::keys::SECTIONS;
use crate::section::{Key, Kind, Section};
use std::fmt;

/// Every value that was read. Displays as TOML, in the order of the reference page.
#[derive(Debug, Default)]
pub struct Effective {
    blocks: Vec<Block>,
}

/// A section, or one element of a section that repeats.
#[derive(Debug)]
struct Block {
    section: &'static Section,
    lines: Vec<Line>,
}

/// A key that was read.
#[derive(Debug)]
struct Line {
    name: Box<str>,
    /// Value as TOML; none if it is unset.
    value: Option<Box<str>>,
    origin: Origin,
}

/// Column at which origins begin where values are short.
const ORIGIN_COLUMN: usize = 40;

impl Effective {
    /// Notes that the keys of `section` follow.
    pub(crate) fn begin(&mut self, section: &'static Section) {
        self.blocks.push(Block { section, lines: Vec::new() });
    }

    /// Notes that a section which repeats has no elements.
    pub(crate) fn record_none(&mut self, section: &'static Section, origin: &Origin) {
        let (name, value, origin) = (section.name.into(), Some("[]".into()), origin.clone());
        self.blocks.push(Block { section, lines: vec![Line { name, value, origin }] });
    }

    /// Notes the value of a key, given as the text form of its items; none if it is unset.
    pub(crate) fn record(&mut self, key: &Key, name: &str, items: &[&str], origin: &Origin) {
        let Some(block) = self.blocks.last_mut() else { return };
        let value = match items {
            [] => None,
            _ if key.secret => Some("\"hidden\"".into()),
            _ => Some(key.toml(items).into()),
        };
        block.lines.push(Line { name: name.into(), value, origin: origin.clone() });
    }

    /// Notes what an unset key of the section being read came out as.
    pub(crate) fn derive(&mut self, key: &Key, text: &str) {
        let lines = self.blocks.last_mut().map(|block| &mut block.lines);
        if let Some(line) = lines.and_then(|lines| lines.iter_mut().find(|l| *l.name == *key.name))
        {
            line.value = Some(key.toml(&[text]).into());
        }
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for section in SECTIONS {
            let mut is_within = false;
            for block in &self.blocks {
                // What is nested follows the element that it stands in, as it was read after it.
                is_within = match block.section.place() {
                    Some(_) => is_within,
                    None => block.section.name == section.name,
                };
                if is_within {
                    block.fmt(f)?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_list = self.lines.first().is_some_and(|line| *line.name == *self.section.name);
        if self.section.kind != Kind::Top && !is_list {
            writeln!(f, "\n{}", self.section.header())?;
        }
        self.lines.iter().try_for_each(|line| line.fmt(f))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => {
                let setting = format!("{} = {value}", self.name);
                writeln!(f, "{setting:ORIGIN_COLUMN$} # {}", self.origin)
            }
            None => writeln!(f, "{:ORIGIN_COLUMN$} # unset", format!("#{} =", self.name)),
        }
    }
}
