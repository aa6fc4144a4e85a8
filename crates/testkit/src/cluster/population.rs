//! Generated objects of a cluster: services of every kind with endpoints, and changes of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::Value;

use crate::cluster::{
    ApiClient, Endpoint, Port, cluster_service, endpoint_slice, external_service, headless_service,
    namespace, pod, pod_status,
};
use crate::generate::Random;

/// Services for each namespace.
const SERVICES_PER_NAMESPACE: usize = 100;
/// Services for each pod.
const SERVICES_PER_POD: usize = 4;
/// The most endpoints that a slice has.
const ENDPOINTS_MAX: usize = 6;
/// One endpoint of so many has an address that an earlier one has too.
const SHARED_ADDRESS: usize = 12;
/// Hostnames that endpoints have, so that some share one.
const HOSTNAMES: &[&str] = &["", "", "", "a", "b", "host-0"];
/// Topology zones that endpoints are in.
const TOPOLOGY_ZONES: &[&str] = &["", "", "zone-a", "zone-b"];
/// First address of IPv4 endpoints: 10.128.0.0.
const FIRST_ADDRESS: u32 = 0x0a80_0000;
/// Bits of IPv4 addresses that are counted.
const ADDRESS_MASK: u32 = 0x003f_ffff;

/// A change of one service's objects: requests in the order in which they are to be made.
pub struct PopulationChange {
    /// Number of the service: its changes have to be made one after the other.
    service: usize,
    writes: Vec<Write>,
}

/// A request that writes an object.
enum Write {
    Create(Value),
    Replace(Value),
    Delete(Value),
}

impl PopulationChange {
    /// Returns which of so many writers makes all changes of this service.
    pub fn writer(&self, writers: usize) -> usize {
        self.service % writers
    }

    /// Makes the change.
    ///
    /// # Panics
    /// When the API server is away or refuses it.
    pub fn make(&self, client: &ApiClient) {
        for write in &self.writes {
            match write {
                Write::Create(object) => drop(client.create(object)),
                Write::Replace(object) => drop(client.replace(object)),
                Write::Delete(object) => client.delete(object),
            }
        }
    }
}

/// A service that was created, with the names of its slices.
struct Service {
    /// Number of the service among all that were ever created.
    number: usize,
    namespace: String,
    name: String,
    ports: Vec<Port>,
    slices: Vec<Slice>,
    /// The service in JSON, as it was sent.
    object: Value,
}

/// A slice that was created.
struct Slice {
    name: String,
    is_ip6: bool,
}

/// Objects of a cluster that depend on a seed alone, but for the addresses that the API server
/// chooses.
pub struct Population {
    random: Random,
    namespaces: usize,
    services: Vec<Service>,
    /// Services that were ever created, for names that are not used again.
    created: usize,
    /// Endpoints that were ever made, for addresses that are not used again.
    endpoints: u32,
}

impl Population {
    /// Creates as many services in an empty cluster, with their namespaces, slices and pods.
    ///
    /// # Panics
    /// When the API server is away or refuses an object.
    pub fn create(client: &ApiClient, services: usize, seed: u64) -> Self {
        let namespaces = services.div_ceil(SERVICES_PER_NAMESPACE).max(1);
        let random = Random::new(seed);
        let mut population =
            Self { random, namespaces, services: Vec::new(), created: 0, endpoints: 0 };
        let spaces: Vec<Value> = (0..namespaces).map(|it| namespace(&format!("n{it}"))).collect();
        client.create_all(&spaces);
        let mut slices = Vec::new();
        for _ in 0..services {
            let (service, objects) = population.service();
            population.services.push(service);
            slices.extend(objects);
        }
        let objects: Vec<Value> =
            population.services.iter().map(|service| service.object.clone()).collect();
        client.create_all(&objects);
        client.create_all(&slices);
        population.create_pods(client, services / SERVICES_PER_POD);
        population
    }

    /// Creates running pods, each with an address that endpoints may have.
    fn create_pods(&mut self, client: &ApiClient, count: usize) {
        let pods: Vec<Value> =
            (0..count).map(|number| pod(&self.namespace(), &format!("p{number}"))).collect();
        client.create_all(&pods);
        let known = self.endpoints.max(1) as usize;
        let addresses: Vec<String> =
            pods.iter().map(|_| ip4(self.random.below(known) as u32)).collect();
        let both: Vec<Value> = pods
            .into_iter()
            .zip(addresses)
            .map(|(pod, address)| serde_json::json!([pod, address]))
            .collect();
        client.for_all(&both, |pair| {
            let address = pair[1].as_str().unwrap_or_default();
            client.patch_status(&pair[0], &pod_status(&[address]))
        });
    }

    /// Makes one change: mostly of a slice's endpoints, now and then of a whole service.
    ///
    /// # Panics
    /// When the API server is away or refuses the change.
    pub fn change(&mut self, client: &ApiClient) {
        self.next_change().make(client);
    }

