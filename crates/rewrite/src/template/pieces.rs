//! The text of a record with places for what the question says.

use super::expression::{Expression, Facts};
use crate::error::RuleError;
use crate::regex::bytes::Regex;

/// Conditions, one inside the other.
const DEPTH_MAX: usize = 32;

/// A text with places.
pub struct Pieces(Vec<Piece>);

/// A part of a text.
enum Piece {
    /// Text that is always the same.
    Literal(Box<str>),
    /// The value of an expression.
    Place(Expression),
    /// The pieces of the first condition that holds, or else the last ones.
    Choice(Vec<(Expression, Pieces)>, Pieces),
}

/// What stands between other pieces, before it is known which belong together.
enum Item<'t> {
    /// Text that is always the same.
    Literal(&'t str),
    /// What stands between `{{` and `}}`.
    Action(&'t str),
}

/// What ends the pieces of a condition.
enum Closing<'t> {
    /// The end of the text, without an action.
    Nothing,
    /// The action `end`.
    End,
    /// The action `else`.
    Else,
    /// The action `else if`, with its condition.
    ElseIf(&'t str),
}

impl Pieces {
    /// Reads a text in which `{{ … }}` stands for a place.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let items = items(text)?;
        let mut rest = &items[..];
        match sequence(&mut rest, 0)? {
            (pieces, Closing::Nothing) => Ok(pieces),
            (_, Closing::End) => Err(RuleError::StrayAction("end")),
            (_, Closing::Else | Closing::ElseIf(_)) => Err(RuleError::StrayAction("else")),
        }
    }

    /// Checks that the patterns have the groups that have places.
    pub fn check(&self, patterns: &[Regex]) -> Result<(), RuleError> {
        self.check_within(patterns, false)
    }

    /// Checks the groups of pieces that are always written, or that depend on a condition.
    fn check_within(&self, patterns: &[Regex], is_conditional: bool) -> Result<(), RuleError> {
        self.0.iter().try_for_each(|piece| match piece {
            Piece::Literal(_) => Ok(()),
            Piece::Place(expression) => expression.check(patterns, is_conditional),
            Piece::Choice(branches, otherwise) => {
                for (condition, pieces) in branches {
                    condition.check(patterns, true)?;
                    pieces.check_within(patterns, true)?;
                }
                otherwise.check_within(patterns, true)
            }
        })
    }

    /// Whether the text has no place.
    pub fn is_constant(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Literal(_)))
    }

    /// Appends the text with its places filled; nothing if a value is missing.
    pub fn write(&self, facts: &Facts<'_, '_>, text: &mut Vec<u8>) -> Option<()> {
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => text.extend_from_slice(literal.as_bytes()),
                Piece::Place(expression) => expression.value(facts)?.write(text),
                Piece::Choice(branches, otherwise) => {
                    let mut chosen = otherwise;
                    for (condition, pieces) in branches {
                        if condition.value(facts)?.is_true() {
                            chosen = pieces;
                            break;
                        }
                    }
                    chosen.write(facts, text)?;
                }
            }
        }
        Some(())
    }
}

/// Cuts a text into literal texts and actions, and leaves out blanks where an action says so.
fn items(text: &str) -> Result<Vec<Item<'_>>, RuleError> {
    let (mut items, mut rest) = (Vec::new(), text);
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
            items.push(Item::Literal(literal));
        }
        let Some(behind) = behind else { return Ok(items) };
        let (action, behind) = behind.split_once("}}").ok_or(RuleError::OpenAction)?;
        let inner = if begins_with_trim(action) { &action[1..] } else { action };
        let trimmed = inner.strip_suffix('-').filter(|it| it.ends_with([' ', '\t']));
        is_trimmed = trimmed.is_some();
        let action = trimmed.unwrap_or(inner).trim();
        if !(action.starts_with("/*") && action.ends_with("*/")) {
            items.push(Item::Action(action));
        }
        rest = behind;
    }
}

/// Reads pieces up to what ends them.
fn sequence<'t>(items: &mut &[Item<'t>], depth: usize) -> Result<(Pieces, Closing<'t>), RuleError> {
    let mut pieces = Vec::new();
    while let [first, rest @ ..] = *items {
        *items = rest;
        let action = match first {
            Item::Literal(text) => {
                pieces.push(Piece::Literal((*text).into()));
                continue;
            }
            Item::Action(action) => *action,
        };
        let (word, behind) = action.split_once([' ', '\t', '(']).unwrap_or((action, ""));
        match word {
            "end" if behind.is_empty() => return Ok((Pieces(pieces), Closing::End)),
            "else" if behind.is_empty() => return Ok((Pieces(pieces), Closing::Else)),
            "else" => match condition(behind.trim_start()) {
                Some(condition) => return Ok((Pieces(pieces), Closing::ElseIf(condition))),
                None => return Err(RuleError::Action(action.into())),
            },
            "if" => pieces.push(choice(&action[word.len()..], items, depth)?),
            _ => pieces.push(Piece::Place(Expression::parse(action)?)),
        }
    }
    Ok((Pieces(pieces), Closing::Nothing))
}

/// Returns what stands behind the word `if`.
fn condition(action: &str) -> Option<&str> {
    action.strip_prefix("if").filter(|rest| rest.starts_with([' ', '\t', '(']))
}

/// Reads the pieces that depend on a condition, and on those that follow it.
fn choice<'t>(
    mut condition: &'t str,
    items: &mut &[Item<'t>],
    depth: usize,
) -> Result<Piece, RuleError> {
    if depth >= DEPTH_MAX {
        return Err(RuleError::DeepConditions(DEPTH_MAX));
    }
    let mut branches = Vec::new();
    loop {
        let expression = Expression::parse(condition.trim())?;
        let (pieces, end) = sequence(items, depth + 1)?;
        branches.push((expression, pieces));
        match end {
            Closing::ElseIf(next) => condition = next,
            Closing::End => return Ok(Piece::Choice(branches, Pieces(Vec::new()))),
            Closing::Nothing => return Err(RuleError::OpenCondition),
            Closing::Else => break,
        }
    }
    match sequence(items, depth + 1)? {
        (otherwise, Closing::End) => Ok(Piece::Choice(branches, otherwise)),
        (_, Closing::Nothing) => Err(RuleError::OpenCondition),
        (_, Closing::Else | Closing::ElseIf(_)) => Err(RuleError::StrayAction("else")),
    }
}

/// Whether an action has blanks before it left out.
fn begins_with_trim(action: &str) -> bool {
    action.strip_prefix('-').is_some_and(|rest| rest.starts_with([' ', '\t']))
}
