//! Lines, one for each server, labelled at their ends.

use super::escape;
use crate::report::numbers::{grouped, short};

/// Width of the drawing, in its own units.
const WIDTH: f64 = 400.0;
/// Height of the chart.
const HEIGHT: f64 = 270.0;
/// Left end of the lines; numbers stand before it.
const LEFT: f64 = 56.0;
/// Right end of the lines at most; names stand behind it.
const RIGHT_MAX: f64 = 316.0;
/// From the end of the lines to the names behind it.
const NAME_GAP: f64 = 17.0;
/// Width that a character of a name takes at most, on average over a word.
const CHARACTER: f64 = 7.8;
/// Where the largest value lies.
const TOP: f64 = 14.0;
/// Where the smallest value lies.
const BOTTOM: f64 = 226.0;
/// Distance of labels at the ends of lines.
const LABEL: f64 = 15.0;

/// A line of the chart.
pub struct Line<'a> {
    /// Name of the server.
    pub name: &'a str,
    /// Colour, shape and dashes.
    pub style: Style,
    /// Points, ascending in x.
    pub points: Vec<(f64, f64)>,
}

/// Style of a line: colour, shape of its points and dashes each distinguish it from other lines.
#[derive(Clone, Copy)]
pub struct Style {
    /// The CSS variable of the line's colour.
    pub colour: &'static str,
    /// Shape of the points, relative to the middle of each.
    pub shape: &'static str,
    /// The value of `stroke-dasharray`.
    pub dashes: &'static str,
}

/// What the axes of a chart say.
pub struct Axes<'a> {
    /// Heading of the chart.
    pub title: &'a str,
    /// Figure on the vertical axis, which is logarithmic.
    pub vertical: &'a str,
    /// Format of the vertical axis's values.
    pub tick: fn(f64) -> String,
    /// Figure on the horizontal axis.
    pub horizontal: &'a str,
    /// Whether the horizontal axis is logarithmic; all its values are above 0 then.
    pub logarithmic: bool,
    /// Places on the horizontal axis and what is written there.
    pub ticks: Vec<(f64, String)>,
}

/// Returns a figure; empty unless some line has two points.
pub fn chart(axes: &Axes<'_>, lines: &[Line<'_>]) -> String {
    let lines: Vec<&Line<'_>> = lines.iter().filter(|line| line.points.len() > 1).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let across = |x: f64| if axes.logarithmic { x.log10() } else { x };
    let (left, right) = range(points().map(|(x, _)| across(*x)));
    let (low, high) = range(points().map(|(_, y)| y.log10()));
    if lines.is_empty() || points().any(|(_, y)| *y <= 0.0) || left >= right {
        return String::new();
    }
    let longest = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or_default();
    let end = (WIDTH - NAME_GAP - longest as f64 * CHARACTER).clamp(WIDTH / 2.0, RIGHT_MAX);
    let x = |value: f64| LEFT + (across(value) - left) / (right - left) * (end - LEFT);
    let (low, high) = (low - 0.05, high + 0.05);
    let y = |value: f64| BOTTOM - (value.log10() - low) / (high - low) * (BOTTOM - TOP);
    let mut drawing = String::new();
    for tick in vertical_ticks(low, high) {
        drawing += &format!(
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{end:.1}\"/>\
             <text class=\"tick\" x=\"{a}\" y=\"{b:.1}\" text-anchor=\"end\">{text}</text>",
            y = y(tick),
            a = LEFT - 8.0,
            b = y(tick) + 4.0,
            text = (axes.tick)(tick),
        );
    }
    let mut room_from = 0.0;
    for (place, text) in &axes.ticks {
        let half = text.chars().count() as f64 * 3.6;
        if x(*place) - half < room_from {
            continue;
        }
        room_from = x(*place) + half + 4.0;
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
        let Style { colour, shape, dashes } = line.style;
        drawing += &format!(
            "<path class=\"line\" stroke=\"var({colour})\" stroke-dasharray=\"{dashes}\" \
             d=\"M{}\"/>",
            path.join("L"),
        );
        let marks: String = path.iter().map(|place| format!("M{place}{shape}")).collect();
        drawing += &format!("<path class=\"mark\" style=\"fill:var({colour})\" d=\"{marks}\"/>");
        ends.extend(line.points.last().map(|(_, value)| (y(*value), *line)));
    }
    drawing += &labels(ends, end);
    frame(axes, &drawing, end)
}

/// Returns the drawing with its heading and the names of its axes.
fn frame(axes: &Axes<'_>, drawing: &str, end: f64) -> String {
    let title = escape(axes.title);
    let logarithmic = match axes.logarithmic {
        true => "both axes logarithmic",
        false => "vertical axis logarithmic",
    };
    format!(
        "<figure><h4>{title}</h4><figcaption>{vertical}; {logarithmic}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">{drawing}\
         <text class=\"tick\" x=\"{middle}\" y=\"{bottom}\" text-anchor=\"middle\">\
         {horizontal}</text></svg></figure>\n",
        vertical = escape(axes.vertical.trim_end_matches('.')),
        middle = f64::midpoint(LEFT, end),
        bottom = HEIGHT - 6.0,
        horizontal = escape(axes.horizontal),
    )
}

