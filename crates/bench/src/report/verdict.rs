//! Sentences about which server is ahead, by how much, and where the server at home is behind.
//!
//! Each claim is one of [`crate::paired`]. What a run cannot decide is said to be undecided, and
//! counts neither as level nor as ahead.

use super::figures::{COMPARED, Figure, Group};
use super::numbers::{change_of, interval, short};
use crate::data::Cell;
use crate::paired::Relation;
use crate::statistics::Spread;

/// The server whose weaknesses a report must not leave for the reader to find.
pub const HOME: &str = "zonda";

/// How the kinds begin that are programs made with it: where they are compared, it is not missed.
const MADE_WITH_HOME: &str = "zonda-";

/// Latencies of a server that loses more of its queries are not compared; 0–1. What it has dropped
/// waits in no queue, so that the rest is answered sooner.
pub const LOSS_MAX: f64 = 0.001;

/// Whether this is the server at home, or a program made with it.
pub fn is_zonda(server: &str) -> bool {
    server == HOME || server.starts_with(MADE_WITH_HOME)
}

/// How the servers of a test stand in one figure.
pub struct Ranking<'a> {
    /// Group of cells of the test.
    group: &'a Group<'a>,
    /// Figure that is compared.
    figure: Figure,
    /// Servers that may be compared by it, the best median first; at least one.
    order: Vec<(&'a Cell, Spread)>,
}

/// Where the server at home stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Home {
    /// Better than every other server.
    Ahead,
    /// No server is better, and all that are not worse are level with it.
    Level,
    /// No server is known to be better, but some may be.
    Undecided,
    /// No other server was measured to compare this one with.
    Alone,
    /// Another server is better.
    Behind {
        /// Name of the leading server.
        leader: String,
        /// Change from that server's figure.
        change: f64,
    },
}

impl<'a> Ranking<'a> {
    /// Makes the verdict on a figure that some server has.
    pub fn of(group: &'a Group<'a>, figure: Figure) -> Option<Self> {
        let fit = |cell: &Cell| !figure.is_latency() || figure.loss(cell) <= LOSS_MAX;
        let ranked = group.ranked().filter(|cell| fit(cell));
        let mut order: Vec<(&Cell, Spread)> =
            ranked.filter_map(|cell| Some((cell, group.figure(figure, cell)?))).collect();
        order.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
        if figure.more_is_better() {
            order.reverse();
        }
        (!order.is_empty()).then_some(Self { group, figure, order })
    }

    /// Returns how a server stands to another one.
    fn relation(&self, cell: &Cell, base: &Cell) -> Relation {
        let found = self.group.relation(self.figure, cell, base);
        found.unwrap_or(Relation::Undecided(None))
    }

    /// Whether a server is among those that are compared.
    pub fn compares(&self, cell: &Cell) -> bool {
        self.order.iter().any(|(other, _)| other.server == cell.server)
    }

    /// Returns how a server stands to the one with the best median; none for that one itself.
    pub fn against_best(&self, cell: &Cell) -> Option<Relation> {
        let (best, _) = self.order[0];
        (best.server != cell.server).then(|| self.relation(cell, best))
    }

    /// Returns where the server at home stands; none when it is not compared.
    pub fn home(&self) -> Option<Home> {
        let (home, _) = self.order.iter().find(|(cell, _)| cell.server == HOME)?;
        let rivals = || self.order.iter().map(|(cell, _)| *cell).filter(|it| it.server != HOME);
        let better = rivals().find_map(|rival| match self.relation(home, rival) {
            Relation::Differs(found) if !self.figure.is_better(found.change) => {
                Some((rival, found.change))
            }
            Relation::Once(change) if !self.figure.is_better(change) => Some((rival, change)),
            _ => None,
        });
        if let Some((leader, change)) = better {
            return Some(Home::Behind { leader: leader.server.clone(), change });
        }
        let relations: Vec<Relation> = rivals().map(|it| self.relation(home, it)).collect();
        let is_worse = |it: &&Relation| matches!(it, Relation::Differs(_));
        let is_clear = |it: &Relation| matches!(it, Relation::Differs(_) | Relation::Level(_));
        Some(match relations.len() {
            0 => Home::Alone,
            all if relations.iter().filter(is_worse).count() == all => Home::Ahead,
            _ if relations.iter().all(is_clear) => Home::Level,
            _ => Home::Undecided,
        })
    }

