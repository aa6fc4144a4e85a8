//! Pools, and which member of a pool answers which client.
//!
//! A [`Pool`] is what the configuration says. Together with the state of each member it is compiled
//! into a [`PoolPlan`], which is immutable: whatever depends on members and their states alone is
//! decided then, and a query costs the same whatever the number of members. When a state changes,
//! the pool is compiled anew.
//!
//! | module | what it holds |
//! |---|---|
//! | `pool` | a pool as it is configured: members, filters, what happens when all are down |
//! | `geography` | sites, and what tells where clients are |
//! | `site_map` | the sites that the clients of each network prefer |
//! | `compile` | from a pool and the states of its members to a plan |
//! | `filters` | the filters that members pass while a plan is made |
//! | `explain` | what a pool does for a client, step by step |
//! | `plan` | the plan of a pool, and the choice for one query |
//! | `alias_table` | a random member by weight, in constant time |
//! | `slots` | a member by the hash of a client, which few clients lose when a member goes |
//! | `dice` | random numbers of a worker |
//! | `client` | the client's network |
//!
//! Deliberately absent: clocks, sockets, health checks, and the zones whose names are steered.

mod alias_table;
mod client;
mod compile;
mod dice;
pub mod explain;
mod filters;
pub mod geography;
mod plan;
mod pool;
mod site_map;
mod slots;

pub use client::ClientNetwork;
pub use compile::MemberState;
pub use dice::{Dice, identity_of};
pub use plan::{Choice, EndWithout, Outcome, PoolPlan, View};
pub use pool::{Answers, Filter, LoadMarks, Member, Order, Pool, Records, WhenAllDown};
pub use site_map::{MapSource, NEAREST_MAX, SiteMap};

/// Most records that a pool answers with, unless it answers with all of its members.
pub const ANSWERS_MAX: usize = 32;
/// Most pools that a choice goes through, one being a member or the substitute of the other.
pub const POOL_DEPTH_MAX: usize = 8;
