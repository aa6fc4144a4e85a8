//! Why a query was answered as it was.
//!
//! One value per query drives metrics, query log and extended errors, so that the three cannot
//! disagree.

use zonda_wire::{Ede, Rcode};

/// Declares the reasons with their names in metrics and logs.
macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $name:literal,)*) => {
        /// What became of a query.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Reason { $($(#[$doc])* $reason,)* }

        impl Reason {
            /// All reasons, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$reason,)*];

            /// Returns the reason's name in metrics and logs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$reason => $name,)* }
            }
        }
    };
}

reasons! {
    /// The records asked for exist.
    Answered = "answered",
    /// A pool chose the records.
    Steered = "steered",
    /// No member of the pool is up, and its policy is to fail.
    PoolDown = "pool_down",
    /// The name has other records here than in the DNS, as the configuration says.
    Overridden = "overridden",
    /// The name exists, records of the type do not.
    NoData = "nodata",
    /// The name does not exist.
    NameError = "nxdomain",
    /// The name lies below a delegation; the reply is a referral.
    Referral = "referral",
    /// A DNAME led to a name that is too long (rfc6672#2.2).
    NameTooLong = "yxdomain",
    /// The server gave its identity or version (rfc4892).
    Identity = "identity",
    /// No zone of this server holds the name.
    NoZone = "no_zone",
    /// An access list refuses the client.
    AccessRefused = "access_refused",
    /// An access list keeps the records from the client.
    AccessFiltered = "access_filtered",
    /// An access list has the client's messages dropped.
    AccessDropped = "access_dropped",
    /// The zone could not be loaded.
    ZoneUnavailable = "zone_unavailable",
    /// The zone has expired: its source was unavailable for too long.
    ZoneExpired = "zone_expired",
    /// The records came from another server before, and were kept.
    Cached = "cached",
    /// The records came from another server.
    Forwarded = "forwarded",
    /// The records came from another server before, and have expired; nothing newer could be had.
    Stale = "stale",
    /// The records hold an address of a local network, which the name should not have.
    Blocked = "blocked",
    /// Upstreams would have to be asked, but the client wants no recursion.
    NotRecursive = "not_recursive",
    /// No other server answered in time.
    UpstreamTimeout = "upstream_timeout",
    /// Upstreams answered, but not with an answer that could be passed on.
    UpstreamFailed = "upstream_failed",
    /// Upstreams answered, but with messages that are broken or contradict themselves.
    UpstreamInvalid = "upstream_invalid",
    /// Queries to other servers come back to this one.
    UpstreamLoop = "upstream_loop",
    /// Upstreams gave no answer a moment ago, so that they are not asked again yet (rfc9520).
    CachedFailure = "cached_failure",
    /// Too many queries wait for other servers.
    UpstreamBusy = "upstream_busy",
    /// ALIAS records lead in a circle, or through too many names.
    AliasLoop = "alias_loop",
    /// No zone and no upstream tells the addresses of what an ALIAS record leads to.
    AliasUnresolved = "alias_unresolved",
    /// The user's code answered.
    Handled = "handled",
    /// The user's code answered before, and lets its answer be given again.
    HandlerCached = "handler_cached",
    /// The user's code wants no reply.
    HandlerDropped = "handler_dropped",
    /// The user's code failed.
    HandlerFailed = "handler_failed",
    /// The user's code did not answer in time.
    HandlerTimeout = "handler_timeout",
    /// Too many queries wait for the user's code.
    HandlerBusy = "handler_busy",
    /// A template made the records.
    Templated = "template",
    /// A template is for the name, but no pattern of it matches, or what it makes is no record.
    TemplateFailed = "template_failed",
    /// A rewrite rule made something of the name that is no name.
    RewriteFailed = "rewrite_failed",
    /// A transfer of the zone began.
    Transferred = "transferred",
    /// A transfer was asked for over UDP: the client has to ask over TCP.
    TransferOverUdp = "transfer_over_udp",
    /// As many transfers as may run at once are running.
    TransferBusy = "transfer_busy",
    /// A transfer was asked for that the client may not have.
    TransferRefused = "transfer_refused",
    /// A primary says that a zone has changed; it is asked about that (rfc1996).
    Notified = "notified",
    /// A client says that a zone has changed, and may not say that.
    NotifyRefused = "notify_refused",
    /// A zone was changed by a message, or is already as the message wants it (rfc2136).
    Updated = "updated",
    /// A message changes a zone, and its client may not change that.
    UpdateRefused = "update_refused",
    /// A message changes a zone only if something holds, which does not.
    UpdateUnmet = "update_unmet",
    /// A message changes a zone, and that has failed.
    UpdateFailed = "update_failed",
    /// A message that changes a zone of a primary was forwarded to it, and has its reply.
    UpdateRelayed = "update_relayed",
    /// Too many messages that change zones wait.
    UpdateBusy = "update_busy",
    /// A class or type that is not served to any client.
    NotServed = "not_served",
    /// An operation other than a query.
    NotImplemented = "not_implemented",
    /// The message is not as the protocol demands.
    FormatError = "format_error",
    /// An EDNS version other than 0.
    BadVersion = "bad_version",
    /// The message is signed by a key that is not known here (rfc8945#5.2).
    UnknownKey = "unknown_key",
    /// The message has a signature that is not the key's (rfc8945#5.2.2).
    BadSignature = "bad_signature",
    /// The message was signed at a time too far from the server's (rfc8945#5.2.3).
    BadTime = "bad_time",
    /// A question for nothing but a cookie (rfc7873#5.4).
    CookieOnly = "cookie_only",
    /// Shorter than a header, or a response.
    NotAQuery = "not_a_query",
    /// The client's prefix had too many replies of this kind; dropped.
    RateDropped = "rate_dropped",
    /// The client asks too often; it got a truncated reply, so that it can ask again over TCP.
    RateSlipped = "rate_slipped",
}

