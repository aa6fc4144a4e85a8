//! The search domains of hosts, which pods have behind those of the cluster.

use std::fs::File;
use std::io::Read;
use zonda_cluster::SEARCH_DOMAINS_MAX;
use zonda_config::KubernetesKeys;
use zonda_wire::Name;

/// The resolver's configuration of this machine, or what a pod has of its host's.
const RESOLVER_FILE: &str = "/etc/resolv.conf";
/// Octets of the file that are read: Kubernetes lets search domains have 2048.
const FILE_BYTES_MAX: u64 = 65_536;

/// Returns the search domains that a configuration gives, or those of this machine.
pub fn search_domains(keys: &KubernetesKeys) -> Vec<Name> {
    if !keys.search_domains.is_empty() {
        return keys.search_domains.clone();
    }
    let mut text = Vec::new();
    let file = File::open(RESOLVER_FILE);
    if let Err(error) = file.and_then(|it| it.take(FILE_BYTES_MAX).read_to_end(&mut text)) {
        tracing::warn!(file = RESOLVER_FILE, %error, "search domains of hosts are not known");
    }
    of_resolver_file(&String::from_utf8_lossy(&text))
}

/// Returns the search domains of a resolver's configuration: its last line of them counts.
fn of_resolver_file(text: &str) -> Vec<Name> {
    let domains = |line: &str| -> Option<Vec<Name>> {
        let mut words = line.split_ascii_whitespace();
        let count = match words.next()? {
            "search" => SEARCH_DOMAINS_MAX,
            "domain" => 1,
            _ => return None,
        };
        Some(words.filter_map(|word| word.parse().ok()).take(count).collect())
    };
    text.lines().filter_map(domains).next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_search_domains_counts() {
        let domains = |text: &str| -> Vec<String> {
            of_resolver_file(text).iter().map(Name::to_string).collect()
        };
        assert_eq!(domains("nameserver 192.0.2.1\n"), [""; 0]);
        assert_eq!(domains("domain a.example\n"), ["a.example."]);
        assert_eq!(
            domains(
                "search a.example\n# search x\n search  b.example.\tc.example\noptions ndots:5"
            ),
            ["b.example.", "c.example."]
        );
    }
}
