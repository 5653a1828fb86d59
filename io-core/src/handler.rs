use crate::Event;

/// What stands behind a loop: it hears what connections say, and answers through the [`Mailbox`](crate::Mailbox).
///
/// A closure is one too, for a handler that passes everything on.
pub trait Handler {
    /// Takes an event. Events of one connection come in order.
    fn handle_event(&mut self, event: Event);

    /// Called once in each turn of the loop, after the events of the turn and before the loop looks into the mailbox. `true`:
    /// there is more to do, the loop must not sleep.
    fn turn(&mut self) -> bool {
        false
    }
}

impl<F: FnMut(Event)> Handler for F {
    fn handle_event(&mut self, event: Event) {
        self(event);
    }
}

/// A handler as a loop uses it: knows whether the handler has to be given a turn before the loop may sleep.
#[derive(Debug)]
pub struct Turns<H> {
    handler: H,
    /// There were events since its last turn.
    unseen: bool,
    /// It has more to do.
    more: bool,
}

impl<H: Handler> Turns<H> {
    /// A handler that has heard nothing.
    pub fn new(handler: H) -> Self {
        Self { handler, unseen: false, more: false }
    }

    /// Passes an event on.
    pub fn handle_event(&mut self, event: Event) {
        self.unseen = true;
        self.handler.handle_event(event);
    }

    /// Gives the handler its turn.
    pub fn turn(&mut self) {
        self.unseen = false;
        self.more = self.handler.turn();
    }

    /// Whether the loop may sleep.
    pub fn is_idle(&self) -> bool {
        !self.unseen && !self.more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConnId;

    /// Has so much to do after each event.
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
        assert!(!turns.is_idle(), "it says that there is more to do");
        turns.turn();
        assert!(turns.is_idle());
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
