//! A trace sorted by requests, replies and calls.

use hipr_proto::{Fatal, HipError, Opcode};

use crate::model::{Learned, Model};
use crate::options::{Direction, FaultKind};
use crate::script::{Call, Case, Kind};
use crate::trace::{Event, Side, Trace};

/// The sorted events of a trace, which the invariants examine.
pub struct Story<'t> {
    pub(super) case: &'t Case,
    pub(super) model: &'t Model,
    pub(super) trace: &'t Trace,
    pub(super) asked: Vec<Asked>,
    pub(super) requests: Vec<Request>,
    pub(super) frames: Vec<Frame>,
    /// Where notifications end among the bytes that the server sent.
    notified: Vec<u64>,
    pub(super) resolved: Vec<Resolved<'t>>,
    lost: [bool; 2],
    is_at_rest: bool,
}

/// A call that the client accepted.
pub(super) struct Asked {
    pub(super) call: usize,
    pub(super) id: Option<u32>,
    end_byte: u64,
}

/// A request that the server delivered.
pub(super) struct Request {
    pub(super) id: u32,
    pub(super) op: Opcode,
    pub(super) wants_reply: bool,
    pub(super) refusal: Option<HipError>,
    pub(super) tail: u64,
    /// Number of bytes of the tail that did not arrive.
    missing: u64,
    /// Position of the first wrong byte.
    pub(super) wrong_at: Option<u64>,
    pub(super) executed: bool,
    pub(super) completed: bool,
    /// Whether it was completed before the connection was lost.
    pub(super) completed_before_loss: bool,
    /// Whether it is known that the request was executed or refused.
    pub(super) settled: bool,
    pub(super) stream_left: u64,
}

/// A reply that the server sent.
pub(super) struct Frame {
    pub(super) id: u32,
    pub(super) op: Opcode,
    pub(super) flags: u32,
    pub(super) error: Option<i32>,
    pub(super) payload_len: u64,
    end_byte: u64,
}

impl Frame {
    /// Returns the error of the reply.
    pub(super) fn error(&self) -> Option<HipError> {
        self.error.filter(|code| *code != 0).map(HipError)
    }
}

/// A call whose result the program knows.
pub(super) struct Resolved<'t> {
    pub(super) call: usize,
    pub(super) learned: Option<&'t Learned>,
    pub(super) intact: bool,
}

impl<'t> Story<'t> {
    pub(super) fn new(case: &'t Case, model: &'t Model, trace: &'t Trace) -> Self {
        let mut story = Self {
            case,
            model,
            trace,
            asked: Vec::new(),
            requests: Vec::new(),
            frames: Vec::new(),
            notified: Vec::new(),
            resolved: Vec::new(),
            lost: [false; 2],
            is_at_rest: false,
        };
        for event in &trace.events {
            story.tell(event);
        }
        story
    }

    fn tell(&mut self, event: &'t Event) {
        let is_lost = self.has_lost(Side::Server);
        match event {
            Event::Asked { call, id, end_byte, .. } => {
                self.asked.push(Asked { call: *call, id: *id, end_byte: *end_byte });
            }
            Event::Request { id, op, wants_reply, refusal, fixed, tail, .. } => {
                self.requests.push(Request {
                    id: *id,
                    op: *op,
                    wants_reply: *wants_reply,
                    refusal: *refusal,
                    tail: *tail,
                    missing: *tail,
                    wrong_at: fixed.wrong_at,
                    executed: false,
                    completed: false,
                    completed_before_loss: false,
                    settled: false,
                    stream_left: 0,
                });
            }
            Event::RequestData { bytes, .. } => {
                if let Some(request) = self.requests.last_mut() {
                    request.wrong_at = request.wrong_at.or(bytes.wrong_at);
                    request.missing = request.missing.saturating_sub(bytes.len);
                }
            }
            Event::Executed { sequence } => {
                if let Some(request) = self.request_mut(*sequence) {
                    (request.executed, request.settled) = (true, true);
                }
            }
            Event::Completed { sequence, stream_left } => {
                if let Some(request) = self.request_mut(*sequence) {
                    request.completed = true;
                    request.completed_before_loss = !is_lost;
                    request.settled |= !is_lost;
                    request.stream_left = *stream_left;
                }
            }
            Event::Frame { id, op, flags, error, payload_len, end_byte } => self.frames.push(Frame {
                id: *id,
                op: *op,
                flags: *flags,
                error: *error,
                payload_len: *payload_len,
                end_byte: *end_byte,
            }),
            Event::Notified { end_byte, .. } => self.notified.push(*end_byte),
            Event::Resolved { call, learned, intact } => {
                self.resolved.push(Resolved { call: *call, learned: learned.as_ref(), intact: *intact });
            }
            Event::Lost(Side::Client) => self.lost[0] = true,
            Event::Lost(Side::Server) => self.lost[1] = true,
            Event::Rest { .. } => self.is_at_rest = true,
            _ => {}
        }
    }

    fn request_mut(&mut self, sequence: u64) -> Option<&mut Request> {
        self.requests.get_mut(usize::try_from(sequence).ok()?)
    }

