//! The sessions of a worker by their names.

use std::collections::HashMap;
use std::fmt;

use crate::{Claim, Name};

/// The sessions that can be claimed: `I` is what the worker calls one, `K` the key that its client has shown.
#[derive(Debug)]
pub struct Registry<I, K> {
    sessions: HashMap<Name, Session<I, K>>,
}

#[derive(Debug)]
struct Session<I, K> {
    id: I,
    key: K,
    epoch: u32,
}

/// Why a claim is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such session, or it is another key's.
    Unknown,
    /// A new session was to have the name of another.
    Taken,
    /// The session has had a later connection.
    Late,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => {
                "this worker has no such session: it was restarted, or the link was cut for longer than it keeps one, or it keeps no more of them"
            }
            Self::Taken => "a session of this name is there already",
            Self::Late => "the session has had a later connection",
        })
    }
}

impl<I, K> Default for Registry<I, K> {
    fn default() -> Self {
        Self { sessions: HashMap::new() }
    }
}

impl<I: Copy, K: PartialEq> Registry<I, K> {
    /// Returns whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Adds a session that begins; it has to be [removed](Self::remove) when it ends.
    ///
    /// # Errors
    /// There is one of that name.
    pub fn begin(&mut self, name: Name, key: K, id: I) -> Result<(), Refusal> {
        if self.sessions.contains_key(&name) {
            return Err(Refusal::Taken);
        }
        self.sessions.insert(name, Session { id, key, epoch: 0 });
        Ok(())
    }

    /// Returns the session that is claimed over a new connection. The session's older connections mean nothing from now on.
    ///
    /// # Errors
    /// There is no such session, it is another key's, or it has had a later connection.
    pub fn resume(&mut self, claim: &Claim, key: &K) -> Result<I, Refusal> {
        let session = self.sessions.get_mut(&claim.name).filter(|session| session.key == *key);
        let session = session.ok_or(Refusal::Unknown)?;
        if claim.epoch <= session.epoch {
            return Err(Refusal::Late);
        }
        session.epoch = claim.epoch;
        Ok(session.id)
    }

    /// Removes a session that has ended.
    pub fn remove(&mut self, name: &Name) {
        self.sessions.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_its_keys_and_its_latest_connections() {
        let name = Name::new([1; 32]);
        let claim = |epoch| Claim { name, epoch, taken: 0 };
        let mut sessions = Registry::default();
        assert_eq!(sessions.resume(&claim(1), &"ann"), Err(Refusal::Unknown));
        assert_eq!(sessions.begin(name, "ann", 5), Ok(()));
        assert_eq!(sessions.begin(name, "ann", 6), Err(Refusal::Taken));
        assert_eq!(sessions.resume(&claim(0), &"ann"), Err(Refusal::Late));
        assert_eq!(sessions.resume(&claim(9), &"bob"), Err(Refusal::Unknown), "it says nothing of others'");
        assert_eq!(sessions.resume(&claim(2), &"ann"), Ok(5));
        assert_eq!(sessions.resume(&claim(2), &"ann"), Err(Refusal::Late), "a copy");
        assert_eq!(sessions.resume(&claim(1), &"ann"), Err(Refusal::Late), "one that was on its way");
        assert_eq!(sessions.resume(&claim(3), &"ann"), Ok(5));
        sessions.remove(&name);
        assert!(sessions.is_empty());
        assert_eq!(sessions.resume(&claim(4), &"ann"), Err(Refusal::Unknown));
    }
}
