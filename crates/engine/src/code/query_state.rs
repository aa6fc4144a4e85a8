//! Values that code leaves with a query for the code behind it.

use std::any::{Any, TypeId};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

/// A value of some type.
type Value = (TypeId, Arc<dyn Any + Send + Sync>);

/// The values that code has left with a query, one of each type. Allocates nothing while there are
/// none.
#[derive(Clone, Default)]
pub struct QueryState(Vec<Value>);

// Values are replaced as a whole.
impl UnwindSafe for QueryState {}
impl RefUnwindSafe for QueryState {}

impl QueryState {
    /// Sets the value of its type, in place of a former one.
    pub fn set<T: Send + Sync + 'static>(&mut self, value: T) {
        self.put((TypeId::of::<T>(), Arc::new(value)));
    }

    /// Returns the value of a type.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, value) = self.0.iter().find(|(known, _)| *known == TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// Puts a value in place of the one of its type.
    fn put(&mut self, (kind, value): Value) {
        match self.0.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, former)) => *former = value,
            None => self.0.push((kind, value)),
        }
    }

    /// Adds the values of `later`, which take the places of those of their types.
    pub(crate) fn extend(&mut self, later: &Self) {
        later.0.iter().for_each(|value| self.put(value.clone()));
    }

    /// Removes all values.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl fmt::Debug for QueryState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryState").field("values", &self.0.len()).finish()
    }
}

impl PartialEq for QueryState {
    /// Compares which values there are, not what they hold.
    fn eq(&self, other: &Self) -> bool {
        let same = |(one, other): (&Value, &Value)| Arc::ptr_eq(&one.1, &other.1);
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

impl Eq for QueryState {}
