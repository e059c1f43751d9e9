//! Parsers under mutated input: seeds from the vectors, an own mutator, the same inputs for the same seed.
//!
//! `BYWAY_FUZZ_RUNS` inputs per target (default 500), `BYWAY_FUZZ_SEED`, `BYWAY_FUZZ_ONLY=target`; a failure names target,
//! seed and number of the input, and shows it. Nothing panics; work is counted in allocations, which are bounded by the
//! length of the input, not by a clock; what can be printed and read again comes back the same.
#![allow(clippy::print_stdout, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod bytes;
mod mutate;
mod rules;
#[cfg(feature = "script")]
mod scripts;
mod urls;

use mutate::Mutator;
use serde_json::Value;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

/// Counts what the thread under test allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

fn count(size: usize) {
    // Not while the thread's own storage is being taken down.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + size as u64));
}

// SAFETY: passes every call on to the system's allocator.
#[allow(unsafe_code, reason = "an allocator is")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One parser, or a family of them.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Inputs to begin with.
    pub(crate) seeds: Vec<Vec<u8>>,
    /// Pieces of the language, to be put in.
    pub(crate) words: &'static [&'static str],
    /// Looks at one input; panics when something does not hold. `draw` gives numbers below its argument.
    pub(crate) look: fn(&[u8], &mut Mutator),
    /// Allocations for an empty input, and for each byte.
    pub(crate) work: (u64, u64),
    /// Of the inputs, one in this many is looked at: for what is slow.
    pub(crate) every: u64,
}

/// The cases of a vector file.
pub(crate) fn cases(folder: &Path, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(format!("{file}.jsonl"))).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Every text under these names anywhere in the cases.
pub(crate) fn texts(cases: &[Value], names: &[&str]) -> Vec<Vec<u8>> {
    fn walk(value: &Value, names: &[&str], found: &mut Vec<Vec<u8>>) {
        match value {
            Value::Array(list) => list.iter().for_each(|one| walk(one, names, found)),
            Value::Object(map) => {
                for (name, value) in map {
                    match value {
                        Value::String(text) if names.contains(&name.as_str()) => {
                            found.push(text.clone().into_bytes());
                        }
                        Value::Array(list) if names.contains(&name.as_str()) => {
                            found.extend(
                                list.iter().filter_map(Value::as_str).map(|text| text.as_bytes().to_vec()),
                            );
                            walk(value, names, found);
                        }
                        value => walk(value, names, found),
                    }
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    cases.iter().for_each(|case| walk(case, names, &mut found));
    found.sort();
    found.dedup();
    found
}

/// A longer input is cut.
const LONGEST: usize = 16 << 10;

fn run(target: &Target, seed: u64, runs: u64) -> Result<u64, String> {
    assert!(!target.seeds.is_empty(), "{} has no seeds", target.name);
    let mut mutator = Mutator::new(
        seed ^ target.name.bytes().fold(7, |hash: u64, byte| hash.wrapping_mul(31) + u64::from(byte)),
    );
    let mut most = 0;
    for number in 0..runs {
        let input = mutator.input(&target.seeds, target.words, LONGEST);
        if number % target.every != 0 {
            continue;
        }
        let before = (ALLOCATIONS.get(), BYTES.get());
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| (target.look)(&input, &mut mutator)));
        let (allocations, bytes) = (ALLOCATIONS.get() - before.0, BYTES.get() - before.1);
        let shown =
            || format!("{} seed {seed} input {number}: {:?}", target.name, String::from_utf8_lossy(&input));
        if outcome.is_err() {
            return Err(shown());
        }
        let (least, each) = target.work;
        let limit = least + each * input.len() as u64;
        most = most.max(allocations * 100 / limit);
        if allocations > limit {
            return Err(format!("{allocations} allocations, at most {limit}: {}", shown()));
        }
        if bytes > (64 << 20) + limit * 4096 {
            return Err(format!("{bytes} bytes allocated: {}", shown()));
        }
    }
    Ok(most)
}

fn main() {
    let number = |name: &str, otherwise| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (runs, seed) = (number("BYWAY_FUZZ_RUNS", 500), number("BYWAY_FUZZ_SEED", 1));
    let only = std::env::var("BYWAY_FUZZ_ONLY").ok();
    let folder = std::env::var_os("BYWAY_VECTORS")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"), PathBuf::from);
    let mut targets = urls::targets(&folder);
    targets.extend(bytes::targets(&folder));
    targets.extend(rules::targets(&folder));
    #[cfg(feature = "script")]
    targets.extend(scripts::targets(&folder));
    let mut failed = 0;
    for target in targets.iter().filter(|target| only.as_deref().is_none_or(|only| only == target.name)) {
        match run(target, seed, runs) {
            Ok(most) => {
                let looked = runs.div_ceil(target.every);
                println!("ok {}: {looked} inputs, at most {most} % of the work allowed", target.name);
            }
            Err(why) => {
                failed += 1;
                println!("FAIL {why}");
            }
        }
    }
    println!("fuzz: {} passed, {failed} failed", targets.len() - failed);
    std::process::exit(i32::from(failed > 0));
}
