//! Advice to the kernel and the allocator about memory.

use std::ffi::CStr;
use std::{io, ptr, slice};

/// Octets of a huge page on the supported processors.
const HUGE_PAGE: usize = 2 << 20;
/// Moves memory into huge pages (madvise(2)); not every C library has the number.
const MADV_COLLAPSE: libc::c_int = 25;

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
    match unsafe { libc::madvise(start as *mut _, end - start, MADV_COLLAPSE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Octets from which an allocation gets pages of its own. The buffer of a TLS connection, which
/// grows to 18 KiB and shrinks again with the records that come, shall have none: each time the
/// kernel would move pages.
#[cfg(target_env = "gnu")]
const OWN_PAGES_MIN: libc::c_int = 20 << 10;
/// Allocations that may have pages of their own at a time. The kernel allows a process 65,530
/// mappings, and threads need some.
#[cfg(target_env = "gnu")]
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
    // SAFETY: touches only memory that the allocator holds and no code uses, under its own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Drops the pages of the program's and its libraries' code and constants from the process's
/// memory, so that those that only the start needed do not count as used for as long as it lives.
/// Returns how many octets are mapped that way.
///
/// The kernel maps 64 KiB around each page that is touched. What is needed again is mapped again
/// from the page cache, where the files' pages stay. Constants that hold addresses are left alone:
/// relocation has written to them before they became read-only.
pub fn drop_code_pages() -> usize {
    let mut dropped = 0_usize;
    // SAFETY: `drop_object` fits the call, which hands it the pointer to `dropped` and to entries
    // that the linker holds for as long.
    unsafe { libc::dl_iterate_phdr(Some(drop_object), ptr::from_mut(&mut dropped).cast()) };
    dropped
}

/// Drops what a loaded object, the program or a library, has in segments that were never writable;
/// adds their octets to the number at `dropped`.
///
/// # Safety
/// As for a callback of `dl_iterate_phdr`, with a pointer to a `usize`.
unsafe extern "C" fn drop_object(
    object: *mut libc::dl_phdr_info,
    _: libc::size_t,
    dropped: *mut libc::c_void,
) -> libc::c_int {
    // SAFETY: all are the caller's for the time of the call: the object, its name, its headers,
    // and the number that it was given.
    let (object, dropped) = unsafe { (&*object, &mut *dropped.cast::<usize>()) };
    let (headers, count) = (object.dlpi_phdr, usize::from(object.dlpi_phnum));
    if object.dlpi_name.is_null() || headers.is_null() {
        return 0;
    }
    // SAFETY: as above.
    let (name, headers) =
        unsafe { (CStr::from_ptr(object.dlpi_name), slice::from_raw_parts(headers, count)) };
    if name.to_bytes().starts_with(b"linux-") {
        return 0; // the kernel's own, of no file
    }
    let page = page_bytes();
    let loaded = headers.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
    for segment in loaded.filter(|segment| segment.p_flags & libc::PF_W == 0) {
        let start = object.dlpi_addr as usize + segment.p_vaddr as usize;
        let end = (start + segment.p_memsz as usize).next_multiple_of(page);
        let start = start / page * page;
        // SAFETY: the range is a private mapping of a file that was never writable, since nothing
        // here has relocations in its code, and no library is unloaded. So all its contents are
        // the file's, from which the kernel maps them again.
        if unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_DONTNEED) } == 0 {
            *dropped += end - start;
        }
    }
    0
}

/// Octets of a page, as this kernel has them.
fn page_bytes() -> usize {
    // SAFETY: the call takes a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(64 << 10) // the largest that Linux has
}

/// Octets below the caller's frame that [`give_back_stack`] leaves alone.
const STACK_KEPT: usize = 32 << 10;

/// Gives the pages back to the system that the first thread has used of its stack and uses no more:
/// after its start, a program needs few of them. Must be called by that thread; in other threads,
/// and where `/proc` is not mounted, it does nothing.
#[inline(never)]
pub fn give_back_stack() {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    let stack = maps.lines().find(|line| line.ends_with("[stack]"));
    let bounds = stack.and_then(|line| line.split_ascii_whitespace().next()?.split_once('-'));
    let number = |hex: &str| usize::from_str_radix(hex, 16).ok();
    let Some((Some(start), Some(end))) = bounds.map(|(start, end)| (number(start), number(end)))
    else {
        return;
    };
    let here = ptr::from_ref(&start) as usize;
    let page = page_bytes(); // of which the kernel drops whole ones only
    let unused_end = here.saturating_sub(STACK_KEPT) / page * page;
    if !(start..end).contains(&here) || unused_end <= start {
        return; // another thread, or nothing to give back
    }
    // SAFETY: the range is of this thread's own stack, further below the frame of this function
    // than the frames of what it calls reach. What lies there belongs to calls that have returned.
    unsafe { libc::madvise(start as *mut _, unused_end - start, libc::MADV_DONTNEED) };
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
    fn constants_that_hold_addresses_stay_as_they_are() {
        static NAMES: [&str; 3] = ["one", "two", "three"];
        let names = std::hint::black_box(&NAMES);
        drop_code_pages();
        assert_eq!(names.concat(), "onetwothree");
    }

    #[test]
    fn a_thread_that_is_not_the_first_keeps_its_stack() {
        let kept = std::hint::black_box([7_u8; 1 << 16]);
        give_back_stack();
        assert!(kept.iter().all(|octet| *octet == 7));
    }

    #[test]
    fn memory_without_a_whole_huge_page_is_left_alone() {
        assert!(use_huge_pages(&[0_u8; 4096]).is_ok());
        assert!(use_huge_pages::<u8>(&[]).is_ok());
    }
}
