//! Checks positions and sleep flags with a model checker: every interleaving of two sides, and every value that the memory
//! model allows a load to return. A lost wake-up is a side that sleeps for ever, which loom reports as a deadlock.

use std::sync::atomic::Ordering;

use hipr_io_shm::positions::{Reader, Word, Words, Writer};
use loom::sync::atomic::{AtomicU32, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

#[derive(Clone)]
struct Modelled(Arc<AtomicU32>);

impl Word for Modelled {
    fn load(&self, order: Ordering) -> u32 {
        self.0.load(order)
    }

    fn store(&self, value: u32, order: Ordering) {
        self.0.store(value, order);
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.0.swap(value, order)
    }

    fn fence(order: Ordering) {
        fence(order);
    }
}

/// A bell: a socket that a poll reports as readable while it holds a byte.
#[derive(Clone, Default)]
struct Bell(Arc<(Mutex<bool>, Condvar)>);

impl Bell {
    fn ring(&self) {
        *self.0.0.lock().expect("nobody panics") = true;
        self.0.1.notify_one();
    }

    fn sleep(&self) {
        let mut rung = self.0.0.lock().expect("nobody panics");
        while !*rung {
            rung = self.0.1.wait(rung).expect("nobody panics");
        }
        *rung = false;
    }
}

fn words() -> Words<Modelled> {
    let word = || Modelled(Arc::new(AtomicU32::new(0)));
    Words { tail: word(), head: word(), reader_sleeps: word(), writer_sleeps: word() }
}

/// Passes `total` bytes, `piece` at a time, through a ring of `capacity`; each side sleeps as soon as it has nothing to do.
fn pass(total: u32, piece: u32, capacity: u32) {
    let words = words();
    let (data, room) = (Bell::default(), Bell::default());
    let writing = {
        let (words, data, room) = (words.clone(), data.clone(), room.clone());
        thread::spawn(move || {
            let mut writer = Writer::new(capacity);
            let mut left = total;
            while left > 0 {
                let now = writer.room(&words, 1).expect("positions are possible").min(piece).min(left);
                if now > 0 {
                    left -= now;
                    if writer.publish(&words, now) {
                        data.ring();
                    }
                } else if writer.prepare_sleep(&words).expect("positions are possible") {
                    room.sleep();
                    writer.awake(&words);
                }
            }
        })
    };
    let mut reader = Reader::new(capacity);
    let mut left = total;
    while left > 0 {
        let now = reader.available(&words, 1).expect("positions are possible").min(piece);
        if now > 0 {
            left -= now;
            if reader.release(&words, now) {
                room.ring();
            }
        } else if reader.prepare_sleep(&words).expect("positions are possible") {
            data.sleep();
            reader.awake(&words);
        }
    }
    writing.join().expect("the writer ends");
}

fn check(total: u32, piece: u32, capacity: u32) {
    // Switches that nothing forces: enough for each side to be stopped between any two steps of the other.
    const PREEMPTIONS: usize = 2;
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(move || pass(total, piece, capacity));
}

#[test]
fn no_wake_up_of_a_reader_is_lost() {
    check(2, 1, 4);
}

#[test]
fn no_wake_up_of_a_writer_is_lost() {
    check(3, 1, 1);
}

#[test]
fn neither_is_lost_when_pieces_fill_the_ring() {
    check(4, 2, 2);
}
