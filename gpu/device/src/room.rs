//! The room that a session's commands have on a device.

/// The most that a context may keep of commands that are not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Maximum number of commands.
    pub commands: usize,
    /// Maximum bytes of host memory for them: their arguments, the data that they carry and what keeps their order.
    pub bytes: u64,
}

impl Room {
    /// Returns whether another command may be added to `commands` that take `bytes`.
    pub fn has_place_beside(self, commands: usize, bytes: u64) -> bool {
        commands < self.commands && bytes < self.bytes
    }

    /// Returns half of the room: what has to be free again before whoever waits for room is woken.
    #[must_use]
    pub fn half(self) -> Self {
        Self { commands: self.commands.div_ceil(2), bytes: self.bytes.div_ceil(2) }
    }
}
