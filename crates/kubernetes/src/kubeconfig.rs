//! The file by which `kubectl` finds a cluster.

use crate::base64::from_base64;
use crate::error::ConnectError;
use crate::exec::{ClusterInfo, Plugin};
use crate::settings::{Credential, Settings, Trust, read as read_file};
use saphyr_parser::{Event, Parser};
use std::path::{Path, PathBuf};

/// Octets of the largest file that is read.
const FILE_BYTES_MAX: usize = 4 << 20;
/// Lists and maps that may lie within each other.
const DEPTH_MAX: usize = 32;

/// A part of the file.
#[derive(Debug, PartialEq)]
enum Node {
    /// A scalar as text.
    Text(String),
    /// A list of nodes.
    List(Vec<Node>),
    /// Keys and their nodes.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The node of a key.
    fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Self::Map(pairs) => pairs.iter().find(|(own, _)| own == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The text of a key, if it has any.
    fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The elements of the list of a key; none if there is no such list.
    fn list(&self, key: &str) -> &[Node] {
        match self.get(key) {
            Some(Self::List(nodes)) => nodes,
            _ => &[],
        }
    }

    /// What a list of named elements has for a name: the node of a key of the element.
    fn named(&self, list: &str, name: &str, key: &str) -> Option<&Node> {
        match self.get(list)? {
            Self::List(nodes) => {
                nodes.iter().find(|node| node.text("name") == Some(name))?.get(key)
            }
            _ => None,
        }
    }
}

/// Reads the settings of a context, or of the current one.
///
/// # Errors
/// When the file cannot be read, or lacks what is needed.
pub fn read(file: &Path, context: Option<&str>) -> Result<Settings, ConnectError> {
    let wrong = |what: String| ConnectError::Kubeconfig(file.to_owned(), what);
    let octets = read_file(file)?;
    if octets.len() > FILE_BYTES_MAX {
        return Err(wrong(format!("the file has more than {FILE_BYTES_MAX} octets")));
    }
    let root = parse(&String::from_utf8_lossy(&octets)).map_err(&wrong)?;
    let context = context.or_else(|| root.text("current-context"));
    let context = context
        .ok_or_else(|| wrong("`current-context` is missing: name a `context`".to_owned()))?;
    let missing = |what: &str, name: &str| wrong(format!("no {what} is called `{name}`"));
    let names =
        root.named("contexts", context, "context").ok_or_else(|| missing("context", context))?;
    let cluster = names.text("cluster").unwrap_or_default();
    let cluster =
        root.named("clusters", cluster, "cluster").ok_or_else(|| missing("cluster", cluster))?;
    let url = cluster.text("server").ok_or_else(|| wrong("the cluster has no `server`".into()))?;
    let none = Node::Map(Vec::new());
    let user = match names.text("user") {
        Some(user) => root.named("users", user, "user").ok_or_else(|| missing("user", user))?,
        None => &none,
    };
    refuse(cluster, "cluster", CLUSTER_REFUSED).map_err(&wrong)?;
    refuse(user, "user", USER_REFUSED).map_err(&wrong)?;
    let files = Files { file };
    let certificate = files.octets(user, "client-certificate")?;
    let client = match (certificate, files.octets(user, "client-key")?) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(wrong("a client certificate needs its key, and a key its one".into())),
    };
    let trust = Trust {
        ca: files.octets(cluster, "certificate-authority")?,
        is_unchecked: cluster.text("insecure-skip-tls-verify") == Some("true"),
        name: cluster.text("tls-server-name").map(str::to_owned),
        client,
    };
    let credential = match (user.text("token"), user.text("tokenFile"), user.get("exec")) {
        (_, Some(path), _) => Credential::TokenFile(files.path(path)),
        (Some(token), None, _) => Credential::Token(token.to_owned()),
        (None, None, Some(node)) => {
            let plugin = plugin(node, &files, url, &trust).map_err(wrong)?;
            Credential::Plugin(Box::new((plugin, trust.clone())))
        }
        (None, None, None) => Credential::None,
    };
    Settings::of_url(url, trust, credential)
}

/// Keys of a cluster that are refused, as to ignore them would connect elsewhere.
const CLUSTER_REFUSED: &[&str] = &["proxy-url"];
/// Keys of a user that are refused, as to ignore them would be to come as another user.
const USER_REFUSED: &[&str] =
    &["auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra"];

/// Refuses keys that are not supported, of a cluster or a user.
fn refuse(node: &Node, whose: &str, keys: &[&str]) -> Result<(), String> {
    match keys.iter().find(|key| node.get(key).is_some()) {
        Some(key) => Err(format!(
            "the {whose} has a `{key}`, which is not supported: use a `server` that is reached \
             directly, and a token, a token file, a client certificate or `exec`"
        )),
        None => Ok(()),
    }
}

