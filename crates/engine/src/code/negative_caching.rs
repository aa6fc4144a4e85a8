//! How long resolvers cache negative replies of code.

use super::record::Record;
use super::reply::Reply;

/// How long resolvers are to cache a negative reply: a number of seconds, or the SOA record that
/// says it (rfc2308#5). [`Reply::nxdomain_with`] and [`Reply::no_data_with`] take it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how long resolvers cache a negative reply",
    label = "expected seconds or a record",
    note = "give a number of seconds, a `u32`, or a `zonda::Soa` record"
)]
pub trait NegativeCaching {
    /// Has a negative reply say it.
    #[doc(hidden)]
    fn apply(self, reply: &mut Reply);
}

impl NegativeCaching for u32 {
    fn apply(self, reply: &mut Reply) {
        reply.cache_negative(self);
    }
}

impl<R: Record> NegativeCaching for R {
    fn apply(self, reply: &mut Reply) {
        reply.clear_soa();
        reply.authority(self);
    }
}
