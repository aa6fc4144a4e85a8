//! How code leaves values with a query and finds them there.

use super::query::Query;
use super::query_state::QueryState;
use super::reply::Reply;
use std::sync::Arc;

impl Query<'_> {
    /// Leaves a value for the code behind this one, in place of one of the same type: middleware
    /// leaves the account of a client, say, for handlers, for [`Stage::after`](super::Stage::after)
    /// and for asynchronous code. Clients and the query log do not get to see it.
    ///
    /// An app whose code leaves nothing pays nothing for this.
    pub fn set_state<T: Send + Sync + 'static>(&self, value: T) {
        self.state.borrow_mut().set(value);
    }

    /// Returns the value of a type that [`set_state`](Self::set_state) has left, if there is one;
    /// as [`peer`](Self::peer), as it may be the client's.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.saw_client.set(true);
        self.state.borrow().get()
    }

    /// Returns all values that code has left.
    pub(crate) fn into_state(self) -> QueryState {
        self.state.into_inner()
    }
}

impl Reply {
    /// Returns the reply with the values that asynchronous code has left with its query.
    #[doc(hidden)]
    #[must_use]
    pub fn with_query_state(mut self, state: QueryState) -> Self {
        self.state = state;
        self
    }
}
