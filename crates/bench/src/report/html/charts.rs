//! Which charts a place in the matrix has.

use std::collections::BTreeMap;

use super::bars::{self, Bar, Fill};
use super::lines::{self, Axes, Line, Style, tick_text};
use crate::data::{Cell, Latency, LoadPoint, Run};
use crate::report::caveats::is_bound_by_load;
use crate::report::figures::{Figure, Group, common_points, mebioctets};
use crate::report::numbers::{capital, short, time_tick};
use crate::report::verdict::{HOME, Ranking, is_zonda};
use crate::statistics::median;

/// Colours of rivals; distinct also for colour-blind readers, and from the first server's.
const COLOURS: [&str; 6] = ["--s1", "--s2", "--s3", "--s4", "--s5", "--s6"];
/// Shapes of points: square, triangle, diamond, triangle downwards, bar, cross.
const SHAPES: [&str; 6] = [
    "m-3.5 -3.5h7v7h-7z",
    "m0 -4.6l4.4 7.8h-8.8z",
    "m0 -5l4.6 5l-4.6 5l-4.6 -5z",
    "m0 4.6l4.4 -7.8h-8.8z",
    "m-5 -1.6h10v3.2h-10z",
    "m-1.5 -4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
];
/// Axes of the load, on which neither memory nor the time to start depends.
const OF_LOAD: [&str; 2] = ["rate", "clients"];
/// A round point.
const ROUND: &str = "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z";

/// Bars of cost and rate, lines of latency.
pub fn of_group(run: &Run, group: &Group<'_>) -> String {
    let curve = percentile_curve(run, group);
    let charts = [
        bars_of(run, group, Figure::CpuPerQuery, "CPU per query, shorter is better"),
        bars_of(run, group, Figure::Qps, "Queries per second, longer is better"),
        latency_against_load(run, group),
        curve,
    ];
    let legend = "A bar is the median over rounds, and its whisker goes from the lowest to the \
                  highest; the dotted line is the bare reflector, × its multiple.";
    match grid(&charts) {
        grid if grid.is_empty() => grid,
        grid => format!("{grid}<p class=\"note\">{legend}</p>\n"),
    }
}

/// Returns what a figure says, and its bars.
fn bars_of(run: &Run, group: &Group<'_>, figure: Figure, title: &str) -> String {
    let said = Ranking::of(group, figure).map_or_else(String::new, |it| capital(&it.sentence()));
    bars::chart(title, &said, &bars(run, group, figure))
}

