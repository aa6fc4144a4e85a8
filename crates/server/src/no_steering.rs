//! Pools in a server without the feature `whole`: only configuration files and flags of the command
//! line have some.

use std::convert::Infallible;
use std::sync::Arc;
use zonda_balance::PoolPlan;
use zonda_config::Config;
use zonda_engine::steering::Steering;
use zonda_wire::Name;
use zonda_zone::HashSeed;

/// What the thread of the checks is started with, of which there is no instance.
pub struct CheckMessages(Infallible);

/// The pools as the publisher has them: none.
#[derive(Default)]
pub struct Pools(());

impl Pools {
    /// Takes over no pools; nothing is different.
    pub fn configure(&mut self, _config: &Config, _seed: HashSeed) -> bool {
        false
    }

    /// Puts no plans in place; workers have none.
    pub fn replace(&mut self, _epoch: u64, _plans: Vec<(u32, Arc<PoolPlan>)>) -> bool {
        false
    }

    /// Tells of no zones, as no name is steered.
    pub fn warn_of_signed_zones(&mut self, _is_signed: impl Fn(&Name) -> bool) {}

    /// What workers choose by: nothing.
    pub fn steering(&self) -> Option<Arc<Steering>> {
        None
    }

    /// What the thread of the checks is started with: there is no thread.
    pub fn take_messages(&mut self) -> Option<CheckMessages> {
        None
    }
}

/// The thread of the checks.
pub mod checks {
    use super::{Arc, CheckMessages, Infallible};
    use crate::publish::PublisherHandle;
    use crate::watchdog::Watchdog;
    use tokio::runtime::Handle;

    /// The checks of members, of which there is no instance.
    #[derive(Clone)]
    pub struct ChecksHandle(Infallible);

    impl ChecksHandle {
        /// Ends the thread.
        pub fn stop(&self) {
            match self.0 {}
        }
    }

    /// Prepares the thread, which nothing can be told.
    pub fn start(
        messages: CheckMessages,
        _publisher: PublisherHandle,
        _runtime: &Handle,
        _watchdog: &Arc<Watchdog>,
    ) -> ChecksHandle {
        match messages.0 {}
    }
}
