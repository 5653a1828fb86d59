//! What counts as a flight, held against the definition in [`Traffic`].

use hipr_proto::{FLAG_NO_REPLY, FLAG_RESPONSE, Header, Opcode};
use hipr_testkit::{Choices, seed_bytes};
use hipr_tests::{Conversation, Traffic};

/// What happens on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The client sends a request with a payload of this length that asks for a reply.
    Asks(u32, usize),
    /// The client sends a request that asks for none.
    Tells(u32, usize),
    /// The client receives the reply to a request.
    Gets(u32, usize),
    /// The client closes its side.
    Leaves,
}
use Event::*;

fn message(request_id: u32, payload_bytes: usize, flags: u32) -> Vec<u8> {
    let header = Header::new(Opcode::MALLOC, request_id, payload_bytes as u64, flags);
    // A payload that looks like headers is not read as such.
    let payload = header.to_bytes().into_iter().cycle().take(payload_bytes);
    header.to_bytes().into_iter().chain(payload).collect()
}

/// Plays events, with the bytes of each cut by `cut`, which returns the length of the next piece.
fn play_cut(events: &[Event], mut cut: impl FnMut() -> usize) -> Traffic {
    let (mut conversation, mut traffic) = (Conversation::default(), Traffic::default());
    for event in events {
        let bytes = match *event {
            Asks(id, len) => message(id, len, 0),
            Tells(id, len) => message(id, len, FLAG_NO_REPLY),
            Gets(id, len) => message(id, len, FLAG_RESPONSE),
            Leaves => {
                conversation.client_ended();
                continue;
            }
        };
        let mut left = bytes.as_slice();
        while !left.is_empty() {
            let (piece, rest) = left.split_at(cut().clamp(1, left.len()));
            left = rest;
            match event {
                Gets(..) => drop(conversation.delivered(piece, &mut traffic)),
                _ => conversation.sent(piece, &mut traffic),
            }
        }
    }
    traffic
}

fn play(events: &[Event]) -> Traffic {
    play_cut(events, || usize::MAX)
}

/// The number of flights as a longest chain: a request comes behind every reply that the client had before it.
fn longest_chain(events: &[Event]) -> u64 {
    let mut asked: Vec<(u32, u64)> = Vec::new();
    let mut had = 0;
    for event in events {
        match event {
            Asks(id, _) => asked.push((*id, had + 1)),
            Gets(id, _) => {
                let (_, length) =
                    asked.iter().find(|(asked, _)| asked == id).expect("a request before its reply");
                had = had.max(*length);
            }
            Leaves => break,
            Tells(..) => {}
        }
    }
    had
}

#[test]
fn flights_are_what_the_definition_says() {
    let cases: [(&[Event], u64); 10] = [
        (&[], 0),
        (&[Asks(1, 0)], 0),
        (&[Asks(1, 0), Gets(1, 4)], 1),
        (&[Asks(1, 0), Gets(1, 4), Asks(2, 8), Gets(2, 4)], 2),
        // Sent without waiting in between.
        (&[Asks(1, 0), Asks(2, 8), Asks(3, 8), Gets(1, 4), Gets(2, 4), Gets(3, 4)], 1),
        (&[Tells(1, 0), Tells(2, 100), Tells(3, 8)], 0),
        (&[Tells(1, 64), Asks(2, 8), Tells(3, 8), Gets(2, 4), Tells(4, 0)], 1),
        // Two requests under way all the time: a flight carries two.
        (
            &[Asks(1, 0), Asks(2, 0), Gets(1, 4), Asks(3, 0), Gets(2, 4), Asks(4, 0), Gets(3, 4), Gets(4, 4)],
            2,
        ),
        // A client that does not wait for the last reply.
        (&[Asks(1, 0), Gets(1, 4), Asks(2, 0), Leaves, Gets(2, 4)], 1),
        // A reply that nobody asked for.
        (&[Asks(1, 0), Gets(1, 4), Tells(2, 0), Gets(9, 4)], 1),
    ];
    for (events, flights) in cases {
        assert_eq!(play(events).flights, flights, "{events:?}");
    }
}

