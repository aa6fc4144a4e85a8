//! Files made from code: the configuration's reference page and sample, and the list of RFCs.

use crate::rfcs;
use crate::tidy::Tree;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

/// Writes every generated file, and says which cannot be written.
pub fn run() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rfcs = (rfcs::PAGE, rfcs::page(&Tree::of_repository()));
    for (path, content) in zonda_config::generated_files().into_iter().chain([rfcs]) {
        if let Err(error) = write(&root.join(path), &content) {
            eprintln!("{path}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Writes a file, and the directory it is in.
fn write(path: &Path, content: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new("")))?;
    fs::write(path, content)
}
