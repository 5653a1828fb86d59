//! The links to the program's workers: one connection for each, and which of them a request goes to.
//!
//! The program sees the devices of all workers as one list, and everything in this crate has numbers of that list. Handles of different
//! workers may be equal, so that here each has the number of its link in bits that no worker uses. What a worker is sent has its own
//! numbers and handles: they are translated here and nowhere else.
//!
//! **The rule:** a request goes to the worker of the first handle in it that a worker has given or that names something there, otherwise
//! to that of the device that has to be current for it, otherwise to the first one.

use std::borrow::Cow;

use hipr_client::{CallError, ChangesWithTail, Connection, Extra, Flight, Rows};
use hipr_proto::op::{Handles, MemChanges, MemChangesPacked};
use hipr_proto::{Features, HipResult, Op};

use super::placer::Places;
use super::visible::Visible;
use crate::stream::order::PER_THREAD;

/// The lowest bit of a link's number in a handle. Workers set none of these bits in handles, because addresses are smaller; the names that this
/// client chooses have them only after 2^33 objects.
const LINK_SHIFT: u32 = 57;
/// The bits of a link's number in a handle.
const LINK_MASK: u64 = (LINKS_MAX as u64 - 1) << LINK_SHIFT;
/// Maximum number of workers.
pub(crate) const LINKS_MAX: usize = 16;

/// The connection to one worker, and what is placed there.
#[derive(Debug)]
pub(crate) struct Link {
    number: usize,
    pub(crate) connection: Connection,
    pub(super) places: Places,
}

impl Link {
    pub(super) fn new(number: usize, connection: Connection, workers: usize) -> Self {
        Self { number, connection, places: Places::new(number, workers) }
    }

    /// Returns the number of the link.
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// Returns a handle of the worker as this crate has it.
    pub(crate) fn marked(&self, handle: u64) -> u64 {
        // Streams that every device has by itself have the same handles everywhere.
        if handle <= PER_THREAD { handle } else { handle | (self.number as u64) << LINK_SHIFT }
    }

    /// Returns a handle as the worker has it. One of another worker stays as it is, which this one refuses.
    pub(crate) fn unmarked(&self, handle: u64) -> u64 {
        if number_of(handle) == self.number { handle & !LINK_MASK } else { handle }
    }

    fn mark_all<R: Handles>(&self, mut reply: R) -> R {
        if self.number > 0 {
            reply.handles(|_, handle| *handle = self.marked(*handle));
        }
        reply
    }
}

#[cold]
fn with_all<R>(all: &[Link], with: impl Fn(&Connection) -> R, join: impl Fn(R, R) -> R) -> R {
    let mut results = all.iter().map(|link| with(&link.connection));
    // A list of links is never empty: a program without a worker has no session.
    let first = results.next().expect("a program has a worker");
    results.fold(first, join)
}

fn number_of(handle: u64) -> usize {
    (handle >> LINK_SHIFT) as usize % LINKS_MAX
}

/// The links to all workers of the program, at least one.
#[derive(Debug)]
pub(crate) struct Links {
    all: Box<[Link]>,
    pub(super) visible: Visible,
    features: Features,
}

impl Links {
    /// Makes a list of connections, whose devices are seen as `visible` says.
    pub(super) fn new(connections: Vec<Connection>, visible: Visible) -> Self {
        let shared = connections.iter().map(Connection::features).reduce(Features::intersection);
        let workers = connections.len();
        let link = |(number, connection)| Link::new(number, connection, workers);
        let all = connections.into_iter().enumerate().map(link).collect();
        Self { all, visible, features: shared.unwrap_or_default() }
    }

    /// Returns the features that all workers have accepted.
    pub(super) fn features(&self) -> Features {
        self.features
    }

    /// Returns all links.
    pub(crate) fn all(&self) -> &[Link] {
        &self.all
    }

    /// Passes every connection to `with`; returns what `join` makes of the results.
    #[inline]
    pub(super) fn with_each<R>(&self, with: impl Fn(&Connection) -> R, join: impl Fn(R, R) -> R) -> R {
        match &*self.all {
            [only] => with(&only.connection),
            all => with_all(all, with, join),
        }
    }

