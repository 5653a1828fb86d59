//! Kernel launches.

use std::sync::{Arc, OnceLock};

use hipr_abi::{dim3, hipKernelNodeParams};

use super::arguments::{Arguments, NodeArguments};
use super::function::Function;
use crate::convert::{Event, Ptr};

/// Launch configuration: grid, block, shared memory, events.
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfiguration {
    /// Number of blocks in each dimension.
    pub grid: [u32; 3],
    /// Number of threads of a block in each dimension.
    pub block: [u32; 3],
    /// Size of dynamic shared memory (LDS) in bytes.
    pub shared_mem_bytes: u32,
    /// Event that records the start of the launch; may be null.
    pub start: Event,
    /// Event that records the end of the launch; may be null.
    pub stop: Event,
    /// Flags of `hipExtLaunchKernel`.
    pub ext_flags: u32,
    /// Whether all blocks have to be resident at once (a cooperative launch).
    pub is_cooperative: bool,
}

/// A part of memory that should stay in the cache (HIP API: hipAccessPolicyWindow), with the address of its first byte.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CacheWindow {
    /// The address of the first byte.
    pub base: Ptr,
    /// The size in bytes.
    pub len: usize,
    /// The share of accesses to the memory that have the property `hit`.
    pub hit_ratio: f32,
    /// A `hipAccessProperty`.
    pub hit: i32,
    /// The `hipAccessProperty` of the other accesses.
    pub miss: i32,
}

/// An attribute of a graph node that launches a kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NodeAttribute {
    /// What should stay in the cache. Nothing depends on it.
    CacheWindow(CacheWindow),
    /// Whether all blocks have to be resident at once; 0 if not.
    Cooperative(i32),
}

/// A kernel launch with its arguments.
#[derive(Clone, Debug)]
pub struct KernelLaunch {
    /// The kernel.
    pub function: Arc<Function>,
    /// Grid, block and the other launch parameters.
    pub config: LaunchConfiguration,
    /// The arguments, with the program's addresses.
    pub arguments: Arguments,
    /// The arguments as a graph node returns them; created when the program first asks for them.
    node_arguments: OnceLock<Arc<NodeArguments>>,
    /// The attribute that was set last for the launch's graph node.
    attribute: Option<Box<NodeAttribute>>,
}

impl KernelLaunch {
    /// Creates a launch.
    pub fn new(function: Arc<Function>, config: LaunchConfiguration, arguments: Arguments) -> Self {
        Self { function, config, arguments, node_arguments: OnceLock::new(), attribute: None }
    }

    /// Returns the parameters of a graph node for this launch; `func` is the address by which the program launches the kernel.
    /// The arguments are good as long as there is such a node.
    pub(crate) fn node_params(&self, func: Ptr) -> hipKernelNodeParams {
        let kept = || Arc::new(self.arguments.for_node(self.function.params.as_deref().unwrap_or_default()));
        let arguments = self.node_arguments.get_or_init(kept);
        let dim = |[x, y, z]: [u32; 3]| dim3 { x, y, z };
        hipKernelNodeParams {
            blockDim: dim(self.config.block),
            extra: arguments.extra().as_mut_ptr(),
            func: func.as_mut_ptr(),
            gridDim: dim(self.config.grid),
            kernelParams: arguments.kernel_params().as_mut_ptr(),
            sharedMemBytes: self.config.shared_mem_bytes,
        }
    }

    /// Returns the attribute that was set last for the launch's graph node.
    pub(crate) fn attribute(&self) -> Option<NodeAttribute> {
        self.attribute.as_deref().copied()
    }

    /// Returns the launch with an attribute, which takes the place of the one that it had.
    pub(crate) fn with_attribute(mut self, attribute: NodeAttribute) -> Self {
        if let NodeAttribute::Cooperative(value) = attribute {
            self.config.is_cooperative = value != 0;
        }
        self.attribute = Some(Box::new(attribute));
        self
    }

    /// Returns the launch with all of `known` that `hipKernelNodeParams` does not describe.
    pub(crate) fn in_place_of(mut self, known: &Self) -> Self {
        self.config.is_cooperative = known.config.is_cooperative;
        self.attribute.clone_from(&known.attribute);
        self
    }

    /// Returns whether events record the launch's start or end.
    pub fn is_timed(&self) -> bool {
        !self.config.start.is_null() || !self.config.stop.is_null()
    }
}
