//! What can be wrong with a configuration, where, and what to write instead.

mod catalog;
mod geo;
mod local;
mod node;
mod place;
mod pool;
mod transfer;
mod update;

pub use catalog::CatalogMistake;
pub use geo::GeoMistake;
pub(crate) use geo::SITES_MAX;
pub use local::LocalMistake;
pub use node::NodeMistake;
pub use place::PlaceMistake;
pub use pool::{DerivedMistake, PoolMistake, SteerMistake};
pub use transfer::TransferMistake;
pub use update::UpdateMistake;

use crate::kube_dns::ConfigMapError;
use crate::mistake::Mistake;
use crate::section::{Key, Section};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zonda_wire::Name;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The key's default: it was not set.
    Default,
    /// A place in the file.
    File {
        /// Path as the user gave it.
        path: Arc<Path>,
        /// Line in the file, from 1.
        line: usize,
        /// Column from 1, in characters.
        column: usize,
    },
    /// The environment variable of this name.
    Environment(String),
    /// A flag of the command line.
    Flag(&'static str),
}

impl Origin {
    /// Whether the origin is a place in the file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// Returns the line and column in the file, by which errors are ordered; errors without a place
    /// come first.
    pub(crate) fn place(&self) -> (usize, usize) {
        if let Self::File { line, column, .. } = self { (*line, *column) } else { (0, 0) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Self::Environment(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// An error, and the place to correct.
#[derive(Debug)]
pub struct ConfigError {
    /// Place of the mistake.
    pub origin: Origin,
    /// What is wrong at that place.
    pub problem: Problem,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.problem)
    }
}

impl std::error::Error for ConfigError {}

/// A problem of the configuration.
#[derive(Debug)]
pub enum Problem {
    /// A file that cannot be read.
    Unreadable(PathBuf, std::io::Error),
    /// A file for a program that was built without configuration files.
    NoFiles(PathBuf),
    /// The file is not TOML.
    Syntax(String),
    /// As many more lines are not TOML.
    MoreSyntax(usize),
    /// The file is a zone file.
    ZoneFile(PathBuf),
    /// The file states no version.
    NoVersion,
    /// A key or section that does not exist.
    UnknownKey(String, Suggestion),
    /// A variable that begins with `ZONDA_` and does not exist.
    UnknownVariable(Suggestion),
    /// A section written as another kind of thing.
    NotSection(&'static Section),
    /// A value that the key cannot have.
    Value {
        /// The key's name.
        key: String,
        /// Text of the value.
        found: String,
        /// Form that a value must have.
        form: String,
    },
    /// A key that must be set is not.
    Missing(&'static Section, &'static Key),
    /// Values that are valid alone and contradict each other.
    Together(Contradiction),
}

/// Values that are sound alone and wrong together.
#[derive(Debug)]
pub enum Contradiction {
    /// A zone with no source, or more than one.
    SourceCount(usize),
    /// A `file` without `name`.
    ZoneWithoutName,
    /// A `forward` without `name`.
    ForwardWithoutName,
    /// A `store` without `name`.
    StoreWithoutName,
    /// A `secondary` without `name`.
    SecondaryWithoutName,
    /// A `kubernetes` without `name`.
    ClusterWithoutName,
    /// A key, and another one that cannot stand beside it.
    Excludes(&'static str, &'static str),
    /// A key, and another one that it needs.
    Needs(&'static str, &'static str),
    /// A key whose value is to be a single label of a name.
    NotLabel(&'static str),
    /// A key with more values than it can have.
    MoreThan(&'static str, usize),
    /// A key that the kind of database does not have, which is named behind it.
    NotOfStore(&'static str, &'static str),
    /// Servers to forward to that cannot be asked.
    Servers(Mistake),
    /// A mistake in forwarded zones and the names that this server answers itself.
    Local(LocalMistake),
    /// A mistake in the places of clients and sites.
    Geo(GeoMistake),
    /// A mistake in pools and the names that are steered to them.
    Pool(PoolMistake),
    /// A mistake in keys and transfers.
    Transfer(TransferMistake),
    /// A mistake in how the members of a catalog are served.
    Catalog(CatalogMistake),
    /// A mistake in rights to change zones.
    Update(UpdateMistake),
    /// A mistake in a node's own DNS cache.
    Node(NodeMistake),
    /// A mistake in a rule that changes questions, or in a template.
    Rewrite(zonda_rewrite::RuleError),
    /// A `directory` with `name`.
    DirectoryWithName,
    /// A zone that is to be writable and whose source, by its key, cannot be written.
    NotWritable(&'static str),
    /// A second zone of the same name.
    ZoneTwice(Name, Origin),
    /// A mistake in the listeners that a zone, a rule or a template is at.
    Place(PlaceMistake),
    /// The snapshot file of another zone, which is named.
    SnapshotTwice(Name, Origin),
    /// A path that leads out of the root.
    OutsideRoot(PathBuf, PathBuf),
    /// A list that is not in `[access]`.
    UnknownList(String, Option<String>),
    /// A list in `[access]` that names another.
    ListInList(String),
    /// An access list without a rule for all other clients.
    OpenEnded,
    /// A rule behind the one for everyone.
    RuleBehindAny,
    /// A rule for types in the list of a listener.
    TypesAtListener,
    /// A second listener of the same address.
    ListenerTwice(SocketAddr),
    /// Neither UDP nor TCP.
    Silent,
    /// The interface can be reached from outside and asks for no token.
    NoToken(SocketAddr),
    /// A token and the file that holds it: the key of the token.
    TokenTwice(&'static str),
    /// A key that is greater than the one that bounds the same thing from above.
    Above(&'static str, &'static str),
}

/// A suggestion for an unknown name.
#[derive(Debug)]
pub enum Suggestion {
    /// The known name that is most similar.
    Nearest(String),
    /// The section in which there is a key of this name; empty: the top of the file.
    Elsewhere(String),
    /// All names known at that place.
    AnyOf(Vec<&'static str>),
    /// The form of variables' names.
    Variable,
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nearest(name) => write!(f, "did you mean `{name}`?"),
            Self::Elsewhere(header) if header.is_empty() => {
                f.write_str("it belongs at the top of the file, before the first header")
            }
            Self::Elsewhere(header) => write!(f, "it belongs in {header}"),
            Self::Variable => f.write_str(
                "write ZONDA_ and the path of a key, as in ZONDA_TCP_IDLE_TIMEOUT, or rename it",
            ),
            Self::AnyOf(names) => write!(f, "write one of {}", names.join(", ")),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(path, error) => write!(
                f,
                "cannot read {}: {error}; correct the path, or let the server's user read the file",
                path.display()
            ),
            Self::NoFiles(path) => write!(
                f,
                "cannot read {}: this program was built without configuration files; switch on \
                 the feature `server`",
                path.display()
            ),
            Self::MoreSyntax(count) => write!(
                f,
                "{count} more lines below are not TOML; is this another server's configuration? \
                 `zonda import` reads BIND's"
            ),
            Self::ZoneFile(path) => {
                let path = path.display();
                write!(
                    f,
                    "this is a zone file, and no configuration; serve it by `--zone NAME={path}`, \
                     or check it by `zonda file check {path}`"
                )
            }
            Self::Syntax(message) => write!(f, "this is not TOML: {message}"),
            Self::NoVersion => f.write_str("no version; write `version = 1` as the first line"),
            Self::UnknownKey(key, suggestion) => write!(f, "unknown key `{key}`; {suggestion}"),
            Self::UnknownVariable(suggestion) => write!(f, "unknown variable; {suggestion}"),
            Self::NotSection(section) => {
                write!(f, "`{}` is a section; write {}", section.name, section.header())
            }
            Self::Value { key, found, form } => {
                write!(f, "`{key}` cannot be {found}; write {form}")
            }
            Self::Missing(section, key) => {
                let (header, name, example) = (section.header(), key.name, key.sample());
                write!(f, "{header} needs `{name}`; write it as in `{name} = {example}`")
            }
            Self::Together(contradiction) => contradiction.fmt(f),
        }
    }
}

impl Contradiction {
    /// Writes a mistake in the source of a zone.
    fn fmt_source(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceCount(0) => f.write_str(
                "the zone has no source; write `file`, `json`, `directory`, `hosts`, `forward`, \
                 `store`, `secondary` or `kubernetes`",
            ),
            Self::SourceCount(_) => f.write_str(
                "the zone has several sources; keep one of `file`, `json`, `directory`, `hosts`, \
                 `forward`, `store`, `secondary`, `kubernetes` (`hosts` may stand beside \
                 `forward`)",
            ),
            Self::ZoneWithoutName => {
                f.write_str("a master file is of one zone; write its `name = \"example.com\"`")
            }
            Self::ForwardWithoutName => f.write_str(
                "names that are forwarded need their zone; write its `name = \"example.com\"`, or \
                 `name = \".\"` for all that no other zone holds",
            ),
            Self::SecondaryWithoutName => f.write_str(
                "a primary may have many zones; write the `name` of the one to transfer",
            ),
            Self::StoreWithoutName => {
                f.write_str("a database may hold many zones; write the `name` of this one")
            }
            Self::ClusterWithoutName => f.write_str(
                "the names of a cluster lie below its domain; write it, such as `name = \
                 \"cluster.local\"`",
            ),
            Self::Excludes(key, other) => {
                write!(f, "`{other}` cannot stand beside `{key}`; remove one of them")
            }
            Self::Needs(key, needed) => {
                write!(f, "`{key}` means nothing without `{needed}`; write that, or remove `{key}`")
            }
            Self::NotLabel(key) => {
                write!(f, "`{key}` is one label of a name; write it without dots, as in `dns`")
            }
            Self::MoreThan(key, max) => {
                write!(f, "`{key}` has more than {max} values; remove some")
            }
            Self::NotOfStore(key, scheme) => {
                write!(f, "`{key}` means nothing for a database of `{scheme}`; remove it")
            }
            Self::NotWritable("json") => f.write_str(
                "several zones of one `json` file cannot be written; give the `name` of one, or \
                 a file to each zone, or remove `writable`",
            ),
            Self::NotWritable(source) => write!(
                f,
                "zones with `{source}` cannot be changed while they are served; remove `writable`, \
                 or serve them from a `file`, `json` or `directory`"
            ),
            Self::DirectoryWithName => {
                f.write_str("the files of a `directory` name its zones; remove `name`")
            }
            _ => Ok(()), // the caller writes every other error
        }
    }

    /// Writes an error about rules of access lists.
    fn fmt_access(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownList(name, Some(nearest)) => {
                write!(f, "no list `{name}` in [access]; did you mean `{nearest}`?")
            }
            Self::UnknownList(name, None) => {
                write!(f, "no list `{name}`; write `{name} = [\"allow any\"]` in [access]")
            }
            Self::ListInList(name) => {
                write!(f, "a list cannot name another list; write the rules of `{name}` here")
            }
            Self::OpenEnded => f.write_str(
                "the rules leave open what happens to all other clients; end them with \"refuse \
                 any\", \"drop any\" or \"allow any\"",
            ),
            Self::RuleBehindAny => {
                f.write_str("rules behind one for `any` never apply; move that one to the end")
            }
            Self::TypesAtListener => f.write_str(
                "a rule with `type` is for zones: a listener answers a client or does not; put \
                 it into `access` of [[zone]]",
            ),
            _ => Ok(()), // the caller writes every other error
        }
    }
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SourceCount(_)
            | Self::ZoneWithoutName
            | Self::ForwardWithoutName
            | Self::StoreWithoutName
            | Self::SecondaryWithoutName
            | Self::ClusterWithoutName
            | Self::Excludes(..)
            | Self::Needs(..)
            | Self::NotLabel(_)
            | Self::MoreThan(..)
            | Self::NotOfStore(..)
            | Self::NotWritable(_)
            | Self::DirectoryWithName => self.fmt_source(f),
            Self::Servers(mistake) => mistake.fmt(f),
            Self::Local(mistake) => mistake.fmt(f),
            Self::Geo(mistake) => mistake.fmt(f),
            Self::Pool(mistake) => mistake.fmt(f),
            Self::Transfer(mistake) => mistake.fmt(f),
            Self::Catalog(mistake) => mistake.fmt(f),
            Self::Update(mistake) => mistake.fmt(f),
            Self::Node(mistake) => mistake.fmt(f),
            Self::Rewrite(mistake) => mistake.fmt(f),
            Self::SnapshotTwice(name, first) => write!(
                f,
                "the zone {name} has this `snapshot` ({first}), and each would overwrite the \
                 names of the other; write a file of its own for each"
            ),
            Self::ZoneTwice(name, first) => {
                write!(f, "zone {name} is already at {first}; keep one of them")
            }
            Self::Place(mistake) => mistake.fmt(f),
            Self::OutsideRoot(path, root) => write!(
                f,
                "{} is outside the root {}; move it there, or write the directory of all zone \
                 files as `root` at the top",
                path.display(),
                root.display()
            ),
            Self::UnknownList(..)
            | Self::ListInList(_)
            | Self::OpenEnded
            | Self::RuleBehindAny
            | Self::TypesAtListener => self.fmt_access(f),
            Self::ListenerTwice(address) => {
                write!(f, "there is already a listener on {address}; keep one of them")
            }
            Self::Silent => f.write_str("neither `udp` nor `tcp` is true; remove the listener"),
            Self::NoToken(address) => write!(
                f,
                "other machines can reach {address} without a token; write `token-file`, or \
                 `address = \"127.0.0.1:9153\"`"
            ),
            Self::TokenTwice(key) => write!(f, "both `{key}` and `{key}-file` are set; keep one"),
            Self::Above(least, greatest) => {
                write!(f, "`{least}` is above `{greatest}`; write less here, or more there")
            }
        }
    }
}

/// Something that works, and that the administrator may not have meant.
#[derive(Debug)]
pub struct Warning {
    /// Place that the warning is about.
    pub origin: Origin,
    /// Advice to the administrator.
    pub advice: Advice,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.advice)
    }
}

