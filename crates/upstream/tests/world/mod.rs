//! A network of upstreams, questions and a clock, all made up: the same seed, the same run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use zonda_upstream::check::Failure;
use zonda_upstream::exchange::{Action, Exchange, Outcome, Reason};
use zonda_upstream::pool::{Member, Policy, Pool, Settings};
use zonda_wire::Rcode;

/// Nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds of a second.
pub const S: u64 = 1000 * MS;

/// How an upstream behaves.
#[derive(Clone)]
pub struct Model {
    /// Shortest and longest time to an answer, evenly spread.
    pub delay: Range<u64>,
    /// One answer in a hundred takes ten times as long.
    pub long_tail: bool,
    /// Share of the queries that get no answer.
    pub loss: f64,
    /// When the upstream is silent altogether.
    pub dead: Range<u64>,
    /// When the upstream answers everything with SERVFAIL.
    pub failing: Range<u64>,
    /// Share of the answers that come twice.
    pub duplicated: f64,
    /// When the upstream's answers take 100 ms more.
    pub slow: Range<u64>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            delay: 5 * MS..10 * MS,
            long_tail: false,
            loss: 0.003,
            dead: 0..0,
            failing: 0..0,
            duplicated: 0.0,
            slow: 0..0,
        }
    }
}

/// What happens at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A question comes.
    Question,
    /// An answer comes to an attempt of a question; a failure, if `true`.
    Answer(usize, u8, bool),
    /// A timer of a question fires.
    Timer(usize),
    /// Probes may be due.
    Probe,
    /// A probe sent at a time to an upstream is answered, or not.
    ProbeEnded(usize, u64, bool),
}

/// A question and its client.
struct Question {
    exchange: Exchange,
    asked_at: u64,
    /// When the timer fires that counts.
    timer_at: u64,
    /// When the client got its answer.
    answered_at: Option<u64>,
    /// The failure that the client got instead of an answer.
    failed: Option<Reason>,
    /// Whether the name is broken: every upstream says SERVFAIL.
    broken: bool,
    /// Queries sent for it.
    sent: u32,
}

/// All of it.
pub struct World {
    pub pool: Pool,
    models: Vec<Model>,
    /// Questions a second.
    rate: u64,
    /// Share of the questions whose names are broken.
    pub broken: f64,
    /// How long the server sleeps at the begin of every fifth second.
    pub stall: u64,
    now: u64,
    ends_at: u64,
    random: u64,
    /// What will happen: time, whether it is a timer, since answers come first, and the order.
    queue: BinaryHeap<Reverse<(u64, bool, u64, Event)>>,
    events: u64,
    questions: Vec<Question>,
    actions: Vec<Action>,
}

impl World {
    /// Makes a world of upstreams that are asked `rate` questions a second.
    pub fn new(policy: Policy, models: Vec<Model>, rate: u64, seed: u64) -> Self {
        let members = models.iter().map(|_| Member::new(false, [0; 16])).collect();
        let pool = Pool::new(members, Settings { policy, ..Settings::default() });
        Self {
            pool,
            models,
            rate,
            broken: 0.0,
            stall: 0,
            now: 0,
            ends_at: 0,
            random: seed,
            queue: BinaryHeap::new(),
            events: 0,
            questions: Vec::new(),
            actions: Vec::new(),
        }
    }

    /// Asks questions for so many seconds, then waits for the last ones.
    pub fn run(mut self, seconds: u64) -> Self {
        self.ends_at = seconds * S;
        self.at(S, Event::Question);
        self.at(S, Event::Probe);
        while let Some(Reverse((at, _, _, event))) = self.queue.pop() {
            self.now = at;
            self.happens(event);
        }
        self.check_counts();
        self
    }

    /// Puts an event onto the queue.
    fn at(&mut self, at: u64, event: Event) {
        self.events += 1;
        let timer = matches!(event, Event::Timer(..));
        self.queue.push(Reverse((self.awake(at), timer, self.events, event)));
    }

    /// Returns when the server sees what happens at a time.
    fn awake(&self, at: u64) -> u64 {
        let into = at % (5 * S);
        if into < self.stall { at - into + self.stall } else { at }
    }

    /// Returns the next random number.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a random number from 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Lets an event happen.
    fn happens(&mut self, event: Event) {
        match event {
            Event::Question => self.ask(),
            Event::Timer(index) if self.questions[index].timer_at == self.now => {
                let random = self.next();
                let Self { pool, questions, actions, now, .. } = self;
                questions[index].exchange.on_timer(pool, *now, random, actions);
                self.act(index);
            }
            Event::Timer(_) => {}
            Event::Answer(index, attempt, failure) => self.answer(index, attempt, failure),
            Event::Probe => self.probe(),
            Event::ProbeEnded(upstream, sent_at, answered) => {
                let failing = self.models[upstream].failing.contains(&sent_at);
                let failure = answered.then_some(failing);
                self.pool.probe_ended(self.now, upstream, sent_at, failure);
            }
        }
    }

    /// Has a question come, and puts the next one onto the queue.
    fn ask(&mut self) {
        let (key, random) = (self.next(), self.next());
        let (now, broken) = (self.now, self.unit() < self.broken);
        let exchange = Exchange::start(&mut self.pool, now, key, random, &mut self.actions);
        let (timer_at, answered_at, failed) = (0, None, None);
        let (asked_at, sent) = (now, 0);
        let question = Question { exchange, asked_at, timer_at, answered_at, failed, broken, sent };
        self.questions.push(question);
        self.act(self.questions.len() - 1);
        let gap = -(1.0 - self.unit()).ln() * S as f64 / self.rate as f64;
        let next = now + gap as u64 + 1;
        if next < self.ends_at {
            self.at(next, Event::Question);
        }
    }

