//! Zonda steers as gdnsd does: both have equal pools, whose members are in equal states, and are
//! asked by the same clients. What they may say differently is asserted where it is right.
#![allow(clippy::unwrap_used)]

mod answers;
mod beside;
mod clients;
mod places;
mod resources;
mod tally;
mod ttls;
