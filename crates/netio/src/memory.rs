//! Advice to the kernel and the allocator about memory.

use std::io;

/// Octets of a huge page on the processors we run on.
const HUGE_PAGE: usize = 2 << 20;

/// Moves `memory` into huge pages, as far as whole ones lie within it, so that reading it at random
/// misses the processor's table of pages less often.
///
/// The contents stay as they are; readers may read meanwhile.
///
/// # Errors
/// When the kernel has no huge page free, or cannot do this (before Linux 6.1): all is as before.
pub fn use_huge_pages<T>(memory: &[T]) -> io::Result<()> {
    let start = (memory.as_ptr() as usize).next_multiple_of(HUGE_PAGE);
    let end = (memory.as_ptr() as usize + size_of_val(memory)) / HUGE_PAGE * HUGE_PAGE;
    if start >= end {
        return Ok(());
    }
    // SAFETY: the range lies within `memory`, which outlives the call; collapsing changes which
    // physical pages hold it, never what they hold.
    match unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_COLLAPSE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives memory that was freed back to the system, wherever it lies in the heap.
///
/// glibc returns by itself what lies at the end of a heap and keeps the rest for later. What a
/// large load used lies between what it leaves behind, so that the process grew with every reload.
/// Other allocators give back by themselves.
pub fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: touches only memory that the allocator holds and nobody uses, under its own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_its_contents_in_huge_pages() {
        let memory: Vec<u32> = (0..4 << 20).collect();
        let result = use_huge_pages(&memory);
        assert!(memory.iter().copied().eq(0..4 << 20), "{result:?}");
    }

    #[test]
    fn memory_without_a_whole_huge_page_is_left_alone() {
        assert!(use_huge_pages(&[0_u8; 4096]).is_ok());
        assert!(use_huge_pages::<u8>(&[]).is_ok());
    }
}
