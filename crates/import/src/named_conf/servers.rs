//! Servers that questions are forwarded to, and how they are asked.

use super::Importer;
use super::clauses::Clauses;
use super::left;
use super::statement::{Cursor, Statement};
use crate::document::Effect;
use crate::error::{ImportError, Place, Problem};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use zonda_wire::Name;

/// Servers that a zone can be forwarded to.
const SERVERS_MAX: usize = 64;
/// What a `forwarders` statement without `tls` has in its place.
const UDP: (&str, u16) = ("", 53);
/// The scheme and port of servers with `tls`.
const TLS: (&str, u16) = ("tls://", 853);

/// Servers of a zone.
#[derive(Default)]
pub struct Servers {
    /// Servers as they are written; none twice.
    pub to: Vec<String>,
    /// The file of certificates that theirs must lead to, and where it is named.
    pub ca_file: Option<(String, Place)>,
}

/// What a `tls` statement asks of certificates.
#[derive(Clone, Default)]
pub struct Certificates<'s> {
    /// Name that the certificates must show.
    name: Option<String>,
    /// File of the roots of the certificates, and the clause that names it.
    roots: Option<(PathBuf, &'s Statement)>,
}

impl<'s> Importer<'s> {
    /// Reads `tls` statements: what certificates must be for, and lead to.
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
            let roots = match clauses.take("ca-file")? {
                Some(mut file) => Some((self.base.join(file.word("a file")?), file.statement())),
                None => None,
            };
            let why = "Zonda has TLS 1.2 and 1.3, and no keys of its own";
            self.left.extend(clauses.rest().map(|it| left::because(it, Effect::Needless, why)));
            self.certificates.insert(name, Certificates { name: host, roots });
        }
        Ok(())
    }

    /// Reads servers, their ports, and whether they are asked over TLS.
    pub(super) fn servers(&mut self, mut cursor: Cursor<'s>) -> Result<Servers, ImportError> {
        let (mut port, mut tls) = (None, None);
        self.port_and_tls(&mut cursor, &mut port, &mut tls)?;
        let list = cursor.block("`{`")?;
        cursor.end()?;
        let (mut servers, mut all_roots) = (Vec::new(), Vec::new());
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
            let name = match &tls {
                Some(Certificates { name: Some(name), .. }) => {
                    format!("#{}", name.trim_end_matches('.'))
                }
                Some(Certificates { roots: None, .. }) => {
                    let why = "its certificate must be valid for the address; BIND asks for none";
                    self.leave(statement.cursor(), Effect::Differs, why);
                    String::new()
                }
                _ => String::new(),
            };
            all_roots.extend(tls.map(|tls| tls.roots));
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
        Ok(Servers { to: servers, ca_file: self.ca_file(&all_roots) })
    }

    /// Returns the file that the certificates of all these servers must lead to, which can be one
    /// only.
    fn ca_file(&mut self, all: &[Option<(PathBuf, &'s Statement)>]) -> Option<(String, Place)> {
        let path = |roots: &Option<(PathBuf, _)>| roots.as_ref().map(|(path, _)| path.clone());
        if all.iter().any(|roots| path(roots) != path(&all[0])) {
            for (_, clause) in all.iter().flatten() {
                let why = "`ca-file` in [zone.forward] is for all servers of the zone that are \
                    asked over TLS, of which some have another one or none here";
                self.leave(clause.cursor(), Effect::Lost, why);
            }
            return None;
        }
        let (path, clause) = all.first()?.as_ref()?;
        Some((path.display().to_string(), clause.place().clone()))
    }

    /// Reads `port` and `tls`, as far as they are there.
    fn port_and_tls(
        &self,
        cursor: &mut Cursor<'s>,
        port: &mut Option<u16>,
        tls: &mut Option<Certificates<'s>>,
    ) -> Result<(), ImportError> {
        if cursor.passes("port") {
            *port = Some(cursor.value("a port", |word| word.parse().ok().filter(|it| *it > 0))?);
        }
        if cursor.passes("tls") {
            let begin = *cursor;
            let name = cursor.word("the name of a `tls` statement")?;
            *tls = Some(match (name, self.certificates.get(name)) {
                ("ephemeral", _) => Certificates::default(),
                (_, Some(certificates)) => certificates.clone(),
                (_, None) => return Err(begin.problem(Problem::UnknownTls(name.to_owned()))),
            });
        }
        Ok(())
    }
}
