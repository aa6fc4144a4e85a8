//! What handlers take: values of the query, and values that an app's handlers share.

use crate::owned::OwnedQuery;
use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use zonda_engine::Transport;
use zonda_engine::code::{Pattern, Query};
use zonda_wire::name::Presentation;
use zonda_wire::{ClientSubnet, Name, Type};

/// A value that a handler takes as an argument.
///
/// | argument | value |
/// |---|---|
/// | [`Type`] | the type asked for |
/// | [`Name`] | the name asked for, in lower case |
/// | [`Captures<N>`] | the labels that the pattern captures |
/// | [`IpAddr`], [`SocketAddr`] | the client's address, and with its port |
/// | `Option<`[`ClientSubnet`]`>` | the network for which a resolver asks |
/// | [`Transport`] | the transport that the query came by |
/// | [`State<T>`] | a value that the app's handlers share |
///
/// As with [`Query::client`], the reply of a handler that takes what differs between clients is
/// cached only if [`Reply::cache`](crate::Reply::cache) limits that to the client or its network. A
/// program implements the trait for types of its own.
#[diagnostic::on_unimplemented(
    message = "a handler cannot take `{Self}`",
    label = "expected a value of the query, or `zonda::State`",
    note = "implement `zonda::FromQuery` for types of your own"
)]
pub trait FromQuery: Sized + 'static {
    /// Takes the value.
    fn from_query(context: &Context<'_>) -> Self;

    /// Checks, when the handler is put into force, that each query can have the value.
    ///
    /// # Errors
    /// What the app or the handler's pattern lacks, and what to do.
    fn check(definition: &Definition<'_>) -> Result<(), String> {
        let _ = definition;
        Ok(())
    }
}

/// A query and the values of its app, of which handlers take their arguments.
#[derive(Clone, Copy)]
pub struct Context<'q> {
    query: ContextQuery<'q>,
    states: &'q States,
}

/// The query of a context.
#[derive(Clone, Copy)]
enum ContextQuery<'q> {
    /// A query of a handler that runs in the worker.
    Borrowed(&'q Query<'q>),
    /// A query of asynchronous code.
    Owned(&'q OwnedQuery),
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.name())
            .field("qtype", &self.qtype())
            .finish_non_exhaustive()
    }
}

impl<'q> Context<'q> {
    /// Makes the context of a query in a worker.
    pub(crate) fn of(query: &'q Query<'q>, states: &'q States) -> Self {
        Self { query: ContextQuery::Borrowed(query), states }
    }

    /// Makes the context of a query of asynchronous code.
    pub(crate) fn of_owned(query: &'q OwnedQuery, states: &'q States) -> Self {
        Self { query: ContextQuery::Owned(query), states }
    }

    /// Returns the name asked for, in lower case.
    #[must_use]
    pub fn name(&self) -> Name {
        match self.query {
            ContextQuery::Borrowed(query) => {
                Name::from_wire(query.name.as_wire()).unwrap_or_else(|_| Name::root()) // it is one
            }
            ContextQuery::Owned(query) => query.name().clone(),
        }
    }

    /// Returns the type asked for.
    #[must_use]
    pub fn qtype(&self) -> Type {
        match self.query {
            ContextQuery::Borrowed(query) => query.qtype(),
            ContextQuery::Owned(query) => query.qtype(),
        }
    }

    /// Returns the labels that the route's pattern captures, the first one first, in lower case and
    /// with the escapes of zone files.
    #[must_use]
    pub fn captures(&self) -> Vec<String> {
        match self.query {
            ContextQuery::Borrowed(query) => {
                let captures = query.pattern.map(|pattern| pattern.captures(query.name));
                captures.into_iter().flatten().map(|(_, label)| label_text(label)).collect()
            }
            ContextQuery::Owned(query) => query.captures().map(label_text).collect(),
        }
    }

    /// Returns the client's address and port.
    #[must_use]
    pub fn client(&self) -> SocketAddr {
        match self.query {
            ContextQuery::Borrowed(query) => query.client(),
            ContextQuery::Owned(query) => query.client(),
        }
    }

    /// Returns the network for which a resolver asks (rfc7871), if the server believes it.
    #[must_use]
    pub fn client_subnet(&self) -> Option<ClientSubnet> {
        match self.query {
            ContextQuery::Borrowed(query) => query.client_subnet(),
            ContextQuery::Owned(query) => query.client_subnet(),
        }
    }

    /// Returns the transport that the query came by.
    #[must_use]
    pub fn transport(&self) -> Transport {
        match self.query {
            ContextQuery::Borrowed(query) => query.peer().transport,
            ContextQuery::Owned(query) => query.transport(),
        }
    }

    /// Returns the value of a type that [`App::state`](crate::App::state) has set.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.states.get()
    }
}

