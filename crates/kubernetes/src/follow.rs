//! All objects of a kind, and then their changes, for as long as the receiver listens.
//!
//! # Invariants
//! - Between [`Event::Begin`] and [`Event::Synced`] all objects are sent, each at least once.
//! - A watch that ends is resumed at the version it had; only a version that is too old has all
//!   objects listed again.

use crate::connection::{Body, Get, get, get_next};
use crate::decode::{Decoded, WatchEvent};
use crate::error::ConnectError;
use crate::format::{EventReader, ListReader, accepted};
use crate::limits::Limits;
use crate::settings::{Place, Settings};
use std::fmt::Write;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;
use zonda_cluster::object::{Namespace, ObjectName};
use zonda_cluster::{Change, Kind};

/// Objects of a page of a list.
const PAGE: usize = 500;
/// How long a server is asked for pages that began to stream a list and never ended it.
const PAGES_MIN: Duration = Duration::from_secs(3600);
/// Refusals of a watch in a row after which all objects are listed again: the database behind the
/// API may have been restored, so that a version is not known there any more.
const REFUSALS_MAX: u32 = 3;
/// A watch that ends sooner as it should is a failure, or one would follow the other without pause.
const WATCH_MIN: Duration = Duration::from_secs(1);

/// What is sent of the objects of a kind.
#[derive(Debug)]
pub enum Event {
    /// All objects follow.
    Begin,
    /// A change of one object.
    Change(Box<Change>),
    /// An object that cannot be decoded, and why: the receiver keeps the version that it has.
    Undecodable(ObjectName, String),
    /// All objects have been sent; any that were not are gone.
    Synced,
    /// The objects cannot be followed at the moment, for this reason.
    Failed(String),
    /// The objects are followed, from this address.
    Connected(Option<IpAddr>),
}

impl From<Decoded> for Event {
    fn from(object: Decoded) -> Self {
        match object {
            Decoded::Change(change) => Self::Change(change),
            Decoded::Undecodable(id, why) => Self::Undecodable(id, why),
        }
    }
}

/// The objects that are followed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The kind of the objects.
    pub kind: Kind,
    /// A selector of labels; an empty one selects all.
    pub labels: String,
    /// The namespace of the objects, or the only one that is followed; empty for all.
    pub namespace: String,
}

impl Subject {
    /// The path of the objects in the API.
    fn path(&self) -> String {
        let (group, plural) = match self.kind {
            Kind::Service => ("/api/v1", "services"),
            Kind::EndpointSlice => ("/apis/discovery.k8s.io/v1", "endpointslices"),
            Kind::Namespace => return "/api/v1/namespaces".to_owned(),
            Kind::Pod => ("/api/v1", "pods"),
            Kind::ServiceImport => ("/apis/multicluster.x-k8s.io/v1alpha1", "serviceimports"),
        };
        match &*self.namespace {
            "" => format!("{group}/{plural}"),
            namespace => format!("{group}/namespaces/{}/{plural}", Escaped(namespace)),
        }
    }

    /// The path of a request with these parameters.
    fn request(&self, parameters: &[(&str, &str)]) -> String {
        let mut path = format!("{}?", self.path());
        let labels = ("labelSelector", &*self.labels);
        let field = match self.kind {
            Kind::Namespace if !self.namespace.is_empty() => {
                format!("metadata.name={}", self.namespace)
            }
            _ => String::new(),
        };
        let fields = ("fieldSelector", &*field);
        for (name, value) in parameters.iter().chain([&labels, &fields]) {
            if !value.is_empty() {
                let _ = write!(path, "{name}={}&", Escaped(value));
            }
        }
        path.pop();
        path
    }
}

/// A text as a value in a query of a URL.
struct Escaped<'t>(&'t str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for octet in self.0.bytes() {
            match octet {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                    f.write_char(octet.into())?;
                }
                _ => write!(f, "%{octet:02X}")?,
            }
        }
        Ok(())
    }
}

/// Follows objects until the receiver has ended.
pub async fn follow(place: Place, subject: Subject, sender: Sender<(Arc<Subject>, Event)>) {
    follow_within(place, subject, sender, Limits::default()).await;
}

