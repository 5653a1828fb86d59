//! Launches of graphs: nodes are checked and enqueued one after another, in as many turns as that takes.

use std::task::Poll;

use hipr_proto::{HipResult, Ticket};

use super::Session;
use super::state::{Lent, Replay, State};
use crate::call::{Call, GraphWork, Stage, capture_node, check_work, enqueue, finish_work, launch_stage};
use crate::env::Env;

impl Session {
    /// Number of nodes that are checked in a step.
    const CHECKED_NODES: usize = 64;

    /// Returns the call of a request without collected bytes.
    pub(super) fn as_call<'a>(&'a mut self, env: &'a Env<'_>) -> Call<'a> {
        let (owned, reply) = (&mut self.owned, &mut self.reply);
        let capabilities = env.peers.map(|peers| &*peers.capabilities);
        let (limits, more) = (env.limits, env.more);
        Call { owned, reply, collected: None, limits, more, capabilities, conn: self.conn }
    }

    /// Lends the graphs to another thread.
    pub(super) fn lend(&mut self, env: &Env<'_>, ticket: Ticket, GraphWork { work, then }: GraphWork) {
        let mut tables = std::mem::take(&mut self.owned.graphs);
        let graphs = env.apart.begin((env.waker)(), move || {
            let result = work(&mut tables);
            (tables, result)
        });
        self.state = State::Lent(Lent { ticket, graphs, then });
    }

    /// Goes on with a request when the graphs are back; the session ends if they are lost.
    pub(super) fn poll_lent(&mut self, env: &Env<'_>, lent: Lent) -> Poll<bool> {
        match lent.graphs.poll() {
            Poll::Pending => {
                self.state = State::Lent(lent);
                Poll::Pending
            }
            Poll::Ready(None) => {
                tracing::error!(conn = %self.conn, "panic while working on graphs; ending the session");
                Poll::Ready(false)
            }
            Poll::Ready(Some((tables, result))) => {
                self.owned.graphs = tables;
                self.reply.clear();
                let continuation = finish_work(&mut self.as_call(env), result, lent.then);
                Poll::Ready(self.go_on(env, lent.ticket, continuation, 0))
            }
        }
    }

    /// Goes on with a launch. The first error ends it, as if the client had sent the nodes itself and checked each reply.
    pub(super) fn replay(&mut self, env: &Env<'_>, mut replay: Replay) -> Poll<()> {
        if replay.stage == Stage::Enqueue && self.owned.poll_room(env.limits).is_pending() {
            self.state = State::Replay(replay);
            return Poll::Pending;
        }
        match self.replay_step(env, &mut replay) {
            Ok(false) => self.state = State::Replay(replay),
            result => self.complete(replay.ticket, result.map(drop).into()),
        }
        Poll::Ready(())
    }

    /// Does a step; returns whether it was the last one.
    fn replay_step(&mut self, env: &Env<'_>, replay: &mut Replay) -> HipResult<bool> {
        let Replay { exec, stream, stage, next, .. } = replay;
        let count = if *stage == Stage::Check { Self::CHECKED_NODES } else { 1 };
        let steps = exec.steps().get(*next..).unwrap_or_default();
        let steps = steps.get(..count).unwrap_or(steps);
        for work in steps.iter().filter_map(|step| step.work()) {
            match stage {
                Stage::Check => check_work(&self.owned, work)?,
                Stage::Enqueue => enqueue(&mut self.owned, work, *stream)?,
                Stage::Capture => capture_node(&mut self.owned, work, *stream)?,
            }
        }
        *next += steps.len();
        if !steps.is_empty() {
            return Ok(false);
        }
        if *stage != Stage::Check {
            return Ok(true);
        }
        *stage = launch_stage(&mut self.as_call(env), exec, *stream)?;
        *next = 0;
        Ok(false)
    }
}