#[test]
fn a_flight_lands_with_the_last_byte_of_a_reply() {
    let (mut conversation, mut traffic) = (Conversation::default(), Traffic::default());
    conversation.sent(&message(1, 8, 0), &mut traffic);
    let reply = message(1, 1000, FLAG_RESPONSE);
    assert_eq!(conversation.delivered(&reply[..1023], &mut traffic), None);
    conversation.sent(&message(2, 8, 0), &mut traffic);
    let landed = conversation.delivered(&reply[1023..], &mut traffic).expect("the whole reply");
    assert_eq!((landed.number, landed.reply_bytes), (1, 1024));
    assert_eq!(conversation.delivered(&message(2, 0, FLAG_RESPONSE), &mut traffic), None, "the same flight");
    assert_eq!(traffic.flights, 1);
}

#[test]
fn a_flight_names_its_operations_and_each_has_its_share() {
    let (mut conversation, mut traffic) = (Conversation::default(), Traffic::default());
    let request = |op, id| Header::new(op, id, 0, 0).to_bytes();
    let reply = |op, id, len: usize| {
        let header = Header::new(op, id, len as u64, FLAG_RESPONSE).to_bytes();
        [&header[..], &vec![0; len]].concat()
    };
    for (op, id) in [(Opcode::INIT, 1), (Opcode::MALLOC, 2), (Opcode::MALLOC, 3)] {
        conversation.sent(&request(op, id), &mut traffic);
    }
    let landed = conversation.delivered(&reply(Opcode::INIT, 1, 4), &mut traffic).expect("a reply");
    assert_eq!(landed.to_string(), "flight 1: INIT + MALLOC (28 bytes)");
    assert_eq!(conversation.delivered(&reply(Opcode::MALLOC, 2, 12), &mut traffic), None);
    let (init, malloc) = (traffic.operations[&Opcode::INIT], traffic.operations[&Opcode::MALLOC]);
    assert_eq!((init.flights, init.requests, init.bytes_to_worker, init.bytes_to_client), (1, 1, 24, 28));
    assert_eq!(
        (malloc.flights, malloc.requests, malloc.bytes_to_worker, malloc.bytes_to_client),
        (0, 2, 48, 36)
    );
    let table = traffic.to_string();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows[1..],
        [
            vec!["INIT", "1", "1", "24", "28"],
            vec!["MALLOC", "0", "2", "48", "36"],
            vec!["all", "1", "3", "72", "64"]
        ]
    );
}

/// Draws what a client and a worker that keeps the order of replies could do.
fn draw(random: &mut Choices<'_>) -> Vec<Event> {
    let (mut events, mut owed) = (Vec::new(), std::collections::VecDeque::new());
    let mut id = 0;
    for _ in 0..random.below(60) {
        let len = random.below(100) as usize;
        id += 1;
        match random.below(5) {
            0 => events.push(Tells(id, len)),
            1 | 2 => {
                events.push(Asks(id, len));
                owed.push_back(id);
            }
            _ => events.extend(owed.pop_front().map(|id| Gets(id, len))),
        }
    }
    if random.below(4) == 0 {
        events.push(Leaves);
        events.extend(owed.into_iter().map(|id| Gets(id, 4)));
    }
    events
}

#[test]
fn flights_are_the_longest_chain_and_how_bytes_are_cut_is_invisible() {
    let mut most = 0;
    for seed in 0..2_000 {
        let bytes = seed_bytes(seed);
        let mut random = Choices::new(&bytes);
        let events = draw(&mut random);
        let traffic = play(&events);
        assert_eq!(traffic.flights, longest_chain(&events), "seed {seed}: {events:?}");
        most = most.max(traffic.flights);
        let cut = play_cut(&events, || 1 + random.below(40) as usize);
        assert_eq!(cut, traffic, "seed {seed}: {events:?}");
        let counted = events.iter().filter(|event| !matches!(event, Leaves)).count() as u64;
        assert_eq!(traffic.requests + traffic.replies, counted);
    }
    assert!(most > 10, "{most} flights at most");
}

#[test]
fn bytes_that_are_not_hipr_are_counted_as_bytes() {
    let (mut conversation, mut traffic) = (Conversation::default(), Traffic::default());
    conversation.sent(b"GET / HTTP/1.1\r\nHost: example\r\n\r\n", &mut traffic);
    conversation.sent(&message(1, 0, 0), &mut traffic);
    assert_eq!(conversation.delivered(&message(1, 0, FLAG_RESPONSE), &mut traffic), None);
    assert_eq!((traffic.requests, traffic.flights), (0, 0));
    assert_eq!((traffic.bytes_to_worker, traffic.bytes_to_client), (33 + 24, 24));
}
