//! The capabilities of all sessions: who may read which memory of which session, once.
//!
//! Whoever knows a capability's token may use it: it is what one session of a program hands to another worker, so that bytes go from worker to
//! worker. Everything that ends a capability is here; [`Session`](crate::session) reads the memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hipr_device::Region;
use hipr_io::{ConnId, Grant};
use hipr_proto::op::{
    CAPABILITIES_MAX, CAPABILITY_PIECE_MAX_BYTES, CAPABILITY_TIMEOUT_MAX_MS, CAPABILITY_TOKEN_BYTES,
};
use hipr_proto::{HipError, HipResult};

/// The token of a capability.
pub type CapabilityToken = [u8; CAPABILITY_TOKEN_BYTES];

/// The capabilities that the sessions of a worker have given, shared by the thread that carries out requests and the one that lets clients in.
#[derive(Default)]
pub struct Capabilities {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    capabilities: HashMap<CapabilityToken, Capability>,
    /// What the clients of sessions may do that have shown a key.
    grants: HashMap<ConnId, Grant>,
}

struct Capability {
    what: Readable,
    /// The time at which the capability ends unless somebody has begun to read.
    until: Instant,
    /// The session that uses it.
    reader: Option<ConnId>,
    /// Number of bytes that were read.
    read_bytes: u64,
}

/// The bytes that a capability is for, and the stream whose work comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readable {
    /// The session whose memory it is.
    pub(crate) owner: ConnId,
    /// The bytes.
    pub(crate) src: Region,
    /// The stream whose work comes first.
    pub(crate) stream: u64,
    /// The number of the capability among those of the session.
    pub(crate) number: u64,
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secret.
        f.debug_struct("Capabilities").field("count", &self.state().capabilities.len()).finish()
    }
}

impl Capabilities {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what the client of the session may do that has given this capability, if the client has shown a key, and the capability was not used and
    /// has not ended.
    pub fn grant(&self, token: &CapabilityToken) -> Option<Grant> {
        let state = self.state();
        let capability = state.capabilities.get(token)?;
        let is_open = capability.reader.is_none() && Instant::now() < capability.until;
        is_open.then(|| state.grants.get(&capability.what.owner).cloned())?
    }

    /// Notes what the client of a session may do.
    pub(crate) fn begin_session(&self, conn: ConnId, grant: &Grant) {
        self.state().grants.insert(conn, grant.clone());
    }

    /// Ends the capabilities that a session has given and those that it uses.
    pub(crate) fn end_session(&self, conn: ConnId) {
        let mut state = self.state();
        state.grants.remove(&conn);
        state
            .capabilities
            .retain(|_, capability| capability.what.owner != conn && capability.reader != Some(conn));
    }

    /// Returns the numbers of a session's capabilities that have not ended.
    pub(crate) fn open(&self, owner: ConnId) -> Vec<u64> {
        let state = self.state();
        let owned = state.capabilities.values().filter(|capability| capability.what.owner == owner);
        owned.map(|capability| capability.what.number).collect()
    }

    /// Adds a capability, which has to be used within `timeout_ms`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a longer time than a capability may have, and for a token that there is already; `NOT_READY` if the session has as many
    /// capabilities as it may have.
    pub(crate) fn add(&self, token: CapabilityToken, what: Readable, timeout_ms: u32) -> HipResult<()> {
        if timeout_ms > CAPABILITY_TIMEOUT_MAX_MS {
            return Err(HipError::INVALID_VALUE);
        }
        let now = Instant::now();
        let mut state = self.state();
        state.capabilities.retain(|_, capability| capability.reader.is_some() || now < capability.until);
        if state.capabilities.values().filter(|capability| capability.what.owner == what.owner).count()
            >= CAPABILITIES_MAX
        {
            return Err(HipError::NOT_READY);
        }
        if state.capabilities.contains_key(&token) {
            return Err(HipError::INVALID_VALUE);
        }
        let until = now + Duration::from_millis(timeout_ms.into());
        state.capabilities.insert(token, Capability { what, until, reader: None, read_bytes: 0 });
        Ok(())
    }