/// Advice on what the administrator may want to change.
#[derive(Debug)]
pub enum Advice {
    /// Strangers can ask, and nothing limits what they are sent.
    Unlimited(SocketAddr),
    /// No zone is configured.
    NoZones,
    /// No address is configured.
    NoListeners,
    /// Every user of the machine can read this file, which holds a secret.
    ReadableSecret(PathBuf),
    /// Every user of the machine can change this file.
    WritableFile(PathBuf),
    /// A part of the ConfigMap of kube-dns is not in force.
    ConfigMap(ConfigMapError),
    /// Any client may ask which zones a catalog zone lists.
    OpenCatalog(Name),
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited(address) => write!(
                f,
                "{address} can be reached from the Internet and used to flood others; write \
                 `responses-per-second = 20` in [rate-limit]"
            ),
            Self::NoListeners => f.write_str(
                "`listen = []` lets nobody ask; write a [[listen]] with \
                 `address = \"127.0.0.1:53\"`",
            ),
            Self::ReadableSecret(path) => write!(
                f,
                "every user of this machine can read {0}, which holds a secret: `chmod o-rwx {0}`",
                path.display()
            ),
            Self::WritableFile(path) => write!(
                f,
                "every user of this machine can change {0}: `chmod o-w {0}`",
                path.display()
            ),
            Self::ConfigMap(error) => error.fmt(f),
            Self::OpenCatalog(name) => write!(
                f,
                "any client may ask which zones the catalog {name} lists; write `access` with the \
                 secondaries, which ask for its serial, and `refuse any` (`allow any` if meant)"
            ),
            Self::NoZones => {
                f.write_str("there is no zone, so every query is refused; write a [[zone]]")
            }
        }
    }
}
