//! What the worker was asked to tell of the variables of modules, and what it has told.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hipr_proto::Wire;
use hipr_proto::op::{Variable, VariablesTold};

/// The variables of modules, by the number of the request.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of the last request.
    last: u64,
    asked: HashMap<u64, Asked>,
}

#[derive(Debug)]
enum Asked {
    /// So many variables were asked for.
    For(u32),
    /// They were told.
    Told(Box<[Variable]>),
}

impl Variables {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number for a request that is about to ask for so many variables.
    pub(crate) fn expect(&self, count: u32) -> u64 {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        state.asked.insert(number, Asked::For(count));
        number
    }

    /// Learns what the worker tells, once, and only of as many as were asked for: a worker may say anything.
    pub(crate) fn learn(&self, told: VariablesTold, mut list: &[u8]) {
        let mut state = self.state();
        let Some(asked) = state.asked.get_mut(&told.number) else { return };
        if !matches!(asked, Asked::For(count) if *count == told.count) {
            return;
        }
        let variables: Result<Box<[Variable]>, _> =
            (0..told.count).map(|_| Variable::take(&mut list)).collect();
        if let Ok(variables) = variables {
            *asked = Asked::Told(variables);
        }
    }

    /// Returns a variable of a request if the worker has told of it, and that it is there.
    pub(crate) fn get(&self, number: u64, variable: usize) -> Option<Variable> {
        match self.state().asked.get(&number)? {
            Asked::For(_) => None,
            Asked::Told(all) => all.get(variable).copied().filter(|variable| *variable != Variable::ZERO),
        }
    }

    /// Forgets a request.
    pub(crate) fn forget(&self, number: u64) {
        self.state().asked.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(addresses: &[u64]) -> Vec<u8> {
        let mut list = Vec::new();
        addresses
            .iter()
            .for_each(|address| Variable { address: *address, size: *address / 2 }.put(&mut list));
        list
    }

    fn told(number: u64, count: u32) -> VariablesTold {
        VariablesTold { number, count, reserved: 0 }
    }

    #[test]
    fn what_is_told_is_known_until_it_is_forgotten() {
        let variables = Variables::default();
        let (first, second) = (variables.expect(2), variables.expect(1));
        variables.learn(told(second, 1), &list(&[0x40]));
        assert_eq!(variables.get(first, 0), None, "it was not told yet");
        variables.learn(told(first, 2), &list(&[0x20, 0]));
        assert_eq!(variables.get(first, 0), Some(Variable { address: 0x20, size: 0x10 }));
        assert_eq!(variables.get(first, 1), None, "it is not there");
        assert_eq!(variables.get(first, 2), None);
        assert_eq!(variables.get(second, 0).map(|variable| variable.address), Some(0x40));
        variables.forget(first);
        variables.learn(told(first, 2), &list(&[0x20, 0x60]));
        assert_eq!(variables.get(first, 0), None);
    }

    #[test]
    fn what_was_not_asked_for_is_not_kept() {
        let variables = Variables::default();
        let number = variables.expect(2);
        for (told, list) in [
            (told(number + 1, 2), list(&[1, 2])),
            (told(number, 1), list(&[1])),
            (told(number, 3), list(&[1, 2, 3])),
            (told(number, 2), list(&[1])),
            (told(number, u32::MAX), Vec::new()),
        ] {
            variables.learn(told, &list);
            assert_eq!(variables.get(number, 0), None, "{told:?}");
        }
        variables.learn(told(number, 2), &list(&[1, 2]));
        variables.learn(told(number, 2), &list(&[3, 4]));
        assert_eq!(variables.get(number, 0).map(|variable| variable.address), Some(1), "it is told once");
        assert_eq!(variables.state().asked.len(), 1);
    }
}
