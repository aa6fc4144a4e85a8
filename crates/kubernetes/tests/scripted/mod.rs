//! An API server that does what a script says, on 127.0.0.1.

// Each test uses a part of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use zonda_cluster::{Change, Kind};
use zonda_kubernetes::{Event, Limits, Place, Subject, follow_within};

/// How long a test waits for what is to come.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Times that are short enough for tests.
pub const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    head: Duration::from_millis(400),
    silence: Duration::from_millis(400),
    page: Duration::from_millis(1500),
    watch: Duration::from_secs(1),
    watch_excess: Duration::from_secs(1),
    pause_min: Duration::from_millis(20),
    pause_max: Duration::from_millis(200),
    pause_away_max: Duration::from_millis(200),
    pause_first_max: Duration::from_millis(200),
    first: Duration::from_secs(60),
    stable: Duration::from_secs(60),
};

/// Starts a server, and follows namespaces of it. The script gets the number of the connection, its
/// request's path, and the stream, which it closes by returning.
///
/// # Panics
/// When there is no port.
pub fn follow_script(
    script: impl Fn(usize, &str, &mut TcpStream) + Send + Sync + 'static,
) -> Followed {
    let script = move |number, head: &str, stream: &mut TcpStream| {
        script(number, path_of(head), stream);
    };
    follow_place(script, |url| Place::Endpoint { url: url.to_owned(), ca: None, client: None })
}

/// Starts a server whose script gets the head of the request, and follows namespaces of the place
/// that has its URL.
///
/// # Panics
/// When there is no port.
pub fn follow_place(
    script: impl Fn(usize, &str, &mut TcpStream) + Send + Sync + 'static,
    place: impl Fn(&str) -> Place,
) -> Followed {
    follow_of("", script, place)
}

/// Starts a server whose script gets the head of the request, and follows a namespace, or all if
/// its name is empty, of the place that has its URL.
///
/// # Panics
/// When there is no port.
pub fn follow_of(
    namespace: &str,
    script: impl Fn(usize, &str, &mut TcpStream) + Send + Sync + 'static,
    place: impl Fn(&str) -> Place,
) -> Followed {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (script, paths) = (Arc::new(script), Arc::<Mutex<Vec<String>>>::default());
    let seen = Arc::clone(&paths);
    // Ends with the process of the test.
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (Ok(mut stream), script, seen) = (stream, Arc::clone(&script), Arc::clone(&seen))
            else {
                return;
            };
            std::thread::spawn(move || {
                let Some(head) = request_head(&mut stream) else { return };
                seen.lock().unwrap().push(path_of(&head).to_owned());
                script(number, &head, &mut stream);
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (sender, events) = mpsc::channel(4);
    let place = place(&url);
    let subject =
        Subject { kind: Kind::Namespace, labels: String::new(), namespace: namespace.to_owned() };
    runtime.spawn(follow_within(place, subject, sender, LIMITS));
    Followed { runtime, events, paths }
}

/// Returns the path of a request with this head.
fn path_of(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

/// Reads the head of a request.
pub fn request_head(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut octet) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut octet).ok()?;
        head.push(octet[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// What follows a script.
pub struct Followed {
    runtime: tokio::runtime::Runtime,
    events: mpsc::Receiver<(Arc<Subject>, Event)>,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Followed {
    /// Returns the next event as text: `begin`, `+name`, `-name`, `synced`, `connected`,
    /// `failed: ` and the reason, or `undecodable NAME: ` and the reason.
    ///
    /// # Panics
    /// When none comes.
    pub fn next(&mut self) -> String {
        let event = self.runtime.block_on(async { timeout(WAIT_MAX, self.events.recv()).await });
        match event.expect("an event comes in time").expect("objects are followed").1 {
            Event::Begin => "begin".to_owned(),
            Event::Synced => "synced".to_owned(),
            Event::Connected(_) => "connected".to_owned(),
            Event::Undecodable(id, why) => format!("undecodable {}: {why}", id.name),
            Event::Failed(error) => format!("failed: {error}"),
            Event::Change(change) => match *change {
                Change::Namespace(namespace) => format!("+{}", namespace.name),
                Change::Gone(_, id) => format!("-{}", id.name),
                other => panic!("{other:?} is no change of a namespace"),
            },
        }
    }

    /// Takes events, which must be these.
    ///
    /// # Panics
    /// When other events come.
    pub fn expect(&mut self, events: &[&str]) {
        for event in events {
            assert_eq!(self.next(), *event, "requests so far: {:#?}", self.paths());
        }
    }

    /// Takes an event, which must be a failure whose reason has this text.
    ///
    /// # Panics
    /// When another comes.
    pub fn expect_failure(&mut self, text: &str) {
        let event = self.next();
        assert!(event.starts_with("failed: ") && event.contains(text), "{event}, not {text}");
    }

    /// Takes an event, which must be that an object of this name cannot be decoded.
    ///
    /// # Panics
    /// When another comes.
    pub fn expect_undecodable(&mut self, name: &str) {
        let event = self.next();
        assert!(event.starts_with(&format!("undecodable {name}: ")), "{event}, not {name}");
    }

    /// Returns the paths of all requests so far.
    ///
    /// # Panics
    /// When the server has panicked.
    pub fn paths(&self) -> Vec<String> {
        self.paths.lock().unwrap().clone()
    }
}

/// Whether a request asks for a streamed list.
pub fn is_stream(path: &str) -> bool {
    path.contains("sendInitialEvents")
}

/// Whether a request asks for a watch.
pub fn is_watch(path: &str) -> bool {
    path.contains("watch=1")
}

/// Writes a response that ends with the connection.
pub fn write(stream: &mut TcpStream, status: &str, body: &str) {
    // The client may have gone.
    let _ = write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n\r\n{body}");
}

/// Writes a response in Protocol Buffers that ends with the connection.
pub fn write_octets(stream: &mut TcpStream, status: &str, body: &[u8]) {
    let kind = "Content-Type: application/vnd.kubernetes.protobuf;stream=watch";
    // The client may have gone.
    let _ = write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n{kind}\r\n\r\n");
    let _ = stream.write_all(body);
}

/// Writes a response after which the connection can carry another request.
#[allow(dead_code, reason = "not every test file keeps connections")]
pub fn write_and_keep(stream: &mut TcpStream, body: &str) {
    // The client may have gone.
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
}

/// Keeps a connection open for longer than any limit of the tests.
pub fn hang() {
    std::thread::sleep(Duration::from_secs(30));
}

/// The line of an event of a watch.
pub fn line(kind: &str, name: &str, version: &str) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{{\"name\":\"{name}\",\
         \"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}

/// The line of the bookmark behind a streamed list.
pub fn end_of_list(version: &str) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{{\"resourceVersion\":\"{version}\",\
         \"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}}}}}\n"
    )
}

/// The body of a page of a list.
pub fn page(version: &str, continuation: &str, names: &[&str]) -> String {
    let items: Vec<String> =
        names.iter().map(|name| format!("{{\"metadata\":{{\"name\":\"{name}\"}}}}")).collect();
    format!(
        "{{\"kind\":\"NamespaceList\",\"metadata\":{{\"resourceVersion\":\"{version}\",\
         \"continue\":\"{continuation}\"}},\"items\":[{}]}}",
        items.join(",")
    )
}
