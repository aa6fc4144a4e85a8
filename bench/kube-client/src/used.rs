//! Services and slices with the fields alone that names come from, which are decoded with less work
//! than all fields.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Deserialize;
use std::borrow::Cow;

/// A service as names need it.
#[derive(Clone, Debug, Deserialize)]
#[allow(dead_code, reason = "what is decoded is dropped")]
pub struct Service {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: ServiceSpec,
}

/// What a service says of itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(dead_code, reason = "what is decoded is dropped")]
pub struct ServiceSpec {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(rename = "clusterIPs")]
    cluster_ips: Vec<String>,
    external_name: Option<String>,
    publish_not_ready_addresses: bool,
    ports: Vec<Port>,
}

/// A port of a service or a slice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(dead_code, reason = "what is decoded is dropped")]
pub struct Port {
    name: Option<String>,
    protocol: Option<String>,
    port: u16,
}

/// A slice of endpoints as names need it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "what is decoded is dropped")]
pub struct EndpointSlice {
    metadata: ObjectMeta,
    address_type: String,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
    #[serde(default)]
    ports: Vec<Port>,
}

/// An endpoint of a slice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(dead_code, reason = "what is decoded is dropped")]
pub struct Endpoint {
    addresses: Vec<String>,
    hostname: Option<String>,
    zone: Option<String>,
    conditions: Conditions,
    target_ref: Option<Target>,
}

/// Whether an endpoint can be used.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(dead_code, reason = "what is decoded is dropped")]
pub struct Conditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

/// The object that an endpoint is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(dead_code, reason = "what is decoded is dropped")]
pub struct Target {
    kind: String,
    namespace: String,
    name: String,
}

/// Says where the API has the objects of a type.
macro_rules! resource {
    ($type:ident, $group:literal, $plural:literal) => {
        impl Resource for $type {
            type DynamicType = ();
            type Scope = NamespaceResourceScope;

            fn kind((): &()) -> Cow<'_, str> {
                stringify!($type).into()
            }

            fn group((): &()) -> Cow<'_, str> {
                $group.into()
            }

            fn version((): &()) -> Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }
    };
}

resource!(Service, "", "services");
resource!(EndpointSlice, "discovery.k8s.io", "endpointslices");
