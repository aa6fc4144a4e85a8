//! The statements of a block, each taken by the function that knows its meaning.

use super::statement::{Cursor, Statement};
use crate::error::{ImportError, Problem};

/// Statements, and which of them were taken.
pub struct Clauses<'s>(Vec<(&'s Statement, bool)>);

impl<'s> Clauses<'s> {
    /// The statements, of which none was taken yet.
    pub fn new(statements: impl IntoIterator<Item = &'s Statement>) -> Self {
        Self(statements.into_iter().map(|statement| (statement, false)).collect())
    }

    /// Takes the statement of a keyword, to be read from behind it.
    ///
    /// # Errors
    /// When there are two.
    pub fn take(&mut self, keyword: &str) -> Result<Option<Cursor<'s>>, ImportError> {
        let mut taken = self.take_all(keyword).into_iter();
        match (taken.next(), taken.next()) {
            (Some(first), Some(second)) => {
                let twice =
                    Problem::Twice(format!("`{keyword}`"), first.statement().place().clone());
                let place = Some(second.statement().place().clone());
                Err(ImportError { place, problem: twice })
            }
            (first, _) => Ok(first),
        }
    }

    /// Takes all statements of a keyword.
    pub fn take_all(&mut self, keyword: &str) -> Vec<Cursor<'s>> {
        let wanted = self.0.iter_mut().filter(|(statement, taken)| {
            !taken && statement.keyword().eq_ignore_ascii_case(keyword)
        });
        wanted
            .map(|(statement, taken)| {
                *taken = true;
                statement.arguments()
            })
            .collect()
    }

    /// Returns the statements that were not taken.
    pub fn rest(self) -> impl Iterator<Item = &'s Statement> {
        self.0.into_iter().filter(|(_, taken)| !taken).map(|(statement, _)| statement)
    }
}
