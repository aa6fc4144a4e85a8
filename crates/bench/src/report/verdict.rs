//! Sentences about who is ahead, by how much, and where the server at home is behind.

use super::figures::{COMPARED, Figure, Group};
use super::numbers::{change, short};
use super::statistics::{Difference, Spread};
use crate::data::Cell;

/// The server whose weaknesses a report must not leave for the reader to find.
pub const HOME: &str = "zonda";

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
            ranked.filter_map(|cell| Some((cell, figure.of(cell)?))).collect();
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
/// level and behind, and where it is farthest behind.
pub fn headlines(groups: &[Group<'_>]) -> Vec<(Figure, String)> {
    let told = COMPARED.into_iter().filter(|figure| figure.is_headline());
    let headline = |figure: Figure| {
        let places: Vec<(&Group<'_>, Standing<'_>)> =
            groups.iter().filter_map(|group| Some((group, Standing::of(group, figure)?))).collect();
        match &places[..] {
            [] => None,
            [(_, one)] => Some((figure, one.sentence())),
            many => Some((figure, over_places(many))),
        }
    };
    told.filter_map(headline).collect()
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
        let ours = figure.of(home)?;
        let rivals = group.ranked().filter(|cell| cell.server != HOME);
        let ahead: Vec<String> = rivals.filter_map(|cell| better(figure, &ours, cell)).collect();
        let ours = figure.show(ours.median);
        (!ahead.is_empty())
            .then(|| format!("{}: {ours}, behind {}", figure.name(), ahead.join(", ")))
    };
    COMPARED.into_iter().filter_map(line).collect()
}

/// A rival with its figure, if it is better than ours.
fn better(figure: Figure, ours: &Spread, rival: &Cell) -> Option<String> {
    let theirs = figure.of(rival)?;
    let share = match figure.against(ours, &theirs) {
        Difference::Share(share) | Difference::Once(share) => share,
        Difference::None | Difference::Unknown => return None,
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
