//! Handlers and middleware: functions that take what they need of a query, and return what makes a
//! reply.
//!
//! A handler that runs in the worker takes, in this order, nothing or a `&`[`Query`], and behind
//! that nothing or a `&mut `[`Reply`]; a handler that may wait takes nothing or an [`OwnedQuery`].
//! Behind these, both take up to four values: of [`FromQuery`], and one that may wait of
//! [`AsyncFromQuery`]. Both return an [`IntoReply`](crate::IntoReply).

pub use crate::from_query::{
    AsyncContext, AsyncFromQuery, Context, Definition, FromQuery, Refusal, States,
};
use crate::owned::OwnedQuery;
use std::future::Future;
use zonda_engine::code::{Query, Reply};

/// A function that answers queries in the worker. `M` tells kinds of functions apart, and is
/// inferred; each argument of a closure needs a type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as a handler or as middleware",
    label = "expected a function with arguments that a handler can take",
    note = "a handler takes `&zonda::Query` and `&mut zonda::Reply`, or the first of them, or \
            neither, and behind them up to four values of `zonda::FromQuery`, each with its type",
    note = "code that implements `zonda::Stage` is added by `App::stage`"
)]
pub trait Handler<M>: Send + Sync + 'static {
    /// The value that the function returns.
    type Output;

    /// Calls the function for a query.
    #[doc(hidden)]
    fn call(
        &self,
        query: &Query<'_>,
        reply: &mut Reply,
        context: &Context<'_>,
    ) -> Result<Self::Output, Refusal>;

    /// Checks what the function takes.
    ///
    /// # Errors
    /// What the app or the handler's pattern lacks, and what to do.
    #[doc(hidden)]
    fn check(definition: &Definition<'_>) -> Result<(), String>;
}

/// A function that answers queries and may wait. `M` tells kinds of functions apart, and is
/// inferred; each argument of a closure needs a type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used as an asynchronous handler",
    label = "expected a function with arguments that an asynchronous handler can take",
    note = "an asynchronous handler takes `zonda::OwnedQuery` or nothing, and behind that up to \
            four values of `zonda::FromQuery` or `zonda::AsyncFromQuery`, each with its type, \
            and returns a future"
)]
pub trait AsyncHandler<M>: Send + Sync + 'static {
    /// The value that the function returns when it has waited.
    type Output;
    /// The future of the value.
    type Future: Future<Output = Self::Output>;
    /// The values that the function takes besides the query.
    #[doc(hidden)]
    type Values: Send;

    /// Takes the values for a query.
    #[doc(hidden)]
    fn values(
        context: &AsyncContext<'_>,
    ) -> impl Future<Output = Result<Self::Values, Refusal>> + Send;

    /// Calls the function for a query.
    #[doc(hidden)]
    fn call(&self, query: OwnedQuery, values: Self::Values) -> Self::Future;

    /// Checks what the function takes.
    ///
    /// # Errors
    /// What the app or the handler's pattern lacks, and what to do.
    #[doc(hidden)]
    fn check(definition: &Definition<'_>) -> Result<(), String>;
}

/// Marks functions that take values alone.
#[derive(Debug)]
pub struct Plain;

/// Marks functions that take the query first.
#[derive(Debug)]
pub struct WithQuery;

/// Marks functions that take the query and its reply first.
#[derive(Debug)]
pub struct WithReply;

/// What a function returns, unless a value that it takes has refused the query.
type CallResult<T> = Result<T, Refusal>;

