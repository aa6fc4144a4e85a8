//! Configuration file, environment and flags, made into one immutable Config.
