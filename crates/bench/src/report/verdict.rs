//! Sentences about who is ahead, by how much, and where the server at home is behind.

use super::figures::{COMPARED, Figure, Group};
use super::numbers::{change, short};
use crate::data::Cell;
use crate::statistics::{Difference, Spread};

/// The server whose weaknesses a report must not leave for the reader to find.
pub const HOME: &str = "zonda";

/// How the kinds begin that are programs made with it: where they are compared, it is not missed.
const MADE_WITH_HOME: &str = "zonda-";

/// Latencies of a server that loses more of its queries are not ranked; 0–1. What it has dropped
/// waits in no queue, so that the rest is answered sooner.
pub const LOSS_MAX: f64 = 0.001;

/// How the servers of a place stand in one figure.
pub struct Standing<'a> {
    /// The figure.
    figure: Figure,
    /// Who may be ranked by it, the best first; at least one.
    order: Vec<(&'a Cell, Spread)>,
}

/// Where the server at home stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Home {
    /// Better than everybody else beyond noise.
    Ahead,
    /// The best, or no different from the best.
    Level,
    /// Somebody is better.
    Behind {
        /// Who is.
        leader: String,
        /// By what share of the leader's figure.
        share: f64,
    },
}

impl<'a> Standing<'a> {
    /// Of a figure that somebody has.
    pub fn of(group: &Group<'a>, figure: Figure) -> Option<Self> {
        let fit = |cell: &Cell| !figure.is_latency() || figure.loss(cell) <= LOSS_MAX;
        let ranked = group.ranked().filter(|cell| fit(cell));
        let mut order: Vec<(&Cell, Spread)> =
            ranked.filter_map(|cell| Some((cell, group.figure(figure, cell)?))).collect();
        order.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
        if figure.more_is_better() {
            order.reverse();
        }
        (!order.is_empty()).then_some(Self { figure, order })
    }

    /// The leader's figure.
    pub fn best(&self) -> &Spread {
        &self.order[0].1
    }

    /// The leader, and those from whom it does not differ: they follow each other.
    fn level(&self) -> usize {
        let alike = |(_, spread): &&(&Cell, Spread)| {
            self.figure.against(spread, self.best()) == Difference::None
        };
        1 + self.order[1..].iter().take_while(alike).count()
    }

    /// Where the server at home stands; none when it is not ranked, or alone.
    pub fn home(&self) -> Option<Home> {
        let place = self.order.iter().position(|(cell, _)| cell.server == HOME)?;
        let level = self.level();
        match place {
            _ if self.order.len() == 1 => None,
            0 if level == 1 => Some(Home::Ahead),
            place if place < level => Some(Home::Level),
            place => Some(Home::Behind {
                leader: self.order[0].0.server.clone(),
                share: self.share(&self.order[place].1),
            }),
        }
    }

    /// Who leads alone, if somebody does.
    pub fn leader(&self) -> Option<&'a str> {
        (self.order.len() > 1 && self.level() == 1).then(|| &*self.order[0].0.server)
    }

    /// By what share of the leader's figure this one differs from it.
    fn share(&self, spread: &Spread) -> f64 {
        spread.median / self.best().median - 1.0
    }

    /// Who is ahead, who comes next, and where the server at home is; follows a colon.
    pub fn sentence(&self) -> String {
        let level = self.level();
        let names: Vec<&str> = self.order.iter().map(|(cell, _)| &*cell.server).collect();
        let best = self.figure.show(self.best().median);
        let mut text = match level {
            1 if names.len() == 1 => return format!("only {} is ranked, with {best}.", names[0]),
            1 => format!("{} is ahead with {best}", names[0]),
            _ => {
                let last = self.figure.show(self.order[level - 1].1.median);
                format!("no difference between {} ({best} and {last})", list(&names[..level]))
            }
        };
        if let Some((cell, spread)) = self.order.get(level) {
            text += &format!("; next is {} with {}", cell.server, self.behind(spread));
        }
        let home = names.iter().position(|name| *name == HOME).filter(|place| *place > level);
        if let Some(place) = home {
            text += &format!("; {HOME} has {}", self.behind(&self.order[place].1));
        }
        text + "."
    }

    /// A figure with what it differs from the leader's.
    fn behind(&self, spread: &Spread) -> String {
        let once = once(spread, self.best());
        format!("{} ({}{once})", self.figure.show(spread.median), change(self.share(spread)))
    }
}

