//! Expressions of Lua as LUA records have them: a call of a function with strings, numbers and
//! tables.
//!
//! ```text
//! expression = call | string | number | true | false | nil | table
//! call       = name "(" [ expression { "," expression } ] ")"
//! table      = "{" [ field { ("," | ";") field } ] "}"
//! field      = "[" expression "]" "=" expression | name "=" expression | expression
//! ```
//!
//! Deliberately absent: everything that is run, as variables, operators and statements.

use std::fmt;

/// Calls and tables that may lie within each other.
const DEPTH_MAX: usize = 32;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A string in quotes.
    Text(String),
    /// A number, perhaps negative.
    Number(f64),
    /// `true` or `false`.
    Truth(bool),
    /// The value `nil`.
    Nil,
    /// A table in braces.
    Table(Table),
    /// A call of a function, by its name.
    Call(String, Vec<Expression>),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Values without a key, in their order.
    pub list: Vec<Expression>,
    /// Values with a key, which is a text or a number, in their order.
    pub keys: Vec<(Expression, Expression)>,
}

impl Table {
    /// Returns the value of a key that is a text.
    pub fn get(&self, key: &str) -> Option<&Expression> {
        let key = Expression::Text(key.to_owned());
        self.keys.iter().find(|(known, _)| *known == key).map(|(_, value)| value)
    }
}

/// Why a text is no such expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LuaError {
    /// Something else should stand here; what is there instead.
    Expected(&'static str, String),
    /// A string or a comment does not end.
    Open(&'static str),
    /// A variable, an operator or a statement, which would have to be run.
    Program(String),
    /// Calls and tables lie too deep within each other.
    TooDeep,
}

impl fmt::Display for LuaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expected(wanted, found) => write!(f, "expected {wanted}, found {found}"),
            Self::Open(what) => write!(f, "a {what} does not end"),
            Self::Program(what) => {
                write!(f, "`{}` would have to be run, which no pool does", what.escape_debug())
            }
            Self::TooDeep => write!(f, "tables within each other: at most {DEPTH_MAX} can be read"),
        }
    }
}

/// Reads the text of a LUA record: an expression, or `;return` and an expression.
///
/// # Errors
/// When it is anything else.
pub fn read(text: &str) -> Result<Expression, LuaError> {
    let is_statement = text.trim_start().starts_with(';');
    let mut parser = Parser { rest: text.trim_start().trim_start_matches(';'), depth: 0 };
    if is_statement {
        match parser.next()? {
            Token::Name(word) if word == "return" => {}
            Token::End => return Err(LuaError::Expected("an expression", "nothing".to_owned())),
            other => return Err(LuaError::Program(other.to_string())),
        }
    }
    let expression = parser.expression()?;
    match parser.next()? {
        Token::End => Ok(expression),
        Token::Sign(';') if parser.next()? == Token::End => Ok(expression),
        other => Err(LuaError::Program(other.to_string())),
    }
}

