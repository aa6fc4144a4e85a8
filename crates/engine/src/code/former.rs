//! Former names of what a reply has, for one version.

use super::reply::Reply;
use zonda_wire::{Ede, Name};

impl Reply {
    /// Former name of [`servfail`](Self::servfail).
    #[deprecated(note = "it is called `servfail`")]
    pub fn fail(&mut self, why: &str) {
        self.servfail(why);
    }

    /// Former name of [`drop`](Self::drop).
    #[deprecated(note = "it is called `drop`")]
    pub fn silence(&mut self) {
        self.drop();
    }

    /// Former name of [`extended_error`](Self::extended_error).
    #[deprecated(note = "it is called `extended_error`")]
    pub fn set_error(&mut self, code: Ede, text: &str) {
        self.extended_error(code, text);
    }

    /// Adds an SOA record, made for a zone of this name, by which resolvers cache a negative reply
    /// for some seconds.
    #[deprecated(note = "`cache_negative` takes the record of the zone that holds the name")]
    pub fn negative_ttl(&mut self, zone: &Name, ttl_secs: u32) {
        self.push_soa_of(zone, ttl_secs);
    }
}
