//! Routes of a program's runtime that change while the server runs.
//!
//! A program adds and removes single routes, while workers answer from all of them together. Few
//! routes are put into force at once, by the caller; many by a thread, so that the caller, which is
//! the event loop of a language, goes on. The thread takes all changes that have come meanwhile.
//!
//! # Invariants
//! - Changes take effect in the order in which they are made.
//! - Changes that wait take no more memory than the routes that they are about.

use crate::program::Code;
use crate::publish::Publishing;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use zonda_engine::code::{Elsewhere, Guard, Handler, Pattern, Route, panic_message};

/// Routes that are put into force by the caller: they take far less than a millisecond.
const INLINE_ROUTES_MAX: usize = 256;

/// How long the thread waits for further changes before it makes the code of all. The caller goes
/// on meanwhile: on a machine with few CPUs, the thread would take the caller's when it is woken.
const GATHERING: Duration = Duration::from_millis(1);

/// The code of a program as changes of single routes find it.
pub trait CodeTable: Send + 'static {
    /// Changes of the routes that are put into force together.
    type Change: Send + 'static;

    /// Returns the number of routes, with those that a change adds.
    fn len_with(&self, change: &Self::Change) -> usize;

    /// Makes changes.
    fn apply(&mut self, change: Self::Change);

    /// Returns the code as the server takes it.
    fn code(&self) -> Code;

    /// Adds a later change to one that is not in force yet.
    fn merge(earlier: &mut Self::Change, later: Self::Change);
}

/// Changes of the routes of a runtime.
#[derive(Debug, Default)]
pub struct CodeChange {
    /// Numbers of the handlers whose routes are removed.
    pub removed: BTreeSet<u32>,
    /// Patterns that are added, by the numbers of their handlers.
    pub added: BTreeMap<u32, Pattern>,
    /// Patterns whose names pass middleware from now on, by the numbers of their guards.
    pub guards: BTreeMap<u32, Pattern>,
    /// Whether all queries pass middleware from now on.
    pub has_middleware: bool,
}

/// The routes of a runtime, in the order of the numbers of their handlers.
#[derive(Debug)]
pub struct RouteTable {
    runtime: u16,
    patterns: BTreeMap<u32, Pattern>,
    /// Patterns of guards, by the numbers of these.
    guards: BTreeMap<u32, Pattern>,
    has_middleware: bool,
}

impl RouteTable {
    /// Makes a table without routes for the runtime of a number, which itself calls the handlers
    /// behind one that passes a query on.
    #[must_use]
    pub fn new(runtime: u16) -> Self {
        let (patterns, guards) = (BTreeMap::new(), BTreeMap::new());
        Self { runtime, patterns, guards, has_middleware: false }
    }

    /// Makes changes.
    pub fn apply(&mut self, change: CodeChange) {
        for number in change.removed {
            self.patterns.remove(&number);
        }
        self.patterns.extend(change.added);
        self.guards.extend(change.guards);
        self.has_middleware = change.has_middleware;
    }

    /// Returns the routes as the server takes them.
    #[must_use]
    pub fn code(&self) -> Code {
        let elsewhere = |handler: u32| Elsewhere { runtime: self.runtime, handler };
        let route = |(&number, pattern): (&u32, &Pattern)| {
            let handler = Handler::Elsewhere(elsewhere(number));
            Route { pattern: pattern.clone(), handler }
        };
        let guard = |(&number, pattern): (&u32, &Pattern)| {
            let handler = Guard::Elsewhere(elsewhere(number));
            Route { pattern: pattern.clone(), handler }
        };
        Code {
            routes: self.patterns.iter().map(route).collect(),
            guards: self.guards.iter().map(guard).collect(),
            middleware_runtime: self.has_middleware.then_some(self.runtime),
            chaining_runtime: Some(self.runtime),
            ..Code::default()
        }
    }
}

impl CodeTable for RouteTable {
    type Change = CodeChange;

    fn len_with(&self, change: &CodeChange) -> usize {
        let routes = self.patterns.len() + self.guards.len();
        routes + change.added.len() + change.guards.len()
    }

    fn apply(&mut self, change: CodeChange) {
        Self::apply(self, change);
    }

