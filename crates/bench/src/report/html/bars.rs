//! Bars with their spread, one for each server.

use super::escape;
use crate::report::statistics::Spread;

/// Width of the drawing, in its own units; text of 13 units is readable when it is 360 pixels.
const WIDTH: f64 = 400.0;
/// Height of a row.
const ROW: f64 = 30.0;
/// Width that a character of a label takes at most.
const CHARACTER: f64 = 7.6;

/// A bar.
pub struct Bar<'a> {
    /// The server.
    pub name: &'a str,
    /// The CSS variable of its colour.
    pub colour: &'static str,
    /// How long it is, and its whisker.
    pub spread: Spread,
    /// The median as text.
    pub text: String,
}

/// A figure with its title; empty without bars.
pub fn chart(title: &str, note: &str, bars: &[Bar<'_>]) -> String {
    let most = bars.iter().map(|bar| bar.spread.high).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let widest = |text: &dyn Fn(&Bar<'_>) -> usize| {
        bars.iter().map(text).max().unwrap_or_default() as f64 * CHARACTER
    };
    let left = widest(&|bar| bar.name.chars().count()) + 8.0;
    let room = WIDTH - left - widest(&|bar| bar.text.chars().count()) - 12.0;
    let height = ROW * bars.len() as f64;
    let rows: String = bars
        .iter()
        .enumerate()
        .map(|(index, bar)| row(bar, ROW * index as f64, left, room / most))
        .collect();
    format!(
        "<figure><h4>{title}</h4><figcaption>{note}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">{rows}</svg>\
         </figure>\n",
        title = escape(title),
        note = escape(note),
    )
}

/// Name, bar, whisker and value; `scale` is units for each of the figure's.
fn row(bar: &Bar<'_>, top: f64, left: f64, scale: f64) -> String {
    let x = |value: f64| left + value * scale;
    let (middle, base) = (top + ROW / 2.0, top + ROW / 2.0 + 4.5);
    let (low, high) = (x(bar.spread.low), x(bar.spread.high));
    let whisker = format!(
        "<path class=\"whisker\" \
         d=\"M{low:.1} {middle}H{high:.1}M{low:.1} {a}v8M{high:.1} {a}v8\"/>",
        a = middle - 4.0,
    );
    format!(
        "<text x=\"{name_x:.1}\" y=\"{base}\" text-anchor=\"end\">{name}</text>\
         <rect x=\"{left:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" rx=\"2\" \
         fill=\"var({colour})\"/>{whisker}\
         <text x=\"{text_x:.1}\" y=\"{base}\">{text}</text>",
        name_x = left - 8.0,
        name = escape(bar.name),
        y = middle - 9.0,
        width = (bar.spread.median * scale).max(1.0),
        colour = bar.colour,
        whisker = if bar.spread.count > 1 { whisker } else { String::new() },
        text_x = high.max(x(bar.spread.median)) + 8.0,
        text = escape(&bar.text),
    )
}
