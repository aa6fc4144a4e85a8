//! The words of an action of a template.

use std::borrow::Cow;

/// A word of an action.
#[derive(Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// A field, a function or a number.
    Word(&'t str),
    /// A text in quotes, without these.
    Text(Cow<'t, str>),
    /// An opening parenthesis.
    Open,
    /// A closing parenthesis.
    Close,
}

/// Returns the words of an action; nothing if a text has no end, or has an escape other than those
/// of a quote and a backslash.
pub fn tokens(action: &str) -> Option<Vec<Token<'_>>> {
    let (mut tokens, mut rest) = (Vec::new(), action.trim_start());
    while let Some(first) = rest.chars().next() {
        let behind = &rest[first.len_utf8()..];
        rest = match first {
            '(' => {
                tokens.push(Token::Open);
                behind
            }
            ')' => {
                tokens.push(Token::Close);
                behind
            }
            '`' => {
                let (text, behind) = behind.split_once('`')?;
                tokens.push(Token::Text(text.into()));
                behind
            }
            '"' => {
                let (text, behind) = quoted(behind)?;
                tokens.push(Token::Text(text));
                behind
            }
            _ => {
                let is_end = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | '`');
                let end = rest.find(is_end).unwrap_or(rest.len());
                tokens.push(Token::Word(&rest[..end]));
                &rest[end..]
            }
        }
        .trim_start();
    }
    Some(tokens)
}

/// Returns the text up to the next quote, and what stands behind that.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut made = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' if made.len() == at => return Some((text[..at].into(), &text[at + 1..])),
            '"' => return Some((made.into(), &text[at + 1..])),
            '\\' => made.push(characters.next().map(|it| it.1).filter(|it| "\"\\".contains(*it))?),
            c => made.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_cut_into_words_texts_and_parentheses() {
        use Token::{Close, Open, Text, Word};
        let expected =
            vec![Word("eq"), Open, Word(".Name"), Close, Text("a\"b".into()), Text("c)".into())];
        assert_eq!(tokens(" eq (.Name) \"a\\\"b\" `c)`"), Some(expected));
        for wrong in ["\"a", "`a", "\"\\n\""] {
            assert_eq!(tokens(wrong), None, "{wrong}");
        }
    }
}