/// Charts of a workload against each axis that is a number.
pub fn against_size(run: &Run, groups: &[&Group<'_>]) -> String {
    let charts: Vec<String> = rows(groups).iter().flat_map(|row| against_axis(run, row)).collect();
    grid(&charts)
}

/// Charts of the tests along one axis.
fn against_axis(run: &Run, row: &Row<'_, '_>) -> Vec<String> {
    let Row { axis, fixed, groups } = row;
    let cells: Vec<&Cell> = groups.iter().flat_map(|group| group.cells.iter().copied()).collect();
    let sizes: Vec<f64> = groups.iter().filter_map(|group| size(group.cells[0], axis)).collect();
    let chart = |title: &str, vertical: &str, value: fn(&Cell) -> Option<f64>| {
        let lines = lines(run, &cells, |server| {
            let own = cells.iter().filter(|cell| cell.server == server);
            let points = own.filter_map(|cell| Some((size(cell, axis)?, value(cell)?)));
            sorted(points.collect())
        });
        let ticks = sizes.iter().map(|value| (*value, tick_text(*value))).collect();
        let title = format!("{title} against {axis}{fixed}");
        let (tick, horizontal) = (tick_text as fn(f64) -> String, *axis);
        let axes = Axes { title: &title, vertical, tick, horizontal, logarithmic: true, ticks };
        lines::chart(&axes, &lines)
    };
    let mut charts =
        vec![chart("CPU per query", "µs, median over rounds; lower is better", |cell| {
            Some(Figure::CpuPerQuery.of(cell)?.median)
        })];
    let has_rate = groups.iter().all(|group| group.cells[0].place.contains_key("rate"));
    if !has_rate || *axis == "rate" {
        charts.push(chart("Queries per second", "median over rounds; higher is better", |cell| {
            Some(Figure::Qps.of(cell)?.median)
        }));
    }
    if OF_LOAD.contains(axis) {
        charts.push(chart("p99 latency", "ms, median over rounds; lower is better", |cell| {
            Some(Figure::Percentile(99_000).of(cell)?.median / 1000.0)
        }));
    } else {
        charts.push(chart("Memory", "MiB at the first answer; lower is better", |cell| {
            Some(mebioctets(cell.start.as_ref()?.memory_octets))
        }));
        charts.push(chart("Start", "seconds to the first answer; lower is better", |cell| {
            Some(cell.start.as_ref()?.ready_secs)
        }));
    }
    charts
}

/// Tests along one axis.
struct Row<'r, 'a> {
    /// Name of the axis.
    axis: &'a str,
    /// Values of the other axes, as text behind the axis; empty where they do not matter.
    fixed: String,
    /// Tests, each with a number of its own on the axis.
    groups: Vec<&'r Group<'a>>,
}

/// For each axis the longest row of tests that differ in it alone, or in which it has a number of
/// its own in every test; rows of three tests or more.
fn rows<'r, 'a>(groups: &[&'r Group<'a>]) -> Vec<Row<'r, 'a>> {
    let axes = |group: &Group<'a>| group.cells.first().map(|cell| &cell.place);
    let Some(first) = groups.first().and_then(|group| axes(group)) else { return Vec::new() };
    let whole = first.keys().find(|axis| has_own_sizes(groups, axis));
    if let Some(axis) = whole {
        return vec![Row { axis, fixed: String::new(), groups: groups.to_vec() }];
    }
    let row = |axis: &'a String| {
        let mut rows: Vec<(BTreeMap<&str, &str>, Vec<&'r Group<'a>>)> = Vec::new();
        for group in groups {
            let others: BTreeMap<&str, &str> = axes(group)?
                .iter()
                .filter(|(other, _)| *other != axis)
                .map(|(other, value)| (other.as_str(), value.as_str()))
                .collect();
            match rows.iter_mut().find(|(fixed, _)| *fixed == others) {
                Some((_, row)) => row.push(group),
                None => rows.push((others, vec![group])),
            }
        }
        rows.retain(|(_, row)| has_own_sizes(row, axis));
        let (fixed, groups) = rows.into_iter().max_by_key(|(_, row)| row.len())?;
        let fixed: Vec<String> =
            fixed.iter().map(|(other, value)| format!("{other} {value}")).collect();
        Some(Row { axis, fixed: format!(", {}", fixed.join(", ")), groups })
    };
    first.keys().filter_map(row).collect()
}

/// Whether an axis has a number of its own in each of three tests or more.
fn has_own_sizes(groups: &[&Group<'_>], axis: &str) -> bool {
    let sizes: Option<Vec<f64>> =
        groups.iter().map(|group| size(group.cells.first()?, axis)).collect();
    sizes.is_some_and(|mut sizes| {
        sizes.sort_by(f64::total_cmp);
        sizes.len() >= 3 && sizes.windows(2).all(|pair| pair[0] < pair[1])
    })
}

/// Returns the value of an axis, if it is a number above 0.
fn size(cell: &Cell, axis: &str) -> Option<f64> {
    let value: f64 = cell.place.get(axis)?.parse().ok()?;
    (value.is_finite() && value > 0.0).then_some(value)
}

/// Charts side by side where there is room; nothing without charts.
fn grid(charts: &[String]) -> String {
    let charts = charts.concat();
    if charts.is_empty() { charts } else { format!("<div class=\"charts\">\n{charts}</div>\n") }
}

/// Returns a bar for each server that was measured, the best first.
fn bars<'a>(run: &Run, group: &Group<'a>, figure: Figure) -> Vec<Bar<'a>> {
    let bar = |cell: &&'a Cell| {
        let spread = figure.of(cell)?;
        let mark = if group.reason_unranked(cell).is_some() { " *" } else { "" };
        let least = if figure == Figure::Qps && is_bound_by_load(run, cell) { "≥ " } else { "" };
        let times = match figure {
            Figure::CpuPerQuery => group.times_floor(cell),
            _ => None,
        };
        let times = times.map_or_else(String::new, |it| format!(" · {} ×", short(it.median)));
        let text = format!("{least}{}{times}{mark}", figure.show(spread.median));
        let fill = match () {
            () if group.is_floor(cell) => Fill::Floor,
            () if !group.is_ranked(cell) => Fill::Unranked,
            () if is_zonda(&cell.server) => Fill::Home,
            () => Fill::Other,
        };
        Some(Bar { name: &cell.server, fill, spread, text })
    };
    let mut bars: Vec<Bar<'a>> = group.cells.iter().filter_map(bar).collect();
    bars.sort_by(|a, b| a.spread.median.total_cmp(&b.spread.median));
    if figure.more_is_better() {
        bars.reverse();
    }
    bars
}

