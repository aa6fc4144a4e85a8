//! Repository chores: `cargo xtask tidy`, `cargo xtask generate`, `cargo xtask instructions`.

mod generate;
mod instructions;
mod peers;
mod rfcs;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("tidy") => tidy::run(),
        Some("generate") => generate::run(),
        Some("instructions") => instructions::run(&arguments[1..]),
        _ => {
            eprintln!("usage: cargo xtask tidy | generate | instructions [--update]");
            ExitCode::from(2)
        }
    }
}