/// Names at the ends of lines, each with a thread to its end.
fn labels(mut ends: Vec<(f64, &Line<'_>)>, right: f64) -> String {
    ends.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let places = apart(&ends.iter().map(|(end, _)| *end).collect::<Vec<_>>());
    let label = |((end, line), place): (&(f64, &Line<'_>), f64)| {
        format!(
            "<path d=\"M{a} {end:.1}L{b} {place:.1}\" stroke=\"var({colour})\" fill=\"none\"/>\
             <text x=\"{c}\" y=\"{base:.1}\" style=\"fill:var({colour})\">{name}</text>",
            a = right + 5.0,
            b = right + 14.0,
            c = right + NAME_GAP,
            base = place + 4.5,
            colour = line.style.colour,
            name = escape(line.name),
        )
    };
    ends.iter().zip(places).map(label).collect()
}

/// Places for labels near ends that descend in value, so ascend on the page from its bottom: moved
/// up until none covers another, and back down where that leaves the drawing.
fn apart(ends: &[f64]) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(ends.len());
    for end in ends {
        let limit = places.last().map_or(BOTTOM + 4.0, |last| last - LABEL);
        places.push(end.min(limit));
    }
    let mut limit = TOP;
    for place in places.iter_mut().rev() {
        *place = place.max(limit);
        limit = *place + LABEL;
    }
    places
}

/// Returns the smallest and the largest value.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Round numbers between two logarithms, the more of each decade the fewer there are.
fn vertical_ticks(low: f64, high: f64) -> Vec<f64> {
    const STEPS: [&[f64]; 4] = [
        &[1.0],
        &[1.0, 2.0, 5.0],
        &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        &[
            1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0,
            9.0,
        ],
    ];
    let decades = low.floor() as i32..=high.ceil() as i32;
    let ticks = |steps: &[f64]| -> Vec<f64> {
        let all = decades
            .clone()
            .flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
        all.filter(|tick| (low..=high).contains(&tick.log10())).collect()
    };
    let found = STEPS.into_iter().map(ticks).find(|ticks| ticks.len() >= TICKS_MIN);
    found.unwrap_or_else(|| ticks(STEPS[STEPS.len() - 1]))
}

/// Fewer ticks than this, and the steps between them are made smaller.
const TICKS_MIN: usize = 3;

/// Returns a round number without needless digits.
pub fn tick_text(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{} M", grouped(value / 1e6)),
        value if value >= 1e4 => format!("{} k", grouped(value / 1e3)),
        value if value >= 10.0 => grouped(value),
        _ => short(value).trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_apart_and_inside_the_drawing() {
        let places = apart(&[210.0, 60.0, 20.0, 18.0, 16.0, 15.0]);
        assert!(places.windows(2).all(|pair| pair[0] - pair[1] >= LABEL), "{places:?}");
        assert!(places.iter().all(|place| (TOP..=BOTTOM + 4.0).contains(place)), "{places:?}");
        assert_eq!(places[0], 210.0);
    }

    #[test]
    fn an_axis_has_ticks_enough_to_be_read() {
        for (low, high) in [(0.0, 0.3), (5.2, 5.4), (1.0, 2.0), (0.1, 4.0)] {
            let count = vertical_ticks(low, high).len();
            assert!((2..=8).contains(&count), "{low} {high}: {count}");
        }
    }

    #[test]
    fn the_longest_name_ends_inside_the_drawing() {
        let style = Style { colour: "--s0", shape: "", dashes: "" };
        let axes = Axes {
            title: "t",
            vertical: "v",
            tick: tick_text,
            horizontal: "h",
            logarithmic: true,
            ticks: Vec::new(),
        };
        let line = Line { name: "zonda-dinodns", style, points: vec![(1.0, 1.0), (10.0, 2.0)] };
        let drawn = chart(&axes, &[line]);
        let (before, _) = drawn.split_once(">zonda-dinodns</text>").expect("it is drawn");
        let (_, x) = before.rsplit_once("<text x=\"").expect("a text has a place");
        let x: f64 = x.split('"').next().and_then(|x| x.parse().ok()).expect("a number");
        assert!(x + 13.0 * CHARACTER <= WIDTH, "{x}");
    }

    #[test]
    fn a_chart_needs_a_line_of_two_points() {
        let style = Style { colour: "--s0", shape: "", dashes: "" };
        let axes = Axes {
            title: "t",
            vertical: "v",
            tick: tick_text,
            horizontal: "h",
            logarithmic: true,
            ticks: Vec::new(),
        };
        let line = |points: &[(f64, f64)]| Line { name: "a", style, points: points.to_vec() };
        assert_eq!(chart(&axes, &[line(&[(1.0, 1.0)])]), "");
        assert!(chart(&axes, &[line(&[(1.0, 1.0), (10.0, 2.0)])]).contains("<svg"));
    }
}
