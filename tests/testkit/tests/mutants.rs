//! Checks that the simulator finds each of the bugs in [`hipr_testkit::mutation`] by the invariant that is meant to find
//! it.
//!
//! A bug is a patch of a copy of the protocol crate, of the worker without its event loops, of the client library's stream layer with
//! what that needs, or of the crate of sessions that outlive their connections, built with a copy of the simulator in a folder of cargo's own for such things; the product has no trace of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hipr_testkit::invariants::INVARIANTS;
use hipr_testkit::mutation::{
    MUTATIONS, Mutation, RESUME_MUTATIONS, RESUME_SEEDS, SEEDS, SHIM_MUTATIONS, SHIM_SEEDS, WORKER_MUTATIONS,
    WORKER_SEEDS,
};
use hipr_testkit::{resume_world, shim_world};

/// Maximum time of a mutant's run: an endless loop is not how a bug should be found.
const RUN_MAX: Duration = Duration::from_secs(120);

#[test]
fn every_invariant_has_a_bug_that_it_catches() {
    let core = INVARIANTS.iter().map(|(name, _)| *name).chain(["chunking_is_invisible"]);
    let shim = shim_world::invariants::INVARIANTS.iter().map(|(name, _)| *name);
    assert_eq!(uncaught(core, MUTATIONS), [""; 0]);
    assert_eq!(uncaught(shim, SHIM_MUTATIONS), [""; 0]);
    assert_eq!(uncaught(resume_world::INVARIANTS.iter().copied(), RESUME_MUTATIONS), [""; 0]);
}

