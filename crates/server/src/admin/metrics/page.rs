//! The text format of Prometheus.

use std::fmt::{Display, Write};

/// A label and its text.
pub type Label<'a> = (&'static str, &'a str);

/// Text under way.
#[derive(Default)]
pub struct Page(pub String);

impl Page {
    /// Begins a metric.
    pub fn metric(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n"); // never fails
    }

    /// Writes a value with its labels.
    pub fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            let text = text.replace('\\', r"\\").replace('"', r#"\""#);
            let _ = write!(self.0, "{label}=\"{text}\""); // never fails
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}"); // never fails
    }

    /// Writes a metric of a single value.
    pub fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.metric(name, kind, help);
        self.value(name, &[], value);
    }
}
