//! What a process gives back once it answers.

use std::time::Duration;
use zonda_netio::memory;

/// How long after it has begun to answer a process gives back the memory that its start needed.
const SETTLED: Duration = Duration::from_secs(1);

/// Gives back, a second from now, freed memory and the pages of code that the start has used. Needs
/// the context of a runtime.
pub(crate) fn give_back_what_the_start_needed() {
    tokio::spawn(async {
        tokio::time::sleep(SETTLED).await;
        let work = || {
            memory::give_back();
            memory::drop_code_pages();
        };
        let _ = tokio::task::spawn_blocking(work).await;
    });
}
