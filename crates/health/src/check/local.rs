//! Checks that ask this machine: a program, a file, a pushed value.

use std::path::PathBuf;

use super::CheckError;

/// A program that decides by its exit status.
///
/// There is no shell: the first word is the program, the words behind it are its arguments as they
/// stand, with `{address}` and `{port}` replaced. The program gets no input and an environment of
/// `PATH`, `ZONDA_ADDRESS` and `ZONDA_PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandCheck {
    words: Vec<Box<str>>,
}

impl CommandCheck {
    /// Returns a check by a program with its arguments.
    ///
    /// # Errors
    /// When there is no program, or a word that the system cannot pass.
    pub fn new(words: &[&str]) -> Result<Self, CheckError> {
        let is_bad = |word: &&str| word.contains('\0');
        if words.first().is_none_or(|it| it.is_empty()) || words.iter().any(is_bad) {
            return Err(CheckError::Command);
        }
        Ok(Self { words: words.iter().copied().map(Box::from).collect() })
    }

    /// Returns the program and its arguments, at least one word.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }
}

/// A file that says `up` or `down`, in its first line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileCheck {
    /// Path of the file.
    pub path: PathBuf,
}

/// A value that a program outside pushes.
///
/// A pushed value decides at once, without `rise` and `fall`, and expires: the target of a program
/// that is silent is down.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PushCheck {
    /// Name by which values are pushed.
    pub name: Box<str>,
}
