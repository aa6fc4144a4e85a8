//! Lines, one for each server, labelled at their ends.

use super::escape;
use crate::report::numbers::{grouped, short};

/// Width of the drawing, in its own units.
const WIDTH: f64 = 400.0;
/// Its height.
const HEIGHT: f64 = 270.0;
/// Left end of the lines; numbers stand before it.
const LEFT: f64 = 56.0;
/// Right end of the lines; names stand behind it.
const RIGHT: f64 = 316.0;
/// Where the largest value lies.
const TOP: f64 = 14.0;
/// Where the smallest value lies.
const BOTTOM: f64 = 226.0;
/// Distance of labels at the ends of lines.
const LABEL: f64 = 15.0;

/// A line.
pub struct Line<'a> {
    /// The server.
    pub name: &'a str,
    /// The CSS variable of its colour.
    pub colour: &'static str,
    /// Whether it is drawn with dashes, as the floor is.
    pub dashed: bool,
    /// Points, ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// What the axes of a chart say.
pub struct Axes<'a> {
    /// Heading of the chart.
    pub title: &'a str,
    /// What the vertical axis counts; it is logarithmic.
    pub vertical: &'a str,
    /// What the horizontal axis counts.
    pub horizontal: &'a str,
    /// Whether the horizontal axis is logarithmic; all its values are above 0 then.
    pub logarithmic: bool,
    /// Places on the horizontal axis and what is written there.
    pub ticks: Vec<(f64, String)>,
}

/// A figure; empty unless some line has two points.
pub fn chart(axes: &Axes<'_>, lines: &[Line<'_>]) -> String {
    let lines: Vec<&Line<'_>> = lines.iter().filter(|line| line.points.len() > 1).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = |x: f64| if axes.logarithmic { x.log10() } else { x };
    let (left, right) = range(points().map(|(x, _)| across(*x)));
    let (low, high) = range(points().map(|(_, y)| y.log10()));
    if lines.is_empty() || points().any(|(_, y)| *y <= 0.0) || left >= right {
        return String::new();
    }
    let x = |value: f64| LEFT + (across(value) - left) / (right - left) * (RIGHT - LEFT);
    let (low, high) = (low - 0.05, high + 0.05);
    let y = |value: f64| BOTTOM - (value.log10() - low) / (high - low) * (BOTTOM - TOP);
    let mut drawing = String::new();
    for tick in vertical_ticks(low, high) {
        drawing += &format!(
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
             <text class=\"tick\" x=\"{a}\" y=\"{b:.1}\" text-anchor=\"end\">{text}</text>",
            y = y(tick),
            a = LEFT - 8.0,
            b = y(tick) + 4.0,
            text = tick_text(tick),
        );
    }
    for (place, text) in &axes.ticks {
        drawing += &format!(
            "<text class=\"tick\" x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(*place),
            BOTTOM + 18.0,
            escape(text),
        );
    }
    let mut ends = Vec::new();
    for line in &lines {
        let path: Vec<String> =
            line.points.iter().map(|(a, b)| format!("{:.1} {:.1}", x(*a), y(*b))).collect();
        let dashes = if line.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        drawing += &format!(
            "<path class=\"line\" stroke=\"var({})\"{dashes} d=\"M{}\"/>",
            line.colour,
            path.join("L"),
        );
        ends.extend(line.points.last().map(|(_, value)| (y(*value), *line)));
    }
    drawing += &labels(ends);
    frame(axes, &drawing)
}

/// The drawing with its heading and the names of its axes.
fn frame(axes: &Axes<'_>, drawing: &str) -> String {
    let title = escape(axes.title);
    format!(
        "<figure><h4>{title}</h4><figcaption>{vertical}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">{drawing}\
         <text class=\"tick\" x=\"{middle}\" y=\"{bottom}\" text-anchor=\"middle\">\
         {horizontal}</text></svg></figure>\n",
        vertical = escape(axes.vertical),
        middle = f64::midpoint(LEFT, RIGHT),
        bottom = HEIGHT - 6.0,
        horizontal = escape(axes.horizontal),
    )
}

/// Names at the ends of lines, moved apart from the lowest value up, each with a thread to its end.
fn labels(mut ends: Vec<(f64, &Line<'_>)>) -> String {
    ends.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut text = String::new();
    let mut limit = BOTTOM + 4.0;
    for (end, line) in ends {
        let place = end.min(limit);
        limit = place - LABEL;
        text += &format!(
            "<path d=\"M{a} {end:.1}L{b} {place:.1}\" stroke=\"var({colour})\" fill=\"none\"/>\
             <text x=\"{c}\" y=\"{base:.1}\" style=\"fill:var({colour})\">{name}</text>",
            a = RIGHT + 2.0,
            b = RIGHT + 12.0,
            c = RIGHT + 15.0,
            base = place + 4.5,
            colour = line.colour,
            name = escape(line.name),
        );
    }
    text
}

/// The smallest and the largest value.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// 1, 2 and 5 of each decade between two logarithms; only the 1 when there are many decades.
fn vertical_ticks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high - low > 2.2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let decades = low.floor() as i32..=high.ceil() as i32;
    decades
        .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)))
        .filter(|tick| (low..=high).contains(&tick.log10()))
        .collect()
}

/// A round number without needless digits.
pub fn tick_text(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} M", grouped(value / 1e6)),
        value if value >= 1e4 => format!("{} k", grouped(value / 1e3)),
        value if value >= 1.0 => grouped(value),
        _ => short(value).trim_end_matches('0').to_owned(),
    }
}
