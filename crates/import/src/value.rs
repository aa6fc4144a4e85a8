//! Values of keys, read as what they should be.

use crate::error::{ImportError, Place, Problem};
use crate::tree::{Content, Node, expected, fail};
use std::str::FromStr;
use std::time::Duration;

/// A value, and the place of its key or of itself.
pub type PlacedValue<T> = (T, Place);

/// Returns the node of a key; none if it is not there or empty.
///
/// # Errors
/// When what should have keys has none.
pub fn get<'n>(node: &'n Node, key: &str) -> Result<Option<&'n Node>, ImportError> {
    match &node.content {
        _ if node.is_null() => Ok(None),
        Content::Map(pairs) => {
            let node = pairs.iter().find(|(known, ..)| known == key).map(|(_, _, node)| node);
            Ok(node.filter(|node| !node.is_null()))
        }
        _ => Err(expected(node, "keys")),
    }
}

/// Returns the node at a path of keys.
pub fn at<'n>(node: &'n Node, path: &[&str]) -> Result<Option<&'n Node>, ImportError> {
    let mut node = node;
    for key in path {
        match get(node, key)? {
            Some(inner) => node = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(node))
}

/// Returns the value of a key, read as a text.
pub fn text(node: &Node, key: &str) -> Result<Option<PlacedValue<String>>, ImportError> {
    let Some(node) = get(node, key)? else { return Ok(None) };
    Ok(Some((scalar(node, "text")?.to_owned(), node.place.clone())))
}

/// Returns the value of a key that must be there, read as a text.
pub fn required(node: &Node, key: &'static str) -> Result<PlacedValue<String>, ImportError> {
    match text(node, key)? {
        Some((text, place)) if !text.is_empty() => Ok((text, place)),
        _ => Err(fail(node.place.clone(), Problem::Missing(key))),
    }
}

/// Returns the value of a key, read as something that has a form in text.
pub fn parsed<T: FromStr>(
    node: &Node,
    key: &str,
    wanted: &str,
) -> Result<Option<PlacedValue<T>>, ImportError> {
    value(node, key, wanted, |text| text.parse().ok())
}

/// Returns the value of a key, read by a function.
pub fn value<T>(
    node: &Node,
    key: &str,
    wanted: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<PlacedValue<T>>, ImportError> {
    let Some(node) = get(node, key)? else { return Ok(None) };
    let value = read(scalar(node, wanted)?).ok_or_else(|| expected(node, wanted))?;
    Ok(Some((value, node.place.clone())))
}

/// Returns the value of a key, read as `true` or `false`.
pub fn boolean(node: &Node, key: &str) -> Result<Option<PlacedValue<bool>>, ImportError> {
    value(node, key, "`true` or `false`", |text| match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" => Some(true),
        "false" | "no" | "off" | "n" => Some(false),
        _ => None,
    })
}

/// Returns the value of a key, read as a duration.
pub fn duration(node: &Node, key: &str) -> Result<Option<PlacedValue<Duration>>, ImportError> {
    value(node, key, "a duration such as `30s`", read_duration)
}

/// Returns the nodes of a list, or the single node in place of one.
pub fn elements(node: &Node) -> &[Node] {
    match &node.content {
        Content::List(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}

/// Returns the nodes of a list; none of them if the key is not there.
pub fn list<'n>(node: &'n Node, key: &str) -> Result<&'n [Node], ImportError> {
    match get(node, key)? {
        None => Ok(&[]),
        Some(node) => match &node.content {
            Content::List(nodes) => Ok(nodes),
            _ => Err(expected(node, "a list")),
        },
    }
}

/// Returns the texts of a list with their places.
pub fn texts(node: &Node, key: &str) -> Result<Vec<PlacedValue<String>>, ImportError> {
    let text = |node: &Node| Ok((scalar(node, "text")?.to_owned(), node.place.clone()));
    list(node, key)?.iter().map(text).collect()
}

/// Returns the keys of a map with their places and nodes.
pub fn pairs(node: &Node) -> Result<&[(String, Place, Node)], ImportError> {
    match &node.content {
        Content::Map(pairs) => Ok(pairs),
        _ => Err(expected(node, "keys")),
    }
}

/// Returns the text of a scalar.
pub fn scalar<'n>(node: &'n Node, wanted: &str) -> Result<&'n str, ImportError> {
    match &node.content {
        Content::Scalar(text, _) => Ok(text),
        _ => Err(expected(node, wanted)),
    }
}

/// Reads a duration as Go writes it: numbers, each with its unit, such as `1m30s` or `1.5h`.
pub fn read_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut secs = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let units = [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("h", 3600.0)];
        let units = units.into_iter().chain([("m", 60.0), ("s", 1.0)]);
        let (behind, factor) = units
            .into_iter()
            .find_map(|(unit, factor)| Some((rest.strip_prefix(unit)?, factor)))?;
        rest = behind;
        secs += number * factor;
    }
    if text.is_empty() { None } else { Duration::try_from_secs_f64(secs).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        for (text, millis) in [
            ("30s", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("1.5h", Some(5_400_000)),
            ("500ms", Some(500)),
            ("168h", Some(604_800_000)),
            ("30", None),
            ("s", None),
            ("-5s", None),
            ("", None),
        ] {
            assert_eq!(read_duration(text).map(|it| it.as_millis()), millis, "{text}");
        }
    }
}
