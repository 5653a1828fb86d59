//! A worker in the test's process, and the client library's folder.

use hipr_sim::Gpu;
use hipr_worker::{CacheConfig, Config, Handle, Stats, Worker};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::{env, fs};

/// A worker that stops when dropped.
pub struct TestWorker(Handle);

impl TestWorker {
    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().tcp().expect("a TCP port")
    }

    /// Returns its counters.
    pub fn stats(&self) -> &Stats {
        self.0.stats()
    }
}

/// Starts a worker with the emulated GPU on a free loopback port.
pub fn start_worker() -> TestWorker {
    start_worker_with(|_| {})
}

/// Starts a worker with the emulated GPU and a cache of uploads on a free loopback port.
pub fn start_worker_with_cache() -> TestWorker {
    let cache = CacheConfig { max_bytes: 256 << 20, folder: None, folder_max_bytes: 0 };
    start_worker_with(|config| config.cache = Some(cache))
}

/// Starts a worker with an emulated GPU on a free loopback port, which stops a kernel after so many instructions.
pub fn start_worker_with_limit(kernel_instructions_max: u64) -> TestWorker {
    let kernel_instructions_max = Some(kernel_instructions_max);
    let gpu = hipr_sim::Config { kernel_instructions_max, ..hipr_sim::Config::default() };
    start_worker_with(|config| config.device = Arc::new(Gpu::new(gpu).expect("the emulated GPU")))
}

/// Starts a worker with the emulated GPU on a free loopback port, with a configuration that `configure` has changed.
fn start_worker_with(configure: impl FnOnce(&mut Config)) -> TestWorker {
    let device = Arc::new(Gpu::new(hipr_sim::Config::default()).expect("the emulated GPU"));
    let mut config = Config { listen: "127.0.0.1:0".into(), ..Config::new(device) };
    configure(&mut config);
    TestWorker(Worker::bind(config).and_then(Worker::spawn).expect("a worker"))
}

/// Returns the path of the client library that cargo built for this test.
pub fn library() -> PathBuf {
    built_library("libamdhip64.so")
}

/// Returns the path of a library that cargo built beside this test.
pub fn built_library(file: &str) -> PathBuf {
    let program = env::current_exe().expect("this program's path");
    // Tests are in `deps`, programs one above.
    let folders = program.ancestors().skip(1).take(2);
    let mut found =
        folders.map(|folder| if folder.ends_with("deps") { folder.to_owned() } else { folder.join("deps") });
    found
        .find_map(|folder| fs::canonicalize(folder.join(file)).ok())
        .unwrap_or_else(|| panic!("cargo builds {file} beside the tests"))
}

/// Creates a folder with the client library under the names that programs look for.
pub fn library_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"] {
        std::os::unix::fs::symlink(library(), folder.path().join(name)).expect("a link");
    }
    folder
}
