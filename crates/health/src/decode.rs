//! Decoders of what targets send, for all that no library decodes.
//!
//! Each takes any octets and never panics; a fuzz target has them all.

mod certificate;
mod dns;
mod echo;
mod grpc;
mod http;

pub use certificate::not_after_days;
pub use dns::{dns_answers, dns_judge, dns_query};
pub use echo::{Family, echo_reply, echo_request};
pub use grpc::{health_request, health_response};
pub use http::HttpResponse;
