//! How long resolvers cache negative replies of code.

use super::record::Record;
use super::reply::Reply;
use zonda_wire::Type;

/// How long resolvers are to cache a negative reply: a number of seconds, or the SOA record that
/// says it (rfc2308#5); another record is SERVFAIL. [`Reply::nxdomain_with`] and [`Reply::no_data_with`] take it.
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
        if self.rtype() != Type::SOA {
            return reply.servfail("the record that says how long to cache it is no SOA record");
        }
        reply.clear_soa();
        reply.authority(self);
    }
}

impl Reply {
    /// Ends the query by an NXDOMAIN reply, as [`nxdomain`](Self::nxdomain) does, and says how long
    /// resolvers cache it: `60` seconds, say, as [`cache_negative`](Self::cache_negative) does, or
    /// an SOA record, which is sent as it is.
    pub fn nxdomain_with(&mut self, caching: impl NegativeCaching) {
        self.nxdomain();
        caching.apply(self);
    }

    /// Ends the query by a NODATA reply, as [`no_data`](Self::no_data) does, and says how long
    /// resolvers cache it, as [`nxdomain_with`](Self::nxdomain_with) does.
    pub fn no_data_with(&mut self, caching: impl NegativeCaching) {
        self.no_data();
        caching.apply(self);
    }
}
