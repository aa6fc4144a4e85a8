//! Zone data: master files, JSON zones, semantic checks, lookup, immutable snapshots.
