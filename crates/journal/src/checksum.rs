//! Checksum of 64 bits over octets, eight at a time.
//!
//! Each step maps the sum one to one for a given word, and the word one to one for a given sum:
//! damage within one word is always found, and other damage is missed with a chance of 2⁻⁶⁴. It
//! finds accidents, not forgery.

/// Odd, so that multiplication loses nothing; the fraction of the golden ratio, which mixes well.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A checksum that is being computed.
#[derive(Clone)]
pub struct Checksum {
    /// The sum of all words so far.
    sum: u64,
    /// The octets that do not fill a word yet, then zeros.
    word: [u8; 8],
    /// How many octets there are in the word: 0 to 7.
    held: usize,
    /// How many octets were added in all.
    octets: u64,
}

impl Checksum {
    /// Begins with a number that is part of what is summed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut sum = Self { sum: FACTOR, word: [0; 8], held: 0, octets: 0 };
        sum.step(seed);
        sum
    }

    /// Adds octets; it makes no difference how they are divided into calls.
    pub fn add(&mut self, mut octets: &[u8]) {
        self.octets += octets.len() as u64;
        while self.held > 0 || octets.len() < 8 {
            let Some((first, rest)) = octets.split_first() else { return };
            self.word[self.held] = *first;
            self.held += 1;
            octets = rest;
            if self.held == 8 {
                self.step(u64::from_be_bytes(self.word));
                (self.word, self.held) = ([0; 8], 0);
            }
        }
        let (words, rest) = octets.as_chunks::<8>();
        words.iter().for_each(|word| self.step(u64::from_be_bytes(*word)));
        self.word[..rest.len()].copy_from_slice(rest);
        self.held = rest.len();
    }

    /// Returns the checksum.
    #[must_use]
    pub fn finish(mut self) -> u64 {
        self.step(u64::from_be_bytes(self.word));
        self.step(self.octets);
        self.sum
    }

    /// Adds a word.
    fn step(&mut self, word: u64) {
        let product = (self.sum ^ word).wrapping_mul(FACTOR);
        self.sum = product ^ product >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(parts: &[&[u8]]) -> u64 {
        let mut sum = Checksum::new(7);
        parts.iter().for_each(|part| sum.add(part));
        sum.finish()
    }

    #[test]
    fn the_checksum_does_not_depend_on_how_octets_are_divided() {
        let octets: Vec<u8> = (0..100).collect();
        for (one, two) in (0..=100).flat_map(|one| (one..=100).map(move |two| (one, two))) {
            assert_eq!(sum(&[&octets[..one], &octets[one..two], &octets[two..]]), sum(&[&octets]));
        }
    }

    #[test]
    fn each_changed_octet_and_each_length_has_another_checksum() {
        let octets = [0; 40];
        let mut sums: Vec<u64> = (0..=40).map(|len| sum(&[&octets[..len]])).collect();
        for at in 0..40 {
            let mut changed = octets;
            changed[at] = 1;
            sums.push(sum(&[&changed]));
        }
        let count = sums.len();
        sums.sort_unstable();
        sums.dedup();
        assert_eq!(sums.len(), count);
    }
}