    fn code(&self) -> Code {
        Self::code(self)
    }

    fn merge(earlier: &mut CodeChange, later: CodeChange) {
        for number in later.removed {
            // A route that is not in force yet has nothing to be removed from.
            if earlier.added.remove(&number).is_none() {
                earlier.removed.insert(number);
            }
        }
        earlier.added.extend(later.added);
        earlier.guards.extend(later.guards);
        earlier.has_middleware = later.has_middleware;
    }
}

/// Puts changes of routes into force. Ends its thread when it is dropped.
pub struct CodeUpdates<T: CodeTable = RouteTable> {
    shared: Arc<Shared<T>>,
    put: Put,
    /// Whether the thread was started, and lives.
    has_thread: bool,
}

/// Begins to put code into force, behind what was begun before.
type Put = Arc<dyn Fn(Code) -> Publishing + Send + Sync>;

/// Is called when a change is in force.
type Report = Box<dyn FnOnce() + Send>;

/// What the callers and the thread share.
struct Shared<T: CodeTable> {
    state: Mutex<State<T>>,
    /// Wakes the thread.
    wake: Condvar,
}

/// Changes that wait, and the routes that they are about.
struct State<T: CodeTable> {
    /// The routes that are in force; nothing while the thread has them.
    table: Option<T>,
    waiting: Option<T::Change>,
    reports: Vec<Report>,
    /// Whether the thread is to end.
    is_over: bool,
}

impl<T: CodeTable> CodeUpdates<T> {
    /// Makes one for routes that are in force; `put` puts new code into force, or begins to, behind
    /// what it has begun before.
    pub fn new<P: Into<Publishing>>(
        table: T,
        put: impl Fn(Code) -> P + Send + Sync + 'static,
    ) -> Self {
        let (waiting, reports) = (None, Vec::new());
        let state = State { table: Some(table), waiting, reports, is_over: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), wake: Condvar::new() });
        Self { shared, put: Arc::new(move |code| put(code).into()), has_thread: false }
    }

    /// Puts a change into force. Returns whether that is done; else `report` is called when it is.
    pub fn change(&mut self, change: T::Change, report: impl FnOnce() + Send + 'static) -> bool {
        let begun = self.begin(change, report);
        begun.map(Publishing::wait).is_some() // the log has why it fails
    }

    /// Begins to put a change into force. Returns what is waited for, which needs nothing of this,
    /// so that the next change can be begun meanwhile; else `report` is called when it is done.
    pub fn begin(
        &mut self,
        change: T::Change,
        report: impl FnOnce() + Send + 'static,
    ) -> Option<Publishing> {
        let mut state = self.shared.lock();
        // A change that waits comes first.
        let is_first = state.waiting.is_none();
        if let Some(table) = state.table.as_mut()
            && is_first
            && table.len_with(&change) <= INLINE_ROUTES_MAX
        {
            table.apply(change);
            let code = table.code();
            // Begun while the routes are locked, so that changes come in their order; the thread
            // waits meanwhile, or there is none.
            return Some((self.put)(code));
        }
        match &mut state.waiting {
            Some(waiting) => T::merge(waiting, change),
            none => *none = Some(change),
        }
        state.reports.push(Box::new(report));
        drop(state);
        if !self.has_thread {
            let (shared, put) = (Arc::clone(&self.shared), Arc::clone(&self.put));
            let thread = std::thread::Builder::new().name("code-updates".into());
            self.has_thread = thread.spawn(move || shared.run(&*put)).is_ok();
            if !self.has_thread {
                self.shared.work(self.shared.lock(), &*self.put); // it takes longer, but is done
                return Some(().into());
            }
        }
        self.shared.wake.notify_one();
        None
    }
}

impl<T: CodeTable> Drop for CodeUpdates<T> {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.wake.notify_one();
    }
}