/// Follows objects within these limits until the receiver has ended.
pub async fn follow_within(
    place: Place,
    subject: Subject,
    sender: Sender<(Arc<Subject>, Event)>,
    limits: Limits,
) {
    let version = String::new();
    let pages_until = None;
    let subject = Arc::new(subject);
    let has_listed = false;
    let mut follower =
        Follower { place, subject, sender, limits, version, has_listed, pages_until };
    let (mut pause, mut refusals, started) = (limits.pause_min, 0, Instant::now());
    loop {
        let began = Instant::now();
        let result = follower.follow().await;
        if began.elapsed() > limits.stable {
            pause = limits.pause_min;
        }
        let error = match result {
            Ok(()) if began.elapsed() > WATCH_MIN => continue, // a watch has ended as it should
            Ok(()) => ConnectError::Connection("a watch ended at once".to_owned()),
            Err(ConnectError::Ended) => return,
            Err(error) => error,
        };
        refusals = if is_refusal_of_version(&error) { refusals + 1 } else { 0 };
        if matches!(error, ConnectError::Expired) || refusals >= REFUSALS_MAX {
            follower.version.clear();
        }
        let sent = match follower.is_withheld_namespace(&error) {
            true => {
                follower.has_listed = true;
                follower.assume().await
            }
            false => follower.send(Event::Failed(error.to_string())).await,
        };
        if sent.is_err() {
            return;
        }
        // Servers that lost the API at the same moment do not come back at the same moment.
        let jitter = pause.mul_f64(f64::from(random_octet()) / 512.0);
        tokio::select! {
            () = tokio::time::sleep(pause + jitter) => {}
            () = follower.sender.closed() => return,
        }
        let is_first = !follower.has_listed && started.elapsed() < limits.first;
        let pause_max = pause_max(&error, is_first, &limits);
        pause = (pause * 2).min(pause_max);
    }
}

/// The longest pause after a failure; `is_first`: the API server has sent no list yet, and may
/// start itself. A kind of objects that it does not know (404) is none that it knows in a moment.
fn pause_max(error: &ConnectError, is_first: bool, limits: &Limits) -> Duration {
    match error {
        // An attempt costs the API server nothing while it is away.
        ConnectError::Unreachable(_) | ConnectError::Timeout("connection" | "response") => {
            limits.pause_away_max
        }
        ConnectError::Refused(404, _) => limits.pause_max,
        ConnectError::Refused(..) if is_first => limits.pause_first_max,
        _ => limits.pause_max,
    }
}

/// Returns a random octet; 0 if the system has none.
fn random_octet() -> u8 {
    let mut octet = [0];
    let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut octet);
    octet[0]
}

/// Follows the objects of a kind.
struct Follower {
    place: Place,
    subject: Arc<Subject>,
    sender: Sender<(Arc<Subject>, Event)>,
    limits: Limits,
    /// The version that the receiver has; empty if all objects must be listed.
    version: String,
    /// Whether the receiver has had all objects.
    has_listed: bool,
    /// When the API is asked to stream a list again that has not ended one.
    pages_until: Option<Instant>,
}

impl Follower {
    /// Sends an event to the receiver.
    async fn send(&self, event: Event) -> Result<(), ConnectError> {
        self.sender.send((Arc::clone(&self.subject), event)).await.map_err(|_| ConnectError::Ended)
    }

    /// Whether an error says that the account may not read the only namespace that is followed: a
    /// role in a namespace does not say that of the namespace itself.
    fn is_withheld_namespace(&self, error: &ConnectError) -> bool {
        self.subject.kind == Kind::Namespace
            && !self.subject.namespace.is_empty()
            && matches!(error, ConnectError::Refused(403, _))
    }

    /// Sends the only namespace that is followed as one that is there.
    async fn assume(&self) -> Result<(), ConnectError> {
        let name = self.subject.namespace.clone();
        let change = Change::Namespace(Namespace { name, opts_out_of_autopath: false });
        let events =
            [Event::Begin, Event::Change(change.into()), Event::Synced, Event::Connected(None)];
        for event in events {
            self.send(event).await?;
        }
        Ok(())
    }

    /// Lists all objects if need be, and follows their changes until the watch ends.
    async fn follow(&mut self) -> Result<(), ConnectError> {
        let settings = Settings::read(&self.place)?.with_credential().await?;
        let result = self.follow_by(&settings).await;
        if matches!(result, Err(ConnectError::Refused(401, _))) {
            settings.forget_credential().await;
        }
        result
    }

