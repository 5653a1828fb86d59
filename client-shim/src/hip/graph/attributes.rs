//! Functions about the attributes of kernel nodes. As with AMD's runtime, a node has one attribute: the one that was set last.

use std::mem::discriminant;

use hipr_abi::*;
use hipr_proto::{HipError, HipResult};

use super::{NodeOf, of_work};
use crate::command::{CacheWindow, Command, NodeAttribute};
use crate::convert::{In, Out, Ptr};
use crate::session::Session;
use crate::thread;

fn attribute_of(session: &Session, node: Ptr) -> HipResult<Option<NodeAttribute>> {
    of_work(session, node, |command| {
        if let Command::Kernel(kernel) = command { Some(kernel.attribute()) } else { None }
    })
}

/// Reads a `hipAccessPolicyWindow`; fails with `hipErrorInvalidValue` for one that the device cannot have.
fn window(session: &Session, value: Ptr) -> HipResult<CacheWindow> {
    let given = In::<hipAccessPolicyWindow>::at_address(value).check()?;
    let most = session.worker().attribute(thread::device(), hipDeviceAttributeAccessPolicyMaxWindowSize)?;
    let is_good = (0.0..=1.0).contains(&given.hitRatio)
        && given.missProp != hipAccessPropertyPersisting
        && given.num_bytes <= usize::try_from(most).unwrap_or(0)
        && (given.num_bytes == 0 || given.hitRatio > 0.0);
    if !is_good {
        return Err(HipError::INVALID_VALUE);
    }
    Ok(CacheWindow {
        base: given.base_ptr.into(),
        len: given.num_bytes,
        hit_ratio: given.hitRatio,
        hit: given.hitProp,
        miss: given.missProp,
    })
}

/// `hipGraphKernelNodeGetAttribute`: if none was set, each attribute is 0.
pub(crate) fn get(session: &Session, node: Ptr, id: hipLaunchAttributeID, value: Ptr) -> HipResult<()> {
    value.check()?;
    match (id, attribute_of(session, node)?) {
        (hipLaunchAttributeAccessPolicyWindow, Some(NodeAttribute::CacheWindow(window))) => {
            set_window(value, window);
        }
        (hipLaunchAttributeAccessPolicyWindow, None) => set_window(value, CacheWindow::default()),
        (hipLaunchAttributeCooperative, Some(NodeAttribute::Cooperative(cooperative))) => {
            Out::at_address(value).set(cooperative);
        }
        (hipLaunchAttributeCooperative | hipLaunchAttributePriority, None) => {
            Out::at_address(value).set(0_i32);
        }
        _ => return Err(HipError::INVALID_VALUE),
    }
    Ok(())
}

fn set_window(value: Ptr, window: CacheWindow) {
    Out::at_address(value).set(hipAccessPolicyWindow {
        base_ptr: window.base.as_mut_ptr(),
        hitProp: window.hit,
        hitRatio: window.hit_ratio,
        missProp: window.miss,
        num_bytes: window.len,
    });
}

/// `hipGraphKernelNodeSetAttribute`: as with AMD's runtime, no priority is accepted.
pub(crate) fn set(session: &Session, node: Ptr, id: hipLaunchAttributeID, value: Ptr) -> HipResult<()> {
    let attribute = match id {
        hipLaunchAttributeAccessPolicyWindow => NodeAttribute::CacheWindow(window(session, value)?),
        hipLaunchAttributeCooperative => NodeAttribute::Cooperative(In::at_address(value).check()?),
        _ => return Err(HipError::INVALID_VALUE),
    };
    NodeOf::Graph(node).change_kernel(session, |kernel| Ok(kernel.clone().with_attribute(attribute)))
}

/// `hipGraphKernelNodeCopyAttributes`: a node that has an attribute accepts only another value of the same one.
pub(crate) fn copy(session: &Session, from: Ptr, to: Ptr) -> HipResult<()> {
    let given = attribute_of(session, from)?;
    NodeOf::Graph(to).change_kernel(session, |kernel| match (given, kernel.attribute()) {
        (None, None) => Ok(kernel.clone()),
        (Some(given), known) if known.is_none_or(|known| discriminant(&known) == discriminant(&given)) => {
            Ok(kernel.clone().with_attribute(given))
        }
        _ => Err(HipError::INVALID_CONTEXT),
    })
}
