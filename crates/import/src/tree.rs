//! A configuration as a tree of maps, lists and scalars, each with its place.

use crate::error::{ImportError, Place, Problem};

/// A part of a configuration.
#[derive(Clone, Debug)]
pub struct Node {
    /// Place of the first character.
    pub place: Place,
    /// Content of the node.
    pub content: Content,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub enum Content {
    /// A scalar, and whether it is of YAML and was written without quotes.
    Scalar(String, bool),
    /// A list of nodes.
    List(Vec<Node>),
    /// Keys with their places and nodes, no key twice.
    Map(Vec<(String, Place, Node)>),
}

impl Node {
    /// Whether the node is empty or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(text, true)
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Returns the number of nodes in it, itself included.
    pub fn count(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(..) => 0,
            Content::List(nodes) => nodes.iter().map(Self::count).sum(),
            Content::Map(pairs) => pairs.iter().map(|(_, _, node)| node.count()).sum(),
        }
    }
}

/// Returns the error that something else should stand in place of a node.
pub fn expected(node: &Node, wanted: &str) -> ImportError {
    let found = match &node.content {
        _ if node.is_null() => "nothing".to_owned(),
        Content::Scalar(text, _) => quoted(text),
        Content::List(_) => "a list".to_owned(),
        Content::Map(_) => "a map".to_owned(),
    };
    fail(node.place.clone(), Problem::Expected { wanted: wanted.to_owned(), found })
}

/// Returns an error at a place.
pub fn fail(place: Place, problem: Problem) -> ImportError {
    ImportError { place: Some(place), problem }
}

/// Returns a text of the file for messages, cut short.
pub fn quoted(text: &str) -> String {
    /// Characters that are shown.
    const SHOWN: usize = 60;
    let shown: String = text.chars().take(SHOWN).collect();
    let rest = if shown.len() < text.len() { "…" } else { "" };
    format!("`{}{rest}`", shown.escape_debug())
}
