//! The forms in which the API sends objects, and what reads lists and watches in each.

use crate::connection::Body;
use crate::decode::{self, Decoded, ListMetadata, Status, WatchEvent};
use crate::error::ConnectError;
use crate::protobuf;
use crate::split::{LineSplitter, ListSplitter, Piece};
use zonda_cluster::Kind;

/// The form of a response, as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, which every server has, and the only form of custom resources.
    Json,
    /// Protocol Buffers, which cost the server and the client less.
    Protobuf,
}

impl Format {
    /// The form that a media type stands for.
    pub fn of(media_type: &[u8]) -> Self {
        match media_type.starts_with(PROTOBUF.as_bytes()) {
            true => Self::Protobuf,
            false => Self::Json,
        }
    }
}

/// The media type of Protocol Buffers.
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// The media types that are asked for of objects of a kind, the best first.
pub fn accepted(kind: Kind) -> &'static str {
    match kind {
        Kind::ServiceImport => "application/json", // a custom resource
        _ => "application/vnd.kubernetes.protobuf,application/json",
    }
}

/// Reads why the API refuses a request out of the octets of its response.
pub fn refusal(format: Format, octets: &[u8]) -> String {
    let status = match format {
        Format::Json => serde_json::from_slice::<Status>(octets).ok(),
        Format::Protobuf => protobuf::decode::status(octets).ok(),
    };
    let text = status.map(|status| status.message);
    let text = text.unwrap_or_else(|| String::from_utf8_lossy(octets).into_owned());
    text.chars().take(300).collect()
}

/// Reads a page of a list of objects as it comes.
pub struct ListReader {
    kind: Kind,
    splitter: Splitter<ListSplitter, protobuf::split::ListSplitter>,
    /// The metadata of the page, if they have come.
    metadata: Option<ListMetadata>,
}

/// What cuts a stream into objects, in each form.
enum Splitter<J, P> {
    Json(J),
    Protobuf(P),
}

impl<J: Default, P: Default> Splitter<J, P> {
    /// What cuts the body of a response.
    fn of(body: &Body) -> Self {
        match body.format {
            Format::Json => Self::Json(J::default()),
            Format::Protobuf => Self::Protobuf(P::default()),
        }
    }
}

impl ListReader {
    /// Reads the body of a response with objects of a kind.
    pub fn new(kind: Kind, body: &Body) -> Self {
        Self { kind, splitter: Splitter::of(body), metadata: None }
    }

    /// Takes the next octets, and adds the objects that are whole to a list.
    ///
    /// # Errors
    /// When they are no part of such a list.
    pub fn take(&mut self, octets: &[u8], objects: &mut Vec<Decoded>) -> Result<(), ConnectError> {
        let (kind, metadata) = (self.kind, &mut self.metadata);
        match &mut self.splitter {
            Splitter::Json(splitter) => splitter.take(octets, |piece| {
                match piece {
                    Piece::Metadata(json) => *metadata = Some(decode::metadata(json)?),
                    Piece::Item(json) => objects.push(decode::any_object(kind, json)?.0),
                }
                Ok(())
            }),
            Splitter::Protobuf(splitter) => splitter.take(octets, |piece| {
                use protobuf::decode;
                match piece {
                    Piece::Metadata(octets) => *metadata = Some(decode::list_metadata(octets)?),
                    Piece::Item(octets) => objects.push(decode::any_object(kind, octets)?.0),
                }
                Ok(())
            }),
        }
    }

    /// Returns the metadata of the page; none if it has been cut off.
    pub fn end(self) -> Option<ListMetadata> {
        let is_at_end = match self.splitter {
            Splitter::Json(splitter) => splitter.is_at_end(),
            Splitter::Protobuf(splitter) => splitter.is_at_end(),
        };
        self.metadata.filter(|_| is_at_end)
    }
}

/// Reads the events of a watch as they come.
pub struct EventReader {
    kind: Kind,
    splitter: Splitter<LineSplitter, protobuf::split::EventSplitter>,
}

impl EventReader {
    /// Reads the body of a response with events of objects of a kind.
    pub fn new(kind: Kind, body: &Body) -> Self {
        Self { kind, splitter: Splitter::of(body) }
    }

    /// Takes the next octets, and adds the events that are whole to a list.
    ///
    /// # Errors
    /// When they are no part of a watch.
    pub fn take(
        &mut self,
        octets: &[u8],
        events: &mut Vec<WatchEvent>,
    ) -> Result<(), ConnectError> {
        let kind = self.kind;
        match &mut self.splitter {
            Splitter::Json(splitter) => splitter.take(octets, |line| {
                events.push(decode::event(kind, line)?);
                Ok(())
            }),
            Splitter::Protobuf(splitter) => splitter.take(octets, |event| {
                events.push(protobuf::decode::event(kind, event)?);
                Ok(())
            }),
        }
    }
}