impl<T: CodeTable> Shared<T> {
    /// Locks the state, which is whole after every statement.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts changes into force as they come, until there will be no more.
    fn run(&self, put: &(dyn Fn(Code) -> Publishing + Send + Sync)) {
        loop {
            let state = self.lock();
            let is_idle = |state: &mut State<T>| state.waiting.is_none() && !state.is_over;
            let state =
                self.wake.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return;
            }
            drop(state);
            std::thread::sleep(GATHERING);
            let state = self.lock();
            if state.is_over {
                return;
            }
            self.work(state, put);
        }
    }

    /// Puts all changes that wait into force; the state is free meanwhile.
    fn work(
        &self,
        mut state: MutexGuard<'_, State<T>>,
        put: &(dyn Fn(Code) -> Publishing + Send + Sync),
    ) {
        let (Some(change), Some(mut table)) = (state.waiting.take(), state.table.take()) else {
            return;
        };
        let reports = std::mem::take(&mut state.reports);
        drop(state);
        table.apply(change);
        catch("a change of routes", || {
            if let Err(error) = put(table.code()).wait() {
                tracing::error!(%error, "a change of routes is not in force");
            }
        });
        self.lock().table = Some(table); // with the change: the next one puts it into force, too
        reports.into_iter().for_each(|report| catch("the report of a change", report));
    }
}

