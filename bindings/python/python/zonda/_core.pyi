"""The native module."""

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, final

from .options import Address
from .records import _RecordType
from .stores import OwnStore, RecordSet

__version__: str

_Number: TypeAlias = int

class Record:
    """A record of any type: `Record("CAA", '0 issue "ca.example.net"', ttl=60)`."""

    def __new__(
        cls,
        *arguments: Any,
        ttl: int = 300,
        owner: object | None = None,
        rdata: bytes | None = None,
        **fields: Any,
    ) -> Record: ...
    @property
    def rtype(self) -> str:
        """Its type, such as `"AAAA"` or `"TYPE65280"`."""
    @property
    def ttl(self) -> int:
        """Its time to live, seconds."""
    @property
    def owner(self) -> str | None:
        """Whose it is; `None` stands for the name asked for."""
    @property
    def rdata(self) -> bytes:
        """Its data in uncompressed wire form."""
    @property
    def text(self) -> str:
        """Its data in presentation format."""
    def replace(self, *, ttl: int | None = None, owner: object | None = None) -> Record:
        """The same with another time to live or owner."""
    @classmethod
    def parse(
        cls: type[_R], line: str, *, origin: object | None = None, ttl: int = 300
    ) -> _R:
        """The record of the line of a zone file, as `str()` writes one. Names without a final dot end
        at `origin`, or at the root, and `@` without an origin is the name asked for; a record without
        a time to live has `ttl`. Raises `ValueError` with what is wrong, also for a record of another
        type than the class."""
    def _field(self, place: int) -> Any: ...
    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Query:
    """A query."""

    @property
    def name(self) -> str:
        """The name asked for, in lower case and with its final dot."""
    @property
    def original_name(self) -> str:
        """The name asked for in the case it came in."""
    @property
    def pattern(self) -> str | None:
        """The pattern of the handler that answers, in its canonical form; `None` without one."""
    @property
    def type(self) -> str:
        """The type asked for, such as `"AAAA"` or `"TYPE65280"`."""
    @property
    def type_number(self) -> int:
        """The number of the type asked for."""
    @property
    def client(self) -> str:
        """The client's address."""
    @property
    def client_port(self) -> int:
        """The client's port."""
    @property
    def transport(self) -> str:
        """How it came: `"udp"` or `"tcp"`."""
    @property
    def id(self) -> int:
        """What the client numbered it with."""
    @property
    def message(self) -> bytes:
        """The message as it came; of one of more than 4,096 octets, which only TCP brings, without
        padding, without records but OPT, and with as many options as fit into 4,096 octets."""
    @property
    def recursion_desired(self) -> bool:
        """Whether the client wants its question answered for any name."""
    @property
    def checking_disabled(self) -> bool:
        """Whether the client wants answers that were found wrong, too."""
    @property
    def dnssec_ok(self) -> bool:
        """Whether the client asks for DNSSEC records."""
    @property
    def udp_size(self) -> int | None:
        """The largest UDP message that the client takes; `None` without EDNS."""
    @property
    def options(self) -> list[tuple[int, bytes]]:
        """The options of its EDNS record: codes and data."""
    @property
    def client_subnet(self) -> str | None:
        """The network of the client for which a resolver asks, such as `"192.0.2.0/24"`."""
    @property
    def cookie(self) -> bytes | None:
        """The DNS cookie: 8 octets of the client's, and as many of ours as it sent back."""
    @property
    def captures(self) -> dict[str, str]:
        """The labels that the route's pattern captured, in lower case."""
    @property
    def params(self) -> dict[str, str]:
        """The labels that the route's pattern captured, in lower case: the same as `captures`."""
    @property
    def state(self) -> dict[Any, Any]:
        """What middleware and handlers want to remember of this query."""
    def capture(self, word: str) -> str | None:
        """The label, in lower case, that the route's pattern captured under a name."""
    def _is_below(self, suffix: str) -> bool: ...

class _Foreign(Protocol):
    """What dnspython has for a record, or for a set of them."""

    @property
    def rdtype(self) -> int: ...