    /// Begins to read the next `len_bytes` bytes of what a capability is for; the capability is the reader's from then on. Without bytes, behind the last
    /// ones, the capability ends.
    ///
    /// # Errors
    /// `INVALID_HANDLE` if there is no such capability for this reader, `INVALID_VALUE` for other bytes than the next ones, or too many.
    pub(crate) fn read(
        &self,
        token: &CapabilityToken,
        reader: ConnId,
        offset: u64,
        len_bytes: u64,
    ) -> HipResult<Readable> {
        let mut state = self.state();
        let capability = state.capabilities.get_mut(token).ok_or(HipError::INVALID_HANDLE)?;
        let is_readers = match capability.reader {
            // A session reads its own memory without capabilities.
            None => capability.what.owner != reader && Instant::now() < capability.until,
            Some(of) => of == reader,
        };
        if !is_readers {
            return Err(HipError::INVALID_HANDLE);
        }
        capability.reader = Some(reader);
        let (all_bytes, what) = (capability.what.src.len_bytes().unwrap_or(0), capability.what);
        let end = offset.checked_add(len_bytes).filter(|end| *end <= all_bytes);
        let is_end = len_bytes == 0 && offset == all_bytes;
        if offset != capability.read_bytes
            || len_bytes > CAPABILITY_PIECE_MAX_BYTES
            || (len_bytes == 0 && !is_end)
        {
            return Err(HipError::INVALID_VALUE);
        }
        capability.read_bytes = end.ok_or(HipError::INVALID_VALUE)?;
        if is_end {
            state.capabilities.remove(token);
        }
        Ok(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hipr_io::Slots;

    const TOKEN: CapabilityToken = [1; 32];
    const LEN: u64 = 10 << 20;

    fn conns<const N: usize>() -> [ConnId; N] {
        let mut slots = Slots::default();
        [(); N].map(|()| slots.insert(|_| ()).expect("room"))
    }

    fn of(owner: ConnId) -> Readable {
        Readable { owner, src: Region::flat(0x1000, LEN), stream: 7, number: 1 }
    }

    #[test]
    fn a_permit_is_for_one_reader_and_for_each_byte_once() {
        let [owner, reader, thief] = conns();
        let capabilities = Capabilities::default();
        assert_eq!(capabilities.read(&TOKEN, reader, 0, 1), Err(HipError::INVALID_HANDLE), "there is none");
        capabilities.add(TOKEN, of(owner), 1000).expect("a capability");
        assert_eq!(capabilities.read(&[2; 32], reader, 0, 1), Err(HipError::INVALID_HANDLE), "a guess");
        assert_eq!(capabilities.read(&TOKEN, owner, 0, 1), Err(HipError::INVALID_HANDLE), "it is for others");
        assert_eq!(capabilities.read(&TOKEN, reader, 0, 4 << 20), Ok(of(owner)));
        assert_eq!(capabilities.read(&TOKEN, thief, 4 << 20, 1), Err(HipError::INVALID_HANDLE), "stolen");
        for (offset, len) in
            [(0, 1), (1, 1), (4 << 20, 0), (4 << 20, (4 << 20) + 1), (4 << 20, u64::MAX), (u64::MAX, 1)]
        {
            assert_eq!(
                capabilities.read(&TOKEN, reader, offset, len),
                Err(HipError::INVALID_VALUE),
                "{offset} {len}"
            );
        }
        assert_eq!(capabilities.read(&TOKEN, reader, 4 << 20, 4 << 20), Ok(of(owner)));
        assert_eq!(
            capabilities.read(&TOKEN, reader, 8 << 20, 3 << 20),
            Err(HipError::INVALID_VALUE),
            "too many"
        );
        assert_eq!(capabilities.read(&TOKEN, reader, 8 << 20, 2 << 20), Ok(of(owner)));
        assert_eq!(capabilities.read(&TOKEN, reader, LEN, 0), Ok(of(owner)), "the end");
        assert_eq!(capabilities.read(&TOKEN, reader, 0, 1), Err(HipError::INVALID_HANDLE), "replayed");
    }

    #[test]
    fn a_permit_ends_with_its_time_and_with_either_session() {
        let [owner, reader] = conns();
        let capabilities = Capabilities::default();
        assert_eq!(
            capabilities.add(TOKEN, of(owner), CAPABILITY_TIMEOUT_MAX_MS + 1),
            Err(HipError::INVALID_VALUE)
        );
        capabilities.add(TOKEN, of(owner), 0).expect("a capability");
        assert_eq!(
            capabilities.read(&TOKEN, reader, 0, 1),
            Err(HipError::INVALID_HANDLE),
            "its time is over"
        );
        capabilities.add(TOKEN, of(owner), 1000).expect("what is over is nothing");
        assert_eq!(
            capabilities.add(TOKEN, of(reader), 1000),
            Err(HipError::INVALID_VALUE),
            "one token for two"
        );
        capabilities.end_session(owner);
        assert_eq!(
            capabilities.read(&TOKEN, reader, 0, 1),
            Err(HipError::INVALID_HANDLE),
            "the owner is gone"
        );
        capabilities.add(TOKEN, of(owner), 0).expect("a capability");
        capabilities
            .state()
            .capabilities
            .values_mut()
            .for_each(|capability| capability.until += Duration::from_secs(9));
        assert_eq!(capabilities.read(&TOKEN, reader, 0, 1), Ok(of(owner)));
        capabilities.end_session(reader);
        assert_eq!(
            capabilities.read(&TOKEN, reader, 1, 1),
            Err(HipError::INVALID_HANDLE),
            "the reader was gone"
        );
    }

    #[test]
    fn a_session_has_so_many_and_no_more() {
        let [owner, other] = conns();
        let capabilities = Capabilities::default();
        for number in 0..CAPABILITIES_MAX {
            capabilities.add([number as u8; 32], of(owner), 1000).expect("a capability");
        }
        assert_eq!(capabilities.add([99; 32], of(owner), 1000), Err(HipError::NOT_READY));
        capabilities.add([99; 32], of(other), 1000).expect("another session's");
        capabilities.end_session(owner);
        capabilities.add([98; 32], of(owner), 1000).expect("room again");
    }
}
