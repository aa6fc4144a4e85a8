//! Repository chores: `cargo xtask tidy`, `cargo xtask generate`, `cargo xtask instructions`,
//! `cargo xtask public-docs`.

mod generate;
mod instructions;
mod pages;
mod peers;
mod public_docs;
mod rfcs;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("tidy") => tidy::run(),
        Some("generate") => generate::run(),
        Some("instructions") => instructions::run(&arguments[1..]),
        Some("public-docs") => public_docs::run(),
        _ => {
            eprintln!(
                "usage: cargo xtask tidy | generate | instructions [--update | --profile NAME] \
                 | public-docs"
            );
            ExitCode::from(2)
        }
    }
}
