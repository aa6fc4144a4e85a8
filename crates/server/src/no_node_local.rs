//! The interface of a node's own DNS cache in a server without the feature `whole`: only
//! configuration files ask for one.

use crate::watchdog::Watchdog;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::sync::Arc;
use zonda_config::NodeLocal;

/// Why the interface could not be had, of which there is no instance.
#[derive(Debug)]
pub enum NodeLocalError {}

/// What the running server has of the interface, of which there is no instance.
#[derive(Debug)]
pub struct NodeInterface(Infallible);

/// The interface while the server starts, of which there is no instance.
pub struct ClaimedInterface(Infallible);

/// The interface while the server runs, of which there is no instance.
pub struct KeptInterface(Infallible);

impl fmt::Display for NodeLocalError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for NodeLocalError {}

impl NodeInterface {
    /// Marks the interface as this process's again.
    pub fn take_back(&self) {
        match self.0 {}
    }
}

impl ClaimedInterface {
    /// Makes no interface, as no configuration has one.
    ///
    /// # Errors
    /// None.
    pub fn claim(_config: Option<&NodeLocal>) -> Result<Option<Self>, NodeLocalError> {
        Ok(None)
    }

    /// What other threads have of the interface.
    pub fn own(&self) -> Arc<NodeInterface> {
        match self.0 {}
    }

    /// Looks after the interface from now on.
    ///
    /// # Errors
    /// None.
    pub fn keep(self, _watchdog: &Arc<Watchdog>) -> io::Result<KeptInterface> {
        match self.0 {}
    }
}

impl KeptInterface {
    /// Removes the interface.
    pub fn end(self) {
        match self.0 {}
    }
}