/// A word of warning when nobody knows the noise.
fn once(a: &Spread, b: &Spread) -> &'static str {
    if a.count < 2 || b.count < 2 { ", measured once" } else { "" }
}

/// Names with an “and” before the last.
pub fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What a whole run says, a figure and a sentence each: how often the server at home is ahead,
/// level and behind, where it is farthest behind, and how often it has no figure.
pub fn headlines(groups: &[Group<'_>]) -> Vec<(Figure, String)> {
    let told = COMPARED.into_iter().filter(|figure| figure.is_headline());
    let headline = |figure: Figure| {
        let places: Vec<(&Group<'_>, Standing<'_>)> =
            groups.iter().filter_map(|group| Some((group, Standing::of(group, figure)?))).collect();
        let missing = groups.iter().filter(|group| is_missing(group, figure)).count();
        let found = match &places[..] {
            [] => None,
            [(_, one)] => Some(one.sentence()),
            many => Some(over_places(many)),
        };
        let lacking = match missing {
            0 => None,
            _ if groups.len() == 1 => Some(format!("{HOME} has no figure.")),
            _ => Some(format!("{HOME} has no figure in {missing} of {} places.", groups.len())),
        };
        let said: Vec<String> = found.into_iter().chain(lacking).collect();
        (!said.is_empty()).then(|| (figure, said.join(" ")))
    };
    told.filter_map(headline).collect()
}

/// Whether others have a figure and the server at home is not ranked by it, or nobody has it
/// because the generator was late.
fn is_missing(group: &Group<'_>, figure: Figure) -> bool {
    match Standing::of(group, figure) {
        _ if is_stood_for(group) => false,
        Some(standing) => standing.order.iter().all(|(cell, _)| cell.server != HOME),
        None => figure == Figure::Tail && !group.late().is_empty(),
    }
}

/// Whether programs made with the server at home stand in its place.
fn is_stood_for(group: &Group<'_>) -> bool {
    let is_made_with_home = |cell: &&Cell| cell.server.starts_with(MADE_WITH_HOME);
    group.cell(HOME).is_none() && group.cells.iter().any(is_made_with_home)
}

/// A sentence on several places.
fn over_places(places: &[(&Group<'_>, Standing<'_>)]) -> String {
    let (mut ahead, mut level, mut behind) = (0, 0, Vec::new());
    for (group, standing) in places {
        match standing.home() {
            Some(Home::Ahead) => ahead += 1,
            Some(Home::Level) => level += 1,
            Some(Home::Behind { leader, share }) => behind.push((group.label(), leader, share)),
            None => {}
        }
    }
    let compared = ahead + level + behind.len();
    if compared == 0 {
        return leaders(places);
    }
    let counts = [(ahead, "ahead"), (level, "level with the best"), (behind.len(), "behind")];
    let parts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| match count == compared {
            true if compared == 2 => format!("{what} in both places"),
            true => format!("{what} in all {compared} places"),
            false => format!("{what} in {count}"),
        })
        .collect();
    let mut text = format!("{HOME} is {}", parts.join(", "));
    if parts.len() > 1 {
        text += &format!(" of {compared} places");
    }
    let farthest = behind.iter().max_by(|(_, _, a), (_, _, b)| a.abs().total_cmp(&b.abs()));
    if let Some((label, leader, share)) = farthest {
        text += &format!("; farthest in “{label}”: {} against {leader}", change(*share));
    }
    text + "."
}

