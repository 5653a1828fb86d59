//! Functions about stream captures.

use hipr_abi::{hipStreamAddCaptureDependencies, hipStreamSetCaptureDependencies};
use hipr_proto::{HipError, HipResult};

use super::graph::handles;
use crate::calls::Exported;
use crate::convert::{In, Out, Ptr, Stream};
use crate::session::Session;
use crate::thread;

/// What the captures of streams say of a call of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forbidden {
    /// It could wait for the streams: all but relaxed captures forbid it.
    Unsafe,
    /// The same, but who forbids it is not spoilt.
    UnsafeForPools,
    /// It waits for the null stream: every capture forbids it.
    Implicit,
}

/// Functions that captures forbid, whatever their parameters. What waits for a stream, for an event or for the device is checked where it
/// waits (`stream/wait.rs`).
const FORBIDDEN: &[(Forbidden, &[&str])] = &[
    (
        Forbidden::Unsafe,
        &[
            "hipArray3DCreate",
            "hipArray3DGetDescriptor",
            "hipArrayDestroy",
            "hipArrayGetDescriptor",
            "hipArrayGetInfo",
            "hipFree",
            "hipFreeArray",
            "hipFreeHost",
            "hipFreeMipmappedArray",
            "hipGetMipmappedArrayLevel",
            "hipHostAlloc",
            "hipHostFree",
            "hipHostMalloc",
            "hipHostRegister",
            "hipHostUnregister",
            "hipMalloc",
            "hipMalloc3D",
            "hipMallocHost",
            "hipMallocManaged",
            "hipMallocPitch",
            "hipMemAdvise",
            "hipMemAdvise_v2",
            "hipMemAllocHost",
            "hipMemAllocPitch",
            "hipMemPrefetchAsync",
            "hipMemPrefetchAsync_v2",
            "hipMipmappedArrayCreate",
            "hipMipmappedArrayDestroy",
            "hipModuleUnload",
        ],
    ),
    (Forbidden::UnsafeForPools, &["hipDeviceSetMemPool", "hipMemPoolCreate", "hipMemPoolDestroy"]),
    (
        Forbidden::Implicit,
        &[
            "hipDrvMemcpy3D",
            "hipMemcpy",
            "hipMemcpy2D",
            "hipMemcpy2DArrayToArray",
            "hipMemcpy2DFromArray",
            "hipMemcpy2DFromArray_spt",
            "hipMemcpy2DToArray",
            "hipMemcpy2DToArray_spt",
            "hipMemcpy2D_spt",
            "hipMemcpy3D",
            "hipMemcpy3D_spt",
            "hipMemcpyAtoA",
            "hipMemcpyAtoH",
            "hipMemcpyDtoA",
            "hipMemcpyDtoD",
            "hipMemcpyDtoH",
            "hipMemcpyFromArray",
            "hipMemcpyFromArray_spt",
            "hipMemcpyFromSymbol",
            "hipMemcpyFromSymbol_spt",
            "hipMemcpyHtoA",
            "hipMemcpyHtoD",
            "hipMemcpyParam2D",
            "hipMemcpyPeer",
            "hipMemcpyToArray",
            "hipMemcpyToSymbol",
            "hipMemcpyToSymbol_spt",
            "hipMemcpy_spt",
            "hipMemset",
            "hipMemset2D",
            "hipMemset2D_spt",
            "hipMemset3D",
            "hipMemset3D_spt",
            "hipMemsetD16",
            "hipMemsetD2D16",
            "hipMemsetD2D32",
            "hipMemsetD2D8",
            "hipMemsetD32",
            "hipMemsetD8",
            "hipMemset_spt",
        ],
    ),
];

/// Checks that no capture forbids a call of a function; what is wrong with its parameters comes after that.
///
/// # Errors
/// `hipErrorStreamCaptureUnsupported`; `hipErrorStreamCaptureImplicit`. The captures are spoilt.
#[inline]
pub(crate) fn check(session: &Session, function: Exported) -> HipResult<()> {
    if session.streams().graphs.has_captures() { check_beside_captures(session, function) } else { Ok(()) }
}

#[cold]
#[inline(never)]
fn check_beside_captures(session: &Session, function: Exported) -> HipResult<()> {
    let (graphs, name) = (&session.streams().graphs, function.name());
    let rule = FORBIDDEN.iter().find(|(_, functions)| functions.contains(&name));
    match rule.map(|(forbidden, _)| forbidden) {
        None => Ok(()),
        Some(Forbidden::Unsafe) => graphs.check_safe(&session.caller(), true),
        Some(Forbidden::UnsafeForPools) => graphs.check_safe(&session.caller(), false),
        Some(Forbidden::Implicit) => graphs.check_none(HipError::STREAM_CAPTURE_IMPLICIT),
    }
}

