//! Loads modules: the context is lent to another thread meanwhile, as unpacking and checking a code object may take long.

use std::task::Poll;

use hipr_proto::Ticket;

use super::Session;
use super::counted::Counted;
use super::state::{Kept, Loading, State};
use crate::call::{Continuation, Load, finish_load};
use crate::env::Env;

impl Session {
    /// Lends the context to a thread that loads a module.
    pub(super) fn load(&mut self, env: &Env<'_>, ticket: Ticket, mut load: Load) {
        let mut context = match self.owned.lend_context() {
            Ok(context) => context,
            Err(error) => return self.fail(ticket, error, false),
        };
        let work = load.take();
        let loaded = env.apart.begin((env.waker)(), move || {
            let loaded = work(&mut *context);
            (context, loaded)
        });
        self.state = State::Loading(Box::new(Loading { ticket, load, loaded, counted: None, retry: None }));
    }

    /// Counts the code object among the bytes of all sessions until it is loaded.
    pub(super) fn count_load(&mut self, counted: Counted) {
        if let State::Loading(loading) = &mut self.state {
            loading.counted = Some(counted);
        }
    }

    /// Notes that the load that has begun is another try of a request.
    pub(super) fn keep_retry(&mut self, retry: Option<Kept>) {
        if let State::Loading(loading) = &mut self.state {
            loading.retry = retry;
        }
    }

    /// Goes on with a request when its module is loaded; the session ends if the context is lost.
    pub(super) fn poll_loading(&mut self, env: &Env<'_>, mut loading: Box<Loading>) -> Poll<bool> {
        let (context, loaded) = match loading.loaded.poll() {
            Poll::Pending => {
                self.state = State::Loading(loading);
                return Poll::Pending;
            }
            Poll::Ready(None) => {
                tracing::error!(conn = %self.conn, "panic while loading a module; ending the session");
                return Poll::Ready(false);
            }
            Poll::Ready(Some(back)) => back,
        };
        self.owned.take_back(context);
        self.take_early();
        self.reply.clear();
        let again = loading.load.again.take();
        let mut continuation = finish_load(&mut self.as_call(env), loading.load, loaded);
        if let Ok(Continuation::Load(load)) = &mut continuation {
            load.again = again;
            let goes_on = self.go_on(env, loading.ticket, continuation, 0);
            loading.counted.into_iter().for_each(|counted| self.count_load(counted));
            self.keep_retry(loading.retry);
            return Poll::Ready(goes_on);
        }
        // The last try has taken the bytes.
        let retry = loading.retry.filter(|retry| retry.collected.is_some());
        if let Some(retry) = retry
            && self.falls_short(env, loading.ticket.op(), &continuation)
        {
            self.wait_on(loading.ticket, retry);
            return Poll::Ready(true);
        }
        if again.is_some() && self.falls_short(env, loading.ticket.op(), &continuation) {
            self.wait_for_memory(loading.ticket, self.fixed.clone(), Vec::new(), again);
            return Poll::Ready(true);
        }
        Poll::Ready(self.go_on(env, loading.ticket, continuation, 0))
    }
}