_One: TypeAlias = Record | _Foreign
_Records: TypeAlias = _One | Iterable[_One]
_R = TypeVar("_R", bound=Record)

_ResponseCode: TypeAlias = Literal[
    "NOERROR",
    "FORMERR",
    "SERVFAIL",
    "NXDOMAIN",
    "NOTIMP",
    "REFUSED",
    "YXDOMAIN",
    "YXRRSET",
    "NXRRSET",
    "NOTAUTH",
    "NOTZONE",
    "BADVERS",
    "BADKEY",
    "BADTIME",
    "BADMODE",
    "BADNAME",
    "BADALG",
    "BADTRUNC",
    "BADCOOKIE",
]

_ExtendedError: TypeAlias = Literal[
    "Other Error",
    "Unsupported DNSKEY Algorithm",
    "Unsupported DS Digest Type",
    "Stale Answer",
    "Forged Answer",
    "DNSSEC Indeterminate",
    "DNSSEC Bogus",
    "Signature Expired",
    "Signature Not Yet Valid",
    "DNSKEY Missing",
    "RRSIGs Missing",
    "No Zone Key Bit Set",
    "NSEC Missing",
    "Cached Error",
    "Not Ready",
    "Blocked",
    "Censored",
    "Filtered",
    "Prohibited",
    "Stale NXDOMAIN Answer",
    "Not Authoritative",
    "Not Supported",
    "No Reachable Authority",
    "Network Error",
    "Invalid Data",
]

@final
class Reply:
    """A reply. Until something is put into it, the query is left to the zones."""

    @property
    def rcode(self) -> str:
        """The response code, such as `"NOERROR"`; may be set by word or number."""
    @rcode.setter
    def rcode(self, rcode: _ResponseCode | int) -> None: ...
    aa: bool
    """Whether it is authoritative."""
    ad: bool
    """Whether its data are authentic."""
    ra: bool
    """Whether any name may be asked for."""
    tc: bool
    """Whether the client is to ask again over TCP."""
    @property
    def answers(self) -> tuple[Record, ...]:
        """The records of the answer. What is set is as for `answer`."""
    @answers.setter
    def answers(self, records: Iterable[_Records]) -> None: ...
    @property
    def authorities(self) -> tuple[Record, ...]:
        """The records of the authority section."""
    @authorities.setter
    def authorities(self, records: Iterable[_Records]) -> None: ...
    @property
    def additionals(self) -> tuple[Record, ...]:
        """The records of the additional section without EDNS."""
    @additionals.setter
    def additionals(self, records: Iterable[_Records]) -> None: ...
    def answer(self, *records: _Records, ttl: int | None = None) -> None:
        """Adds records to the answer."""
    def authority(self, *records: _Records, ttl: int | None = None) -> None:
        """Adds records to the authority section."""
    def additional(self, *records: _Records, ttl: int | None = None) -> None:
        """Adds records to the additional section, which is sent if there is room for it."""
    def of(self, kind: type[_R]) -> tuple[_R, ...]:
        """The records of the answer that are of a class: `reply.of(zonda.A)[0].ip`."""
    def no_data(self, *, ttl: int | None = None, soa: _One | None = None) -> None:
        """Says that the name exists, but has no records of the type. Resolvers cache that for `ttl`
        seconds, or as the record `soa` says; without both, they do not cache it. Of the records so
        far only aliases that lead to the name stay, and the SOA record if there is no other one."""
    def nxdomain(self, *, ttl: int | None = None, soa: _One | None = None) -> None:
        """Says that there is no such name. Resolvers cache that for `ttl` seconds, or as the record
        `soa` says; without both, they do not cache it. Of the records so far only aliases that lead
        to the name stay, and the SOA record if there is no other one."""
    def refused(self) -> None:
        """Refuses to answer."""
    def not_implemented(self) -> None:
        """Says that this kind of question is not answered here."""
    def servfail(self, why: str = "") -> None:
        """Says that the answer cannot be had, and why; the client may ask another server."""
    def drop(self) -> None:
        """Sends nothing."""
    def pass_on(self) -> None:
        """Leaves the query to the handler of the next wider pattern, or the zones, as if there were
        no handler."""
    def clear(self) -> None:
        """Makes it as new."""
    def extended_error(self, code: _ExtendedError | int, text: str = "") -> None:
        """Says why there is no, or another, answer (RFC 8914)."""
    def cache(self, ttl: int, vary: Literal["client", "subnet"] | None = None) -> None:
        """Lets the core give it again for so many seconds, without calling the handler, where there
        is no middleware: to everybody, or with `vary` to the same client or subnet. One that was
        made by a handler that looked at the client is not kept without `vary`."""
    def client_subnet_scope(self, bits: int) -> None:
        """Says that the reply depends on the first bits of the client's network alone, 0 to 128: the
        scope with which it repeats the client subnet of the query (RFC 7871), and for which the core
        keeps it. 0: it is the same for all. Without this, it depends on all that the query tells if
        the code has looked at the client."""
    def tag(self, key: str, value: object) -> None:
        """Notes a value about the query under a key, for the query log, instead of what was noted
        under that key before; clients do not see it. The value is noted as `str()` shows it."""
    @property
    def error(self) -> tuple[int, str] | None:
        """The number and the text of the extended error."""
    @property
    def is_answered(self) -> bool:
        """Whether something was said: if not, the query is left to the zones."""
    @property
    def is_dropped(self) -> bool:
        """Whether nothing is sent."""
    def _fail(self) -> None: ...
    def _pass_handlers(self) -> None: ...
    def _take_over(self, message: bytes | None) -> None: ...

