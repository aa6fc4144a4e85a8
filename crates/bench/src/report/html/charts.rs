//! Which charts a place in the matrix has.

use super::bars::{self, Bar};
use super::lines::{self, Axes, Line, tick_text};
use crate::data::{Cell, Run};
use crate::report::figures::{Figure, Group, mebioctets, percentile};
use crate::report::statistics::Spread;
use crate::report::verdict::HOME;

/// Colours of servers other than the floor and the one at home, told apart by the colour-blind.
const COLOURS: [&str; 6] = ["--s1", "--s2", "--s3", "--s4", "--s5", "--s6"];

/// Bars of cost and rate, lines of latency.
pub fn of_group(run: &Run, group: &Group<'_>) -> String {
    let rounds = "Median and spread over rounds. ";
    let cost = bars(run, group, Figure::CpuPerQuery);
    let rate = bars(run, group, Figure::Qps);
    let charts = [
        bars::chart("CPU per query", &format!("{rounds}Shorter is better."), &cost),
        bars::chart("Queries per second", &format!("{rounds}Longer is better."), &rate),
        latency_against_load(run, group),
        percentile_curve(run, group),
    ];
    grid(&charts)
}

/// Memory and cost of a workload against the one axis that is a number, if there is one.
pub fn against_size(run: &Run, groups: &[Group<'_>], workload: &str) -> String {
    let cells: Vec<&Cell> = groups
        .iter()
        .filter(|group| group.workload == workload)
        .flat_map(|group| group.cells.iter().copied())
        .collect();
    let Some(axis) = cells.first().and_then(|cell| cell.place.keys().next()) else {
        return String::new();
    };
    let mut sizes: Vec<f64> = Vec::new();
    for cell in &cells {
        match size(cell, axis) {
            Some(value) if !sizes.contains(&value) => sizes.push(value),
            Some(_) => {}
            None => return String::new(),
        }
    }
    if sizes.len() < 3 {
        return String::new();
    }
    let chart = |title: &str, vertical: &str, value: fn(&Cell) -> Option<f64>| {
        let lines = lines(run, &cells, |server| {
            let own = cells.iter().filter(|cell| cell.server == server);
            let points = own.filter_map(|cell| Some((size(cell, axis)?, value(cell)?)));
            sorted(points.collect())
        });
        let ticks = sizes.iter().map(|value| (*value, tick_text(*value))).collect();
        let axes = Axes { title, vertical, horizontal: axis, logarithmic: true, ticks };
        lines::chart(&axes, &lines)
    };
    grid(&[
        chart(&format!("Memory against {axis}"), "MiB after start", |cell| {
            Some(mebioctets(cell.start.as_ref()?.memory_octets))
        }),
        chart(&format!("CPU per query against {axis}"), "µs, median over rounds", |cell| {
            Some(Figure::CpuPerQuery.of(cell)?.median)
        }),
    ])
}

/// The value of the one axis of a cell, if it is a number above 0.
fn size(cell: &Cell, axis: &str) -> Option<f64> {
    let value: f64 = cell.place.get(axis)?.parse().ok()?;
    (cell.place.len() == 1 && value.is_finite() && value > 0.0).then_some(value)
}

/// Charts side by side where there is room; nothing without charts.
fn grid(charts: &[String]) -> String {
    let charts = charts.concat();
    if charts.is_empty() { charts } else { format!("<div class=\"charts\">\n{charts}</div>\n") }
}

/// A bar for each server that was measured, in the order of the figure, the best first.
fn bars<'a>(run: &Run, group: &Group<'a>, figure: Figure) -> Vec<Bar<'a>> {
    let mut bars: Vec<Bar<'a>> = group
        .cells
        .iter()
        .filter_map(|cell| {
            let spread = figure.of(cell)?;
            let mark = if cell.unranked.is_some() { " *" } else { "" };
            let text = format!("{}{mark}", figure.show(spread.median));
            let colour = match colour(run, &cell.server) {
                same @ ("--s0" | "--floor") => same,
                _ => "--other",
            };
            Some(Bar { name: &cell.server, colour, spread, text })
        })
        .collect();
    bars.sort_by(|a, b| a.spread.median.total_cmp(&b.spread.median));
    if figure.more_is_better() {
        bars.reverse();
    }
    bars
}