/// Returns a label as text, with the escapes of zone files.
fn label_text(label: &[u8]) -> String {
    let wire = [&[label.len() as u8], label, &[0]].concat(); // at most 63
    let mut text = Presentation(&wire).to_string();
    text.pop(); // the final dot
    text
}

/// A handler that is put into force: its pattern, and what its app has.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'d> {
    pub(crate) pattern: &'d Pattern,
    pub(crate) states: &'d States,
}

impl Definition<'_> {
    /// Returns the pattern of the handler's route; `*` for middleware and deferred code.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        self.pattern
    }

    /// Whether [`App::state`](crate::App::state) has set a value of a type.
    #[must_use]
    pub fn has_state<T: Send + Sync + 'static>(&self) -> bool {
        self.states.get::<T>().is_some()
    }
}

/// Checks an argument of a handler that is put into force.
pub(crate) type Check = fn(&Definition<'_>) -> Result<(), String>;

/// Values that the handlers of an app share, one of each type.
#[derive(Default)]
pub struct States(Vec<(TypeId, Arc<dyn Any + Send + Sync>)>);

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States").field("count", &self.0.len()).finish()
    }
}

impl States {
    /// Sets the value of its type, in place of a former one.
    pub(crate) fn set<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.retain(|(known, _)| *known != TypeId::of::<T>());
        self.0.push((TypeId::of::<T>(), Arc::new(value)));
    }

    /// Returns the value of a type.
    fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, value) = self.0.iter().find(|(known, _)| *known == TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }
}

/// The values of an app, which its handlers have before all of them are set.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStates(Arc<OnceLock<States>>);

impl SharedStates {
    /// Sets the values, which is done once.
    pub(crate) fn set(&self, states: States) {
        let _ = self.0.set(states); // an app starts once
    }

    /// Returns the values; none before they are set.
    pub(crate) fn get(&self) -> &States {
        static NONE: States = States(Vec::new());
        self.0.get().unwrap_or(&NONE)
    }
}

/// A value that the handlers of an app share, which [`App::state`](crate::App::state) has set.
///
/// Each query takes a reference, whose count all workers share: some nanoseconds, and more where
/// several workers take one at once. A closure that has captured an `Arc` takes none.
///
/// ```
/// # use zonda::{App, State, Txt};
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let app = App::new()
///     .state(AtomicU64::new(0))
///     .handle("count.example/TXT", |count: State<AtomicU64>| {
///         Txt::new(count.fetch_add(1, Ordering::Relaxed).to_string()).ttl(0)
///     });
/// ```
#[derive(Debug)]
pub struct State<T>(pub Arc<T>);

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send + Sync + 'static> FromQuery for State<T> {
    fn from_query(context: &Context<'_>) -> Self {
        let value =
            context.state().expect("`check` has found the value when the handler was added");
        Self(value)
    }

    fn check(definition: &Definition<'_>) -> Result<(), String> {
        if definition.has_state::<T>() {
            return Ok(());
        }
        let kind = type_name::<T>();
        Err(format!("the handler takes a `State<{kind}>`; set one with `App::state`"))
    }
}

/// The labels that the route's pattern captures, the first one first, in lower case and with the
/// escapes of zone files. [`Query::capture`] has the octets of a label without a copy.
///
/// ```
/// # use zonda::{App, Captures, Txt};
/// let app = App::new().handle(":user.:team.example/TXT", |Captures([user, team]): Captures<2>| {
///     Txt::new(format!("{user} of {team}"))
/// });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captures<const N: usize>(pub [String; N]);

impl<const N: usize> FromQuery for Captures<N> {
    fn from_query(context: &Context<'_>) -> Self {
        let mut labels = context.captures().into_iter();
        Self(std::array::from_fn(|_| labels.next().unwrap_or_default()))
    }

    fn check(definition: &Definition<'_>) -> Result<(), String> {
        match definition.pattern.words().count() {
            count if count == N => Ok(()),
            count => Err(format!(
                "the handler takes `Captures<{N}>`, and the number of labels that the pattern \
                 captures is {count}"
            )),
        }
    }
}

impl FromQuery for Type {
    fn from_query(context: &Context<'_>) -> Self {
        context.qtype()
    }
}

impl FromQuery for Name {
    fn from_query(context: &Context<'_>) -> Self {
        context.name()
    }
}

impl FromQuery for SocketAddr {
    fn from_query(context: &Context<'_>) -> Self {
        context.client()
    }
}

impl FromQuery for IpAddr {
    fn from_query(context: &Context<'_>) -> Self {
        context.client().ip()
    }
}

impl FromQuery for Option<ClientSubnet> {
    fn from_query(context: &Context<'_>) -> Self {
        context.client_subnet()
    }
}

impl FromQuery for Transport {
    fn from_query(context: &Context<'_>) -> Self {
        context.transport()
    }
}
