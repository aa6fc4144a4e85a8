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

/// Octets from which an allocation gets pages of its own.
const OWN_PAGES_MIN: libc::c_int = 16 << 10;
/// Allocations that may have pages of their own at a time. The kernel allows a process 65,530
/// mappings, and threads need some.
const OWN_PAGES_COUNT_MAX: libc::c_int = 1024;

/// Has the allocator take pages of their own for large allocations, which the system hands out
/// zeroed and only as they are touched. For programs; a library leaves the allocator as it is.
///
/// Buffers for the largest message, and tables that fill as queries come, are asked for zeroed.
/// From a heap that was used before, the allocator would have to clear them, and they would take up
/// memory before their first use. glibc's own limit is 128 KiB, and grows.
pub fn map_large_allocations() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two parameters of the allocator, under its own locks; unknown ones are refused.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_PAGES_MIN);
        libc::mallopt(libc::M_MMAP_MAX, OWN_PAGES_COUNT_MAX);
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

/// Drops the pages of the program's and its libraries' code and constants from the process's
/// memory, so that those that only the start needed do not count as used for as long as it lives.
/// Returns how many octets are mapped that way; 0 where `/proc` is not mounted.
///
/// The kernel maps 64 KiB around each page that is touched. What is needed again is mapped again
/// from the page cache, where the files' pages stay. What lies behind the code in a file is left
/// alone: relocation has written there before it became read-only.
pub fn drop_code_pages() -> usize {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return 0 };
    let mut dropped = 0;
    for (start, end) in code_mappings(&maps) {
        // SAFETY: the range is a private mapping of a file: of its code, or of its beginning, with
        // the ELF header and the constants in front of the code. Neither was ever writable, since
        // nothing here has relocations in its code, and no library is unloaded. So all its contents
        // are the file's, from which the kernel maps them again.
        if unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_DONTNEED) } == 0 {
            dropped += end - start;
        }
    }
    dropped
}

/// The private mappings in `maps` of the code of files, and of their beginnings, that cannot be
/// written to: from where to where.
fn code_mappings(maps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for line in maps.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [range, rights, offset, _, _, path, ..] = &fields[..]
            && path.starts_with('/')
            && (*rights == "r-xp" || (*rights == "r--p" && *offset == "00000000"))
            && let Some((start, end)) = range.split_once('-')
            && let (Ok(start), Ok(end)) =
                (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16))
        {
            found.push((start, end));
        }
    }
    found
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
    fn a_program_runs_on_after_the_pages_of_its_code_were_dropped() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
            let line = status.lines().find(|line| line.starts_with("RssFile:")).expect("a line");
            let kib = line.split_ascii_whitespace().nth(1).expect("a number");
            kib.parse::<usize>().expect("a number")
        };
        let before = resident();
        assert!(drop_code_pages() > 0, "nothing was dropped");
        let after = resident();
        assert!(after < before, "{before} KiB before, {after} KiB after");
    }

    #[test]
    fn only_code_of_files_and_what_lies_in_front_of_it_is_dropped() {
        let maps = "\
            1000-2000 r--p 00000000 fe:00 99 /usr/bin/my zonda\n\
            2000-5000 r-xp 00001000 fe:00 99 /usr/bin/my zonda\n\
            5000-6000 r--p 00004000 fe:00 99 /usr/bin/my zonda\n\
            6000-7000 rw-p 00005000 fe:00 99 /usr/bin/my zonda\n\
            7000-8000 rwxp 00005000 fe:00 99 /usr/bin/my zonda\n\
            8000-9000 r-xp 00000000 fe:00 98 /usr/lib/libc.so.6\n\
            9000-a000 r-xp 00000000 00:00 0 [vdso]\n\
            a000-b000 r-xp 00000000 00:00 0\n";
        let expected = [(0x1000, 0x2000), (0x2000, 0x5000), (0x8000, 0x9000)];
        assert_eq!(code_mappings(maps), expected);
    }

    #[test]
    fn memory_without_a_whole_huge_page_is_left_alone() {
        assert!(use_huge_pages(&[0_u8; 4096]).is_ok());
        assert!(use_huge_pages::<u8>(&[]).is_ok());
    }
}
