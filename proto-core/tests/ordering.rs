//! Compares a server's replies, their order and their errors byte for byte with a model that is a fold over the requests.

mod support;

use std::collections::VecDeque;

use hipr_proto::{
    Class, FLAG_ERROR, FLAG_HAS_INLINE_DATA, FLAG_NO_REPLY, FLAG_RESPONSE, HipError, Info, Inline, Misuse,
    OPS, Opcode, Outcome, TailLen, Ticket,
};
use proptest::prelude::*;
use support::values;
use support::{Desk, proptest_config, raw};

#[derive(Debug, Clone)]
enum Action {
    /// The server receives a request.
    Receive(Request),
    /// The oldest open request is completed.
    Complete,
    /// An error of earlier work is kept.
    Keep(HipError),
    /// The queued replies are sent.
    Poll,
}

#[derive(Debug, Clone)]
struct Request {
    /// The operation's row; `None` for an unknown operation.
    row: Option<&'static Info>,
    loud: bool,
    /// Whether half of the fixed part is missing.
    short: bool,
    fails: Option<HipError>,
    /// Number of the reply's inline bytes, and the length of their pieces if they are streamed.
    inline: (usize, Option<usize>),
}

fn request() -> impl Strategy<Value = Request> {
    // Rows of each class come about as often.
    let of_class = |class| {
        let rows: Vec<_> = OPS.iter().filter(|info| info.class == class).collect();
        proptest::sample::select(rows).prop_map(Some)
    };
    let row = prop_oneof![
        4 => of_class(Class::Plain),
        4 => of_class(Class::Creates),
        4 => of_class(Class::Synchronizes),
        4 => of_class(Class::Exempt),
        1 => Just(None),
    ];
    let inline = (prop_oneof![3 => Just(0), 1 => 1..20usize], proptest::option::of(1..7usize));
    (row, any::<bool>(), proptest::bool::weighted(0.1), fails(), inline)
        .prop_map(|(row, loud, short, fails, inline)| Request { row, loud, short, fails, inline })
}

/// Generates one of several different errors.
fn error() -> impl Strategy<Value = HipError> {
    any::<i32>().prop_filter_map("an error", |code| HipError::check(code).err())
}

fn fails() -> impl Strategy<Value = Option<HipError>> {
    proptest::option::weighted(0.4, error())
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        5 => request().prop_map(Action::Receive),
        5 => Just(Action::Complete),
        1 => error().prop_map(Action::Keep),
        1 => Just(Action::Poll),
    ]
}

impl Request {
    fn op(&self) -> Opcode {
        self.row.map_or(Opcode(0x0fff), |info| info.code)
    }

    fn is_short(&self) -> bool {
        self.short && self.row.is_some_and(|info| info.request.size > 1)
    }

    fn refusal(&self) -> Option<HipError> {
        match self.row {
            None => Some(HipError::NOT_SUPPORTED),
            Some(_) => self.is_short().then_some(HipError::INVALID_VALUE),
        }
    }

    fn bytes(&self, id: u32) -> Vec<u8> {
        let mut body = self
            .row
            .map_or(vec![1, 2, 3], |info| values::all(&hipr_proto::Layout::Fields(info.request.fields), 2));
        if let Some(Ok(TailLen::Exact(len) | TailLen::AtLeast(len))) =
            self.row.map(|info| info.tail_len(&body))
        {
            body.resize(body.len() + len as usize, b'n');
        }
        if self.is_short() {
            body.truncate(self.row.map_or(0, |info| info.request.size / 2));
        }
        raw(self.op(), id, if self.loud { 0 } else { FLAG_NO_REPLY }, &body)
    }

    fn reply(&self) -> Vec<u8> {
        vec![0x5a; self.row.map_or(0, |info| info.reply.size)]
    }

    fn data(&self) -> Vec<u8> {
        (0..self.inline.0).map(|i| i as u8 | 0x80).collect()
    }
}

/// The expected state of a connection's errors.
#[derive(Default)]
struct Model {
    kept: Option<HipError>,
    sent: Vec<u8>,
}

impl Model {
    fn keep(&mut self, error: Option<HipError>) {
        self.kept = self.kept.or(error);
    }

    /// Returns the error that `request` has to fail with instead of being executed.
    fn admits(&self, request: &Request) -> Option<HipError> {
        let creates = request.row.is_some_and(|info| info.class == Class::Creates);
        if creates && request.loud && self.kept.is_some() { self.kept } else { request.refusal() }
    }

