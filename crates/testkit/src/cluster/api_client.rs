//! A client of the Kubernetes API: writes objects in JSON over several connections.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use serde_json::{Value, json};

use crate::cluster::http::Connection;

/// Connections over which many objects are written at the same time.
const CONNECTIONS: usize = 16;
/// Idle connections that are kept for the next request.
const IDLE_MAX: usize = CONNECTIONS;
/// How long a new kind of objects may take until it is served.
const DEFINITION_LIMIT: Duration = Duration::from_secs(30);

/// Merges an object with the one that is there (rfc7396).
const MERGE: &str = "application/merge-patch+json";
/// Makes an object be what is sent, wherever it was before; JSON is YAML.
const APPLY: &str = "application/apply-patch+yaml";

/// Kinds whose plural is not the kind in lower case with an `s`.
const PLURALS: &[(&str, &str)] = &[("Ingress", "ingresses"), ("NetworkPolicy", "networkpolicies")];
/// Kinds that belong to no namespace.
const WITHOUT_NAMESPACE: &[&str] = &[
    "Namespace",
    "Node",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "ServiceCIDR",
];
/// What the names of a cluster come from: paths of whole lists.
const SOURCES: &[&str] = &[
    "/api/v1/namespaces",
    "/api/v1/services",
    "/api/v1/pods",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/multicluster.x-k8s.io/v1alpha1/serviceimports",
];

/// What the API server answered.
#[derive(Clone, Debug)]
pub struct ApiReply {
    /// Status code of HTTP.
    pub status: u16,
    /// Body of the response: an object, or the events of a watch, a line each.
    pub body: String,
}

impl ApiReply {
    /// Returns the body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|error| panic!("{error} in the response: {}", self.body))
    }
}

/// A client with the rights of an administrator. Clones share idle connections.
#[derive(Clone)]
pub struct ApiClient {
    server: SocketAddr,
    token: String,
    tls: Arc<ClientConfig>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

impl ApiClient {
    /// Makes a client of the server at this address.
    pub(super) fn new(server: SocketAddr, token: &str, tls: Arc<ClientConfig>) -> Self {
        Self { server, token: token.to_owned(), tls, idle: Arc::default() }
    }

    /// Forgets idle connections, which a stopped server has closed.
    pub(super) fn disconnect(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Sends a request; the body is of this content type.
    ///
    /// # Errors
    /// When the server is away or hangs up.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        content: Option<(&str, &Value)>,
    ) -> io::Result<ApiReply> {
        let (content_type, body) = match content {
            Some((content_type, value)) => (content_type, value.to_string()),
            None => ("application/json", String::new()),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: \
             application/json\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            self.server,
            self.token,
            body.len()
        );
        let taken = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match taken {
            Some(connection) => connection,
            None => Connection::open(self.server, &self.tls)?,
        };
        let (status, body) = connection.exchange((head + &body).as_bytes())?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        Ok(ApiReply { status, body })
    }

