//! What can be wrong with the servers that a zone is forwarded to.

use crate::server_file::ServerFileError;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use zonda_client::TlsError;
use zonda_upstream::Upstream;
use zonda_upstream::pool::UPSTREAMS_MAX;
use zonda_wire::Name;

/// A mistake in the servers of a `[zone.forward]`.
#[derive(Debug)]
pub enum Mistake {
    /// No server is given.
    NoServers,
    /// More servers are given than a zone may have.
    Many(usize),
    /// More EDNS options than each query may have, and how many it may have.
    ManyOptions(usize, usize),
    /// More codes of options that depend on those of clients than all zones may have, and how many
    /// they may have.
    ManyCodes(usize, usize),
    /// More than one option that tells the network of the client.
    TwoSubnets,
    /// A server that is given twice.
    Twice(Upstream),
    /// A server that is given by name, without a bootstrap server to look it up.
    NoBootstrap(Name),
    /// A resolver for ALIAS records that is given by name.
    ResolverByName(Name),
    /// A bootstrap server without a name to look up.
    BootstrapForNothing,
    /// A bootstrap server is this server itself, which cannot look up its own upstreams.
    BootstrapIsSelf(SocketAddr),
    /// A server over TLS, HTTPS or QUIC, without which this program was built.
    NotBuilt,
    /// A server whose certificate could show no name.
    NoCertificateName(String),
    /// A path that no URL can have.
    NoUrl(String),
    /// A file of certificates that cannot be used.
    Certificates(PathBuf, TlsError),
    /// A key for servers that show certificates, where none does.
    NothingEncrypted(&'static str),
    /// Both `ca-file` and `pins`.
    TrustTwice,
    /// A file of upstreams that cannot be used.
    File(ServerFileError),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoServers => f.write_str("no server to forward to; write `to = [\"192.0.2.1\"]`"),
            Self::Many(count) => {
                write!(f, "{count} servers to forward to; keep at most {UPSTREAMS_MAX}")
            }
            Self::ManyOptions(count, most) => {
                write!(f, "{count} options for each query; keep at most {most}")
            }
            Self::TwoSubnets => {
                f.write_str("queries tell one network of the client; keep one `{client-subnet …}`")
            }
            Self::ManyCodes(count, most) => write!(
                f,
                "with this, options of all zones have {count} codes with `if-present`; keep at \
                 most {most}"
            ),
            Self::Twice(upstream) => {
                write!(f, "{upstream} is given twice, but is one server; keep one of them")
            }
            Self::NoBootstrap(name) => write!(
                f,
                "{name} would have to be looked up through this server itself; write a \
                 server that knows its address, as in `bootstrap = [\"192.0.2.53\"]`"
            ),
            Self::ResolverByName(name) => {
                write!(f, "write the address of {name}: nothing here could look it up")
            }
            Self::BootstrapForNothing => {
                f.write_str("`bootstrap` looks names up, but all servers are given by address")
            }
            Self::BootstrapIsSelf(address) => write!(
                f,
                "{address} is this server itself, which cannot look up where its own upstreams \
                 are; write the address of another"
            ),
            Self::NotBuilt => f.write_str(
                "this program was built without TLS, HTTPS and QUIC: switch on the feature \
                 `encrypted`",
            ),
            Self::NoCertificateName(subject) => {
                write!(f, "no certificate can be for `{subject}`; write the name that it shows")
            }
            Self::NoUrl(path) => write!(f, "no URL can have the path `{path}`; write another one"),
            Self::Certificates(path, error) => {
                write!(f, "{}: {error}; write the path of certificates in PEM form", path.display())
            }
            Self::NothingEncrypted(key) => {
                write!(
                    f,
                    "`{key}` is for servers that are queried over TLS, HTTPS or QUIC; there is none"
                )
            }
            Self::File(error) => error.fmt(f),
            Self::TrustTwice => f.write_str(
                "both `ca-file` and `pins` are set, but a pinned key needs no issuer; keep one",
            ),
        }
    }
}
