//! What a reload changes beside the publisher: listeners, the bounds of TCP, the query log, the
//! server's log.

use super::{Control, ReloadResult};
use crate::load::{LoadedUnit, load_all};
use crate::threads::tcp_config;
use crate::unit_states::{Plan, Scope, UnitStates};
use crate::zone_set::Outcome;
use std::sync::Arc;
use zonda_config::Config;
use zonda_netio::process;

/// What was loaded for a plan.
struct LoadedPlan {
    plan: Plan,
    units: Vec<LoadedUnit>,
}

impl Control {
    /// Loads what changed and puts it into force.
    pub(crate) fn load_and_publish(
        &self,
        units: &mut UnitStates,
        config: Option<Config>,
        scope: Scope<'_>,
    ) -> ReloadResult {
        let loaded = self.load(units, config.as_ref(), scope)?;
        if config.is_none() && loaded.plan.is_empty() {
            return Ok(Outcome::default()); // nothing that the publisher would have to do
        }
        self.apply(units, config, loaded)
    }

    /// Loads what changed, for another configuration if there is one.
    fn load(
        &self,
        units: &mut UnitStates,
        config: Option<&Config>,
        scope: Scope<'_>,
    ) -> Result<LoadedPlan, String> {
        self.publisher.check().map_err(|error| error.to_string())?; // nothing is read in vain
        let state = self.state();
        let planned = config.unwrap_or(&state.config);
        let plan = units.plan(&state.zone_set, (planned, &state.config), scope);
        let threads = process::available_cpus();
        let loaded = load_all(&plan.stale(), planned, (&state.zone_set, state.seed), threads);
        Ok(LoadedPlan { plan, units: loaded })
    }

    /// Puts into force what was loaded, with another configuration if there is one.
    fn apply(
        &self,
        units: &mut UnitStates,
        config: Option<Config>,
        loaded: LoadedPlan,
    ) -> ReloadResult {
        let LoadedPlan { plan, units: loaded } = loaded;
        self.publisher.apply(units, config, plan, loaded).map_err(|error| error.to_string())
    }

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
                "[admin]" => {
                    tracing::warn!(
                        "keys of [admin] but `health`, `ready`, `metrics` and `lameduck` take \
                         effect at the next start"
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
    /// it: listeners, the bounds of TCP, the query log and the server's own log. What takes long
    /// or may fail comes first: no socket is bound for long without being answered on, and none is
    /// left where the configuration does not come into force. Where the publisher panics, it may be
    /// in force all the same, and has its listeners then. Returns what was done, and whether all
    /// new listeners are answered on.
    pub(super) fn put_into_force(
        &self,
        units: &mut UnitStates,
        config: Config,
    ) -> Result<(Outcome, bool), String> {
        let former = Arc::clone(&self.state().config);
        let sink = if config.query_log == former.query_log {
            None
        } else {
            let opened = self.query_log.sink(&config.query_log);
            Some(opened.map_err(|error| format!("the query log cannot be opened: {error}"))?)
        };
        let loaded = self.load(units, Some(&config), Scope::Changed)?;
        let bound = self.listeners.bind(&config)?;
        let pages = self.pages.bind(&config.admin, &former.admin, self.listeners.is_offered())?;
        let closed = self.listeners.close_those_gone(&config, &bound);
        let mut applied = self.apply(units, Some(config), loaded);
        if applied.is_err() {
            let _ = self.publisher.wait_for_state(); // of one that is down, it stays as it is
        }
        let state = self.state();
        let not_started = self.listeners.start_bound(bound, &state.config);
        let is_whole = not_started.is_empty();
        match &mut applied {
            Ok(outcome) => outcome.failed.extend(not_started),
            Err(_) => {
                for error in not_started {
                    tracing::error!(error, "a listener is not started");
                }
                self.listeners.restore(closed, &state.config);
            }
        }
        self.pages.follow(pages, &state.config.admin);
        if state.config.tcp != former.tcp {
            self.tcp.configure(&tcp_config(&state.config));
        }
        if let (true, Some(set_level)) = (state.config.log != former.log, &self.log_level) {
            set_level(state.config.log.level);
        }
        if let (true, Some(sink)) = (state.config.query_log != former.query_log, sink) {
            self.query_log.replace(sink);
        }
        applied.map(|outcome| (outcome, is_whole))
    }
}
