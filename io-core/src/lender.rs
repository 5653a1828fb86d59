//! Memory that is lent to this process, where there is a bound for the sessions of several.

use std::fmt;

/// Lends this process, whose session is one of many, memory of what all of them may have together. A call waits for the answer of whoever
/// counts, and for nothing that other sessions do.
pub trait Lender: fmt::Debug + Send + Sync {
    /// Takes up to `bytes`; returns how many were free.
    fn take(&self, bytes: u64) -> u64;

    /// Gives bytes back that were taken.
    fn give_back(&self, bytes: u64);

    /// Returns how many bytes could be taken now.
    fn left_bytes(&self) -> u64;

    /// Asks that others give back what they do not need: those that have the bound that is reached too, or all. [`LenderWords::is_turn`]
    /// says when they have; from then on none of them is lent anything until [`has_tried`](Self::has_tried).
    fn ask_others(&self, lack: Lack);

    /// Says that this process has taken what it needs, and given back the rest.
    fn has_tried(&self);

    /// Says that this process has given back what it does not need, after [`LenderWords::is_recalled`].
    fn has_returned(&self);

    /// Returns what the lender has said since the last call.
    fn words(&self) -> LenderWords;

    /// Calls `wake` whenever the lender says something, on another thread, instead of what was to be called before.
    fn listen(&self, wake: Box<dyn Fn() + Send + Sync>);
}

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Bytes that may be lent: a bound is reached.
    Bound {
        /// How many bytes this process would have to be lent in all; 0 if that is not known.
        needed_bytes: u64,
    },
    /// The device's own memory.
    Device,
}

/// What a lender says without being asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LenderWords {
    /// Others need memory: this process is to give back what it does not need, and then to say so.
    pub is_recalled: bool,
    /// The others have given back what they do not need.
    pub is_turn: bool,
}