/// The same where the server at home was not ranked: how often each leads alone.
fn leaders(places: &[(&Group<'_>, Standing<'_>)]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for leader in places.iter().filter_map(|(_, standing)| standing.leader()) {
        match counts.iter_mut().find(|(name, _)| *name == leader) {
            Some((_, count)) => *count += 1,
            None => counts.push((leader, 1)),
        }
    }
    let total = places.len();
    if places.iter().all(|(_, standing)| standing.order.len() == 1) {
        let mut names: Vec<&str> =
            places.iter().map(|(_, standing)| &*standing.order[0].0.server).collect();
        names.sort_unstable();
        names.dedup();
        return format!("nobody to compare with: {} in each of {total} places.", list(&names));
    }
    let parts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} in {count}")).collect();
    match parts.is_empty() {
        true => format!("nobody is ahead alone in any of {total} places."),
        false => format!("ahead alone, of {total} places: {}.", parts.join(", ")),
    }
}

/// Every figure in which somebody is ahead of the server at home beyond noise, one line each.
pub fn behind(group: &Group<'_>) -> Vec<String> {
    let Some(home) = group.ranked().find(|cell| cell.server == HOME) else {
        return Vec::new();
    };
    let line = |figure: Figure| {
        let ours = group.figure(figure, home)?;
        let rivals = group.ranked().filter(|cell| cell.server != HOME);
        let ahead: Vec<String> =
            rivals.filter_map(|cell| better(group, figure, &ours, cell)).collect();
        let ours = figure.show(ours.median);
        (!ahead.is_empty())
            .then(|| format!("{}: {ours}, behind {}", figure.name(), ahead.join(", ")))
    };
    COMPARED.into_iter().filter_map(line).collect()
}

/// Every figure that the server at home does not have here, or not to be ranked by, though it was
/// to be measured; one line each, with the reason.
pub fn missing(group: &Group<'_>) -> Vec<String> {
    if is_stood_for(group) {
        return Vec::new();
    }
    let Some(home) = group.cell(HOME) else {
        return vec!["it did not take part here".to_owned()];
    };
    if let Some(reason) = group.reason_unranked(home) {
        return vec![format!("it is not ranked: {reason}")];
    }
    let line = |figure: Figure| Some(format!("{}: {}", figure.name(), lack(group, home, figure)?));
    COMPARED.into_iter().filter_map(line).collect()
}

/// Why the server at home, which is ranked, is not ranked by this figure; none if it is, or if
/// nobody has the figure.
fn lack(group: &Group<'_>, home: &Cell, figure: Figure) -> Option<String> {
    let late = group.late();
    if figure == Figure::Tail && !late.is_empty() {
        return Some(format!("the generator was late at {}, so nobody has it", list(&late)));
    }
    let loss = figure.loss(home);
    match group.figure(figure, home) {
        None => Standing::of(group, figure).map(|_| "others have it, it was not measured".into()),
        Some(_) if figure.is_latency() && loss > LOSS_MAX => {
            Some(format!("it lost {} % of its queries", short(loss * 100.0)))
        }
        Some(_) => None,
    }
}

