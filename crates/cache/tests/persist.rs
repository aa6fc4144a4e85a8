//! The cache as a file: whole, old, changed, cut short; and the fuzzer's corpus of files.

#![allow(clippy::unwrap_used)]

mod any_file;
mod common;

use common::{addresses, answer, find, key, lifetime, name};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use zonda_cache::persist::{self, Clocks, LoadError, save, write};
use zonda_cache::policy::Limits;
use zonda_cache::{BYTES_MIN, Cache, Failure, Key, Policy};

/// Returns the hash of a name of any source.
fn hash(_: u32, name: &[u8]) -> Option<u64> {
    Some(common::hash(name))
}

/// Returns the present of a process that has run for `now_secs`.
fn clocks(now_secs: u32, unix_secs: u64) -> Clocks {
    Clocks { now_secs, unix_secs }
}

/// Reads a file with the usual limits.
fn read(
    cache: &Cache,
    file: impl Read,
    clocks: Clocks,
    hash: impl FnMut(u32, &[u8]) -> Option<u64>,
) -> Result<u64, LoadError> {
    persist::read(cache, file, clocks, &|_| Policy::default(), hash)
}

/// Returns a cache with `count` answers stored at 500 for 100 seconds, and 1000 more as stale.
fn filled(count: u16) -> (Cache, Vec<Vec<u8>>) {
    let cache = Cache::new(16 << 20);
    let names: Vec<_> = (0..count).map(|i| name(&format!("host{i}.example"))).collect();
    for (nth, name) in names.iter().enumerate() {
        let body = addresses(1 + nth as u16 % 9, 100, nth as u64);
        let key = Key { source: 3, dnssec_ok: nth % 2 == 0, ..key(name) };
        cache.insert(&key, &answer(&body), lifetime(500, 100)).unwrap();
    }
    (cache, names)
}

/// Returns the file of a cache, written at 520, when it is 7000 elsewhere.
fn file(cache: &Cache) -> Vec<u8> {
    let mut file = Vec::new();
    write(cache, &mut file, clocks(520, 7000)).unwrap();
    file
}

#[test]
fn a_restarted_process_finds_its_answers_with_the_time_that_passed_taken_off() {
    let (cache, names) = filled(3_000);
    let file = file(&cache);
    for (unix_secs, at, expected) in [
        (7010, 0, Some((70, false))), // 20 s before the file was written, and 10 after it
        (7010, 69, Some((1, false))),
        (7010, 70, Some((30, true))),
        (7080, 0, Some((30, true))),
        (6000, 0, Some((80, false))), // the clock was set back
        (7010, 1069, Some((30, true))),
        (7010, 1070, None),
        (8080, 0, None),
    ] {
        let restarted = Cache::new(16 << 20);
        let count = read(&restarted, &file[..], clocks(0, unix_secs), hash).unwrap();
        assert_eq!(count, if unix_secs == 8080 { 0 } else { cache.stats().entries });
        for (nth, name) in names.iter().enumerate() {
            let key = Key { source: 3, dnssec_ok: nth % 2 == 0, ..key(name) };
            let known = find(&cache, &key, 520);
            let found = find(&restarted, &key, at);
            let Some((hit, body)) = found else {
                assert!(expected.is_none() || known.is_none(), "{unix_secs} {at}");
                continue;
            };
            let ttl = u32::from_be_bytes(body[6..10].try_into().unwrap());
            assert_eq!(Some((ttl, hit.is_stale)), expected, "{unix_secs} {at}");
            assert_eq!(body, addresses(1 + nth as u16 % 9, ttl, nth as u64));
        }
    }
}

