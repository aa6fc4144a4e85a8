//! HTTPS with real servers: Unbound, with nghttp2, and dnsdist, with H2O.

#![allow(clippy::unwrap_used)]

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use common::{Identity, SERVER, assert_answers, query, target};
use zonda_client::{Connections, Distrust, Fault, Protocol, Session, Tls, Trust, Url};
use zonda_testkit::process::{Folder, Process, free_port, installed, start_on_free_port};

/// A running server, and where it is asked over HTTPS.
struct Server {
    address: SocketAddr,
    identity: Identity,
    _process: Process,
    _folder: Folder,
}

impl Server {
    /// Starts a program; `arguments` gets the ports for DNS and HTTPS.
    fn start(name: &str, arguments: impl Fn(&Folder, u16, u16) -> Vec<String>) -> Self {
        let program = installed(name).expect("`make packages` installs what the tests need");
        let (folder, identity) = (Folder::new(name), Identity::new(SERVER));
        folder.write("certificate.pem", &identity.certificate);
        folder.write("key.pem", &identity.key);
        let https_port = free_port();
        let (process, _) = start_on_free_port(name, &folder, &["example."], |folder, port| {
            let mut command = Command::new(&program);
            command.args(arguments(folder, port, https_port));
            command
        });
        let address = (Ipv4Addr::LOCALHOST, https_port).into();
        Self { address, identity, _process: process, _folder: folder }
    }

    /// Unbound, which answers for `example` from its configuration.
    fn unbound() -> Self {
        Self::start("unbound", |folder, port, https_port| {
            let own = folder.path().display();
            let text = format!(
                "server:\n interface: 127.0.0.1@{port}\n interface: 127.0.0.1@{https_port}\n \
                 https-port: {https_port}\n http-endpoint: \"/dns-query\"\n \
                 tls-service-key: \"{own}/key.pem\"\n tls-service-pem: \"{own}/certificate.pem\"\n \
                 username: \"\"\n chroot: \"\"\n directory: \"{own}\"\n pidfile: \"\"\n \
                 use-syslog: no\n do-daemonize: no\n num-threads: 1\n \
                 module-config: \"iterator\"\n \
                 local-zone: \"example.\" static\n \
                 local-data: \"example. SOA ns.example. hostmaster.example. 1 2 3 4 5\"\n \
                 local-data: \"www.example. 300 A 192.0.2.1\"\nremote-control:\n \
                 control-enable: no\n"
            );
            let file = folder.write("unbound.conf", text);
            vec!["-d".to_owned(), "-c".to_owned(), file.display().to_string()]
        })
    }

    /// dnsdist, which answers by rules, and says of its answers that they are 250 seconds old.
    fn dnsdist() -> Self {
        Self::start("dnsdist", |folder, port, https_port| {
            let own = folder.path().display();
            let text = format!(
                "setLocal('127.0.0.1:{port}')\n\
                 addDOHLocal('127.0.0.1:{https_port}', '{own}/certificate.pem', '{own}/key.pem', \
                 {{'/dns-query', '/moved', '/broken', '/busy', '/portal'}}, \
                 {{customResponseHeaders={{['age']='250'}}}})\n\
                 getDOHFrontend(0):setResponsesMap({{\
                 newDOHResponseMapEntry('^/moved$', 301, 'https://elsewhere.example/'), \
                 newDOHResponseMapEntry('^/broken$', 500, 'no'), \
                 newDOHResponseMapEntry('^/busy$', 429, 'no', {{['retry-after']='30'}}), \
                 newDOHResponseMapEntry('^/portal$', 200, '<html>', \
                 {{['content-type']='text/html; charset=utf-8'}})}})\n\
                 addAction(QTypeRule(DNSQType.SOA), SpoofRawAction(\
                 '\\002ns\\007example\\000\\000\\000\\000\\000\\001\\000\\000\\000\\002\
                 \\000\\000\\000\\003\\000\\000\\000\\004\\000\\000\\000\\005', {{aa=true}}))\n\
                 addAction(AllRule(), SpoofAction('192.0.2.1', {{ttl=300}}))\n"
            );
            let file = folder.write("dnsdist.conf", text);
            let arguments = ["--supervised", "--disable-syslog", "-C"];
            arguments.map(str::to_owned).into_iter().chain([file.display().to_string()]).collect()
        })
    }