    /// Returns whether there are several workers.
    #[inline]
    pub(crate) fn are_several(&self) -> bool {
        self.all.len() > 1
    }

    fn at(&self, number: usize) -> &Link {
        self.all.get(number).unwrap_or(&self.all[0])
    }

    /// Returns the link to the worker of a device; the first one for what is no device.
    #[inline]
    pub(crate) fn of_device(&self, device: i32) -> &Link {
        if self.are_several() { self.at(self.visible.link(device)) } else { &self.all[0] }
    }

    /// Returns whether two devices are of one worker.
    pub(crate) fn are_of_one_worker(&self, device: i32, other: i32) -> bool {
        self.of_device(device).number == self.of_device(other).number
    }

    /// Returns the link to the worker that has given a handle.
    pub(crate) fn of_handle(&self, handle: u64) -> &Link {
        if self.are_several() { self.at(number_of(handle)) } else { &self.all[0] }
    }

    /// Passes a request to `send` as its worker is to be sent it.
    #[inline]
    fn route<'a, O: Op, R>(
        &self,
        op: &O,
        extra: Extra<'a>,
        send: impl FnOnce(&Link, &O, Extra<'a>) -> R,
    ) -> R {
        match &*self.all {
            [only] => send(
                only,
                op,
                Extra { device: extra.device.map(|device| self.visible.there(device)), ..extra },
            ),
            _ => self.route_one(op, extra, send),
        }
    }

    #[cold]
    fn route_one<'a, O: Op, R>(
        &self,
        op: &O,
        extra: Extra<'a>,
        send: impl FnOnce(&Link, &O, Extra<'a>) -> R,
    ) -> R {
        let (mut there, mut first) = (*op, None);
        there.handles(|_, handle| {
            if *handle > PER_THREAD {
                first.get_or_insert(*handle);
            }
        });
        let link = match (first, extra.device) {
            (Some(handle), _) => self.of_handle(handle),
            (None, Some(device)) => self.of_device(device),
            (None, None) => &self.all[0],
        };
        there.handles(|_, handle| *handle = link.unmarked(*handle));
        // The current device of another worker is none of this one's.
        let device = extra.device.filter(|device| self.visible.link(*device) == link.number);
        send(link, &there, Extra { device: device.map(|device| self.visible.there(device)), ..extra })
    }

    /// Does what [`Connection::ask_with`] does.
    pub(crate) fn ask_with<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<O::Reply, CallError> {
        self.route(op, extra, |link, op, extra| Ok(link.mark_all(link.connection.ask_with(op, extra)?)))
    }

    /// Does what [`Connection::tell_with`] does.
    #[inline]
    pub(crate) fn tell_with<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<(), CallError> {
        self.route(op, extra, |link, op, extra| link.connection.tell_with(op, extra))
    }

    /// Does what [`Connection::call`] does.
    #[inline]
    pub(crate) fn call<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<(), CallError> {
        self.route(op, extra, |link, op, extra| link.connection.call(op, extra).map(drop))
    }

    /// Does what [`Connection::create`] does.
    pub(crate) fn create<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<u64, CallError> {
        self.route(op, extra, |link, op, extra| Ok(link.marked(link.connection.create(op, extra)?)))
    }

    /// Does what [`Connection::destroy_all`] does.
    pub(crate) fn destroy_all<O: Op>(&self, op: &O, extra: Extra<'_>) -> Result<O::Reply, CallError> {
        self.route(op, extra, |link, op, extra| link.connection.destroy_all(op, extra))
    }

    /// Does what [`Connection::free_name`] does.
    pub(crate) fn free_name(&self, handle: u64) {
        let link = self.of_handle(handle);
        link.connection.free_name(link.unmarked(handle));
    }

    /// Does what [`Connection::read`] does.
    pub(crate) fn read<O: Op>(
        &self,
        op: &O,
        extra: Extra<'_>,
        into: &mut [u8],
    ) -> Result<O::Reply, CallError> {
        self.route(op, extra, |link, op, extra| link.connection.read(op, extra, into))
    }