#[test]
fn limits_that_were_lowered_hold_for_answers_from_a_file_too() {
    let (cache, names) = filled(10);
    let file = file(&cache);
    let key = Key { source: 3, dnssec_ok: true, ..key(&names[0]) };
    let usual = Policy::default();
    let positive = Limits { secs_min: 0, secs_max: 50 };
    // The answer was good for 80 s, and as stale for 1000 more.
    for (policy, at, expected) in [
        (Policy { positive, ..usual }, 0, Some((50, false))),
        (Policy { positive, ..usual }, 50, Some((30, true))),
        (Policy { stale_secs: 10, ..usual }, 79, Some((1, false))),
        (Policy { stale_secs: 10, ..usual }, 89, Some((30, true))),
        (Policy { stale_secs: 10, ..usual }, 90, None),
        (Policy { stale_secs: 0, ..usual }, 80, None),
    ] {
        let restarted = Cache::new(16 << 20);
        let count = persist::read(&restarted, &file[..], clocks(0, 7000), &|_| policy, hash);
        assert_eq!(count.unwrap(), 10);
        let ttl = |body: &[u8]| u32::from_be_bytes(body[6..10].try_into().unwrap());
        let found = find(&restarted, &key, at).map(|(hit, body)| (ttl(&body), hit.is_stale));
        assert_eq!(found, expected, "{policy:?} {at}");
    }
    let never = Policy { stale_secs: 0, ..usual };
    let expired =
        persist::read(&Cache::new(16 << 20), &file[..], clocks(0, 7080), &|_| never, hash);
    assert_eq!(expired.unwrap(), 0);
}

#[test]
fn no_changed_or_shortened_file_is_taken() {
    let file = file(&filled(20).0);
    let cache = Cache::new(BYTES_MIN);
    let load = |file: &[u8]| {
        let loaded = read(&cache, file, clocks(0, 7000), hash);
        assert!(loaded.is_ok() || cache.stats().entries == 0);
        loaded
    };
    assert!(load(&file).is_ok());
    for at in 0..file.len() {
        assert!(matches!(load(&file[..at]), Err(LoadError::Corrupt)), "cut at {at}");
        let mut changed = file.clone();
        changed[at] ^= 0x10;
        assert!(load(&changed).is_err(), "changed at {at}");
    }
    assert!(matches!(load(&[&file[..], b"x"].concat()), Err(LoadError::Corrupt)));
    for version in [b"zondaca1", b"zondaca3"] {
        let other = [version, &file[8..]].concat();
        assert!(matches!(load(&other), Err(LoadError::OtherFormat)), "{version:?}");
    }
}

#[test]
fn failures_and_worthless_answers_are_not_saved() {
    let (cache, names) = filled(10);
    let failure = Failure { flags: 2, ede: None, text: b"nobody answered" };
    let backoff = Limits { secs_min: 100, secs_max: 100 };
    cache.insert_failure(&Key { source: 4, ..key(&names[0]) }, failure, backoff, 1_599);
    let mut out = Vec::new();
    assert_eq!(write(&cache, &mut out, clocks(1_599, 0)).unwrap(), 10);
    assert_eq!(write(&cache, &mut out, clocks(1_600, 0)).unwrap(), 0);
}

#[test]
fn answers_of_sources_that_are_gone_are_left_in_the_file() {
    let file = file(&filled(10).0);
    let cache = Cache::new(BYTES_MIN);
    let only_four = |source, name: &[u8]| (source == 4).then(|| common::hash(name));
    assert_eq!(read(&cache, &file[..], clocks(0, 7000), only_four).unwrap(), 0);
    assert_eq!(cache.stats().entries, 0);
}

/// Returns an empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder); // of a run before
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Returns the names of what is in a folder, in their order.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_link_or_a_file_that_another_user_put_beside_it_is_not_written_to() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder("links");
    let (path, victim) = (folder.join("cache"), folder.join("victim"));
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, folder.join("cache.new")).unwrap();
    let (cache, _) = filled(10);
    assert_eq!(save(&cache, &path, clocks(520, 7000)).unwrap(), 10);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    let about = fs::symlink_metadata(&path).unwrap();
    assert!(about.is_file() && about.permissions().mode() & 0o777 == 0o600, "{about:?}");
}

