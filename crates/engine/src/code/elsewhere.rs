//! Names of code that runs outside the worker.

/// Code that runs elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The number of the runtime.
    pub runtime: u16,
    /// What the runtime knows it by; [`NO_HANDLER`] for its middleware alone.
    pub handler: u32,
}

/// The handler of a query that only passes middleware.
pub const NO_HANDLER: u32 = u32::MAX;
