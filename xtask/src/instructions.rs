//! Instructions per query, counted by callgrind and compared with `bench/instructions.toml`.
//!
//! The programs that are counted answer queries in-process. Each understands
//! `--list` (prints its workloads, one a line) and `--workload NAME --queries N`. Their hashes are
//! seeded with a constant, so that two runs spend the same instructions.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

use toml::de::DeTable;

/// Where the expected counts are kept.
const BASELINE: &str = "bench/instructions.toml";
/// The programs that answer in-process: examples, each with its package.
const EXAMPLES: &[(&str, &str)] = &[("zonda-engine", "answer"), ("zonda-forward", "forward")];
/// Queries of the short run; the long run has twice as many, and start-up cancels out.
const QUERIES: u64 = 20_000;
/// How far a count may move, in percent: more than chance does, less than a mistake.
const TOLERANCE_PERCENT: f64 = 3.0;

/// Instructions per query by workload.
type Counts = BTreeMap<String, f64>;

/// The profile whose counts are kept; programs of another profile are compared with these.
const PROFILE: &str = "release";

/// Counts every workload; with `--update` writes the counts down, else compares. `--profile NAME`
/// counts programs of another profile, which may spend less.
pub fn run(arguments: &[String]) -> ExitCode {
    let (update, profile) = match arguments {
        [] => (false, PROFILE),
        [flag] if flag == "--update" => (true, PROFILE),
        [flag, profile] if flag == "--profile" => (false, &**profile),
        _ => {
            eprintln!("usage: cargo xtask instructions [--update | --profile NAME]");
            return ExitCode::from(2);
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root");
    let outcome = compiler().and_then(|compiler| {
        let mut counts = Counts::new();
        for (package, example) in EXAMPLES {
            counts.extend(count(&build(root, profile, package, example)?)?);
        }
        let mut baseline = read(&root.join(BASELINE))?;
        if update {
            baseline.insert(compiler, counts);
            std::fs::write(root.join(BASELINE), print(&baseline)).map_err(|e| e.to_string())?;
            Ok(true)
        } else {
            Ok(compare(&compiler, &counts, &baseline, profile != PROFILE))
        }
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("If the change is meant: cargo xtask instructions --update, and commit it.");
            ExitCode::FAILURE
        }
        Err(what) => {
            eprintln!("instructions: {what}");
            ExitCode::FAILURE
        }
    }
}

/// Builds a program with a profile and says where it is.
fn build(root: &Path, profile: &str, package: &str, example: &str) -> Result<PathBuf, String> {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--profile", profile, "-p", package, "--example", example])
        .args(["--message-format=json-render-diagnostics"])
        .current_dir(root)
        .stderr(std::process::Stdio::inherit())
        .output();
    let messages = succeeded(output)?;
    let mut executables = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message["executable"].as_str()?))
    });
    executables.next_back().ok_or_else(|| format!("cargo built no example {example}"))
}

/// Returns the standard output of a command that ended well.
fn succeeded(output: std::io::Result<Output>) -> Result<String, String> {
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns the compiler's version and target, which the counts belong to.
fn compiler() -> Result<String, String> {
    let text = succeeded(Command::new("rustc").arg("--version").arg("--verbose").output())?;
    let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("?").trim();
    Ok(format!("rustc {} {}", field("release:"), field("host:")))
}

/// Counts each workload that the program lists.
fn count(program: &Path) -> Result<Counts, String> {
    let workloads = succeeded(Command::new(program).arg("--list").output())?;
    let mut counts = Counts::new();
    for workload in workloads.lines() {
        let short = callgrind(program, workload, QUERIES)?;
        let long = callgrind(program, workload, 2 * QUERIES)?;
        let difference = long.saturating_sub(short);
        counts.insert(workload.to_owned(), difference as f64 / QUERIES as f64);
    }
    Ok(counts)
}

/// Returns the first CPU that this process may run on, as `taskset` takes it.
fn first_cpu() -> Result<String, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|e| e.to_string())?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let digits = |list: &str| list.trim().chars().take_while(char::is_ascii_digit).collect();
    list.map(digits).ok_or_else(|| "/proc/self/status names no CPU".to_owned())
}

