//! Default Corefiles of distributions, each served unchanged at its own addresses and ports.

use std::process::Command;
use zonda_testkit::process::Folder;

const BINARY: &str = env!("CARGO_BIN_EXE_zonda");

/// A distribution's Corefile, and what a client has of it.
struct Distribution {
    name: &'static str,
    corefile: &'static str,
    /// The address and port of DNS, and the address of `/health`.
    addresses: (&'static str, u16, &'static str),
    /// Arguments of `dig`, and what it prints: data, or the response code where there are none.
    answers: &'static [(&'static str, &'static str)],
}

/// The default Corefile of a distribution.
macro_rules! corefile {
    ($name:literal) => {
        include_str!(concat!("../../../../crates/import/tests/corefile/", $name, ".corefile"))
    };
}

/// Where the Corefile of a cluster's DNS is answered.
const CLUSTER_DNS: (&str, u16, &str) = ("127.0.0.1", 53, "127.0.0.1");
/// Where that of a cache on a node is.
const NODE_CACHE: (&str, u16, &str) = ("169.254.20.10", 53, "169.254.20.10");
/// A name that the upstream of `resolv.conf` has.
const OUTSIDE: (&str, &str) = ("www.example A", "192.0.2.7");
/// A name of the cluster, without an API server.
const INSIDE: (&str, &str) = ("web.default.svc.cluster.local A", "SERVFAIL");
/// The same name, which the DNS of the cluster has.
const BEHIND: (&str, &str) = ("web.default.svc.cluster.local A", "10.0.0.7");

const DISTRIBUTIONS: &[Distribution] = &[
    Distribution {
        name: "kubeadm",
        corefile: corefile!("kubeadm"),
        addresses: CLUSTER_DNS,
        answers: &[OUTSIDE, INSIDE],
    },
    Distribution {
        name: "nodelocal",
        corefile: corefile!("nodelocal"),
        addresses: NODE_CACHE,
        answers: &[OUTSIDE, BEHIND],
    },
    Distribution {
        name: "gke-nodelocal",
        corefile: corefile!("gke-nodelocal"),
        addresses: NODE_CACHE,
        answers: &[OUTSIDE, BEHIND, ("a.b.c.d.e.google.internal A", "NXDOMAIN")],
    },
    Distribution {
        name: "k3s",
        corefile: corefile!("k3s"),
        addresses: CLUSTER_DNS,
        answers: &[
            OUTSIDE,
            INSIDE,
            ("node-7 A", "10.0.0.5"),
            ("a.override.test A", "192.0.2.99"),
            ("a.server.test A", "192.0.2.98"),
        ],
    },
    Distribution {
        name: "kops",
        corefile: corefile!("kops"),
        addresses: CLUSTER_DNS,
        answers: &[OUTSIDE, INSIDE],
    },
    Distribution {
        name: "eks",
        corefile: corefile!("eks"),
        addresses: CLUSTER_DNS,
        answers: &[OUTSIDE, INSIDE],
    },
    Distribution {
        name: "aks",
        corefile: corefile!("aks"),
        addresses: CLUSTER_DNS,
        answers: &[
            OUTSIDE,
            INSIDE,
            ("x.reddog.microsoft.com A", "NXDOMAIN"),
            ("a.b.c.d.internal.cloudapp.net A", "NXDOMAIN"),
        ],
    },
    Distribution {
        name: "openshift",
        corefile: corefile!("openshift"),
        addresses: ("127.0.0.1", 5353, "127.0.0.1"),
        answers: &[OUTSIDE, INSIDE, ("hostname.bind CH TXT", "\"node-7\"")],
    },
    Distribution {
        name: "minikube",
        corefile: corefile!("minikube"),
        addresses: CLUSTER_DNS,
        answers: &[OUTSIDE, INSIDE, ("host.minikube.internal A", "192.168.49.1")],
    },
];

