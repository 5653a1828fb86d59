//! Tells the client at once which of its unanswered requests has failed.

use hipr_proto::op::{ForOp, Handle, Op, RequestFailed, with_op};
use hipr_proto::{Features, HipError, Opcode};

use super::Session;

/// Maximum length in bytes of the text that says what a failed request has asked for.
const TEXT_MAX_BYTES: usize = 512;

/// What is said of a request that failed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Asked {
    /// The fields of the request.
    text: String,
    /// The kernel that it names, or 0.
    function: u64,
    /// The stream that it names, or 0.
    stream: u64,
}

/// Describes a request from its fixed part.
struct Describe<'a>(&'a [u8]);

impl ForOp for Describe<'_> {
    type Out = Asked;

    fn call<O: Op>(self) -> Asked {
        let mut fixed = self.0;
        let Ok(mut request) = O::take(&mut fixed) else { return Asked::default() };
        let mut asked = Asked { text: format!("{request:?}"), ..Asked::default() };
        asked.text.truncate(asked.text.floor_char_boundary(TEXT_MAX_BYTES));
        request.handles(|kind, handle| match kind {
            Handle::Function => asked.function = *handle,
            Handle::Stream => asked.stream = *handle,
            _ => {}
        });
        asked
    }
}

/// Returns what a request asks for whose fixed part is `fixed`; nothing of one that has a secret.
#[cold]
pub(super) fn asked(op: Opcode, fixed: &[u8]) -> Asked {
    if op == Opcode::CACHE_OPEN {
        return Asked::default();
    }
    with_op(op, Describe(fixed)).unwrap_or_default()
}

impl Session {
    /// Returns whether the client is told if an unanswered request fails now: there is one notification for each error that a later reply
    /// reports, so that requests cannot pile them up.
    pub(super) fn tells_failure(&self) -> bool {
        let features = self.owned.features.unwrap_or(Features::NONE);
        features.contains(Features::NOTIFICATIONS) && self.responder.kept().is_none()
    }

    /// Sends `REQUEST_FAILED` for an unanswered request whose error is kept.
    #[cold]
    pub(super) fn tell_failure(&mut self, request: u32, op: Opcode, error: HipError) {
        let Asked { text, function, stream } = std::mem::take(&mut self.asked);
        let text_length = u32::try_from(text.len()).unwrap_or(0);
        let (operation, error_code) = (u32::from(op.0), error.0);
        let failed = RequestFailed { request, operation, error_code, text_length, function, stream };
        self.broken = self.broken.or(self.responder.notify(&failed, text.as_bytes()).err());
    }
}

#[cfg(test)]
mod tests {
    use hipr_proto::op::{Info, OPS};

    use super::*;

    #[test]
    fn every_request_can_be_described() {
        let zeros = [0; 4096];
        for Info { code, name, request, .. } in OPS {
            let fixed = &zeros[..request.size];
            let asked = with_op(*code, Describe(fixed)).expect("a row of the table");
            assert!(!asked.text.is_empty() && asked.text.len() <= TEXT_MAX_BYTES, "{name}: {asked:?}");
            if let Some(short) = fixed.split_last() {
                assert_eq!(with_op(*code, Describe(short.1)), Some(Asked::default()), "{name}");
            }
        }
    }
}