    /// Gets what is at a path, whatever the status.
    ///
    /// # Panics
    /// When the server is away.
    pub fn get(&self, path: &str) -> ApiReply {
        self.send("GET", path, None).unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    /// Sends an object and returns what the server made of it.
    fn write(&self, method: &str, path: &str, content: Option<(&str, &Value)>) -> Value {
        let reply = self.send(method, path, content);
        let reply = reply.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let (status, body) = (reply.status, &reply.body);
        assert!((200..300).contains(&status), "{method} {path}: {status} {body}");
        reply.json()
    }

    /// Creates an object and returns it with what the server added, such as its addresses.
    ///
    /// # Panics
    /// When the server is away or refuses it.
    pub fn create(&self, object: &Value) -> Value {
        self.write("POST", &collection(object), Some(("application/json", object)))
    }

    /// Creates many objects over several connections; returns them in the same order.
    ///
    /// # Panics
    /// When the server is away or refuses one.
    pub fn create_all(&self, objects: &[Value]) -> Vec<Value> {
        self.for_all(objects, |object| self.create(object))
    }

    /// Does something to many objects over several connections; returns what came of each.
    ///
    /// # Panics
    /// When it panics for one of them.
    pub fn for_all<T: Send>(
        &self,
        objects: &[Value],
        action: impl Fn(&Value) -> T + Sync,
    ) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let number = next.fetch_add(1, Ordering::Relaxed)
                && let Some(object) = objects.get(number)
            {
                done.push((number, action(object)));
            }
            done
        };
        let mut done: Vec<(usize, T)> = thread::scope(|scope| {
            let workers: Vec<_> = (0..CONNECTIONS).map(|_| scope.spawn(work)).collect();
            let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
            joined
                .flat_map(|done| done.unwrap_or_else(|why| std::panic::resume_unwind(why)))
                .collect()
        });
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, value)| value).collect()
    }

    /// Creates an object or makes the one that is there be like it in what it says.
    ///
    /// # Panics
    /// When the server is away or refuses it.
    pub fn apply(&self, object: &Value) -> Value {
        let path = format!("{}?fieldManager=zonda-test&force=true", item(object));
        self.write("PATCH", &path, Some((APPLY, object)))
    }

    /// Puts an object in the place of the one with its name.
    ///
    /// # Panics
    /// When the server is away or refuses it.
    pub fn replace(&self, object: &Value) -> Value {
        self.write("PUT", &item(object), Some(("application/json", object)))
    }

    /// Merges a patch into an object, of which the kind and the name are looked at.
    ///
    /// # Panics
    /// When the server is away or refuses it.
    pub fn patch(&self, object: &Value, patch: &Value) -> Value {
        self.write("PATCH", &item(object), Some((MERGE, patch)))
    }

    /// Merges a patch into an object's status, as the kubelet does to a pod's.
    ///
    /// # Panics
    /// When the server is away or refuses it.
    pub fn patch_status(&self, object: &Value, status: &Value) -> Value {
        let path = format!("{}/status", item(object));
        self.write("PATCH", &path, Some((MERGE, &json!({ "status": status }))))
    }

    /// Deletes an object, of which the kind and the name are looked at. What is in a namespace has
    /// to be deleted before it: there is no controller that would.
    ///
    /// # Panics
    /// When the server is away or does not have it.
    pub fn delete(&self, object: &Value) {
        let path = item(object);
        let left = self.write("DELETE", &path, None);
        if object["kind"] == "Namespace" {
            let mut empty = left;
            empty["spec"]["finalizers"] = json!([]);
            self.write("PUT", &format!("{path}/finalize"), Some(("application/json", &empty)));
        }
    }

    /// Creates a definition of objects and waits until the server serves them.
    ///
    /// # Panics
    /// When it does not.
    pub fn define(&self, definition: &Value) {
        self.create(definition);
        let spec = &definition["spec"];
        let [group, version] = [text(&spec["group"]), text(&spec["versions"][0]["name"])];
        let path = format!("/apis/{group}/{version}/{}", text(&spec["names"]["plural"]));
        let limit = Instant::now() + DEFINITION_LIMIT;
        while self.get(&path).status != 200 {
            assert!(Instant::now() < limit, "{path} is not served");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the objects of a list, each with its kind; none if there is no such list.
    ///
    /// # Panics
    /// When the server is away or refuses to list them.
    pub fn list(&self, path: &str) -> Vec<Value> {
        let limit = Instant::now() + DEFINITION_LIMIT;
        let mut reply = self.get(path);
        // After a start, the server has to read what it has of a defined kind.
        while reply.status == 429 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(100));
            reply = self.get(path);
        }
        if reply.status == 404 {
            return Vec::new();
        }
        assert_eq!(reply.status, 200, "GET {path}: {}", reply.body);
        let mut list = reply.json();
        let kind = text(&list["kind"]);
        let kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
        let version = list["apiVersion"].take();
        let Value::Array(mut items) = list["items"].take() else { return Vec::new() };
        for item in &mut items {
            item["kind"] = json!(kind);
            item["apiVersion"] = version.clone();
        }
        items
    }

    /// Returns every object that names of a cluster come from.
    ///
    /// # Panics
    /// When the server is away.
    pub fn name_sources(&self) -> Vec<Value> {
        SOURCES.iter().flat_map(|path| self.list(path)).collect()
    }

    /// Returns the version of a list, from which it can be watched.
    ///
    /// # Panics
    /// When the server is away.
    pub fn resource_version(&self, path: &str) -> String {
        text(&self.get(&format!("{path}?limit=1")).json()["metadata"]["resourceVersion"]).to_owned()
    }

    /// Watches a list from a version for this long, or until the server ends the watch.
    ///
    /// # Panics
    /// When the server is away.
    pub fn watch(&self, path: &str, version: &str, seconds: u32) -> ApiReply {
        self.get(&format!("{path}?watch=true&resourceVersion={version}&timeoutSeconds={seconds}"))
    }
}

/// Returns a string of an object; empty if it is none.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the path of an object's kind in its namespace.
fn collection(object: &Value) -> String {
    let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let plural = PLURALS.iter().find(|(name, _)| *name == kind);
    let plural =
        plural.map_or_else(|| format!("{}s", kind.to_lowercase()), |(_, name)| (*name).to_owned());
    if WITHOUT_NAMESPACE.contains(&kind) {
        return format!("{root}/{version}/{plural}");
    }
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    format!("{root}/{version}/namespaces/{namespace}/{plural}")
}

/// Returns the path of an object.
fn item(object: &Value) -> String {
    format!("{}/{}", collection(object), text(&object["metadata"]["name"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_the_path_of_its_group_kind_and_namespace() {
        let service = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "shop"}});
        assert_eq!(item(&service), "/api/v1/namespaces/shop/services/web");
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        assert_eq!(item(&space), "/api/v1/namespaces/shop");
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "web-1"}});
        let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1";
        assert_eq!(item(&slice), path);
    }
}
