//! The permits of all sessions: who may read which memory of which session, once.
//!
//! Whoever knows a permit's token may use it: it is what one session of a program hands to another worker, so that bytes go from worker to
//! worker. Everything that ends a permit is here; [`Session`](crate::session) reads the memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hipr_device::Region;
use hipr_io::{ConnId, Grant};
use hipr_proto::op::{PERMIT_PIECE_MAX_BYTES, PERMIT_TIMEOUT_MAX_MS, PERMIT_TOKEN_BYTES, PERMITS_MAX};
use hipr_proto::{HipError, HipResult};

/// The token of a permit.
pub type PermitToken = [u8; PERMIT_TOKEN_BYTES];

/// The permits that the sessions of a worker have given, shared by the thread that carries out requests and the one that lets clients in.
#[derive(Default)]
pub struct Permits {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    permits: HashMap<PermitToken, Permit>,
    /// What the clients of sessions may do that have shown a key.
    grants: HashMap<ConnId, Grant>,
}

struct Permit {
    what: Permitted,
    /// The time until which it has to be used.
    until: Instant,
    /// The session that uses it.
    reader: Option<ConnId>,
    /// Number of bytes that were read.
    read_bytes: u64,
}

/// What a permit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permitted {
    /// The session whose memory it is.
    pub(crate) owner: ConnId,
    /// The bytes.
    pub(crate) src: Region,
    /// The stream whose work comes first.
    pub(crate) stream: u64,
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secret.
        f.debug_struct("Permits").field("count", &self.state().permits.len()).finish()
    }
}

impl Permits {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what the client of the session may do that has given this permit, if the client has shown a key, and the permit was not used and
    /// has not ended.
    pub fn grant(&self, token: &PermitToken) -> Option<Grant> {
        let state = self.state();
        let permit = state.permits.get(token)?;
        let is_open = permit.reader.is_none() && Instant::now() < permit.until;
        is_open.then(|| state.grants.get(&permit.what.owner).cloned())?
    }

    /// Notes what the client of a session may do.
    pub(crate) fn begin_session(&self, conn: ConnId, grant: &Grant) {
        self.state().grants.insert(conn, grant.clone());
    }

    /// Ends the permits that a session has given and those that it uses.
    pub(crate) fn end_session(&self, conn: ConnId) {
        let mut state = self.state();
        state.grants.remove(&conn);
        state.permits.retain(|_, permit| permit.what.owner != conn && permit.reader != Some(conn));
    }

    /// Adds a permit, which has to be used within `timeout_ms`.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a longer time than a permit may have, and for a token that there is already; `NOT_READY` if the session has as many
    /// permits as it may have.
    pub(crate) fn add(&self, token: PermitToken, what: Permitted, timeout_ms: u32) -> HipResult<()> {
        if timeout_ms > PERMIT_TIMEOUT_MAX_MS {
            return Err(HipError::INVALID_VALUE);
        }
        let now = Instant::now();
        let mut state = self.state();
        state.permits.retain(|_, permit| permit.reader.is_some() || now < permit.until);
        if state.permits.values().filter(|permit| permit.what.owner == what.owner).count() >= PERMITS_MAX {
            return Err(HipError::NOT_READY);
        }
        if state.permits.contains_key(&token) {
            return Err(HipError::INVALID_VALUE);
        }
        let until = now + Duration::from_millis(timeout_ms.into());
        state.permits.insert(token, Permit { what, until, reader: None, read_bytes: 0 });
        Ok(())
    }

