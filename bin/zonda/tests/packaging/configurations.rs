//! The configurations that the chart makes: that Zonda takes each, and follows a cluster by one
//! with no more rights than the chart gives.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use zonda_testkit::cluster::{
    ApiServer, ClusterClients, Port, cluster_service, namespace, service_import,
    service_import_definition,
};
use zonda_testkit::process::{Folder, Process, free_port};
use zonda_testkit::{Question, ask};

use crate::{NODE_COREFILE, TEMPLATE, VARIANTS, ZONDA, environment, file_of, folder};

/// The Corefile that kubeadm gives a cluster.
const KUBEADM: &str = include_str!("../../../../crates/import/tests/corefile/kubeadm.corefile");
/// How long a server may take until it answers.
const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn real_cluster_zonda_check_accepts_every_configuration_of_the_chart() {
    let (api, folder) = (ApiServer::start(), folder());
    let clients = ClusterClients::new(&api, folder.path());
    for values in VARIANTS {
        let manifest = clients.output(&format!("{TEMPLATE} {values}"));
        let theirs = if manifest.contains("Corefile.base") { NODE_COREFILE } else { KUBEADM };
        let (flag, text) = file_of(&manifest, "zonda.toml").map_or_else(
            || ("--corefile", file_of(&manifest, "Corefile").unwrap_or_else(|| theirs.into())),
            |text| ("--config", text),
        );
        let file = folder.write("configuration", &text);
        let mut command = Command::new(ZONDA);
        command.args(["check", flag]).arg(file).envs(environment(&manifest));
        // What is replaced in the manifest of NodeLocal DNSCache before it is applied.
        command.env("__PILLAR__LOCAL__DNS__", "169.254.20.10");
        command.env("__PILLAR__DNS__SERVER__", "10.96.0.10");
        let output = command.output().unwrap();
        let told = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
        assert!(output.status.success(), "{values}:\n{text}\n{}", told.concat());
    }
}

#[test]
fn real_cluster_server_with_the_account_of_the_chart_has_the_names_of_the_cluster() {
    let (api, folder) = (ApiServer::start(), folder());
    let clients = ClusterClients::new(&api, folder.path());
    api.client().define(&service_import_definition());
    api.client().create(&namespace("shop"));
    let http = Port::tcp("http", 80);
    let service = api.client().create(&cluster_service("shop", "web", &["IPv4"], &[http]));
    api.client().create(&service_import("shop", "far", &["10.7.0.1"], &[http]));
    let web = service["spec"]["clusterIP"].as_str().unwrap();
    let far = ("far.shop.svc.clusterset.local.", "10.7.0.1");
    for (values, names) in [
        ("", &[("web.shop.svc.cluster.local.", web)][..]),
        (
            "--set kubernetes.namespaces={shop} --set kubernetes.pods=verified \
             --set kubernetes.multicluster=clusterset.local",
            &[("web.shop.svc.cluster.local.", web), far],
        ),
    ] {
        let install = "helm upgrade --install zonda packaging/helm/zonda --namespace kube-system";
        clients.output(&format!("{install} {values}"));
        let token = clients.output("kubectl -n kube-system create token zonda");
        let kubeconfig = fs::read_to_string(api.kubeconfig_file()).unwrap();
        let kubeconfig = kubeconfig.replace(api.token(), token.trim());
        assert!(kubeconfig.contains(token.trim()), "{kubeconfig}");
        let kubeconfig = folder.write("account", kubeconfig);
        let (process, address) = serve(&clients, &folder, values, &kubeconfig);
        for (name, expected) in names {
            await_answer(&process, address, name, expected);
        }
        assert!(process.log("forbidden").is_empty(), "{}", process.log(""));
    }
}

/// Serves what the chart makes of values, by an account, at a port of loopback.
fn serve(
    clients: &ClusterClients,
    folder: &Folder,
    values: &str,
    kubeconfig: &Path,
) -> (Process, SocketAddr) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let kubeconfig = kubeconfig.display();
    let manifest = clients.output(&format!(
        "{TEMPLATE} {values} --set listen={{{address}}} --set ports.health=0 --set ports.ready=0 \
         --set ports.metrics=0 --set kubernetes.options.kubeconfig={kubeconfig}"
    ));
    let text = file_of(&manifest, "zonda.toml").unwrap();
    let file =
        folder.write("zonda.toml", text.replace("/var/lib/zonda", folder.path().to_str().unwrap()));
    let mut command = Command::new(ZONDA);
    command.args(["serve", "--config"]).arg(file).env("ZONDA_ADMIN_LAMEDUCK", "0s");
    command.env("ZONDA_ADMIN_SOCKET", folder.path().join("zonda.sock"));
    (Process::start(&command, &folder.path().join("log")).unwrap(), address)
}

/// Waits until a name has this address.
fn await_answer(process: &Process, server: SocketAddr, name: &str, expected: &str) {
    let limit = Instant::now() + LIMIT;
    loop {
        let reply = ask(server, &Question::new(name, "A").recursive());
        if reply.is_ok_and(|it| it.answer.first().is_some_and(|it| it.data.text == expected)) {
            return;
        }
        assert!(Instant::now() < limit, "{name} is not {expected}:\n{}", process.log(""));
        thread::sleep(Duration::from_millis(20));
    }
}
