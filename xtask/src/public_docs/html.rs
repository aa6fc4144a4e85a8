//! Pages of rustdoc, as pieces of text that know where they stand.
//!
//! Reads what rustdoc writes, not all of HTML: attributes are quoted, and elements are closed.

/// Elements that have no end.
const VOID: [&str; 8] = ["br", "col", "hr", "img", "input", "link", "meta", "wbr"];

/// Lists of implementations that types have by bounds alone, of traits of other crates.
const BLANKET_LISTS: [&str; 2] = ["blanket-implementations-list", "synthetic-implementations-list"];

/// Where a piece of text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The declaration of an item.
    Signature,
    /// Code within a line of a comment.
    CommentCode,
    /// Anything else that a reader sees.
    Other,
}

/// Text between two tags.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'p> {
    /// The text as the page has it, with its character references.
    pub text: &'p str,
    /// Where the text stands.
    pub kind: Kind,
    /// Whether the text is a link to a page.
    pub is_link: bool,
    /// Address and title of the link that the text begins with; empty if there is none.
    pub link: &'p str,
    /// Anchor of the item that the text belongs to; empty above the first.
    pub item: &'p str,
}

/// An element that is not closed yet.
struct Element<'p> {
    tag: &'p str,
    attributes: &'p str,
}

impl<'p> Element<'p> {
    /// Returns the value of an attribute; empty if there is none.
    fn get(&self, name: &str) -> &'p str {
        let mut rest = self.attributes;
        while let Some(at) = rest.find('=') {
            let key = rest[..at].trim_start();
            let quote = rest[at + 1..].chars().next().filter(|c| matches!(c, '"' | '\''));
            let Some(quote) = quote else {
                // An attribute without quotes ends at a space.
                let value = rest[at + 1..].split(' ').next().unwrap_or("");
                if key.rsplit(' ').next() == Some(name) {
                    return value;
                }
                rest = &rest[at + 1 + value.len()..];
                continue;
            };
            let value = &rest[at + 2..];
            let end = value.find(quote).unwrap_or(value.len());
            if key.rsplit(' ').next() == Some(name) {
                return &value[..end];
            }
            rest = value.get(end + 1..).unwrap_or("");
        }
        ""
    }

    /// Whether the element has a class.
    fn has_class(&self, class: &str) -> bool {
        self.get("class").split(' ').any(|word| word == class)
    }
}

/// Returns the text of a page's main part.
pub fn pieces(page: &str) -> Vec<Piece<'_>> {
    let start = page.find("<section id=\"main-content\"").unwrap_or(page.len());
    let mut rest = &page[start..];
    let mut open: Vec<Element<'_>> = Vec::new();
    let mut pieces = Vec::new();
    let (mut item, mut link) = ("", "");
    while let Some(at) = rest.find('<') {
        let text = &rest[..at];
        if let Some(kind) = (!text.is_empty()).then(|| kind(&open)).flatten() {
            let is_link = open.iter().any(is_link);
            pieces.push(Piece { text, kind, is_link, link: std::mem::take(&mut link), item });
        }
        let Some((tag, attributes, behind)) = tag(&rest[at..]) else { break };
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            let closed = open.iter().rposition(|element| element.tag == name);
            open.truncate(closed.unwrap_or(open.len()));
            if open.is_empty() {
                break; // the main part ends
            }
            continue;
        }
        let element = Element { tag, attributes };
        if matches!(tag, "script" | "style") {
            let end = format!("</{tag}>");
            rest = rest.find(&end).map_or("", |at| &rest[at + end.len()..]);
            continue;
        }
        if is_item(element.get("id")) {
            item = element.get("id");
        }
        if is_link(&element) {
            link = attributes;
        }
        if !VOID.contains(&tag) {
            open.push(element);
        }
    }
    pieces
}

/// Returns the name and the attributes of the tag that a text begins with, and what follows it.
fn tag(text: &str) -> Option<(&str, &str, &str)> {
    let mut quote = None;
    let end = text.char_indices().find_map(|(at, c)| {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None if c == '>' => return Some(at),
            None => {}
        }
        None
    })?;
    let inside = &text[1..end];
    let (name, attributes) = inside.split_once([' ', '\n']).unwrap_or((inside, ""));
    Some((name, attributes, &text[end + 1..]))
}

/// Returns where text below these elements stands; nothing where it is not looked at.
fn kind(open: &[Element<'_>]) -> Option<Kind> {
    let is_unread = |element: &Element<'_>| {
        BLANKET_LISTS.contains(&element.get("id")) || element.has_class("hideme")
    };
    if open.iter().any(is_unread) {
        return None;
    }
    let has = |class: &str| open.iter().any(|element| element.has_class(class));
    let is_field = |element: &Element<'_>| element.has_class("structfield");
    let is_inside = |tag: &str| open.iter().any(|element| element.tag == tag);
    Some(if has("item-decl") || has("code-header") || open.iter().any(is_field) {
        Kind::Signature
    } else if has("docblock") && is_inside("code") && !is_inside("pre") {
        Kind::CommentCode
    } else {
        Kind::Other
    })
}

/// Whether an element is a link to something else than itself.
fn is_link(element: &Element<'_>) -> bool {
    element.tag == "a" && !element.get("href").is_empty() && !element.has_class("anchor")
}

/// Whether an anchor is that of a part of the page's item: `method.answer`, `variant.Udp`, or
/// `impl-From%3CNameError%3E-for-Error`.
fn is_item(id: &str) -> bool {
    id.starts_with("impl-")
        || id.split_once('.').is_some_and(|(kind, name)| !kind.contains('-') && !name.is_empty())
}
