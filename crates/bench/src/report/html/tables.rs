//! Tables of what a place in the matrix gave.

use super::escape;
use crate::data::Cell;
use crate::report::figures::{Figure, Group, cpu_secs};
use crate::report::numbers::{grouped, rate, relation, short};
use crate::report::verdict::{HOME, is_zonda};
use crate::statistics::Spread;

/// Returns the table of the original reports: what was sent and answered, QPS and latency with
/// their Δ.
pub fn traffic(group: &Group<'_>) -> String {
    let base = group.ranked().find(|cell| cell.server == HOME).or_else(|| group.ranked().next());
    let head =
        ["", "Sent", "Completed", "Lost", "QPS", "Average latency (s)", "Success", "Failure"];
    let rows = group.cells.iter().map(|cell| {
        let (sent, completed, lost) = totals(cell);
        let share = |count: u64| match sent {
            0 => "–".to_owned(),
            _ => format!("{:.2} %", count as f64 * 100.0 / sent as f64),
        };
        let count = |value: u64| match sent {
            0 => "–".to_owned(),
            _ => grouped(value as f64),
        };
        let mut row = vec![name(group, cell), count(sent), count(completed), count(lost)];
        for figure in [Figure::Qps, Figure::LatencyMean] {
            row.push(against(group, figure, cell, base));
        }
        row.extend([share(completed), share(sent.saturating_sub(completed))]);
        (is_zonda(&cell.server), row)
    });
    let note = base.map_or_else(String::new, |base| {
        format!(
            "<p class=\"note\">Small: the change from {}; = is level within {}, ? is not told \
             apart in this run.</p>\n",
            escape(&base.server),
            escape(&Figure::Qps.margin()),
        )
    });
    table("Queries of all rounds, and medians over rounds", &head.map(str::to_owned), rows) + &note
}

/// Sent, completed and lost over all rounds.
fn totals(cell: &Cell) -> (u64, u64, u64) {
    let traffic = || cell.rounds.iter().map(|round| &round.traffic);
    (
        traffic().map(|t| t.sent).sum(),
        traffic().map(|t| t.completed).sum(),
        traffic().map(|t| t.lost).sum(),
    )
}

/// Returns a median with what it differs from the base's.
fn against(group: &Group<'_>, figure: Figure, cell: &Cell, base: Option<&Cell>) -> String {
    let Some(spread) = figure.of(cell) else { return "–".to_owned() };
    let text = match figure {
        Figure::LatencyMean => format!("{:.6}", spread.median / 1e6),
        _ => rate(spread.median),
    };
    let other = base.filter(|base| group.is_ranked(cell) && base.server != cell.server);
    match other.and_then(|base| group.relation(figure, cell, base)) {
        Some(found) => format!("{text} <small>{}</small>", relation(figure, &found)),
        None => text,
    }
}

/// Returns what a query costs the server, how latency is spread, and what the process needs.
pub fn cost(group: &Group<'_>) -> String {
    let head = [
        "",
        "CPU µs/query",
        "range",
        "user + system",
        "× reflector",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "MiB",
        "switches /1,000",
        "rounds",
    ];
    let rows = group.cells.iter().map(|cell| {
        let show = |spread: Option<Spread>| {
            spread.map_or_else(|| "–".to_owned(), |spread| short(spread.median))
        };
        let cost = Figure::CpuPerQuery.of(cell);
        let range = cost.map_or_else(String::new, |cost| {
            format!("<small>{} – {}</small>", short(cost.low), short(cost.high))
        });
        let mut row = vec![name(group, cell), show(cost), range, shares(cell)];
        row.push(show(group.times_floor(cell)));
        row.extend([50_000, 99_000, 99_900].map(|p| show(Figure::Percentile(p).of(cell))));
        row.extend([Figure::Memory, Figure::Switches].map(|figure| show(figure.of(cell))));
        row.push(match cell.discarded {
            0 => cell.rounds.len().to_string(),
            discarded => format!("{} <small>+{discarded} discarded</small>", cell.rounds.len()),
        });
        (is_zonda(&cell.server), row)
    });
    let head = head.map(|head| group.in_unit(head));
    table("Cost, latency and memory, medians over rounds", &head, rows) + &unranked(group)
}

/// Shares of user and system time.
fn shares(cell: &Cell) -> String {
    let share = Spread::of(cell.rounds.iter().map(|r| r.cpu_user_secs / cpu_secs(r)));
    share.map_or_else(String::new, |share| {
        let user = (share.median * 100.0).round();
        format!("<small>{user:.0} % + {:.0} %</small>", 100.0 - user)
    })
}

/// Servers that are not compared here, and why.
fn unranked(group: &Group<'_>) -> String {
    let reasons = group.cells.iter().filter_map(|cell| {
        let (server, reason) = (escape(&cell.server), escape(group.reason_unranked(cell)?));
        Some(format!("<p class=\"note\">* {server} is not compared: {reason}.</p>\n"))
    });
    reasons.collect()
}

/// Returns the server's name, with a mark when it is not compared.
fn name(group: &Group<'_>, cell: &Cell) -> String {
    let mark = if group.reason_unranked(cell).is_some() { " *" } else { "" };
    format!("{}{mark}", escape(&cell.server))
}

/// Returns a table with its caption, that scrolls by itself where it is too wide; heads and cells
/// are HTML, and rows of the server at home stand out.
pub fn table(
    caption: &str,
    head: &[String],
    rows: impl Iterator<Item = (bool, Vec<String>)>,
) -> String {
    let head: String = head.iter().map(|text| format!("<th scope=\"col\">{text}</th>")).collect();
    let mut body = String::new();
    for (is_home, cells) in rows {
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        body += &format!("<tr{}>{cells}</tr>\n", if is_home { " class=\"home\"" } else { "" });
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption><thead><tr>{head}</tr>\
         </thead>\n<tbody>\n{body}</tbody></table></div>\n",
        escape(caption)
    )
}
