//! Memory to be dropped.

use std::sync::Arc;

use hipr_isa::mem::Block;

use crate::physical::Part;

/// Memory that a context does not use any more, to be dropped where that may take long.
pub(crate) enum Unused {
    /// A block that is not mapped any more.
    Block(Arc<Block>),
    /// Bytes of physical memory of which this context has given up a handle or a mapping.
    Part(Arc<Part>),
}

impl Unused {
    pub(crate) fn len_bytes(&self) -> u64 {
        match self {
            Self::Block(block) => block.len_bytes(),
            Self::Part(part) => part.len_bytes(),
        }
    }
}