/// Instructions of one whole run.
///
/// All threads run on one CPU: on two, a thread finds more or less to do each time it wakes, as
/// chance has it, and `forward-cold` varied by five percent.
fn callgrind(program: &Path, workload: &str, queries: u64) -> Result<u64, String> {
    let output = Command::new("taskset")
        .args(["--cpu-list", &first_cpu()?, "valgrind"])
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--workload", workload, "--queries", &queries.to_string()])
        .output()
        .map_err(|error| format!("taskset valgrind: {error}"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{workload}: {log}"));
    }
    // The summary is a line such as `==123== Collected : 4567`.
    let collected = log.lines().find_map(|line| line.split_once("Collected : "));
    collected
        .and_then(|(_, number)| number.trim().parse().ok())
        .ok_or_else(|| format!("{workload}: callgrind said no count"))
}

/// Returns the expected counts, by compiler.
fn read(path: &Path) -> Result<BTreeMap<String, Counts>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let table = DeTable::parse(&text).map_err(|error| error.to_string())?;
    let mut baseline = BTreeMap::new();
    for (compiler, counts) in table.get_ref() {
        let counts = counts.get_ref().as_table().ok_or("expected one table for each compiler")?;
        let number =
            |value: &toml::de::DeValue<'_>| value.as_float().and_then(|f| f.as_str().parse().ok());
        let counts: Option<Counts> = counts
            .iter()
            .map(|(name, value)| Some((name.get_ref().to_string(), number(value.get_ref())?)))
            .collect();
        let counts = counts.ok_or("expected a number such as 812.0 for each workload")?;
        baseline.insert(compiler.get_ref().to_string(), counts);
    }
    Ok(baseline)
}

/// Returns the text of the baseline file.
fn print(baseline: &BTreeMap<String, Counts>) -> String {
    let mut text = String::from(
        "# Instructions that the engine spends on one query, counted by callgrind: see README.md.\n\
         # One table for each compiler, since another compiler gives other numbers.\n",
    );
    for (compiler, counts) in baseline {
        let _ = write!(text, "\n[\"{compiler}\"]\n");
        for (workload, count) in counts {
            let _ = writeln!(text, "{workload} = {count:.1}");
        }
    }
    text
}

/// Prints the counts beside the expected ones; false when one is out of bounds or unknown.
fn compare(
    compiler: &str,
    counts: &Counts,
    baseline: &BTreeMap<String, Counts>,
    may_be_less: bool,
) -> bool {
    let Some(expected) = baseline.get(compiler) else {
        println!("instructions: {BASELINE} has no counts for {compiler}; nothing to compare");
        for (workload, count) in counts {
            println!("instructions: {workload}: {count:.1} a query");
        }
        return true;
    };
    let mut good = true;
    for workload in expected.keys().filter(|workload| !counts.contains_key(*workload)) {
        println!("instructions: {workload}: in {BASELINE}, but no longer a workload");
        good = false;
    }
    for (workload, count) in counts {
        let Some(before) = expected.get(workload) else {
            println!("instructions: {workload}: {count:.1} a query, not in {BASELINE}");
            good = false;
            continue;
        };
        let percent = (count / before - 1.0) * 100.0;
        let is_less = may_be_less && percent < 0.0;
        let within = is_less || percent.abs() <= TOLERANCE_PERCENT;
        let verdict = if within { "ok" } else { "NOT OK" };
        println!("instructions: {workload}: {count:.1} a query ({percent:+.1} %): {verdict}");
        good &= within;
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(number: f64) -> Counts {
        Counts::from([("hot".to_owned(), number)])
    }

    #[test]
    fn three_percent_are_let_through_and_four_are_not() {
        let baseline = BTreeMap::from([("rustc 1".to_owned(), counts(1000.0))]);
        assert!(compare("rustc 1", &counts(1029.0), &baseline, false));
        assert!(!compare("rustc 1", &counts(1040.0), &baseline, false));
        assert!(!compare("rustc 1", &counts(960.0), &baseline, false));
    }

    #[test]
    fn another_profile_may_spend_less_and_not_more() {
        let baseline = BTreeMap::from([("rustc 1".to_owned(), counts(1000.0))]);
        assert!(compare("rustc 1", &counts(960.0), &baseline, true));
        assert!(!compare("rustc 1", &counts(1040.0), &baseline, true));
    }

    #[test]
    fn another_compiler_is_not_compared() {
        let baseline = BTreeMap::from([("rustc 1".to_owned(), counts(1000.0))]);
        assert!(compare("rustc 2", &counts(2000.0), &baseline, false));
    }

    #[test]
    fn what_is_written_down_is_read_back() {
        let baseline = BTreeMap::from([("rustc 1 x".to_owned(), counts(812.5))]);
        let path = std::env::temp_dir().join(format!("instructions-{}.toml", std::process::id()));
        std::fs::write(&path, print(&baseline)).unwrap();
        let back = read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(back.unwrap(), baseline);
    }
}
