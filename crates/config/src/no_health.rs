//! Checks of members in a program without the feature `file`: there are none. The names are those
//! of `zonda_health`.

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

/// What a probe does, of which there is no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {}

/// When results change the state of a member, of which there is no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thresholds {}

/// How a state is calculated from other states, of which there is no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formula<T>(Infallible, PhantomData<T>);

/// A mistake in a check, of which there is no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckError {}

/// A mistake in a formula, of which there is no instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormulaError {}

impl<T> Formula<T> {
    /// Calls a function with each state that the formula names.
    pub fn each_leaf(&self, _visit: &mut impl FnMut(&T)) {
        match self.0 {}
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl fmt::Display for FormulaError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
