//! From the bytes of a query to the bytes of its reply.
