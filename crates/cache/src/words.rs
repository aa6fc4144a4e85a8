//! Memory that many threads read while one writes: 64-bit words, zero at first.
//!
//! A word is atomic, a run of words is not: a reader of several must check afterwards whether they
//! belong together. The memory is allocated before the first word is written, and the system
//! provides it page by page then, so that a large empty cache costs nothing.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Octets of a word.
pub const WORD_BYTES: usize = 8;
/// Octets that a processor fetches at a time.
pub const LINE_BYTES: usize = 64;
/// Words in a line.
pub const LINE_WORDS: usize = LINE_BYTES / WORD_BYTES;

/// A run of words that begins at a cache line.
pub struct Words {
    /// The memory, made by the first call of [`allocate`](Self::allocate).
    all: OnceLock<Allocation>,
    len: usize,
}

/// The memory of a run.
struct Allocation {
    words: Box<[AtomicU64]>,
    /// The first word of the run in `words`, which the allocator aligns to 16 octets only. Asking
    /// it for more would make it write zeroes over memory that is zero.
    first: usize,
}

impl Words {
    /// `len` words, all zero, of which none is there yet.
    pub fn new(len: usize) -> Self {
        Self { all: OnceLock::new(), len }
    }

    /// Returns all words; none before there was reason to write one, which stands for zeroes.
    #[inline]
    pub fn as_slice(&self) -> &[AtomicU64] {
        match self.all.get() {
            Some(Allocation { words, first }) => &words[*first..*first + self.len],
            None => &[],
        }
    }

    /// Allocates the memory of all words; whether it is there. Even an allocation of which no word
    /// is touched takes a page, for what the allocator notes of it.
    ///
    /// A system that does not overcommit memory may refuse it, and may grant it later.
    #[must_use]
    pub fn allocate(&self) -> bool {
        if self.all.get().is_none() {
            let len = self.len + LINE_WORDS - 1;
            let allocated = bytemuck::allocation::try_zeroed_slice_box::<AtomicU64>(len);
            let Ok(words) = allocated else { return false };
            let first = words.as_ptr().align_offset(LINE_BYTES);
            debug_assert!(first < LINE_WORDS);
            // Another writer may have been first; its words are as good.
            let _ = self.all.set(Allocation { words, first });
        }
        true
    }
}

/// Returns how many words hold `octets` octets.
#[inline]
pub const fn words_for(octets: usize) -> usize {
    octets.div_ceil(WORD_BYTES)
}

/// Returns the octets as words; the last is filled up with zeroes.
#[inline]
pub fn to_words(octets: &[u8]) -> impl Iterator<Item = u64> {
    octets.chunks(WORD_BYTES).map(|chunk| {
        let mut word = [0; WORD_BYTES];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

/// Copies as many octets as `out` has room for from the words before it.
#[inline]
pub fn copy_octets(words: &[AtomicU64], out: &mut [u8]) {
    let mut chunks = out.chunks_exact_mut(WORD_BYTES);
    let mut words = words.iter();
    for (chunk, word) in chunks.by_ref().zip(words.by_ref()) {
        chunk.copy_from_slice(&word.load(Relaxed).to_le_bytes());
    }
    let rest = chunks.into_remainder();
    if let (false, Some(word)) = (rest.is_empty(), words.next()) {
        rest.copy_from_slice(&word.load(Relaxed).to_le_bytes()[..rest.len()]);
    }
}

/// Whether the words hold exactly these octets.
#[inline]
pub fn hold_octets(words: &[AtomicU64], octets: &[u8]) -> bool {
    words.iter().zip(to_words(octets)).all(|(word, wanted)| word.load(Relaxed) == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_the_system_refuses_is_told_and_leaves_no_words() {
        let words = Words::new(usize::MAX >> 8);
        assert!(!words.allocate());
        assert!(words.as_slice().is_empty());
        let words = Words::new(3);
        assert!(words.allocate());
        assert_eq!(words.as_slice().len(), 3);
    }
}
