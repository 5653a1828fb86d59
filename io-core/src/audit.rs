//! What happens to sessions, for a record that outlives the worker.

use std::borrow::Cow;
use std::fmt;

use hipr_tls::{Fingerprint, Grant};

use crate::Peer;

/// Keeps a record of what happens to sessions. It is called on the threads of loop and dispatch, so it must not wait.
pub trait Audit: fmt::Debug + Send + Sync {
    /// Keeps a record of an event.
    fn record(&self, who: &Who, event: AuditEvent);
}

/// Whom an event concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The number of the session, from 1 on; `None` if there is none.
    pub session: Option<u64>,
    /// The client's end.
    pub peer: Peer,
    /// The key that the client has proved.
    pub key: Option<Fingerprint>,
    /// The tenant that the key belongs to.
    pub tenant: Option<String>,
}

impl Who {
    /// Returns a client of which nothing is known but where it is.
    pub fn at(peer: Peer) -> Self {
        Self { session: None, peer, key: None, tenant: None }
    }

    /// Returns a client without a session, who may have proved a key.
    pub fn client(peer: Peer, grant: Option<&Grant>) -> Self {
        let (key, tenant) = grant.map(|grant| (grant.key.fingerprint(), grant.tenant.clone())).unzip();
        Self { session: None, peer, key, tenant }
    }

    /// Returns the client of a session, who may have proved a key.
    pub fn of_session(session: u64, peer: Peer, grant: Option<&Grant>) -> Self {
        Self { session: Some(session), ..Self::client(peer, grant) }
    }
}

/// A detail of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A number.
    Number(u64),
    /// Words, which may be a stranger's.
    Text(Cow<'static, str>),
}

impl From<u64> for Detail {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<Cow<'static, str>> for Detail {
    fn from(text: Cow<'static, str>) -> Self {
        Self::Text(text)
    }
}

/// A detail is not of the kind that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongKind;

impl TryFrom<Detail> for u64 {
    type Error = WrongKind;

    fn try_from(detail: Detail) -> Result<Self, WrongKind> {
        if let Detail::Number(number) = detail { Ok(number) } else { Err(WrongKind) }
    }
}

impl TryFrom<Detail> for Cow<'static, str> {
    type Error = WrongKind;

    fn try_from(detail: Detail) -> Result<Self, WrongKind> {
        if let Detail::Text(text) = detail { Ok(text) } else { Err(WrongKind) }
    }
}

/// Makes the type of events, their names and the names of their details from one row each. A detail that is `None` is left out.
macro_rules! events {
    ($($(#[doc = $doc:literal])+ $event:ident $name:literal { $($(#[doc = $about:literal])+ $detail:ident: $kind:ty,)* })*) => {
        /// Something that happened to a session, or to a client that got none.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum AuditEvent {
            $($(#[doc = $doc])+ $event { $($(#[doc = $about])+ $detail: Option<$kind>,)* },)*
        }

        impl AuditEvent {
            /// Makes the event of this name from its details, which `detail` returns by their names; one of the wrong kind is left out. `None`
            /// if no event has the name.
            pub fn parse(name: &str, detail: impl Fn(&'static str) -> Option<Detail>) -> Option<Self> {
                match name {
                    $($name => Some(Self::$event {
                        $($detail: detail(stringify!($detail)).and_then(|detail| detail.try_into().ok()),)*
                    }),)*
                    _ => None,
                }
            }

            /// Returns the name of the event.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$event { .. } => $name,)*
                }
            }

            /// Returns the details, with their names.
            pub fn details(self) -> Vec<(&'static str, Detail)> {
                match self {
                    $(Self::$event { $($detail),* } => {
                        let details: Vec<Option<(&'static str, Detail)>> =
                            vec![$($detail.map(|detail| (stringify!($detail), detail.into()))),*];
                        details.into_iter().flatten().collect()
                    })*
                }
            }
        }
    };
}

events! {
    /// A session has begun.
    Begin "begin" {}
    /// The connection of a session was cut; the session is kept for its client.
    Park "park" {
        /// Why it was cut.
        reason: Cow<'static, str>,
    }
    /// A session goes on over another connection.
    Resume "resume" {
        /// The client's end of it.
        from: Cow<'static, str>,
    }
    /// A session has ended.
    End "end" {
        /// Why it has ended, in a word that does not change.
        kind: Cow<'static, str>,
        /// Why it has ended, in words for people.
        reason: Cow<'static, str>,
        /// Bytes that came from the client, on the wire.
        received_bytes: u64,
        /// Bytes that were sent to it, on the wire.
        sent_bytes: u64,
        /// Requests that came.
        requests: u64,
        /// Time that the session's work had on the threads of the emulated device, all threads together, in nanoseconds.
        device_ns: u64,
    }
    /// A client was not let in.
    Refused "refused" {
        /// Why, in a word that does not change.
        reason: Cow<'static, str>,
        /// Why, in words for people.
        words: Cow<'static, str>,
    }
    /// More clients were not let in within a while than are recorded one by one.
    Refusals "refusals" {
        /// The reason of all of them.
        reason: Cow<'static, str>,
        /// Their number.
        count: u64,
    }
    /// Records were lost, because they could not be written as fast as they came.
    Lost "lost" {
        /// Their number.
        count: u64,
    }
}

/// What a connection has moved, and why it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Bytes received, on the wire.
    pub received_bytes: u64,
    /// Bytes sent, on the wire.
    pub sent_bytes: u64,
    /// Requests received.
    pub requests: u64,
    /// Why it ended.
    pub reason: Cow<'static, str>,
    /// Why it ended, in a word ([`End::word`](crate::End::word)).
    pub kind: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_name_and_its_details_names() {
        let end = AuditEvent::End {
            kind: None,
            reason: Some("over".into()),
            received_bytes: Some(1),
            sent_bytes: Some(2),
            requests: None,
            device_ns: None,
        };
        assert_eq!(end.name(), "end");
        let expected: Vec<(_, Detail)> = vec![
            ("reason", Detail::Text("over".into())),
            ("received_bytes", 1.into()),
            ("sent_bytes", 2.into()),
        ];
        assert_eq!(end.details(), expected, "what is not known is left out");
        assert_eq!(AuditEvent::Begin {}.details(), []);
        let known = |name| match name {
            "count" => Some(Detail::Number(3)),
            // A number is expected, or words.
            "reason" => Some(Detail::Number(3)),
            "sent_bytes" => Some(Detail::Text("3".into())),
            _ => None,
        };
        let refusals = AuditEvent::Refusals { reason: None, count: Some(3) };
        assert_eq!(AuditEvent::parse("refusals", known), Some(refusals));
        let (kind, reason, received_bytes, sent_bytes, requests, device_ns) = Default::default();
        let end = AuditEvent::End { kind, reason, received_bytes, sent_bytes, requests, device_ns };
        assert_eq!(AuditEvent::parse("end", known), Some(end));
        assert_eq!(AuditEvent::parse("beginning", known), None);
    }
}
