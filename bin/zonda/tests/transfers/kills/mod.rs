//! Servers that are killed at random moments while zones change: nothing acknowledged is lost, no
//! serial goes back, no file is damaged, and at the end all servers have the same records.

pub mod catalogs;
pub mod clients;
mod secondaries;
pub mod server;
pub mod updates;

use std::env;

/// The variable with the number of kills of all tests of this folder together; `make test-full`
/// has a thousand.
const VARIABLE: &str = "TEST_KILLS";
/// The number without it.
const KILLS: usize = 40;
/// Tests that share the kills.
const TESTS: usize = 3;
/// Kills after which all servers have to have the same records.
const ROUND: usize = 8;

/// The number of kills of one test.
fn kills() -> usize {
    let given = env::var(VARIABLE).ok();
    let all = given.map_or(KILLS, |text| text.parse().expect("TEST_KILLS is a number"));
    all.div_ceil(TESTS)
}
