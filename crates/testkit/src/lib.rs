//! Test-only: real peers as processes, generated zones, differences printed as dig prints.