    /// Does what [`Connection::read_rows`] does.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn read_rows<O: Op>(
        &self,
        op: &O,
        extra: Extra<'_>,
        rows: Rows,
    ) -> Result<O::Reply, CallError> {
        // SAFETY: as the caller says.
        self.route(op, extra, |link, op, extra| unsafe { link.connection.read_rows(op, extra, rows) })
    }

    /// Returns the link to the worker that a list of questions is for: all are asked on one stream of it.
    fn of_changes(&self, ranges: &[MemChanges]) -> &Link {
        self.of_handle(ranges.first().map_or(0, |range| range.stream))
    }

    /// Asks what has changed, with questions that are all for one worker, and waits for the answers.
    pub(crate) fn ask_changes(&self, ranges: &[MemChanges]) -> Result<Vec<ChangesWithTail>, CallError> {
        let begun = self.start_changes(ranges)?;
        Ok(self.finish(begun)?.1)
    }

    /// Does what [`Connection::start_all`] does, with questions what has changed.
    pub(crate) fn start_all<F: Op>(
        &self,
        first: &F,
        extra: Extra<'_>,
        ranges: &[MemChanges],
    ) -> Result<Begun, CallError> {
        self.route(first, extra, |link, first, extra| begin(link, Some((first, extra)), ranges))
    }

    /// Does what [`start_all`](Self::start_all) does without a first request.
    pub(crate) fn start_changes(&self, ranges: &[MemChanges]) -> Result<Begun, CallError> {
        begin(self.of_changes(ranges), None::<(&MemChanges, _)>, ranges)
    }

    /// Does what [`Connection::start_read`] does, with questions what has changed.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn start_read<F: Op>(
        &self,
        first: &F,
        extra: Extra<'_>,
        rows: Rows,
        ranges: &[MemChanges],
    ) -> Result<Begun, CallError> {
        self.route(first, extra, |link, first, extra| {
            let (connection, ranges) = (&link.connection, there(link, ranges));
            let flight = if connection.packs_changes() {
                // SAFETY: as the caller says.
                Questions::Packed(unsafe { connection.start_read(first, extra, rows, &packed(&ranges)) }?)
            } else {
                // SAFETY: as the caller says.
                Questions::Plain(unsafe { connection.start_read(first, extra, rows, &ranges) }?)
            };
            Ok(Begun { link: link.number, flight })
        })
    }

    /// Does what [`Connection::finish_all`] does.
    pub(crate) fn finish(&self, begun: Begun) -> Result<(HipResult<()>, Vec<ChangesWithTail>), CallError> {
        let connection = &self.at(begun.link).connection;
        match begun.flight {
            Questions::Plain(flight) => connection.finish_all(flight),
            Questions::Packed(flight) => {
                let (first, answers) = connection.finish_all(flight)?;
                Ok((first, answers.into_iter().map(|answer| connection.unpack_changes(answer)).collect()))
            }
        }
    }
}

/// Requests that are under way.
#[derive(Debug)]
pub(crate) struct Begun {
    link: usize,
    flight: Questions,
}

/// Questions what has changed, with what leaves ahead of them.
#[derive(Debug)]
enum Questions {
    Plain(Flight<MemChanges>),
    /// The pages may come packed.
    Packed(Flight<MemChangesPacked>),
}

fn begin<F: Op>(
    link: &Link,
    first: Option<(&F, Extra<'_>)>,
    ranges: &[MemChanges],
) -> Result<Begun, CallError> {
    let (connection, ranges) = (&link.connection, there(link, ranges));
    let flight = if connection.packs_changes() {
        Questions::Packed(connection.start_all(first, &packed(&ranges))?)
    } else {
        Questions::Plain(connection.start_all(first, &ranges)?)
    };
    Ok(Begun { link: link.number, flight })
}

fn packed(ranges: &[MemChanges]) -> Vec<MemChangesPacked> {
    let packed =
        |&MemChanges { address, length, stream }: &MemChanges| MemChangesPacked { address, length, stream };
    ranges.iter().map(packed).collect()
}

/// Returns questions with the handles of a worker. Those of the first one bear no mark.
fn there<'a>(link: &Link, ranges: &'a [MemChanges]) -> Cow<'a, [MemChanges]> {
    if link.number == 0 {
        return Cow::Borrowed(ranges);
    }
    ranges.iter().map(|range| MemChanges { stream: link.unmarked(range.stream), ..*range }).collect()
}
