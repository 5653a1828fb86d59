//! Shapes of instructions: how operands are read, which lanes are active, how results are written. What is done to the numbers
//! comes from the row.

pub(crate) mod fused;
pub(crate) mod half;
pub(crate) mod lane;
pub(crate) mod matrix;
pub(crate) mod memory;
pub(crate) mod operand;
pub(crate) mod packed;
pub(crate) mod quad;
pub(crate) mod rounding;
pub(crate) mod scalar;
pub(crate) mod source;
pub(crate) mod sparse;
pub(crate) mod store;
pub(crate) mod vector;
