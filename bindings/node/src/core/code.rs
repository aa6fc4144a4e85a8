//! What of JavaScript is called for which names.

use std::collections::BTreeMap;
use std::sync::Arc;

use napi_derive::napi;
use zonda_engine::code::{Handler, Pattern, Route};
use zonda_server::{Code, CodeChange, CodeUpdates};
use zonda_wire::rdata::print::Presentation;
use zonda_wire::{Name, Type};

use super::{Core, error};
use crate::read::name_text;
use crate::server::{self, RUNTIME};

/// A pattern and the number of its handler, or of its guard.
#[napi(object)]
pub struct NumberedRoute {
    /// Pattern of the route.
    pub pattern: String,
    /// Number of the handler.
    pub handler: u32,
}

/// The SOA record of a negative reply.
#[napi(object)]
pub struct NegativeSoa {
    /// The zone's name, with its final dot.
    pub name: String,
    /// The data of the record, as in a zone file.
    pub data: String,
}

#[napi]
impl Core {
    /// Says which handlers and guards there are, and whether there is middleware for all queries;
    /// from now on if it runs.
    #[napi]
    pub fn set_code(
        &mut self,
        routes: Vec<NumberedRoute>,
        has_middleware: bool,
        guards: Option<Vec<NumberedRoute>>,
    ) -> napi::Result<()> {
        let guards = by_number(guards.unwrap_or_default())?;
        let table = server::route_table(by_number(routes)?, guards, has_middleware);
        self.code = table.code();
        if let Ok(running) = self.shared.running() {
            running.set_code(self.code.clone());
        }
        let shared = Arc::downgrade(&self.shared);
        self.updates = Some(CodeUpdates::new(table, move |code| {
            if let Some(Ok(running)) = shared.upgrade().map(|shared| shared.running()) {
                running.set_code(code);
            }
        }));
        Ok(())
    }

    /// Adds guards, adds and removes handlers while the server runs, and says whether there is
    /// middleware for all queries. Returns whether that is in force; else an event of `token`
    /// follows when it is.
    ///
    /// # Errors
    /// The first pattern that is none.
    #[napi(catch_unwind)]
    pub fn change_code(
        &mut self,
        removed: Vec<u32>,
        added: Vec<NumberedRoute>,
        guards: Vec<NumberedRoute>,
        has_middleware: bool,
        token: u32,
    ) -> napi::Result<bool> {
        let (removed, added) = (removed.into_iter().collect(), by_number(added)?);
        let guards = by_number(guards)?;
        let Some(updates) = &mut self.updates else { return Ok(true) }; // `set_code` comes first
        let shared = Arc::clone(&self.shared);
        let change = CodeChange { removed, added, guards, has_middleware };
        Ok(updates.change(change, move || shared.tell_end(token, None)))
    }

    /// Has workers answer all names from the table, so that JavaScript has nothing to do.
    #[napi]
    pub fn answer_from_table(&mut self) -> napi::Result<()> {
        let pattern = "*".parse::<Pattern>().map_err(error)?;
        let handler = Handler::Here(Arc::clone(&self.table) as Arc<_>);
        self.code = Code { routes: vec![Route { pattern, handler }], ..Code::default() };
        if let Ok(running) = self.shared.running() {
            running.set_code(self.code.clone());
        }
        Ok(())
    }

    /// The number of the handler that is called for a query which the handler of a pattern has
    /// passed on; of the first one, without a pattern. Nothing if there is no further one.
    ///
    /// # Errors
    /// When the server does not run, or the name or pattern is none.
    #[napi(catch_unwind)]
    pub fn next_handler(
        &self,
        name: String,
        qtype: u32,
        passed: Option<String>,
    ) -> napi::Result<Option<u32>> {
        let name: Name = name.parse().map_err(error)?;
        let passed = passed.map(|text| server::pattern(&text)).transpose().map_err(error)?;
        let qtype = Type(qtype as u16); // of a query
        let running = self.shared.running()?;
        Ok(running.next_handler((name.as_wire(), qtype), passed.as_ref(), RUNTIME))
    }

    /// The SOA record of a negative reply that resolvers are to keep for some seconds, from the
    /// zone of this server that holds the name; nothing if there is none.
    ///
    /// # Errors
    /// When the server does not run, or the name is none.
    #[napi(catch_unwind)]
    pub fn negative_soa(&self, name: String, ttl_secs: u32) -> napi::Result<Option<NegativeSoa>> {
        let name: Name = name.parse().map_err(error)?;
        let Some((zone, rdata)) = self.shared.running()?.negative_soa(name.as_wire(), ttl_secs)
        else {
            return Ok(None);
        };
        let data = Presentation { rtype: Type::SOA, rdata: &rdata }.to_string();
        Ok(Some(NegativeSoa { name: name_text(zone.as_wire()), data }))
    }
}

/// Patterns by the numbers of their handlers.
fn by_number(routes: Vec<NumberedRoute>) -> napi::Result<BTreeMap<u32, Pattern>> {
    let read = |NumberedRoute { pattern, handler }| {
        Ok((handler, server::pattern(&pattern).map_err(error)?))
    };
    routes.into_iter().map(read).collect()
}
