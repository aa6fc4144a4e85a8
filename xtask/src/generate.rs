//! Files made from code: the configuration's reference page and sample, the list of RFCs,
//! README's table of costs, and pages with programs in Rust.

use crate::tidy::Tree;
use crate::{pages, peers, rfcs};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

/// Writes every generated file, and says which cannot be written.
pub fn run() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let tree = Tree::of_repository();
    let rfcs = (rfcs::PAGE, rfcs::page());
    let readme = match peers::page(&tree).transpose() {
        Ok(readme) => readme.map(|page| (peers::PAGE, page)),
        Err(error) => {
            eprintln!("{}: {error}", peers::PAGE);
            return ExitCode::FAILURE;
        }
    };
    let made = zonda_config::generated_files().into_iter().chain([rfcs]).chain(readme);
    let made = made.map(|(path, content)| (path.to_owned(), content)).chain(pages::pages(&tree));
    for (path, content) in made {
        if let Err(error) = write(&root.join(&path), &content) {
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
