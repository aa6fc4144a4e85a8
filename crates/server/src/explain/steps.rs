//! The steps of an explanation.

use serde_json::{Value, json};
use std::fmt::Display;

/// The seed of the draws: the choice that is told is the one that was made.
pub const SEED: u64 = 1;

/// The steps in words.
#[derive(Default)]
pub struct Steps(pub Vec<Value>);

impl Steps {
    /// Adds a step.
    pub fn add(&mut self, step: &str, text: impl Display) {
        self.0.push(json!({ "step": step, "text": text.to_string() }));
    }
}
