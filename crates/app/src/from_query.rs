//! What handlers take: values of the query, and values that an app's handlers share.

use crate::into_reply::{ErrorHandler, Failure, IntoReply};
use crate::owned::OwnedQuery;
use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use zonda_engine::Transport;
use zonda_engine::code::{Pattern, Query, Reply};
use zonda_wire::name::Presentation;
use zonda_wire::{ClientSubnet, Name, Type};

/// A value that a handler takes as an argument. One that has to be waited for, such as from a
/// database, is an [`AsyncFromQuery`].
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
    /// Takes the value, or refuses the query with a reply in place of the handler's, which is not
    /// called then.
    ///
    /// # Errors
    /// The reply: [what a handler may return](IntoReply), by `?` or `into`.
    ///
    /// ```
    /// # use zonda::{Context, FromQuery, Rcode, Refusal};
    /// /// A client of this machine.
    /// struct Local;
    ///
    /// impl FromQuery for Local {
    ///     fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
    ///         match context.client().ip().is_loopback() {
    ///             true => Ok(Self),
    ///             false => Err(Rcode::REFUSED.into()),
    ///         }
    ///     }
    /// }
    /// ```
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal>;

    /// Checks, when the handler is put into force, that each query can have the value.
    ///
    /// # Errors
    /// What the app or the handler's pattern lacks, and what to do.
    fn check(definition: &Definition<'_>) -> Result<(), String> {
        let _ = definition;
        Ok(())
    }
}

/// A value that an asynchronous handler takes as an argument, and that is waited for before the
/// handler is called, such as the account of a client from a database. Each [`FromQuery`] is one.
///
/// The time for which it is waited counts as the handler's.
#[diagnostic::on_unimplemented(
    message = "an asynchronous handler cannot take `{Self}`",
    label = "expected a value of the query, or `zonda::State`",
    note = "implement `zonda::FromQuery` or `zonda::AsyncFromQuery` for types of your own"
)]
pub trait AsyncFromQuery: Sized + Send + 'static {
    /// Takes the value, or refuses the query with a reply in place of the handler's, which is not
    /// called then. An `async fn` implements it.
    ///
    /// # Errors
    /// The reply: [what a handler may return](IntoReply), by `?` or `into`.
    ///
    /// ```
    /// # use std::net::IpAddr;
    /// # use zonda::{App, AsyncContext, AsyncFromQuery, Definition, Rcode, Refusal, Txt};
    /// # struct Database;
    /// # impl Database {
    /// #     async fn owner_of(&self, _: IpAddr) -> std::io::Result<Option<String>> { Ok(None) }
    /// # }
    /// /// The account of the client.
    /// struct Account(String);
    ///
    /// impl AsyncFromQuery for Account {
    ///     async fn from_query_async(context: &AsyncContext<'_>) -> Result<Self, Refusal> {
    ///         let database = context.state::<Database>().ok_or(Rcode::SERVFAIL)?;
    ///         let owner = database.owner_of(context.query().client().ip()).await;
    ///         match owner.map_err(Err::<(), _>)? {
    ///             Some(owner) => Ok(Self(owner)),
    ///             None => Err(Rcode::REFUSED.into()),
    ///         }
    ///     }
    /// }
    ///
    /// let app = App::new()
    ///     .state(Database)
    ///     .handle_async("whoami.example/TXT", async |Account(owner): Account| Txt::new(owner));
    /// ```
    fn from_query_async(
        context: &AsyncContext<'_>,
    ) -> impl Future<Output = Result<Self, Refusal>> + Send;

    /// Checks, when the handler is put into force, that each query can have the value.
    ///
    /// # Errors
    /// What the app or the handler's pattern lacks, and what to do.
    fn check(definition: &Definition<'_>) -> Result<(), String> {
        let _ = definition;
        Ok(())
    }
}

impl<T: FromQuery + Send> AsyncFromQuery for T {
    async fn from_query_async(context: &AsyncContext<'_>) -> Result<Self, Refusal> {
        T::from_query(&context.to_context())
    }

    fn check(definition: &Definition<'_>) -> Result<(), String> {
        T::check(definition)
    }
}

