//! Settled streams: their work counts as finished by HIP's documentation, although nobody has waited for it.
//!
//! A synchronous copy to the device has its bytes read when it returns, and so need not wait for the worker; but HIP says that it
//! is over, and with it all that its stream had before it. Until something else is put on the stream, a query waits for it instead of
//! asking whether it is done: whoever never asks pays nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::order::{LEGACY, Order};
use crate::worker::lock;

/// A value that is no stream's handle.
const NONE: u64 = u64::MAX;

/// The settled streams: synchronous calls are numbered from 1, and work on streams has the number of the last call before it.
#[derive(Debug)]
pub(super) struct Settled {
    /// Number of the last synchronous call.
    calls: AtomicU64,
    /// The stream on which work was put last, if that was after the last synchronous call.
    last: AtomicU64,
    table: Mutex<Table>,
}

/// Sequence numbers of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// That of the last work; None if there has been none.
    put: Option<u64>,
    /// That which the last synchronous call waited for; 0 if there was none.
    settled: u64,
}

#[derive(Debug, Default)]
struct Table {
    /// In the order of the handles.
    streams: Vec<(u64, Marks)>,
    /// Index of the stream that was used last.
    recent: usize,
    /// Number of the last call that waited for all streams.
    all: u64,
}

impl Default for Settled {
    fn default() -> Self {
        Self { calls: AtomicU64::new(0), last: AtomicU64::new(NONE), table: Mutex::default() }
    }
}

impl Settled {
    /// Notes that work is put on a stream.
    #[inline]
    pub(super) fn put(&self, stream: u64) {
        if self.calls.load(Ordering::Relaxed) != 0 && self.last.load(Ordering::Relaxed) != stream {
            self.put_after_call(stream);
        }
    }

    /// Notes that work is put on a stream as the first after a synchronous call, or after work on another stream.
    fn put_after_call(&self, stream: u64) {
        let mut table = lock(&self.table);
        table.marks(stream).put = Some(self.calls.load(Ordering::Relaxed));
        self.last.store(stream, Ordering::Relaxed);
    }

    /// Notes that a synchronous call on a stream has returned.
    pub(super) fn settle(&self, stream: u64) {
        let mut table = lock(&self.table);
        let number = self.count();
        table.marks(stream).settled = number;
    }

    /// Notes that a call that waits for all streams has returned.
    pub(super) fn settle_all(&self) {
        let mut table = lock(&self.table);
        table.all = self.count();
    }

    /// Returns the number of a new synchronous call; the caller holds the table's lock.
    fn count(&self) -> u64 {
        self.last.store(NONE, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the number for work that is put on a stream now.
    pub(super) fn now(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns whether a synchronous call followed all work of `stream`.
    pub(super) fn is_settled(&self, order: &Order, stream: u64) -> bool {
        if self.now() == 0 {
            return false;
        }
        let table = lock(&self.table);
        let covered = |stream, put| table.last_call(order, stream) > put;
        let own = table.find(stream).and_then(|marks| marks.put);
        covered(stream, own.unwrap_or(0))
            && table.streams.iter().all(|(other, marks)| {
                marks.put.is_none_or(|put| !order.includes(stream, *other) || covered(*other, put))
            })
    }

    /// Returns whether a synchronous call followed the work with this number on `stream`.
    pub(super) fn covers(&self, order: &Order, stream: u64, number: u64) -> bool {
        self.now() > number && lock(&self.table).last_call(order, stream) > number
    }

    /// Removes a destroyed stream.
    pub(super) fn forget(&self, stream: u64) {
        let mut table = lock(&self.table);
        table.streams.retain(|(other, _)| *other != stream);
        let _ = self.last.compare_exchange(stream, NONE, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Table {
    fn find(&self, stream: u64) -> Option<&Marks> {
        let found = self.streams.binary_search_by_key(&stream, |(other, _)| *other).ok()?;
        self.streams.get(found).map(|(_, marks)| marks)
    }

    /// Returns the numbers of a stream, for changing.
    fn marks(&mut self, stream: u64) -> &mut Marks {
        if self.streams.get(self.recent).is_none_or(|(other, _)| *other != stream) {
            self.recent = self.place(stream);
        }
        &mut self.streams[self.recent].1
    }

    /// Returns the index of a stream, which is added if it is new.
    fn place(&mut self, stream: u64) -> usize {
        self.streams.binary_search_by_key(&stream, |(other, _)| *other).unwrap_or_else(|place| {
            self.streams.insert(place, (stream, Marks::default()));
            place
        })
    }

    /// Returns the number of the last synchronous call after which `stream` counts as finished.
    fn last_call(&self, order: &Order, stream: u64) -> u64 {
        let on = |stream| self.find(stream).map_or(0, |marks| marks.settled);
        let legacy = if order.includes(LEGACY, stream) { on(LEGACY) } else { 0 };
        on(stream).max(legacy).max(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order of three streams: 5 and 6 are blocking, 7 is not.
    fn order() -> Order {
        let order = Order::default();
        order.add(7, false);
        order
    }

    fn is_settled(settled: &Settled, stream: u64) -> bool {
        settled.is_settled(&order(), stream)
    }

    #[test]
    fn a_stream_is_settled_until_something_is_put_there() {
        let settled = Settled::default();
        settled.put(5);
        assert!(!is_settled(&settled, 5));
        settled.settle(5);
        assert_eq!([5, 6, 7, 0].map(|stream| is_settled(&settled, stream)), [true, false, false, false]);
        settled.put(5);
        assert!(!is_settled(&settled, 5));
    }

    #[test]
    fn the_legacy_stream_settles_blocking_streams_and_is_settled_with_them() {
        let settled = Settled::default();
        [5, 7].into_iter().for_each(|stream| settled.put(stream));
        settled.settle(0);
        assert_eq!([5, 6, 7, 0].map(|stream| is_settled(&settled, stream)), [true, true, false, true]);
        settled.put(6);
        assert_eq!([5, 6, 7, 0].map(|stream| is_settled(&settled, stream)), [true, false, false, false]);
        settled.settle_all();
        assert_eq!([5, 6, 7, 0].map(|stream| is_settled(&settled, stream)), [true; 4]);
        settled.put(7);
        assert_eq!([5, 6, 7, 0].map(|stream| is_settled(&settled, stream)), [true, true, false, true]);
    }

    #[test]
    fn what_is_put_after_a_call_is_not_covered_by_it() {
        let settled = Settled::default();
        let before = settled.now();
        settled.settle(5);
        let after = settled.now();
        assert!(settled.covers(&order(), 5, before) && !settled.covers(&order(), 5, after));
        assert!(!settled.covers(&order(), 6, before));
        settled.settle(0);
        assert!(settled.covers(&order(), 5, after) && settled.covers(&order(), 6, before));
        assert!(!settled.covers(&order(), 7, before));
    }

    #[test]
    fn nothing_is_known_of_a_handle_that_is_given_anew() {
        let settled = Settled::default();
        settled.settle(5);
        settled.put(5);
        settled.forget(5);
        settled.put(5);
        assert!(!is_settled(&settled, 5));
    }
}
