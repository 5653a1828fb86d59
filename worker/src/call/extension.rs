//! Operations by which client and worker agree on the extension.

use hipr_proto::op::*;
use hipr_proto::{Features, HipError, HipResult};

use super::{Call, Continuation};

pub(super) fn offer(call: &mut Call<'_>, r: Offer) -> HipResult<Continuation> {
    let ours = call.limits.features.ok_or(HipError::NOT_SUPPORTED)?;
    if call.owned.features.is_some() {
        return Err(HipError::INVALID_VALUE);
    }
    let accepted = Features::from_bits(r.features).intersection(ours);
    call.owned.features = Some(accepted);
    call.reply(OfferReply { features: accepted.bits() })
}
