//! Functions about nodes that copy to or from a variable of the device: copies whose address is known when the node is made.

use hipr_proto::{HipError, HipResult};

use super::{NewNode, NodeOf, memcpy_1d};
use crate::command::Node;
use crate::convert::Ptr;
use crate::hip::symbol;
use crate::session::Session;

/// A part of a variable: its symbol, and the number of bytes and their offset in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The address that stands for the variable in the program.
    pub(crate) symbol: Ptr,
    /// The number of bytes.
    pub(crate) len: usize,
    /// The offset of the first one.
    pub(crate) offset: usize,
}

impl Part {
    /// Returns the address of the part on the device, after a check of the `other` one of the copy.
    fn address(self, session: &Session, other: Ptr) -> HipResult<Ptr> {
        other.check()?;
        if self.len == 0 {
            return Err(HipError::INVALID_VALUE);
        }
        symbol::part(session, self.symbol, self.len, self.offset)
    }

    /// Checks that a symbol is named. HIP API: this error comes before the others when a node is changed, not when it is made.
    fn check_symbol(self) -> HipResult<()> {
        self.symbol.check().map(drop).map_err(|_| HipError::INVALID_SYMBOL)
    }

    fn copy_to(self, session: &Session, src: Ptr, kind: i32) -> HipResult<Node> {
        memcpy_1d(session, self.address(session, src)?, src, self.len, kind)
    }

    fn copy_from(self, session: &Session, dst: Ptr, kind: i32) -> HipResult<Node> {
        memcpy_1d(session, dst, self.address(session, dst)?, self.len, kind)
    }
}

/// `hipGraphAddMemcpyNodeToSymbol`.
pub(crate) fn add_copy_to(
    session: &Session,
    node: NewNode,
    part: Part,
    src: Ptr,
    kind: i32,
) -> HipResult<()> {
    node.check(session)?;
    node.add(session, Some(part.copy_to(session, src, kind)?))
}

/// `hipGraphAddMemcpyNodeFromSymbol`.
pub(crate) fn add_copy_from(
    session: &Session,
    node: NewNode,
    dst: Ptr,
    part: Part,
    kind: i32,
) -> HipResult<()> {
    node.check(session)?;
    node.add(session, Some(part.copy_from(session, dst, kind)?))
}

/// Returns the error for what is wrong with a copy of a node. HIP API: of an instantiated graph's node a symbol that is none is a wrong value,
/// a null one is not.
fn error_of(node: NodeOf, part: Part, error: HipError) -> HipError {
    match (node, error) {
        (NodeOf::Exec(..), HipError::INVALID_SYMBOL) if !part.symbol.is_null() => HipError::INVALID_VALUE,
        _ => node.error(error),
    }
}

/// `hipGraphMemcpyNodeSetParamsToSymbol`, `hipGraphExecMemcpyNodeSetParamsToSymbol`.
pub(crate) fn set_copy_to(session: &Session, node: NodeOf, part: Part, src: Ptr, kind: i32) -> HipResult<()> {
    part.check_symbol()?;
    let copy = part.copy_to(session, src, kind);
    node.set(session, copy.map_err(|error| error_of(node, part, error))?)
}

/// `hipGraphMemcpyNodeSetParamsFromSymbol`, `hipGraphExecMemcpyNodeSetParamsFromSymbol`.
pub(crate) fn set_copy_from(
    session: &Session,
    node: NodeOf,
    dst: Ptr,
    part: Part,
    kind: i32,
) -> HipResult<()> {
    part.check_symbol()?;
    let copy = part.copy_from(session, dst, kind);
    node.set(session, copy.map_err(|error| error_of(node, part, error))?)
}
