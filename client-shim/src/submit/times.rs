//! Times between events: what the worker has told, and what it is asked to tell ahead of a wait (`stream/times.rs`).

use hipr_client::Connection;
use hipr_proto::{HipResult, op};

use crate::convert::Event;
use crate::session::Session;
use crate::stream::events::Pair;
use crate::worker::Port;

impl Session {
    /// Asks the worker to tell the times between events that the program may want to know after a wait, which follows.
    ///
    /// # Errors
    /// A lost connection.
    #[inline]
    pub(super) fn ask_times_before_wait(&self) -> HipResult<()> {
        if self.streams().events.asks_times() { self.ask_likely_times() } else { Ok(()) }
    }

    #[cold]
    fn ask_likely_times(&self) -> HipResult<()> {
        match self.times_connection() {
            Some(connection) => self.ask_times(connection, self.streams().events.pairs_before_wait()),
            None => Ok(()),
        }
    }

    /// Returns the milliseconds between two events. If the worker has told them, nothing is waited for.
    ///
    /// # Errors
    /// What the worker answers, or a lost connection.
    pub(crate) fn elapsed_ms(&self, start: Event, stop: Event) -> HipResult<f32> {
        if let Some(connection) = self.times_connection() {
            self.learn_times(connection);
            match self.streams().events.elapsed_ms(start, stop) {
                Ok(milliseconds) => return Ok(milliseconds),
                Err(likely) => self.ask_times(connection, likely)?,
            }
        }
        let request = op::EventElapsedTime { start_event: start.wire(), stop_event: stop.wire() };
        Ok(self.worker().ask(&request)?.milliseconds)
    }

    /// Returns the connection to the worker, if there is one.
    fn times_connection(&self) -> Option<&Connection> {
        let is_one = !self.worker().links().are_several();
        is_one.then(|| &self.worker().link().connection)
    }

    fn ask_times(&self, connection: &Connection, pairs: Vec<Pair>) -> HipResult<()> {
        let on_wire: Vec<_> = pairs.iter().map(|pair| pair.on_wire()).collect();
        if let Some(number) = connection.ask_times(&on_wire)? {
            self.streams().events.asked_times(number, pairs);
        }
        Ok(())
    }

    /// Learns what the worker has told.
    fn learn_times(&self, connection: &Connection) {
        let events = &self.streams().events;
        if events.expects_times() {
            self.worker().hear();
            events.learn_times(|number| connection.take_times(number));
        }
    }
}
