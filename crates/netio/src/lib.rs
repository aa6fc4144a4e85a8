//! Batched datagrams, socket options, descriptor passing: the only unsafe code, behind a safe interface.
