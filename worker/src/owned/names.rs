//! Names: numbers that stand for a session's objects in place of the device's own handles.
//!
//! A client chooses names for what it makes (`NAME`), so that it need not wait for a handle. They are resolved in one place, before
//! a request's function runs: everything behind it, the tables of the session and the devices, has the device's handles only.
//!
//! A device may give handles that look like names, for example a runtime that is a client of another worker. The session then tells
//! its client a number of its own for them, from 2^63 on, which is resolved in the same way. Numbers from 2^62 on are therefore
//! never handles.

use std::collections::BTreeMap;
use std::mem;

use hipr_proto::op::{ClientName, Handle};
use hipr_proto::{HipError, HipResult, Opcode};

/// The handle of a number that stands for nothing. No table has it.
const NOTHING: u64 = u64::MAX;
/// The first number that the session chooses.
const GIVEN: u64 = 1 << 63;

/// A place for objects that have it one after another.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The last number that was used here.
    number: u64,
    kind: Handle,
    /// The device's handle of the object; [`NOTHING`] if there is none.
    handle: u64,
}

/// What the session knows of the next request, or of the one that is being executed.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Nothing: it has no name.
    Unnamed,
    /// `NAME` was accepted: the next request makes what has this name.
    Announced(ClientName),
    /// `NAME` was refused, and the next request must make nothing.
    Refused(HipError),
    /// The request makes an object of this kind, with this name.
    Makes(Handle, ClientName),
}

/// The names of a session.
#[derive(Debug)]
pub(crate) struct Names {
    next: Next,
    /// The objects that the client named, by place.
    chosen: Vec<Slot>,
    /// The objects that the session named, by place.
    given: Vec<Slot>,
    /// The places in `given` without an object.
    free: Vec<usize>,
    /// The number of each object that has one.
    numbers: BTreeMap<(Handle, u64), u64>,
}

impl Default for Names {
    fn default() -> Self {
        let (chosen, given, free, numbers) = Default::default();
        Self { next: Next::Unnamed, chosen, given, free, numbers }
    }
}

impl Names {
    // ---- requests ----------------------------------------------------------------------------------------------------

