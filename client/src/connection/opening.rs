//! The first flight of a connection: opens the session, offers features, and asks for what never changes.

use hipr_proto::op::{self, STATIC_LIST_MAX_BYTES};
use hipr_proto::{Call, Features, HipError, Op, ReplyMode};

use super::{Inner, Writer, decode, lock};
use crate::replies::{Bulk, Whole};
use crate::statics::Question;

/// The reason why a session could not be opened.
pub(super) enum Opening {
    Refused(HipError),
    Failed(String),
}

impl Inner {
    /// Opens the session and offers features, in one flight; returns the features that the worker accepts.
    pub(super) fn open_session(&self, offer: Option<Features>, part: u64) -> Result<Features, Opening> {
        if offer.is_some_and(|features| features.contains(Features::NOTIFICATIONS)) {
            self.replies.accept_notifications();
        }
        if offer.is_some_and(|features| features.contains(Features::SHARED)) {
            self.transport.expect_descriptor();
        }
        let mut writer = lock(&self.writer);
        let init = self.opening(&mut writer, &op::Init {})?;
        let offered = match offer {
            Some(features) => {
                let request = op::Offer { features: features.bits(), part };
                Some((features, self.opening(&mut writer, &request)?))
            }
            None => None,
        };
        // Sent blindly: a worker that does not accept the feature refuses the request, too.
        let offers = |feature| offer.is_some_and(|features| features.contains(feature));
        if offers(Features::STATIC) {
            let request = op::Static { max_bytes: STATIC_LIST_MAX_BYTES, reserved: 0 };
            *lock(&self.listing) = Some(self.opening(&mut writer, &request)?);
        }
        if offers(Features::PLACES) {
            let request = op::MemLease { want_bytes: 0 };
            *lock(&self.first_lease) = Some(self.opening(&mut writer, &request)?);
        }
        self.transmit(&mut writer).map_err(|error| Opening::Failed(error.to_string()))?;
        drop(writer);
        self.counters.add(|c| &c.round_trips, 1);
        if let Some(error) = self.opened(init)?.error {
            return Err(Opening::Refused(error));
        }
        let Some((features, call)) = offered else { return Ok(Features::NONE) };
        // A worker that does not have the operation, or refuses it, is used without the extension.
        let accepted = decode::<op::Offer>(&self.opened(call)?).map_or(0, |reply| reply.features);
        let accepted = Features::from_bits(accepted).intersection(features).usable();
        tracing::debug!("features of the extension: {accepted}");
        Ok(accepted)
    }

    /// Queues a request of the first flight.
    fn opening<O: Op>(&self, writer: &mut Writer, op: &O) -> Result<Call, Opening> {
        let call = writer.sender.request_with(op, &[], None, ReplyMode::Always);
        let call = call.map_err(|misuse| Opening::Failed(misuse.to_string()))?;
        let call = call.ok_or_else(|| Opening::Failed(format!("{} is not answered", O::OPCODE)))?;
        self.counters.add_locked(|c| &c.frames_sent, 1);
        self.observe(writer, op, 0, true);
        self.replies.expect(call, Bulk::Collect(Vec::new()));
        Ok(call)
    }

    /// Waits for a reply of the first flight.
    fn opened(&self, call: Call) -> Result<Whole, Opening> {
        self.observed_wait(call.id(), || self.replies.wait(call.id(), &self.counters))
            .map_err(|reason| Opening::Failed(reason.unwrap_or_default()))
    }

    /// Returns the answer to a question, if it is known or the worker has listed it. The list is waited for when it is first
    /// needed: it comes with the first flight, but a worker may have to start its GPU's runtime for it.
    pub(super) fn known(&self, question: Option<&Question>) -> Option<Whole> {
        let question = question?;
        if self.lost.get().is_some() {
            return None;
        }
        let mut listing = lock(&self.listing);
        if let Some(call) = listing.take() {
            match self.wait(call.id()) {
                Ok(whole) => self.take_list(&whole),
                Err(lost) => tracing::debug!("no list of static replies: {lost}"),
            }
        }
        drop(listing);
        self.statics.answer(question)
    }

    fn take_list(&self, whole: &Whole) {
        match decode::<op::Static>(whole) {
            Err(error) => tracing::debug!("the worker has no list of static replies: {error}"),
            Ok(head) => {
                if let Err(why) = self.statics.add_list(head, &whole.tail) {
                    tracing::warn!(
                        "ignoring the list of static replies of the worker at {}: {why}",
                        self.address
                    );
                }
            }
        }
    }
}