    /// Begins to read the next `len_bytes` bytes of what a permit is for; the permit is the reader's from then on. Without bytes, behind the last
    /// ones, the permit ends.
    ///
    /// # Errors
    /// `INVALID_HANDLE` if there is no such permit for this reader, `INVALID_VALUE` for other bytes than the next ones, or too many.
    pub(crate) fn read(
        &self,
        token: &PermitToken,
        reader: ConnId,
        offset: u64,
        len_bytes: u64,
    ) -> HipResult<Permitted> {
        let mut state = self.state();
        let permit = state.permits.get_mut(token).ok_or(HipError::INVALID_HANDLE)?;
        let is_readers = match permit.reader {
            // A session reads its own memory without permits.
            None => permit.what.owner != reader && Instant::now() < permit.until,
            Some(of) => of == reader,
        };
        if !is_readers {
            return Err(HipError::INVALID_HANDLE);
        }
        permit.reader = Some(reader);
        let (all_bytes, what) = (permit.what.src.len_bytes().unwrap_or(0), permit.what);
        let end = offset.checked_add(len_bytes).filter(|end| *end <= all_bytes);
        let is_end = len_bytes == 0 && offset == all_bytes;
        if offset != permit.read_bytes || len_bytes > PERMIT_PIECE_MAX_BYTES || (len_bytes == 0 && !is_end) {
            return Err(HipError::INVALID_VALUE);
        }
        permit.read_bytes = end.ok_or(HipError::INVALID_VALUE)?;
        if is_end {
            state.permits.remove(token);
        }
        Ok(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hipr_io::Slots;

    const TOKEN: PermitToken = [1; 32];
    const LEN: u64 = 10 << 20;

    fn conns<const N: usize>() -> [ConnId; N] {
        let mut slots = Slots::default();
        [(); N].map(|()| slots.insert(|_| ()).expect("room"))
    }

    fn of(owner: ConnId) -> Permitted {
        Permitted { owner, src: Region::flat(0x1000, LEN), stream: 7 }
    }

    #[test]
    fn a_permit_is_for_one_reader_and_for_each_byte_once() {
        let [owner, reader, thief] = conns();
        let permits = Permits::default();
        assert_eq!(permits.read(&TOKEN, reader, 0, 1), Err(HipError::INVALID_HANDLE), "there is none");
        permits.add(TOKEN, of(owner), 1000).expect("a permit");
        assert_eq!(permits.read(&[2; 32], reader, 0, 1), Err(HipError::INVALID_HANDLE), "a guess");
        assert_eq!(permits.read(&TOKEN, owner, 0, 1), Err(HipError::INVALID_HANDLE), "it is for others");
        assert_eq!(permits.read(&TOKEN, reader, 0, 4 << 20), Ok(of(owner)));
        assert_eq!(permits.read(&TOKEN, thief, 4 << 20, 1), Err(HipError::INVALID_HANDLE), "stolen");
        for (offset, len) in
            [(0, 1), (1, 1), (4 << 20, 0), (4 << 20, (4 << 20) + 1), (4 << 20, u64::MAX), (u64::MAX, 1)]
        {
            assert_eq!(
                permits.read(&TOKEN, reader, offset, len),
                Err(HipError::INVALID_VALUE),
                "{offset} {len}"
            );
        }
        assert_eq!(permits.read(&TOKEN, reader, 4 << 20, 4 << 20), Ok(of(owner)));
        assert_eq!(permits.read(&TOKEN, reader, 8 << 20, 3 << 20), Err(HipError::INVALID_VALUE), "too many");
        assert_eq!(permits.read(&TOKEN, reader, 8 << 20, 2 << 20), Ok(of(owner)));
        assert_eq!(permits.read(&TOKEN, reader, LEN, 0), Ok(of(owner)), "the end");
        assert_eq!(permits.read(&TOKEN, reader, 0, 1), Err(HipError::INVALID_HANDLE), "replayed");
    }

    #[test]
    fn a_permit_ends_with_its_time_and_with_either_session() {
        let [owner, reader] = conns();
        let permits = Permits::default();
        assert_eq!(permits.add(TOKEN, of(owner), PERMIT_TIMEOUT_MAX_MS + 1), Err(HipError::INVALID_VALUE));
        permits.add(TOKEN, of(owner), 0).expect("a permit");
        assert_eq!(permits.read(&TOKEN, reader, 0, 1), Err(HipError::INVALID_HANDLE), "its time is over");
        permits.add(TOKEN, of(owner), 1000).expect("what is over is nothing");
        assert_eq!(permits.add(TOKEN, of(reader), 1000), Err(HipError::INVALID_VALUE), "one token for two");
        permits.end_session(owner);
        assert_eq!(permits.read(&TOKEN, reader, 0, 1), Err(HipError::INVALID_HANDLE), "the owner is gone");
        permits.add(TOKEN, of(owner), 0).expect("a permit");
        permits.state().permits.values_mut().for_each(|permit| permit.until += Duration::from_secs(9));
        assert_eq!(permits.read(&TOKEN, reader, 0, 1), Ok(of(owner)));
        permits.end_session(reader);
        assert_eq!(permits.read(&TOKEN, reader, 1, 1), Err(HipError::INVALID_HANDLE), "the reader was gone");
    }

    #[test]
    fn a_session_has_so_many_and_no_more() {
        let [owner, other] = conns();
        let permits = Permits::default();
        for number in 0..PERMITS_MAX {
            permits.add([number as u8; 32], of(owner), 1000).expect("a permit");
        }
        assert_eq!(permits.add([99; 32], of(owner), 1000), Err(HipError::NOT_READY));
        permits.add([99; 32], of(other), 1000).expect("another session's");
        permits.end_session(owner);
        permits.add([98; 32], of(owner), 1000).expect("room again");
    }
}