    fn complete(&mut self, id: u32, request: &Request) {
        let own = request.refusal().or(request.fails);
        if !request.loud {
            return self.keep(own);
        }
        let exempt = request.row.is_some_and(|info| info.class == Class::Exempt);
        let error = if exempt { own } else { self.kept.take().or(own) };
        let mut body = error.map_or(0, |error| error.0).to_le_bytes().to_vec();
        let mut flags = FLAG_RESPONSE;
        if error.is_some() {
            flags |= FLAG_ERROR;
            body.extend(vec![0; request.reply().len()]);
        } else {
            body.extend(request.reply());
            body.extend(request.data());
            flags |= if request.data().is_empty() { 0 } else { FLAG_HAS_INLINE_DATA };
        }
        self.sent.extend(raw(request.op(), id, flags, &body));
    }
}

/// Executes the next request as `request` describes.
fn complete(desk: &mut Desk, ticket: Ticket, request: &Request) {
    let inline = match request.inline {
        (_, None) => Inline::Whole(request.data()),
        (len, Some(_)) => Inline::Stream(len as u64),
    };
    let outcome = match request.fails {
        Some(error) => Outcome::error(error),
        None => Outcome::ok_raw(&request.reply()),
    };
    desk.complete(ticket, outcome.with_inline(inline)).expect("in order");
    // The rest is wanted whole or not at all.
    let left = desk.server.stream_left();
    assert!(left == 0 || left == request.inline.0 as u64);
    let data = request.data();
    for piece in data.chunks(request.inline.1.unwrap_or(1)) {
        if desk.server.stream_left() > 0 {
            desk.server.push_data(piece.to_vec()).expect("owed");
        }
    }
    assert_eq!(desk.server.stream_left(), 0);
}

proptest! {
    #![proptest_config(proptest_config(2000))]

    #[test]
    fn replies_are_those_of_the_model(mut actions in proptest::collection::vec(action(), 0..60)) {
        let (mut desk, mut model) = (Desk::new(), Model::default());
        let (mut open, mut sent, mut id) = (VecDeque::new(), Vec::new(), 0);
        // What is open at the end is completed too.
        let received = actions.iter().filter(|action| matches!(action, Action::Receive(_))).count();
        actions.extend(vec![Action::Complete; received]);
        for action in actions {
            match action {
                Action::Receive(request) => {
                    id += 1;
                    let got = desk.one(&request.bytes(id));
                    prop_assert_eq!((got.op, got.ticket.id()), (request.op(), id));
                    prop_assert_eq!((got.ticket.wants_reply(), got.ticket.refusal()), (request.loud, request.refusal()));
                    open.push_back((got.ticket, request));
                }
                Action::Complete => if let Some((ticket, request)) = open.pop_front() {
                    prop_assert_eq!(desk.server.admit(&ticket), model.admits(&request));
                    model.complete(ticket.id(), &request);
                    complete(&mut desk, ticket, &request);
                }
                Action::Keep(error) => {
                    desk.server.keep(error);
                    model.keep(Some(error));
                }
                Action::Poll => sent.extend(desk.sent()),
            }
            prop_assert_eq!(desk.server.open(), open.len());
        }
        sent.extend(desk.sent());
        prop_assert_eq!(sent, model.sent);
        let (_, responder) = desk.server.into_halves();
        prop_assert_eq!((responder.kept(), responder.queued_bytes()), (model.kept, 0));
    }

    /// Checks that completing a ticket out of order, or while inline bytes are missing, changes nothing.
    #[test]
    fn nothing_leaves_out_of_order(requests in proptest::collection::vec(request(), 2..6), late in 1..5usize) {
        let mut desk = Desk::new();
        let bytes: Vec<u8> = (1..).zip(&requests).flat_map(|(id, request)| request.bytes(id)).collect();
        let mut tickets: Vec<_> = desk.feed(&bytes).into_iter().map(|got| got.ticket).collect();
        let late = late.min(tickets.len() - 1);
        let outcome = Outcome::ok_raw(&requests[late].reply());
        let misuse = Misuse::OutOfOrder { expected: 0, got: late as u64 };
        prop_assert_eq!(desk.complete(tickets.remove(late), outcome), Err(misuse));
        prop_assert_eq!((desk.sent(), desk.server.open()), (vec![], requests.len()));
        // The one that is next is not held up.
        let mut model = Model::default();
        model.complete(1, &requests[0]);
        complete(&mut desk, tickets.remove(0), &requests[0]);
        prop_assert_eq!((desk.sent(), desk.server.open()), (model.sent, requests.len() - 1));
    }
}