/// Calls a function, and logs if it panics: the thread has later changes to make.
fn catch(what: &str, call: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        let panic = panic_message(&*payload);
        tracing::error!(what, panic, "it panicked; the next change puts all routes into force");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Patterns, and the numbers of their handlers.
    type RouteNumbers = Vec<(String, u32)>;

    /// The patterns of code, and the numbers of their handlers.
    fn told(code: &Code) -> RouteNumbers {
        let route = |route: &Route<Handler>| match route.handler {
            Handler::Elsewhere(it) => (route.pattern.canonical(), it.handler),
            Handler::Here(_) => unreachable!("the table has routes of a runtime"),
        };
        code.routes.iter().map(route).collect()
    }

    /// A change that adds and removes.
    fn change(added: &[(u32, &str)], removed: &[u32]) -> CodeChange {
        let pattern = |(number, text): &(u32, &str)| (*number, text.parse().unwrap());
        CodeChange {
            added: added.iter().map(pattern).collect(),
            removed: removed.iter().copied().collect(),
            ..CodeChange::default()
        }
    }

    /// Updates of as many routes, what is put into force, and what lets the next one go on.
    fn updates(count: u32) -> (CodeUpdates, Receiver<RouteNumbers>, Sender<()>) {
        let mut table = RouteTable::new(0);
        let names: Vec<_> = (0..count).map(|number| (number, format!("n{number}.test"))).collect();
        let names: Vec<_> = names.iter().map(|(number, name)| (*number, &**name)).collect();
        table.apply(change(&names, &[]));
        let (sender, put) = channel();
        let (allow, allowed) = channel::<()>();
        let allowed = Mutex::new(allowed);
        let is_many = count as usize > INLINE_ROUTES_MAX;
        let updates = CodeUpdates::new(table, move |code| {
            if is_many {
                let _ = allowed.lock().unwrap().recv();
            }
            let _ = sender.send(told(&code));
        });
        (updates, put, allow)
    }

    #[test]
    fn few_routes_are_in_force_when_the_change_returns() {
        let (mut updates, put, _) = updates(2);
        assert!(updates.change(change(&[(2, "a.test")], &[0]), || unreachable!()));
        let expected = [("n1.test".to_owned(), 1), ("a.test".to_owned(), 2)];
        assert_eq!(put.try_recv().unwrap(), expected);
    }

    #[test]
    fn many_routes_are_put_into_force_by_a_thread_with_all_changes_that_have_come_meanwhile() {
        let (mut updates, put, allow) = updates(1000);
        let (sender, reports) = channel();
        let report = |number: u32| {
            let sender = sender.clone();
            move || sender.send(number).unwrap()
        };
        assert!(!updates.change(change(&[(1000, "a.test")], &[]), report(1)));
        assert!(!updates.change(change(&[(1001, "b.test")], &[5]), report(2)));
        assert!(!updates.change(change(&[(1002, "c.test")], &[1001]), report(3)));
        let mut last = Vec::new();
        while reports.try_iter().last() != Some(3) {
            allow.send(()).unwrap();
            last = put.recv().unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(last.len(), 1001); // 1,000, and a and c, without 5
        assert!(last.contains(&("c.test".to_owned(), 1002)));
        assert!(!last.iter().any(|(_, number)| *number == 1001 || *number == 5));
        assert!(put.try_recv().is_err(), "changes that wait are put into force together");
    }

    #[test]
    fn a_change_of_few_routes_comes_behind_one_of_many_that_waits() {
        let (mut updates, put, _) = updates(200);
        updates.has_thread = true; // there is none: what waits goes on waiting
        let names: Vec<_> = (200..300).map(|number| (number, format!("n{number}.test"))).collect();
        let names: Vec<_> = names.iter().map(|(number, name)| (*number, &**name)).collect();
        assert!(!updates.change(change(&names, &[]), || {}));
        assert!(!updates.change(change(&[], &[250]), || {}), "it would remove nothing");
        updates.shared.work(updates.shared.lock(), &*updates.put);
        let routes = put.try_recv().unwrap();
        assert!(routes.len() == 299 && !routes.iter().any(|(_, number)| *number == 250));
    }

    #[test]
    fn a_panic_while_a_change_is_put_into_force_leaves_later_changes_to_the_thread() {
        let mut table = RouteTable::new(0);
        let names: Vec<_> = (0..1000).map(|number| (number, format!("n{number}.test"))).collect();
        let names: Vec<_> = names.iter().map(|(number, name)| (*number, &**name)).collect();
        table.apply(change(&names, &[]));
        let (sender, put) = channel();
        let mut updates = CodeUpdates::new(table, move |code| {
            let routes = told(&code);
            assert!(routes.iter().any(|(name, _)| name == "second.test"), "told to");
            sender.send(routes).unwrap();
        });
        let (sender, reports) = channel();
        for (number, name) in [(1000, "first.test"), (1001, "second.test")] {
            let sender = sender.clone();
            let report = move || sender.send(name).unwrap();
            assert!(!updates.change(change(&[(number, name)], &[]), report));
            let wait = Duration::from_secs(10);
            assert_eq!(reports.recv_timeout(wait).unwrap(), name, "the change is reported");
        }
        let routes = put.try_recv().unwrap();
        for name in ["first.test", "second.test"] {
            assert!(routes.iter().any(|(known, _)| known == name), "{name} is in force");
        }
    }

    #[test]
    fn a_change_is_begun_while_the_one_before_is_put_into_force_and_each_is_told_that_fails() {
        let (sender, begun) = channel();
        let mut table = RouteTable::new(0);
        table.apply(change(&[(0, "a.test")], &[]));
        let mut updates = CodeUpdates::new(table, move |code| {
            let (publisher, published) = channel();
            sender.send((told(&code).len(), publisher)).unwrap();
            published
        });
        let first = updates.begin(change(&[(1, "b.test")], &[]), || unreachable!()).unwrap();
        let second = updates.begin(change(&[(2, "c.test")], &[]), || unreachable!()).unwrap();
        let ((one, of_first), (two, of_second)) = (begun.recv().unwrap(), begun.recv().unwrap());
        assert_eq!((one, two), (2, 3), "in their order");
        of_second.send(()).unwrap();
        assert!(second.wait().is_ok());
        drop(of_first);
        assert!(first.wait().is_err(), "the publisher has failed");
    }

    #[test]
    fn guards_are_put_into_force_with_the_routes() {
        let mut table = RouteTable::new(0);
        let guards = BTreeMap::from([(7, "*.test".parse().unwrap())]);
        table.apply(CodeChange { guards, ..change(&[(1, "a.test")], &[]) });
        table.apply(change(&[], &[1]));
        let code = table.code();
        assert!(code.routes.is_empty() && code.guards.len() == 1);
        assert!(matches!(code.guards[0].handler, Guard::Elsewhere(it) if it.handler == 7));
    }

    #[test]
    fn changes_of_a_route_that_waits_take_the_place_of_it() {
        let mut first = change(&[(1, "a.test")], &[]);
        RouteTable::merge(&mut first, change(&[(2, "a.test")], &[1]));
        assert_eq!((first.added.len(), first.removed.len()), (1, 0));
    }
}