#[test]
fn temporary_files_of_a_killed_process_are_removed_once_old() {
    let folder = folder("leftovers");
    let young = "cache.00112233445566ff.new";
    let others = ["cache", "cache.new", "cache.0011.new", "other.0123456789abcdef.new"];
    for name in ["cache.0123456789abcdef.new", young].iter().chain(&others) {
        fs::write(folder.join(name), "").unwrap();
        let hour = Duration::from_secs(if *name == young { 0 } else { 3600 });
        let file = File::options().append(true).open(folder.join(name)).unwrap();
        file.set_modified(SystemTime::now() - hour).unwrap();
    }
    persist::remove_leftovers(&folder.join("cache"));
    let mut expected = others.to_vec();
    expected.push(young);
    expected.sort_unstable();
    assert_eq!(names_in(&folder), expected);
}

#[test]
fn what_was_young_at_the_start_is_removed_by_a_later_save() {
    let folder = folder("young-leftovers");
    let (path, left) = (folder.join("cache"), folder.join("cache.0123456789abcdef.new"));
    fs::write(&left, "").unwrap();
    let (cache, _) = filled(10);
    save(&cache, &path, clocks(520, 7000)).unwrap();
    assert!(left.exists(), "a process may be writing it");
    let file = File::options().append(true).open(&left).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    save(&cache, &path, clocks(520, 7000)).unwrap();
    assert_eq!(names_in(&folder), ["cache"]);
}

#[test]
fn a_file_is_replaced_whole_and_read_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = &folder("replaced");
    let path = directory.join("cache-file");
    fs::write(&path, "the former").unwrap();
    let (cache, _) = filled(10);
    assert_eq!(save(&cache, &path, clocks(520, 7000)).unwrap(), 10);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names_in(directory), ["cache-file"], "nothing is left beside it");
    let restarted = Cache::new(BYTES_MIN);
    let file = File::open(&path).unwrap();
    assert_eq!(read(&restarted, file, clocks(0, 7000), hash).unwrap(), 10);
    let folder = File::open(directory).unwrap();
    let unreadable = read(&restarted, folder, clocks(0, 7000), hash);
    assert!(matches!(unreadable, Err(LoadError::Unreadable(_))));
    assert!(save(&cache, &directory.join("no/such/place"), clocks(520, 7000)).is_err());
}

#[test]
fn only_nxdomain_is_inserted_for_all_types_of_a_name() {
    let load = |kind: u8, qtype: u8, rcode: u8| {
        let fixed = [1, kind, 0, qtype, 0, 1, 0, 0, 0, 3, 0, rcode, 255, 255];
        let life_and_counts = b"\0\0\0\x3c\0\0\0\x3c\0\x01\0\0\0\0\0\x0e";
        let root_and_alias = b"\0\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x0c";
        let file = any_file::sealed(&[&fixed[..], life_and_counts, root_and_alias].concat());
        read(&Cache::new(BYTES_MIN), &file[..], clocks(0, 993), hash).ok()
    };
    assert_eq!([load(2, 1, 3), load(2, 0, 3), load(0, 0, 0)], [Some(1), None, None]);
}

#[test]
fn the_corpus_has_files_that_are_taken() {
    let cache = Cache::new(BYTES_MIN);
    for (seed, expected) in [("several", 4), ("alias-nxdomain", 1), ("stale", 1), ("root", 1)] {
        let path = format!("{}/../../fuzz/corpus/cache_file/{seed}", env!("CARGO_MANIFEST_DIR"));
        let sealed = any_file::sealed(&fs::read(path).unwrap());
        assert_eq!(read(&cache, &sealed[..], clocks(0, 993), hash).unwrap(), expected, "{seed}");
    }
}

#[test]
fn no_file_of_the_corpus_panics_whole_truncated_or_mutated() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/cache_file");
    let files: Vec<_> = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 5);
    for file in files {
        let octets = fs::read(file).unwrap();
        any_file::check(&octets);
        for at in 0..octets.len().min(300) {
            any_file::check(&octets[..at]);
            for changed in [0, 1, 12, 0x3f, 0x41, 0xc0, 0xff] {
                let mut wrong = octets.clone();
                wrong[at] = changed;
                any_file::check(&wrong);
            }
        }
    }
}