    /// Lists all objects if need be, and follows their changes, with these settings.
    async fn follow_by(&mut self, settings: &Settings) -> Result<(), ConnectError> {
        if self.version.is_empty() {
            if self.pages_until.is_none_or(|until| until < Instant::now()) {
                match self.stream_list(settings).await {
                    // The gate is off or etcd too old now; the next list is streamed perhaps.
                    Err(ConnectError::Refused(code, _)) if is_no_streaming(code) => {}
                    Err(error @ ConnectError::Timeout("end of a list")) => {
                        // A server that ignores what it does not know.
                        self.pages_until = Some(Instant::now() + PAGES_MIN);
                        return Err(error);
                    }
                    other => return other,
                }
            }
            self.list(settings).await?;
        }
        self.watch(settings).await
    }

    /// Returns a request for a path of the objects.
    fn request<'r>(&self, path: &'r str) -> Get<'r> {
        Get { path, accepted: accepted(self.subject.kind) }
    }

    /// Returns how long the API is asked to serve a watch, so that watches do not all end at once.
    fn watch_seconds(&self) -> u64 {
        let least = self.limits.watch.as_secs().max(1);
        least + least * u64::from(random_octet()) / 256
    }

    /// Has the API stream all objects and then their changes.
    async fn stream_list(&mut self, settings: &Settings) -> Result<(), ConnectError> {
        let seconds = self.watch_seconds();
        let path = self.subject.request(&[
            ("watch", "1"),
            ("sendInitialEvents", "true"),
            ("resourceVersionMatch", "NotOlderThan"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &seconds.to_string()),
        ]);
        let body = get(settings, self.request(&path), &self.limits).await?;
        self.send(Event::Begin).await?;
        self.take_events(body, seconds, true).await
    }

    /// Lists all objects, page by page.
    async fn list(&mut self, settings: &Settings) -> Result<(), ConnectError> {
        self.send(Event::Begin).await?;
        let (limit, mut continuation, mut connection) = (PAGE.to_string(), String::new(), None);
        loop {
            let parameters = [("limit", &*limit), ("continue", &*continuation)];
            let path = self.subject.request(&parameters);
            let mut body = match connection.take() {
                Some(kept) => get_next(kept, settings, self.request(&path), &self.limits).await?,
                None => get(settings, self.request(&path), &self.limits).await?,
            };
            let due = Instant::now() + self.limits.page;
            let (mut reader, mut objects) = (ListReader::new(self.subject.kind, &body), Vec::new());
            while let Some(octets) = body.next(within(self.limits.silence, due)).await? {
                reader.take(&octets, &mut objects)?;
                for object in objects.drain(..) {
                    self.send(object.into()).await?;
                }
            }
            let metadata = reader.end();
            let metadata = metadata.ok_or_else(|| {
                ConnectError::Connection("a list was cut off before its end".to_owned())
            })?;
            continuation = metadata.continuation;
            if continuation.is_empty() {
                self.version = metadata.resource_version;
                self.has_listed = true;
                return self.send(Event::Synced).await;
            }
            connection = Some(body.into_connection());
        }
    }

    /// Follows the changes since the version that the receiver has.
    async fn watch(&mut self, settings: &Settings) -> Result<(), ConnectError> {
        let seconds = self.watch_seconds();
        let path = self.subject.request(&[
            ("watch", "1"),
            ("resourceVersion", &self.version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &seconds.to_string()),
        ]);
        let body = get(settings, self.request(&path), &self.limits).await?;
        self.take_events(body, seconds, false).await
    }

    /// Takes the events of a watch until it ends, those of a streamed list first.
    async fn take_events(
        &mut self,
        mut body: Body,
        seconds: u64,
        mut is_list: bool,
    ) -> Result<(), ConnectError> {
        // The API ends a watch itself; one that goes on for longer is not served by it any more.
        let due = Instant::now() + Duration::from_secs(seconds) + self.limits.watch_excess;
        let (mut reader, mut events) = (EventReader::new(self.subject.kind, &body), Vec::new());
        // Timers and listeners are set once, not for each event.
        let sender = self.sender.clone();
        let mut closed = pin!(sender.closed());
        let silence_max = if is_list { self.limits.silence } else { Duration::MAX };
        let mut timer = pin!(tokio::time::sleep(within(silence_max, due)));
        if !is_list {
            body.pace();
            self.send(Event::Connected(body.own_address)).await?;
        }
        loop {
            let octets = tokio::select! {
                octets = body.octets() => octets?,
                () = &mut timer => {
                    let missing = if is_list { "end of a list" } else { "data" };
                    return Err(ConnectError::Timeout(missing));
                }
                () = &mut closed => return Err(ConnectError::Ended),
            };
            let Some(octets) = octets else { break };
            reader.take(&octets, &mut events)?;
            let was_list = is_list;
            for event in events.drain(..) {
                let version = match event {
                    WatchEvent::Error(410, _) => return Err(ConnectError::Expired),
                    WatchEvent::Error(code, text) => return Err(ConnectError::Refused(code, text)),
                    WatchEvent::Bookmark(version, is_end) => {
                        if is_list && is_end {
                            is_list = false;
                            self.version.clone_from(&version);
                            self.has_listed = true;
                            self.send(Event::Synced).await?;
                            self.send(Event::Connected(body.own_address)).await?;
                        }
                        version
                    }
                    WatchEvent::Object(object, version) => {
                        self.send(object.into()).await?;
                        version
                    }
                };
                if !is_list && !version.is_empty() {
                    self.version = version;
                }
            }
            if was_list {
                if !is_list {
                    body.pace();
                }
                let silence_max = if is_list { self.limits.silence } else { Duration::MAX };
                let limit = within(silence_max, due);
                timer.as_mut().reset(tokio::time::Instant::now() + limit);
            }
        }
        match is_list {
            true => Err(ConnectError::Connection("a streamed list was cut off".to_owned())),
            false => Ok(()),
        }
    }
}

