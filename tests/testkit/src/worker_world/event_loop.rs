//! An event loop without sockets: connects in-memory connections to `hipr-io`'s events and notices like a completion loop
//! (at most one receive and one send per connection; a receive may complete when no more is wanted), with its own clock.

use std::sync::Arc;

use hipr_io::{Batch, Config, ConnId, End, Event, Finish, Link, Mailbox, Notice, Peer, Pool, Slots, Stats};
use hipr_proto::Outbox;

use super::wire::{Read, Wire};
use crate::choices::Choices;

struct Conn {
    link: Link,
    /// Index of the client.
    client: usize,
    /// Size of the receive in flight; 0 for none.
    posted: usize,
    /// Whether the client closed its sending side.
    peer_closed: bool,
    ended: bool,
    load: Load,
}

/// The resources that a connection uses in the worker, counted independently.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    in_flight_bytes: usize,
    open: usize,
    unsent_bytes: usize,
}

/// How far limits may be exceeded, because some steps are not divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slack {
    /// Maximum number of bytes of one read.
    pub(super) read_bytes: usize,
    /// Maximum number of reply bytes of one step of a session.
    pub(super) reply_bytes: usize,
}

/// An event loop over connections in memory.
pub(super) struct EventLoop {
    config: Config,
    mailbox: Arc<Mailbox>,
    stats: Arc<Stats>,
    conns: Slots<Conn>,
    pool: Pool,
    buffer: Vec<u8>,
    now_ms: u64,
    /// Whether there was nothing to do in the last turn.
    idle: bool,
    asleep: bool,
    slack: Slack,
    /// The first limit that was exceeded.
    pub(super) over_limit: Option<String>,
}

impl EventLoop {
    pub(super) fn new(config: Config, mailbox: Arc<Mailbox>, stats: Arc<Stats>, slack: Slack) -> Self {
        let mut pool = Pool::default();
        let buffer = pool.buffer();
        Self {
            config,
            mailbox,
            stats,
            conns: Slots::default(),
            pool,
            buffer,
            now_ms: 0,
            idle: false,
            asleep: false,
            slack,
            over_limit: None,
        }
    }

    /// Returns whether no connection is open.
    pub(super) fn is_empty(&self) -> bool {
        self.conns.is_empty()
    }

    /// Returns the bytes in flight.
    pub(super) fn in_flight_bytes(&self) -> usize {
        self.pool.in_flight_bytes()
    }

    /// Accepts the connection of a client.
    pub(super) fn accept(&mut self, client: usize) {
        let (config, now_ms) = (&self.config, self.now_ms);
        let peer = Peer::Local;
        self.conns.insert(|id| Conn {
            link: Link::new(id, peer, config, now_ms),
            client,
            posted: 0,
            peer_closed: false,
            ended: false,
            load: Load::default(),
        });
        Stats::add(&self.stats.connections_opened, 1);
        self.wake();
    }

    /// Wakes the loop for something other than a completion.
    pub(super) fn wake(&mut self) {
        self.idle = false;
        self.asleep = false;
    }

    /// Runs one turn, if there is a reason for it: completions, notices, timeouts. Returns false if nothing happened.
    pub(super) fn turn(
        &mut self,
        wires: &mut [Wire],
        choices: &mut Choices<'_>,
        sink: &mut impl FnMut(Event),
    ) -> bool {
        if !self.has_completion(wires) {
            // Since the last turn something may have been left for it.
            self.asleep |= self.idle && self.mailbox.prepare_sleep();
            if self.asleep {
                return false;
            }
        }
        self.asleep = false;
        self.mailbox.awake();
        let mut notices = Vec::new();
        self.mailbox.take(&mut notices);
        let mut moved = !notices.is_empty();
        for notice in notices {
            self.apply(notice, wires, choices, sink);
        }
        let ids: Vec<ConnId> = self.conns.iter_mut().map(|(id, _)| id).collect();
        for id in ids {
            moved |= self.serve(id, wires, choices, sink);
        }
        self.idle = !moved;
        moved
    }