    /// Returns whether no `NAME` has to be looked at before the next request begins.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.next, Next::Unnamed)
    }

    /// Accepts or refuses a name for what the next request makes; `places_max` is the maximum number of places.
    ///
    /// # Errors
    /// As rule 9 of the protocol says.
    pub(crate) fn announce(&mut self, number: u64, places_max: usize) -> HipResult<()> {
        let name = self.take_place(number, places_max).map_err(|error| self.refuse(error))?;
        self.next = Next::Announced(name);
        Ok(())
    }

    /// Refuses a name, and with it what the next request would make; returns `error`.
    pub(crate) fn refuse(&mut self, error: HipError) -> HipError {
        self.next = Next::Refused(error);
        error
    }

    /// Uses up a name.
    fn take_place(&mut self, number: u64, places_max: usize) -> HipResult<ClientName> {
        let name = ClientName::of(number).ok_or(HipError::INVALID_VALUE)?;
        let taken = self.chosen.len();
        match self.chosen.get_mut(name.place()) {
            Some(slot) if slot.handle == NOTHING && slot.number < number => slot.number = number,
            None if name.place() == taken && taken >= places_max => return Err(HipError::OUT_OF_MEMORY),
            None if name.place() == taken => {
                self.chosen.push(Slot { number, kind: Handle::Stream, handle: NOTHING });
            }
            _ => return Err(HipError::INVALID_VALUE),
        }
        Ok(name)
    }

    /// Handles that a request begins, the one before it being over.
    ///
    /// # Errors
    /// [`Unfit`], which says whose error it is.
    pub(crate) fn begin(&mut self, op: Opcode) -> Result<(), Unfit> {
        match (mem::replace(&mut self.next, Next::Unnamed), op.makes()) {
            (Next::Announced(name), Some(kind)) => {
                self.next = Next::Makes(kind, name);
                Ok(())
            }
            (Next::Announced(_), None) => Err(Unfit::OfName(HipError::INVALID_VALUE)),
            (Next::Refused(error), Some(_)) => Err(Unfit::OfRequest(error)),
            (Next::Unnamed | Next::Makes(..) | Next::Refused(_), _) => Ok(()),
        }
    }

    // ---- objects -----------------------------------------------------------------------------------------------------

    /// Handles that an object was made; returns the number by which the client knows it: the name that it chose, or the handle.
    pub(crate) fn made(&mut self, kind: Handle, handle: u64) -> u64 {
        match self.next {
            Next::Makes(of, name) if of == kind => {
                self.next = Next::Unnamed;
                put(&mut self.chosen, name.number(), kind, handle);
                self.numbers.insert((kind, handle), name.number());
                name.number()
            }
            _ => self.number_of(kind, handle),
        }
    }

    /// Returns the number by which the client knows an object. An object without a name whose handle looks like one gets a number of
    /// the session.
    pub(crate) fn number_of(&mut self, kind: Handle, handle: u64) -> u64 {
        if let Some(&number) = self.numbers.get(&(kind, handle)) {
            return number;
        }
        if handle < ClientName::FIRST {
            return handle;
        }
        let place = self.free.pop().unwrap_or(self.given.len());
        let number = match self.given.get(place) {
            Some(slot) => slot.number + ClientName::PLACES as u64,
            None => GIVEN | place as u64,
        };
        put(&mut self.given, number, kind, handle);
        self.numbers.insert((kind, handle), number);
        number
    }

    /// Returns the number by which the client knows an object, if it has one; else 0.
    pub(crate) fn known(&self, kind: Handle, handle: u64) -> u64 {
        let unnamed = if handle < ClientName::FIRST { handle } else { 0 };
        self.numbers.get(&(kind, handle)).copied().unwrap_or(unnamed)
    }

    /// Returns the device's handle of the object that a client means by a handle or a number; the handle of nothing if that stands
    /// for no object of this kind.
    #[inline(always)]
    pub(crate) fn resolve(&self, kind: Handle, number: u64) -> u64 {
        if number < ClientName::FIRST { number } else { self.find(kind, number) }
    }

    fn find(&self, kind: Handle, number: u64) -> u64 {
        let slots = if number < GIVEN { &self.chosen } else { &self.given };
        match slots.get(ClientName::place_of(number)) {
            Some(slot) if slot.number == number && slot.kind == kind => slot.handle,
            _ => NOTHING,
        }
    }

    /// Handles that an object is gone.
    pub(crate) fn forget(&mut self, kind: Handle, handle: u64) {
        if let Some(number) = self.numbers.remove(&(kind, handle)) {
            self.vacate(number);
        }
    }

    /// Handles that several objects of a kind are gone, each of which may have several names.
    pub(crate) fn forget_all(&mut self, kind: Handle, is_gone: impl Fn(u64) -> bool) {
        if self.numbers.is_empty() {
            return;
        }
        let slots = self.chosen.iter().chain(&self.given);
        let gone = slots.filter(|slot| slot.kind == kind && slot.handle != NOTHING && is_gone(slot.handle));
        let gone: Vec<Slot> = gone.copied().collect();
        for slot in gone {
            self.vacate(slot.number);
            self.numbers.remove(&(kind, slot.handle));
        }
    }

    /// Handles that all objects are gone. Names that were used stay used.
    pub(crate) fn clear(&mut self) {
        let numbers = self.chosen.iter().chain(&self.given).filter(|slot| slot.handle != NOTHING);
        let numbers: Vec<u64> = numbers.map(|slot| slot.number).collect();
        numbers.into_iter().for_each(|number| self.vacate(number));
        self.numbers.clear();
    }

    fn vacate(&mut self, number: u64) {
        let place = ClientName::place_of(number);
        let slots = if number < GIVEN { &mut self.chosen } else { &mut self.given };
        if let Some(slot) = slots.get_mut(place) {
            slot.handle = NOTHING;
        }
        if number >= GIVEN {
            self.free.push(place);
        }
    }
}

