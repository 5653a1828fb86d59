//! Workers whose sessions have a bound for their memory together: all of them, or those of a tenant.

use crate::attacker::KERNELS;
use hipr_proto::HipError;
use hipr_proto::op;
use hipr_tests::{Gpu, WireClient, WorkerProcess, open_door};
use hipr_tls::SecretKey;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
pub(crate) const MIB: u64 = 1 << 20;
/// The memory of all sessions, or of a tenant's.
pub(crate) const TOTAL: u64 = 512 * MIB;
/// What of it cannot be had, at most, because idle sessions and what is lent in advance have it.
pub(crate) const IDLE: u64 = 8 * MIB;

/// What the keys of a worker get: those of a tenant with two, of which one says what it may have, of another with as much, and of one
/// without a bound.
const LINES: [&str; 4] = ["tenant=a memory-total=512M", "tenant=a", "tenant=b memory-total=512M", "tenant=c"];

/// A worker with the emulated GPU, and where its sessions come from.
pub(crate) struct Scene {
    pub(crate) worker: WorkerProcess,
    /// Where sessions come from that have a bound together.
    pub(crate) same: [SocketAddr; 2],
    /// Where others come from, if there are any: of a tenant with a bound of its own, and of one that has none.
    pub(crate) apart: Option<[SocketAddr; 2]>,
    _folder: TempDir,
}

impl Scene {
    /// Starts a worker whose sessions are isolated in this way. Those of a tenant have [`TOTAL`] together if it `has_keys`, all have
    /// `memory_total` if that is said.
    pub(crate) fn start(how: &str, has_keys: bool, memory_total: Option<&str>) -> Self {
        let mut options = vec!["--device", "sim", "--isolate", how, "--resume-timeout", "0"];
        memory_total.iter().for_each(|size| options.extend(["--memory-total", size]));
        let folder = tempfile::tempdir().expect("a folder");
        if !has_keys {
            let worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
            let same = [worker.address(); 2];
            return Self { worker, same, apart: None, _folder: folder };
        }
        let [file, key] = ["authorized", "worker-key"].map(|name| folder.path().join(name));
        let keys = LINES.map(|words| (SecretKey::generate().expect("a key"), words));
        let lines: String = keys.iter().map(|(key, words)| format!("{} {words}\n", key.public())).collect();
        fs::write(&file, lines).expect("written");
        let [file, key] = [&file, &key].map(|path| path.to_str().expect("text"));
        options.extend(["--authorized", file, "--key", key]);
        let worker = WorkerProcess::start_logged(Path::new(HIPR), &options);
        let [a, a_too, b, c] = keys.map(|(key, _)| open_door(worker.address(), &key).expect("a door"));
        Self { worker, same: [a, a_too], apart: Some([b, c]), _folder: folder }
    }

    /// Opens a session of those that have a bound together; returns it with the id of its process, if it has one.
    pub(crate) fn session(&self) -> (Gpu, Option<u32>) {
        let before = self.worker.children();
        let gpu = Gpu::open(self.same[1], KERNELS);
        (gpu, self.worker.children().into_iter().find(|pid| !before.contains(pid)))
    }
}

/// Returns whether a session can have so much memory; it has none of it then.
pub(crate) fn fits(client: &mut WireClient, size: u64) -> bool {
    match client.call(&op::Malloc { size, flags: 0 }) {
        Ok(reply) => {
            client.call(&op::Free { device_ptr: reply.device_ptr }).expect("freed");
            true
        }
        Err(error) => {
            assert_eq!(error, HipError::OUT_OF_MEMORY, "{size} bytes");
            false
        }
    }
}

/// Returns how much memory a session can have, within a MiB.
pub(crate) fn most(client: &mut WireClient) -> u64 {
    let (mut least, mut beyond) = (0, TOTAL / MIB + 1);
    while beyond - least > 1 {
        let middle = least.midpoint(beyond);
        if fits(client, middle * MIB) {
            least = middle;
        } else {
            beyond = middle;
        }
    }
    least * MIB
}

/// Kills the process of a session.
pub(crate) fn end(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process number");
    kill_process(pid, Signal::KILL).expect("the process is there");
}
