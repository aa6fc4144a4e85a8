//! The file of a cluster's names, from which they are answered after a start without the API.
//!
//! ```text
//! {"format":1,"zone":"cluster.local.","of":{…},"written":1795517915}
//! {"kind":"Namespace","metadata":{…}}      an object as the API has it, one a line
//! …
//! {"objects":158200}
//! ```
//!
//! # Invariants
//! - The file is replaced at once: whatever happens meanwhile, it is the former one or the next.
//! - A file that is cut off, or of another cluster, is of no use as a whole.

use super::cluster_state::ClusterState;
use super::store_feed::lock;
use crate::atomic_file;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use zonda_cluster::{Change, Cluster};
use zonda_config::KubernetesKeys;
use zonda_kubernetes::encode;
use zonda_wire::Name;

/// The version of the file's format.
const FORMAT: u64 = 1;
/// How long after a change the snapshot file is written at the latest, and how often at most.
const WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// Octets of the longest line: of the largest object that the API takes, and some more.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// Why a file cannot be used.
#[derive(Debug)]
pub enum FileError {
    /// The file cannot be read.
    Unreadable(io::Error),
    /// A line, by its number, is not what it should be.
    Malformed(u64, serde_json::Error),
    /// A line, by its number, is too long.
    LongLine(u64),
    /// The file is of another format, zone or cluster.
    Foreign,
    /// The file ends too soon.
    CutOff,
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "{error}"),
            Self::Malformed(line, error) => write!(f, "line {line}: {error}"),
            Self::LongLine(line) => write!(f, "line {line} is longer than {LINE_BYTES_MAX} octets"),
            Self::Foreign => f.write_str(
                "it is of another format, zone or cluster, or was made with other `labels`, \
                 `namespace-labels`, `pods`, `endpoints`, `endpoint-pod-names`, \
                 `multicluster`, `external` or `external-headless`",
            ),
            Self::CutOff => f.write_str("it is cut off"),
        }
    }
}

/// What the first line says of a file.
fn header(apex: &Name, keys: &KubernetesKeys) -> Value {
    let mut header = json!({
        "format": FORMAT,
        "zone": apex.to_string(),
        "of": {
            "kubeconfig": keys.kubeconfig,
            "context": keys.context,
            "endpoint": keys.endpoint,
            "labels": keys.labels,
            "namespace-labels": keys.namespace_labels,
            "pods": format!("{:?}", keys.pods),
            "endpoint-pod-names": keys.endpoint_pod_names,
            "multicluster": keys.multicluster,
            "external": keys.external,
            "external-headless": keys.external_headless,
        },
    });
    // Files of versions that had no such key are of clusters whose endpoints have names.
    if !keys.endpoints {
        header["of"]["endpoints"] = false.into();
    }
    header
}

/// What a file has: the names of a cluster, and what tells whose they are.
pub struct FileContent {
    /// The apex in lower case.
    pub apex: Name,
    /// What the objects were chosen by.
    pub keys: Arc<KubernetesKeys>,
    /// The names of the cluster.
    pub cluster: Cluster,
    /// The services that are aliases.
    pub aliases: BTreeMap<String, String>,
    /// The moment of the names, seconds since 1970.
    pub written: u64,
}

impl FileContent {
    /// Writes a file in place of the former one.
    ///
    /// # Errors
    /// When it cannot be written; the former one is there still.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        atomic_file::write_with(path, |file| {
            let mut line = |json: &Value| {
                serde_json::to_writer(&mut *file, json)?;
                file.write_all(b"\n")
            };
            let mut first = header(&self.apex, &self.keys);
            first["written"] = self.written.into();
            line(&first)?;
            let mut objects: u64 = 0;
            self.cluster.each_object(&self.aliases, |change| {
                objects += 1;
                encode::object(&change).map_or(Ok(()), |json| line(&json))
            })?;
            line(&json!({ "objects": objects }))
        })
    }
}

/// Reads a file: calls a function with each object. Returns the moment of the names, seconds since
/// 1970.
///
/// # Errors
/// Why the file is of no use; the objects before are not to be used then either.
pub fn read(
    path: &Path,
    (apex, keys): (&Name, &KubernetesKeys),
    mut call: impl FnMut(Change),
) -> Result<u64, FileError> {
    let mut file = BufReader::new(atomic_file::open_own(path)?);
    let (mut line, mut number) = (Vec::new(), 0);
    let mut next = |line: &mut Vec<u8>| -> Result<u64, FileError> {
        line.clear();
        number += 1;
        let octets = (&mut file).take(LINE_BYTES_MAX).read_until(b'\n', line)?;
        match line.last() {
            Some(b'\n') => Ok(number),
            _ if octets as u64 == LINE_BYTES_MAX => Err(FileError::LongLine(number)),
            _ => Err(FileError::CutOff),
        }
    };
    let at = next(&mut line)?;
    let malformed = |at| move |error| FileError::Malformed(at, error);
    let mut first: Value = serde_json::from_slice(&line).map_err(malformed(at))?;
    let fields = first.as_object_mut().ok_or(FileError::Foreign)?;
    let written = fields.remove("written").and_then(|it| it.as_u64()).ok_or(FileError::Foreign)?;
    if first != header(apex, keys) {
        return Err(FileError::Foreign);
    }
    let mut objects: u64 = 0;
    loop {
        let at = next(&mut line)?;
        if line.starts_with(b"{\"objects\":") {
            let last: Value = serde_json::from_slice(&line).map_err(malformed(at))?;
            return match last["objects"].as_u64() == Some(objects) {
                true => Ok(written),
                false => Err(FileError::CutOff),
            };
        }
        let change = encode::read_object(&line).map_err(malformed(at))?;
        objects += 1;
        change.into_iter().for_each(&mut call);
    }
}

