//! A client of the Kubernetes API that follows the objects which names come from.
//!
//! [`follow`] lists all objects of a kind, watches their changes, and sends both to a channel; it
//! begins again after failures. Lists and watches are cut into objects as they come, and decoded one
//! at a time into those of `zonda_cluster`. Deliberately absent: names, zones, and copies of objects.

mod connection;
mod decode;
mod error;
mod follow;
mod kubeconfig;
mod settings;
mod split;
mod tls;

pub use error::ConnectError;
pub use follow::{Event, Subject, follow};
pub use settings::{Place, Settings};
