//! The names by which contexts of one device find memory and events of each other.

use std::sync::OnceLock;

/// The handle of shared memory or of a shared event: 64 random bytes.
pub(crate) type LoanHandle = [u8; 64];

/// A handle that is created when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Name(pub(crate) OnceLock<LoanHandle>);
