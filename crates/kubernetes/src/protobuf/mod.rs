//! Objects of the API in Protocol Buffers, decoded into those that names need.
//!
//! ```text
//! object  "k8s\0" | Unknown { raw = 2: the message of the object }
//! list    "k8s\0" | Unknown { raw = 2: message { metadata = 1 | items = 2, each an object } }
//! watch   for each event a length of 4 octets, big endian | WatchEvent { type = 1 | object = 2 }
//! ```
//!
//! The numbers of the fields are those of the API's `generated.proto` files. A message has no names
//! of fields in it, so that what the API adds later is passed over.

pub mod decode;
mod fields;
pub mod split;

/// What stands before an object or a list.
pub const MAGIC: &[u8; 4] = b"k8s\0";
