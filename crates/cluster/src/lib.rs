//! Names of a Kubernetes cluster.
//!
//! What services, endpoints and pods are called (the cluster's DNS specification, version 1.1.0), and
//! what these names answer. Pure: objects go in, an immutable snapshot comes out, which workers read.
//! Deliberately absent: connections to the API, clocks, and the writing of messages.

pub mod object;
