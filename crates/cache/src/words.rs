//! Memory that many threads read while one writes: 64-bit words, zero at first.
//!
//! A word is atomic, a run of words is not: who reads several must find out afterwards whether they
//! belong together. The system hands the memory out page by page when it is first written, so that
//! a large empty cache costs nothing.

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
    all: Box<[AtomicU64]>,
    /// The first word of the run in `all`, which the allocator aligns to 16 octets only. Asking it
    /// for more would make it write zeroes over memory that is zero.
    first: usize,
    len: usize,
}

impl Words {
    /// `len` words, all zero.
    pub fn new(len: usize) -> Self {
        let all = bytemuck::allocation::zeroed_slice_box::<AtomicU64>(len + LINE_WORDS - 1);
        let first = all.as_ptr().align_offset(LINE_BYTES);
        debug_assert!(first < LINE_WORDS);
        Self { all, first, len }
    }

    /// All words.
    #[inline]
    pub fn as_slice(&self) -> &[AtomicU64] {
        &self.all[self.first..self.first + self.len]
    }
}

/// How many words hold `octets` octets.
#[inline]
pub const fn words_for(octets: usize) -> usize {
    octets.div_ceil(WORD_BYTES)
}

/// The octets as words; the last is filled up with zeroes.
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
