//! Follows the services and endpoint slices of a cluster until all have been read once, counts
//! them, and tells how much memory that took: `follow-objects KUBECONFIG`. `bench/kube_client.py`
//! compares it with the crate `kube`.

use std::process::ExitCode;
use std::time::Instant;
use tokio::sync::mpsc;
use zonda_cluster::Kind;
use zonda_kubernetes::{Event, Place, Subject, follow};

/// The memory of this process that the system counts under a name.
fn memory(name: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or(" unknown").trim().to_owned()
}

/// Prints what memory is used now, and was at most.
fn print_memory(when: &str) {
    let (anonymous, most) = (memory("RssAnon:"), memory("VmHWM:"));
    println!("{when}: {}, {anonymous} of it anonymous, at most {most}", memory("VmRSS:"));
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: follow-objects KUBECONFIG");
        return ExitCode::FAILURE;
    };
    print_memory("start");
    let began = Instant::now();
    let (sender, mut events) = mpsc::channel(1024);
    for kind in [Kind::Service, Kind::EndpointSlice] {
        let place = Place::Kubeconfig(file.clone().into(), None);
        tokio::spawn(follow(
            place,
            Subject { kind, labels: String::new(), namespace: String::new() },
            sender.clone(),
        ));
    }
    let (mut objects, mut synced) = (0, 0);
    while synced < 2 {
        match events.recv().await {
            Some((_, Event::Change(_))) => objects += 1,
            Some((subject, Event::Synced)) => {
                synced += 1;
                println!("{:?} read after {:?}", subject.kind, began.elapsed());
            }
            Some((subject, Event::Failed(error))) => eprintln!("{:?}: {error}", subject.kind),
            Some(_) => {}
            None => return ExitCode::FAILURE,
        }
    }
    println!("{objects} objects");
    print_memory("read");
    ExitCode::SUCCESS
}
