//! What code may learn of a query's client from its EDNS options.

use super::query::Query;
use zonda_wire::client::{ClientSubnet, Cookie};

impl<'a> Query<'a> {
    /// The network for which a resolver asks (rfc7871), if the configuration has the server believe
    /// that resolver; as [`peer`](Self::peer). The reply repeats it with the
    /// [scope](super::Reply::client_subnet_scope) that the code says.
    #[must_use]
    pub fn client_subnet(&self) -> Option<ClientSubnet> {
        self.saw_client.set(true);
        self.client_subnet?.subnet()
    }

    /// The DNS cookies of the client and, from a former reply, of the server (rfc7873); as
    /// [`peer`](Self::peer). None in [`Stage::after`](super::Stage::after).
    #[must_use]
    pub fn cookie(&self) -> Option<Cookie<'a>> {
        self.wire().cookie(self.message())
    }
}
