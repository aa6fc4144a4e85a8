//! The feeds of Kubernetes clusters in a server without the feature `whole`: no configuration has a
//! cluster.

use crate::publish::PublisherHandle;
use std::io;
use std::sync::mpsc::SyncSender;
use zonda_config::Config;

/// The feeds of all clusters: none.
#[derive(Default)]
pub struct ClusterFeeds(());

impl ClusterFeeds {
    /// Follows no clusters.
    ///
    /// # Errors
    /// None.
    pub fn follow(
        &self,
        _publisher: &PublisherHandle,
        _config: &Config,
        _first: &SyncSender<()>,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Leaves no files to another process.
    pub fn leave_files(&self, _are_foreign: bool) {}

    /// Ends no feeds.
    pub fn stop(&self) {}
}
