//! Servers that questions are forwarded to, and how they are asked.

use super::Importer;
use super::clauses::Clauses;
use super::left;
use super::statement::Cursor;
use crate::document::Effect;
use crate::error::{ImportError, Problem};
use std::net::{IpAddr, SocketAddr};
use zonda_wire::Name;

/// Servers that a zone can be forwarded to.
const SERVERS_MAX: usize = 64;
/// What a `forwarders` statement without `tls` has in its place.
const UDP: (&str, u16) = ("", 53);
/// The same with `tls`.
const TLS: (&str, u16) = ("tls://", 853);

impl<'s> Importer<'s> {
    /// Reads `tls` statements: the names that certificates must be for.
    pub(super) fn tls(&mut self, top: &mut Clauses<'s>) -> Result<(), ImportError> {
        for mut cursor in top.take_all("tls") {
            let name = cursor.word("the name of a `tls` statement")?;
            let mut clauses = Clauses::new(cursor.block("`{`")?);
            cursor.end()?;
            let host = match clauses.take("remote-hostname")? {
                Some(mut host) => Some(host.value("the name in a certificate", |word| {
                    let is_host =
                        |octet: u8| octet.is_ascii_alphanumeric() || b"-.".contains(&octet);
                    let name: Name = word.parse().ok().filter(|name| *name != Name::root())?;
                    word.bytes().all(is_host).then(|| name.to_string())
                })?),
                None => None,
            };
            if let Some(file) = clauses.take("ca-file")? {
                let why = "write it into `ca-file` of the [zone.forward] that needs it";
                self.leave(file, Effect::Lost, why);
            }
            let why = "Zonda has TLS 1.2 and 1.3, and no keys of its own";
            self.left.extend(clauses.rest().map(|it| left::because(it, Effect::Needless, why)));
            self.certificate_names.insert(name, host);
        }
        Ok(())
    }

    /// Reads servers, their ports, and whether they are asked over TLS.
    pub(super) fn servers(&mut self, mut cursor: Cursor<'s>) -> Result<Vec<String>, ImportError> {
        let (mut port, mut tls) = (None, None);
        self.port_and_tls(&mut cursor, &mut port, &mut tls)?;
        let list = cursor.block("`{`")?;
        cursor.end()?;
        let mut servers = Vec::new();
        for statement in list {
            let mut server = statement.cursor();
            let address: IpAddr = server.parsed("the address of a server")?;
            let (mut port, mut tls) = (port, tls.clone());
            self.port_and_tls(&mut server, &mut port, &mut tls)?;
            server.end()?;
            let (scheme, default) = if tls.is_some() { TLS } else { UDP };
            let port = port.unwrap_or(default);
            let place = match port == default {
                true => address.to_string(),
                false => SocketAddr::new(address, port).to_string(),
            };
            let name = match tls {
                Some(Some(name)) => format!("#{}", name.trim_end_matches('.')),
                Some(None) => {
                    let why = "its certificate must be valid for the address; BIND asks for none";
                    self.leave(statement.cursor(), Effect::Differs, why);
                    String::new()
                }
                None => String::new(),
            };
            let server = format!("{scheme}{place}{name}");
            if servers.contains(&server) {
                self.leave(
                    statement.cursor(),
                    Effect::Needless,
                    "this server stands there already",
                );
            } else if servers.len() == SERVERS_MAX {
                self.leave(statement.cursor(), Effect::Lost, "a zone has at most 64 servers");
                break;
            } else {
                servers.push(server);
            }
        }
        Ok(servers)
    }

    /// Reads `port` and `tls`, as far as they are there.
    fn port_and_tls(
        &self,
        cursor: &mut Cursor<'s>,
        port: &mut Option<u16>,
        tls: &mut Option<Option<String>>,
    ) -> Result<(), ImportError> {
        if cursor.passes("port") {
            *port = Some(cursor.value("a port", |word| word.parse().ok().filter(|it| *it > 0))?);
        }
        if cursor.passes("tls") {
            let begin = *cursor;
            let name = cursor.word("the name of a `tls` statement")?;
            *tls = Some(match (name, self.certificate_names.get(name)) {
                ("ephemeral", _) => None,
                (_, Some(host)) => host.clone(),
                (_, None) => return Err(begin.problem(Problem::UnknownTls(name.to_owned()))),
            });
        }
        Ok(())
    }
}
