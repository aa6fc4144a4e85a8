//! Whether a reply may be put into the hot table, and why not.

use zonda_wire::Type;

/// Whether a reply is the same for every client that asks the same, so that a worker may put it
/// into its hot table.
///
/// Two words of 16 bits, so that a verdict that holds it fits into a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The reply may be put there. So many records at its beginning have the question's name and
    /// type and equal sizes, and any of them may be the first; up to one when nothing rotates.
    Hot(u16),
    /// The reply is made anew for each query, for this reason.
    No(NotReused),
}

impl Reuse {
    /// A reply that may be reused as it is.
    pub const AS_IT_IS: Self = Self::Hot(0);

    /// Takes note of a reason why the reply may not be reused. The first one stays.
    #[inline]
    pub fn forbid(&mut self, reason: NotReused) {
        if let Self::Hot(_) = self {
            *self = Self::No(reason);
        }
    }
}

/// Whether sets of this type begin with another record each time.
#[inline]
pub(crate) fn rotates(rtype: Type) -> bool {
    matches!(rtype, Type::A | Type::AAAA)
}

/// Octets of a record of a type that rotates, whose owner is a pointer.
#[inline]
pub(crate) fn rotated_record_bytes(rtype: Type) -> usize {
    2 + 10 + if rtype == Type::A { 4 } else { 16 }
}

/// Declares the reasons with what they say in words.
macro_rules! not_reused {
    ($($(#[$doc:meta])* $reason:ident = $text:literal,)*) => {
        /// Why a reply is not put into the hot table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum NotReused { $($(#[$doc])* $reason,)* }

        impl NotReused {
            /// The reason in words.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Self::$reason => $text,)* }
            }
        }
    };
}

not_reused! {
    /// A gate has answered: the reply depends on the client.
    Gate = "it depends on the client, not on the question alone",
    /// No zone has answered: there is no source whose data the entry would hold.
    NoSource = "no source has answered",
    /// The reply is in the hot table already.
    HotAlready = "it is in the hot table already",
    /// The answer cache or an upstream has answered: that cache keeps the reply.
    Forwarded = "the answer cache keeps what upstreams answer",
    /// The user's code has answered: the handler cache keeps what the code allows it to.
    Code = "the handler cache keeps what code answers",
    /// Aliases lead to a name that code answers for, or may: it is asked for each query.
    CodeTarget = "aliases lead to a name that the user's code answers for",
    /// A template has made the records, perhaps from the client's address.
    Template = "a template makes the records anew for each query",
    /// The user's code has left an answer as it was shown: the code is shown each one.
    Below = "the user's code is shown every answer to the question",
    /// The question is for ANY, whose answer depends on the transport (rfc8482#4.1).
    Any = "the answer to ANY depends on the transport",
    /// A client with a larger buffer gets more.
    Truncated = "a client with a larger buffer gets more",
    /// A chain of aliases leads into another zone: the entry would outlive a change there.
    OtherZone = "aliases lead into another zone, whose changes would not be seen",
    /// A chain of aliases leads into a zone that not every client may query.
    AccessList = "an access list decides how far the client may follow the aliases",
    /// Aliases lead to a name that is forwarded, which only some clients may have looked up.
    Recursion = "aliases lead to a forwarded name, which not every client may have looked up",
    /// Records rotate that do not stand at the beginning of the answer.
    Rotation = "records behind an alias rotate",
    /// A pool has chosen the records, and may choose other ones for the next client.
    Steered = "a pool chooses the records anew for each query",
    /// A cluster has answered by more than one object, or by those of a former time: no version
    /// tells whether the answer is still right.
    Cluster = "the answer depends on more than one object of the cluster",
    /// The source has answered by the client's network, which is no part of the entry's key.
    Client = "it depends on the network of the client",
    /// Middleware has changed the reply, and would change the entry once more.
    Middleware = "middleware has changed it",
    /// The rate limit has replaced the reply.
    RateLimit = "the client's share of replies is used up",
}
