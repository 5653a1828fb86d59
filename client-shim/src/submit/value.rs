//! Waits for values in memory (HIP API: hipStreamWaitValue32), and writes of them to memory that the worker does not have.
//!
//! What changes the value may be the program, which tells nobody, or the device. So the thread that has the step looks at it again and
//! again: at the program's memory, after what the device wrote to it has been fetched; or at the device's, with a copy of these bytes.

use std::time::{Duration, Instant};

use hipr_proto::{Features, HipError, HipResult};

use crate::command::{ValueOp, ValueWait, ValueWidth};
use crate::convert::{Event, In};
use crate::host_log;
use crate::process;
use crate::session::Session;
use crate::stream::WaitCall;
use crate::stream::mirror::Place;
use crate::thread;
use crate::worker::{HostMemory, Port, Wait};

/// The first pause between two looks at a value, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(1)];
/// Time after which a worker that will tell of an event is asked all the same: it may be gone.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Session {
    /// Waits for a value, or writes one to the program's memory.
    ///
    /// # Errors
    /// As of a wait.
    pub(super) fn carry_out_value(&self, op: &ValueOp) -> HipResult<()> {
        match op {
            ValueOp::Wait(wait) => self.wait_for_value(wait),
            ValueOp::Write(at, width, value) => {
                let bytes = value.to_le_bytes();
                HostMemory::write_host(self.worker(), *at, bytes.get(..width.bytes()).unwrap_or_default());
                Ok(())
            }
        }
    }

    /// Returns when an event of the library has happened, and what was written before it to memory on both sides is there. Another thread
    /// may make calls meanwhile on which the event depends, so that the worker is queried and not made to wait.
    ///
    /// # Errors
    /// What the worker answers.
    pub(super) fn await_event(&self, event: Event) -> HipResult<()> {
        let [mut pause, longest] = PAUSES;
        let mut told = self.ask_to_tell(event)?;
        loop {
            let is_to_come = told.is_to_come(self);
            // Where memory is on both sides, the worker has to be asked what has changed.
            if matches!(told, Told::Now) && self.streams().mirrors.is_empty() {
                return Ok(());
            }
            if !is_to_come {
                match self.drive(&mut WaitCall::of_library(event)) {
                    Err(HipError::NOT_READY) => told.has_asked(),
                    over => return over,
                }
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
    }

    /// Asks the worker to tell when an event has happened.
    fn ask_to_tell(&self, event: Event) -> HipResult<Told> {
        if !self.worker().features().contains(Features::WATCHES) {
            return Ok(Told::Never);
        }
        let number = self.streams().begin_await();
        match self.worker().wait(Wait::WatchEvent(event, number)) {
            Err(HipError::NOT_READY) => Ok(Told::Later { number, since: Instant::now() }),
            answer => {
                self.streams().end_await(number);
                answer.map(|()| Told::Now)
            }
        }
    }

    /// Returns when memory has the value that a stream waits for.
    ///
    /// # Errors
    /// `hipErrorInvalidValue`: the memory was freed; what the worker answers.
    fn wait_for_value(&self, wait: &ValueWait) -> HipResult<()> {
        let [mut pause, longest] = PAUSES;
        while !wait.is_over(self.value(wait)?) {
            std::thread::sleep(pause);
            pause = (pause * 2).min(longest);
        }
        Ok(())
    }

    /// Returns the present value.
    fn value(&self, wait: &ValueWait) -> HipResult<u64> {
        if host_log::is_on() {
            // The checker does not know who has written the value: whatever was sent before is over before it is looked at.
            self.drive(&mut WaitCall::of_worker(thread::device()))?;
        }
        let (mirrors, len) = (&self.streams().mirrors, wait.width.bytes());
        let bytes = match mirrors.place(self.worker(), wait.at, len, Some(true))? {
            Place::Unknown => return Err(HipError::INVALID_VALUE),
            Place::Device(address) => {
                let found = self.worker().memory().find(wait.at);
                let device = found.map_or_else(thread::device, |allocation| allocation.device);
                let stream = self.streams().looking_stream(self.worker(), device)?;
                let read = Port::fetch(self.worker(), &[(address, len)], stream)?;
                read.into_iter().next().unwrap_or_default()
            }
            Place::Mirrored(_) => {
                // Any worker may have written it.
                for device in mirrors.a_device_each(thread::device()) {
                    self.drive(&mut WaitCall::of_worker(device))?;
                }
                return here(wait);
            }
            Place::Shared(_) | Place::Host => return here(wait),
        };
        let mut value = [0; 8];
        value.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        Ok(u64::from_le_bytes(value))
    }
}

/// What a worker tells of an event.
enum Told {
    /// Nothing, because it does not know such messages (no feature WATCHES); it has to be queried.
    Never,
    /// It will tell that the event has happened, as the watch of this number.
    Later {
        number: u64,
        /// When the worker was last asked.
        since: Instant,
    },
    /// The event has happened.
    Now,
}

impl Told {
    /// Hears what has arrived; returns whether the worker has yet to tell, and may be relied on to do so.
    fn is_to_come(&mut self, session: &Session) -> bool {
        let Self::Later { number, since } = self else { return false };
        session.worker().hear();
        if session.streams().is_awaited(*number) {
            return since.elapsed() < ASK_AGAIN;
        }
        *self = Self::Now;
        false
    }

    /// Notes that the worker was asked, and the event had not happened: from now on it is asked in longer intervals, for the case that nothing
    /// is told.
    fn has_asked(&mut self) {
        if let Self::Later { since, .. } = self {
            *since = Instant::now();
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        if let (Self::Later { number, .. }, Ok(session)) = (self, process::session()) {
            session.streams().end_await(*number);
        }
    }
}

/// Returns the value that the program's memory has.
fn here(wait: &ValueWait) -> HipResult<u64> {
    match wait.width {
        ValueWidth::Word => In::<u32>::at_address(wait.at).check().map(u64::from),
        ValueWidth::Double => In::<u64>::at_address(wait.at).check(),
    }
}