/// The values that a handler in the worker takes, as a tuple.
trait Values: Sized {
    /// Takes the values for a query, in their order.
    fn take(context: &Context<'_>) -> CallResult<Self>;

    /// Checks the values in their order.
    fn check(definition: &Definition<'_>) -> Result<(), String>;
}

/// The values that a handler takes which may wait, as a tuple.
trait AsyncValues: Sized + Send {
    /// Takes the values for a query, in their order.
    fn take(context: &AsyncContext<'_>) -> impl Future<Output = CallResult<Self>> + Send;

    /// Checks the values in their order.
    fn check(definition: &Definition<'_>) -> Result<(), String>;
}

/// Makes handlers of functions with so many values.
macro_rules! handlers {
    ($($value:ident),*) => {
        impl<$($value: FromQuery),*> Values for ($($value,)*) {
            fn take(_context: &Context<'_>) -> CallResult<Self> {
                Ok(($($value::from_query(_context)?,)*))
            }

            fn check(_definition: &Definition<'_>) -> Result<(), String> {
                $($value::check(_definition)?;)*
                Ok(())
            }
        }

        impl<$($value: AsyncFromQuery),*> AsyncValues for ($($value,)*) {
            #[allow(non_snake_case, reason = "a value is called as its type")]
            async fn take(_context: &AsyncContext<'_>) -> CallResult<Self> {
                // One after the other: a refusal may not be sent to another thread.
                $(let $value = $value::from_query_async(_context).await?;)*
                Ok(($($value,)*))
            }

            fn check(_definition: &Definition<'_>) -> Result<(), String> {
                $($value::check(_definition)?;)*
                Ok(())
            }
        }

        impl<F, R, $($value: FromQuery),*> Handler<(Plain, $($value,)*)> for F
        where
            F: Fn($($value),*) -> R + Send + Sync + 'static,
        {
            type Output = R;

            #[allow(non_snake_case, reason = "a value is called as its type")]
            fn call(
                &self,
                _: &Query<'_>,
                _: &mut Reply,
                context: &Context<'_>,
            ) -> CallResult<R> {
                let ($($value,)*) = <($($value,)*) as Values>::take(context)?;
                Ok(self($($value),*))
            }

            fn check(definition: &Definition<'_>) -> Result<(), String> {
                <($($value,)*) as Values>::check(definition)
            }
        }

        impl<F, R, $($value: FromQuery),*> Handler<(WithQuery, $($value,)*)> for F
        where
            F: for<'q, 'a> Fn(&'q Query<'a>, $($value),*) -> R + Send + Sync + 'static,
        {
            type Output = R;

            #[allow(non_snake_case, reason = "a value is called as its type")]
            fn call(
                &self,
                query: &Query<'_>,
                _: &mut Reply,
                context: &Context<'_>,
            ) -> CallResult<R> {
                let ($($value,)*) = <($($value,)*) as Values>::take(context)?;
                Ok(self(query, $($value),*))
            }

            fn check(definition: &Definition<'_>) -> Result<(), String> {
                <($($value,)*) as Values>::check(definition)
            }
        }

        impl<F, R, $($value: FromQuery),*> Handler<(WithReply, $($value,)*)> for F
        where
            F: for<'q, 'a, 'r> Fn(&'q Query<'a>, &'r mut Reply, $($value),*) -> R
                + Send
                + Sync
                + 'static,
        {
            type Output = R;

            #[allow(non_snake_case, reason = "a value is called as its type")]
            fn call(
                &self,
                query: &Query<'_>,
                reply: &mut Reply,
                context: &Context<'_>,
            ) -> CallResult<R> {
                let ($($value,)*) = <($($value,)*) as Values>::take(context)?;
                Ok(self(query, reply, $($value),*))
            }

            fn check(definition: &Definition<'_>) -> Result<(), String> {
                <($($value,)*) as Values>::check(definition)
            }
        }

        impl<F, A, $($value: AsyncFromQuery),*> AsyncHandler<(Plain, $($value,)*)> for F
        where
            F: Fn($($value),*) -> A + Send + Sync + 'static,
            A: Future,
        {
            type Output = A::Output;
            type Future = A;
            type Values = ($($value,)*);

            async fn values(context: &AsyncContext<'_>) -> CallResult<Self::Values> {
                <Self::Values as AsyncValues>::take(context).await
            }

            #[allow(non_snake_case, reason = "a value is called as its type")]
            fn call(&self, _: OwnedQuery, ($($value,)*): Self::Values) -> A {
                self($($value),*)
            }

            fn check(definition: &Definition<'_>) -> Result<(), String> {
                <Self::Values as AsyncValues>::check(definition)
            }
        }

        impl<F, A, $($value: AsyncFromQuery),*> AsyncHandler<(WithQuery, $($value,)*)> for F
        where
            F: Fn(OwnedQuery, $($value),*) -> A + Send + Sync + 'static,
            A: Future,
        {
            type Output = A::Output;
            type Future = A;
            type Values = ($($value,)*);

            async fn values(context: &AsyncContext<'_>) -> CallResult<Self::Values> {
                <Self::Values as AsyncValues>::take(context).await
            }

            #[allow(non_snake_case, reason = "a value is called as its type")]
            fn call(&self, query: OwnedQuery, ($($value,)*): Self::Values) -> A {
                self(query, $($value),*)
            }

            fn check(definition: &Definition<'_>) -> Result<(), String> {
                <Self::Values as AsyncValues>::check(definition)
            }
        }
    };
}

handlers!();
handlers!(T);
handlers!(T, U);
handlers!(T, U, V);
handlers!(T, U, V, W);
