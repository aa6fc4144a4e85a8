//! The fields of a message.

use super::decode::Malformed;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'m> {
    /// An integer or a truth value.
    Number(u64),
    /// Octets: a text, a message, or a number of fixed length.
    Octets(&'m [u8]),
}

impl<'m> Value<'m> {
    /// Returns the octets.
    ///
    /// # Errors
    /// When it is a number.
    pub fn octets(self) -> Result<&'m [u8], Malformed> {
        match self {
            Self::Octets(octets) => Ok(octets),
            Self::Number(_) => Err(Malformed),
        }
    }

    /// Returns the text.
    ///
    /// # Errors
    /// When it is no text in UTF-8.
    pub fn text(self) -> Result<&'m str, Malformed> {
        std::str::from_utf8(self.octets()?).map_err(|_| Malformed)
    }

    /// Returns the fields of the message that the value is.
    ///
    /// # Errors
    /// When it is a number.
    pub fn fields(self) -> Result<Fields<'m>, Malformed> {
        self.octets().map(Fields)
    }

    /// Returns the number.
    ///
    /// # Errors
    /// When it is none.
    pub fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Octets(_) => Err(Malformed),
        }
    }
}

/// The fields of a message that have not been read, as they stand in it.
#[derive(Clone, Debug)]
pub struct Fields<'m>(pub &'m [u8]);

impl<'m> Fields<'m> {
    /// Returns the number of the next field and its value; none at the end.
    ///
    /// # Errors
    /// When the message is cut off, or has a field of a kind that is not used any more.
    pub fn next(&mut self) -> Result<Option<(u64, Value<'m>)>, Malformed> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Octets(self.take(8)?),
            2 => {
                let len = self.varint()?;
                Value::Octets(self.take(len)?)
            }
            5 => Value::Octets(self.take(4)?),
            _ => return Err(Malformed),
        };
        Ok(Some((key >> 3, value)))
    }

    /// Takes so many octets.
    fn take(&mut self, len: u64) -> Result<&'m [u8], Malformed> {
        let len = usize::try_from(len).map_err(|_| Malformed)?;
        let (octets, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(octets)
    }

    /// Takes a number of up to ten octets.
    fn varint(&mut self) -> Result<u64, Malformed> {
        let (number, len) = varint(self.0)?.ok_or(Malformed)?;
        self.0 = &self.0[len..];
        Ok(number)
    }
}

/// Reads a number at the beginning of octets; returns it and how many octets it has, or none if the
/// octets end in it.
///
/// # Errors
/// When it has more than ten octets.
#[inline]
pub fn varint(octets: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    let mut number = 0;
    for (place, octet) in octets.iter().take(10).enumerate() {
        number |= u64::from(octet & 0x7f) << (7 * place);
        if octet & 0x80 == 0 {
            return Ok(Some((number, place + 1)));
        }
    }
    if octets.len() < 10 { Ok(None) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn fields_of_all_kinds_are_read_in_their_order() {
        let message = b"\x08\x96\x01\x12\x02hi\x19abcdefgh\x25wxyz\xfa\x01\x00";
        let mut fields = Fields(message);
        let expected = [
            (1, Value::Number(150)),
            (2, Value::Octets(b"hi")),
            (3, Value::Octets(b"abcdefgh")),
            (4, Value::Octets(b"wxyz")),
            (31, Value::Octets(b"")),
        ];
        for field in expected {
            assert_eq!(fields.next(), Ok(Some(field)));
        }
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn a_message_that_is_cut_off_or_has_another_kind_of_field_is_refused() {
        let endless = [0xff; 11];
        for message in [&b"\x08"[..], b"\x12\x02h", b"\x19abc", b"\x0b", b"\x0c", &endless] {
            assert_eq!(Fields(message).next(), Err(Malformed), "{message:?}");
        }
        let large = b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x";
        assert_eq!(Fields(large).next(), Err(Malformed));
    }
}
