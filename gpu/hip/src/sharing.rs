//! The shared memory and events of one session.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::owner::Owner;
use hipr_proto::{HipError, HipResult};

use super::exchange::{Exchange, Shared, Token};

/// The tokens that a session has given out, by address or handle: what is shared twice has one token.
pub(super) struct Sharing {
    exchange: Arc<Exchange>,
    memory: BTreeMap<u64, Token>,
    events: BTreeMap<u64, Token>,
    physical: BTreeMap<u64, Token>,
}

impl Sharing {
    pub(super) fn new(exchange: Arc<Exchange>) -> Self {
        let (memory, events, physical) = Default::default();
        Self { exchange, memory, events, physical }
    }

    pub(super) fn share_memory(&mut self, owner: &Owner, ptr: u64, size_bytes: u64) -> HipResult<Token> {
        if let Some(token) = self.memory.get(&ptr) {
            return Ok(*token);
        }
        let handle = owner.memory_handle(ptr)?;
        let token = self.exchange.put(Shared { handle, len_bytes: Some(size_bytes) })?;
        self.memory.insert(ptr, token);
        Ok(token)
    }

    pub(super) fn open_memory(
        &self,
        owner: &mut Owner,
        token: &Token,
        flags: u32,
        room_bytes: u64,
    ) -> HipResult<(u64, u64)> {
        let Shared { handle, len_bytes: Some(len_bytes) } = self.exchange.find(token)? else {
            return Err(HipError::INVALID_VALUE);
        };
        if len_bytes > room_bytes {
            return Err(HipError::OUT_OF_MEMORY);
        }
        Ok((owner.open_memory(&handle, len_bytes, flags)?, len_bytes))
    }

    pub(super) fn share_event(&mut self, owner: &Owner, event: u64) -> HipResult<Token> {
        if let Some(token) = self.events.get(&event) {
            return Ok(*token);
        }
        let handle = owner.event_handle(event)?;
        let token = self.exchange.put(Shared { handle, len_bytes: None })?;
        self.events.insert(event, token);
        Ok(token)
    }

    pub(super) fn open_event(&self, owner: &mut Owner, token: &Token) -> HipResult<u64> {
        match self.exchange.find(token)? {
            Shared { handle, len_bytes: None } => owner.open_event(&handle),
            Shared { len_bytes: Some(_), .. } => Err(HipError::INVALID_VALUE),
        }
    }

    pub(super) fn share_physical(&mut self, owner: &Owner, handle: u64) -> HipResult<Token> {
        if let Some(token) = self.physical.get(&handle) {
            return Ok(*token);
        }
        let (file, len_bytes) = owner.export(handle)?;
        let token = self.exchange.put_file(file, len_bytes)?;
        self.physical.insert(handle, token);
        Ok(token)
    }

    pub(super) fn open_physical(
        &self,
        owner: &mut Owner,
        token: &Token,
        room_bytes: u64,
    ) -> HipResult<(u64, u64)> {
        let (file, len_bytes) = self.exchange.find_file(token)?;
        if len_bytes > room_bytes {
            return Err(HipError::OUT_OF_MEMORY);
        }
        Ok((owner.import(&file, len_bytes)?, len_bytes))
    }

    /// Handles that the handle of physical memory was given up.
    pub(super) fn forget_physical(&mut self, handle: u64) {
        self.physical.remove(&handle).inspect(|token| self.exchange.remove_file(token));
    }

    /// Handles that memory was freed.
    pub(super) fn forget_memory(&mut self, ptr: u64) {
        self.memory.remove(&ptr).inspect(|token| self.exchange.remove(token));
    }

    /// Handles that an event was destroyed.
    pub(super) fn forget_event(&mut self, event: u64) {
        self.events.remove(&event).inspect(|token| self.exchange.remove(token));
    }

    /// Handles that everything was released.
    pub(super) fn clear(&mut self) {
        for (_, token) in std::mem::take(&mut self.memory).into_iter().chain(std::mem::take(&mut self.events))
        {
            self.exchange.remove(&token);
        }
        for token in std::mem::take(&mut self.physical).into_values() {
            self.exchange.remove_file(&token);
        }
    }
}

impl Drop for Sharing {
    fn drop(&mut self) {
        self.clear();
    }
}
