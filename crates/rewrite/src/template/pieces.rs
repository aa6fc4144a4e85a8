//! The text of a record with places for what the question says.

use crate::error::RuleError;
use regex::bytes::{Captures, Regex};
use std::io::Write;
use std::net::IpAddr;
use zonda_wire::{Name, Type};

/// What the places of a text are filled with.
pub struct Facts<'a, 'g> {
    /// The name asked for, in lower case and with its final dot.
    pub name: &'a [u8],
    /// The template's zone that holds the name.
    pub zone: &'a Name,
    /// The type asked for.
    pub qtype: Type,
    /// The client that asks.
    pub client: IpAddr,
    /// The groups of the pattern that matches the name.
    pub groups: &'a Captures<'g>,
}

/// A text with places.
pub struct Pieces(Vec<Piece>);

/// A part of a text.
enum Piece {
    /// Text that is always the same.
    Literal(Box<str>),
    /// The name asked for.
    Name,
    /// The template's zone that holds it.
    Zone,
    /// The class asked for.
    Class,
    /// The type asked for.
    Type,
    /// The client's address.
    Remote,
    /// A group of the pattern by its number.
    Match(usize),
    /// A group of the pattern by its name, or by its number in words.
    Group(Box<str>),
}

impl Pieces {
    /// Reads a text in which `{{ … }}` stands for a place.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        let mut is_trimmed = false;
        loop {
            let (before, behind) = match rest.split_once("{{") {
                Some((before, behind)) => (before, Some(behind)),
                None => (rest, None),
            };
            let mut literal = if is_trimmed { before.trim_start() } else { before };
            if behind.is_some_and(begins_with_trim) {
                literal = literal.trim_end();
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.into()));
            }
            let Some(behind) = behind else { break };
            let (action, behind) = behind.split_once("}}").ok_or(RuleError::OpenAction)?;
            let inner = if begins_with_trim(action) { &action[1..] } else { action };
            let trimmed = inner.strip_suffix('-').filter(|it| it.ends_with([' ', '\t']));
            is_trimmed = trimmed.is_some();
            if let Some(piece) = action_of(trimmed.unwrap_or(inner).trim())? {
                pieces.push(piece);
            }
            rest = behind;
        }
        Ok(Self(pieces))
    }

    /// Checks that each of the patterns has the groups that have places.
    pub fn check(&self, patterns: &[Regex]) -> Result<(), RuleError> {
        for piece in &self.0 {
            for pattern in patterns {
                match piece {
                    Piece::Match(number) if *number >= pattern.captures_len() => {
                        return Err(RuleError::Group(*number));
                    }
                    Piece::Group(name) if !has_group(pattern, name) => {
                        return Err(RuleError::NamedGroup(name.clone()));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Whether the text has no place.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Literal(_)))
    }

    /// Appends the text with its places filled; nothing if a group is missing.
    pub fn write(&self, facts: &Facts<'_, '_>, text: &mut Vec<u8>) -> Option<()> {
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => text.extend_from_slice(literal.as_bytes()),
                Piece::Name => text.extend_from_slice(facts.name),
                Piece::Zone => write!(text, "{}", facts.zone).ok()?,
                Piece::Class => text.extend_from_slice(b"IN"),
                Piece::Type => write!(text, "{}", facts.qtype).ok()?,
                Piece::Remote => write!(text, "{}", facts.client.to_canonical()).ok()?,
                Piece::Match(number) => {
                    let group = facts.groups.get(*number);
                    text.extend_from_slice(group.map_or(&[][..], |it| it.as_bytes()));
                }
                Piece::Group(name) => {
                    let group = match name.parse::<usize>() {
                        Ok(number) => facts.groups.get(number),
                        Err(_) => facts.groups.name(name),
                    };
                    text.extend_from_slice(group.map_or(&[][..], |it| it.as_bytes()));
                }
            }
        }
        Some(())
    }
}

/// Whether a pattern has a group of this name, or of this number in words.
fn has_group(pattern: &Regex, name: &str) -> bool {
    match name.parse::<usize>() {
        Ok(number) => number < pattern.captures_len(),
        Err(_) => pattern.capture_names().flatten().any(|it| it == name),
    }
}

/// Whether an action has blanks before it left out.
fn begins_with_trim(action: &str) -> bool {
    action.strip_prefix('-').is_some_and(|rest| rest.starts_with([' ', '\t']))
}

/// Returns the place that an action stands for; nothing for a comment.
fn action_of(action: &str) -> Result<Option<Piece>, RuleError> {
    let unknown = || RuleError::Action(action.into());
    if action.starts_with("/*") && action.ends_with("*/") {
        return Ok(None);
    }
    let words: Vec<&str> = action.split_whitespace().collect();
    let piece = match words[..] {
        [".Name" | ".Question.Name"] => Piece::Name,
        [".Zone"] => Piece::Zone,
        [".Class"] => Piece::Class,
        [".Type"] => Piece::Type,
        [".Remote"] => Piece::Remote,
        ["index", ".Match", number] => Piece::Match(number.parse().map_err(|_| unknown())?),
        ["index", ".Group", name] => {
            let name = name.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
            Piece::Group(name.ok_or_else(unknown)?.into())
        }
        [word] => {
            let name = word.strip_prefix(".Group.").filter(|it| is_word(it));
            Piece::Group(name.ok_or_else(unknown)?.into())
        }
        _ => return Err(unknown()),
    };
    Ok(Some(piece))
}

/// Whether a text is the name of a field.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
