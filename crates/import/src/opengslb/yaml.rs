//! A YAML document as a tree, each part of it with its place.
//!
//! Anchors, aliases and merge keys (`<<`) are resolved while the tree is built, so that its bounds
//! hold for what they unfold to.

use crate::error::{ImportError, Place, Problem};
use crate::tree::{Content, Node, expected, fail, quoted};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Lists and maps that may lie within each other.
const DEPTH_MAX: usize = 64;
/// Nodes of one document, with those that aliases unfold to.
const NODES_MAX: usize = 1 << 20;

/// Reads the first document of a text; none if it is empty.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn read(text: &str, file: &Arc<Path>) -> Result<Option<Node>, ImportError> {
    let mut builder = Builder { file, open: Vec::new(), anchors: HashMap::new(), count: 0 };
    let mut parser = Parser::new_from_str(text);
    let mut root = None;
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let marker = error.marker();
            let place = builder.place(marker.line(), marker.col());
            ImportError { place: Some(place), problem: Problem::NotYaml(error.info().to_owned()) }
        })?;
        match event {
            Event::StreamEnd | Event::DocumentEnd => break,
            event => root = builder.take(event, &span)?.or(root),
        }
    }
    Ok(root)
}

/// Builds the tree.
struct Builder<'f> {
    file: &'f Arc<Path>,
    /// Lists and maps that have begun, the innermost last, each with its anchor.
    open: Vec<(Open, Place, usize)>,
    /// Nodes by the number of their anchor.
    anchors: HashMap<usize, Node>,
    /// Nodes so far, with those of aliases.
    count: usize,
}

/// A list or a map that has begun.
enum Open {
    /// A list with its nodes so far.
    List(Vec<Node>),
    /// A map with its pairs so far, the key whose node comes next, and maps to be merged.
    Map(Vec<(String, Place, Node)>, Option<(String, Place)>, Vec<Node>),
}

impl Builder<'_> {
    /// Returns a place of this file; the parser counts columns from 0.
    fn place(&self, line: usize, column: usize) -> Place {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Place { file: Arc::clone(self.file), line: number(line).max(1), column: number(column + 1) }
    }

    /// Takes an event; returns the root, once it is whole.
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<Option<Node>, ImportError> {
        let place = self.place(span.start.line(), span.start.col());
        let (content, place, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                (Content::Scalar(text.into_owned(), style == ScalarStyle::Plain), place, anchor)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    let why = "an alias inside of its own anchor".to_owned();
                    return Err(fail(place, Problem::NotYaml(why)));
                };
                self.count += node.count();
                (node.content, place, 0)
            }
            Event::SequenceStart(anchor, _) => {
                return self.descend(Open::List(Vec::new()), place, anchor).map(|()| None);
            }
            Event::MappingStart(anchor, _) => {
                return self
                    .descend(Open::Map(Vec::new(), None, Vec::new()), place, anchor)
                    .map(|()| None);
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::List(nodes), place, anchor)) => (Content::List(nodes), place, anchor),
                Some((Open::Map(mut pairs, _, merged), place, anchor)) => {
                    merged.into_iter().try_for_each(|node| merge(&mut pairs, node))?;
                    (Content::Map(pairs), place, anchor)
                }
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        self.count += 1;
        if self.count > NODES_MAX {
            return Err(fail(place, Problem::TooMuch("nodes in a document", NODES_MAX)));
        }
        let node = Node { place, content };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        self.add(node)
    }

    /// Goes into a list or a map.
    fn descend(&mut self, open: Open, place: Place, anchor: usize) -> Result<(), ImportError> {
        if self.open.len() >= DEPTH_MAX {
            let problem = Problem::TooMuch("lists and maps within each other", DEPTH_MAX);
            return Err(fail(place, problem));
        }
        self.open.push((open, place, anchor));
        Ok(())
    }

    /// Adds a whole node to what is around it; returns it if that is nothing.
    fn add(&mut self, node: Node) -> Result<Option<Node>, ImportError> {
        match self.open.last_mut() {
            None => return Ok(Some(node)),
            Some((Open::List(nodes), ..)) => nodes.push(node),
            Some((Open::Map(pairs, next, merged), ..)) => match next.take() {
                None => match node.content {
                    Content::Scalar(text, _) => *next = Some((text, node.place)),
                    _ => return Err(expected(&node, "a key")),
                },
                Some((key, _)) if key == "<<" => merged.push(node),
                Some((key, place)) => {
                    if let Some((_, first, _)) = pairs.iter().find(|(known, ..)| *known == key) {
                        let problem = Problem::Twice(quoted(&key), first.clone());
                        return Err(fail(place, problem));
                    }
                    pairs.push((key, place, node));
                }
            },
        }
        Ok(None)
    }
}

/// Adds the pairs of a merged map, or of a list of them, whose keys are not there yet.
fn merge(pairs: &mut Vec<(String, Place, Node)>, node: Node) -> Result<(), ImportError> {
    match node.content {
        Content::Map(more) => {
            let is_new = |key: &String| !pairs.iter().any(|(known, ..)| known == key);
            let more: Vec<_> = more.into_iter().filter(|(key, ..)| is_new(key)).collect();
            pairs.extend(more);
            Ok(())
        }
        Content::List(nodes) => nodes.into_iter().try_for_each(|node| merge(pairs, node)),
        Content::Scalar(..) => Err(expected(&node, "a map")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(text: &str) -> Result<Option<Node>, ImportError> {
        read(text, &Path::new("/x.yaml").into())
    }

    /// A tree in one line.
    fn text(node: &Node) -> String {
        match &node.content {
            Content::Scalar(text, _) => text.clone(),
            Content::List(nodes) => {
                format!("[{}]", nodes.iter().map(text).collect::<Vec<_>>().join(" "))
            }
            Content::Map(pairs) => {
                let pair = |(key, _, node): &(String, Place, Node)| format!("{key}:{}", text(node));
                format!("{{{}}}", pairs.iter().map(pair).collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn aliases_and_merged_maps_stand_for_what_they_name() {
        let yaml = "base: &base { a: 1, b: [x] }\ncopy: *base\nmore:\n  <<: *base\n  a: 2\n";
        let expected = "{base:{a:1 b:[x]} copy:{a:1 b:[x]} more:{a:2 b:[x]}}";
        assert_eq!(text(&parse(yaml).unwrap().unwrap()), expected);
    }

    #[test]
    fn a_key_that_is_given_twice_is_told_with_both_places() {
        let error = parse("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!(error.to_string(), "/x.yaml:3:1: `a` is given already, at /x.yaml:1");
    }

    #[test]
    fn aliases_that_unfold_without_end_are_bounded() {
        let mut yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..10 {
            let before = format!("*a{}", level - 1);
            let list = vec![before; 10].join(", ");
            yaml.push_str(&format!("a{level}: &a{level} [{list}]\n"));
        }
        let error = parse(&yaml).unwrap_err().to_string();
        assert!(error.contains("nodes in a document: at most"), "{error}");
        let error = parse(&"[".repeat(100)).unwrap_err().to_string();
        assert!(error.contains("within each other: at most 64"), "{error}");
    }
}
