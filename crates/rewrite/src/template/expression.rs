//! Expressions of a template: parts of the question, and functions of them.
//!
//! Each expression is a text, a number or a truth value, which is known when the template is read:
//! what cannot be compared is an error of the configuration, and not of a query.

use super::lexer::{Token, tokens};
use crate::error::RuleError;
use crate::regex::bytes::{Captures, Match, Regex};
use std::borrow::Cow;
use std::net::SocketAddr;
use zonda_wire::{Name, Type};

/// Parentheses, one inside the other.
const DEPTH_MAX: usize = 32;

/// What the places of a text are filled with.
pub struct Facts<'a, 'g> {
    /// The name asked for, in lower case and with its final dot.
    pub name: &'a [u8],
    /// The template's zone that holds the name.
    pub zone: &'a Name,
    /// The type asked for.
    pub qtype: Type,
    /// The client that asks.
    pub client: SocketAddr,
    /// The word for the protocol that carries the query.
    pub protocol: &'a str,
    /// The groups of the pattern that matches the name.
    pub groups: &'a Captures<'g>,
}

/// An expression that was read.
pub enum Expression {
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
    /// The client's port.
    RemotePort,
    /// The type of a record that has the client's address: A or AAAA.
    RemoteType,
    /// The protocol that carries the query: udp or tcp.
    Protocol,
    /// A group of the pattern by its number.
    Match(usize),
    /// A group of the pattern by its name, or by its number in words.
    Group(Box<str>),
    /// A text that is always the same.
    Text(Box<str>),
    /// A number that is always the same.
    Number(u64),
    /// A truth value that is always the same.
    Truth(bool),
    /// The number that a text stands for, in a base, of so many bits.
    ParseInt(Box<Expression>, u32, u32),
    /// Whether an expression is false.
    Not(Box<Expression>),
    /// The first expression that is false, or else the last.
    And(Vec<Expression>),
    /// The first expression that is true, or else the last.
    Or(Vec<Expression>),
    /// Whether the first expression is equal to another one.
    Equal(Vec<Expression>),
    /// Whether two expressions stand in this order.
    Order(Order, Box<(Expression, Expression)>),
}

/// The order of two values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Both are different.
    Ne,
    /// The first is less.
    Lt,
    /// The first is less, or both are equal.
    Le,
    /// The first is greater.
    Gt,
    /// The first is greater, or both are equal.
    Ge,
}

/// The kind of an expression's values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Truth,
}

/// The value of an expression.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub enum Value<'v> {
    /// Octets of a text.
    Text(Cow<'v, [u8]>),
    /// A whole number.
    Number(u64),
    /// A truth value.
    Truth(bool),
}

impl Value<'_> {
    /// Whether a condition with this value holds: it is neither empty, 0 nor false.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Text(text) => !text.is_empty(),
            Self::Number(number) => *number != 0,
            Self::Truth(truth) => *truth,
        }
    }

    /// Appends the value to a text.
    pub fn write(&self, text: &mut Vec<u8>) {
        match self {
            Self::Text(own) => text.extend_from_slice(own),
            Self::Number(number) => text.extend_from_slice(number.to_string().as_bytes()),
            Self::Truth(truth) => text.extend_from_slice(truth.to_string().as_bytes()),
        }
    }
}

impl Expression {
    /// Reads the expression of an action.
    pub fn parse(action: &str) -> Result<Self, RuleError> {
        let unknown = || RuleError::Action(action.into());
        let tokens = tokens(action).ok_or_else(unknown)?;
        let mut parser = Parser { tokens: &tokens, action };
        let expression = parser.call(0)?;
        if parser.tokens.is_empty() { Ok(expression) } else { Err(unknown()) }
    }