/// Returns the looks of a server, the same in every chart of a run.
fn style(run: &Run, name: &str) -> Style {
    if name == HOME {
        return Style { colour: "--s0", shape: ROUND, dashes: "none" };
    }
    let mut rivals = run.servers.iter().filter(|server| !server.is_floor && server.name != HOME);
    match rivals.position(|server| server.name == name) {
        Some(index) => Style {
            colour: COLOURS[index % COLOURS.len()],
            shape: SHAPES[index % SHAPES.len()],
            dashes: ["none", "8 3", "8 3 2 3"][(index / COLOURS.len()).min(2)],
        },
        None => Style { colour: "--floor", shape: "", dashes: "2 3" },
    }
}

/// Returns a line for each server that has cells here.
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
            style: style(run, &server.name),
            points: points(&server.name),
        })
        .collect()
}

/// Median p99 at each rate below saturation at which the generator was never late; nothing where it
/// was late at a ranked server, as a line that lacks beside the rest is mostly the fastest.
fn latency_against_load(run: &Run, group: &Group<'_>) -> String {
    if group.ranked().flat_map(|cell| &cell.latency_at).any(|point| point.is_generator_late) {
        return String::new();
    }
    let lines = lines(run, &group.cells, |server| {
        let own = group.cells.iter().filter(|cell| cell.server == server);
        let mut by_rate: BTreeMap<u64, Vec<&LoadPoint>> = BTreeMap::new();
        for point in own.flat_map(|cell| &cell.latency_at) {
            by_rate.entry(point.rate.to_bits()).or_default().push(point);
        }
        let is_timely = |points: &&Vec<&LoadPoint>| !points.iter().any(|it| it.is_generator_late);
        let point = |points: &Vec<&LoadPoint>| {
            let value = median(points.iter().filter_map(|point| point.latency.percentile(99.0)))?;
            Some((points[0].rate, value))
        };
        sorted(by_rate.values().filter(is_timely).filter_map(point).collect())
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
        title: "Latency against load, lower is better",
        vertical: "p99 from the scheduled moment of sending, at rates below saturation",
        tick: time_tick,
        horizontal: "queries per second",
        logarithmic: false,
        ticks,
    };
    lines::chart(&axes, &lines)
}

/// Percentiles at the rate that all servers were loaded with, of no server where the generator was
/// late; without such a rate, those of the rounds. The axis stretches towards 100 %.
fn percentile_curve(run: &Run, group: &Group<'_>) -> String {
    let rate = group.cells.iter().flat_map(|cell| common_points(cell)).map(|point| point.rate);
    let rate = rate.reduce(f64::max);
    let is_late = |cell: &Cell| {
        let is_own = || common_points(cell).any(|point| point.is_generator_late);
        !group.late().is_empty() || is_own()
    };
    let lines = lines(run, &group.cells, |server| {
        let cell = group.cells.iter().find(|cell| cell.server == server);
        cell.map_or_else(Vec::new, |cell| match rate {
            Some(_) if is_late(cell) => Vec::new(),
            Some(_) => curve(common_points(cell).map(|point| &point.latency)),
            None => curve(cell.rounds.iter().map(|round| &round.latency)),
        })
    });
    let shown = [(50.0, "p50"), (90.0, "p90"), (99.0, "p99"), (99.9, "p99.9"), (99.99, "p99.99")];
    let has = |place: f64| {
        lines.iter().flat_map(|line| &line.points).any(|(x, _)| (x - place).abs() < 1e-6)
    };
    let ticks = shown.map(|(name, text)| (stretched(name), text.to_owned()));
    let said = Ranking::of(group, Figure::Tail).map(|it| format!("p99.9: {}", it.sentence()));
    let (title, vertical) = match rate {
        Some(rate) => (
            format!("Latency at {} queries per second", tick_text(rate)),
            said.unwrap_or_else(|| "Lower is better.".to_owned()),
        ),
        None => (
            "Latency, lower is better".to_owned(),
            "Median over the rounds whose queries per second are above.".to_owned(),
        ),
    };
    let axes = Axes {
        title: &title,
        vertical: &vertical,
        tick: time_tick,
        horizontal: "percentile",
        logarithmic: false,
        ticks: ticks.into_iter().filter(|(place, _)| has(*place)).collect(),
    };
    lines::chart(&axes, &lines)
}

/// Medians of every percentile from the 50th up.
fn curve<'a>(latencies: impl Iterator<Item = &'a Latency>) -> Vec<(f64, f64)> {
    let latencies: Vec<&Latency> = latencies.collect();
    let Some(first) = latencies.first() else { return Vec::new() };
    let names = first.percentiles.iter().map(|(name, _)| *name);
    let points = names.filter(|name| (50.0..100.0).contains(name)).filter_map(|name| {
        let values = latencies.iter().filter_map(|latency| latency.percentile(name));
        Some((stretched(name), median(values)?))
    });
    points.collect()
}