class Store:
    """Records outside of the server, which a zone can follow: see `App.store`.

    All methods block, and let other threads run meanwhile: in asyncio call them so,
    `await asyncio.to_thread(store.set, ...)`. They raise `OSError` with what the database says when
    it cannot be reached or refuses, and `ValueError` for what could not be served.

    An owner is a complete name, with or without its final dot, in any case; wildcards are owners as
    others are.
    """

    def load(self, zone: str) -> list[RecordSet]:
        """All records of a zone, and perhaps of others."""
    def get(self, owner: str) -> list[RecordSet]:
        """All records of an owner."""
    def set(
        self, owner: str, rtype: _RecordType | int, ttl: int, data: Sequence[str]
    ) -> None:
        """Puts records in place of all that the owner has of that type, in one step. `data` are as
        in a zone file, with complete names; at least one is needed."""
    def set_many(
        self, sets: Iterable[RecordSet | tuple[str, str | int, int, Sequence[str]]]
    ) -> None:
        """Puts each of several record sets in place of all that have its owner and type, all in one
        step: a set that could not be served changes nothing."""
    def remove(self, owner: str, rtype: _RecordType | int) -> bool:
        """Takes the records of an owner and a type away; whether there were any."""

@final
class MemoryStore(Store):
    """A store that forgets all when the process ends."""

    def __new__(cls) -> MemoryStore:
        """One without records."""

@final
class RedbStore(Store):
    """A store in a file that belongs to one process at a time. A change is whole and on the disk
    when `set` or `remove` returns."""

    def __new__(cls, path: str | os.PathLike[str]) -> RedbStore:
        """Opens a file, or makes it. Raises `OSError` when that fails."""

@final
class RedisStore(Store):
    """A store in a Redis or Valkey server."""

    def __new__(
        cls, url: str, *, prefix: str = "", compare_every: float = 30.0
    ) -> RedisStore:
        """In the server at a URL, `redis://user:password@host:port/database`, which is connected to
        when it is needed. `rediss://` has the connection encrypted and the server's certificate
        verified, by public roots or, with `rediss://host/?ca=FILE`, those of a file in PEM form.
        Raises `ValueError` for what is no such URL.

        prefix: what stands before each key.
        compare_every: seconds after which all is compared, for changes that nobody told.
        """