/// Whose error it is that a `NAME` and the request behind it do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// That of `NAME`; the request is executed.
    OfName(HipError),
    /// That of the request, which is not executed.
    OfRequest(HipError),
}

/// Puts an object at the place of its number, which is taken, or the next one.
fn put(slots: &mut Vec<Slot>, number: u64, kind: Handle, handle: u64) {
    let place = ClientName::place_of(number);
    let slot = Slot { number, kind, handle };
    match slots.get_mut(place) {
        Some(old) => *old = slot,
        None => slots.push(slot),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Handle = Handle::Stream;
    const EVENT: Handle = Handle::Event;

    fn name(turn: u64, place: usize) -> u64 {
        ClientName::new(turn, place).expect("small numbers").number()
    }

    fn announce(names: &mut Names, number: u64) -> HipResult<()> {
        names.announce(number, 3)
    }

    /// Names a stream with this handle.
    fn make(names: &mut Names, number: u64, handle: u64) -> u64 {
        announce(names, number).expect("a new name");
        names.begin(Opcode::STREAM_CREATE).expect("a request that makes a stream");
        names.made(STREAM, handle)
    }

    #[test]
    fn a_name_stands_for_what_was_made_until_that_is_gone() {
        let mut names = Names::default();
        assert_eq!(make(&mut names, name(1, 0), 0x1000), name(1, 0));
        assert_eq!(make(&mut names, name(1, 1), 0x1001), name(1, 1));
        assert_eq!(names.resolve(STREAM, name(1, 0)), 0x1000);
        assert_eq!(names.resolve(STREAM, 0x1000), 0x1000, "a handle stands for itself");
        for unknown in [name(0, 0), name(2, 0), name(1, 2), GIVEN, u64::MAX] {
            assert_eq!(names.resolve(STREAM, unknown), NOTHING, "{unknown:#x}");
        }
        assert_eq!(names.resolve(EVENT, name(1, 0)), NOTHING, "it is a stream");
        names.forget(EVENT, 0x1000);
        assert_eq!(names.resolve(STREAM, name(1, 0)), 0x1000, "it was another object");
        names.forget(STREAM, 0x1000);
        assert_eq!(names.resolve(STREAM, name(1, 0)), NOTHING);
        assert_eq!(names.resolve(STREAM, name(1, 1)), 0x1001);
        assert_eq!(make(&mut names, name(2, 0), 0x1000), name(2, 0), "the place is free");
        assert_eq!(names.resolve(STREAM, name(1, 0)), NOTHING, "its earlier name stands for nothing");
    }

    #[test]
    fn a_name_is_used_once() {
        let mut names = Names::default();
        make(&mut names, name(5, 0), 0x1000);
        let refused = Err(HipError::INVALID_VALUE);
        for used in [name(5, 0), name(6, 0)] {
            assert_eq!(announce(&mut names, used), refused, "its place has an object");
        }
        names.forget(STREAM, 0x1000);
        for used in [name(5, 0), name(4, 0)] {
            assert_eq!(announce(&mut names, used), refused, "a greater name was there");
        }
        for outside in [0, 1, (1 << 62) - 1, GIVEN, u64::MAX, name(1, 2)] {
            assert_eq!(announce(&mut names, outside), refused, "{outside:#x}");
        }
        assert_eq!(announce(&mut names, name(6, 0)), Ok(()));
        assert_eq!(announce(&mut names, name(6, 0)), refused, "also without an object");
        assert_eq!((announce(&mut names, name(0, 1)), announce(&mut names, name(0, 2))), (Ok(()), Ok(())));
        assert_eq!(announce(&mut names, name(0, 3)), Err(HipError::OUT_OF_MEMORY));
        names.clear();
        assert_eq!(announce(&mut names, name(6, 0)), refused, "a reset forgets objects, not names");
        assert_eq!(announce(&mut names, name(7, 0)), Ok(()));
    }

    #[test]
    fn the_next_request_has_the_name_or_nobody() {
        let mut names = Names::default();
        assert!(names.is_idle() && announce(&mut names, name(0, 0)).is_ok() && !names.is_idle());
        assert_eq!(names.begin(Opcode::PING), Err(Unfit::OfName(HipError::INVALID_VALUE)));
        assert_eq!(names.begin(Opcode::STREAM_CREATE), Ok(()));
        assert_eq!(names.made(STREAM, 0x1000), 0x1000, "the name is lost");
        assert!(names.is_idle() && announce(&mut names, name(0, 0)).is_err() && !names.is_idle());
        assert_eq!(names.begin(Opcode::EVENT_CREATE), Err(Unfit::OfRequest(HipError::INVALID_VALUE)));
        assert_eq!(names.begin(Opcode::EVENT_CREATE), Ok(()), "only the next one");
        assert!(announce(&mut names, name(0, 0)).is_err());
        assert_eq!(names.begin(Opcode::MEMSET), Ok(()), "the refusal is known already");
        announce(&mut names, name(1, 0)).expect("a greater name");
        assert_eq!(names.begin(Opcode::EVENT_CREATE), Ok(()));
        // The device refuses to make one.
        assert_eq!(names.begin(Opcode::EVENT_CREATE), Ok(()));
        assert_eq!(names.made(EVENT, 0x1001), 0x1001, "the next one has no name");
        assert_eq!(names.resolve(EVENT, name(1, 0)), NOTHING);
    }

    #[test]
    fn handles_that_look_like_names_are_told_as_others() {
        let mut names = Names::default();
        make(&mut names, name(0, 0), name(9, 9));
        assert_eq!(
            names.resolve(STREAM, name(0, 0)),
            name(9, 9),
            "the device's handle, under the client's name"
        );
        assert_eq!(names.resolve(STREAM, name(9, 9)), NOTHING);
        let told = names.made(STREAM, name(0, 0));
        assert!(told >= GIVEN && names.resolve(STREAM, told) == name(0, 0));
        assert_eq!(names.resolve(STREAM, name(0, 0)), name(9, 9), "the client's name is as it was");
        assert_eq!(names.number_of(STREAM, name(0, 0)), told);
        assert_eq!((names.known(STREAM, name(0, 0)), names.known(STREAM, 0x40)), (told, 0x40));
        assert_eq!(names.known(EVENT, name(0, 0)), 0, "nothing that the client could know");
        names.forget(STREAM, name(0, 0));
        assert_eq!(names.resolve(STREAM, told), NOTHING);
        let again = names.made(EVENT, name(0, 0));
        assert!(again != told && names.resolve(STREAM, told) == NOTHING);
        assert_eq!(names.resolve(EVENT, again), name(0, 0));
    }

    #[test]
    fn a_kernel_that_is_asked_for_twice_has_both_names() {
        let mut names = Names::default();
        for place in 0..2 {
            announce(&mut names, name(0, place)).expect("a new name");
            names.begin(Opcode::MODULE_GET_FUNCTION).expect("it gives a kernel");
            assert_eq!(names.made(Handle::Function, 0x40), name(0, place));
        }
        let resolved = |names: &Names| [0, 1].map(|place| names.resolve(Handle::Function, name(0, place)));
        assert_eq!(resolved(&names), [0x40; 2]);
        names.forget_all(Handle::Function, |handle| handle == 0x41);
        assert_eq!(resolved(&names), [0x40; 2]);
        names.forget_all(Handle::Function, |handle| handle == 0x40);
        assert_eq!(resolved(&names), [NOTHING; 2]);
    }
}
