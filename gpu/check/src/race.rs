//! Races: two accesses to the same bytes, of which one is a store, without an order between them.
//!
//! What orders them ([`order`]): the wave that does both; a barrier of the workgroup; an atomic that the one's wave stored to behind its
//! access (and a release fence, if another workgroup is to see it) and the other's wave has read before; a meeting of all workgroups of a
//! cooperative launch; the order of streams. Atomics among themselves are no race.
//!
//! [`shadow`] has the last accesses of each word. Two stores of the same value are not reported: programs set flags that way.

use std::sync::Arc;

use hipr_isa::watch::{Kind as AccessKind, Memory};

use self::transfer::{NO_ORDER, Transfer};
use crate::context::Context;
use crate::finding::{Accessed, Finding, Kind, Other};
use crate::report::Report;

pub(crate) mod clock;
pub(crate) mod doubt;
pub(crate) mod order;
pub(crate) mod shadow;
pub(crate) mod transfer;

/// Reports an access of a kernel that a transfer races with.
pub(crate) fn check_transfer(context: &Context, report: &Report, transfer: &Arc<Transfer>) {
    let order = &transfer.order;
    let conflicts = |access: &shadow::Access, is_store| {
        (is_store || transfer.is_store)
            && context
                .stream(access.launch)
                .is_some_and(|stream| !order.is_behind(stream, access.launch.into()))
    };
    let Some((old, is_store, address)) =
        context.shadow.find(|start, end| transfer.has(start, end), conflicts)
    else {
        return;
    };
    let Some(kernel) = context.kernel(old.launch) else { return };
    let pc = kernel.pc_of(&old);
    let kind = if is_store { AccessKind::Store } else { AccessKind::Load };
    report.add((Kind::StreamRace, context.id, pc), 1, || Finding {
        kind: Kind::StreamRace,
        place: Some(kernel.place_of_old(&old)),
        accessed: Some(Accessed { kind, memory: Memory::Device, address, len_bytes: 4 }),
        near: context.map.at(address),
        other: Some(Other {
            place: None,
            kind: if transfer.is_store { AccessKind::Store } else { AccessKind::Load },
        }),
        note: NO_ORDER.to_owned(),
        count: 1,
    });
}
