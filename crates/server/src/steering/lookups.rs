//! The names of members whose addresses are followed.

use super::Message;
use std::collections::HashMap;
use std::sync::mpsc::Sender;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use zonda_config::AddressLookup;
use zonda_forward::Bootstrap;

/// Tasks that look names up, one for each.
pub struct Lookups {
    runtime: Handle,
    messages: Sender<Message>,
    /// The tasks, by the name of the pool whose members the addresses are.
    tasks: HashMap<String, (AddressLookup, AbortHandle)>,
}

impl Lookups {
    /// Looks nothing up yet; what is found is sent as messages.
    pub fn new(runtime: Handle, messages: Sender<Message>) -> Self {
        Self { runtime, messages, tasks: HashMap::new() }
    }

    /// Looks these names up from now on, by the name of the pool, and ends the tasks of all
    /// former ones.
    pub fn set(&mut self, lookups: HashMap<String, AddressLookup>) {
        self.tasks.retain(|pool, (lookup, task)| {
            let stays = lookups.get(pool) == Some(lookup);
            if !stays {
                task.abort();
            }
            stays
        });
        for (pool, lookup) in lookups {
            if !self.tasks.contains_key(&pool) {
                let task = self.start(pool.clone(), &lookup);
                self.tasks.insert(pool, (lookup, task));
            }
        }
    }

    /// Starts the task of a name.
    fn start(&self, pool: String, lookup: &AddressLookup) -> AbortHandle {
        let AddressLookup { name, servers } = lookup.clone();
        let messages = self.messages.clone();
        let watch = Bootstrap { name, port: 0, servers }.watch(move |addresses| {
            let message = Message::Addresses(pool.clone(), addresses.to_vec());
            messages.send(message).is_ok()
        });
        self.runtime.spawn(watch).abort_handle()
    }
}

impl Drop for Lookups {
    fn drop(&mut self) {
        self.tasks.values().for_each(|(_, task)| task.abort());
    }
}
