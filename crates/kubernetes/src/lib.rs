//! A client of the Kubernetes API that follows the objects which names come from.
//!
//! [`follow()`] lists all objects of a kind, watches their changes, and sends both to a channel; it
//! begins again after failures. It asks for Protocol Buffers, and takes JSON as well. Lists and
//! watches are cut into objects as they come, and decoded one at a time into those of
//! `zonda_cluster`. Deliberately absent: names, zones, and copies of objects.

mod base64;
mod connection;
pub mod decode;
pub mod encode;
mod error;
mod exec;
mod follow;
mod format;
mod kubeconfig;
mod limits;
mod lists;
mod paced;
pub mod protobuf;
mod settings;
pub mod split;
mod tls;

pub use error::{ConnectError, PluginError};
pub use follow::{Event, Subject, follow, follow_within};
pub use limits::Limits;
pub use lists::await_lists;
pub use settings::{Place, Settings};