    /// Returns how it is asked when it is trusted like this.
    fn protocol(&self, tls: Arc<Tls>, path: &str) -> Protocol {
        Protocol::Https { tls, url: Url::new(SERVER, self.address.port(), path).unwrap() }
    }

    /// Asks for a path once, over a connection of its own.
    async fn ask(&self, path: &str) -> Result<Vec<u8>, Fault> {
        let protocol = self.protocol(self.identity.tls(), path);
        Session::open(&target(self.address, protocol)).await.unwrap().ask(&query(7)).await
    }

    /// Returns the fault of a connection to a server that is trusted like this.
    async fn fault(&self, tls: Tls) -> Option<Fault> {
        let protocol = self.protocol(Arc::new(tls), "/dns-query");
        Session::open(&target(self.address, protocol)).await.err()
    }
}

#[tokio::test]
async fn unbound_answers_a_thousand_queries_over_a_few_connections() {
    let server = Server::unbound();
    let protocol = server.protocol(server.identity.tls(), "/dns-query");
    let connections = Connections::new(protocol, vec![server.address]);
    let ask = |id| {
        let connections = Arc::clone(&connections);
        tokio::spawn(async move { connections.ask(&query(id)).await })
    };
    let asked: Vec<_> = (0..1000).map(ask).collect();
    for (id, asked) in asked.into_iter().enumerate() {
        assert_eq!(assert_answers(&asked.await.unwrap().unwrap(), id as u16), 300);
    }
    let counts = connections.counts();
    assert!((1..=8).contains(&counts.opened) && counts.failed == 0, "{counts:?}");
}

#[tokio::test]
async fn unbound_resumes_a_session() {
    let server = Server::unbound();
    let target = target(server.address, server.protocol(server.identity.tls(), "/dns-query"));
    let first = Session::open(&target).await.unwrap();
    assert_answers(&first.ask(&query(1)).await.unwrap(), 1);
    let second = Session::open(&target).await.unwrap();
    assert_answers(&second.ask(&query(2)).await.unwrap(), 2);
    assert_eq!((first.is_resumed(), second.is_resumed()), (false, true));
}

#[tokio::test]
async fn a_server_with_another_certificate_is_not_queried() {
    let server = Server::unbound();
    let own = &server.identity;
    let roots = |pem: &str| Trust::in_pem(pem.as_bytes()).unwrap();
    let distrust = |distrust| Some(Fault::Certificate(distrust));

    let other_ca = roots(&Identity::new(SERVER).roots);
    let told = server.fault(Tls::new(SERVER, &other_ca).unwrap()).await;
    assert_eq!(told, distrust(Distrust::UnknownIssuer));
    let told = server.fault(Tls::new(SERVER, &Trust::PublicRoots).unwrap()).await;
    assert_eq!(told, distrust(Distrust::UnknownIssuer));
    let told = server.fault(Tls::new("other.example", &roots(&own.roots)).unwrap()).await;
    assert_eq!(told, distrust(Distrust::OtherName));
    let told = server.fault(Tls::new(SERVER, &Trust::Pins(vec![[7; 32]])).unwrap()).await;
    assert_eq!(told, distrust(Distrust::OtherKey));
    let told = server.fault(Tls::new("other.example", &Trust::Pins(vec![own.pin])).unwrap()).await;
    assert_eq!(told, None, "who has the pinned key may have any name");
}

#[tokio::test]
async fn a_path_unknown_to_unbound_is_reported() {
    let told = Server::unbound().ask("/elsewhere").await;
    assert_eq!(told, Err(Fault::Http { status: 404, rest: None }));
}

#[tokio::test]
async fn an_answer_of_dnsdist_is_as_old_as_it_says() {
    let message = Server::dnsdist().ask("/dns-query").await.unwrap();
    assert_eq!(assert_answers(&message, 7), 50);
}

#[tokio::test]
async fn an_error_status_of_dnsdist_is_reported() {
    let server = Server::dnsdist();
    let fault = async |path| server.ask(path).await.unwrap_err();
    let moved = fault("/moved").await;
    assert_eq!(moved.to_string(), "HTTP status 301: redirections are not followed");
    assert_eq!(fault("/broken").await, Fault::Http { status: 500, rest: None });
    let rest = Some(Duration::from_secs(30));
    assert_eq!(fault("/busy").await, Fault::Http { status: 429, rest });
    assert_eq!(fault("/portal").await, Fault::MediaType("text/html".to_owned()));
}
