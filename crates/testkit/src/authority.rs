//! An authority for certificates of servers.

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

/// An authority that was made a moment ago.
pub(crate) struct Authority {
    /// Certificate of the authority.
    pub(crate) certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority of this name.
    ///
    /// # Panics
    /// When the system has no random numbers.
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = new_key();
        let certificate = params.self_signed(&key).expect("the parameters are complete");
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// Returns a certificate for names and addresses, and its private key.
    ///
    /// # Panics
    /// When a name is none.
    pub(crate) fn sign(&self, names: &[&str]) -> (Certificate, KeyPair) {
        let subject = named(names.first().unwrap_or(&"server"));
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("the names are names");
        params.distinguished_name = subject; // OpenSSL takes one that is its issuer's for a root
        let key = new_key();
        let certificate = params.signed_by(&key, &self.issuer).expect("the authority may sign");
        (certificate, key)
    }
}

/// Returns the name that a certificate is for.
fn named(name: &str) -> DistinguishedName {
    let mut named = DistinguishedName::new();
    named.push(DnType::CommonName, name);
    named
}

/// Returns a private key.
pub(crate) fn new_key() -> KeyPair {
    KeyPair::generate().expect("the system has random numbers")
}
