//! Where, when and how a run was measured.

use super::escape;
use crate::data::{Run, Server};
use crate::report::figures::mebioctets;
use crate::report::numbers::{grouped, short};
use crate::suite::Suite;

/// Returns the name of what the run repeats: that of the report, or the suite's.
pub fn name_of(run: &Run) -> String {
    let known = || shipped(run)?.report;
    run.report.clone().or_else(known).unwrap_or_else(|| run.suite.clone())
}

/// Returns what of the original report the suite does not repeat.
pub fn left_out(run: &Run) -> Vec<String> {
    let known = || shipped(run).map(|suite| suite.left_out).unwrap_or_default();
    if run.left_out.is_empty() { known() } else { run.left_out.clone() }
}

/// Returns the suite of today with the name of the run's: what older runs do not say, it says.
fn shipped(run: &Run) -> Option<Suite> {
    Suite::shipped().into_iter().find(|suite| suite.name == run.suite)
}

/// Returns what was compared, when and where.
pub fn heading(run: &Run) -> String {
    format!(
        "<p class=\"kicker\">zonda bench · suite {}</p>\n<h1>{}</h1>\n<p>{}.</p>\n{}",
        escape(&run.suite),
        escape(&name_of(run)),
        escape(&run.title),
        where_and_when(run),
    )
}

/// Date, machine and servers.
pub fn where_and_when(run: &Run) -> String {
    let servers: Vec<String> = run
        .servers
        .iter()
        .filter(|server| !server.is_floor)
        .map(|server| match server.version.split_whitespace().find(|it| is_number(it)) {
            Some(version) => format!("{} {version}", server.name),
            None => server.name.clone(),
        })
        .collect();
    format!(
        "<p class=\"note\">{} · {}, {} CPUs · {}<br>{}</p>\n",
        date(run.began_unix_secs),
        escape(&run.environment.cpu),
        run.environment.cpus,
        escape(&run.environment.kernel),
        escape(&servers.join(", ")),
    )
}

/// Whether this word of what a program prints is its version.
fn is_number(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.')
}

/// Returns the sentence about the load generator.
fn generator(run: &Run) -> String {
    let own = format!("zonda bench {}", run.environment.bench);
    match run.method.pace.as_str() {
        "batch" => own,
        dnsperf => format!("{dnsperf}; {own} for latency at a rate"),
    }
}

/// Environment, method, and every server with its commands and configurations.
pub fn method(run: &Run) -> String {
    let (place, method) = (&run.environment, &run.method);
    let entries = [
        ("Command", place.command.join(" ")),
        ("CPU", format!("{}, {} of them used", place.cpu, place.cpus)),
        ("Memory", format!("{} MiB", grouped(mebioctets(place.memory_octets)))),
        ("System", format!("{}, {}", place.system, place.kernel)),
        ("Generator", generator(run)),
        (
            "Rounds",
            format!(
                "{} of {} s after {} s of warm-up, servers in turns",
                method.rounds, method.seconds, method.warm_up_secs
            ),
        ),
        (
            "Pinning",
            format!(
                "servers on CPU {}, generator on CPU {}",
                list(&method.server_cpus),
                list(&method.load_cpus)
            ),
        ),
        (
            "Discarded",
            format!(
                "rounds in which other processes used over {} % of the machine",
                short(method.foreign_cpu_max * 100.0)
            ),
        ),
        ("Took", format!("{} minutes", short(run.took_secs / 60.0))),
    ];
    let entries: String = entries
        .iter()
        .map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(value)))
        .collect();
    let mut text = format!(
        "<h2>How it was measured</h2>\n<p>Servers differ where the 95 % interval of their ratio, \
         taken round by round, excludes 1; they are level where it includes 1 and lies within the \
         margin; else this run does not tell them apart. “× reflector” is CPU per query as a \
         multiple of a bare UDP reflector's in the round of the same number.</p>\n<dl>\n{entries}\
         </dl>\n<h3>Servers</h3>\n"
    );
    for server in &run.servers {
        text += &setups(server);
    }
    for skipped in &run.skipped {
        text += &format!("<p class=\"note\">Left out: {}.</p>\n", escape(&skipped.to_string()));
    }
    text
}

/// Returns a server's version, unfolding to its commands and files.
fn setups(server: &Server) -> String {
    let mut inside = String::new();
    for setup in &server.setups {
        inside += &format!(
            "<p class=\"note\">{}</p>\n<pre>{}</pre>\n",
            escape(&setup.purpose),
            escape(&setup.command.join(" "))
        );
        for (name, content) in &setup.files {
            inside += &format!(
                "<p class=\"note\">{}</p>\n<pre>{}</pre>\n",
                escape(name),
                escape(content)
            );
        }
    }
    format!(
        "<details><summary><b>{}</b> {}</summary>\n{inside}</details>\n",
        escape(&server.name),
        escape(&server.version)
    )
}

/// Numbers with commas.
fn list(numbers: &[usize]) -> String {
    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    numbers.join(", ")
}

/// Returns the day in UTC, as `2026-01-31`.
fn date(unix_secs: u64) -> String {
    // Days since 1 March of the year 0, so that the leap day is the last day of a year.
    let days = unix_secs / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_based = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_based + 2) / 5 + 1;
    let month = if march_based < 10 { march_based + 3 } else { march_based - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn days_are_counted_over_leap_years() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_767_225_599), "2025-12-31");
    }
}
