//! UDP workers and TCP connections that call the engine.
