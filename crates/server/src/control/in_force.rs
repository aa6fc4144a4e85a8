//! What a reload changes beside the publisher: listeners, the bounds of TCP, the query log, the
//! server's log.

use super::{Control, ReloadResult};
use crate::threads::tcp_config;
use crate::unit_states::{Scope, UnitStates};
use std::sync::Arc;
use zonda_config::Config;

impl Control {
    /// Warns of what differs between the running configuration and the next one, and waits for a
    /// restart.
    pub(super) fn warn_of_restart(running: &Config, next: &Config) {
        for section in running.restart_sections(next) {
            let section = match &*section {
                "" => "the top of the file",
                "[[listen]]" => {
                    tracing::warn!(
                        "`udp`, `tcp`, `workers` and buffers of listeners that go on take effect \
                         at the next start"
                    );
                    continue;
                }
                section => section,
            };
            tracing::warn!(section, "changes of the section take effect at the next start");
        }
    }

    /// Gives the listeners of the next configuration their places.
    pub(super) fn place_listeners(&self, running: &Config, next: &mut Config) {
        let waiting = next.place_listeners(running, |place| self.listeners.is_free(place));
        for address in waiting {
            tracing::warn!(
                %address,
                "listeners at the address change with the interface, at the next start"
            );
        }
    }

    /// Puts a configuration into force, with what threads outside of the publisher's care have of
    /// it: listeners, the bounds of TCP, the query log and the server's own log.
    pub(super) fn put_into_force(&self, units: &mut UnitStates, config: Config) -> ReloadResult {
        let former = Arc::clone(&self.state().config);
        let sink = if config.query_log == former.query_log {
            None
        } else {
            let opened = self.query_log.sink(&config.query_log);
            Some(opened.map_err(|error| format!("the query log cannot be opened: {error}"))?)
        };
        let bound = self.listeners.bind(&config)?;
        let mut outcome = self.load_and_publish(units, Some(config), Scope::Changed)?;
        let state = self.state();
        outcome.failed.extend(self.listeners.follow(bound, &state.config));
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