    /// Has an answer come.
    fn answer(&mut self, index: usize, attempt: u8, failure: bool) {
        let outcome = match failure {
            true => Outcome::Failed(Failure::Rcode(Rcode::SERVFAIL)),
            false => Outcome::Answered,
        };
        let random = self.next();
        let Self { pool, questions, actions, now, .. } = self;
        let question = &mut questions[index];
        let was_settled = question.exchange.is_settled();
        question.exchange.on_outcome(pool, *now, attempt, outcome, random, actions);
        if !was_settled && question.exchange.is_settled() && !failure && question.failed.is_none() {
            question.answered_at.get_or_insert(*now);
        }
        self.act(index);
    }

    /// Does what an exchange wants, and sets its timer, which fires at a whole millisecond.
    fn act(&mut self, index: usize) {
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Send { attempt, upstream, .. } => {
                    self.send(index, attempt, usize::from(upstream));
                }
                Action::ServeStale => {}
                Action::Fail(reason) => self.questions[index].failed = Some(reason),
            }
        }
        if let Some(at) = self.questions[index].exchange.timer(&self.pool) {
            let at = self.awake(at.max(self.now + 1).next_multiple_of(MS));
            self.questions[index].timer_at = at;
            self.at(at, Event::Timer(index));
        }
    }

    /// Sends a query.
    fn send(&mut self, index: usize, attempt: u8, upstream: usize) {
        let model = self.models[upstream].clone();
        self.questions[index].sent += 1;
        if self.unit() < model.loss || model.dead.contains(&self.now) {
            return;
        }
        let failure = self.questions[index].broken || model.failing.contains(&self.now);
        let copies = 1 + usize::from(self.unit() < model.duplicated);
        for _ in 0..copies {
            let spread = self.next() % (model.delay.end - model.delay.start);
            let mut delay = model.delay.start + spread;
            if model.long_tail && self.next().is_multiple_of(100) {
                delay *= 10;
            }
            if model.slow.contains(&self.now) {
                delay += 100 * MS;
            }
            self.at(self.now + delay, Event::Answer(index, attempt, failure));
        }
    }

    /// Sends the probes that are due.
    fn probe(&mut self) {
        while let Some(upstream) = self.pool.take_probe(self.now) {
            let model = self.models[upstream].clone();
            let dead = self.unit() < model.loss || model.dead.contains(&self.now);
            let delay = model.delay.start;
            let ends = self.now + if dead { 400 * MS } else { delay };
            self.at(ends, Event::ProbeEnded(upstream, self.now, !dead));
        }
        if self.now < self.ends_at {
            self.at(self.now + 10 * MS, Event::Probe);
        }
    }

    /// Nothing is left under way, and the counters add up.
    fn check_counts(&self) {
        for member in &self.pool.members {
            let counters = member.counters;
            assert_eq!(member.outstanding, 0);
            let ended = counters.answered + counters.failed + counters.lost + counters.redirected;
            assert_eq!(counters.sent, ended);
        }
        assert!(self.questions.iter().all(|it| it.exchange.timer(&self.pool).is_none()));
    }

    /// Returns what the clients whose questions came in a span of seconds saw.
    pub fn seen(&self, seconds: Range<f64>) -> ClientReport {
        let span = (seconds.start * S as f64) as u64..(seconds.end * S as f64) as u64;
        let inside = || self.questions.iter().filter(|it| span.contains(&it.asked_at));
        let mut times: Vec<u64> =
            inside().filter_map(|it| Some(it.answered_at? - it.asked_at)).collect();
        times.sort_unstable();
        let broken = inside().filter(|it| it.broken).count();
        let lost = inside().count() - times.len() - broken;
        ClientReport { times, lost }
    }

    /// Queries sent in percent of the questions, less one hundred.
    pub fn extra_percent(&self) -> f64 {
        let sent: u64 = self.pool.members.iter().map(|member| member.counters.sent).sum();
        (sent as f64 / self.questions.len() as f64 - 1.0) * 100.0
    }

    /// Returns the share of extra queries for names that are not broken; those for broken ones go
    /// to each upstream.
    pub fn extra_percent_of_sound(&self) -> f64 {
        let sound = self.questions.iter().filter(|question| !question.broken);
        let (mut questions, mut sent) = (0.0, 0.0);
        for question in sound {
            questions += 1.0;
            sent += question.sent as f64;
        }
        (sent / questions - 1.0) * 100.0
    }
}

/// What clients saw.
pub struct ClientReport {
    /// Times to an answer, ascending.
    times: Vec<u64>,
    /// Questions without an answer, broken names not counted.
    pub lost: usize,
}

impl ClientReport {
    /// Milliseconds within which a share of the answers came; 1 is the slowest.
    pub fn ms(&self, share: f64) -> f64 {
        let at = ((self.times.len() - 1) as f64 * share) as usize;
        self.times[at] as f64 / MS as f64
    }

    /// Prints a line of figures.
    pub fn print(&self, what: &str, world: &World) {
        println!(
            "{what}: {} answered, {} lost, p50 {:.1} p99 {:.1} p99.9 {:.1} max {:.1} ms, {:+.2} % \
             queries",
            self.times.len(),
            self.lost,
            self.ms(0.5),
            self.ms(0.99),
            self.ms(0.999),
            self.ms(1.0),
            world.extra_percent()
        );
    }
}
