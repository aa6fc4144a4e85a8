//! What is known of a query from before it was answered.

use super::elsewhere::Elsewhere;
use super::query_state::QueryState;
use super::routes::PassedRoute;
use crate::checkpoint::Checkpoint;
use crate::option_codes::OptionCodes;
use crate::prelude::Prelude;
use std::borrow::Cow;
use std::fmt::Display;
use zonda_rewrite::Change;
use zonda_wire::tsig::QuerySignature;

/// Facts about a query from before it had to wait, or from the code that has asked it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// When the query was received; nanoseconds of the monotonic clock.
    pub received_nanos: u64,
    /// Tags that code has added to the query.
    pub tags: Tags,
    /// The values that code has left with the query.
    pub state: QueryState,
    /// The code elsewhere that it was deferred to, if it was.
    pub code: Option<Elsewhere>,
    /// Where the query goes on if that code passes it on.
    pub then: ResumePoint,
    /// Whether it passes guards of the runtime that it was deferred to.
    pub is_guarded: bool,
    /// Whether it has passed all middleware before, so that its handler alone is called.
    pub has_passed_middleware: bool,
    /// Whether code has asked it, to see what would become of a query that it has to answer: that
    /// one is counted and told to observers, when its reply leaves.
    pub asked_by_code: bool,
    /// The number of first bits of the client's network at which code has looked.
    pub code_scope: u8,
    /// The gates and sources that the query has passed, if it was deferred to the upstreams of the
    /// zone that holds its name, or the target of an alias that a template has made, or of an ALIAS
    /// record.
    pub checkpoint: Option<Checkpoint>,
    /// The beginning of its reply, whose aliases lead to the name in its octets, and the query that
    /// its client has sent; none if that name is the client's.
    pub prelude: Option<Box<Prelude>>,
    /// What rules have made of its question, if they have changed it: the octets of the query have
    /// the new one.
    pub change: Option<Box<Change>>,
    /// The signature of the query, with which its reply is signed.
    pub signature: Option<Box<QuerySignature>>,
    /// The place, behind the name asked for, of the name of a search path for which the query was
    /// deferred.
    pub search_step: Option<u8>,
    /// The codes among its options on which options of queries to upstreams depend.
    pub option_codes: OptionCodes,
}

/// The point at which a query goes on that code elsewhere has passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumePoint {
    /// The query goes on at its handlers behind the one that it has passed: all middleware has seen
    /// it. Without that, behind those elsewhere that come first, which have seen it, too.
    Handlers(Option<PassedRoute>),
    /// The query goes on at the middleware of this number; guards are numbered behind middleware
    /// for all names.
    Middleware(usize),
}

impl Default for ResumePoint {
    /// Behind the handlers elsewhere that come first.
    fn default() -> Self {
        Self::Handlers(None)
    }
}

/// Tags that code adds to a query for the query log and observers: keys and values in the order in
/// which they were noted. Costs nothing while there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags(Vec<(Cow<'static, str>, String)>);

/// The tags of a query to which code has added none.
pub static NO_TAGS: Tags = Tags(Vec::new());

impl Tags {
    /// Notes a value under a key, instead of what was noted under it before.
    pub fn set(&mut self, key: Cow<'static, str>, value: &dyn Display) {
        let value = value.to_string();
        match self.0.iter_mut().find(|(known, _)| *known == key) {
            Some((_, former)) => *former = value,
            None => self.0.push((key, value)),
        }
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Adds the tags of `others`.
    pub(crate) fn extend(&mut self, others: &Self) {
        for (key, value) in &others.0 {
            self.set(key.clone(), value);
        }
    }

    /// Forgets all.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