/// A piece of the text.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number(f64),
    /// A character that is none of the above.
    Sign(char),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Sign(sign) => write!(f, "{sign}"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// Reads tokens and expressions.
struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl Parser<'_> {
    /// Reads an expression.
    fn expression(&mut self) -> Result<Expression, LuaError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(LuaError::TooDeep);
        }
        let expression = match self.next()? {
            Token::Text(text) => Expression::Text(text),
            Token::Number(number) => Expression::Number(number),
            Token::Sign('-') => match self.next()? {
                Token::Number(number) => Expression::Number(-number),
                other => return Err(LuaError::Program(format!("-{other}"))),
            },
            Token::Sign('{') => Expression::Table(self.table()?),
            Token::Name(name) => self.name(name)?,
            other => return Err(LuaError::Expected("an expression", format!("`{other}`"))),
        };
        self.depth -= 1;
        Ok(expression)
    }

    /// Reads what a name begins: a constant, or a call.
    fn name(&mut self, name: String) -> Result<Expression, LuaError> {
        match name.as_str() {
            "true" => return Ok(Expression::Truth(true)),
            "false" => return Ok(Expression::Truth(false)),
            "nil" => return Ok(Expression::Nil),
            _ => {}
        }
        let before = self.rest;
        match self.next()? {
            Token::Sign('(') => {}
            _ => {
                self.rest = before;
                return Err(LuaError::Program(name));
            }
        }
        let mut arguments = Vec::new();
        let before = self.rest;
        if self.next()? == Token::Sign(')') {
            return Ok(Expression::Call(name, arguments));
        }
        self.rest = before;
        loop {
            arguments.push(self.expression()?);
            match self.next()? {
                Token::Sign(',') => {}
                Token::Sign(')') => return Ok(Expression::Call(name, arguments)),
                other => return Err(LuaError::Expected("`,` or `)`", format!("`{other}`"))),
            }
        }
    }

    /// Reads a table behind its opening brace.
    fn table(&mut self) -> Result<Table, LuaError> {
        let mut table = Table::default();
        loop {
            let before = self.rest;
            match self.next()? {
                Token::Sign('}') => return Ok(table),
                Token::Sign('[') => {
                    let key = self.expression()?;
                    self.sign(']', "`]`")?;
                    self.sign('=', "`=`")?;
                    table.keys.push((key, self.expression()?));
                }
                Token::Name(name) if self.next()? == Token::Sign('=') => {
                    table.keys.push((Expression::Text(name), self.expression()?));
                }
                _ => {
                    self.rest = before;
                    table.list.push(self.expression()?);
                }
            }
            match self.next()? {
                Token::Sign(',' | ';') => {}
                Token::Sign('}') => return Ok(table),
                other => return Err(LuaError::Expected("`,` or `}`", format!("`{other}`"))),
            }
        }
    }

    /// Reads a sign.
    fn sign(&mut self, sign: char, wanted: &'static str) -> Result<(), LuaError> {
        match self.next()? {
            Token::Sign(found) if found == sign => Ok(()),
            other => Err(LuaError::Expected(wanted, format!("`{other}`"))),
        }
    }

    /// Reads the next token.
    fn next(&mut self) -> Result<Token, LuaError> {
        self.skip_blanks()?;
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match first {
            '\'' | '"' => self.string(first),
            c if c.is_ascii_digit() => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
                let word = self.take(is_part);
                let number = word.parse().ok().filter(|number: &f64| number.is_finite());
                number.map(Token::Number).ok_or(LuaError::Expected("a number", format!("`{word}`")))
            }
            c if is_name(c) => Ok(Token::Name(self.take(is_name).to_owned())),
            c => {
                self.rest = &self.rest[c.len_utf8()..];
                Ok(Token::Sign(c))
            }
        }
    }

    /// Takes characters for which a condition holds.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Passes blanks and comments.
    fn skip_blanks(&mut self) -> Result<(), LuaError> {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(comment) = self.rest.strip_prefix("--[[") {
                let end = comment.find("]]").ok_or(LuaError::Open("comment"))?;
                self.rest = &comment[end + 2..];
            } else if self.rest.starts_with("--") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
            } else {
                return Ok(());
            }
        }
    }

    /// Reads a string up to its quote.
    fn string(&mut self, quote: char) -> Result<Token, LuaError> {
        let mut text = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, c)) = characters.next() {
            match c {
                c if c == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Token::Text(text));
                }
                '\\' => match characters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, other)) if !other.is_ascii_alphanumeric() => text.push(other),
                    Some((_, other)) => return Err(LuaError::Program(format!("\\{other}"))),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(LuaError::Open("string"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(text: &str) -> Expression {
        Expression::Text(text.to_owned())
    }

    #[test]
    fn a_call_has_strings_numbers_and_tables() {
        let read =
            read("ifportup(443, {'192.0.2.1', \"192.0.2.2\"; }, { timeout = 2, ['a'] = -1 })");
        let Ok(Expression::Call(name, arguments)) = read else { panic!("{read:?}") };
        assert_eq!((&*name, arguments.len()), ("ifportup", 3));
        assert_eq!(arguments[0], Expression::Number(443.0));
        let Expression::Table(addresses) = &arguments[1] else { panic!("{arguments:?}") };
        assert_eq!(addresses.list, [text("192.0.2.1"), text("192.0.2.2")]);
        let Expression::Table(options) = &arguments[2] else { panic!("{arguments:?}") };
        assert_eq!(options.get("timeout"), Some(&Expression::Number(2.0)));
        assert_eq!(options.get("a"), Some(&Expression::Number(-1.0)));
    }

    #[test]
    fn comments_blanks_and_a_return_are_passed() {
        for same in ["all({'a'})", " ;return all ( { 'a' } ) ;", "all(--[[ x ]]{'a'}) -- y"] {
            let Ok(Expression::Call(name, arguments)) = read(same) else { panic!("{same}") };
            assert_eq!((&*name, arguments.len()), ("all", 1), "{same}");
        }
    }

    #[test]
    fn what_would_have_to_be_run_is_named() {
        for (code, expected) in [
            (";if country('DE') then return 'a' else return 'b' end", "`if` would have to be run"),
            ("pickrandom(addresses)", "`addresses` would have to be run"),
            ("'a' .. 'b'", "`.` would have to be run"),
            ("pickrandom({'a'}) or 'b'", "`or` would have to be run"),
            ("f(1", "expected `,` or `)`, found `the end`"),
            ("f({1 2})", "expected `,` or `}`, found `2`"),
            ("f('a", "a string does not end"),
            ("", "expected an expression, found `the end`"),
            (";", "expected an expression, found nothing"),
        ] {
            let error = read(code).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{code}: {error}");
        }
        assert_eq!(read(&"{".repeat(10_000)), Err(LuaError::TooDeep));
    }
}
