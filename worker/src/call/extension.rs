//! Operations by which client and worker agree on the extension, and those of it that stand for no function of HIP.

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

/// Accepts a name for what the next request makes.
pub(super) fn name(call: &mut Call<'_>, r: Name) -> HipResult<Continuation> {
    if !call.owned.features.is_some_and(|features| features.contains(Features::NAMES)) {
        return Err(call.owned.names.refuse(HipError::NOT_SUPPORTED));
    }
    let max = call.limits.handles_max;
    call.owned.names.announce(r.name, max).map_err(|error| match error {
        HipError::OUT_OF_MEMORY => call.owned.refuse(call.conn, "handles_max", max as u64),
        error => error,
    })?;
    call.done()
}

impl Call<'_> {
    /// Checks that the session has a feature of the extension. Without it the feature's operations fail as those that nobody knows.
    pub(super) fn check_feature(&self, feature: Features) -> HipResult<()> {
        let has = self.owned.features.is_some_and(|features| features.contains(feature));
        if has { Ok(()) } else { Err(HipError::NOT_SUPPORTED) }
    }
}
