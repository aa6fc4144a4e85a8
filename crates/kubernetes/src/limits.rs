//! How long the API server may take, and how soon it is asked again.

use std::time::Duration;

/// Times that bound what a slow or failing API server can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may take, with TLS.
    pub connect: Duration,
    /// How long the head of a response may take.
    pub head: Duration,
    /// How long a list may bring nothing.
    pub silence: Duration,
    /// How long a page of a list may take, however steadily it comes.
    pub page: Duration,
    /// The shortest time that the API is asked to serve a watch, in whole seconds; the longest is
    /// twice that.
    pub watch: Duration,
    /// How much longer than asked for a watch may go on.
    pub watch_excess: Duration,
    /// The shortest pause after a failure; doubled each time.
    pub pause_min: Duration,
    /// The longest pause after a failure, without what is added at random.
    pub pause_max: Duration,
    /// The longest such pause while the API server cannot be reached.
    pub pause_away_max: Duration,
    /// The longest such pause while the API server refuses the first list, as it does while it
    /// starts: until then there are no names.
    pub pause_first_max: Duration,
    /// How long that holds after the start.
    pub first: Duration,
    /// How long objects are followed until pauses begin anew with the shortest.
    pub stable: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_secs(30),
            silence: Duration::from_secs(60),
            page: Duration::from_secs(300),
            watch: Duration::from_secs(300),
            watch_excess: Duration::from_secs(30),
            pause_min: Duration::from_millis(200),
            pause_max: Duration::from_secs(30),
            pause_away_max: Duration::from_secs(4),
            pause_first_max: Duration::from_secs(1),
            first: Duration::from_secs(60),
            stable: Duration::from_secs(5),
        }
    }
}