/// Whether a refusal says that lists are not streamed: the parameters are invalid, or the database
/// behind the API cannot do it.
fn is_no_streaming(code: u16) -> bool {
    matches!(code, 400 | 422 | 500)
}

/// Whether a refusal may be one of the version at which a watch begins.
fn is_refusal_of_version(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Refused(400 | 500 | 504, _))
}

/// Returns how long something may take that is due at an instant.
fn within(limit: Duration, due: Instant) -> Duration {
    limit.min(due.saturating_duration_since(Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_that_refuses_the_first_list_is_asked_again_soon() {
        let limits = Limits::default();
        let (first, later, away) =
            (limits.pause_first_max, limits.pause_max, limits.pause_away_max);
        let refused = |code| ConnectError::Refused(code, String::new());
        for (error, pauses) in [
            (refused(401), [first, later]),
            (refused(403), [first, later]),
            (refused(429), [first, later]),
            (refused(503), [first, later]),
            (refused(404), [later, later]),
            (ConnectError::Connection(String::new()), [later, later]),
            (ConnectError::Timeout("end of a list"), [later, later]),
            (ConnectError::Timeout("connection"), [away, away]),
            (ConnectError::Unreachable(String::new()), [away, away]),
        ] {
            let found = [true, false].map(|is_first| pause_max(&error, is_first, &limits));
            assert_eq!(found, pauses, "{error:?}");
        }
    }

    #[test]
    fn a_selector_is_escaped_in_the_path_of_a_request() {
        let labels = "a=b,c in (d)".to_owned();
        let namespace = String::new();
        let subject = Subject { kind: Kind::Service, labels, namespace };
        let path = subject.request(&[("watch", "1"), ("resourceVersion", "")]);
        assert_eq!(path, "/api/v1/services?watch=1&labelSelector=a%3Db%2Cc%20in%20%28d%29");
    }

    #[test]
    fn the_objects_of_one_namespace_have_a_path_of_their_own() {
        let path = |kind| {
            let namespace = "shop".to_owned();
            Subject { kind, labels: String::new(), namespace }.request(&[("limit", "9")])
        };
        let slices = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices?limit=9";
        assert_eq!(path(Kind::EndpointSlice), slices);
        let own = "/api/v1/namespaces?limit=9&fieldSelector=metadata.name%3Dshop";
        assert_eq!(path(Kind::Namespace), own);
    }
}