    /// Returns the next change, which is to be made after those of the same service before it.
    pub fn next_change(&mut self) -> PopulationChange {
        let place = self.random.below(self.services.len().max(1));
        match self.random.below(10) {
            0 => self.addition(),
            1 if self.services.len() > 1 => {
                let service = self.services.swap_remove(place);
                let slices = service.slices.iter();
                let slices = slices.map(|slice| service.slice_object(slice, &[]));
                let objects = std::iter::once(service.object.clone()).chain(slices);
                let writes = objects.map(Write::Delete).collect();
                PopulationChange { service: service.number, writes }
            }
            _ => {
                let slice = self.services.get(place).and_then(|service| service.slices.first());
                let Some(is_ip6) = slice.map(|slice| slice.is_ip6) else { return self.addition() };
                let endpoints = self.endpoints(is_ip6);
                let service = &self.services[place];
                let slice = service.slice_object(&service.slices[0], &endpoints);
                PopulationChange { service: service.number, writes: vec![Write::Replace(slice)] }
            }
        }
    }

    /// Returns the change that creates one more service with its slices.
    fn addition(&mut self) -> PopulationChange {
        let (service, slices) = self.service();
        let objects = std::iter::once(service.object.clone()).chain(slices);
        let writes = objects.map(Write::Create).collect();
        let number = service.number;
        self.services.push(service);
        PopulationChange { service: number, writes }
    }

    /// Returns the name of a namespace.
    fn namespace(&mut self) -> String {
        format!("n{}", self.random.below(self.namespaces))
    }

    /// Makes a service of any kind with its slices.
    fn service(&mut self) -> (Service, Vec<Value>) {
        let number = self.created;
        let (namespace, name) = (self.namespace(), format!("s{number}"));
        self.created += 1;
        let mut ports = self.ports();
        let object = match self.random.below(20) {
            0..8 => cluster_service(&namespace, &name, &["IPv4"], &ports),
            8..11 => cluster_service(&namespace, &name, &["IPv4", "IPv6"], &ports),
            11 => cluster_service(&namespace, &name, &["IPv6"], &ports),
            12..18 => headless_service(&namespace, &name, &ports),
            18 => {
                ports.clear();
                headless_service(&namespace, &name, &ports)
            }
            _ => {
                let target = format!("{name}.example.org");
                let object = external_service(&namespace, &name, &target);
                let slices = Vec::new();
                let service = Service { number, namespace, name, ports, slices, object };
                return (service, Vec::new());
            }
        };
        let slices = Vec::new();
        let mut service = Service { number, namespace, name, ports, slices, object };
        let mut objects = Vec::new();
        for place in 0..self.random.below(3) {
            let is_ip6 = self.random.one_in(3);
            let slice = Slice { name: format!("{}-{place}", service.name), is_ip6 };
            objects.push(service.slice_object(&slice, &self.endpoints(is_ip6)));
            service.slices.push(slice);
        }
        (service, objects)
    }

    /// Returns ports of a service; at least one.
    fn ports(&mut self) -> Vec<Port> {
        let (http, dns, dns_tcp) =
            (Port::tcp("http", 80), Port::udp("dns", 53), Port::tcp("dns-tcp", 53));
        let sets: [&[Port]; 5] =
            [&[http], &[Port::tcp("", 8080)], &[dns, dns_tcp], &[http, dns], &[dns]];
        self.random.pick(&sets).to_vec()
    }

    /// Returns endpoints of a slice; at least one, which may be unready.
    fn endpoints(&mut self, is_ip6: bool) -> Vec<Endpoint> {
        let count = 1 + self.random.below(ENDPOINTS_MAX);
        (0..count).map(|number| self.endpoint(is_ip6, number)).collect()
    }

    /// Returns an endpoint; `place` is its number in the slice.
    fn endpoint(&mut self, is_ip6: bool, place: usize) -> Endpoint {
        let is_shared = place == 0 && self.endpoints > 0 && self.random.one_in(SHARED_ADDRESS);
        let number = match is_shared {
            true => self.random.below(self.endpoints as usize) as u32,
            false => {
                self.endpoints += 1;
                self.endpoints
            }
        };
        let address = if is_ip6 { ip6(number) } else { ip4(number) };
        let pod = if self.random.one_in(4) { format!("pod-{number}") } else { String::new() };
        Endpoint {
            addresses: vec![address],
            hostname: (*self.random.pick(HOSTNAMES)).to_owned(),
            pod,
            zone: (*self.random.pick(TOPOLOGY_ZONES)).to_owned(),
            is_unready: self.random.one_in(8),
        }
    }
}

impl Service {
    /// Returns a slice of the service in JSON.
    fn slice_object(&self, slice: &Slice, endpoints: &[Endpoint]) -> Value {
        endpoint_slice(&self.namespace, &slice.name, &self.name, &self.ports, endpoints)
    }
}

/// Returns an IPv4 address of an endpoint.
fn ip4(number: u32) -> String {
    Ipv4Addr::from(FIRST_ADDRESS + (number & ADDRESS_MASK)).to_string()
}

/// Returns an IPv6 address of an endpoint.
fn ip6(number: u32) -> String {
    let [high, low] = [number >> 16, number & 0xffff].map(|part| part as u16);
    Ipv6Addr::new(0xfd00, 0x244, 0, 0, 0, 0, high, low).to_string()
}
