//! The suite's operations on memory and events that sessions share.

use super::{Lost, Suite, nothing};
use hipr_proto::op;

impl Suite<'_> {
    /// Shares memory and an event as far as possible in one session, which cannot open what it has already.
    pub(super) fn sharing(&mut self, buffer: u64, stream: u64) -> Result<(), Lost> {
        const INTERPROCESS: u32 = 2 | 4;
        const UNKNOWN: [u8; 64] = [7; 64];
        self.request(&op::IpcGetMemHandle { device_ptr: buffer + 4 }, &[], None, nothing)?;
        let lent = self.request(&op::IpcGetMemHandle { device_ptr: buffer }, &[], None, nothing)?;
        let handle = lent.map_or(UNKNOWN, |reply| reply.handle);
        let again = move |reply: &op::IpcGetMemHandleReply| format!("again: {}", reply.handle == handle);
        self.request(&op::IpcGetMemHandle { device_ptr: buffer }, &[], None, again)?;
        self.request(&op::IpcOpenMemHandle { handle, flags: 1 }, &[], None, nothing)?;
        self.request(&op::IpcOpenMemHandle { handle: UNKNOWN, flags: 0 }, &[], None, nothing)?;
        self.both(&op::IpcCloseMemHandle { device_ptr: buffer }, &[], None)?;
        self.ask(&op::GetLastError {})?;
        let flags = op::EventCreateWithFlags { flags: INTERPROCESS };
        let event = self.make(&flags, |reply| reply.event)?;
        let lent = self.request(&op::IpcGetEventHandle { event }, &[], None, nothing)?;
        let handle = lent.map_or(UNKNOWN, |reply| reply.handle);
        let opened = self.make(&op::IpcOpenEventHandle { handle }, |reply| reply.event)?;
        self.request(&op::IpcOpenEventHandle { handle: UNKNOWN }, &[], None, nothing)?;
        self.both(&op::EventRecord { event, stream }, &[], None)?;
        self.request(&op::EventSynchronize { event: opened }, &[], None, nothing)?;
        self.both(&op::StreamWaitEvent { stream, event: opened, flags: 0 }, &[], None)?;
        self.request(&op::EventDestroy { event }, &[], None, nothing)?;
        self.request(&op::EventQuery { event: opened }, &[], None, nothing)?;
        self.request(&op::EventDestroy { event: opened }, &[], None, nothing).map(drop)
    }
}
