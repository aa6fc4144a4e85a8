"""A DNS server that answers names with your Python code, on a core in Rust.

    import zonda

    app = zonda.App(listen=["127.0.0.1:5300"])

    @app.handle("*.example.com", types=["A"])
    async def a(query, reply):
        reply.answer(zonda.A("192.0.2.1", ttl=60))

    app.run()
"""

from . import records
from ._core import (
    MemoryStore,
    PostgresStore,
    Query,
    Record,
    RedbStore,
    RedisStore,
    Reply,
    Store,
    __version__,
)
from .app import App, FailedZone, Router
from .errors import (
    ConfigError,
    ConfigTypeError,
    Error,
    NoReply,
    PatternError,
    QueryError,
    RecordError,
    RecordTypeError,
    ServerError,
    StateError,
    StoreError,
    ZoneError,
)
from .lifespan import Lifespan
from .options import RecordType, ResponseCode
from .records import *  # noqa: F403 - a class for each type of record
from .serving import Answer, CallNext, ErrorHandler, Handler, Middleware
from .stores import OwnStore, RecordSet

__all__ = ["App", "FailedZone", "Query", "Record", "Reply", "Router"]
__all__ += ["MemoryStore", "PostgresStore", "RedbStore", "RedisStore"]
__all__ += ["OwnStore", "RecordSet", "Store"]
__all__ += ["Answer", "CallNext", "ErrorHandler", "Handler", "Lifespan", "Middleware"]
__all__ += ["ConfigError", "ConfigTypeError", "Error", "NoReply", "PatternError"]
__all__ += ["QueryError", "RecordError", "RecordTypeError", "ServerError", "StateError", "StoreError", "ZoneError"]
__all__ += ["RecordType", "ResponseCode", "__version__"]
__all__ += records.__all__