    /// Returns the value; nothing if a text stands for no number.
    pub fn value<'v>(&'v self, facts: &Facts<'v, '_>) -> Option<Value<'v>> {
        Some(match self {
            Self::Name => Value::Text(facts.name.into()),
            Self::Zone => written(&facts.zone),
            Self::Class => Value::Text(b"IN"[..].into()),
            Self::Type => written(&facts.qtype),
            Self::Remote => written(&facts.client.ip().to_canonical()),
            Self::RemotePort => Value::Number(facts.client.port().into()),
            Self::RemoteType => Value::Text(match facts.client.ip().to_canonical().is_ipv4() {
                true => b"A"[..].into(),
                false => b"AAAA"[..].into(),
            }),
            Self::Protocol => Value::Text(facts.protocol.as_bytes().into()),
            Self::Match(number) => group(facts.groups.get(*number)),
            Self::Group(name) => match name.parse::<usize>() {
                Ok(number) => group(facts.groups.get(number)),
                Err(_) => group(facts.groups.name(name)),
            },
            Self::Text(text) => Value::Text(text.as_bytes().into()),
            Self::Number(number) => Value::Number(*number),
            Self::Truth(truth) => Value::Truth(*truth),
            Self::ParseInt(text, base, bits) => match text.value(facts)? {
                Value::Text(text) => Value::Number(parse_int(&text, *base, *bits)?),
                Value::Number(_) | Value::Truth(_) => return None,
            },
            Self::Not(inner) => Value::Truth(!inner.value(facts)?.is_true()),
            Self::And(all) => first(all, facts, false)?,
            Self::Or(all) => first(all, facts, true)?,
            Self::Equal(all) => {
                let (first, others) = all.split_first()?;
                let first = first.value(facts)?;
                let mut is_equal = false;
                for other in others {
                    is_equal |= other.value(facts)? == first;
                }
                Value::Truth(is_equal)
            }
            Self::Order(order, both) => {
                let (left, right) = (both.0.value(facts)?, both.1.value(facts)?);
                Value::Truth(match order {
                    Order::Ne => left != right,
                    Order::Lt => left < right,
                    Order::Le => left <= right,
                    Order::Gt => left > right,
                    Order::Ge => left >= right,
                })
            }
        })
    }

    /// Checks that the patterns have the groups of the expression: each of them, or only one if the
    /// expression stands in a condition or depends on one.
    pub fn check(&self, patterns: &[Regex], is_conditional: bool) -> Result<(), RuleError> {
        let has = |test: &dyn Fn(&Regex) -> bool| match is_conditional {
            true => patterns.iter().any(test),
            false => patterns.iter().all(test),
        };
        match self {
            Self::Match(number) if !has(&|it| *number < it.captures_len()) => {
                Err(RuleError::Group(*number))
            }
            Self::Group(name) if !has(&|it| has_group(it, name)) => {
                Err(RuleError::NamedGroup(name.clone()))
            }
            Self::ParseInt(inner, ..) | Self::Not(inner) => inner.check(patterns, is_conditional),
            Self::And(all) | Self::Or(all) | Self::Equal(all) => {
                all.iter().try_for_each(|it| it.check(patterns, is_conditional))
            }
            Self::Order(_, both) => {
                both.0.check(patterns, is_conditional)?;
                both.1.check(patterns, is_conditional)
            }
            _ => Ok(()),
        }
    }

    /// Returns the kind of the values.
    fn kind(&self) -> Kind {
        match self {
            Self::Number(_) | Self::ParseInt(..) | Self::RemotePort => Kind::Number,
            Self::Truth(_) | Self::Not(_) | Self::Equal(_) | Self::Order(..) => Kind::Truth,
            Self::And(all) | Self::Or(all) => {
                let kind = all.first().map_or(Kind::Truth, Self::kind);
                if all.iter().all(|it| it.kind() == kind) { kind } else { Kind::Truth }
            }
            _ => Kind::Text,
        }
    }
}

/// Returns the text of something as a value.
fn written(what: &impl std::fmt::Display) -> Value<'static> {
    Value::Text(what.to_string().into_bytes().into())
}

/// Returns the text of a group; an empty one if it has not matched.
fn group<'v>(found: Option<Match<'v>>) -> Value<'v> {
    Value::Text(found.map_or(&[][..], |it| it.as_bytes()).into())
}

/// Returns the first value that is true, or that is not, or else the last.
fn first<'v>(all: &'v [Expression], facts: &Facts<'v, '_>, wanted: bool) -> Option<Value<'v>> {
    let mut last = None;
    for expression in all {
        let value = expression.value(facts)?;
        if value.is_true() == wanted {
            return Some(value);
        }
        last = Some(value);
    }
    last
}

/// Returns the number of at most so many bits that digits stand for.
fn parse_int(text: &[u8], base: u32, bits: u32) -> Option<u64> {
    if !text.first()?.is_ascii_alphanumeric() {
        return None; // a sign
    }
    let number = u64::from_str_radix(std::str::from_utf8(text).ok()?, base).ok()?;
    (bits == 64 || number >> bits == 0).then_some(number)
}

/// Whether a pattern has a group of this name, or of this number in words.
fn has_group(pattern: &Regex, name: &str) -> bool {
    match name.parse::<usize>() {
        Ok(number) => number < pattern.captures_len(),
        Err(_) => pattern.capture_names().flatten().any(|it| it == name),
    }
}

/// Reads the tokens of an action.
struct Parser<'t> {
    /// The tokens that are left.
    tokens: &'t [Token<'t>],
    /// The action, for errors.
    action: &'t str,
}

impl<'t> Parser<'t> {
    /// Returns the error that something is not known.
    fn unknown(&self) -> RuleError {
        RuleError::Action(self.action.into())
    }