/// Versions of the interface of programs that print credentials.
const PLUGIN_VERSIONS: &[&str] =
    &["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// Reads which program prints the credentials.
fn plugin(node: &Node, files: &Files<'_>, url: &str, trust: &Trust) -> Result<Plugin, String> {
    let api_version = node.text("apiVersion").unwrap_or_default();
    if !PLUGIN_VERSIONS.contains(&api_version) {
        return Err(format!(
            "`exec` has the `apiVersion` {api_version:?}: use {PLUGIN_VERSIONS:?}"
        ));
    }
    if node.text("interactiveMode") == Some("Always") {
        return Err("`exec` has the `interactiveMode` `Always`, but there is no terminal".into());
    }
    let command = node.text("command").ok_or("`exec` has no `command`")?;
    // As kubectl does: a path is relative to the file, a bare name is looked for.
    let command = if command.contains('/') { files.path(command) } else { command.into() };
    let arguments = node.list("args").iter().map(|argument| match argument {
        Node::Text(text) => Ok(text.clone()),
        _ => Err("an element of `args` of `exec` is no text".to_owned()),
    });
    let environment = node.list("env").iter().map(|pair| {
        let name = pair.text("name").ok_or("an element of `env` of `exec` has no `name`")?;
        Ok((name.to_owned(), pair.text("value").unwrap_or_default().to_owned()))
    });
    let cluster = (node.text("provideClusterInfo") == Some("true")).then(|| ClusterInfo {
        server: url.to_owned(),
        tls_server_name: trust.name.clone(),
        is_unchecked: trust.is_unchecked,
        ca: trust.ca.clone(),
    });
    Ok(Plugin {
        command,
        arguments: arguments.collect::<Result<_, _>>()?,
        environment: environment.collect::<Result<_, String>>()?,
        api_version: api_version.to_owned(),
        install_hint: node.text("installHint").unwrap_or_default().to_owned(),
        cluster,
    })
}

/// The files that a kubeconfig names, which may be relative to it.
struct Files<'f> {
    file: &'f Path,
}

impl Files<'_> {
    /// The path of a file.
    fn path(&self, path: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(path)
    }

    /// The octets of a key: those of `KEY-data` in base64, or those of the file that `KEY` names.
    fn octets(&self, node: &Node, key: &str) -> Result<Option<Vec<u8>>, ConnectError> {
        if let Some(text) = node.text(&format!("{key}-data")) {
            let what = format!("`{key}-data` is no base64");
            let octets = from_base64(text);
            return octets
                .map(Some)
                .ok_or_else(|| ConnectError::Kubeconfig(self.file.to_owned(), what));
        }
        node.text(key).map(|path| read_file(&self.path(path))).transpose()
    }
}

/// Reads the YAML.
fn parse(text: &str) -> Result<Node, String> {
    let mut open: Vec<(Node, Option<String>)> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| format!("it is no YAML: {error}"))?;
        let node = match event {
            Event::Scalar(text, ..) => Node::Text(text.into_owned()),
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() >= DEPTH_MAX => {
                return Err(format!("more than {DEPTH_MAX} lists and maps lie within each other"));
            }
            Event::SequenceStart(..) => {
                open.push((Node::List(Vec::new()), None));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((Node::Map(Vec::new()), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((node, _)) => node,
                None => continue,
            },
            Event::Alias(_) => return Err("aliases (`*name`) are not supported".to_owned()),
            _ => continue,
        };
        match open.last_mut() {
            None => return Ok(node),
            Some((Node::List(nodes), _)) => nodes.push(node),
            Some((Node::Map(pairs), key)) => match (key.take(), node) {
                (Some(key), node) => pairs.push((key, node)),
                (None, Node::Text(text)) => *key = Some(text),
                (None, _) => return Err("a key is no text".to_owned()),
            },
            Some((Node::Text(_), _)) => {}
        }
    }
    Err("the file is empty".to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_lead_from_a_context_to_its_cluster_and_user() {
        let root = parse("contexts:\n- name: a\n  context: {cluster: c, user: u}\nusers: []\n");
        let root = root.unwrap();
        let context = root.named("contexts", "a", "context").unwrap();
        assert_eq!((context.text("cluster"), context.text("user")), (Some("c"), Some("u")));
        assert!(root.named("contexts", "b", "context").is_none());
        assert!(parse(&"[".repeat(40)).is_err() && parse("").is_err());
        assert!(parse("a: &x 1\nb: *x\n").is_err());
    }
}
