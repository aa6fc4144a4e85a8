//! `zonda import`: the configuration of another server.

use crate::output::{self, Failure};
use clap::{Args, ValueEnum};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use zonda_import::{
    Files, Format, ImportError, NewFile, corefile, gdnsd, named_conf, opengslb, powerdns,
};
use zonda_wire::Name;

/// Turn the configuration of another server into a zonda.toml
///
/// Reads BIND's named.conf, CoreDNS's Corefile, OpenGSLB's YAML, gdnsd's config with the zone files
/// beside it, and zone files with PowerDNS's LUA records. Each key names the line that it comes
/// from. What became of the rest goes to standard error, a line each: what is lost, what differs,
/// and what needs no counterpart. Zone files are written into the folder zones beside the
/// zonda.toml, addresses that stand in a Corefile into the folder hosts. The exit code is 2 when a
/// file cannot be read or is none that the other server would take, and 1 when a line of a Corefile
/// is lost.
#[derive(Args)]
#[command(after_help = "\
Examples:
  zonda import /etc/bind/named.conf -o zonda.toml
  zonda import /etc/coredns/Corefile -o zonda.toml
  zonda import /etc/opengslb/config.yaml -o zonda.toml
  zonda import /etc/gdnsd/config -o zonda.toml
  zonda import example.com.zone example.net.zone --from powerdns -o zonda.toml
  zonda check --config zonda.toml")]
pub struct Import {
    /// The configuration; files that it includes are read too. Of zone files, there may be several
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read this format; without it, name and beginning of the file tell
    #[arg(long, value_name = "FORMAT")]
    from: Option<FormatWord>,
    /// The name of the zone in a zone file, where its SOA record does not tell
    #[arg(long, value_name = "NAME")]
    origin: Option<Name>,
    /// Write to this file, which must not exist, in place of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// A format as it is given on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum FormatWord {
    /// The named.conf of BIND
    Bind,
    /// The Corefile of CoreDNS
    Coredns,
    /// The YAML of OpenGSLB
    Opengslb,
    /// The config of gdnsd, with its zone files
    Gdnsd,
    /// Zone files with PowerDNS's LUA records
    Powerdns,
}

impl Import {
    /// Imports.
    pub fn run(self) -> ExitCode {
        output::end(self.import())
    }

    fn import(self) -> Result<ExitCode, Failure> {
        // Paths in the result start from elsewhere than those in the file, so all are whole.
        let paths: Result<Vec<_>, _> = self.files.iter().map(|file| whole(file)).collect();
        let (import, format) = self.read(&paths?)?;
        match &self.output {
            Some(path) => {
                write_files(path, &import.files)?;
                write_new(path, &import.toml)?;
            }
            None if !import.files.is_empty() => {
                let why = "other files are written beside the zonda.toml: say where, by `-o FILE`";
                return Err(why.to_owned().into());
            }
            None => output::print(|out| out.write_all(import.toml.as_bytes()))?,
        }
        import.report.iter().for_each(output::line);
        let is_incomplete = format == Format::Corefile && import.losses().next().is_some();
        Ok(ExitCode::from(u8::from(is_incomplete)))
    }

    /// Reads the configuration in its format, which is returned as well.
    fn read(&self, paths: &[PathBuf]) -> Result<(zonda_import::Import, Format), Failure> {
        let [path, more @ ..] = paths else { return Err("there is no file".to_owned().into()) };
        let format = match self.from {
            Some(FormatWord::Bind) => Format::NamedConf,
            Some(FormatWord::Coredns) => Format::Corefile,
            Some(FormatWord::Opengslb) => Format::OpenGslb,
            Some(FormatWord::Gdnsd) => Format::Gdnsd,
            Some(FormatWord::Powerdns) => Format::PowerDns,
            None => {
                let octets = fs::read(path).unwrap_or_default(); // it is read again, and told
                Format::of(path, &String::from_utf8_lossy(&octets))
            }
        };
        if format != Format::PowerDns && (!more.is_empty() || self.origin.is_some()) {
            let why = "several files, and --origin, are for zone files with LUA records: say \
                `--from powerdns`";
            return Err(why.to_owned().into());
        }
        let import = match format {
            Format::NamedConf => named_conf::import(path, &mut Disk),
            Format::Corefile => corefile::import(path, &mut Disk, &|name| std::env::var(name).ok()),
            Format::OpenGslb => opengslb::import(path, &mut Disk),
            Format::Gdnsd => gdnsd::import(path, &mut Disk),
            Format::PowerDns => powerdns::import(paths, self.origin.as_ref(), &mut Disk),
        };
        Ok((import.map_err(|error| self.explain(format, &error))?, format))
    }

    /// Returns what is wrong with the file, or which kind of file it is instead.
    fn explain(&self, format: Format, error: &ImportError) -> String {
        let file = self.files.first().map_or(Path::new(""), PathBuf::as_path);
        match fs::read_to_string(file) {
            Ok(text) if format != Format::PowerDns && zonda_config::looks_like_a_zone(&text) => {
                let file = file.display();
                format!(
                    "{file}: this is a zone file, and no named.conf: serve it by `zonda serve \
                     --zone NAME={file}`"
                )
            }
            _ => error.to_string(),
        }
    }
}

/// Returns a path from the root; of a folder with a `config`, as gdnsd has, that of the file.
fn whole(file: &Path) -> Result<PathBuf, String> {
    let path = std::path::absolute(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let inner = path.join("config");
    Ok(if path.is_dir() && inner.is_file() { inner } else { path })
}

/// Writes zone files below the folder of the zonda.toml; none if one is there already.
fn write_files(toml: &Path, files: &[NewFile]) -> Result<(), String> {
    if files.is_empty() {
        return Ok(());
    }
    let folder = toml.parent().unwrap_or(Path::new(""));
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    if let Some(path) = paths.iter().map(PathBuf::as_path).chain([toml]).find(|it| it.exists()) {
        return Err(not_written(path, &io::Error::from(io::ErrorKind::AlreadyExists)));
    }
    for (path, file) in paths.iter().zip(files) {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        write_new(path, &file.text)?;
    }
    Ok(())
}

/// Writes a file that must not exist.
fn write_new(path: &Path, text: &str) -> Result<(), String> {
    fs::File::create_new(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| not_written(path, &error))
}

/// Says why a file was not written, and what to do.
fn not_written(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::AlreadyExists => format!(
            "{path}: it exists already, and an import overwrites no file: move it away, or name \
             another one by `-o FILE`"
        ),
        _ => format!("{path}: {error}"),
    }
}

/// The files of this machine.
pub struct Disk;

impl Files for Disk {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<String>> {
        let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
        let names: io::Result<Vec<_>> = names.collect();
        Ok(names?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }
}