    /// Takes the next token.
    fn next(&mut self) -> Option<&'t Token<'t>> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// Reads a function with its operands, or an operand alone.
    fn call(&mut self, depth: usize) -> Result<Expression, RuleError> {
        if depth > DEPTH_MAX {
            return Err(self.unknown());
        }
        let Some(Token::Word(name)) = self.tokens.first() else { return self.operand(depth) };
        let name: &str = name;
        if !matches!(
            name,
            "index" | "parseInt" | "not" | "and" | "or" | "eq" | "ne" | "lt" | "le" | "gt" | "ge"
        ) {
            return self.operand(depth);
        }
        self.next();
        if name == "index" {
            return self.index();
        }
        let mut operands = Vec::new();
        while !matches!(self.tokens.first(), None | Some(Token::Close)) {
            operands.push(self.operand(depth)?);
        }
        self.function(name, operands)
    }

    /// Makes the expression of a function and its operands.
    fn function(&self, name: &str, all: Vec<Expression>) -> Result<Expression, RuleError> {
        let order = match name {
            "ne" => Order::Ne,
            "lt" => Order::Lt,
            "le" => Order::Le,
            "gt" => Order::Gt,
            _ => Order::Ge,
        };
        let Some(kind) = all.first().map(Expression::kind) else { return Err(self.unknown()) };
        if name == "parseInt" {
            return self.number(all);
        }
        match name {
            "and" => return Ok(Expression::And(all)),
            "or" => return Ok(Expression::Or(all)),
            _ if all.iter().any(|it| it.kind() != kind) => {
                return Err(RuleError::Kinds(self.action.into()));
            }
            "eq" if all.len() > 1 => return Ok(Expression::Equal(all)),
            _ => {}
        }
        let mut all = all.into_iter();
        match (name, all.next(), all.next(), all.next()) {
            ("not", Some(inner), None, _) => Ok(Expression::Not(Box::new(inner))),
            ("ne" | "lt" | "le" | "gt" | "ge", Some(left), Some(right), None) => {
                Ok(Expression::Order(order, Box::new((left, right))))
            }
            _ => Err(self.unknown()),
        }
    }

    /// Makes the number that `parseInt TEXT BASE BITS` stands for.
    fn number(&self, all: Vec<Expression>) -> Result<Expression, RuleError> {
        let mut all = all.into_iter();
        let (text, base, bits) = (all.next(), all.next(), all.next());
        match (text, base, bits, all.next()) {
            (
                Some(text),
                Some(Expression::Number(base @ 2..=36)),
                Some(Expression::Number(bits @ 0..=64)),
                None,
            ) if text.kind() == Kind::Text => {
                let bits = if bits == 0 { 64 } else { bits };
                Ok(Expression::ParseInt(Box::new(text), base as u32, bits as u32)) // both are small
            }
            _ => Err(self.unknown()),
        }
    }

    /// Reads `.Match NUMBER` or `.Group "NAME"`.
    fn index(&mut self) -> Result<Expression, RuleError> {
        let place = match (self.next(), self.next()) {
            (Some(Token::Word(".Match")), Some(Token::Word(number))) => {
                number.parse().ok().map(Expression::Match)
            }
            (Some(Token::Word(".Group")), Some(Token::Text(name))) => {
                Some(Expression::Group((&**name).into()))
            }
            _ => None,
        };
        place.ok_or_else(|| self.unknown())
    }

    /// Reads an operand.
    fn operand(&mut self, depth: usize) -> Result<Expression, RuleError> {
        let unknown = self.unknown();
        Ok(match self.next().ok_or_else(|| self.unknown())? {
            Token::Open => {
                let inner = self.call(depth + 1)?;
                match self.next() {
                    Some(Token::Close) => inner,
                    _ => return Err(unknown),
                }
            }
            Token::Close => return Err(unknown),
            Token::Text(text) => Expression::Text((&**text).into()),
            Token::Word(word) => match *word {
                ".Name" | ".Question.Name" => Expression::Name,
                ".Zone" => Expression::Zone,
                ".Class" => Expression::Class,
                ".Type" => Expression::Type,
                ".Remote" => Expression::Remote,
                ".RemotePort" => Expression::RemotePort,
                ".RemoteType" => Expression::RemoteType,
                ".Protocol" => Expression::Protocol,
                "true" => Expression::Truth(true),
                "false" => Expression::Truth(false),
                word if word.bytes().all(|it| it.is_ascii_digit()) => {
                    Expression::Number(word.parse().map_err(|_| unknown)?)
                }
                word => {
                    let name = word.strip_prefix(".Group.").filter(|it| is_word(it));
                    Expression::Group(name.ok_or(unknown)?.into())
                }
            },
        })
    }
}

/// Whether a text is the name of a field.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
