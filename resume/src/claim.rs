//! What both ends say about a session before its first frame: the client's claim, and the worker's terms.

use std::fmt;

/// Length of a claim.
pub const CLAIM_BYTES: usize = 44;
/// Length of the terms.
pub const TERMS_BYTES: usize = 28;

/// The name of a session: 256 random bits that its client has chosen. Who knows it, and has the client's key if it has shown one, can go
/// on with the session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name([u8; 32]);

impl Name {
    /// Makes a name of random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }
}

impl fmt::Debug for Name {
    /// Says nothing: a name is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a session's name")
    }
}

/// What a client says: which session the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The session.
    pub name: Name,
    /// How many connections the session has had: 0 begins it. A connection takes the place of all with a lower number.
    pub epoch: u32,
    /// The offset up to which the client has the worker's bytes.
    pub taken: u64,
}

/// What a worker answers to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long the worker keeps the session when its connection is cut; 0 if it does not.
    pub timeout_ms: u32,
    /// The most bytes that the client may have sent and the worker not acknowledged.
    pub to_worker_max_bytes: u32,
    /// The most bytes that the worker sends before the client acknowledges them.
    pub to_client_max_bytes: u32,
    /// The offset up to which the worker has the client's bytes.
    pub taken: u64,
    /// What a connection that goes on with the session says first, so that it is passed to the session's process; 0: nothing.
    pub route: u64,
}

impl Claim {
    /// Returns the claim's bytes.
    pub fn to_bytes(&self) -> [u8; CLAIM_BYTES] {
        let mut bytes = [0; CLAIM_BYTES];
        put(&mut bytes, &[&self.name.0, &self.epoch.to_le_bytes(), &self.taken.to_le_bytes()]);
        bytes
    }

    /// Reads a claim; `None` if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (name, rest) = bytes.split_first_chunk()?;
        let (epoch, rest) = rest.split_first_chunk()?;
        let taken: &[u8; 8] = rest.try_into().ok()?;
        Some(Self { name: Name(*name), epoch: u32::from_le_bytes(*epoch), taken: u64::from_le_bytes(*taken) })
    }
}

impl Terms {
    /// Returns the terms' bytes.
    pub fn to_bytes(&self) -> [u8; TERMS_BYTES] {
        let mut bytes = [0; TERMS_BYTES];
        let words = [self.timeout_ms, self.to_worker_max_bytes, self.to_client_max_bytes];
        let [a, b, c] = words.map(u32::to_le_bytes);
        put(&mut bytes, &[&a, &b, &c, &self.taken.to_le_bytes(), &self.route.to_le_bytes()]);
        bytes
    }

    /// Reads terms; `None` if the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (timeout_ms, rest) = bytes.split_first_chunk()?;
        let (to_worker, rest) = rest.split_first_chunk()?;
        let (to_client, rest) = rest.split_first_chunk()?;
        let (taken, rest) = rest.split_first_chunk()?;
        let route: &[u8; 8] = rest.try_into().ok()?;
        Some(Self {
            timeout_ms: u32::from_le_bytes(*timeout_ms),
            to_worker_max_bytes: u32::from_le_bytes(*to_worker),
            to_client_max_bytes: u32::from_le_bytes(*to_client),
            taken: u64::from_le_bytes(*taken),
            route: u64::from_le_bytes(*route),
        })
    }
}

fn put(bytes: &mut [u8], parts: &[&[u8]]) {
    let all = parts.iter().copied().flatten();
    bytes.iter_mut().zip(all).for_each(|(place, byte)| *place = *byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_back_and_nothing_shorter_or_longer_does() {
        let claim = Claim { name: Name::new([7; 32]), epoch: 0x0102_0304, taken: 0x1122_3344_5566_7788 };
        let terms = Terms {
            timeout_ms: 60_000,
            to_worker_max_bytes: 1 << 20,
            to_client_max_bytes: 3,
            taken: u64::MAX,
            route: 0x0807_0605_0403_0201,
        };
        assert_eq!(Claim::from_bytes(&claim.to_bytes()), Some(claim));
        assert_eq!(Terms::from_bytes(&terms.to_bytes()), Some(terms));
        let (long_claim, long_terms) = ([0; CLAIM_BYTES + 1], [0; TERMS_BYTES + 1]);
        for len in (0..CLAIM_BYTES).chain([CLAIM_BYTES + 1]) {
            assert_eq!(Claim::from_bytes(&long_claim[..len]), None, "{len}");
        }
        for len in (0..TERMS_BYTES).chain([TERMS_BYTES + 1]) {
            assert_eq!(Terms::from_bytes(&long_terms[..len]), None, "{len}");
        }
    }

    #[test]
    fn a_name_is_not_shown() {
        assert!(!format!("{:?}", Name::new([7; 32])).contains('7'));
    }
}
