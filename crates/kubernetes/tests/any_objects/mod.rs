//! What must hold of any octets that an API server sends; shared with the fuzz target.

use zonda_cluster::Kind;
use zonda_kubernetes::protobuf::split::EventSplitter;
use zonda_kubernetes::split::{LineSplitter, ListSplitter, OBJECT_BYTES_MAX, Piece, TooLarge};
use zonda_kubernetes::{ConnectError, decode, protobuf};

/// Kinds of objects that are decoded.
const KINDS: [Kind; 5] =
    [Kind::Service, Kind::EndpointSlice, Kind::Namespace, Kind::Pod, Kind::ServiceImport];

/// Reads the octets as a list, as a watch and as objects, and checks what comes of it.
///
/// # Panics
/// When something does not hold.
pub fn check(octets: &[u8]) {
    let whole = octets.len().max(1);
    let pieces = pieces(octets, whole);
    let lines = lines(octets, whole);
    for step in [1, 2, 7] {
        assert_eq!(self::pieces(octets, step), pieces, "a list in parts of {step} octets");
        assert_eq!(self::lines(octets, step), lines, "a watch in parts of {step} octets");
    }
    for (is_item, piece) in &pieces {
        assert!(piece.first() == Some(&b'{') && piece.len() <= OBJECT_BYTES_MAX);
        if *is_item {
            decode_object(piece);
        } else {
            let _ = decode::metadata(piece);
        }
    }
    for line in &lines {
        for kind in KINDS {
            let _ = decode::event(kind, line);
        }
    }
    decode_object(octets);
    if let Ok(text) = std::str::from_utf8(octets) {
        let _ = decode::time(text);
    }
    check_items(octets, &pieces);
    check_protobuf(octets);
}

/// Reads the octets as a list, as a watch and as objects in Protocol Buffers.
fn check_protobuf(octets: &[u8]) {
    let (pieces, events) = messages(octets, octets.len().max(1));
    for step in [1, 2, 7] {
        let (in_parts, events_in_parts) = messages(octets, step);
        assert_eq!(in_parts, pieces, "a list in parts of {step} octets");
        assert_eq!(events_in_parts, events, "a watch in parts of {step} octets");
    }
    let objects = pieces.iter().map(|(_, piece)| &**piece).chain([octets]);
    for object in objects {
        assert!(object.len() <= OBJECT_BYTES_MAX.max(octets.len()));
        KINDS.iter().for_each(|kind| drop(protobuf::decode::any_object(*kind, object)));
        let _ = protobuf::decode::list_metadata(object);
        let _ = protobuf::decode::status(object);
    }
    for event in events.iter().map(|event| &**event).chain([octets]) {
        KINDS.iter().for_each(|kind| drop(protobuf::decode::event(*kind, event)));
    }
}

/// Whether a piece of a list is an item, and its octets.
type Part = (bool, Vec<u8>);

/// Cuts messages that come in parts of so many octets: a list into whether each piece is an item,
/// and its octets; and a watch into events.
fn messages(octets: &[u8], step: usize) -> (Vec<Part>, Vec<Vec<u8>>) {
    let (mut splitter, mut pieces) = (protobuf::split::ListSplitter::default(), Vec::new());
    for part in octets.chunks(step) {
        let taken = splitter.take(part, |piece| {
            pieces.push(match piece {
                Piece::Metadata(octets) => (false, octets.to_vec()),
                Piece::Item(octets) => (true, octets.to_vec()),
            });
            Ok::<(), ConnectError>(())
        });
        if taken.is_err() {
            break;
        }
    }
    let (mut splitter, mut events) = (EventSplitter::default(), Vec::new());
    for part in octets.chunks(step) {
        let taken = splitter.take(part, |event| {
            events.push(event.to_vec());
            Ok::<(), TooLarge>(())
        });
        if taken.is_err() {
            break;
        }
    }
    (pieces, events)
}

/// Decodes octets as an object of each kind.
fn decode_object(octets: &[u8]) {
    for kind in KINDS {
        let _ = decode::object(kind, octets);
    }
}

/// Checks that the items of a list in JSON are those that a parser of whole texts finds.
fn check_items(octets: &[u8], pieces: &[(bool, Vec<u8>)]) {
    // The API escapes no key; one that is spelt so is another for the splitter, and so is a
    // second one of the same name for the parser.
    let repeats = octets.windows(7).filter(|window| window == b"\"items\"").count() > 1;
    if octets.contains(&b'\\') || repeats {
        return;
    }
    let Ok(list) = serde_json::from_slice::<serde_json::Value>(octets) else { return };
    let Some(serde_json::Value::Array(items)) = list.get("items") else { return };
    let items: Vec<_> = items.iter().filter(|item| item.is_object()).cloned().collect();
    let cut: Vec<serde_json::Value> = pieces
        .iter()
        .filter(|(is_item, _)| *is_item)
        .map(|(_, piece)| serde_json::from_slice(piece).expect("a part of JSON is JSON"))
        .collect();
    assert_eq!(cut, items);
}

/// Cuts a list that comes in parts of so many octets; returns whether each piece is an item, and
/// its octets.
fn pieces(octets: &[u8], step: usize) -> Vec<(bool, Vec<u8>)> {
    let (mut splitter, mut pieces) = (ListSplitter::default(), Vec::new());
    for part in octets.chunks(step) {
        let taken = splitter.take(part, |piece| {
            pieces.push(match piece {
                Piece::Metadata(octets) => (false, octets.to_vec()),
                Piece::Item(octets) => (true, octets.to_vec()),
            });
            Ok::<(), TooLarge>(())
        });
        if taken.is_err() {
            break;
        }
    }
    pieces
}

/// Cuts a stream that comes in parts of so many octets into lines.
fn lines(octets: &[u8], step: usize) -> Vec<Vec<u8>> {
    let (mut splitter, mut lines) = (LineSplitter::default(), Vec::new());
    for part in octets.chunks(step) {
        let taken = splitter.take(part, |line| {
            lines.push(line.to_vec());
            Ok::<(), TooLarge>(())
        });
        if taken.is_err() {
            break;
        }
    }
    lines
}
