//! The documentation of the library as its users see it, and what it must not show.
//!
//! The library's types are declared in several crates of the workspace, which a program does not
//! depend on and whose names say nothing to its author. Held here, for each page of `zonda`:
//!
//! - no text and no link has the name of such a crate;
//! - each type in a signature is a link, so that a reader can find out what it is;
//! - each link of a comment has a target, and each type that a comment names has a page.
//!
//! Not held: items that are hidden, as they have no page; implementations that a type has by its
//! bounds alone, of traits of crates from elsewhere; addresses of files that a page loads.

mod html;

use html::{Kind, Piece};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fmt, fs, io};

/// What stands before a name that a signature declares.
const DECLARATIONS: &[&str] = &["struct ", "enum ", "trait ", "type ", "const ", "union "];

/// One thing that a page must not show.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// Path of the page below that of the documentation.
    page: String,
    /// Anchor of the item on the page; empty above the first.
    item: String,
    /// What is shown, and what to do.
    what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { page, item, what } = self;
        let mark = if item.is_empty() { "" } else { "#" };
        write!(f, "{page}{mark}{item}: {what}")
    }
}

/// Builds the pages of the library without private items, and prints what they must not show.
pub fn run() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let findings = match build(&root).and_then(|pages| check(&pages, &internal_crates(&root)?)) {
        Ok(findings) => findings,
        Err(error) => {
            eprintln!("the documentation of the library cannot be checked: {error}");
            return ExitCode::FAILURE;
        }
    };
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    println!("public docs: {}", if findings.is_empty() { "ok" } else { "NOT OK" });
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Builds the pages in a directory without those of other crates, to which they would link, and
/// returns it. What the workspace's documentation has compiled is used again.
fn build(root: &Path) -> io::Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let own_target = target.join("public-docs");
    let pages = own_target.join("doc");
    if pages.exists() {
        fs::remove_dir_all(&pages)?; // pages of items that are gone
    }
    let status = Command::new(env::var_os("CARGO").unwrap_or("cargo".into()))
        .current_dir(root)
        .args(["doc", "--package", "zonda", "--features", "redis,postgres", "--no-deps"])
        .args(["--locked", "--quiet", "--target-dir"])
        .arg(&own_target)
        .env("CARGO_BUILD_BUILD_DIR", &target)
        .status()?;
    if status.success() { Ok(pages) } else { Err(io::Error::other("cargo doc failed")) }
}

/// Returns the names of the crates that programs do not depend on, as code spells them.
fn internal_crates(root: &Path) -> io::Result<Vec<String>> {
    let mut crates = Vec::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let manifest = fs::read_to_string(entry?.path().join("Cargo.toml"))?;
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = "));
        let name = name.ok_or(io::Error::other("a manifest has no name"))?.trim_matches('"');
        if name != "zonda" {
            crates.push(name.replace('-', "_"));
        }
    }
    Ok(crates)
}

/// Returns what the pages of the library must not show.
fn check(pages: &Path, crates: &[String]) -> io::Result<Vec<Finding>> {
    let mut files = Vec::new();
    collect(&pages.join("zonda"), &mut files)?;
    let names: BTreeSet<String> = files.iter().filter_map(|file| item_name(file)).collect();
    let mut findings = BTreeSet::new();
    for file in &files {
        let text = fs::read_to_string(file)?;
        let path = file.strip_prefix(pages).unwrap_or(file).display().to_string();
        let found = check_page(&text, &names, crates).into_iter();
        findings.extend(found.map(|(item, what)| Finding { page: path.clone(), item, what }));
    }
    if names.is_empty() {
        return Err(io::Error::other(format!("{} has no pages", pages.display())));
    }
    Ok(findings.into_iter().collect())
}

/// Collects the pages in a directory and in those below it.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match path.extension() {
            _ if path.is_dir() => collect(&path, files)?,
            Some(extension) if extension == "html" => files.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the name of the item that a page describes: `Query` of `struct.Query.html`.
fn item_name(file: &Path) -> Option<String> {
    let mut parts = file.file_name()?.to_str()?.split('.');
    let (_, name) = (parts.next()?, parts.next()?);
    (parts.next() == Some("html")).then(|| name.to_owned())
}

/// Returns what a page must not show, each with the anchor of its item. `names` have pages.
fn check_page(page: &str, names: &BTreeSet<String>, crates: &[String]) -> Vec<(String, String)> {
    let pieces = html::pieces(page);
    let declared: BTreeSet<&str> = pieces
        .iter()
        .filter_map(|piece| piece.item.split_once('.').map(|(_, name)| name))
        .collect();
    let mut findings = Vec::new();
    let mut before = "";
    for (index, piece) in pieces.iter().enumerate() {
        let after = pieces.get(index + 1).map_or("", |next| next.text);
        let mut find = |what: String| findings.push((piece.item.to_owned(), what));
        if let Some(name) = internal_name(piece, crates) {
            find(format!("shows the internal crate `{name}`: export the item from `zonda`"));
        }
        match piece.kind {
            Kind::Signature if !piece.is_link => {
                for name in types(piece).filter(|name| !declared.contains(name)) {
                    find(format!(
                        "the signature names `{name}`, which has no page: export it from `zonda`, \
                         or hide the item"
                    ));
                }
            }
            Kind::CommentCode if !piece.is_link => {
                if before.ends_with('[') && after.starts_with(']') {
                    find(format!("the link [`{}`] has no target", piece.text));
                } else if is_type_name(piece.text) && !names.contains(piece.text) {
                    find(format!("the comment names `{}`, which has no page", piece.text));
                }
            }
            _ => {}
        }
        before = piece.text;
    }
    findings
}