fn begin_in(session: &Session, stream: Stream, mode: i32, into: Option<(u64, &[u64])>) -> HipResult<()> {
    let wire = session.handle(stream)?;
    if wire == 0 {
        return Err(HipError::STREAM_CAPTURE_UNSUPPORTED);
    }
    let is_blocking = session.streams().order.is_blocking(wire);
    session.streams().graphs.begin(thread::number(), wire, is_blocking, mode, into)
}

/// `hipStreamBeginCapture`.
pub(crate) fn begin(session: &Session, stream: Stream, mode: i32) -> HipResult<()> {
    begin_in(session, stream, mode, None)
}

/// `hipStreamBeginCaptureToGraph`: the edge data is ignored.
pub(crate) fn begin_to_graph(
    session: &Session,
    stream: Stream,
    graph: Ptr,
    dependencies: In<Ptr>,
    _edge_data: Ptr,
    count: usize,
    mode: i32,
) -> HipResult<()> {
    if dependencies.is_null() != (count == 0) {
        return Err(HipError::INVALID_VALUE);
    }
    let dependencies = handles(session, graph.wire(), dependencies, count)?;
    begin_in(session, stream, mode, Some((graph.wire(), &dependencies)))
}

/// `hipStreamEndCapture`.
pub(crate) fn end(session: &Session, stream: Stream, graph: Out<Ptr>) -> HipResult<()> {
    let out = graph.check()?;
    let wire = session.handle(stream)?;
    let ended = session.streams().graphs.end(thread::number(), wire);
    out.set(ended.map_or(Ptr::NULL, Ptr::from_wire));
    ended.map(drop)
}

/// `hipStreamIsCapturing`.
pub(crate) fn is_capturing(session: &Session, stream: Stream, status: Out<i32>) -> HipResult<()> {
    let out = status.check()?;
    let wire = session.handle(stream)?;
    session.streams().graphs.check_legacy(wire)?;
    out.set(session.streams().graphs.status(wire) as i32);
    Ok(())
}

/// `hipStreamGetCaptureInfo`.
pub(crate) fn info(session: &Session, stream: Stream, status: Out<i32>, id: Out<u64>) -> HipResult<()> {
    info_v2(session, stream, status, id, Out::NULL, Out::NULL, Out::NULL)
}

/// `hipStreamGetCaptureInfo_v2`. The list of dependencies is good until the thread asks again.
pub(crate) fn info_v2(
    session: &Session,
    stream: Stream,
    status: Out<i32>,
    id: Out<u64>,
    graph: Out<Ptr>,
    dependencies: Out<Ptr>,
    count: Out<usize>,
) -> HipResult<()> {
    thread_local! {
        static DEPENDENCIES: std::cell::RefCell<Vec<Ptr>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let out = status.check()?;
    let wire = session.handle(stream)?;
    session.streams().graphs.check_legacy(wire)?;
    session.streams().graphs.with(|tables| {
        let Some(info) = tables.captures.info(wire) else {
            out.set(0);
            return;
        };
        out.set(info.status as i32);
        id.set(info.id);
        graph.set(Ptr::from_wire(info.graph));
        count.set(info.dependencies.len());
        if !dependencies.is_null() {
            DEPENDENCIES.with_borrow_mut(|list| {
                *list = info.dependencies.iter().map(|node| Ptr::from_wire(*node)).collect();
                dependencies.set(Ptr(list.as_ptr().expose_provenance()));
            });
        }
    });
    Ok(())
}

/// `hipStreamUpdateCaptureDependencies`.
pub(crate) fn update_dependencies(
    session: &Session,
    stream: Stream,
    dependencies: Out<Ptr>,
    count: usize,
    flags: u32,
) -> HipResult<()> {
    let wire = session.handle(stream)?;
    let (graph, _) = session.streams().graphs.with(|tables| tables.captures.next(wire))?;
    let nodes = handles(session, graph, In::at_address(dependencies.address()), count)?;
    let adds = match flags {
        hipStreamAddCaptureDependencies => true,
        hipStreamSetCaptureDependencies => false,
        _ => return Err(HipError::INVALID_VALUE),
    };
    session
        .streams()
        .graphs
        .with(|tables| tables.captures.update_dependencies(&tables.graphs, wire, &nodes, adds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::EXPORTS;
    use crate::export::Route;

    #[test]
    fn what_captures_forbid_is_there_once_and_asks_for_a_session() {
        let mut seen = std::collections::BTreeSet::new();
        for name in FORBIDDEN.iter().flat_map(|(_, functions)| *functions) {
            assert!(seen.insert(name), "{name} is there twice");
            let export = EXPORTS.iter().find(|export| export.name == *name).expect(name);
            assert!(matches!(export.route, Route::Body | Route::PerThread), "{name}: {:?}", export.route);
        }
    }
}
