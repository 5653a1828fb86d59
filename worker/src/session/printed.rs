//! Sends what kernels print to the client (`PRINTED`).
//!
//! It is sent before each reply of the session and before each notification that work is over: nothing that says that a kernel's work is done may
//! be earlier than what the kernel has printed. It is also sent at the end of each turn, while the client takes what it is sent. Where it does
//! not, the device keeps some, and kernels that print more wait.

use hipr_proto::Features;
use hipr_proto::op::Printed;

use super::{Draining, Session};

/// Maximum bytes of one `PRINTED`.
const PIECE_BYTES: usize = 16 << 10;
/// Bytes that the client has not received at which text is sent with replies only.
const UNSENT_BYTES: u64 = 64 << 10;

impl Session {
    /// Sends what kernels have printed; where the client has not taken what it was sent, when it has.
    #[inline]
    pub(super) fn check_printed(&mut self) {
        if self.unsent_bytes() < UNSENT_BYTES {
            self.send_printed();
        }
        let waits = self.owned.context_ref().is_ok_and(|context| context.has_printed());
        if waits && self.draining == Draining::No {
            self.draining = Draining::Ask { left_bytes: UNSENT_BYTES as usize / 2 };
        }
        if let Some(end_bytes) = self.errors_end_bytes {
            self.check_errors(end_bytes);
        }
    }

    /// Tells the device that the client has been sent what kernels printed on standard error, once `end_bytes` have been sent in all.
    #[cold]
    fn check_errors(&mut self, end_bytes: u64) {
        if self.sent_bytes >= end_bytes {
            self.errors_end_bytes = None;
            if let Ok(context) = self.owned.context() {
                context.printed_was_sent();
            }
        } else if self.draining == Draining::No {
            self.draining = Draining::Ask { left_bytes: 0 };
        }
    }

    /// Sends what kernels have printed.
    #[inline]
    pub(super) fn send_printed(&mut self) {
        if let Ok(context) = self.owned.context()
            && context.has_printed()
        {
            self.send_taken();
        }
    }

    #[cold]
    fn send_taken(&mut self) {
        let taken = self.owned.context().map(|context| context.take_printed()).unwrap_or_default();
        if self.owned.features.is_some_and(|features| features.contains(Features::PRINTF)) {
            for (is_error, text) in
                taken.iter().flat_map(|part| part.text.chunks(PIECE_BYTES).map(|text| (part.is_error, text)))
            {
                let length = u32::try_from(text.len()).unwrap_or(0);
                let printed = Printed { is_error: is_error.into(), length };
                self.broken = self.broken.or(self.responder.notify(&printed, text).err());
            }
        } else if !std::mem::replace(&mut self.has_dropped_text, true) {
            tracing::info!(conn = %self.conn, "a kernel prints, and the client cannot be told (it has no feature PRINTF)");
        }
        if taken.iter().any(|part| part.is_error) {
            self.errors_end_bytes = Some(self.handed_bytes + self.responder.queued_bytes() as u64);
        }
    }
}
