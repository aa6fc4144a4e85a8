//! README's table of costs, made from the run that is kept of `bench/peers.py`.

use serde_json::Value;

use crate::tidy::Tree;

/// The kept run; without it the table stays as it is.
pub const RUN: &str = "bench/runs/peers.json";
/// Where the table is.
pub const PAGE: &str = "README.md";

/// The table's workloads, with what they ask.
const WORKLOADS: [(&str, &str); 4] = [
    ("dino", "100 zones, half of the names in none of them"),
    ("erl-mix", "two zones, two thirds of the names in neither"),
    ("erl-all", "two zones, eight names and types"),
    ("big", "names at random out of a million records"),
];
/// Servers of the measurement, with their names in the table.
const SERVERS: [(&str, &str); 3] = [("zonda", "Zonda"), ("knot", "Knot DNS"), ("nsd", "NSD")];
/// How the table begins; an empty line ends it.
const BEGIN: &str = "| workload | Zonda |";
/// A round counts when other processes used no more than this share of the machine.
const FOREIGN_MAX: f64 = 0.05;

/// README with the table of the kept run; none without a kept run.
///
/// # Errors
/// Why the run makes no table, or README has no place for it.
pub fn page(tree: &Tree) -> Option<Result<String, String>> {
    let run = tree.text(RUN)?;
    let page = tree.text(PAGE).unwrap_or_default();
    Some(table(run).and_then(|table| with_table(page, &table)))
}

/// Returns the page with this table in the place of the one that it has.
fn with_table(page: &str, table: &str) -> Result<String, String> {
    let start = page.find(BEGIN).ok_or(format!("has no table that begins with `{BEGIN}`"))?;
    let len = page[start..].find("\n\n").ok_or("has nothing behind its table of costs")?;
    Ok(format!("{}{table}{}", &page[..start], &page[start + len..]))
}

/// Returns the table: for each workload and server the median over rounds of the multiple of the
/// reflector in the same round, with the lowest and the highest.
fn table(run: &str) -> Result<String, String> {
    let run: Value = serde_json::from_str(run).map_err(|error| format!("{RUN}: {error}"))?;
    let names = SERVERS.map(|(server, name)| match version(&run["versions"][server]) {
        Some(version) if server != "zonda" => format!("{name} {version}"),
        _ => name.to_owned(),
    });
    let mut lines = vec![format!("| workload | {} |", names.join(" | "))];
    lines.push("|---|---|---|---|".to_owned());
    for (workload, what) in WORKLOADS {
        let times = SERVERS.map(|(server, _)| multiples(&run, workload, server));
        let cells: Vec<String> = times.into_iter().collect::<Result<_, _>>()?;
        lines.push(format!("| `{workload}`: {what} | {} |", cells.join(" | ")));
    }
    let memory = SERVERS.map(|(server, _)| {
        let rounds = rounds(&run, "big", server);
        let found = sorted(rounds.iter().filter_map(|round| round["mb"].as_f64()));
        format!("{:.0} MB", middle(&found))
    });
    lines.push(format!("| memory for that zone | {} |", memory.join(" | ")));
    Ok(lines.join("\n"))
}

/// Returns a server's multiples of the reflector as a cell.
fn multiples(run: &Value, workload: &str, server: &str) -> Result<String, String> {
    let floor = rounds(run, workload, "echo");
    let multiple = |round: &&Value| {
        let same = floor.iter().find(|other| other["round"] == round["round"])?;
        Some(round["us"].as_f64()? / same["us"].as_f64()?)
    };
    let found = sorted(rounds(run, workload, server).iter().filter_map(multiple));
    match (found.first(), found.last()) {
        (Some(low), Some(high)) if found.len() >= 3 => {
            Ok(format!("{:.2} ({low:.2}–{high:.2})", middle(&found)))
        }
        _ => Err(format!("{RUN}: {workload} has fewer than three quiet rounds of {server}")),
    }
}

/// Rounds that other processes did not disturb.
fn rounds<'r>(run: &'r Value, workload: &str, server: &str) -> Vec<&'r Value> {
    let rounds = run["workloads"][workload]["rounds"][server].as_array();
    let is_quiet = |round: &&Value| round["foreign"].as_f64().is_some_and(|it| it <= FOREIGN_MAX);
    rounds.into_iter().flatten().filter(is_quiet).collect()
}

/// Returns the first word of a program's answer that is a version, without what follows its second
/// part.
fn version(said: &Value) -> Option<String> {
    let words = said.as_str()?.split(|c: char| !c.is_ascii_digit() && c != '.');
    let mut parts = words.map(|word| word.split('.').filter(|part| !part.is_empty()));
    parts.find_map(|mut parts| Some(format!("{}.{}", parts.next()?, parts.next()?)))
}

/// Values in ascending order.
fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the median of sorted values; 0 without any.
fn middle(sorted: &[f64]) -> f64 {
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => 0.0,
        (middle, 0) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (middle, _) => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a run in which every server costs so many times the reflector, with a last round
    /// under foreign load.
    fn run(count: usize) -> String {
        let round = |number: usize, us: f64, foreign: f64| {
            let mb = 70.4;
            serde_json::json!({ "round": number, "us": us, "mb": mb, "foreign": foreign })
        };
        let rounds = |times: f64| -> Vec<Value> {
            let quiet = (0..count).map(|n| round(n, (4.0 + n as f64) * times, 0.01));
            quiet.chain([round(count, 99.0 * times * times, 0.5)]).collect()
        };
        let servers = serde_json::json!({
            "echo": rounds(1.0), "zonda": rounds(1.02), "knot": rounds(1.4), "nsd": rounds(1.5),
        });
        let workloads: serde_json::Map<String, Value> = WORKLOADS
            .iter()
            .map(|(name, _)| ((*name).to_owned(), serde_json::json!({"rounds": servers})))
            .collect();
        let versions =
            serde_json::json!({"zonda": "zonda 0.1.0", "knot": "knotd (Knot DNS), 3.2.6"});
        serde_json::json!({"versions": versions, "workloads": workloads}).to_string()
    }

    #[test]
    fn the_table_is_that_of_the_kept_run_and_its_quiet_rounds() {
        let before = format!("# Zonda\n\n{BEGIN} old |\n|---|\n| 1 | 2 |\n\nSeven rounds.\n");
        let tree = Tree::of(&[(RUN, &run(3)), (PAGE, &before)]);
        let page = page(&tree).unwrap().unwrap();
        assert!(
            page.starts_with("# Zonda\n\n| workload | Zonda | Knot DNS 3.2 | NSD |\n"),
            "{page}"
        );
        let row = "| `big`: names at random out of a million records | 1.02 (1.02–1.02) | 1.40 ";
        assert!(page.contains(row), "{page}");
        assert!(
            page.contains("| memory for that zone | 70 MB | 70 MB | 70 MB |\n\nSeven"),
            "{page}"
        );
        let again = Tree::of(&[(RUN, &run(3)), (PAGE, &page)]);
        assert_eq!(super::page(&again).unwrap().unwrap(), page);
    }

    #[test]
    fn without_a_kept_run_the_table_stays_and_few_rounds_make_none() {
        assert!(page(&Tree::of(&[(PAGE, "text")])).is_none());
        let tree = Tree::of(&[(RUN, &run(2)), (PAGE, "| workload | Zonda | a |\n\nx")]);
        assert!(page(&tree).unwrap().unwrap_err().contains("fewer than three quiet rounds"));
    }
}
