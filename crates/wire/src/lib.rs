//! DNS messages: names, codes, record data, queries and replies. No I/O, no clock.
