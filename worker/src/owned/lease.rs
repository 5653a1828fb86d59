use hipr_proto::HipResult;

use super::Owned;

/// The lease, and what the context has reserved for it.
impl Owned {
    /// Returns how many unused bytes of the lease the context has reserved.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.lease.bytes().saturating_sub(self.withdrawn_bytes)
    }

    /// Takes unused bytes and allocations out of the lease, as the client gives them back. Bytes that were withdrawn before come first.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there are fewer, and the context's; nothing has changed then.
    pub(crate) fn give_back(&mut self, bytes: u64, allocations: u64) -> HipResult<()> {
        self.lease.give_back(bytes, allocations)?;
        let withdrawn_bytes = bytes.min(self.withdrawn_bytes);
        let reserved_bytes = bytes - withdrawn_bytes;
        if reserved_bytes > 0
            && let Err(error) = self.context().and_then(|context| context.unreserve(reserved_bytes))
        {
            let window = self.lease.window();
            self.lease.grant(window, bytes, allocations);
            return Err(error);
        }
        self.withdrawn_bytes -= withdrawn_bytes;
        Ok(())
    }

    /// Takes all but `kept_bytes` of the reserved bytes back, while the client believes that it still has them.
    ///
    /// # Errors
    /// The context's; nothing has changed then.
    pub(crate) fn withdraw(&mut self, kept_bytes: u64) -> HipResult<()> {
        let bytes = self.reserved_bytes().saturating_sub(kept_bytes);
        self.context()?.unreserve(bytes)?;
        self.withdrawn_bytes += bytes;
        Ok(())
    }
}
