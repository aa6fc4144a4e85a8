//! Builds and runs the server: snapshots, reload, metrics, control.
