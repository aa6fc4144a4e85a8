//! What can be wrong with pools and the names that are steered to them.

use crate::health::{CheckError, FormulaError};
use std::fmt;
use std::path::PathBuf;
use zonda_wire::rdata::RdataError;
use zonda_wire::{Name, NameError, Type};

/// Values that are sound alone and wrong beside those of other pools and of zones.
#[derive(Debug)]
pub enum PoolMistake {
    /// A second pool of the same name.
    Twice(String),
    /// A pool without members.
    Empty,
    /// A member that is nothing, or several things at once.
    MemberKind,
    /// A second member of the same name.
    MemberTwice(String),
    /// A pool that is named and not there, and the most similar name of one.
    Unknown(String, Option<String>),
    /// A pool that is its own member or substitute, perhaps by way of other pools.
    Circle(String),
    /// An order that is not the last step.
    OrderBefore,
    /// A least TTL above the greatest.
    Ttl,
    /// A check of no kind, or of several.
    CheckKind,
    /// A key that a kind of check, named behind it, does not have.
    NotOfCheck(&'static str, &'static str),
    /// A value that no check can have.
    Check(CheckError),
    /// Port 0, which nothing listens on.
    PortZero,
    /// A question of a check that is not a name and a type.
    Question,
    /// More than one address of a family that probes come from.
    Sources,
    /// A certificate that probes show without its key, or the other way round.
    HalfIdentity,
    /// Certificates that are to be trusted where none is verified.
    TrustTwice,
    /// A file of certificates that cannot be read, and why.
    Certificates(PathBuf, String),
    /// A mistake in what members get from elsewhere.
    Derived(DerivedMistake),
    /// Marks of load of which the lower is not below the higher.
    LoadMarks,
    /// A mistake in the names that are steered.
    Steer(SteerMistake),
}

/// What can be wrong with states that are calculated, and addresses that are looked up.
#[derive(Debug)]
pub enum DerivedMistake {
    /// A formula that is none.
    Formula(FormulaError),
    /// A member that a formula names and the pool of that name does not have.
    UnknownMember(String, String),
    /// A member by name in a pool without servers that know its addresses.
    NoBootstrap(Name),
    /// Servers to look names up at in a pool without members by name.
    BootstrapForNothing,
}

/// What can be wrong with the names that are steered.
#[derive(Debug)]
pub enum SteerMistake {
    /// A `--steer` that is not a name and members.
    Flag(String),
    /// A name of a `--steer` that is not one.
    FlagName(NameError),
    /// Members of a `--steer` with different ports.
    Ports(String),
    /// A `--check` of an unknown kind.
    CheckFlag(String),
    /// A `--check` without `--steer`.
    CheckAlone,
    /// `steer` in a zone that has no data, or no name, as this key says.
    Zone(&'static str),
    /// A key of `steer` that is not a name and types.
    Form,
    /// A name that is not one.
    Name(NameError),
    /// A name outside the zone.
    Outside(Name, Name),
    /// A type that cannot be steered.
    Type(String),
    /// A second pool for the same name and type.
    Twice(Name, Type),
    /// CNAME beside other types, or at the zone's own name.
    Alias(Name),
    /// A member without data for a type that names are steered for.
    NoData(String, String, Type),
    /// A member's data that are wrong for the type.
    Data(String, Type, RdataError),
}

impl fmt::Display for PoolMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(name) => {
                write!(f, "there is a pool `{name}` above; give this one a name of its own")
            }
            Self::Empty => f.write_str(
                "no members; write them, as in `members = [{ address = \"192.0.2.1\" }]`",
            ),
            Self::MemberKind => f.write_str(
                "a member is an `address`, a `name`, a `pool`, or `data`, which may have an \
                 `address` to check; write one of them",
            ),
            Self::MemberTwice(name) => write!(
                f,
                "{name} is a member above; keep one of them, with a `weight` if it is to get more"
            ),
            Self::Unknown(name, Some(nearest)) => {
                write!(f, "no pool `{name}`; did you mean `{nearest}`?")
            }
            Self::Unknown(name, None) => {
                write!(f, "no pool `{name}`; write it as `[[pool]]` with `name = \"{name}\"`")
            }
            Self::Circle(name) => write!(
                f,
                "pool `{name}` would depend on itself, by way of other pools, or on a chain of \
                 more than {} of them; take one of them out",
                zonda_balance::POOL_DEPTH_MAX
            ),
            Self::OrderBefore => f.write_str(
                "an order decides for good; write it last, and only filters, such as `failover`, \
                 before it",
            ),
            Self::Ttl => f.write_str("`ttl-min` is above `ttl-max`; swap them"),
            Self::CheckKind => f.write_str(
                "write exactly one of `tcp`, `tls`, `http`, `https`, `grpc`, `icmp`, `dns`, `udp`, \
                 `program`, `file`, `pushed` and `calculated`, as in `https = \"/health\"`",
            ),
            Self::NotOfCheck(key, kind) => {
                write!(f, "a check by `{kind}` has no `{key}`; remove it, or choose another kind")
            }
            Self::Check(error) => error.fmt(f),
            Self::PortZero => f.write_str("nothing listens on port 0; write another port"),
            Self::Question => {
                f.write_str("write a name and a type, as in `dns = \"www.example.com A\"`")
            }
            Self::Sources => {
                f.write_str("probes come from one address of each family; keep one of them")
            }
            Self::HalfIdentity => f.write_str(
                "a certificate needs its key; write both `client-certificate` and `client-key`",
            ),
            Self::TrustTwice => f.write_str(
                "certificates that are not verified chain to nothing; remove `ca-file` or \
                 `verify = false`",
            ),
            Self::Certificates(path, error) => write!(
                f,
                "cannot use the certificates in {}: {error}; write the path of a PEM file",
                path.display()
            ),
            Self::Derived(mistake) => mistake.fmt(f),
            Self::LoadMarks => {
                f.write_str("`load-low` is not below `load-high`; write a lower or a higher one")
            }
            Self::Steer(mistake) => mistake.fmt(f),
        }
    }
}

