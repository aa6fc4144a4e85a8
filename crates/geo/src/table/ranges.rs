//! The value of every address of a family, as ranges in the order of addresses.

use super::address::Address;

/// Ranges that cover all addresses of a family.
///
/// # Invariants
/// - The first range starts at the lowest address, and starts ascend.
/// - Neighbours have different values, so that a range cannot be made wider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges<A> {
    /// First address of each range; it ends before the next one.
    starts: Vec<A>,
    /// Value of each range, beside `starts`.
    values: Vec<u32>,
}

impl<A: Address> Ranges<A> {
    /// Returns the ranges of no address yet; the first one that is pushed has to start at the
    /// lowest address.
    pub fn empty() -> Self {
        Self { starts: Vec::new(), values: Vec::new() }
    }

    /// Resolves prefixes, each with its first address, length and value, into ranges: the longest
    /// prefix wins, among equal ones the last. Addresses in none have the value `otherwise`.
    pub fn of_prefixes(mut prefixes: Vec<(A, u8, u32)>, otherwise: u32) -> Self {
        prefixes.sort_by_key(|&(start, length, _)| (start, length));
        let mut ranges = Self::empty();
        ranges.push(A::default(), otherwise);
        // The prefixes around the current address, the longest last: last address and value.
        let mut around: Vec<(A, u32)> = Vec::new();
        for (start, length, value) in prefixes {
            while let Some(&(end, _)) = around.last().filter(|(end, _)| *end < start) {
                ranges.leave(end, &mut around, otherwise);
            }
            ranges.push(start, value);
            around.push((start.last_of(A::BITS - u32::from(length)), value));
        }
        while let Some(&(end, _)) = around.last() {
            ranges.leave(end, &mut around, otherwise);
        }
        ranges.complete()
    }

    /// Continues behind the innermost prefix, which ends at `end`, with the value of the next one.
    fn leave(&mut self, end: A, around: &mut Vec<(A, u32)>, otherwise: u32) {
        around.pop();
        if let Some(next) = end.next() {
            self.push(next, around.last().map_or(otherwise, |&(_, value)| value));
        }
    }

    /// Appends a range from `start`, which is not below the start of the last one; at the same
    /// start, it replaces that one.
    pub fn push(&mut self, start: A, value: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.values.pop();
        }
        if self.values.last() != Some(&value) {
            self.starts.push(start);
            self.values.push(value);
        }
    }

    /// Gives back the memory that was kept for further ranges.
    pub fn complete(mut self) -> Self {
        self.starts.shrink_to_fit();
        self.values.shrink_to_fit();
        self
    }

    /// Returns the ranges of what `combine` makes of the values of two lists of ranges.
    pub fn combined(&self, other: &Self, mut combine: impl FnMut(u32, u32) -> u32) -> Self {
        let mut ranges = Self::empty();
        let (mut mine, mut theirs) = (0, 0);
        let mut start = A::default();
        loop {
            ranges.push(start, combine(self.values[mine], other.values[theirs]));
            let (next_mine, next_theirs) =
                (self.starts.get(mine + 1), other.starts.get(theirs + 1));
            let Some(&next) = next_mine.into_iter().chain(next_theirs).min() else {
                return ranges.complete();
            };
            mine += usize::from(next_mine == Some(&next));
            theirs += usize::from(next_theirs == Some(&next));
            start = next;
        }
    }

    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the value of a range.
    pub fn value(&self, range: usize) -> u32 {
        self.values[range]
    }

    /// Returns the first address of a range.
    pub fn start(&self, range: usize) -> A {
        self.starts[range]
    }

    /// Returns the last address of a range.
    pub fn end(&self, range: usize) -> A {
        self.starts.get(range + 1).and_then(|next| next.previous()).unwrap_or(A::MAX)
    }

    /// Finds the value of an address, and the length of the widest prefix around it that has it.
    pub fn find(&self, address: A) -> (u32, u8) {
        let range = self.starts.partition_point(|start| *start <= address) - 1;
        (self.values[range], self.scope(range, address))
    }

    /// Returns the length of the widest prefix around an address within a range.
    pub fn scope(&self, range: usize, address: A) -> u8 {
        let before = self.start(range).previous().map_or(0, |before| address.shared(before) + 1);
        let behind = self.end(range).next().map_or(0, |behind| address.shared(behind) + 1);
        before.max(behind) as u8
    }

    /// Returns the octets of memory that the ranges use.
    pub fn memory(&self) -> usize {
        self.starts.capacity() * size_of::<A>() + self.values.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(list: &[(u32, u32)]) -> Ranges<u32> {
        let mut ranges = Ranges::empty();
        list.iter().for_each(|&(start, value)| ranges.push(start, value));
        ranges
    }

    #[test]
    fn nested_prefixes_that_end_together_leave_one_boundary() {
        let prefixes = vec![(0, 1, 7), (0x4000_0000, 2, 8), (0x7000_0000, 4, 9)];
        let expected = [(0, 7), (0x4000_0000, 8), (0x7000_0000, 9), (0x8000_0000, 0)];
        assert_eq!(Ranges::of_prefixes(prefixes, 0), ranges(&expected));
    }

    #[test]
    fn a_prefix_with_the_value_around_it_makes_no_range() {
        let prefixes = vec![(0, 1, 7), (0x4000_0000, 8, 7), (0x8000_0000, 1, 7)];
        assert_eq!(Ranges::of_prefixes(prefixes, 0), ranges(&[(0, 7)]));
    }

    #[test]
    fn the_last_of_equal_prefixes_wins() {
        let prefixes = vec![(0, 8, 1), (0, 8, 2), (0, 8, 0)];
        assert_eq!(Ranges::of_prefixes(prefixes, 0), ranges(&[(0, 0)]));
    }

    #[test]
    fn combined_ranges_merge_where_the_result_is_the_same() {
        let (left, right) = (ranges(&[(0, 1), (10, 2), (20, 3)]), ranges(&[(0, 5), (15, 6)]));
        let pairs = left.combined(&right, |left, right| left * 10 + right);
        assert_eq!(pairs, ranges(&[(0, 15), (10, 25), (15, 26), (20, 36)]));
        assert_eq!(left.combined(&right, |_, right| right), right);
        assert_eq!(left.combined(&right, |left, _| left), left);
    }

    #[test]
    fn the_scope_is_the_widest_prefix_within_the_range() {
        let ranges = ranges(&[(0, 1), (0xc000_0200, 2), (0xc000_0300, 1)]);
        assert_eq!(ranges.scope(1, 0xc000_02ff), 24);
        assert_eq!(ranges.scope(0, 0), 1);
        assert_eq!(ranges.scope(0, 0xc000_01ff), 23);
        assert_eq!(ranges.scope(2, 0xc000_0300), 24);
        assert_eq!(ranges.scope(2, 0xffff_ffff), 3);
    }
}
