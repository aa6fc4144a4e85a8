//! What a reload changes beside the publisher: the bounds of TCP, the query log, the server's log.

use super::{Control, ReloadResult};
use crate::threads::tcp_config;
use crate::unit_states::{Scope, UnitStates};
use std::sync::Arc;
use zonda_config::Config;

impl Control {
    /// Puts a configuration into force, with what threads outside of the publisher's care have of
    /// it: the bounds of TCP, the query log and the server's own log.
    pub(super) fn put_into_force(&self, units: &mut UnitStates, config: Config) -> ReloadResult {
        let former = Arc::clone(&self.state().config);
        let sink = if config.query_log == former.query_log {
            None
        } else {
            let opened = self.query_log.sink(&config.query_log);
            Some(opened.map_err(|error| format!("the query log cannot be opened: {error}"))?)
        };
        let outcome = self.load_and_publish(units, Some(config), Scope::Changed)?;
        let state = self.state();
        if state.config.tcp != former.tcp {
            self.tcp.configure(&tcp_config(&state.config));
        }
        if let (true, Some(set_level)) = (state.config.log != former.log, &self.log_level) {
            set_level(state.config.log.level);
        }
        if let Some(sink) = sink {
            self.query_log.replace(sink);
        }
        Ok(outcome)
    }
}