    /// Returns the server that is better than every other one, if one is.
    pub fn leader(&self) -> Option<&'a str> {
        let (best, _) = self.order[0];
        let is_worse =
            |(cell, _): &(&Cell, Spread)| matches!(self.relation(cell, best), Relation::Differs(_));
        let is_ahead = self.order.len() > 1 && self.order[1..].iter().all(is_worse);
        is_ahead.then_some(&*best.server)
    }

    /// Returns which server is ahead or has the best median, which ones are level with it or
    /// undecided, which comes next, and where the server at home is; follows a colon.
    pub fn sentence(&self) -> String {
        let (best, spread) = &self.order[0];
        let shown = self.figure.show(spread.median);
        if self.order.len() == 1 {
            return format!("only {} is compared, with {shown}.", best.server);
        }
        let others: Vec<(&Cell, &Spread, Relation)> = self.order[1..]
            .iter()
            .map(|(cell, spread)| (*cell, spread, self.relation(cell, best)))
            .collect();
        let level: Vec<_> = others.iter().filter(|it| matches!(it.2, Relation::Level(_))).collect();
        let undecided: Vec<_> =
            others.iter().filter(|it| matches!(it.2, Relation::Undecided(_))).collect();
        let mut text = match (&level[..], &undecided[..]) {
            ([], []) => format!("{} is ahead with {shown}", best.server),
            ([], _) => format!("{} has the best median, {shown}", best.server),
            ([.., last], _) => {
                let names: Vec<&str> = level.iter().map(|(cell, ..)| &*cell.server).collect();
                let names = list(&[&[&*best.server], &names[..]].concat());
                let (margin, last) = (self.figure.margin(), self.figure.show(last.1.median));
                let to = if last == shown { String::new() } else { format!(" to {last}") };
                format!("{names} are level within {margin} ({shown}{to})")
            }
        };
        if !undecided.is_empty() {
            let parts: Vec<String> = undecided.iter().map(|it| self.not_told_apart(it)).collect();
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            text += &format!("; not told apart from it in this run: {}", list(&parts));
        }
        let is_apart =
            |it: &&(_, _, Relation)| matches!(it.2, Relation::Differs(_) | Relation::Once(_));
        let next = others.iter().find(is_apart);
        if let Some((cell, spread, relation)) = next {
            text += &format!("; next is {} with {}", cell.server, self.behind(spread, relation));
        }
        let home = others.iter().filter(is_apart).find(|(cell, ..)| cell.server == HOME);
        if let Some((cell, spread, relation)) = home
            && next.is_some_and(|(next, ..)| next.server != cell.server)
        {
            text += &format!("; {HOME} has {}", self.behind(spread, relation));
        }
        text + "."
    }

    /// Returns a server with its figure and what the change from the best may be.
    fn not_told_apart(&self, (cell, spread, relation): &(&Cell, &Spread, Relation)) -> String {
        let shown = self.figure.show(spread.median);
        match relation {
            Relation::Undecided(Some(found)) => {
                format!("{} ({shown}; {})", cell.server, interval(self.figure, found))
            }
            _ => format!("{} ({shown})", cell.server),
        }
    }

    /// Returns a figure with what it differs from the best.
    fn behind(&self, spread: &Spread, relation: &Relation) -> String {
        let shown = self.figure.show(spread.median);
        match relation {
            Relation::Differs(found) => {
                format!("{shown} ({})", change_of(self.figure, found.change))
            }
            Relation::Once(change) => {
                format!("{shown} ({}, measured once)", change_of(self.figure, *change))
            }
            _ => shown,
        }
    }
}

