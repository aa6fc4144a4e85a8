//! Follows the services and endpoint slices of a cluster with the crate `kube` until all have been
//! read once, counts them, and tells how much memory that took, as the example `follow-objects` of
//! `zonda-kubernetes` does with Zonda's own client.
//!
//!     zonda-bench-kube-client KUBECONFIG streamed|paged all-fields|used-fields
//!
//! Each object is dropped once it has been received, so that what remains is the client's. With
//! `all-fields` the objects are those of `k8s-openapi`, with `used-fields` those of [`used`].

mod used;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{Config, Error, Event, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Instant;

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

/// Follows the objects of a type until all have been read once; returns their number, and the
/// watch, which stays open.
async fn read_all<K>(
    client: Client,
    config: Config,
    began: Instant,
) -> Result<(u64, Box<dyn Send>), Error>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut events = Box::pin(watcher(Api::<K>::all(client), config));
    let mut objects = 0;
    while let Some(event) = events.next().await {
        match event? {
            Event::InitApply(_) => objects += 1,
            Event::InitDone => break,
            Event::Apply(_) | Event::Delete(_) | Event::Init => {}
        }
    }
    println!("{} read after {:?}", K::kind(&()), began.elapsed());
    Ok((objects, Box::new(events)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, list, fields] = &arguments[..] else {
        return Err(
            "usage: zonda-bench-kube-client KUBECONFIG streamed|paged all-fields|used-fields"
                .into(),
        );
    };
    print_memory("start");
    let began = Instant::now();
    let file = Kubeconfig::read_from(file)?;
    let settings =
        kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(settings)?;
    let config = match &**list {
        "streamed" => Config::default().streaming_lists(),
        "paged" => Config::default(),
        _ => return Err(format!("{list}: choose streamed or paged").into()),
    };
    let (services, slices) = match &**fields {
        "all-fields" => tokio::try_join!(
            read_all::<Service>(client.clone(), config.clone(), began),
            read_all::<EndpointSlice>(client, config, began),
        )?,
        "used-fields" => tokio::try_join!(
            read_all::<used::Service>(client.clone(), config.clone(), began),
            read_all::<used::EndpointSlice>(client, config, began),
        )?,
        _ => return Err(format!("{fields}: choose all-fields or used-fields").into()),
    };
    println!("{} objects", services.0 + slices.0);
    print_memory("read");
    Ok(())
}
