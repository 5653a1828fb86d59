//! Counts what passes between a client and a worker: bytes, messages, and flights.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use hipr_proto::{FLAG_NO_REPLY, Header, MAGIC, Opcode};

/// Maximum number of operations that a [`Flight`] names.
const NAMES_MAX: usize = 16;

/// The traffic of one or more connections.
///
/// **Flights.** A flight is one round trip for which the program stands still. They are counted for each connection, without a
/// clock, from the order in which messages pass the proxy:
///
/// * A request that asks for a reply belongs to flight n + 1 if n flights have landed when the proxy has read its header.
/// * Flight n lands when the first reply to one of its requests has been handed to the client as a whole, if the client has not
///   closed its side of the connection by then.
/// * The number of flights is the number of those that have landed.
///
/// So requests that a client sends without waiting in between are one flight, however many they are, and a request that it sends
/// only after it has a reply is another one. Requests with `NO_REPLY` cost no flight, nor does a reply that a client asks for and goes
/// away without. The opening of the session and its end count if the client waits for them; TCP's handshake does not.
///
/// Before the proxy hands a reply to the client, it reads what the client has sent by then. A client that sends requests
/// independently of replies that come meanwhile (from another thread, for example) may be counted a flight too many for each, never one
/// too few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes from clients to the worker.
    pub bytes_to_worker: u64,
    /// Bytes from the worker to clients.
    pub bytes_to_client: u64,
    /// Messages from clients to the worker.
    pub requests: u64,
    /// Messages from the worker to clients.
    pub replies: u64,
    /// Number of flights.
    pub flights: u64,
    /// The share of each operation.
    pub operations: BTreeMap<Opcode, Share>,
}

/// The share of one operation in the [`Traffic`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Flights whose first reply was of this operation.
    pub flights: u64,
    /// Number of requests.
    pub requests: u64,
    /// Bytes of requests, with headers.
    pub bytes_to_worker: u64,
    /// Bytes of replies, with headers.
    pub bytes_to_client: u64,
}

/// A flight that has landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flight {
    /// Its number on its connection; the first has 1.
    pub number: u64,
    /// The operations of its requests in the order in which they were sent, each once, at most 16.
    pub operations: Vec<Opcode>,
    /// Length in bytes of the reply with which it landed.
    pub reply_bytes: u64,
}

impl fmt::Display for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.operations.iter().map(ToString::to_string).collect();
        write!(f, "flight {}: {} ({} bytes)", self.number, names.join(" + "), self.reply_bytes)
    }
}

impl fmt::Display for Traffic {
    /// Writes a table: a line for each operation, those that waited most first, and the sums.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut operations: Vec<(String, Share)> =
            self.operations.iter().map(|(op, share)| (op.to_string(), *share)).collect();
        operations.sort_by_key(|(_, share)| (share.flights, share.bytes_to_client, share.bytes_to_worker));
        writeln!(
            f,
            "{:<34} {:>8} {:>9} {:>14} {:>14}",
            "operation", "flights", "requests", "bytes sent", "received"
        )?;
        let sums = Share {
            flights: self.flights,
            requests: self.requests,
            bytes_to_worker: self.bytes_to_worker,
            bytes_to_client: self.bytes_to_client,
        };
        for (name, share) in operations.into_iter().rev().chain([("all".to_owned(), sums)]) {
            let Share { flights, requests, bytes_to_worker, bytes_to_client } = share;
            writeln!(f, "{name:<34} {flights:>8} {requests:>9} {bytes_to_worker:>14} {bytes_to_client:>14}")?;
        }
        Ok(())
    }
}

/// Follows one connection and adds what it sees to a [`Traffic`]. Reads headers only; bytes that are not HIPR are counted as
/// bytes and as nothing else.
#[derive(Debug, Default)]
pub struct Conversation {
    requests: Messages,
    replies: Messages,
    landed: u64,
    /// The requests that ask for a reply and have none yet.
    owed: VecDeque<Owed>,
    /// The operations of the flight that lands next.
    aboard: Vec<Opcode>,
    client_has_ended: bool,
}