/// Names with an “and” before the last.
pub fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns what a whole run says, a figure and a sentence each: how often the server at home is
/// ahead, level, undecided and behind, where it is farthest behind, and how often it has no figure.
pub fn headlines<'a>(groups: &'a [Group<'a>]) -> Vec<(Figure, String)> {
    let told = COMPARED.into_iter().filter(|figure| figure.is_headline());
    let steady: Vec<&Group<'_>> = groups.iter().filter(|it| it.unsteady().is_none()).collect();
    let headline = |figure: Figure| {
        let places: Vec<(&Group<'_>, Ranking<'_>)> =
            steady.iter().filter_map(|group| Some((*group, Ranking::of(group, figure)?))).collect();
        let missing = steady.iter().filter(|group| is_missing(group, figure)).count();
        let total = steady.len();
        let found = match &places[..] {
            [] => None,
            [(_, one)] if total == 1 => Some(one.sentence()),
            [(group, one)] => Some(format!("in “{}”, {}", group.label(), one.sentence())),
            many => Some(over_tests(many)),
        };
        let lacking = match missing {
            0 => None,
            _ if total == 1 => Some(format!("{HOME} has no figure.")),
            _ => Some(format!("{HOME} has no figure in {missing} of {total} tests.")),
        };
        let unmeasured = unmeasured(&steady, figure, total - places.len());
        let said: Vec<String> = found.into_iter().chain(lacking).chain(unmeasured).collect();
        (!said.is_empty()).then(|| (figure, said.join(" ")))
    };
    told.filter_map(headline).collect()
}

/// Returns a sentence on the tests in which no server has a figure; none where it was measured in
/// none, and none of it was lost to the generator.
fn unmeasured(steady: &[&Group<'_>], figure: Figure, count: usize) -> Option<String> {
    let total = steady.len();
    let is_late = |group: &&&Group<'_>| figure == Figure::Tail && !group.late().is_empty();
    let late = steady.iter().filter(is_late).count();
    match (count, late) {
        (0, _) => None,
        (count, 0) if count == total => None,
        (count, 0) => Some(format!("No server has a figure in {count} of {total} tests.")),
        (1, 1) if total == 1 => Some("No server has a figure: the generator was late.".to_owned()),
        (count, late) if late == count => Some(format!(
            "No server has a figure in {count} of {total} tests: the generator was late."
        )),
        (count, late) => Some(format!(
            "No server has a figure in {count} of {total} tests, in {late} of them because the \
             generator was late."
        )),
    }
}

/// Whether other servers have a figure and the server at home is not compared by it.
fn is_missing(group: &Group<'_>, figure: Figure) -> bool {
    let standing = Ranking::of(group, figure).filter(|_| !is_represented(group));
    standing.is_some_and(|it| it.order.iter().all(|(cell, _)| cell.server != HOME))
}

/// Whether programs made with the server at home stand in its place.
fn is_represented(group: &Group<'_>) -> bool {
    let is_made_with_home = |cell: &&Cell| cell.server.starts_with(MADE_WITH_HOME);
    group.cell(HOME).is_none() && group.cells.iter().any(is_made_with_home)
}

/// Returns a sentence on several tests.
fn over_tests(tests: &[(&Group<'_>, Ranking<'_>)]) -> String {
    let (mut ahead, mut level, mut undecided, mut alone) = (0, 0, 0, 0);
    let mut behind: Vec<(&Group<'_>, Figure, String, f64)> = Vec::new();
    for (group, standing) in tests {
        match standing.home() {
            Some(Home::Ahead) => ahead += 1,
            Some(Home::Level) => level += 1,
            Some(Home::Undecided) => undecided += 1,
            Some(Home::Alone) => alone += 1,
            Some(Home::Behind { leader, change }) => {
                behind.push((group, standing.figure, leader, change));
            }
            None => {}
        }
    }
    let compared = ahead + level + undecided + behind.len();
    if compared == 0 {
        return leaders(tests);
    }
    let counts = [
        (ahead, "ahead"),
        (level, "level with the best"),
        (undecided, "not told apart from the best"),
        (behind.len(), "behind"),
    ];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| match count == compared {
            true if compared == 1 => format!("{what} in 1 test"),
            true if compared == 2 => format!("{what} in both tests"),
            true => format!("{what} in all {compared} tests"),
            false => format!("{what} in {count}"),
        })
        .collect();
    let mut text = format!("{HOME} is {}", parts.join(", "));
    if parts.len() > 1 {
        text += &format!(" of {compared} tests");
    }
    let farthest = behind.iter().max_by(|a, b| a.3.abs().total_cmp(&b.3.abs()));
    if let Some((group, figure, leader, change)) = farthest {
        let change = change_of(*figure, *change);
        text += &format!("; farthest in “{}”: {change} against {leader}", group.label());
    }
    if alone > 0 {
        text += &format!("; alone in {alone}");
    }
    text + "."
}

/// Returns a summary where the server at home was not compared: how often each server is ahead of
/// all.
fn leaders(tests: &[(&Group<'_>, Ranking<'_>)]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for leader in tests.iter().filter_map(|(_, standing)| standing.leader()) {
        match counts.iter_mut().find(|(name, _)| *name == leader) {
            Some((_, count)) => *count += 1,
            None => counts.push((leader, 1)),
        }
    }
    let total = tests.len();
    if tests.iter().all(|(_, standing)| standing.order.len() == 1) {
        let mut names: Vec<&str> =
            tests.iter().map(|(_, standing)| &*standing.order[0].0.server).collect();
        names.sort_unstable();
        names.dedup();
        return format!("nothing to compare with: only {} in {total} tests.", list(&names));
    }
    let parts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} in {count}")).collect();
    match parts.is_empty() {
        true => format!("no server is ahead of all others in any of {total} tests."),
        false => format!("ahead of all others, of {total} tests: {}.", parts.join(", ")),
    }
}

