//! The log of queries: one file, or standard output, for whatever named's channels do.

use super::Importer;
use super::clauses::Clauses;
use super::left;
use super::statement::Statement;
use super::value;
use crate::document::Effect;
use crate::error::ImportError;
use std::collections::HashMap;

/// What a channel is made of, by its name.
type Channels<'s> = HashMap<&'s str, &'s [Statement]>;

/// Severities that keep queries from a channel: named logs them at `info`.
const ABOVE_INFO: [&str; 4] = ["notice", "warning", "error", "critical"];

/// `output` for the standard output.
const STDOUT: &str = "stdout";
/// `output` for no log.
const OFF: &str = "off";
/// Why a log of the system is another one here.
const NO_SYSLOG: &str = "queries go to standard output, which systemd has in its journal";

/// Where a channel leads.
enum Destination<'s> {
    /// A file of this path.
    File(&'s str),
    /// Standard error, or the system's log.
    Stream,
    /// The channel drops what it gets.
    Nowhere,
}

impl<'s> Importer<'s> {
    /// Reads whether and where queries are logged.
    pub(super) fn query_log(
        &mut self,
        options: &mut Clauses<'s>,
        top: &mut Clauses<'s>,
    ) -> Result<(), ImportError> {
        let querylog = options.take("querylog")?;
        let is_on = match querylog {
            Some(mut cursor) => Some(cursor.value("`yes` or `no`", value::yes_or_no)?),
            None => None,
        };
        let (mut channels, mut queries) = (Channels::new(), None);
        for mut logging in top.take_all("logging") {
            let mut clauses = Clauses::new(logging.block("`{`")?);
            logging.end()?;
            for mut channel in clauses.take_all("channel") {
                let name = channel.word("the name of a channel")?;
                channels.insert(name, channel.block("`{`")?);
                channel.end()?;
            }
            for category in clauses.take_all("category") {
                let mut words = category;
                if !words.word("a category")?.eq_ignore_ascii_case("queries") {
                    let why = "the server's log goes to standard error, see [log]";
                    self.leave(category, Effect::Differs, why);
                    continue;
                }
                queries = Some((category, words.block("`{`")?));
                words.end()?;
            }
            self.left.extend(clauses.rest().map(left::explain));
        }
        let from = querylog.or(queries.map(|(category, _)| category));
        if let Some(from) = from.filter(|_| is_on != Some(false)) {
            let output = match queries {
                Some((_, names)) => self.log_output(names, &channels)?,
                None => STDOUT.to_owned(),
            };
            self.set(("query-log", "output"), output.as_str(), from);
        }
        Ok(())
    }

    /// Returns the place that these channels come down to: the first file among them, else standard
    /// output. What differs is reported.
    fn log_output(
        &mut self,
        names: &'s [Statement],
        channels: &Channels<'s>,
    ) -> Result<String, ImportError> {
        let mut found = Vec::new();
        for name in names {
            match destination(name, channels)? {
                Destination::Nowhere => {}
                leads_to => found.push((name, leads_to)),
            }
        }
        let file = found.iter().position(|(_, to)| matches!(to, Destination::File(_)));
        let taken = file.unwrap_or_default();
        let mut output = OFF.to_owned();
        for (place, (name, to)) in found.into_iter().enumerate() {
            if place != taken {
                let why = "queries are logged in one place: `output` in [query-log]";
                self.leave(name.cursor(), Effect::Lost, why);
                continue;
            }
            output = match to {
                Destination::File(file) => self.base.join(file).display().to_string(),
                _ => STDOUT.to_owned(),
            };
            match channels.get(name.keyword()) {
                Some(clauses) => self.explain_channel(clauses),
                None if name.keyword() == "default_stderr" => {}
                None => self.leave(name.cursor(), Effect::Differs, NO_SYSLOG),
            }
        }
        Ok(output)
    }

    /// Reports what differs here from a channel.
    fn explain_channel(&mut self, clauses: &'s [Statement]) {
        for clause in clauses {
            let (effect, why) = match clause.keyword().to_ascii_lowercase().as_str() {
                "file" if clause.elements.len() > 2 => (
                    Effect::Differs,
                    "the file grows until somebody moves it away, such as logrotate, \
                    and sends SIGHUP",
                ),
                "file" | "stderr" | "null" => continue,
                "syslog" => (Effect::Differs, NO_SYSLOG),
                "severity" if ABOVE_INFO.iter().any(|severity| clause.says(severity)) => {
                    (Effect::Differs, "each query is logged; named logs them at `info`")
                }
                "severity" => (Effect::Needless, "each query is logged"),
                "buffered" => (Effect::Differs, "lines are written together, by a thread for that"),
                _ => (
                    Effect::Differs,
                    "a line has the time, the client and the question; \
                    see `format` in [query-log]",
                ),
            };
            self.leave(clause.cursor(), effect, why);
        }
    }
}

/// Returns where the channel of a name leads.
fn destination<'s>(
    name: &Statement,
    channels: &Channels<'s>,
) -> Result<Destination<'s>, ImportError> {
    let Some(clauses) = channels.get(name.keyword()).copied() else {
        let is_null = name.keyword() == "null";
        return Ok(if is_null { Destination::Nowhere } else { Destination::Stream });
    };
    for clause in clauses {
        match clause.keyword().to_ascii_lowercase().as_str() {
            "file" => return Ok(Destination::File(clause.arguments().word("a file")?)),
            "null" => return Ok(Destination::Nowhere),
            _ => {}
        }
    }
    Ok(Destination::Stream)
}
