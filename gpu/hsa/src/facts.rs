//! What is fixed of the agents before anything runs: how many there are, what they are, and their limits.

use hipr_code_object::rules::LDS_BYTES;
use hipr_grid::model::Model;
use hipr_isa::Arch;

use crate::config::Config;

/// Index of an agent: 0 is the host, GPUs follow.
pub(crate) type AgentIndex = usize;

/// A set of agents, a bit for each index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Agents(pub(crate) u64);

impl Agents {
    /// All of them.
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Returns the set of one agent.
    pub(crate) fn only(index: AgentIndex) -> Self {
        Self(1 << index)
    }

    /// Returns whether the agent is one of them.
    pub(crate) fn contains(self, index: AgentIndex) -> bool {
        self.0 >> index & 1 != 0
    }

    /// Returns the agents of both sets.
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What is fixed of an agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentFacts {
    /// The GPU's instruction set; `None` for the host.
    pub(crate) arch: Option<Arch>,
    /// Memory in bytes.
    pub(crate) memory_bytes: u64,
}

/// Largest grid in work-items, in each dimension and in all.
pub(crate) const GRID_MAX: u32 = u32::MAX;
/// Least number of packets of a queue.
pub(crate) const QUEUE_PACKETS_MIN: u32 = 64;
/// Largest number of packets of a queue.
pub(crate) const QUEUE_PACKETS_MAX: u32 = 131_072;
/// Queues of a GPU.
pub(crate) const QUEUES_MAX: u32 = 128;
/// Memory of the host that is assumed where the system does not say it.
const HOST_BYTES_FALLBACK: u64 = 4 << 30;
/// Bytes of LDS of a workgroup.
pub(crate) const GROUP_BYTES: u64 = LDS_BYTES as u64;
/// The most scratch that a GPU's queues may have together, in bytes.
pub(crate) const SCRATCH_MAX_BYTES: u64 = 4 << 30;

impl AgentFacts {
    /// Returns the host and the GPUs.
    pub(crate) fn all(config: &Config) -> Vec<Self> {
        let host_bytes = host_memory_bytes().unwrap_or(HOST_BYTES_FALLBACK);
        let gpu = |&arch: &Arch| {
            let most = Model::of(arch).memory_bytes;
            let memory_bytes = config.memory_bytes.unwrap_or(host_bytes / 4 * 3).min(most);
            Self { arch: Some(arch), memory_bytes }
        };
        let host = Self { arch: None, memory_bytes: host_bytes };
        std::iter::once(host).chain(config.devices.iter().map(gpu)).collect()
    }
}

fn host_memory_bytes() -> Option<u64> {
    let info = rustix::system::sysinfo();
    info.totalram.checked_mul(info.mem_unit.into()).filter(|&bytes| bytes > 0)
}