/// Returns every figure in which another server is better than the server at home, one line each.
pub fn behind(group: &Group<'_>) -> Vec<String> {
    let Some(home) = group.ranked().find(|cell| cell.server == HOME) else {
        return Vec::new();
    };
    let line = |figure: Figure| {
        let ours = group.figure(figure, home)?;
        let rivals = group.ranked().filter(|cell| cell.server != HOME);
        let ahead: Vec<String> =
            rivals.filter_map(|rival| better(group, figure, home, rival)).collect();
        let ours = figure.show(ours.median);
        (!ahead.is_empty())
            .then(|| format!("{}: {ours}, behind {}", figure.name(), ahead.join(", ")))
    };
    COMPARED.into_iter().filter_map(line).collect()
}

/// Returns every figure that the server at home does not have here, or not to be compared by,
/// though it was to be measured; one line each, with the reason.
pub fn missing(group: &Group<'_>) -> Vec<String> {
    if is_represented(group) || group.unsteady().is_some() {
        return Vec::new();
    }
    let Some(home) = group.cell(HOME) else {
        return vec!["it was not measured here".to_owned()];
    };
    if let Some(reason) = group.reason_unranked(home) {
        return vec![format!("it is not compared: {reason}")];
    }
    let line = |figure: Figure| Some(format!("{}: {}", figure.name(), lack(group, home, figure)?));
    COMPARED.into_iter().filter_map(line).collect()
}

/// Returns why the server at home, which is compared, is not compared by this figure; none if it
/// is, or if no server has the figure.
fn lack(group: &Group<'_>, home: &Cell, figure: Figure) -> Option<String> {
    let late = group.late();
    if figure == Figure::Tail && !late.is_empty() {
        return Some(format!("the generator was late at {}, so no server has it", list(&late)));
    }
    let loss = figure.loss(home);
    match group.figure(figure, home) {
        None => Ranking::of(group, figure)
            .map(|_| "other servers have it, it was not measured".to_owned()),
        Some(_) if figure.is_latency() && loss > LOSS_MAX => {
            Some(format!("it lost {} % of its queries", short(loss * 100.0)))
        }
        Some(_) => None,
    }
}

