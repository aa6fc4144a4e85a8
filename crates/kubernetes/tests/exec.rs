//! Kubeconfigs whose user has a program that prints credentials.

#![allow(clippy::unwrap_used)]

mod scripted;

use scripted::{end_of_list, follow_place, hang, line, write as respond};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use zonda_kubernetes::{Place, Settings};

/// A folder that a test removes.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    /// Makes a folder for the test of this name.
    fn new(test: &str) -> Self {
        let name = format!("zonda-kubernetes-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a program of the shell.
    fn program(&self, text: &str) {
        let file = self.0.join("plugin");
        fs::write(&file, format!("#!/bin/sh\ncd \"$(dirname \"$0\")\"\n{text}")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Writes a kubeconfig whose user has these lines, indented by four spaces.
    fn kubeconfig(&self, url: &str, user: &str) -> Place {
        let file = self.0.join("config");
        let text = format!(
            "current-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
             clusters:\n- name: c\n  cluster: {{server: \"{url}\"}}\nusers:\n- name: u\n  user:\n\
             {user}"
        );
        fs::write(&file, text).unwrap();
        Place::Kubeconfig(file, None)
    }

    /// Returns how often the program has run, if it writes a line to `runs` each time.
    fn runs(&self) -> usize {
        fs::read_to_string(self.0.join("runs")).unwrap_or_default().lines().count()
    }
}

/// The user that has the program.
const USER: &str = "    exec:\n      apiVersion: client.authentication.k8s.io/v1\n      \
                    command: ./plugin\n      args: [one, two]\n      env:\n      - {name: EXTRA, \
                    value: three}\n      provideClusterInfo: true\n      installHint: ask around\n";

/// The shell's text that prints a credential: its `status`, in JSON.
fn print(status: &str) -> String {
    format!(
        "echo run >> runs\necho '{{\"kind\":\"ExecCredential\",\"apiVersion\":\
         \"client.authentication.k8s.io/v1\",\"status\":{status}}}'\n"
    )
}

/// The heads of all requests to a server that takes the token `good` alone.
type Heads = Arc<Mutex<Vec<String>>>;

/// Starts a server that takes the token `good` alone, and follows it by a program.
fn follow_plugin(folder: &Folder) -> (scripted::Followed, Heads) {
    let heads = Heads::default();
    let seen = Arc::clone(&heads);
    let script = move |_: usize, head: &str, stream: &mut std::net::TcpStream| {
        seen.lock().unwrap().push(head.to_owned());
        if !head.to_lowercase().contains("authorization: bearer good\r\n") {
            return respond(stream, "401 Unauthorized", "{\"message\":\"no\"}");
        }
        respond(stream, "200 OK", &(line("ADDED", "a", "4") + &end_of_list("5")));
        hang();
    };
    (follow_place(script, |url| folder.kubeconfig(url, USER)), heads)
}

#[test]
fn a_program_is_told_of_the_cluster_and_its_token_is_sent() {
    let folder = Folder::new("told");
    let text = "echo \"$1 $2 $EXTRA $KUBERNETES_EXEC_INFO\" > told\n".to_owned();
    folder.program(&(text + &print("{\"token\":\"good\"}")));
    let (mut followed, _) = follow_plugin(&folder);
    followed.expect(&["begin", "+a", "synced", "connected"]);
    let told = fs::read_to_string(folder.0.join("told")).unwrap();
    assert!(told.starts_with("one two three {"), "{told}");
    assert!(told.contains("\"server\":\"http://127.0.0.1:"), "{told}");
    assert!(told.contains("\"interactive\":false"), "{told}");
}

#[test]
fn a_program_runs_once_until_its_token_expires() {
    for (time, is_kept) in [("2999-01-01T00:00:00Z", true), ("2020-01-01T00:00:00Z", false)] {
        let folder = Folder::new(&format!("expires-{is_kept}"));
        let status = format!("{{\"token\":\"good\",\"expirationTimestamp\":\"{time}\"}}");
        folder.program(&print(&status));
        let (mut followed, _) = follow_plugin(&folder);
        followed.expect(&["begin", "+a", "synced", "connected"]);
        // The watch is over after a time, and the connection is made again.
        followed.expect_failure("in time");
        followed.expect(&["connected"]);
        assert_eq!(folder.runs() == 1, is_kept, "{} runs", folder.runs());
    }
}

#[test]
fn a_program_that_hangs_keeps_that_of_another_cluster_not_waiting() {
    let (hanging, good) = (Folder::new("hanging"), Folder::new("good"));
    hanging.program("echo run >> runs\nsleep 4\necho end >> ended\nexit 1\n");
    let (mut waiting, _) = follow_plugin(&hanging);
    let waiting = std::thread::spawn(move || waiting.expect_failure("fails"));
    let limit = Instant::now() + Duration::from_secs(10);
    while hanging.runs() == 0 && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(hanging.runs(), 1);
    good.program(&print("{\"token\":\"good\"}"));
    let (mut followed, _) = follow_plugin(&good);
    followed.expect(&["begin", "+a", "synced", "connected"]);
    assert!(!hanging.0.join("ended").exists(), "the good one has not waited for it");
    waiting.join().unwrap();
}

#[test]
fn a_program_runs_again_when_the_api_refuses_its_token() {
    let folder = Folder::new("refused");
    folder.program(&format!(
        "if [ -e runs ]; then\n{}else\n{}fi\n",
        print("{\"token\":\"good\"}"),
        print("{\"token\":\"bad\"}")
    ));
    let (mut followed, heads) = follow_plugin(&folder);
    followed.expect_failure("does not know this client (401): no");
    followed.expect(&["begin", "+a", "synced", "connected"]);
    assert_eq!((folder.runs(), heads.lock().unwrap().len()), (2, 2));
}

#[test]
fn what_a_program_does_wrong_is_told() {
    let cases = [
        ("fails", "echo sorry >&2; exit 3\n".to_owned(), "fails (exit status: 3): sorry"),
        ("text", "echo hello\n".to_owned(), "prints no `ExecCredential`: it is wrong at line 1"),
        (
            "token",
            "echo '\"secret\"'\n".to_owned(),
            "prints no `ExecCredential`: it is wrong at line 1, column 8",
        ),
        ("nothing", print("{}"), "neither a token nor a client certificate"),
        ("half", print("{\"clientCertificateData\":\"x\"}"), "neither a token nor a client"),
        (
            "time",
            print("{\"token\":\"good\",\"expirationTimestamp\":\"soon\"}"),
            "`expirationTimestamp`",
        ),
        ("endless", "exec yes\n".to_owned(), "prints more than 1048576 octets"),
        ("version", "echo '{\"kind\":\"A\",\"apiVersion\":\"b/v1\"}'\n".to_owned(), "of `b/v1`"),
    ];
    for (name, program, expected) in cases {
        let folder = Folder::new(name);
        folder.program(&program);
        follow_plugin(&folder).0.expect_failure(expected);
    }
    let folder = Folder::new("missing");
    follow_plugin(&folder).0.expect_failure("ask around");
}

/// Returns the error of reading a kubeconfig whose user has these lines.
fn refusal(folder: &Folder, user: &str) -> String {
    let place = folder.kubeconfig("http://127.0.0.1:1", user);
    Settings::read(&place).err().expect("the kubeconfig is refused").to_string()
}

#[test]
fn what_a_kubeconfig_asks_for_in_vain_is_refused() {
    let folder = Folder::new("vain");
    let cases = [
        ("    username: admin\n    password: x\n", "`username`"),
        ("    as: someone\n", "`as`"),
        ("    auth-provider: {name: gcp}\n", "`auth-provider`"),
        ("    exec: {command: x}\n", "`apiVersion` \"\""),
        ("    exec: {apiVersion: client.authentication.k8s.io/v1}\n", "no `command`"),
    ];
    for (user, expected) in cases {
        let error = refusal(&folder, user);
        assert!(error.contains(expected), "{error}");
        assert!(error.starts_with(&*folder.0.to_string_lossy()), "{error} names no file");
    }
    let always = USER.replace("provideClusterInfo: true", "interactiveMode: Always");
    assert!(refusal(&folder, &always).contains("no terminal"));
    assert!(Path::new(&folder.0).exists());
}