impl fmt::Display for DerivedMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Formula(error) => {
                write!(f, "{error}; write a formula as in `\"2 of (a, b, c) and not d/192.0.2.1\"`")
            }
            Self::UnknownMember(pool, member) => write!(
                f,
                "pool `{pool}` has no member {member}; write the pool alone, or one of its members"
            ),
            Self::NoBootstrap(name) => write!(
                f,
                "nothing tells the addresses of {name}; write DNS servers that do, as in \
                 `bootstrap = [\"192.0.2.53\"]`"
            ),
            Self::BootstrapForNothing => f.write_str(
                "`bootstrap` looks names up, but no member is given by `name`; remove it",
            ),
        }
    }
}

impl From<DerivedMistake> for PoolMistake {
    fn from(mistake: DerivedMistake) -> Self {
        Self::Derived(mistake)
    }
}

impl From<SteerMistake> for PoolMistake {
    fn from(mistake: SteerMistake) -> Self {
        Self::Steer(mistake)
    }
}

impl fmt::Display for SteerMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zone(key) => write!(
                f,
                "names of a zone with `{key}` cannot be steered; write `steer` at a zone with \
                 `name` and `file`, `json` or `store`"
            ),
            Self::Flag(text) => write!(
                f,
                "`{text}` is no name with members; write it as in \
                 `--steer www.example.com=192.0.2.1:443,192.0.2.2:443`"
            ),
            Self::FlagName(error) => {
                write!(f, "{error}; write the whole name, as in www.example.com")
            }
            Self::Ports(text) => write!(
                f,
                "`{text}`: all members of a pool are checked at one port; write a file with a \
                 `[[pool]]` for each port"
            ),
            Self::CheckFlag(kind) => write!(
                f,
                "`{kind}` is no kind of check for a flag; write `tcp`, `http:/PATH` or \
                 `https:/PATH`, or a file with a `[[pool]]`"
            ),
            Self::CheckAlone => {
                f.write_str("nothing is to be checked; write `--steer NAME=ADDRESS:PORT,…` as well")
            }
            Self::Form => f.write_str(
                "write a name and its types, as in `\"www A,AAAA\" = \"web\"`, with `@` for the \
                 zone's own name",
            ),
            Self::Name(error) => write!(f, "{error}; write a name relative to the zone"),
            Self::Outside(name, zone) => {
                write!(f, "{name} is not in the zone {zone}; write a name relative to it")
            }
            Self::Type(rtype) => write!(
                f,
                "`{rtype}` cannot be steered; write types of data such as A, AAAA, CNAME, MX, SRV, \
                 HTTPS or TXT"
            ),
            Self::Twice(name, rtype) => {
                write!(f, "{name} {rtype} is steered twice; keep one of them")
            }
            Self::Alias(name) => write!(
                f,
                "CNAME at {name} stands beside other records, which must not be (rfc1034#3.6.2); \
                 steer the other types, or another name"
            ),
            Self::NoData(pool, member, rtype) => write!(
                f,
                "member {member} of pool `{pool}` has no data for {rtype}; write them, as in \
                 `data = \"{}\"`",
                example(*rtype)
            ),
            Self::Data(pool, rtype, error) => write!(
                f,
                "data of a member of pool `{pool}` are wrong for {rtype}: {error}; write them as \
                 in a zone file, as in `data = \"{}\"`",
                example(*rtype)
            ),
        }
    }
}

/// Data of a type, to show how they are written.
fn example(rtype: Type) -> &'static str {
    match rtype {
        Type::MX => "10 mail.example.com.",
        Type::SRV => "10 60 5060 sip.example.com.",
        Type::HTTPS | Type::SVCB => "1 web.example.com. alpn=h2",
        Type::TXT => "'some text'",
        _ => "web.example.com.",
    }
}