/// What runs in a network and with an `/etc` of its own: the server of the Corefile and clients,
/// which print one line each; behind a link, an upstream with the zones `example` and
/// `cluster.local`.
const SCRIPT: &str = r#"set -e
ip link set lo up
for address in 169.254.20.10 10.4.0.10 10.96.0.10; do ip address add $address/32 dev lo; done
unshare --net sh -c 'touch "$FOLDER"/apart; exec sleep 60' & outside=$!
until [ -e "$FOLDER"/apart ]; do sleep 0.1; done
ip link add near type veth peer name far netns $outside
ip address add 198.18.0.1/24 dev near
ip link set near up
ip route add 10.4.0.11/32 dev near src 198.18.0.1
beyond() { nsenter --net=/proc/$outside/ns/net "$@"; }
beyond ip address add 198.18.0.53/24 dev far
beyond ip address add 10.4.0.11/32 dev far
beyond ip link set far up
mount -t tmpfs etc /etc
mkdir -p /etc/coredns/custom
echo node-7 > /etc/hostname
echo nameserver 198.18.0.53 > /etc/resolv.conf
cp "$FOLDER"/Corefile /etc/coredns/Corefile
echo 10.0.0.5 node-7 > /etc/coredns/NodeHosts
answer() {
    printf 'template IN A %s {\nanswer "{{ .Name }} 60 IN A %s"\n}\n' "$1" "$2"
}
answer override.test 192.0.2.99 > /etc/coredns/custom/own.override
{ echo 'server.test {'; answer server.test 192.0.2.98; echo '}'; } > /etc/coredns/custom/own.server
ZONDA_ADMIN_SOCKET=$FOLDER/upstream.sock ZONDA_ADMIN_ADDRESS=off beyond "$ZONDA" serve \
    --listen 198.18.0.53:53 --listen 10.4.0.11:53 \
    --zone example="$FOLDER"/example.zone --zone cluster.local="$FOLDER"/cluster.zone >&2 &
export ZONDA_ADMIN_SOCKET=$FOLDER/admin.sock ZONDA_STATE=$FOLDER/state
export KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=1
export __PILLAR__LOCAL__DNS__=169.254.20.10 __PILLAR__DNS__SERVER__=10.96.0.10
export KUBE_DNS_UPSTREAM_SERVICE_HOST=10.4.0.11
cd /etc/coredns
"$ZONDA" serve --corefile Corefile >&2 &
for try in $(seq 200); do
    curl -sf "http://$HEALTH:8080/health" >&2 && dig +tries=1 @198.18.0.53 example SOA >&2 && break
    sleep 0.1
done
curl -s "http://$HEALTH:8080/health"; echo
while read -r question; do
    reply=$(dig +tries=2 @"$DNS" -p "$PORT" $question)
    data=$(printf '%s\n' "$reply" | sed -n '/^;; ANSWER/,/^$/ { /^;;/d; s/.*[[:space:]]//p }')
    echo "${data:-$(printf '%s\n' "$reply" | sed -n 's/.*status: \([A-Z]*\).*/\1/p')}"
done < "$FOLDER"/questions
"#;

/// Serves a Corefile; returns what the clients print, and the logs.
fn serve(distribution: &Distribution) -> (String, String) {
    let folder = Folder::new(distribution.name);
    let zone = "$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\n";
    folder.write("Corefile", distribution.corefile);
    folder.write("example.zone", format!("{zone}www A 192.0.2.7\n"));
    folder.write("cluster.zone", format!("{zone}web.default.svc A 10.0.0.7\n"));
    let questions: String =
        distribution.answers.iter().map(|(question, _)| format!("{question}\n")).collect();
    folder.write("questions", questions);
    let (dns, port, health) = distribution.addresses;
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "60", "unshare", "--mount", "--net", "--pid", "--fork"]);
    command.args(["--kill-child", "--mount-proc", "--map-root-user", "sh", "-c", SCRIPT]);
    command.env("FOLDER", folder.path()).env("ZONDA", BINARY);
    command.env("DNS", dns).env("PORT", port.to_string()).env("HEALTH", health);
    let output = command.output().unwrap();
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn default_corefiles_of_distributions_are_served_unchanged_at_their_own_ports() {
    for distribution in DISTRIBUTIONS {
        let (printed, log) = serve(distribution);
        let mut lines = printed.lines();
        let name = distribution.name;
        assert_eq!(lines.next(), Some("OK"), "{name}: /health\n{log}");
        for (question, expected) in distribution.answers {
            assert_eq!(lines.next(), Some(*expected), "{name}: {question}\n{log}");
        }
    }
}