/// Writes the snapshot file, unless another process keeps it, and logs failures. Returns whether
/// the file is written.
pub fn write(content: &FileContent, path: &Path, state: &ClusterState) -> bool {
    let is_foreign = lock(&state.is_file_foreign);
    if *is_foreign {
        return false;
    }
    let result = content.write(path);
    match &result {
        Ok(()) => state.written_at.store(content.written, Relaxed),
        Err(error) => {
            state.failed_writes.fetch_add(1, Relaxed);
            let (zone, path) = (&content.apex, path.display());
            tracing::error!(%zone, %path, %error, "cannot write a snapshot of a cluster");
        }
    }
    result.is_ok()
}

/// When the snapshot file is written, in a thread beside that of the feed.
#[derive(Default)]
pub struct SnapshotWriter {
    /// Whether the names have changed since the file was written.
    is_behind: Arc<AtomicBool>,
    /// When it was begun last to write the file.
    written: Option<Instant>,
    /// The write that is under way.
    task: Option<JoinHandle<()>>,
}

impl SnapshotWriter {
    /// Notes that names have changed.
    pub fn note_change(&mut self, has_file: bool) {
        self.is_behind.fetch_or(has_file, Relaxed);
    }

    /// Whether names have changed since the file was written.
    pub fn is_behind(&self) -> bool {
        self.is_behind.load(Relaxed)
    }

    /// Whether the file is to be written now.
    pub fn due(&self) -> bool {
        let is_free = self.task.as_ref().is_none_or(JoinHandle::is_finished);
        let is_time = self.written.is_none_or(|written| written.elapsed() >= WRITE_INTERVAL);
        self.is_behind() && is_free && is_time
    }

    /// Begins to write the file in another thread. If that fails, the file is still behind.
    pub fn write_beside(
        &mut self,
        content: FileContent,
        path: Option<&Path>,
        state: &Arc<ClusterState>,
    ) {
        self.is_behind.store(false, Relaxed);
        self.written = Some(Instant::now());
        let (path, state) = (path.map(Path::to_owned), Arc::clone(state));
        let is_behind = Arc::clone(&self.is_behind);
        self.task = Some(tokio::task::spawn_blocking(move || {
            let is_written = path.as_ref().is_none_or(|it| write(&content, it, &state));
            is_behind.fetch_or(!is_written, Relaxed);
        }));
    }