/// Returns the internal crate that a piece of a page names, in its text or in its link.
fn internal_name<'c>(piece: &Piece<'_>, crates: &'c [String]) -> Option<&'c str> {
    let words = [piece.text, piece.link]
        .into_iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-'));
    let words: Vec<String> = words.map(|word| word.replace('-', "_")).collect();
    crates.iter().find(|name| words.contains(name)).map(String::as_str)
}

/// Returns the names of types in a part of a signature: words that begin with a capital, but for
/// parameters of one letter, `Self`, the name that is declared, names of associated types before
/// `=`, and what stands in comments. The value of a constant is not looked at.
fn types<'p>(piece: &Piece<'p>) -> impl Iterator<Item = &'p str> {
    let is_constant = piece.item.starts_with("associatedconstant.");
    let lines = piece.text.lines().map(|line| line.split("//").next().unwrap_or(""));
    let code = lines.take_while(move |line| !is_constant || !line.contains(" = "));
    code.flat_map(|line| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        line.split(move |c| !is_part(c)).filter(move |word| {
            let start = word.as_ptr() as usize - line.as_ptr() as usize;
            let is_declared = DECLARATIONS.iter().any(|keyword| line[..start].ends_with(keyword));
            let is_binding = line[start + word.len()..].trim_start().starts_with('=');
            let is_name = word.starts_with(char::is_uppercase) && word.len() > 1;
            is_name && *word != "Self" && !is_declared && !is_binding
        })
    })
}

/// Whether a word can only be the name of a type: capitals and small letters, and more than one
/// capital.
fn is_type_name(word: &str) -> bool {
    let capitals = word.chars().filter(|c| c.is_ascii_uppercase()).count();
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_alphanumeric())
        && capitals > 1
        && word.chars().any(|c| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is found on the page of a struct `Query` with this main part.
    fn findings(main: &str) -> Vec<String> {
        let page = format!(
            "<head><script src=\"trait.impl/zonda_wire/x.js\"></script></head>\
             <section id=\"main-content\">{main}</section><footer>zonda_wire</footer>"
        );
        let names = BTreeSet::from(["Query", "Name"].map(str::to_owned));
        let found = check_page(&page, &names, &["zonda_wire".to_owned()]);
        found.into_iter().map(|(item, what)| format!("{item}: {what}")).collect()
    }

    /// Returns the signature of a method with this type.
    fn method(of: &str) -> String {
        let header = format!("<h4 class=\"code-header\">pub fn get() -&gt; {of}</h4>");
        format!("<section id=\"method.get\">{header}</section>")
    }

    #[test]
    fn an_internal_crate_in_text_or_link_is_found() {
        let shown = "shows the internal crate `zonda_wire`: export the item from `zonda`";
        let link = "<p><a title=\"struct zonda_wire::Name\" href=\"x.html\">Name</a></p>";
        assert_eq!(findings(link), [format!(": {shown}")]);
        let source = "<a class=\"src\" href=\"../src/zonda_wire/name.rs.html\">Source</a>";
        assert_eq!(findings(source), [format!(": {shown}")]);
        assert_eq!(findings("<p>as in <code>zonda-wire</code></p>"), [format!(": {shown}")]);
        assert_eq!(findings("<p>the table <code>zonda_wires</code></p>"), [""; 0]);
    }

    #[test]
    fn a_type_of_a_signature_that_is_no_link_is_found() {
        let missing = "the signature names `Opt`, which has no page: export it from `zonda`, or \
                       hide the item";
        assert_eq!(findings(&method("Opt")), [format!("method.get: {missing}")]);
        let linked = "<a href=\"struct.Opt.html\">Opt</a>&lt;T, Item = Self&gt;";
        assert_eq!(findings(&method(linked)), [""; 0]);
        let declaration = "<pre class=\"item-decl\"><code>pub struct Query {\n    // Opt\n    \
                           pub query: &amp;'a Query,\n}</code></pre>";
        let same_name = "the signature names `Query`, which has no page: export it from `zonda`, \
                         or hide the item";
        assert_eq!(findings(declaration), [format!(": {same_name}")]);
    }

    #[test]
    fn blanket_implementations_and_values_of_constants_are_not_looked_at() {
        let list =
            |of: &str| format!("<div id=\"blanket-implementations-list\">{}</div>", method(of));
        assert_eq!(findings(&list("Instrumented")), [""; 0]);
        let constant = "<section id=\"associatedconstant.TYPE\"><h4 class=\"code-header\">const \
                        <a href=\"#\">TYPE</a>: <a href=\"#\">Type</a> = Type::AAAA</h4></section>";
        assert_eq!(findings(constant), [""; 0]);
    }

    #[test]
    fn a_comment_with_a_dead_link_or_a_type_without_page_is_found() {
        let comment =
            |text: &str| findings(&format!("<div class=\"docblock\"><p>{text}</p></div>"));
        assert_eq!(comment("see [<code>Opt</code>]."), [": the link [`Opt`] has no target"]);
        let names = ": the comment names `HashSeed`, which has no page";
        assert_eq!(comment("by a <code>HashSeed</code>"), [names]);
        assert_eq!(comment("by a <a href=\"x\"><code>HashSeed</code></a>"), [""; 0]);
        assert_eq!(comment("<code>SERVFAIL</code>, <code>Name</code>"), [""; 0]);
        let example = "<div class=\"docblock\"><pre><code>HashSeed::new()</code></pre></div>";
        assert_eq!(findings(example), [""; 0]);
    }
}