    /// Returns whether a receive or a send can complete.
    fn has_completion(&mut self, wires: &[Wire]) -> bool {
        self.conns.iter_mut().any(|(_, conn)| {
            wires.get(conn.client).is_some_and(|wire| {
                wire.is_reset()
                    || (!conn.peer_closed && wire.is_up_ended())
                    || (conn.posted > 0 && wire.is_up_readable())
                    || (conn.link.wants_write() && wire.is_down_writable())
            })
        })
    }

    /// Sends and receives what one connection can now.
    fn serve(
        &mut self,
        id: ConnId,
        wires: &mut [Wire],
        choices: &mut Choices<'_>,
        sink: &mut impl FnMut(Event),
    ) -> bool {
        let Some(conn) = self.conns.get_mut(id) else { return false };
        let Some(wire) = wires.get_mut(conn.client) else { return false };
        let mut moved = false;
        // Noticed also while nothing is read or written.
        if wire.is_reset() {
            self.end(id, &End::Socket(std::io::ErrorKind::ConnectionReset.into()), wires, choices, sink);
            return true;
        }
        if !conn.peer_closed && wire.is_up_ended() {
            conn.peer_closed = true;
            conn.link.handle_peer_closed(self.now_ms);
            moved = true;
        }
        if conn.link.wants_write() {
            let n = wire.write_down(conn.link.slices(), conn.load.unsent_bytes, choices);
            conn.link.handle_written(n, self.now_ms, &self.stats);
            conn.load.unsent_bytes -= n;
            moved |= n > 0;
        }
        conn.link.report_drain(sink);
        match conn.link.finish(self.now_ms) {
            Finish::No => {}
            Finish::HalfClose | Finish::Linger => {
                wire.down.end();
                conn.ended = false;
                moved = true;
            }
            Finish::Close => {
                self.close(id, wires, choices, sink);
                return true;
            }
        }
        if conn.posted > 0 {
            let Some(space) = self.buffer.get_mut(..conn.posted) else { return moved };
            let read = wire.read_up(space, choices);
            if read != Read::Nothing {
                conn.posted = 0;
                moved = true;
            }
            match read {
                // What comes after the end means nothing.
                Read::Bytes(_) | Read::End if conn.ended => {}
                Read::Nothing | Read::Reset => {}
                Read::Bytes(n) => {
                    let (buffer, pool, stats) = (&mut self.buffer, &mut self.pool, &*self.stats);
                    let read = conn.counted(stats, sink, |link, mut sink| {
                        link.handle_read(buffer, n, self.now_ms, pool, stats, &mut sink)
                    });
                    if let Err(why) = read {
                        self.end(id, &End::Protocol(why), wires, choices, sink);
                        return true;
                    }
                }
                Read::End => {
                    let end = conn.link.handle_eof();
                    self.end(id, &end, wires, choices, sink);
                    return true;
                }
            }
        }
        self.check(id);
        let Some(conn) = self.conns.get_mut(id) else { return moved };
        if conn.posted == 0 && !conn.ended {
            conn.posted = conn.link.wants_read(&self.config, &self.pool).min(self.buffer.len());
            moved |= conn.posted > 0;
        }
        moved
    }

    fn apply(
        &mut self,
        notice: Notice,
        wires: &mut [Wire],
        choices: &mut Choices<'_>,
        sink: &mut impl FnMut(Event),
    ) {
        let id = notice.conn;
        let Some(conn) = self.conns.get_mut(id) else {
            return Link::apply_gone(notice, &mut self.pool);
        };
        let load = &mut conn.load;
        load.open = load.open.saturating_sub(notice.completed);
        let returned: usize = notice.returned.iter().map(Batch::cost_bytes).sum();
        load.in_flight_bytes = load.in_flight_bytes.saturating_sub(returned);
        load.unsent_bytes += notice.outbox.as_ref().map_or(0, Outbox::len_bytes);
        let (now_ms, pool, stats) = (self.now_ms, &mut self.pool, &*self.stats);
        let applied =
            conn.counted(stats, sink, |link, mut sink| link.apply(notice, now_ms, pool, stats, &mut sink));
        if let Some(why) = applied.fatal {
            self.end(id, &End::Protocol(why), wires, choices, sink);
        }
        self.check(id);
    }

