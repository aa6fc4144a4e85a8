//! Signs generated zones with ldns, so that servers can be compared on what they do with DNSSEC.

use std::process::Command;

use crate::client::name_bytes;
use crate::generate::Zone;
use crate::process::{Folder, installed};

/// How a zone proves that a name does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// NSEC records (rfc4034#4).
    Nsec,
    /// NSEC3 records (rfc5155).
    Nsec3,
    /// rfc5155#6: unsigned delegations are left out.
    Nsec3OptOut,
}

impl Denial {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Nsec, Self::Nsec3, Self::Nsec3OptOut];

    /// Arguments of `ldns-signzone`; no salt and no further iterations (rfc9276#3.1).
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Nsec => &[],
            Self::Nsec3 => &["-n", "-t", "0"],
            Self::Nsec3OptOut => &["-n", "-p", "-t", "0"],
        }
    }
}

/// Bytes of a name to which no `*.` can be added any more (rfc1035#2.3.4).
const WILDCARD_ROOM: usize = 253;

/// Returns all zones signed, their denials in turn.
///
/// NSEC for a zone with a name of almost 255 bytes: NSD 4.6.1 crashes when it prepares the NSEC3
/// proof for the wildcard below such a name.
pub fn sign_in_turn(zones: &[Zone]) -> Vec<Zone> {
    let long = |zone: &Zone| zone.names.iter().any(|(n, _)| name_bytes(n).len() > WILDCARD_ROOM);
    let denials = Denial::ALL.iter().cycle();
    let choose = |(zone, denial): (&Zone, &Denial)| {
        sign(zone, if long(zone) { Denial::Nsec } else { *denial })
    };
    zones.iter().zip(denials).map(choose).collect()
}

/// Returns the zone with signatures by a key made for it.
///
/// # Panics
/// When ldns is not installed or refuses the zone; the message says what it says.
pub fn sign(zone: &Zone, denial: Denial) -> Zone {
    let folder = Folder::new("sign");
    folder.write("zone", &zone.text);
    let key = run(&folder, "ldns-keygen", &["-a", "ECDSAP256SHA256", "-k", &zone.name]);
    let mut arguments = denial.arguments().to_vec();
    arguments.extend(["-o", &zone.name, "-f", "signed", "zone", key.trim()]);
    run(&folder, "ldns-signzone", &arguments);
    let signed = std::fs::read_to_string(folder.path().join("signed"));
    Zone { text: signed.expect("ldns-signzone writes the file that it is told"), ..zone.clone() }
}

/// Signs versions of a zone with one key, by an algorithm and for a time with which the same record
/// set has the same signature in each: what has changed is little.
pub struct Signer {
    /// Folder of the key.
    folder: Folder,
    /// The name of the zone, with a dot behind it.
    zone: String,
    /// The name of the key's files.
    key: String,
}

impl Signer {
    /// Makes a key for the zone with this name, which ends with a dot.
    ///
    /// # Panics
    /// When ldns is not installed.
    pub fn new(zone: &str) -> Self {
        let folder = Folder::new("signer");
        let key = run(&folder, "ldns-keygen", &["-a", "RSASHA256", "-b", "1024", "-k", zone]);
        Self { folder, zone: zone.to_owned(), key: key.trim().to_owned() }
    }

    /// Returns the text of a version, signed.
    ///
    /// # Panics
    /// When ldns refuses the zone; the message says what it says.
    pub fn sign(&self, text: &str, denial: Denial) -> String {
        self.folder.write("zone", text);
        let mut arguments = denial.arguments().to_vec();
        arguments.extend(["-i", "20200101", "-e", "20370101", "-o", &self.zone]);
        arguments.extend(["-f", "signed", "zone", &self.key]);
        run(&self.folder, "ldns-signzone", &arguments);
        let signed = std::fs::read_to_string(self.folder.path().join("signed"));
        signed.expect("ldns-signzone writes the file that it is told")
    }
}

/// Returns what the program prints.
fn run(folder: &Folder, program: &str, arguments: &[&str]) -> String {
    let path = installed(program)
        .unwrap_or_else(|| panic!("{program} is not installed: `make packages` installs it"));
    let output = Command::new(path)
        .args(arguments)
        .current_dir(folder.path())
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