    /// Waits for the write that is under way.
    pub async fn wait(&mut self) {
        if let Some(task) = self.task.take() {
            let _ = task.await; // it has told of its failure itself
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use zonda_cluster::{Builder, Options, PodNames};
    use zonda_config::{Config, Flags};
    use zonda_zone::HashSeed;

    /// The objects of a small cluster as the API has them, one after the other.
    const OBJECTS: &str = r#"
{"kind":"Namespace","metadata":{"name":"shop"}}

{"kind":"Service","metadata":{"name":"web","namespace":"shop"},
 "spec":{"clusterIPs":["10.0.0.1","fd00::1"],"ports":[{"name":"http","port":80}]}}

{"kind":"Service","metadata":{"name":"db","namespace":"shop"},"spec":{"clusterIP":"None"}}

{"kind":"Service","metadata":{"name":"out","namespace":"shop"},
 "spec":{"type":"ExternalName","externalName":"example.com"}}

{"kind":"EndpointSlice","metadata":{"name":"db-a","namespace":"shop",
 "labels":{"kubernetes.io/service-name":"db"}},"addressType":"IPv4","endpoints":[
 {"addresses":["10.1.0.1"],"hostname":"one","zone":"a"},{"addresses":["10.1.0.2"]},
 {"addresses":["10.1.0.3"],"conditions":{"ready":false}}],
 "ports":[{"name":"sql","protocol":"UDP","port":5432}]}

{"kind":"Pod","metadata":{"name":"p","namespace":"shop"},
 "status":{"podIPs":[{"ip":"10.1.0.1"}]}}
"#;

    /// A builder without objects.
    fn builder() -> Builder {
        let options = Options { pods: PodNames::Verified, ..Options::default() };
        Builder::new(&"cluster.local".parse().unwrap(), HashSeed(7), options)
    }

    /// The keys of a configuration with names of pods.
    fn keys(toml: &str) -> Arc<KubernetesKeys> {
        own_keys(&format!("pods = \"verified\"\n{toml}"))
    }

    /// The keys of a configuration.
    pub(in super::super) fn own_keys(toml: &str) -> Arc<KubernetesKeys> {
        let toml =
            format!("version = 1\n[[zone]]\nname = \"cluster.local\"\n[zone.kubernetes]\n{toml}");
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("zonda-cluster-{}-{number}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, toml).unwrap();
        let loaded = Config::load(Some(&path), [], &Flags::default()).unwrap();
        std::fs::remove_file(path).unwrap();
        Arc::clone(loaded.config.clusters().next().unwrap().1)
    }

    /// What a builder has, as the text of its objects.
    fn content(mut builder: Builder, keys: &Arc<KubernetesKeys>) -> (FileContent, Vec<String>) {
        let aliases = builder.aliases().clone();
        let cluster = builder.snapshot();
        let mut lines = Vec::new();
        let objects: Result<(), ()> = cluster.each_object(&aliases, |change| {
            lines.extend(encode::object(&change).map(|json| json.to_string()));
            Ok(())
        });
        objects.unwrap();
        lines.sort();
        let apex = "cluster.local".parse().unwrap();
        (FileContent { apex, keys: Arc::clone(keys), cluster, aliases, written: 5 }, lines)
    }

    #[test]
    fn names_are_the_same_after_they_were_written_and_read() {
        let directory = std::env::temp_dir().join(format!("zonda-cluster-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (path, keys) = (directory.join("names"), keys(""));
        let mut first = builder();
        for object in OBJECTS.split("\n\n") {
            first.apply(encode::read_object(object.as_bytes()).unwrap().unwrap());
        }
        let (before, lines) = content(first, &keys);
        assert_eq!(lines.len(), 6, "{lines:#?}");
        before.write(&path).unwrap();
        let mut second = builder();
        let written = read(&path, (&before.apex, &keys), |change| second.apply(change)).unwrap();
        assert_eq!((written, content(second, &keys).1), (5, lines));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("10.1.0.3"), "an endpoint that is not ready has no name:\n{text}");

        // Each line that is missing, and each octet at which the file ends, is noticed.
        let reread = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path, (&before.apex, &keys), drop)
        };
        for line in 1..=text.lines().count() {
            let lines = text.lines().enumerate().filter(|(number, _)| number + 1 != line);
            let text: String = lines.map(|(_, line)| format!("{line}\n")).collect();
            assert!(reread(&text).is_err(), "without line {line}:\n{text}");
        }
        for end in 0..text.len() {
            assert!(reread(&text[..end]).is_err(), "cut off at octet {end}");
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_that_could_not_be_written_is_still_behind() {
        let name = format!("zonda-unwritten-cluster-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let (keys, path) = (keys(""), directory.join("names"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (mut writer, state) = (SnapshotWriter::default(), Arc::new(ClusterState::new([])));
        let mut write = || {
            writer.note_change(true);
            let content = content(builder(), &keys).0;
            runtime.block_on(async {
                writer.write_beside(content, Some(&path), &state);
                writer.wait().await;
            });
            writer.is_behind()
        };
        assert!(write(), "there is no directory for it");
        std::fs::create_dir_all(&directory).unwrap();
        assert!(!write());
        assert_eq!((state.failed_writes.load(Relaxed), state.written_at.load(Relaxed)), (1, 5));
        *state.is_file_foreign.lock().unwrap() = true;
        assert!(write(), "a successor writes it");
        assert_eq!(state.failed_writes.load(Relaxed), 1);
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_file_of_another_cluster_is_refused() {
        let name = format!("zonda-other-cluster-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let write = |keys: &Arc<KubernetesKeys>| {
            content(builder(), keys).0.write(&path).unwrap();
        };
        write(&keys(""));
        let read = |apex: &str, keys: &KubernetesKeys| {
            read(&path, (&apex.parse().unwrap(), keys), drop).map_err(|error| error.to_string())
        };
        assert_eq!(read("cluster.local", &keys("")), Ok(5));
        assert!(read("example.org", &keys("")).unwrap_err().contains("another"));
        assert!(read("cluster.local", &keys("labels = \"a=b\"")).is_err());
        assert!(read("cluster.local", &keys("context = \"b\"\nkubeconfig = \"c\"")).is_err());
        write(&own_keys(""));
        assert_eq!(read("cluster.local", &own_keys("")), Ok(5));
        assert!(read("cluster.local", &own_keys("multicluster = true")).is_err());
        assert!(read("cluster.local", &own_keys("external = true")).is_err());
        std::fs::remove_file(path).unwrap();
    }
}