impl Reason {
    /// The extended error that goes with it and a response code (rfc8914#4).
    #[must_use]
    pub fn ede(self, rcode: Rcode) -> Option<Ede> {
        match self {
            Self::Overridden => Some(Ede::FORGED_ANSWER),
            Self::Blocked => Some(Ede::BLOCKED),
            Self::Stale if rcode == Rcode::NXDOMAIN => Some(Ede::STALE_NXDOMAIN_ANSWER),
            Self::Stale => Some(Ede::STALE_ANSWER),
            Self::NoZone | Self::NotRecursive => Some(Ede::NOT_AUTHORITATIVE),
            Self::AccessFiltered => Some(Ede::FILTERED),
            Self::AccessRefused
            | Self::TransferRefused
            | Self::NotifyRefused
            | Self::UpdateRefused => Some(Ede::PROHIBITED),
            Self::ZoneUnavailable | Self::TransferBusy => Some(Ede::NOT_READY),
            Self::ZoneExpired => Some(Ede::INVALID_DATA),
            Self::PoolDown => Some(Ede::OTHER),
            Self::UpstreamTimeout | Self::UpstreamLoop => Some(Ede::NO_REACHABLE_AUTHORITY),
            Self::UpstreamFailed => Some(Ede::NETWORK_ERROR),
            Self::UpstreamInvalid => Some(Ede::INVALID_DATA),
            Self::UpstreamBusy
            | Self::HandlerFailed
            | Self::HandlerTimeout
            | Self::HandlerBusy
            | Self::TemplateFailed
            | Self::AliasLoop
            | Self::AliasUnresolved
            | Self::UpdateUnmet
            | Self::UpdateFailed
            | Self::UpdateBusy
            | Self::RewriteFailed => Some(Ede::OTHER),
            Self::CachedFailure => Some(Ede::CACHED_ERROR),
            Self::NotServed => Some(Ede::NOT_SUPPORTED),
            _ => None,
        }
    }

    /// Returns the text of the extended error, where nothing more is known.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Stale => "expired; no newer answer could be had",
            Self::NotRecursive => "not kept, and no recursion is desired",
            Self::Overridden => "the configuration gives this name other addresses",
            Self::Blocked => "the answer held an address of a local network",
            Self::AccessRefused => "an access list refuses this client",
            Self::AccessFiltered => "an access list keeps the records from this client",
            Self::TransferRefused => "the zone is not transferred to this client",
            Self::TransferBusy => "as many zones as may be are being transferred",
            Self::ZoneUnavailable => "the zone could not be loaded",
            Self::ZoneExpired => "the zone has expired",
            Self::NotifyRefused => "this client may not send NOTIFY for the zone",
            Self::UpdateRefused => "this client may not change this in the zone",
            Self::UpdateBusy => "too many updates wait: send it again",
            Self::PoolDown => "all members of the pool are down",
            Self::UpstreamBusy => "too many queries wait for an answer",
            Self::AliasLoop => "ALIAS records lead in a circle, or through too many names",
            Self::AliasUnresolved => "no upstream is configured for the target of an ALIAS record",
            Self::HandlerFailed => "the code that answers for this name failed",
            Self::HandlerTimeout => "the code that answers for this name did not answer in time",
            Self::TemplateFailed => "a template is for this name, and makes no record of it",
            Self::RewriteFailed => "a rewrite rule makes no name of this one",
            Self::HandlerBusy => "too many queries wait for the code that answers for this name",
            _ => "",
        }
    }
}