/// The colour of a server, the same in every chart of a run.
fn colour(run: &Run, name: &str) -> &'static str {
    if name == HOME {
        return "--s0";
    }
    let mut rivals = run.servers.iter().filter(|server| !server.is_floor && server.name != HOME);
    rivals
        .position(|server| server.name == name)
        .map_or("--floor", |index| COLOURS[index % COLOURS.len()])
}

/// A line for each server that has cells here.
fn lines<'a>(
    run: &'a Run,
    cells: &[&Cell],
    points: impl Fn(&str) -> Vec<(f64, f64)>,
) -> Vec<Line<'a>> {
    let here = |name: &str| cells.iter().any(|cell| cell.server == name);
    let servers = run.servers.iter().filter(|server| here(&server.name));
    servers
        .map(|server| Line {
            name: &server.name,
            colour: colour(run, &server.name),
            dashed: server.is_floor,
            points: points(&server.name),
        })
        .collect()
}

/// p99 at each rate below saturation.
fn latency_against_load(run: &Run, group: &Group<'_>) -> String {
    let lines = lines(run, &group.cells, |server| {
        let own = group.cells.iter().filter(|cell| cell.server == server);
        let points = own
            .flat_map(|cell| &cell.latency_at)
            .filter_map(|point| Some((point.rate, percentile(&point.latency.percentiles, 99.0)?)));
        sorted(points.collect())
    });
    let mut rates: Vec<f64> =
        lines.iter().flat_map(|line| &line.points).map(|(rate, _)| *rate).collect();
    rates.sort_by(f64::total_cmp);
    let ticks = match (rates.first(), rates.last()) {
        (Some(low), Some(high)) if low < high => {
            [*low, f64::midpoint(*low, *high), *high].map(|rate| (rate, tick_text(rate))).to_vec()
        }
        _ => Vec::new(),
    };
    let axes = Axes {
        title: "Latency against load",
        vertical: "p99 in µs, queries sent on a schedule. Lower is better.",
        horizontal: "queries per second",
        logarithmic: false,
        ticks,
    };
    lines::chart(&axes, &lines)
}

/// Percentiles over the rounds; the axis stretches towards 100 %.
fn percentile_curve(run: &Run, group: &Group<'_>) -> String {
    let lines = lines(run, &group.cells, |server| {
        group.cells.iter().find(|cell| cell.server == server).map_or_else(Vec::new, |c| curve(c))
    });
    let shown = [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99")];
    let has = |place: f64| {
        lines.iter().flat_map(|line| &line.points).any(|(x, _)| (x - place).abs() < 1e-6)
    };
    let ticks = shown.map(|(name, text)| (stretched(name), text.to_owned()));
    let axes = Axes {
        title: "Latency at saturation",
        vertical: "µs, median over rounds. Lower is better.",
        horizontal: "percentile",
        logarithmic: false,
        ticks: ticks.into_iter().filter(|(place, _)| has(*place)).collect(),
    };
    lines::chart(&axes, &lines)
}

/// Medians over rounds of every percentile from the 50th up.
fn curve(cell: &Cell) -> Vec<(f64, f64)> {
    let Some(first) = cell.rounds.first() else { return Vec::new() };
    let names = first.latency.percentiles.iter().map(|(name, _)| *name);
    let points = names.filter(|name| (50.0..100.0).contains(name)).filter_map(|name| {
        let values =
            cell.rounds.iter().filter_map(|round| percentile(&round.latency.percentiles, name));
        Some((stretched(name), Spread::of(values)?.median))
    });
    points.collect()
}

/// Where a percentile below 100 lies: one step for each further nine.
fn stretched(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

/// Points by their place.
fn sorted(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    points
}
