//! The tag of a request, which its completions carry.

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Reads the event descriptor that wakes the loop.
    Wake,
    /// Accepts connections.
    Accept,
    /// Receives repeatedly into receive buffers.
    Receive,
    /// Waits until there is something to read.
    Input,
    /// Waits for the bell of shared memory.
    Bell,
    /// Sends bytes.
    Send,
    /// Waits for room to send.
    Room,
    /// Waits until the peer closes its side.
    Watch,
    /// Cancels requests of the same port.
    Cancel,
    /// Cancels all requests.
    CancelAll,
}

impl Op {
    const ALL: [Self; 10] = [
        Self::Wake,
        Self::Accept,
        Self::Receive,
        Self::Input,
        Self::Bell,
        Self::Send,
        Self::Room,
        Self::Watch,
        Self::Cancel,
        Self::CancelAll,
    ];
}

/// Identifies a request: its kind and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) op: Op,
    /// The port's number; 0 for requests without a port.
    pub(crate) port: u32,
}

impl Token {
    pub(crate) fn new(op: Op, port: u32) -> Self {
        Self { op, port }
    }

    /// Encodes the token as the number that the kernel carries.
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.port) << 8 | self.op as u64
    }

    /// Decodes a token; returns `None` for a number that [`Token::pack`] did not produce.
    pub(crate) fn unpack(packed: u64) -> Option<Self> {
        let op = *Op::ALL.get((packed & 0xff) as usize)?;
        Some(Self { op, port: u32::try_from(packed >> 8).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked() {
        for op in Op::ALL {
            for port in [0, 1, 0x0102_0304, u32::MAX] {
                let token = Token::new(op, port);
                assert_eq!(Token::unpack(token.pack()), Some(token));
            }
        }
        let kinds = Op::ALL.len() as u64;
        assert_eq!((Token::unpack(kinds), Token::unpack(1 << 40)), (None, None));
    }
}