/// Returns a rival with its figure, if it is better than the one at home.
fn better(group: &Group<'_>, figure: Figure, home: &Cell, rival: &Cell) -> Option<String> {
    let theirs = group.figure(figure, rival)?;
    let (change, once) = match group.relation(figure, home, rival)? {
        Relation::Differs(found) => (found.change, ""),
        Relation::Once(change) => (change, ", measured once"),
        Relation::Level(_) | Relation::Undecided(_) => return None,
    };
    if figure.is_better(change) {
        return None;
    }
    let lost = match figure.loss(rival) {
        loss if figure.is_latency() && loss > LOSS_MAX => {
            format!(", having lost {} % of its queries", short(loss * 100.0))
        }
        _ => String::new(),
    };
    let (text, change) = (figure.show(theirs.median), change_of(figure, change));
    Some(format!("{} ({text}; {change}{once}{lost})", rival.server))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Run;
    use crate::report::figures::groups;
    use crate::report::sample::run;

    /// Returns a run in which the first cell of a server was changed.
    fn changed(server: &str, change: impl Fn(&mut Cell)) -> Run {
        let mut run = run();
        run.cells.iter_mut().filter(|cell| cell.server == server).take(1).for_each(change);
        run
    }

    /// Returns the lines about a figure.
    fn of_figure(lines: Vec<String>, figure: Figure) -> Vec<String> {
        lines.into_iter().filter(|line| line.starts_with(&figure.name())).collect()
    }

    /// Has the generator late at every rate.
    fn be_late(cell: &mut Cell) {
        cell.latency_at.iter_mut().for_each(|point| point.is_generator_late = true);
    }

    /// Loses one query of so many in every round.
    fn lose(cell: &mut Cell, one_of: u64) {
        for round in &mut cell.rounds {
            round.traffic.lost = round.traffic.sent / one_of;
        }
    }

    #[test]
    fn no_server_has_a_tail_where_the_generator_was_late_for_a_ranked_one() {
        for (server, is_known) in
            [("knot", false), ("nsd", false), ("zonda", false), ("reflector", true)]
        {
            let run = changed(server, be_late);
            let groups = groups(&run);
            assert_eq!(Ranking::of(&groups[0], Figure::Tail).is_some(), is_known, "{server}");
            let said = of_figure(missing(&groups[0]), Figure::Tail);
            assert_eq!(said.is_empty(), is_known, "{said:?}");
            let headline = headlines(&groups).into_iter().find(|it| it.0 == Figure::Tail);
            let said = "No server has a figure in 1 of 6 tests: the generator was late.";
            assert_eq!(headline.is_some_and(|it| it.1.ends_with(said)), !is_known, "{server}");
        }
    }

    #[test]
    fn no_figure_of_a_run_may_be_lost_to_the_generator_without_a_word() {
        let mut run = run();
        run.cells.iter_mut().for_each(be_late);
        let headline = headlines(&groups(&run)).into_iter().find(|it| it.0 == Figure::Tail);
        let said = "No server has a figure in 6 of 6 tests: the generator was late.";
        assert_eq!(headline.unwrap().1, said);
    }

    #[test]
    fn a_test_without_a_figure_of_zonda_says_so() {
        assert_eq!(missing(&groups(&run())[0]), Vec::<String>::new());
        let unranked = changed("zonda", |cell| cell.unranked = Some("answers nothing".to_owned()));
        let found = groups(&unranked);
        assert_eq!(missing(&found[0]), ["it is not compared: answers nothing"]);
        let (_, said) = &headlines(&found)[0];
        assert!(said.ends_with(". zonda has no figure in 1 of 6 tests."), "{said}");
        let unmeasured = changed("zonda", |cell| cell.rounds.clear());
        assert!(missing(&groups(&unmeasured)[0])[0].starts_with("it is not compared: other"));
        let mut absent = run();
        absent.cells.retain(|cell| cell.server != "zonda");
        assert_eq!(missing(&groups(&absent)[0]), ["it was not measured here"]);
    }

    #[test]
    fn where_programs_made_with_zonda_are_compared_it_is_not_missed() {
        let mut run = run();
        let at_home = run.cells.iter_mut().filter(|cell| cell.server == "zonda");
        at_home.for_each(|cell| cell.server = "zonda-node".to_owned());
        let groups = groups(&run);
        assert_eq!(missing(&groups[0]), Vec::<String>::new());
        assert!(headlines(&groups).iter().all(|(_, said)| !said.contains("no figure")));
    }

    #[test]
    fn a_latency_missing_for_zonda_only_is_said_to_be_missing() {
        let run = changed("zonda", |cell| cell.latency_at.clear());
        let said = missing(&groups(&run)[0]);
        let why = "other servers have it, it was not measured";
        let expected = [Figure::Tail, Figure::TailLoss].map(|it| format!("{}: {why}", it.name()));
        assert_eq!(said, expected);
    }

    #[test]
    fn a_server_that_loses_more_is_behind_whatever_its_latency() {
        let run = changed("zonda", |cell| lose(cell, 100));
        let groups = groups(&run);
        let said = of_figure(behind(&groups[0]), Figure::Loss);
        let begin = "queries lost at full load: 1.00 %, behind knot (under 0.001 %; ";
        assert!(said.len() == 1 && said[0].starts_with(begin), "{said:?}");
        let lacking = of_figure(missing(&groups[0]), Figure::Percentile(50_000));
        assert!(lacking[0].ends_with(": it lost 1.00 % of its queries"), "{lacking:?}");
        let few = changed("zonda", |cell| lose(cell, 2000));
        let few = crate::report::figures::groups(&few);
        assert!(of_figure(behind(&few[0]), Figure::Loss).is_empty());
    }

    #[test]
    fn loss_at_the_common_rate_is_reported_if_another_server_loses_nothing() {
        let mut run = changed("zonda", |cell| {
            for point in &mut cell.latency_at {
                point.traffic.lost = point.traffic.sent / 50;
            }
            cell.latency_at.extend_from_within(..);
        });
        for cell in run.cells.iter_mut().filter(|cell| cell.server == "knot") {
            cell.latency_at.iter_mut().for_each(|point| point.traffic.lost = 0);
            cell.latency_at.extend_from_within(..);
        }
        let said = of_figure(behind(&groups(&run)[0]), Figure::TailLoss);
        let begin = "queries lost at one rate for all: 2.00 %, behind knot (none; +2.00 points)";
        assert!(said.len() == 1 && said[0].starts_with(begin), "{said:?}");
    }

    /// Returns a run that is kept in the repository.
    fn kept(name: &str) -> Run {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/runs/2026-11-21-epyc-2cpu");
        let file = std::fs::File::open(format!("{folder}/{name}.json")).unwrap();
        crate::report::json::read(file).unwrap()
    }

    #[test]
    fn servers_that_differ_five_times_are_level_in_no_kept_run() {
        let run = kept("handlers");
        let groups = groups(&run);
        let built = groups.iter().find(|group| group.label() == "built").unwrap();
        let unsteady = built.unsteady().unwrap();
        assert!(unsteady.ends_with("by 2.75 × in queries per second"), "{unsteady}");
        let [fast, slow] = ["zonda-rust", "dinodns"].map(|name| built.cell(name).unwrap());
        let found = [Figure::CpuPerQuery, Figure::Qps]
            .map(|figure| built.relation(figure, slow, fast).unwrap());
        assert!(matches!(found[0], Relation::Differs(_)), "{found:?}");
        assert!(matches!(found[1], Relation::Undecided(Some(_))), "{found:?}");
        let [one, other] = ["zonda-node", "zonda-dinodns"].map(|name| built.cell(name).unwrap());
        let found = built.relation(Figure::CpuPerQuery, other, one);
        assert!(matches!(found, Some(Relation::Undecided(Some(_)))), "{found:?}");
    }

    #[test]
    fn figures_of_kept_runs_are_level_only_within_the_margin() {
        for name in ["bind-forward", "cluster", "dinodns-coredns", "erldns", "handlers", "scale"] {
            let run = kept(name);
            for group in groups(&run) {
                for (a, b) in group.ranked().flat_map(|a| group.ranked().map(move |b| (a, b))) {
                    let found = group.relation(Figure::Qps, a, b);
                    if let Some(Relation::Level(interval)) = found {
                        assert!(interval.low >= -0.05 && interval.high <= 0.05, "{interval:?}");
                        let apart =
                            Figure::Qps.of(a).unwrap().median / Figure::Qps.of(b).unwrap().median;
                        assert!((0.9..1.1).contains(&apart), "{} {apart}", group.label());
                    }
                }
            }
        }
    }
}
