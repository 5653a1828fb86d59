use crate::Event;

/// Receives the events of an event loop, and answers through the [`Mailbox`](crate::Mailbox).
///
/// Closures that take an [`Event`] implement it.
pub trait Handler {
    /// Handles an event. Events of one connection arrive in order.
    fn handle_event(&mut self, event: Event);

    /// Runs once in each turn of the loop, after the turn's events and before the loop reads its mailbox. Returns true if
    /// there is more to do, so that the loop must not sleep.
    fn turn(&mut self) -> bool {
        false
    }
}

impl<F: FnMut(Event)> Handler for F {
    fn handle_event(&mut self, event: Event) {
        self(event);
    }
}

/// A handler, with whether it needs a turn before the loop may sleep.
#[derive(Debug)]
pub struct Turns<H> {
    handler: H,
    /// Whether there were events since the handler's last turn.
    unseen: bool,
    /// Whether the handler said that it has more to do.
    more: bool,
}

impl<H: Handler> Turns<H> {
    /// Wraps a handler that has received no events.
    pub fn new(handler: H) -> Self {
        Self { handler, unseen: false, more: false }
    }

    /// Passes an event to the handler.
    pub fn handle_event(&mut self, event: Event) {
        self.unseen = true;
        self.handler.handle_event(event);
    }

    /// Runs the handler's turn.
    pub fn turn(&mut self) {
        self.unseen = false;
        self.more = self.handler.turn();
    }

    /// Returns whether the handler has not done with what it was told before its last turn.
    pub fn is_behind(&self) -> bool {
        self.more
    }

    /// Returns whether the loop may sleep.
    pub fn is_idle(&self) -> bool {
        !self.unseen && !self.more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnId;

    /// A handler that needs two turns for each event.
    #[derive(Default)]
    struct Slow {
        heard: usize,
        left: usize,
    }

    impl Handler for Slow {
        fn handle_event(&mut self, _event: Event) {
            self.heard += 1;
            self.left += 2;
        }

        fn turn(&mut self) -> bool {
            self.left = self.left.saturating_sub(1);
            self.left > 0
        }
    }

    fn event() -> Event {
        Event::Ended { conn: ConnId::new(0, 0) }
    }

    #[test]
    fn a_loop_does_not_sleep_before_the_handler_is_done() {
        let mut turns = Turns::new(Slow::default());
        assert!(turns.is_idle());
        turns.handle_event(event());
        assert!(!turns.is_idle(), "it has not looked at the event");
        turns.turn();
        assert!(!turns.is_idle() && turns.is_behind(), "it says that there is more to do");
        turns.turn();
        assert!(turns.is_idle() && !turns.is_behind());
    }

    #[test]
    fn a_closure_has_nothing_to_do_in_a_turn() {
        let mut heard = 0;
        let mut turns = Turns::new(|_| heard += 1);
        turns.handle_event(event());
        turns.turn();
        assert!(turns.is_idle());
        assert_eq!(heard, 1);
    }
}
