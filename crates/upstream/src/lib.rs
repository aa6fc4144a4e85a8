//! Forwarding without sockets: what an upstream is, which one to query and when again, which
//! answers to accept.
//!
//! | file | what |
//! |---|---|
//! | `notation` | an upstream and how a configuration writes it |
//! | `pool` | the upstreams of a zone, and which one is asked |
//! | `exchange` | the life of one question: where it is sent, when again, what clients get |
//! | `outcome` | outcomes of queries and questions |
//! | `rtt`, `health`, `capability` | what is known of an upstream |
//! | `budget` | how many queries may be sent beside those that questions need |
//! | `admission` | which queries may wait when there are too many |
//! | `query` | the query that an upstream gets |
//! | `check` | whether a message answers what was sent, and what to do when it does not |
//! | `answer` | the records of an answer that belong to the question |
//! | `numbers` | tables by numbers, chosen here or by clients |
//! | `rebinding` | addresses that names of the Internet should not have |
//!
//! Deliberately absent: sockets, clocks, threads, randomness, and the cache. Times are nanoseconds
//! of a clock that the caller chooses, and arguments.
//!
//! # How the parts meet
//! ```
//! # use zonda_upstream::*;
//! # use zonda_upstream::check::Verdict;
//! # use zonda_wire::{Class, Name, Type};
//! let millisecond = 1_000_000;
//! let mut pool = Pool::new(vec![Member::new(false, *b"secret of cookie")], Settings::default());
//! let name: Name = "www.example".parse()?;
//! let (qtype, qclass) = (Type::A, Class::IN);
//! let (dnssec_ok, checking_disabled) = (false, false);
//! let question =
//!     Question { name: name.as_wire(), qtype, qclass, dnssec_ok, checking_disabled };
//!
//! // A question comes: an upstream is chosen.
//! let (mut actions, now) = (Vec::new(), 5 * millisecond);
//! let mut exchange = Exchange::start(&mut pool, now, 0x1234_5678, 0, &mut actions);
//! let Some(Action::Send { attempt, upstream, form }) = actions.pop() else { panic!() };
//! let cookies = pool.members[usize::from(upstream)].cookies.at(None, now);
//! let mut query = Vec::new();
//! question.write((0x4711, form), &[0b1010, 0, 0, 0], &cookies, UDP_BYTES, &mut query);
//! let wake_at = exchange.timer(&pool).expect("a query is under way"); // then, on_timer
//! # assert_eq!(wake_at, 205 * millisecond);
//!
//! // A message comes from the upstream's address: it is checked, and read.
//! # let mut message = query.clone();
//! # message[2] |= 0x80;
//! let sent = query::sent(&query, form, false);
//! let Verdict::Accept(response) = check(&sent, &message) else { panic!() };
//! if let Some(cookie) = check::server_cookie(&response) {
//!     pool.members[usize::from(upstream)].cookies.remember(sent.cookie, cookie, now);
//! }
//! let mut answer = Answer::default();
//! let kind = answer.read(&mut message, question.name, question.dnssec_ok)?;
//! exchange.on_outcome(&mut pool, now + millisecond, attempt, Outcome::Answered, 0, &mut actions);
//! assert_eq!(exchange.timer(&pool), None); // it is over
//! # assert_eq!((kind, answer.records().len()), (answer::Kind::NoData, 0));
//!
//! // While an upstream is not up, the caller has to probe it: no query finds that it is back.
//! while let Some(index) = pool.take_probe(now) {
//!     let answered = true;
//!     pool.probe_ended(now + millisecond, index, now, answered.then_some(false));
//! }
//! assert_eq!(pool.probe_at(), None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admission;
pub mod answer;
mod budget;
pub mod capability;
pub mod check;
pub mod exchange;
pub mod health;
pub mod notation;
pub mod numbers;
mod outcome;
pub mod pool;
pub mod query;
pub mod rebinding;
pub mod rtt;

pub use admission::{Admission, Ticket};
pub use answer::{Answer, AnswerError};
pub use check::{Doubt, Failure, Mismatch, Repeat, SentQuery, Verdict, check};
pub use exchange::{Action, Exchange, Outcome};
pub use health::Thresholds;
pub use notation::{Host, NotationError, Transport, Upstream};
pub use pool::{Member, Policy, Pool, Settings};
pub use query::{Question, UDP_BYTES};

/// Nanoseconds of a millisecond.
const MILLISECOND_NANOS: u64 = 1_000_000;
/// Nanoseconds of a second.
const SECOND_NANOS: u64 = 1_000_000_000;
