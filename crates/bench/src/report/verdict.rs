//! Sentences about who is ahead, by how much, and where the server at home is behind.

use super::figures::{COMPARED, Figure, Group, percentile};
use super::numbers::change;
use super::statistics::{Difference, Spread};
use crate::data::Cell;

/// The server whose weaknesses a report must not leave for the reader to find.
pub const HOME: &str = "zonda";

/// One sentence on CPU per query: who is ahead and by how much.
pub fn sentence(group: &Group<'_>) -> String {
    let mut costs: Vec<(&Cell, Spread)> =
        group.ranked().filter_map(|cell| Some((cell, Figure::CpuPerQuery.of(cell)?))).collect();
    costs.sort_by(|(_, a), (_, b)| a.median.total_cmp(&b.median));
    let show = |cost: &Spread| Figure::CpuPerQuery.show(cost.median);
    let [(leader, best), rest @ ..] = &costs[..] else {
        return "No server can be ranked here.".to_owned();
    };
    let home = rest.iter().find(|(cell, _)| cell.server == HOME);
    let Some((other, cost)) = home.or(rest.first()) else {
        return format!("{} alone: {} of CPU per query.", leader.server, show(best));
    };
    let (a, b) = (&leader.server, &other.server);
    match cost.against(best) {
        Difference::None => format!(
            "No difference between {a} and {b}: {} and {} of CPU per query.",
            show(best),
            show(cost)
        ),
        Difference::Unknown => format!("{a} and {b} cannot be compared."),
        Difference::Share(share) | Difference::Once(share) if home.is_some() => format!(
            "{b} is behind {a}: {} of CPU per query against {}, {}{}.",
            show(cost),
            show(best),
            change(share),
            once(cost, best)
        ),
        Difference::Share(_) | Difference::Once(_) => format!(
            "{a} is ahead: {} of CPU per query, {} less than {b} with {}{}.",
            show(best),
            change(1.0 - best.median / cost.median).trim_start_matches('+'),
            show(cost),
            once(cost, best)
        ),
    }
}

/// A word of warning when nobody knows the noise.
fn once(a: &Spread, b: &Spread) -> &'static str {
    if a.count < 2 || b.count < 2 { " (one round: noise unknown)" } else { "" }
}

/// Every figure in which somebody is ahead of the server at home beyond noise, one line each.
pub fn behind(group: &Group<'_>) -> Vec<String> {
    let Some(home) = group.ranked().find(|cell| cell.server == HOME) else {
        return Vec::new();
    };
    let rivals: Vec<&Cell> = group.ranked().filter(|cell| cell.server != HOME).collect();
    let mut lines = Vec::new();
    for figure in COMPARED {
        let Some(ours) = figure.of(home) else { continue };
        let ahead = rivals.iter().filter_map(|cell| {
            let theirs = figure.of(cell)?;
            let text = figure.show(theirs.median);
            Some(format!("{} ({text}, {})", cell.server, worse(figure, &ours, &theirs)?))
        });
        let ahead: Vec<String> = ahead.collect();
        if !ahead.is_empty() {
            let ours = figure.show(ours.median);
            lines.push(format!("{}: {ours} behind {}", figure.name(), ahead.join(", ")));
        }
    }
    lines.extend(behind_below_saturation(home, &rivals));
    lines
}

/// By how much ours is worse than theirs, if it is.
fn worse(figure: Figure, ours: &Spread, theirs: &Spread) -> Option<String> {
    match ours.against(theirs) {
        Difference::Share(share) if (share < 0.0) == figure.more_is_better() => Some(change(share)),
        Difference::Once(share) if (share < 0.0) == figure.more_is_better() => {
            Some(format!("{}, measured once", change(share)))
        }
        _ => None,
    }
}

/// The same for p99.9 at each rate below saturation; such a rate is measured once.
fn behind_below_saturation(home: &Cell, rivals: &[&Cell]) -> Vec<String> {
    let tail = |cell: &Cell, label: &str| {
        let point = cell.latency_at.iter().find(|point| point.label == label)?;
        percentile(&point.latency.percentiles, 99.9)
    };
    let mut lines = Vec::new();
    for point in &home.latency_at {
        let Some(ours) = tail(home, &point.label) else { continue };
        let figure = Figure::Percentile(99_900);
        let ahead: Vec<String> = rivals
            .iter()
            .filter_map(|cell| Some((cell, tail(cell, &point.label)?)))
            .filter(|(_, theirs)| *theirs < ours * 0.995)
            .map(|(cell, theirs)| format!("{} ({})", cell.server, figure.show(theirs)))
            .collect();
        if !ahead.is_empty() {
            let (name, ours) = (figure.name(), figure.show(ours));
            let label = &point.label;
            lines.push(format!(
                "{name} at {label}: {ours} behind {}, measured once",
                ahead.join(", ")
            ));
        }
    }
    lines
}
