//! Names that are answered at home, and addresses that names outside should not have.

use super::Importer;
use super::clauses::Clauses;
use super::statement::Cursor;
use super::value;
use crate::document::Effect;
use crate::error::ImportError;
use zonda_wire::Name;

/// The key for special names that are forwarded like any name.
const FORWARDED: (&str, &str) = ("special-names", "forward");

impl<'s> Importer<'s> {
    /// Forwards special names, too, as named does below a zone with `forward only`.
    pub(super) fn forward_special_names(&mut self, from: Cursor<'s>) {
        self.set(FORWARDED, &[".".to_owned()][..], from);
    }

    /// Reads which of its empty zones named has, and which addresses it keeps from clients.
    pub(super) fn special_names(&mut self, options: &mut Clauses<'s>) -> Result<(), ImportError> {
        let enabled = options.take("empty-zones-enable")?;
        let disabled = options.take_all("disable-empty-zone");
        let mut names = Vec::new();
        for mut cursor in disabled.iter().copied() {
            names.push(name(&mut cursor)?);
        }
        let all_are_forwarded = self.settings.iter().any(|it| (it.section, it.key) == FORWARDED);
        if let Some(mut cursor) = enabled
            && !cursor.value("`yes` or `no`", value::yes_or_no)?
        {
            if !all_are_forwarded {
                self.forward_special_names(cursor);
            }
        } else if let (Some(first), false) = (disabled.first(), all_are_forwarded) {
            self.set(FORWARDED, &names[..], *first);
        }
        let Some(mut cursor) = options.take("deny-answer-addresses")? else { return Ok(()) };
        cursor.block("`{`")?;
        let why = "loopback, private and link-local addresses are kept away, and none else; \
            the answer is empty";
        self.leave(cursor, Effect::Differs, why);
        self.set(("zone.forward", "rebinding-protection"), true, cursor);
        if cursor.passes("except-from") {
            let mut names = Vec::new();
            for statement in cursor.block("`{`")? {
                names.push(name(&mut statement.cursor())?);
            }
            self.set(("zone.forward", "private-names"), &names[..], cursor);
        }
        cursor.end()
    }
}

/// Returns the next word, as the name of a zone without the dot at its end.
fn name(cursor: &mut Cursor<'_>) -> Result<String, ImportError> {
    let name: Name = cursor.parsed("the name of a zone")?;
    let text = name.to_lowercase().to_string();
    Ok(if text == "." { text } else { text.trim_end_matches('.').to_owned() })
}
