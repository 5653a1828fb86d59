use std::io::{self, ErrorKind};

use crate::ConnId;

/// A table of connections by [`ConnId`]. Slots are reused but ids are not, so that an id of a closed connection finds
/// nothing.
#[derive(Debug)]
pub struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    len: usize,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), len: 0 }
    }
}

impl<T> Slots<T> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts what `make` returns for the new id; returns `None` only if 2^32 entries exist.
    pub fn insert(&mut self, make: impl FnOnce(ConnId) -> T) -> Option<ConnId> {
        self.try_insert(|id| Ok(make(id))).ok()
    }

    /// Inserts what `make` returns for the new id.
    ///
    /// # Errors
    /// Those of `make`, which leave the table as it was; 2^32 are open.
    pub fn try_insert(&mut self, make: impl FnOnce(ConnId) -> io::Result<T>) -> io::Result<ConnId> {
        let slot = match self.free.last() {
            Some(slot) => *slot,
            None => {
                let slot = u32::try_from(self.slots.len()).map_err(io::Error::other)?;
                self.slots.push((0, None));
                self.free.push(slot);
                slot
            }
        };
        let (generation, place) = self.slots.get_mut(slot as usize).ok_or(ErrorKind::NotFound)?;
        let id = ConnId::new(slot, *generation);
        *place = Some(make(id)?);
        self.free.pop();
        self.len += 1;
        Ok(id)
    }

    /// Returns the entry with this id.
    pub fn get_mut(&mut self, id: ConnId) -> Option<&mut T> {
        let (generation, place) = self.slots.get_mut(id.slot() as usize)?;
        if *generation == id.generation() { place.as_mut() } else { None }
    }

    /// Returns the current entry of a slot.
    pub fn at_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize).and_then(|(_, place)| place.as_mut())
    }

    /// Removes and returns the entry with this id.
    pub fn remove(&mut self, id: ConnId) -> Option<T> {
        let (generation, place) = self.slots.get_mut(id.slot() as usize)?;
        if *generation != id.generation() {
            return None;
        }
        let value = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot());
        self.len -= 1;
        Some(value)
    }

    /// Returns the id of the current entry of a slot.
    pub fn id_at(&self, slot: u32) -> Option<ConnId> {
        let (generation, place) = self.slots.get(slot as usize)?;
        place.as_ref().map(|_| ConnId::new(slot, *generation))
    }

    /// Iterates over all entries.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (ConnId, &mut T)> {
        self.slots.iter_mut().zip(0u32..).filter_map(|((generation, place), slot)| {
            place.as_mut().map(|value| (ConnId::new(slot, *generation), value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_not_used_again() {
        let mut slots = Slots::default();
        let a = slots.insert(|_| 'a').unwrap();
        let b = slots.insert(|_| 'b').unwrap();
        assert_eq!(slots.remove(a), Some('a'));
        assert!(slots.try_insert(|_| Err(ErrorKind::Other.into())).is_err());
        let c = slots.insert(|_| 'c').unwrap();
        assert_eq!((c.slot(), slots.len()), (a.slot(), 2));
        assert_ne!(c, a);
        assert_eq!(slots.get_mut(a), None);
        assert_eq!(slots.remove(a), None);
        assert_eq!(slots.id_at(c.slot()), Some(c));
        let all: Vec<_> = slots.iter_mut().map(|(id, value)| (id, *value)).collect();
        assert_eq!(all, [(c, 'c'), (b, 'b')]);
    }
}