fn uncaught(names: impl Iterator<Item = &'static str>, mutations: &[Mutation]) -> Vec<&'static str> {
    names.filter(|name| !mutations.iter().any(|mutation| mutation.invariant == *name)).collect()
}

#[test]
fn every_bug_is_caught() {
    check(&CORE);
}

#[test]
fn every_bug_of_the_client_library_is_caught() {
    check(&SHIM);
}

#[test]
fn every_bug_of_sessions_that_outlive_their_connections_is_caught() {
    check(&RESUME);
}

#[test]
fn every_bug_of_the_worker_is_caught() {
    check(&WORKER);
}

/// Builds each bug of a subject, one after the other in one folder, and expects its invariant to notice it. While the next one is built,
/// those that are there run.
fn check(subject: &'static Subject) {
    let bench = Bench::new(subject);
    // The first build is the control: without a bug, nothing is found.
    let work = std::iter::once(None).chain(subject.mutations.iter().map(Some));
    let verdicts: Vec<Verdict> = thread::scope(|scope| {
        let runs: Vec<_> = work
            .enumerate()
            .map(|(number, mutation)| {
                let built = bench.build(mutation, number);
                scope.spawn(move || subject.judge(mutation, built))
            })
            .collect();
        runs.into_iter().map(|run| run.join().expect("a run reports what went wrong")).collect()
    });
    let report: Vec<&str> = verdicts.iter().map(|verdict| verdict.line.as_str()).collect();
    println!("{}", report.join("\n"));
    assert!(verdicts.iter().all(|verdict| verdict.is_right), "\n{}", report.join("\n"));
}

/// The crate that is changed, and how it is built and run.
struct Subject {
    /// Name of the folders of its copies.
    name: &'static str,
    /// The crate's folder.
    folder: &'static str,
    mutations: &'static [Mutation],
    seeds: u64,
    /// The manifests of the copies: the originals' content without the workspace. `ROOT` is this repository.
    manifests: &'static [(&'static str, &'static str)],
    /// The content of the crate's `lib.rs`, if it is not the original's.
    library: Option<&'static str>,
    /// A program that prints each failing seed with the violated invariants, until the wanted one is among them.
    run: &'static str,
}

static CORE: Subject = Subject {
    name: "mutants",
    folder: "proto-core",
    mutations: MUTATIONS,
    seeds: SEEDS,
    manifests: &[
        ("Cargo.toml", WORKSPACE),
        ("proto-core/Cargo.toml", PROTO_MANIFEST),
        ("testkit/Cargo.toml", TESTKIT_MANIFEST),
        ("run/Cargo.toml", RUN_MANIFEST),
    ],
    library: None,
    run: RUN,
};

static SHIM: Subject = Subject {
    name: "shim-mutants",
    folder: "client-shim",
    mutations: SHIM_MUTATIONS,
    seeds: SHIM_SEEDS,
    manifests: &[
        ("Cargo.toml", WORKSPACE),
        ("client-shim/Cargo.toml", SHIM_MANIFEST),
        ("testkit/Cargo.toml", SHIM_TESTKIT_MANIFEST),
        ("run/Cargo.toml", RUN_MANIFEST),
    ],
    library: Some(SHIM_LIBRARY),
    run: SHIM_RUN,
};

static WORKER: Subject = Subject {
    name: "worker-mutants",
    folder: "worker",
    mutations: WORKER_MUTATIONS,
    seeds: WORKER_SEEDS,
    manifests: &[
        ("Cargo.toml", WORKSPACE),
        ("worker/Cargo.toml", WORKER_MANIFEST),
        ("testkit/Cargo.toml", WORKER_TESTKIT_MANIFEST),
        ("run/Cargo.toml", RUN_MANIFEST),
    ],
    library: Some(WORKER_LIBRARY),
    run: WORKER_RUN,
};

static RESUME: Subject = Subject {
    name: "resume-mutants",
    folder: "resume",
    mutations: RESUME_MUTATIONS,
    seeds: RESUME_SEEDS,
    manifests: &[
        ("Cargo.toml", WORKSPACE),
        ("resume/Cargo.toml", RESUME_MANIFEST),
        ("testkit/Cargo.toml", RESUME_TESTKIT_MANIFEST),
        ("run/Cargo.toml", RUN_MANIFEST),
    ],
    library: None,
    run: RESUME_RUN,
};

struct Verdict {
    is_right: bool,
    line: String,
}

/// A copy of the changed crate and of the simulator.
struct Bench {
    subject: &'static Subject,
    folder: PathBuf,
}

const WORKSPACE: &str = r#"[workspace]
resolver = "3"
members = ["FOLDER", "testkit", "run"]
[profile.dev]
opt-level = 0
debug = false
debug-assertions = false
overflow-checks = false
"#;

const TESTKIT_MANIFEST: &str = r#"[package]
name = "hipr-testkit"
version = "0.1.0"
edition = "2024"
[features]
worker = []
gpu = []
shim = []
[dependencies]
arbitrary = "1"
hipr-proto = { path = "../proto-core" }
"#;

const SHIM_TESTKIT_MANIFEST: &str = r#"[package]
name = "hipr-testkit"
version = "0.1.0"
edition = "2024"
[features]
default = ["shim"]
worker = []
gpu = []
shim = []
[dependencies]
arbitrary = "1"
hipr-proto = { path = "ROOT/proto-core" }
hipr-shim = { path = "../client-shim" }
"#;

const WORKER_TESTKIT_MANIFEST: &str = r#"[package]
name = "hipr-testkit"
version = "0.1.0"
edition = "2024"
[features]
default = ["worker"]
worker = []
gpu = []
shim = []
[dependencies]
arbitrary = "1"
hipr-io = { path = "ROOT/io-core" }
hipr-proto = { path = "ROOT/proto-core" }
hipr-worker = { path = "../worker" }
"#;

const RESUME_TESTKIT_MANIFEST: &str = r#"[package]
name = "hipr-testkit"
version = "0.1.0"
edition = "2024"
[features]
default = ["resume"]
worker = []
gpu = []
shim = []
resume = []
[dependencies]
arbitrary = "1"
hipr-proto = { path = "ROOT/proto-core" }
hipr-resume = { path = "../resume" }
"#;

const RUN_MANIFEST: &str = r#"[package]
name = "run"
version = "0.1.0"
edition = "2024"
[dependencies]
hipr-testkit = { path = "../testkit" }
"#;

const PROTO_MANIFEST: &str = r#"[package]
name = "hipr-proto"
version = "0.1.0"
edition = "2024"
[dependencies]
smallvec = "1"
"#;

const RESUME_MANIFEST: &str = r#"[package]
name = "hipr-resume"
version = "0.1.0"
edition = "2024"
"#;

const SHIM_MANIFEST: &str = r#"[package]
name = "hipr-shim"
version = "0.1.0"
edition = "2024"
[lib]
name = "amdhip64"
[dependencies]
hipr-proto = { path = "ROOT/proto-core" }
hipr-abi = { path = "ROOT/gpu/abi" }
hipr-code-object = { path = "ROOT/gpu/code-object" }
hipr-graph = { path = "ROOT/graph" }
hipr-client = { path = "ROOT/client" }
libc = "0.2"
smallvec = "1"
tracing = "0.1"
"#;

const WORKER_MANIFEST: &str = r#"[package]
name = "hipr-worker"
version = "0.1.0"
edition = "2024"
[dependencies]
blake3 = "1"
hipr-abi = { path = "ROOT/gpu/abi" }
hipr-code-object = { path = "ROOT/gpu/code-object" }
hipr-device = { path = "ROOT/gpu/device" }
hipr-graph = { path = "ROOT/graph" }
hipr-io = { path = "ROOT/io-core" }
hipr-proto = { path = "ROOT/proto-core" }
tracing = "0.1"
"#;

/// The dispatch, its sessions and the devices without a GPU: the simulator has a loop of its own.
const WORKER_LIBRARY: &str = r#"#![allow(non_upper_case_globals)]
mod apart;
mod cache;
mod call;
mod capabilities;
mod config;
pub mod device;
mod dispatch;
mod env;
mod lending;
mod memory_watch;
mod owned;
mod peers;
mod recalls;
mod session;
mod stats;
pub use cache::{CacheConfig, CacheStats};
pub use config::{Config, DispatchOn, FEATURES, Io, SessionLimits};
pub use dispatch::Dispatch;
pub use peers::{CapabilityReader, PeerCapability, Peers};
pub use stats::Stats;
"#;

/// The stream layer and what it needs: everything else would be most of what is built.
const SHIM_LIBRARY: &str = r#"#![allow(non_upper_case_globals)]
pub mod command;
pub mod convert;
pub mod stream;
pub mod thread;
pub mod worker;
"#;

const RUN: &str = r#"
use hipr_testkit::{Case, core_world, mutation::SEEDS, simulate::silence_panics};
fn main() {
    silence_panics();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for seed in 0..SEEDS {
        if let Err(failure) = core_world::check(&Case::from_seed(seed)) {
            let names: Vec<_> = failure.violations.iter().map(|violation| violation.invariant).collect();
            println!("{seed} {}", names.join(" "));
            if failure.names(&wanted) {
                return;
            }
        }
    }
}
"#;

const SHIM_RUN: &str = r#"
use hipr_testkit::{mutation::SHIM_SEEDS, shim_world, simulate::silence_panics};
fn main() {
    silence_panics();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for seed in 0..SHIM_SEEDS {
        if let Err(failure) = shim_world::check_seed(seed) {
            let names: Vec<_> = failure.violations.iter().map(|violation| violation.invariant).collect();
            println!("{seed} {}", names.join(" "));
            if failure.names(&wanted) {
                return;
            }
        }
    }
}
"#;

const RESUME_RUN: &str = r#"
use hipr_testkit::{mutation::RESUME_SEEDS, resume_world, simulate::silence_panics};
fn main() {
    silence_panics();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for seed in 0..RESUME_SEEDS {
        if let Err(failure) = resume_world::check_seed(seed) {
            let names: Vec<_> = failure.violations.iter().map(|violation| violation.invariant).collect();
            println!("{seed} {}", names.join(" "));
            if failure.names(&wanted) {
                return;
            }
        }
    }
}
"#;

const WORKER_RUN: &str = r#"
use hipr_testkit::{mutation::WORKER_SEEDS, simulate::silence_panics, worker_world};
fn main() {
    silence_panics();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    for seed in 0..WORKER_SEEDS {
        if let Err(failure) = worker_world::check_seed(seed) {
            println!("{seed} {}", failure.violation.invariant);
            if failure.violation.invariant == wanted {
                return;
            }
        }
    }
}
"#;

impl Bench {
    fn new(subject: &'static Subject) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(subject.name);
        let bench = Self { subject, folder };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().expect("this repository has a folder");
        for (name, text) in subject.manifests {
            let text = text.replace("ROOT", &root.to_string_lossy());
            bench.write(name, &text.replace("FOLDER", subject.folder));
        }
        bench.write("run/src/main.rs", subject.run);
        bench.write("Cargo.lock", &read(&root.join("Cargo.lock")));
        // The fuzz targets are code for every operation: they would be most of what is built.
        let library = read(&root.join("tests/testkit/src/lib.rs"));
        let simulator: Vec<&str> = library.lines().filter(|line| *line != "pub mod fuzz;").collect();
        let sources = Path::new(subject.folder).join("src");
        bench.write("testkit/src/lib.rs", &simulator.join("\n"));
        if let Some(library) = subject.library {
            bench.write(sources.join("lib.rs"), library);
        }
        bench.copy(&root.join(&sources), &sources);
        bench.copy(&root.join("tests/testkit/src"), Path::new("testkit/src"));
        bench
    }

    /// Returns whether a copied file has its content from somewhere else.
    fn is_own(&self, name: &Path) -> bool {
        let library = Path::new(self.subject.folder).join("src/lib.rs");
        name == Path::new("testkit/src/lib.rs") || (self.subject.library.is_some() && name == library)
    }

    fn copy(&self, from: &Path, to: &Path) {
        for entry in fs::read_dir(from).expect("a folder of this repository") {
            let path = entry.expect("an entry of this repository").path();
            let to = to.join(path.file_name().expect("an entry has a name"));
            if path.is_dir() {
                self.copy(&path, &to);
            } else if !self.is_own(&to) {
                self.write(to, &read(&path));
            }
        }
    }

    /// Writes a file unless it has this content already, so that nothing is built twice.
    fn write(&self, name: impl AsRef<Path>, text: &str) {
        let path = self.folder.join(name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return;
        }
        fs::create_dir_all(path.parent().expect("a file in a folder")).expect("cargo's folder is ours");
        fs::write(&path, text).expect("cargo's folder is ours");
    }

    /// Builds the crate with a bug, and returns the program, which is named by a number.
    fn build(&self, mutation: Option<&Mutation>, number: usize) -> Result<PathBuf, String> {
        let built = match mutation {
            None => self.cargo_build(),
            Some(mutation) => {
                let name = Path::new(self.subject.folder).join("src").join(mutation.file);
                let right = read(&self.folder.join(&name));
                assert_eq!(
                    right.matches(mutation.text).count(),
                    1,
                    "{}: the patch does not fit",
                    mutation.name
                );
                self.write(&name, &right.replace(mutation.text, mutation.replacement));
                let built = self.cargo_build();
                self.write(&name, &right);
                built
            }
        };
        built?;
        let program = self.folder.join(format!("run-{number}"));
        copy_program(&self.folder.join("target/debug/run"), &program)?;
        Ok(program)
    }

    fn cargo_build(&self) -> Result<(), String> {
        let build = Command::new(env!("CARGO"))
            .args(["build", "--offline", "--quiet", "--package", "run", "--target-dir", "target"])
            .current_dir(&self.folder)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            // Whatever the tests themselves are built with: one line differs from the build before.
            .env("CARGO_INCREMENTAL", "1")
            .env("RUSTFLAGS", "--cap-lints allow")
            .stdin(Stdio::null())
            .output()
            .map_err(|why| why.to_string())?;
        let is_built = build.status.success();
        if is_built { Ok(()) } else { Err(String::from_utf8_lossy(&build.stderr).into_owned()) }
    }
}

impl Subject {
    /// Runs what was built and says whether it noticed the bug.
    fn judge(&self, mutation: Option<&Mutation>, built: Result<PathBuf, String>) -> Verdict {
        let run = |invariant| built.and_then(|program| run(&program, invariant));
        let Some(mutation) = mutation else {
            let found = run("");
            return Verdict { is_right: found == Ok(String::new()), line: format!("no bug: {found:?}") };
        };
        let found = run(mutation.invariant);
        let seed = found.as_ref().ok().and_then(|found| {
            let line = found.lines().last()?;
            let mut words = line.split(' ');
            let seed = words.next()?;
            words.any(|word| word == mutation.invariant).then(|| seed.to_owned())
        });
        let (name, invariant) = (mutation.name, mutation.invariant);
        match seed {
            Some(seed) => Verdict { is_right: true, line: format!("seed {seed:>3}: {invariant}: {name}") },
            None => {
                let seeds = self.seeds;
                let line = format!("NOT CAUGHT in {seeds} seeds: {invariant}: {name}: {found:?}");
                Verdict { is_right: false, line }
            }
        }
    }
}

/// Runs a program until it has found what violates an invariant, or has tried all seeds; returns what it prints.
fn run(program: &Path, invariant: &str) -> Result<String, String> {
    let mut run = Command::new(program)
        .arg(invariant)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|why| why.to_string())?;
    let start = Instant::now();
    while run.try_wait().map_err(|why| why.to_string())?.is_none() {
        if start.elapsed() > RUN_MAX {
            run.kill().map_err(|why| why.to_string())?;
            run.wait().map_err(|why| why.to_string())?;
            return Err(format!("it runs for more than {RUN_MAX:?}"));
        }
        thread::sleep(Duration::from_millis(5));
    }
    let output = run.wait_with_output().map_err(|why| why.to_string())?;
    // Each is as large as the simulator.
    fs::remove_file(program).map_err(|why| why.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Copies a program by a process of its own: what another thread starts meanwhile would inherit a copy that is open for writing here, and as
/// long as anyone has it open for writing, Linux does not execute it (ETXTBSY).
fn copy_program(from: &Path, to: &Path) -> Result<(), String> {
    let copy = Command::new("cp").arg("--").args([from, to]).stdin(Stdio::null()).output();
    let copy = copy.map_err(|why| format!("cp: {why}"))?;
    if copy.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&copy.stderr).into_owned()) }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}