    pub(super) fn call(&self, index: usize) -> Option<&'t Call> {
        self.case.script.0.get(index)
    }

    pub(super) fn has_lost(&self, side: Side) -> bool {
        match side {
            Side::Client => self.lost[0],
            Side::Server => self.lost[1],
        }
    }

    pub(super) fn is_at_rest(&self) -> bool {
        self.is_at_rest
    }

    /// Returns whether no fault happened.
    pub(super) fn is_calm(&self) -> bool {
        self.trace.fault_at_byte.is_none()
    }

    fn fault_in(&self, direction: Direction) -> Option<(u64, &FaultKind)> {
        let fault = self.case.options.fault.as_ref().filter(|fault| fault.direction == direction)?;
        Some((self.trace.fault_at_byte?, &fault.kind))
    }

    /// Returns whether a fault puts other bytes in place of those that the server sent.
    pub(super) fn is_down_garbled(&self) -> bool {
        let fault = self.fault_in(Direction::Down);
        fault.is_some_and(|(_, kind)| matches!(kind, FaultKind::Insert(_) | FaultKind::Flip(_)))
    }

    /// Returns whether the complete request was written before the fault.
    pub(super) fn is_request_intact(&self, call: usize) -> bool {
        match self.fault_in(Direction::Up) {
            None => true,
            Some((at, _)) => self.asked.get(call).is_some_and(|asked| asked.end_byte <= at),
        }
    }

    /// Returns whether the complete request and the complete reply were written before the fault.
    pub(super) fn is_reply_intact(&self, call: usize) -> bool {
        let Some((at, _)) = self.fault_in(Direction::Down) else { return self.is_request_intact(call) };
        let id = self.asked.get(call).and_then(|asked| asked.id);
        self.frames.iter().any(|frame| Some(frame.id) == id && frame.end_byte <= at)
    }

    /// Returns whether the reply has to arrive in spite of the fault.
    pub(super) fn is_reply_owed(&self, call: usize) -> bool {
        let reset =
            |direction| self.fault_in(direction).is_some_and(|(_, kind)| matches!(kind, FaultKind::Reset));
        !reset(Direction::Up) && !reset(Direction::Down) && self.is_reply_intact(call)
    }

    /// Returns how the server's input has to end, if that is known.
    pub(super) fn server_end(&self) -> Option<Result<(), Fatal>> {
        let is_between = match self.fault_in(Direction::Up) {
            Some((at, FaultKind::HalfClose)) => {
                at == 0 || self.asked.iter().any(|asked| asked.end_byte == at)
            }
            Some(_) => return None,
            // A client that leaves may leave in the middle.
            None if self.has_lost(Side::Client) => return None,
            None => true,
        };
        Some(if is_between { Ok(()) } else { Err(Fatal::EofInsideMessage) })
    }

    /// Returns how the client's input has to end, if that is known.
    pub(super) fn client_end(&self) -> Option<Result<(), Fatal>> {
        let is_between = match self.fault_in(Direction::Down) {
            Some((at, FaultKind::HalfClose)) => {
                at == 0 || self.notified.contains(&at) || self.frames.iter().any(|frame| frame.end_byte == at)
            }
            Some(_) => return None,
            None => true,
        };
        let asked = self.asked.iter().filter(|asked| asked.id.is_some()).count();
        let learned = self.resolved.iter().filter(|resolved| resolved.learned.is_some()).count();
        let waiting = asked.saturating_sub(learned);
        Some(match waiting {
            _ if !is_between => Err(Fatal::EofInsideMessage),
            0 => Ok(()),
            waiting => Err(Fatal::EofBeforeReply { waiting }),
        })
    }

    /// Iterates over the requests that arrived as the script says, with the indices of their calls.
    pub(super) fn intact_requests(&self) -> impl Iterator<Item = (usize, &Request)> {
        let is_whole =
            |(index, request): &(usize, &Request)| request.missing == 0 && self.is_request_intact(*index);
        self.requests.iter().enumerate().take_while(is_whole)
    }

    /// Iterates over the replies to such requests, with the indices of their calls.
    pub(super) fn intact_frames(&self) -> impl Iterator<Item = (usize, &Frame)> {
        let mut requests = self.intact_requests();
        self.frames.iter().map_while(move |frame| {
            let (index, _) =
                requests.find(|(_, request)| (request.id, request.op) == (frame.id, frame.op))?;
            Some((index, frame))
        })
    }

    /// Returns the call whose payload exceeds the limit, if it arrived.
    pub(super) fn too_long(&self) -> Option<(usize, &'t Call)> {
        let mut calls = self.case.script.0.iter().enumerate();
        let (index, call) = calls.find(|(_, call)| call.kind == Kind::TooLong)?;
        // Its request never becomes one; that the one before it did and the server was not lost says that it came.
        let reached = self.model.ends && self.model.calls.len() == index;
        let came = self.is_calm() && self.is_at_rest && !self.has_lost(Side::Server);
        (reached && came).then_some((index, call))
    }
}

pub(super) fn error_text(error: Option<HipError>) -> String {
    match error {
        None => "no error".into(),
        Some(HipError(code)) => format!("error {code}"),
    }
}
