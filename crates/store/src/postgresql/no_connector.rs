//! Connections of PostgreSQL's client in a program without TLS. The name is that of `connector`.

use crate::StoreError;
use crate::tls::Trust;
use postgres::{Client, Config, NoTls};

/// Connects without encryption; returns that as well.
///
/// # Errors
/// When the server cannot be reached or refuses the credentials, or encryption is required.
pub(super) fn connect(config: &Config, _: &Trust) -> Result<(Client, bool), StoreError> {
    config.connect(NoTls).map(|client| (client, false)).map_err(StoreError::failed)
}
