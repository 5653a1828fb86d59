//! Runs the fuzz targets on every input of every committed corpus, so that a bug found once stays fixed.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use hipr_testkit::fuzz::{TARGETS, Target};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns name and content of each file in a folder, sorted by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries
        .map(|entry| {
            let entry = entry.expect("an entry of the folder");
            let bytes = fs::read(entry.path()).unwrap_or_else(|error| panic!("{:?}: {error}", entry.path()));
            (entry.file_name().into_string().expect("names are text"), bytes)
        })
        .collect();
    files.sort();
    files
}

/// Number of panics of all threads so far.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// Returns whether `target` panics on `bytes`, on any thread: the emulator catches panics of its own threads.
fn panics(target: Target, bytes: &[u8]) -> bool {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::SeqCst);
            before(info);
        }));
    });
    let before = PANICS.load(Ordering::SeqCst);
    catch_unwind(AssertUnwindSafe(|| target(bytes))).is_err() || PANICS.load(Ordering::SeqCst) != before
}

/// Runs all targets in one test, because panics are counted for the whole process.
#[test]
fn every_input_of_every_corpus_passes() {
    assert!(panics(|_| panic!("seen"), &[]), "a panic is noticed");
    let elsewhere: Target = |_| drop(std::thread::spawn(|| panic!("seen, elsewhere")).join());
    assert!(panics(elsewhere, &[]), "a panic of another thread is noticed");

    for (name, target) in TARGETS {
        let inputs = files(&fuzz().join("corpus").join(name));
        assert!(!inputs.is_empty(), "the corpus of {name} is empty");
        for (input, bytes) in inputs {
            assert!(!panics(*target, &bytes), "fuzz/corpus/{name}/{input}");
        }
    }
}

#[test]
fn every_target_is_replayed_and_has_a_corpus() {
    let names: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names.len(), TARGETS.len(), "each name once");

    let sources = files(&fuzz().join("fuzz_targets"));
    for (file, source) in &sources {
        let name = file.strip_suffix(".rs").expect("Rust sources");
        let expected = format!(
            "#![no_main]\nlibfuzzer_sys::fuzz_target!(|data: &[u8]| hipr_testkit::fuzz::{name}(data));\n"
        );
        assert_eq!(String::from_utf8_lossy(source), expected, "{file}");
    }
    let sources: BTreeSet<_> = sources.iter().filter_map(|(file, _)| file.strip_suffix(".rs")).collect();
    assert!(sources.iter().copied().eq(names.iter().map(String::as_str)), "{sources:?}, {names:?}");

    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("the manifest of the targets");
    let binaries: BTreeSet<_> = manifest
        .lines()
        .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""))
        .collect();
    assert_eq!(binaries, sources, "the targets of fuzz/Cargo.toml");

    let corpora = fs::read_dir(fuzz().join("corpus")).expect("the corpora");
    let corpora: BTreeSet<_> =
        corpora.map(|entry| entry.expect("a corpus").file_name().into_string().expect("text")).collect();
    assert_eq!(corpora, names, "a folder in fuzz/corpus for each target");
}

/// Checks that the corpora stay small, because everyone clones them.
#[test]
fn corpora_are_small() {
    let len = |name: &str| {
        files(&fuzz().join("corpus").join(name)).iter().map(|(_, bytes)| bytes.len()).sum::<usize>()
    };
    let total: usize = TARGETS.iter().map(|(name, _)| len(name)).sum();
    assert!(total < 1 << 20, "{total} bytes");
}

#[test]
fn the_dictionary_is_the_tables() {
    let committed = fs::read_to_string(fuzz().join("hipr.dict")).expect("the committed dictionary");
    let hint = "cargo run -p hipr-testkit --example dictionary";
    assert!(committed == hipr_testkit::fuzz::dictionary::text(), "fuzz/hipr.dict is old: {hint}");
}
