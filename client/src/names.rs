//! The names that a connection gives to what it makes.

use hipr_proto::op::ClientName;

/// Chooses names, in the order in which they are sent, and reuses the places of those that are free again.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Number of names that were chosen; it rises, so that each name is greater than all earlier ones of its place.
    turn: u64,
    /// The name that each place has.
    live: Vec<Option<ClientName>>,
    /// The places without a name.
    free: Vec<usize>,
}

impl Names {
    /// Returns a new name; `None` if there are none left.
    pub(crate) fn choose(&mut self) -> Option<ClientName> {
        let place = self.free.last().copied().unwrap_or(self.live.len());
        let name = ClientName::new(self.turn, place)?;
        self.turn += 1;
        match self.live.get_mut(place) {
            Some(live) => *live = Some(name),
            None => self.live.push(Some(name)),
        }
        self.free.pop();
        Some(name)
    }

    /// Returns the turn of the next name, which is greater than those of all names so far.
    pub(crate) fn turn(&self) -> u64 {
        self.turn
    }

    /// Frees the place of a name whose object is gone; does nothing for any other handle.
    pub(crate) fn free(&mut self, handle: u64) {
        let Some(name) = ClientName::of(handle) else { return };
        if let Some(live) = self.live.get_mut(name.place()).filter(|live| **live == Some(name)) {
            *live = None;
            self.free.push(name.place());
        }
    }

    /// Frees the places of all names that were chosen before `turn`.
    pub(crate) fn free_before(&mut self, turn: u64) {
        for (place, live) in self.live.iter_mut().enumerate() {
            if live.is_some_and(|name| name.turn() < turn) {
                *live = None;
                self.free.push(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(names: &mut Names) -> ClientName {
        names.choose().expect("a name")
    }

    #[test]
    fn names_rise_and_places_are_reused() {
        let mut names = Names::default();
        let [_, second, third] = [0, 1, 2].map(|place| {
            let name = choose(&mut names);
            assert_eq!(name.place(), place);
            name
        });
        names.free(second.number());
        names.free(second.number());
        names.free(0x7f00_0000_1000);
        let again = choose(&mut names);
        assert!(again.place() == 1 && again > second, "greater than the one before");
        assert_eq!(choose(&mut names).place(), 3, "freed twice, the place is free once");
        names.free(second.number());
        assert_eq!(choose(&mut names).place(), 4, "the place belongs to another name");
        let turn = names.turn();
        let late = choose(&mut names);
        names.free(third.number());
        names.free_before(turn);
        let mut places: Vec<_> = (0..6).map(|_| choose(&mut names).place()).collect();
        places.sort_unstable();
        assert_eq!(
            (late.place(), places),
            (5, vec![0, 1, 2, 3, 4, 6]),
            "but for the one that was chosen later"
        );
    }
}