#[derive(Debug)]
struct Owed {
    request_id: u32,
    flight: u64,
}

impl Conversation {
    /// Notes bytes that the client has sent.
    pub fn sent(&mut self, mut bytes: &[u8], traffic: &mut Traffic) {
        traffic.bytes_to_worker += bytes.len() as u64;
        while let Some(step) = self.requests.next(&mut bytes) {
            let Step::Begins(header) = step else { continue };
            traffic.requests += 1;
            let share = traffic.operations.entry(header.op).or_default();
            share.requests += 1;
            share.bytes_to_worker += len_bytes(&header);
            if header.has(FLAG_NO_REPLY) {
                continue;
            }
            self.owed.push_back(Owed { request_id: header.request_id, flight: self.landed + 1 });
            if self.aboard.len() < NAMES_MAX && !self.aboard.contains(&header.op) {
                self.aboard.push(header.op);
            }
        }
    }

    /// Notes that the client has closed its side.
    pub fn client_ended(&mut self) {
        self.client_has_ended = true;
    }

    /// Notes bytes that were handed to the client; returns the flight that landed with them, if one did.
    pub fn delivered(&mut self, mut bytes: &[u8], traffic: &mut Traffic) -> Option<Flight> {
        traffic.bytes_to_client += bytes.len() as u64;
        let mut landed = None;
        while let Some(step) = self.replies.next(&mut bytes) {
            let Step::Ends(header) = step else { continue };
            traffic.replies += 1;
            traffic.operations.entry(header.op).or_default().bytes_to_client += len_bytes(&header);
            // Replies have the order of their requests: this is the first one, if it is one at all.
            let Some(i) = self.owed.iter().position(|owed| owed.request_id == header.request_id) else {
                continue;
            };
            let flight = self.owed.remove(i).map_or(0, |owed| owed.flight);
            if flight > self.landed && !self.client_has_ended {
                self.landed = flight;
                traffic.flights += 1;
                traffic.operations.entry(header.op).or_default().flights += 1;
                let operations = std::mem::take(&mut self.aboard);
                landed = Some(Flight { number: flight, operations, reply_bytes: len_bytes(&header) });
            }
        }
        landed
    }
}

fn len_bytes(header: &Header) -> u64 {
    header.payload_length.saturating_add(Header::SIZE as u64)
}

/// Cuts one direction's bytes into messages; holds a header and nothing of the payloads.
#[derive(Debug, Default)]
struct Messages {
    header: [u8; Header::SIZE],
    header_len: usize,
    /// The message whose header is complete, and how many bytes of its payload are missing.
    open: Option<(Header, u64)>,
    is_strange: bool,
}

/// What [`Messages`] has come to.
#[derive(Debug)]
enum Step {
    /// The header is complete.
    Begins(Header),
    /// The message is complete.
    Ends(Header),
}

impl Messages {
    /// Takes bytes up to the next step; returns None when all bytes are taken and there is no further step.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<Step> {
        if self.is_strange {
            *bytes = &[];
            return None;
        }
        if let Some((header, left)) = &mut self.open {
            let len = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
            *bytes = &bytes[len..];
            *left -= len as u64;
            if *left > 0 {
                return None;
            }
            let header = *header;
            self.open = None;
            return Some(Step::Ends(header));
        }
        let len = (Header::SIZE - self.header_len).min(bytes.len());
        self.header[self.header_len..self.header_len + len].copy_from_slice(&bytes[..len]);
        self.header_len += len;
        *bytes = &bytes[len..];
        if self.header_len < Header::SIZE {
            return None;
        }
        self.header_len = 0;
        let header = Header::take(&mut self.header.as_slice()).ok().filter(|header| header.magic == MAGIC);
        let Some(header) = header else {
            self.is_strange = true;
            return self.next(bytes);
        };
        self.open = Some((header, header.payload_length));
        Some(Step::Begins(header))
    }
}
