//! Names of code that runs outside the worker.

/// A function that may wait, to which [`Reply::defer_to`](super::Reply::defer_to) hands a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The number of the runtime.
    #[doc(hidden)]
    pub runtime: u16,
    /// The number by which the runtime knows the handler; [`NO_HANDLER`] for its middleware alone.
    #[doc(hidden)]
    pub handler: u32,
}

/// The handler of a query that only passes middleware.
pub const NO_HANDLER: u32 = u32::MAX;
