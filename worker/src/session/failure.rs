//! Tells the client which of its requests an error comes from: an unanswered one that was refused, or a launch.

use hipr_device::{Origin, WaitFor};
use hipr_proto::op::{ForOp, Handle, Op, RequestFailed, WorkFailed, with_op};
use hipr_proto::{Features, HipError, HipResult, Opcode};

use super::Session;
use super::state::Wait;

/// Maximum length in bytes of the text that says what a failed request has asked for.
const TEXT_MAX_BYTES: usize = 512;
/// Maximum length in bytes of a kernel's name.
const KERNEL_MAX_BYTES: usize = 256;

/// Work whose error a wait has returned.
#[derive(Debug)]
pub(super) struct FailedWork {
    error: HipError,
    /// How many launches it may be: 1 if the device says which, 0 if nothing is known.
    launches: u32,
    /// The launch, the last one of several.
    origin: Origin,
    /// The kernel and the stream, as the client knows them.
    function: u64,
    stream: u64,
    kernel: String,
    text: String,
}

/// What is said of a request that failed.
#[derive(Debug, Default, PartialEq)]
struct Asked {
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
        cut(&mut asked.text, TEXT_MAX_BYTES);
        request.handles(|kind, handle| match kind {
            Handle::Function => asked.function = *handle,
            Handle::Stream => asked.stream = *handle,
            _ => {}
        });
        asked
    }
}

/// Cuts a text to at most so many bytes.
fn cut(text: &mut String, max_bytes: usize) {
    text.truncate(text.floor_char_boundary(max_bytes));
}

/// Returns what a request asks for whose fixed part is `fixed`; nothing of one that has a secret.
#[cold]
fn asked(op: Opcode, fixed: &[u8]) -> Asked {
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

    /// Handles that a wait is over: if it failed, finds out which work its error comes from.
    pub(super) fn work_waited(&mut self, wait: &Wait, result: HipResult<()>) {
        let what = match *wait {
            Wait::Sync(what) => what,
            Wait::Read { stream, .. } | Wait::Changes { stream, .. } | Wait::Fetch { stream, .. } => {
                WaitFor::Stream(stream)
            }
            // They report no errors of work.
            Wait::Written(_) | Wait::Readable { .. } | Wait::Free(_) | Wait::Remap(_) | Wait::Reset => {
                return;
            }
        };
        if !self.owned.tells_work() {
            return;
        }
        let (launches, last) = self.owned.launches.take(what);
        if let Err(error) = result {
            self.find_work(error, launches, last.map(|last| (last.origin, last.function, last.stream)));
        }
    }

    #[cold]
    fn find_work(&mut self, error: HipError, launches: u64, last: Option<(Origin, u64, u64)>) {
        let told = self.owned.context().ok().and_then(|context| context.take_failure());
        let (launches, (origin, function, stream), mut kernel, mut text) = match told {
            Some(told) => (1, (told.origin, told.function, told.stream), told.kernel, told.text),
            None => (launches, last.unwrap_or((Origin::NONE, 0, 0)), Default::default(), Default::default()),
        };
        cut(&mut kernel, KERNEL_MAX_BYTES);
        cut(&mut text, TEXT_MAX_BYTES);
        let known = |kind, handle| self.owned.names.known(kind, handle);
        let (function, stream) = (known(Handle::Function, function), known(Handle::Stream, stream));
        let launches = u32::try_from(launches).unwrap_or(u32::MAX);
        self.failed_work = Some(FailedWork { error, launches, origin, function, stream, kernel, text });
    }

    /// Sends `WORK_FAILED` if the error is the one that a reply will report; returns whether it is.
    #[cold]
    pub(super) fn tell_work(&mut self, failed: FailedWork) -> bool {
        let FailedWork { error, launches, origin, function, stream, kernel, text } = failed;
        let is_reported = self.responder.kept().is_none();
        tracing::info!(
            conn = %self.conn, %error, launches, request = origin.request, op = %origin.op, kernel, stream, text, is_reported,
            "work has failed"
        );
        if !is_reported {
            return false;
        }
        let len = |text: &str| u32::try_from(text.len()).unwrap_or(0);
        let failed = WorkFailed {
            request: origin.request,
            operation: u32::from(origin.op.0),
            error_code: error.0,
            launches,
            kernel_length: len(&kernel),
            text_length: len(&text),
            function,
            stream,
        };
        self.broken = self.broken.or(self.responder.notify(&failed, (kernel + &text).as_bytes()).err());
        true
    }

    /// Sends `REQUEST_FAILED` for an unanswered request whose error is kept.
    #[cold]
    pub(super) fn tell_failure(&mut self, request: u32, op: Opcode, error: HipError) {
        // One that was not executed has nothing to say.
        let asked = if self.fixed_of == Some(request) { asked(op, &self.fixed) } else { Asked::default() };
        let Asked { text, function, stream } = asked;
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