/// Returns where a percentile below 100 lies: one step for each further nine.
fn stretched(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

/// Points by their place.
fn sorted(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Server;
    use crate::report::figures::groups;
    use crate::report::sample::run;
    use std::collections::BTreeSet;

    #[test]
    fn each_of_nineteen_servers_has_a_colour_shape_and_dashes_that_no_other_has() {
        let mut run = run();
        let rival = run.servers.iter().find(|server| !server.is_floor && server.name != HOME);
        let rival = rival.expect("the sample has one").clone();
        run.servers = (0..18).map(|n| Server { name: format!("s{n}"), ..rival.clone() }).collect();
        let names = run.servers.iter().map(|server| &*server.name).chain([HOME]);
        let looks = |name| {
            let Style { colour, shape, dashes } = style(&run, name);
            (colour, shape, dashes)
        };
        let all: BTreeSet<_> = names.map(looks).collect();
        assert_eq!(all.len(), 19);
        let first: BTreeSet<_> = all.iter().filter(|it| it.2 == "none").map(|it| it.1).collect();
        assert_eq!(first.len(), 7, "without dashes, the shapes alone tell them apart");
    }

    #[test]
    fn no_latency_is_drawn_where_the_generator_was_late_for_a_ranked_server() {
        for (server, point, is_load_drawn, is_tail_drawn) in
            [("reflector", 0, true, true), ("knot", 0, false, true), ("knot", 2, false, false)]
        {
            let mut run = run();
            let cell = run.cells.iter_mut().find(|cell| cell.server == server);
            cell.expect("it is there").latency_at[point].is_generator_late = true;
            let charts = of_group(&run, &groups(&run)[0]);
            let is_drawn = |title: &str| charts.contains(&format!("<h4>{title}"));
            assert_eq!(is_drawn("Latency against load"), is_load_drawn, "{server} {point}");
            assert_eq!(is_drawn("Latency at "), is_tail_drawn, "{server} {point}");
        }
    }
}
