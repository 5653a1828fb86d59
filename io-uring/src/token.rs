//! What a completion says about the request that it is of.

/// The kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Reads the descriptor that other threads wake the loop with.
    Wake,
    /// Accepts connections.
    Accept,
    /// Receives into buffers of the ring, again and again.
    Receive,
    /// Waits for something to read.
    Input,
    /// Waits for a bell of shared memory.
    Bell,
    /// Sends.
    Send,
    /// Waits for room to send.
    Room,
    /// Waits for the peer to close its side.
    Watch,
    /// Cancels requests of its port.
    Cancel,
    /// Cancels all.
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

/// Names a request: its kind, and the port that it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) op: Op,
    /// 0 for what belongs to none.
    pub(crate) port: u32,
}

impl Token {
    pub(crate) fn new(op: Op, port: u32) -> Self {
        Self { op, port }
    }

    /// As the kernel carries it.
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.port) << 8 | self.op as u64
    }

    /// `None` for what [`Token::pack`] did not make.
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