@final
class PostgresStore(Store):
    """A store in a PostgreSQL database, in the table `zonda_records`, which is made if it is
    missing."""

    def __new__(cls, url: str, *, compare_every: float = 30.0) -> PostgresStore:
        """In the database at a URL, `postgresql://user:password@host/database`, or that parameters
        name, `host=127.0.0.1 user=...`, which is connected to when it is needed. With
        `sslmode=verify-full` the connection is encrypted and the server's certificate verified, by
        public roots or those of `sslrootcert=FILE`; by default it is encrypted if the server offers
        that, and no certificate is verified. Raises `ValueError` for what is neither.

        compare_every: seconds after which all is compared, for changes that no trigger told.
        """

@final
class Calls:
    """The calls of a store that is written in Python."""

    @property
    def fd(self) -> int: ...
    def take(self) -> tuple[str, str] | None: ...
    def give(self, sets: list[Any]) -> None: ...
    def fail(self, why: str) -> None: ...
    def changed(self, owner: str | None = None) -> None: ...

# A query as the core gives it: the numbers of its handler and of the guards that it passes.
_Taken: TypeAlias = tuple[_Number | None, list[_Number] | None, Query, Reply]

class _Settings(TypedDict):
    listen: list[str]
    listens_nowhere: bool
    config: str | None
    zones: list[tuple[str, str]]
    texts: list[tuple[str, str]]
    stores: list[tuple[str, Store | OwnStore]]
    forward: list[str]
    workers: int | None
    metrics: str | None
    deadline: float
    waiting_max: int
    allow_failed_zones: bool
    reuse_port: bool

@final
class Core:
    """A server and its queries that wait for Python."""

    def __new__(cls) -> Core: ...
    @property
    def wake_fd(self) -> int: ...
    def start(
        self,
        settings: _Settings,
        routes: list[tuple[str, _Number]],
        guards: list[tuple[str, _Number]],
        middleware: bool,
    ) -> None: ...
    def change_code(
        self,
        removed: list[_Number],
        added: list[tuple[str, _Number]],
        guards: list[tuple[str, _Number]],
        middleware: bool,
    ) -> int | None: ...
    def next_handler(self, query: Query) -> _Number | None: ...
    def enter_guard(self, query: Query, guard: int | None) -> None: ...
    def take(self) -> tuple[list[_Taken], bool]: ...
    def complete(self, replies: list[Reply]) -> list[_Taken]: ...
    def below(self, query: Query, reply: Reply) -> int | None: ...
    def ask(
        self, message: bytes, client: Address | None = None
    ) -> tuple[bytes | None, int | None]: ...
    def results(self) -> list[tuple[int, bytes | None]]: ...
    def addresses(self) -> list[tuple[str, int]]: ...
    def reload(self) -> None: ...
    def failed_zones(self) -> list[tuple[str | None, bool, str]]: ...
    def set_zone_text(self, name: str, text: str) -> None: ...
    def remove_zone_text(self, name: str) -> bool: ...
    def set_zone_file(self, name: str, file: str) -> None: ...
    def set_zone_store(self, zone: str, store: Store | OwnStore) -> None: ...
    def remove_zone(self, name: str) -> bool: ...
    def set_forwards(self, servers: list[str]) -> None: ...
    def is_finished(self) -> bool: ...
    def give_up(self) -> None: ...
    def stop(self) -> None: ...

def canonical_pattern(text: str) -> str: ...
def check_suffix(text: str) -> None: ...
def log_lines() -> list[tuple[int, str, str, list[tuple[str, str]]]]: ...
def question(
    name: str,
    rtype: _RecordType | int,
    dnssec_ok: bool,
    options: Iterable[tuple[int, bytes]],
) -> bytes: ...
def read_reply(message: bytes) -> Reply: ...
def check_zone_name(text: str) -> None: ...
def register(number: int, class_: type[Record]) -> None: ...
def schema() -> list[tuple[str, int, list[tuple[str, str]]]]: ...