/// A rival with its figure, if it is better than ours.
fn better(group: &Group<'_>, figure: Figure, ours: &Spread, rival: &Cell) -> Option<String> {
    let theirs = group.figure(figure, rival)?;
    let share = match figure.against(ours, &theirs) {
        Difference::Share(share) | Difference::Once(share) => share,
        Difference::None => return None,
    };
    if (share < 0.0) != figure.more_is_better() {
        return None;
    }
    let lost = match figure.loss(rival) {
        loss if figure.is_latency() && loss > LOSS_MAX => {
            format!(", having lost {} % of its queries", short(loss * 100.0))
        }
        _ => String::new(),
    };
    let (text, once) = (figure.show(theirs.median), once(ours, &theirs));
    Some(format!("{} ({text}; {}{once}{lost})", rival.server, change(share)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Run;
    use crate::report::figures::groups;
    use crate::report::sample::run;

    /// A run in which the first cell of a server was changed.
    fn changed(server: &str, change: impl Fn(&mut Cell)) -> Run {
        let mut run = run();
        run.cells.iter_mut().filter(|cell| cell.server == server).take(1).for_each(change);
        run
    }

    /// The lines about a figure.
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
    fn where_the_generator_was_late_at_somebody_ranked_nobody_has_a_tail() {
        for (server, is_known) in
            [("knot", false), ("nsd", false), ("zonda", false), ("reflector", true)]
        {
            let run = changed(server, be_late);
            let groups = groups(&run);
            assert_eq!(Standing::of(&groups[0], Figure::Tail).is_some(), is_known, "{server}");
            let said = of_figure(missing(&groups[0]), Figure::Tail);
            assert_eq!(said.is_empty(), is_known, "{said:?}");
            let headline = headlines(&groups).into_iter().find(|it| it.0 == Figure::Tail);
            let said = "zonda has no figure in 1 of 6 places.";
            assert_eq!(headline.is_some_and(|it| it.1.ends_with(said)), !is_known, "{server}");
        }
    }

    #[test]
    fn no_figure_of_a_run_may_be_lost_to_the_generator_without_a_word() {
        let mut run = run();
        run.cells.iter_mut().for_each(be_late);
        let headline = headlines(&groups(&run)).into_iter().find(|it| it.0 == Figure::Tail);
        assert_eq!(headline.unwrap().1, "zonda has no figure in 6 of 6 places.");
    }

    #[test]
    fn where_zonda_is_not_ranked_or_absent_it_is_said_to_have_no_figure() {
        assert_eq!(missing(&groups(&run())[0]), Vec::<String>::new());
        let unranked = changed("zonda", |cell| cell.unranked = Some("answers nothing".to_owned()));
        let found = groups(&unranked);
        assert_eq!(missing(&found[0]), ["it is not ranked: answers nothing"]);
        let (_, said) = &headlines(&found)[0];
        assert!(said.ends_with(". zonda has no figure in 1 of 6 places."), "{said}");
        let unmeasured = changed("zonda", |cell| cell.rounds.clear());
        assert!(missing(&groups(&unmeasured)[0])[0].starts_with("it is not ranked: other"));
        let mut absent = run();
        absent.cells.retain(|cell| cell.server != "zonda");
        assert_eq!(missing(&groups(&absent)[0]), ["it did not take part here"]);
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
    fn a_latency_that_was_measured_for_others_only_is_said_to_be_missing() {
        let run = changed("zonda", |cell| cell.latency_at.clear());
        let said = missing(&groups(&run)[0]);
        let why = "others have it, it was not measured";
        let expected = [Figure::Tail, Figure::TailLoss].map(|it| format!("{}: {why}", it.name()));
        assert_eq!(said, expected);
    }

    #[test]
    fn who_loses_more_is_behind_and_its_latency_counts_for_nothing() {
        let run = changed("zonda", |cell| lose(cell, 100));
        let groups = groups(&run);
        let said = of_figure(behind(&groups[0]), Figure::Loss);
        let begin = "queries lost under full load: 1.00 %, behind knot (under 0.001 %; ";
        assert!(said.len() == 1 && said[0].starts_with(begin), "{said:?}");
        let lacking = of_figure(missing(&groups[0]), Figure::Percentile(50_000));
        assert!(lacking[0].ends_with(": it lost 1.00 % of its queries"), "{lacking:?}");
        let few = changed("zonda", |cell| lose(cell, 2000));
        let few = crate::report::figures::groups(&few);
        assert!(of_figure(behind(&few[0]), Figure::Loss).is_empty());
    }

    #[test]
    fn loss_at_the_common_rate_beside_a_server_that_loses_nothing_is_told() {
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
        let begin = "queries lost at one rate for all: 2.00 %, behind knot (none; ∞ ×)";
        assert!(said.len() == 1 && said[0].starts_with(begin), "{said:?}");
    }
}