    fn end(
        &mut self,
        id: ConnId,
        end: &End,
        wires: &mut [Wire],
        choices: &mut Choices<'_>,
        sink: &mut impl FnMut(Event),
    ) {
        let Some(conn) = self.conns.get_mut(id) else { return };
        conn.ended = true;
        if !(end.is_writable() && conn.link.end(self.now_ms, sink)) {
            self.close(id, wires, choices, sink);
        }
    }

    fn close(
        &mut self,
        id: ConnId,
        wires: &mut [Wire],
        choices: &mut Choices<'_>,
        sink: &mut impl FnMut(Event),
    ) {
        let Some(conn) = self.conns.remove(id) else { return };
        Stats::add(&self.stats.connections_closed, 1);
        if let Some(wire) = wires.get_mut(conn.client) {
            wire.close_by_worker(choices);
        }
        conn.link.close(&mut self.pool, sink);
    }

    /// Closes all connections, because the worker shuts down.
    pub(super) fn stop(
        &mut self,
        wires: &mut [Wire],
        choices: &mut Choices<'_>,
        sink: &mut impl FnMut(Event),
    ) {
        let open: Vec<ConnId> = self.conns.iter_mut().map(|(id, _)| id).collect();
        open.into_iter().for_each(|id| self.close(id, wires, choices, sink));
    }

    /// Advances the clock to the next deadline when nothing else can happen. Returns false if there is none.
    pub(super) fn let_time_pass(
        &mut self,
        wires: &mut [Wire],
        choices: &mut Choices<'_>,
        sink: &mut impl FnMut(Event),
    ) -> bool {
        let config = &self.config;
        let longest =
            config.first_message_timeout_ms.max(config.mid_message_timeout_ms).max(config.linger_ms);
        let shortest =
            config.first_message_timeout_ms.min(config.mid_message_timeout_ms).min(config.linger_ms);
        let until_ms = self.now_ms + longest + shortest;
        while self.now_ms < until_ms {
            self.now_ms += (shortest / 4).max(1);
            let mut late = Vec::new();
            let mut watched = false;
            for (id, conn) in self.conns.iter_mut() {
                watched |= conn.link.has_deadline();
                late.extend(conn.link.overdue(self.now_ms, &self.config, &self.pool).map(|_| id));
            }
            if !watched {
                return false;
            }
            if !late.is_empty() {
                late.into_iter().for_each(|id| self.close(id, wires, choices, sink));
                return true;
            }
        }
        false
    }

    /// Compares what was counted with the limits.
    fn check(&mut self, id: ConnId) {
        let connections = self.conns.len();
        let Some(conn) = self.conns.get_mut(id) else { return };
        let (load, config) = (conn.load, &self.config);
        // What one read brings beyond the requests that may be open counts once more when it is parsed.
        let read_bytes = 2 * Batch::most_cost_bytes(self.slack.read_bytes);
        let most = [
            ("requests open", load.open, config.protocol.open_max),
            ("bytes in flight", load.in_flight_bytes, config.in_flight_max_bytes + read_bytes),
            ("bytes unsent", load.unsent_bytes, config.unsent_max_bytes + self.slack.reply_bytes),
            (
                "bytes in flight of all",
                self.pool.in_flight_bytes(),
                config.in_flight_total_max_bytes + connections * read_bytes,
            ),
        ];
        if let Some((what, is, max)) = most.into_iter().find(|(_, is, max)| is > max) {
            self.over_limit = Some(format!("{is} {what}, the limit is {max}"));
        }
    }
}

impl Conn {
    /// Calls `f` with the link, and counts what it passes to the dispatch thread.
    fn counted<R>(
        &mut self,
        stats: &Stats,
        sink: &mut impl FnMut(Event),
        work: impl FnOnce(&mut Link, &mut dyn FnMut(Event)) -> R,
    ) -> R {
        let before = stats.snapshot().requests;
        let load = &mut self.load;
        let result = work(&mut self.link, &mut |event| {
            if let Event::Batch { batch, .. } = &event {
                load.in_flight_bytes += batch.cost_bytes();
            }
            sink(event);
        });
        load.open += (stats.snapshot().requests - before) as usize;
        result
    }
}
