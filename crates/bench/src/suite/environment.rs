//! The machine.

use std::env;
use std::fs;

use zonda_netio::process;

use crate::data::Environment;

/// Returns what it is, as far as it says.
pub fn environment() -> Environment {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let value = |path: &str, label: &str, separator: char| {
        let text = read(path);
        let lines = text.lines().filter_map(|line| line.split_once(separator));
        let mut values = lines.filter(|(name, _)| name.trim() == label);
        values
            .next()
            .map_or_else(String::new, |(_, value)| value.trim().trim_matches('"').to_owned())
    };
    let kibibytes = value("/proc/meminfo", "MemTotal", ':');
    let kibibytes = kibibytes.split_whitespace().next().and_then(|number| number.parse().ok());
    let kernel = |name: &str| read(&format!("/proc/sys/kernel/{name}")).trim().to_owned();
    Environment {
        cpu: value("/proc/cpuinfo", "model name", ':'),
        cpus: process::available_cpus(),
        memory_octets: kibibytes.unwrap_or(0_u64) * 1024,
        kernel: format!("{} {}", kernel("ostype"), kernel("osrelease")),
        system: value("/etc/os-release", "PRETTY_NAME", '='),
        bench: env!("CARGO_PKG_VERSION").to_owned(),
        command: env::args().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_kernel_memory_and_a_cpu() {
        let environment = environment();
        assert!(environment.kernel.starts_with("Linux "), "{}", environment.kernel);
        assert!(environment.memory_octets > 1 << 26);
        assert!(environment.cpus >= 1);
    }
}
