//! Reads a master file and prints its diagnostics, how many records it holds and how long it took.
//!
//! ```text
//! cargo run --release -p zonda-zone --example read_zone -- example.com example.com.zone
//! ```

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use zonda_zone::file;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, origin, path] = &arguments[..] else {
        eprintln!("usage: read_zone ORIGIN FILE");
        return ExitCode::from(2);
    };
    let Ok(origin) = origin.parse() else {
        eprintln!("{origin} is not a domain name");
        return ExitCode::from(2);
    };
    let start = Instant::now();
    let (records, diagnostics) = file::read(Path::new(path), &origin, &file::Options::default());
    let secs = start.elapsed().as_secs_f64();
    print!("{diagnostics}");
    let errors = diagnostics.error_count();
    println!("{} records, {errors} errors, {secs:.3} s", records.len());
    if diagnostics.has_errors() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
