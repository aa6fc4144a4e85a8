//! Which server a configuration is of.

use std::path::Path;

/// The format of another server's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The format of BIND's named.conf.
    NamedConf,
    /// The format of CoreDNS's Corefile.
    Corefile,
    /// The format of OpenGSLB, in YAML.
    OpenGslb,
    /// The format of gdnsd's `config`.
    Gdnsd,
    /// The format of zone files, with PowerDNS's LUA records.
    PowerDns,
}

impl Format {
    /// Returns the format that a file seems to have.
    #[must_use]
    pub fn of(path: &Path, text: &str) -> Self {
        let is_yaml = path.extension().is_some_and(|it| it == "yaml" || it == "yml");
        match text {
            _ if is_yaml => Self::OpenGslb,
            text if is_named_corefile(path) || is_corefile(text) => Self::Corefile,
            text if is_gdnsd(text) => Self::Gdnsd,
            text if has_lua_record(text) => Self::PowerDns,
            _ => Self::NamedConf,
        }
    }
}

/// Whether a file is called as CoreDNS's are.
fn is_named_corefile(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.to_ascii_lowercase().contains("corefile")
}

/// Whether a line behind comments ends in a brace, and the next one is no statement of other
/// formats, which end in a semicolon or have an equals sign.
fn is_corefile(text: &str) -> bool {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut lines = text.lines().map(str::trim).filter(is_text);
    let Some(keys) = lines.next().and_then(|first| first.strip_suffix('{')) else { return false };
    let Some(plugin) = lines.next() else { return false };
    let words = keys.trim();
    let is_key = words.contains(['.', ':', '(']) && !words.contains(['=', '"', ';']);
    is_key && !plugin.contains([';', '=']) && !plugin.ends_with(',')
}

/// Whether the first word, behind comments, is a key with `=`, or includes a file.
fn is_gdnsd(text: &str) -> bool {
    let mut rest = text.trim_start();
    while rest.starts_with(['#', ';']) {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    let word = |c: char| c.is_whitespace() || "={}[],;#".contains(c);
    let behind = rest.find(word).map_or("", |end| rest[end..].trim_start());
    rest.starts_with("$include{") || behind.starts_with('=')
}

/// Whether a line has the word LUA before a string, as records of that type have.
fn has_lua_record(text: &str) -> bool {
    let is_lua = |line: &str| {
        let words = line.split('"').next().unwrap_or_default().split_ascii_whitespace();
        words.skip(1).any(|word| word.eq_ignore_ascii_case("LUA"))
            || line.trim_start().to_ascii_uppercase().starts_with("LUA ")
    };
    text.lines().filter(|line| !line.trim_start().starts_with(['#', ';', '/'])).any(is_lua)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_the_name_or_the_beginning_of_a_file() {
        for (path, text, expected) in [
            ("Corefile", "# one\n", Format::Corefile),
            ("coredns.conf", "# one\n.:53 {\n    errors\n}\n", Format::Corefile),
            ("x", "(a) {\n    log\n}\n. {\n    import a\n}\n", Format::Corefile),
            ("x", "options {\n  directory \"/x\";\n};", Format::NamedConf),
            ("x", "zone \"a.b\" {\n  type forward;\n};", Format::NamedConf),
            ("opengslb.yaml", "mode: overwatch\n", Format::OpenGslb),
            ("config", "# a\n; b\n options => { }", Format::Gdnsd),
            ("config", "plugins={}", Format::Gdnsd),
            ("config", "$include{x}", Format::Gdnsd),
            ("named.conf", "options { directory \"/x\"; };", Format::NamedConf),
            ("named.conf", "// a = b\nacl x { any; };", Format::NamedConf),
            ("x.zone", "@ SOA a b 1 2 3 4 5\nwww 60 IN LUA A \"all({})\"", Format::PowerDns),
            ("x.zone", "@ SOA a b 1 2 3 4 5\nwww A 192.0.2.1", Format::NamedConf),
        ] {
            assert_eq!(Format::of(Path::new(path), text), expected, "{text}");
        }
    }
}
