//! Names as octets whose order is the canonical order of names (rfc4034#6.1).
//!
//! The labels come from the right, each ended by the octet 0, so that a name stands right before
//! the names below it. Octets 0 and 1 within a label are written as 1 1 and 1 2.

use super::TooLarge;
use zonda_wire::name;

/// Most octets of a form: twice those of a name, and the two of `*` before a name that is as long
/// as a name can be.
const FORM_MAX: usize = 2 * (name::NAME_BYTES_MAX + 2);

/// A name above which there is a zone's apex, as octets that sort.
#[derive(Clone, Copy)]
pub(super) struct SortForm {
    /// The octets, those in use first.
    octets: [u8; FORM_MAX],
    /// The number of octets in use.
    len: usize,
}

impl SortForm {
    /// The form of the labels of a name above the apex.
    pub(super) fn new(relative_owner: &[u8]) -> Self {
        let mut starts = [0_u8; name::LABELS_MAX + 1];
        let (mut count, mut at) = (0, 0);
        while let (Some(&len), true) = (relative_owner.get(at), count < starts.len()) {
            starts[count] = at as u8; // the last label begins before octet 256
            count += 1;
            at += 1 + usize::from(len);
        }
        let mut form = Self { octets: [0; FORM_MAX], len: 0 };
        for &start in starts[..count].iter().rev() {
            let start = usize::from(start);
            let end = start + 1 + usize::from(relative_owner[start]);
            for octet in relative_owner.get(start + 1..end).unwrap_or_default() {
                match octet.to_ascii_lowercase() {
                    low @ (0 | 1) => {
                        form.push(1);
                        form.push(low + 1);
                    }
                    octet => form.push(octet),
                }
            }
            form.push(0);
        }
        form
    }

    /// Appends an octet.
    fn push(&mut self, octet: u8) {
        if let Some(place) = self.octets.get_mut(self.len) {
            *place = octet;
            self.len += 1;
        }
    }

    /// The octets.
    pub(super) fn as_octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

/// A name in lower case, wire form, in memory of its own.
#[derive(Clone, Copy)]
pub struct OwnerName {
    /// The octets, those in use first.
    octets: [u8; name::NAME_BYTES_MAX],
    /// The number of octets in use.
    len: u8,
}

impl OwnerName {
    /// The name of labels above an apex.
    pub(super) fn new(relative_owner: &[u8], apex: &[u8]) -> Result<Self, TooLarge> {
        let mut name = Self { octets: [0; name::NAME_BYTES_MAX], len: 0 };
        let len = relative_owner.len() + apex.len();
        let octets = name.octets.get_mut(..len).ok_or(TooLarge)?;
        octets[..relative_owner.len()].copy_from_slice(relative_owner);
        octets[relative_owner.len()..].copy_from_slice(apex);
        name.len = len as u8; // NAME_BYTES_MAX fits
        Ok(name)
    }

    /// The name above an apex that has a form.
    pub(super) fn from_form(form: &[u8], apex: &[u8]) -> Self {
        let mut name = Self { octets: [0; name::NAME_BYTES_MAX], len: 0 };
        // From the right: the labels' order is reversed, and their lengths come to light last.
        let mut start = name::NAME_BYTES_MAX - apex.len();
        name.octets[start..].copy_from_slice(apex);
        for label in form.split_inclusive(|octet| *octet == 0) {
            let label = label.strip_suffix(b"\0").unwrap_or(label);
            let escapes = label.iter().filter(|octet| **octet == 1);
            // 1 1 and 1 2 are one octet each; of 1 1 both match.
            let len = label.len() - escapes.count() + pairs_of_ones(label);
            start = start.saturating_sub(1 + len);
            name.octets[start] = len as u8; // a label has at most 63 octets
            let mut octets = label.iter();
            for place in &mut name.octets[start + 1..start + 1 + len] {
                *place = match octets.next() {
                    Some(1) => octets.next().map_or(0, |octet| octet.saturating_sub(1)),
                    octet => octet.copied().unwrap_or_default(),
                };
            }
        }
        name.octets.copy_within(start.., 0);
        name.len = (name::NAME_BYTES_MAX - start) as u8; // at most 255
        name
    }

    /// The name in lower case, wire form.
    #[must_use]
    pub fn as_wire(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }
}

/// How many escaped zeros, written 1 1, a label has.
fn pairs_of_ones(label: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < label.len() {
        if label[at] == 1 {
            count += usize::from(label.get(at + 1) == Some(&1));
            at += 1;
        }
        at += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use zonda_testkit::generate::Random;

    /// A name's labels of octets that are easily confused.
    fn labels(random: &mut Random) -> Vec<u8> {
        let mut wire = Vec::new();
        for _ in 0..random.below(5) {
            let len = 1 + random.below(4);
            wire.push(len as u8);
            wire.extend((0..len).map(|_| b"\x00\x01\x02ab*\xff"[random.below(7)]));
        }
        wire
    }

    #[test]
    fn forms_sort_as_names_do_and_give_them_back() {
        let mut random = Random::new(5);
        for _ in 0..20_000 {
            let (one, two) = (labels(&mut random), labels(&mut random));
            let forms = [&one, &two].map(|it| SortForm::new(it));
            let order = forms[0].as_octets().cmp(forms[1].as_octets());
            assert_eq!(order, name::canonical_cmp(&one, &two), "{one:?} {two:?}");
            let apex = b"\x07example\0";
            let back = OwnerName::from_form(forms[0].as_octets(), apex);
            assert_eq!(back.as_wire(), [&one[..], apex].concat());
            let is_below = two.ends_with(&one)
                && name::is_at_or_below(&[&two[..], b"\0"].concat(), &[&one[..], b"\0"].concat());
            assert_eq!(forms[1].as_octets().starts_with(forms[0].as_octets()), is_below);
        }
    }

    #[test]
    fn the_longest_name_has_a_form() {
        let labels = [[63; 64], [63; 64], [63; 64]].concat();
        let wire = [&labels[..], &[61], &[0; 61]].concat();
        let form = SortForm::new(&wire);
        assert_eq!(
            OwnerName::from_form(form.as_octets(), &[0]).as_wire(),
            [&wire[..], &[0]].concat()
        );
    }
}