/// A reply in place of that of a handler that cannot have a value which it takes.
#[derive(Debug)]
pub struct Refusal(Box<Result<Reply, Failure>>);

impl<T: IntoReply> From<T> for Refusal {
    fn from(value: T) -> Self {
        let mut reply = Reply::default();
        Self(Box::new(value.into_reply(&mut reply).map(|()| reply)))
    }
}

impl Refusal {
    /// Returns the reply, as what a handler has returned.
    pub(crate) fn into_returned(self) -> Result<Reply, Failure> {
        *self.0
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

    /// Returns what answers queries whose handlers have failed, in this order.
    pub(crate) fn error_handlers(&self) -> &'q [Box<ErrorHandler>] {
        &self.states.error_handlers
    }

    /// Returns the name asked for, in lower case.
    #[must_use]
    pub fn name(&self) -> Name {
        match self.query {
            ContextQuery::Borrowed(query) => Name::from(query.name()),
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
                query.params().map(|(_, label)| label_text(label)).collect()
            }
            ContextQuery::Owned(query) => {
                query.params().map(|(_, label)| label_text(label)).collect()
            }
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
            ContextQuery::Borrowed(query) => query.transport(),
            ContextQuery::Owned(query) => query.transport(),
        }
    }

    /// Returns the value of a type that [`App::state`](crate::App::state) has set.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.states.get()
    }

    /// Returns the value of a type that middleware has left with the query by
    /// [`Query::set_state`].
    #[must_use]
    pub fn query_state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        match self.query {
            ContextQuery::Borrowed(query) => query.state(),
            ContextQuery::Owned(query) => query.state(),
        }
    }
}

/// A query of asynchronous code and the values of its app, of which handlers take their arguments.
#[derive(Clone, Copy, Debug)]
pub struct AsyncContext<'q> {
    query: &'q OwnedQuery,
    states: &'q States,
}

impl<'q> AsyncContext<'q> {
    /// Makes the context of a query.
    pub(crate) fn of(query: &'q OwnedQuery, states: &'q States) -> Self {
        Self { query, states }
    }

    /// Returns the query.
    #[must_use]
    pub fn query(&self) -> &'q OwnedQuery {
        self.query
    }

    /// Returns the value of a type that [`App::state`](crate::App::state) has set.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.states.get()
    }

    /// Returns the context for what does not wait.
    pub(crate) fn to_context(self) -> Context<'q> {
        Context { query: ContextQuery::Owned(self.query), states: self.states }
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

/// Values that the handlers of an app share, one of each type, and what answers where handlers
/// fail.
#[derive(Default)]
pub struct States {
    values: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
    /// What answers queries whose handlers have failed, in the order in which it is tried.
    pub(crate) error_handlers: Vec<Box<ErrorHandler>>,
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("States")
            .field("values", &self.values.len())
            .field("error_handlers", &self.error_handlers.len())
            .finish()
    }
}

impl States {
    /// Sets the value of its type, in place of a former one.
    pub(crate) fn set<T: Send + Sync + 'static>(&mut self, value: T) {
        self.values.retain(|(known, _)| *known != TypeId::of::<T>());
        self.values.push((TypeId::of::<T>(), Arc::new(value)));
    }

    /// Returns the value of a type.
    fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let (_, value) = self.values.iter().find(|(known, _)| *known == TypeId::of::<T>())?;
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
        static NONE: States = States { values: Vec::new(), error_handlers: Vec::new() };
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
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        let value =
            context.state().expect("`check` has found the value when the handler was added");
        Ok(Self(value))
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
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        let mut labels = context.captures().into_iter();
        Ok(Self(std::array::from_fn(|_| labels.next().unwrap_or_default())))
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
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        Ok(context.qtype())
    }
}

impl FromQuery for Name {
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        Ok(context.name())
    }
}

impl FromQuery for SocketAddr {
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        Ok(context.client())
    }
}

impl FromQuery for IpAddr {
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        Ok(context.client().ip())
    }
}

impl FromQuery for Option<ClientSubnet> {
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        Ok(context.client_subnet())
    }
}

impl FromQuery for Transport {
    fn from_query(context: &Context<'_>) -> Result<Self, Refusal> {
        Ok(context.transport())
    }
}
