//! Bars with their spread, one for each server.

use super::escape;
use crate::statistics::Spread;

/// Width of the drawing, in its own units; text of 13 units is readable when it is 360 pixels.
const WIDTH: f64 = 400.0;
/// Height of a row.
const ROW: f64 = 30.0;
/// Width that a character of a label takes at most, on average over a word.
const CHARACTER: f64 = 8.4;

/// A bar of the chart.
pub struct Bar<'a> {
    /// Name of the server.
    pub name: &'a str,
    /// Filling of the bar.
    pub fill: Fill,
    /// Length of the bar, and its whisker.
    pub spread: Spread,
    /// The median as text.
    pub text: String,
}

/// What a bar stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// The reflector; a thread runs down from its end.
    Floor,
    /// The server at home, or a program made with it.
    Home,
    /// Any other server.
    Other,
    /// A server that is not compared: an outline only.
    Unranked,
}

/// Returns a figure with its title; empty without bars.
pub fn chart(title: &str, caption: &str, bars: &[Bar<'_>]) -> String {
    let most = bars.iter().map(|bar| bar.spread.high).fold(0.0, f64::max);
    if most <= 0.0 {
        return String::new();
    }
    let widest = |text: &dyn Fn(&Bar<'_>) -> usize| {
        bars.iter().map(text).max().unwrap_or_default() as f64 * CHARACTER
    };
    let left = widest(&|bar| bar.name.chars().count()) + 8.0;
    let room = WIDTH - left - widest(&|bar| bar.text.chars().count()) - 10.0;
    let height = ROW * bars.len() as f64;
    let rows: String = bars
        .iter()
        .enumerate()
        .map(|(index, bar)| row(bar, ROW * index as f64, left, room / most))
        .collect();
    let floor = bars.iter().find(|bar| bar.fill == Fill::Floor).map_or_else(String::new, |bar| {
        let x = left + bar.spread.median * room / most;
        format!("<path class=\"floor\" d=\"M{x:.1} 0V{height}\"/>")
    });
    format!(
        "<figure><h4>{title}</h4><figcaption>{caption}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">{floor}{rows}\
         </svg></figure>\n",
        title = escape(title),
        caption = escape(caption),
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
    let class = match bar.fill {
        Fill::Floor => "bar-floor",
        Fill::Home => "bar-home",
        Fill::Other => "bar-other",
        Fill::Unranked => "bar-unranked",
    };
    format!(
        "<text x=\"{name_x:.1}\" y=\"{base}\" text-anchor=\"end\"{bold}>{name}</text>\
         <rect class=\"{class}\" x=\"{left:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\"/>\
         {whisker}<text class=\"value\" x=\"{text_x:.1}\" y=\"{base}\"{bold}>{text}</text>",
        bold = if bar.fill == Fill::Home { " font-weight=\"600\"" } else { "" },
        name_x = left - 8.0,
        name = escape(bar.name),
        y = middle - 9.0,
        width = (bar.spread.median * scale).max(1.0),
        whisker = if bar.spread.count > 1 { whisker } else { String::new() },
        text_x = high.max(x(bar.spread.median)) + 8.0,
        text = escape(&bar.text),
    )
}
