//! Functions about graphs and their nodes.

pub(crate) mod attributes;
pub(crate) mod dot;
pub(crate) mod driver;
mod exec;
pub(crate) mod memory;
pub(crate) mod objects;
mod params;
pub(crate) mod symbols;

use hipr_abi::{
    hipGraphNodeTypeMemAlloc, hipGraphNodeTypeMemFree, hipHostNodeParams, hipKernelNodeParams,
    hipMemcpy3DParms, hipMemsetParams,
};
use hipr_graph::{Content, Work};
use hipr_proto::{HipError, HipResult};

use crate::command::{Command, HostFunction, KernelLaunch, MemoryCopy, MemoryFill, Node};
use crate::convert::{Event, In, Out, Ptr};
use crate::hip::allocation;
use crate::session::Session;
use crate::stream::graphs::Tables;
use crate::stream::mirror::Place;
use crate::stream::order::legacy;
use crate::thread;

pub(crate) use exec::{
    exec_destroy, exec_flags, exec_update, instantiate, instantiate_with_flags, instantiate_with_params,
    is_enabled, launch, set_child, set_enabled, upload,
};
pub(crate) use params::{add_node, host_params, kernel_params, memcpy_params, memset_params, set_node};

/// `hipGraphCreate`.
pub(crate) fn create(session: &Session, graph: Out<Ptr>, flags: u32) -> HipResult<()> {
    let out = graph.check()?;
    if flags != 0 {
        return Err(HipError::INVALID_VALUE);
    }
    out.set(Ptr::from_wire(session.streams().graphs.with(|tables| tables.graphs.create())));
    Ok(())
}

/// `hipGraphDestroy`.
pub(crate) fn destroy(session: &Session, graph: Ptr) -> HipResult<()> {
    let unused = objects::change(session, |tables| tables.destroy(graph.wire()))?;
    allocation::give_back_all(session, unused)
}

/// `hipGraphClone`.
pub(crate) fn clone(session: &Session, copy: Out<Ptr>, graph: Ptr) -> HipResult<()> {
    let out = copy.check()?;
    let copied = session.streams().graphs.with(|tables| {
        tables.check_without_memory(graph.wire())?;
        tables.graphs.copy(graph.wire())
    });
    out.set(Ptr::from_wire(copied?));
    Ok(())
}

/// `hipGraphNodeFindInClone`.
pub(crate) fn find_in_clone(session: &Session, node: Out<Ptr>, original: Ptr, copy: Ptr) -> HipResult<()> {
    let out = node.check()?;
    let found =
        session.streams().graphs.with(|tables| tables.graphs.find_in_copy(original.wire(), copy.wire()))?;
    out.set(Ptr::from_wire(found));
    Ok(())
}

// ---- nodes -----------------------------------------------------------------------------------------------------------

fn read_handles(list: In<Ptr>, count: usize) -> HipResult<Vec<u64>> {
    (0..count).map(|index| list.at(index).map(Ptr::wire).ok_or(HipError::INVALID_VALUE)).collect()
}

/// Reads a list of different nodes of a graph; fails without reading it if it is longer than the graph has nodes.
pub(super) fn handles(session: &Session, graph: u64, list: In<Ptr>, count: usize) -> HipResult<Vec<u64>> {
    if count > session.streams().graphs.with(|tables| tables.graphs.node_count(graph))? {
        return Err(HipError::INVALID_VALUE);
    }
    read_handles(list, count)
}

/// A node that is to be added to a graph: the parameters that begin every `hipGraphAdd…Node`.
#[derive(Clone, Copy)]
pub(crate) struct NewNode {
    node: Out<Ptr>,
    graph: Ptr,
    dependencies: In<Ptr>,
    count: usize,
}

impl NewNode {
    /// Describes the node that `node` receives. It will run after the `count` nodes in `dependencies`.
    pub(crate) fn new(node: Out<Ptr>, graph: Ptr, dependencies: In<Ptr>, count: usize) -> Self {
        Self { node, graph, dependencies, count }
    }

    /// Returns the handle of the graph.
    fn graph(&self) -> u64 {
        self.graph.wire()
    }

    /// Checks the graph and the dependencies. HIP API: these errors come before those of the node's parameters.
    fn check(self, session: &Session) -> HipResult<()> {
        self.node.check()?;
        handles(session, self.graph.wire(), self.dependencies, self.count).map(drop)
    }

    /// Adds the node by `add`, which is given the graphs and the dependencies.
    fn add_by(
        self,
        session: &Session,
        add: impl FnOnce(&mut Tables, &[u64]) -> HipResult<u64>,
    ) -> HipResult<()> {
        let out = self.node.check()?;
        let dependencies = handles(session, self.graph.wire(), self.dependencies, self.count)?;
        out.set(Ptr::from_wire(session.streams().graphs.with(|tables| add(tables, &dependencies))?));
        Ok(())
    }

    pub(super) fn add(self, session: &Session, work: Option<Node>) -> HipResult<()> {
        self.add_by(session, |tables, dependencies| tables.graphs.add(self.graph.wire(), dependencies, work))
    }
}

/// A node whose parameters are to be changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeOf {
    /// A node of a graph.
    Graph(Ptr),
    /// A node of an instantiated graph: the graph and the node.
    Exec(Ptr, Ptr),
}

impl NodeOf {
    /// Returns the error for what is wrong with a copy or the size of a launch: of an instantiated graph's node there is one for all.
    fn error(self, error: HipError) -> HipError {
        let is_one_of_many = matches!(
            error,
            HipError::INVALID_PITCH_VALUE
                | HipError::INVALID_MEMCPY_DIRECTION
                | HipError::INVALID_CONFIGURATION
        );
        if matches!(self, Self::Exec(..)) && is_one_of_many { HipError::INVALID_VALUE } else { error }
    }

    /// Checks that the node exists. HIP API: this error comes before those of the node's parameters.
    fn check(self, session: &Session) -> HipResult<()> {
        session.streams().graphs.with(|tables| match self {
            Self::Graph(node) => tables.graphs.content(node.wire()).map(drop),
            Self::Exec(exec, node) => tables.exec(exec)?.work(node.wire()).map(drop),
        })
    }

    fn set(self, session: &Session, work: Node) -> HipResult<()> {
        self.change(session, |_| Ok(work))
    }

    /// Replaces the node's work by what `change` makes of it.
    pub(super) fn change(
        self,
        session: &Session,
        change: impl FnOnce(&Node) -> HipResult<Node>,
    ) -> HipResult<()> {
        match self {
            Self::Graph(node) => session.streams().graphs.with(|tables| {
                let Content::Work(known) = tables.graphs.content(node.wire())? else {
                    return Err(HipError::INVALID_VALUE);
                };
                let work = change(known)?;
                tables.graphs.set_work(node.wire(), work)
            }),
            Self::Exec(exec, node) => exec::change(session, exec, |exec| {
                let work = change(exec.work(node.wire())?)?;
                exec.set_work(node.wire(), work)
            }),
        }
    }

    /// Replaces the launch of a kernel's node by what `change` makes of it.
    fn change_kernel(
        self,
        session: &Session,
        change: impl FnOnce(&KernelLaunch) -> HipResult<KernelLaunch>,
    ) -> HipResult<()> {
        self.change(session, |node| match &**node {
            Command::Kernel(kernel) => Ok(Node::new(Command::Kernel(change(kernel)?))),
            _ => Err(HipError::INVALID_VALUE),
        })
    }
}

fn kernel(session: &Session, params: Ptr) -> HipResult<KernelLaunch> {
    super::launch::of_node(session, &In::<hipKernelNodeParams>::at_address(params).check()?)
}

fn memset_at(session: &Session, params: Ptr) -> HipResult<Node> {
    memset(session, &In::<hipMemsetParams>::at_address(params).check()?)
}

fn memset(session: &Session, params: &hipMemsetParams) -> HipResult<Node> {
    let fill = MemoryFill::of_node(params)?;
    match session.streams().mirrors.place(session.worker(), fill.dst, fill.span()?, Some(true))? {
        Place::Unknown => Err(HipError::INVALID_VALUE),
        _ => Ok(Node::new(Command::Fill(fill))),
    }
}

fn memcpy(session: &Session, params: In<hipMemcpy3DParms>) -> HipResult<Node> {
    checked(session, MemoryCopy::of_node(params.check()?)?)
}

fn memcpy_1d(session: &Session, dst: Ptr, src: Ptr, len: usize, kind: i32) -> HipResult<Node> {
    if len == 0 {
        return Err(HipError::INVALID_VALUE);
    }
    dst.check()?;
    src.check()?;
    checked(session, MemoryCopy::linear(dst, src, len, kind)?)
}

fn checked(session: &Session, copy: MemoryCopy) -> HipResult<Node> {
    session.streams().check_copy(session.worker(), &copy, legacy(thread::device()))?;
    Ok(Node::new(Command::Copy(copy)))
}

/// Creates a node from `hipHostNodeParams`: a host function and its argument.
fn host(params: Ptr) -> HipResult<Node> {
    let params = In::<hipHostNodeParams>::at_address(params).check()?;
    params.r#fn.ok_or(HipError::INVALID_VALUE)?;
    let data = params.userData.into();
    Ok(Node::new(Command::Host(HostFunction::Plain(params.r#fn, data))))
}

fn check_event(session: &Session, event: Event) -> HipResult<Event> {
    session.streams().events.info(event).map(|_| event).map_err(|_| HipError::INVALID_VALUE)
}

fn event_record(session: &Session, event: Event) -> HipResult<Node> {
    Ok(Node::new(Command::Record(check_event(session, event)?)))
}

fn event_wait(session: &Session, event: Event) -> HipResult<Node> {
    Ok(Node::new(Command::Wait(check_event(session, event)?, 0)))
}

/// `hipGraphAddKernelNode`: the arguments are read now.
pub(crate) fn add_kernel(session: &Session, node: NewNode, params: Ptr) -> HipResult<()> {
    node.check(session)?;
    node.add(session, Some(Node::new(Command::Kernel(kernel(session, params)?))))
}

/// `hipGraphAddMemcpyNode`: the bytes are read when the graph is launched.
pub(crate) fn add_memcpy(session: &Session, node: NewNode, params: In<hipMemcpy3DParms>) -> HipResult<()> {
    node.check(session)?;
    node.add(session, Some(memcpy(session, params)?))
}

/// `hipGraphAddMemcpyNode1D`.
pub(crate) fn add_memcpy_1d(
    session: &Session,
    node: NewNode,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
) -> HipResult<()> {
    node.check(session)?;
    node.add(session, Some(memcpy_1d(session, dst, src, len, kind)?))
}

/// `hipGraphAddMemsetNode`.
pub(crate) fn add_memset(session: &Session, node: NewNode, params: Ptr) -> HipResult<()> {
    node.add(session, Some(memset_at(session, params)?))
}

/// `hipGraphAddHostNode`.
pub(crate) fn add_host(session: &Session, node: NewNode, params: Ptr) -> HipResult<()> {
    node.add(session, Some(host(params)?))
}

/// `hipGraphAddEmptyNode`.
pub(crate) fn add_empty(session: &Session, node: NewNode) -> HipResult<()> {
    node.add(session, None)
}

/// `hipGraphAddEventRecordNode`.
pub(crate) fn add_event_record(session: &Session, node: NewNode, event: Event) -> HipResult<()> {
    node.add(session, Some(event_record(session, event)?))
}

/// `hipGraphAddEventWaitNode`.
pub(crate) fn add_event_wait(session: &Session, node: NewNode, event: Event) -> HipResult<()> {
    node.add(session, Some(event_wait(session, event)?))
}

/// `hipGraphAddChildGraphNode`: the child is copied now.
pub(crate) fn add_child(session: &Session, node: NewNode, child: Ptr) -> HipResult<()> {
    node.add_by(session, |tables, dependencies| {
        tables.check_without_memory(child.wire())?;
        tables.graphs.add_child(node.graph.wire(), dependencies, child.wire())
    })
}

/// `hipGraphChildGraphNodeGetGraph`.
pub(crate) fn child(session: &Session, node: Ptr, graph: Out<Ptr>) -> HipResult<()> {
    let out = graph.check()?;
    session.streams().graphs.with(|tables| match tables.graphs.content(node.wire())? {
        Content::Child(child) => {
            out.set(Ptr::from_wire(*child));
            Ok(())
        }
        _ => Err(HipError::INVALID_VALUE),
    })
}

/// `hipGraphDestroyNode`.
pub(crate) fn destroy_node(session: &Session, node: Ptr) -> HipResult<()> {
    objects::change(session, |tables| match tables.graphs.content(node.wire())? {
        Content::Work(work)
            if matches!(work.node_type(), hipGraphNodeTypeMemAlloc | hipGraphNodeTypeMemFree) =>
        {
            Err(HipError::NOT_SUPPORTED)
        }
        _ => tables.graphs.destroy_node(node.wire()),
    })
}

/// Reads a list of different edges of a graph; fails without reading it if it is longer than possible.
fn edge_list(
    session: &Session,
    graph: Ptr,
    from: In<Ptr>,
    to: In<Ptr>,
    count: usize,
) -> HipResult<Vec<(u64, u64)>> {
    let nodes = session.streams().graphs.with(|tables| tables.graphs.node_count(graph.wire()))?;
    if count > nodes.saturating_mul(nodes) {
        return Err(HipError::INVALID_VALUE);
    }
    Ok(read_handles(from, count)?.into_iter().zip(read_handles(to, count)?).collect())
}

/// `hipGraphAddDependencies`.
pub(crate) fn add_dependencies(
    session: &Session,
    graph: Ptr,
    from: In<Ptr>,
    to: In<Ptr>,
    count: usize,
) -> HipResult<()> {
    let edges = edge_list(session, graph, from, to, count)?;
    session.streams().graphs.with(|tables| tables.graphs.add_edges(graph.wire(), &edges))
}

/// `hipGraphRemoveDependencies`.
pub(crate) fn remove_dependencies(
    session: &Session,
    graph: Ptr,
    from: In<Ptr>,
    to: In<Ptr>,
    count: usize,
) -> HipResult<()> {
    let edges = edge_list(session, graph, from, to, count)?;
    session.streams().graphs.with(|tables| tables.graphs.remove_edges(graph.wire(), &edges))
}

/// Returns the result of `find` for the command of a node.
///
/// # Errors
/// `hipErrorInvalidValue`: there is no such node, or it does something else.
pub(super) fn of_work<T>(
    session: &Session,
    node: Ptr,
    find: impl FnOnce(&Command) -> Option<T>,
) -> HipResult<T> {
    session.streams().graphs.with(|tables| match tables.graphs.content(node.wire())? {
        Content::Work(node) => find(node).ok_or(HipError::INVALID_VALUE),
        _ => Err(HipError::INVALID_VALUE),
    })
}

// ---- questions -------------------------------------------------------------------------------------------------------

/// Writes a list of handles: without an array only their number; the rest of an array that is too long is filled with null
/// handles.
fn list(places: &[Out<Ptr>], count: Out<usize>, all: &[&[u64]]) -> HipResult<()> {
    let count = count.check()?;
    let have = all.first().map_or(0, |all| all.len());
    if places.iter().all(|place| place.is_null()) {
        count.set(have);
        return Ok(());
    }
    let room = count.value().unwrap_or(0);
    for (place, all) in places.iter().zip(all) {
        (0..room).for_each(|index| {
            place.set_at(index, all.get(index).map_or(Ptr::NULL, |handle| Ptr::from_wire(*handle)));
        });
    }
    count.set(room.min(have));
    Ok(())
}

fn list_nodes(
    session: &Session,
    nodes: Out<Ptr>,
    count: Out<usize>,
    all: impl FnOnce(&mut Tables) -> HipResult<Vec<u64>>,
) -> HipResult<()> {
    let all = session.streams().graphs.with(all)?;
    list(&[nodes], count, &[&all])
}

/// `hipGraphGetNodes`.
pub(crate) fn nodes(session: &Session, graph: Ptr, nodes: Out<Ptr>, count: Out<usize>) -> HipResult<()> {
    list_nodes(session, nodes, count, |tables| Ok(tables.graphs.nodes(graph.wire())?.collect()))
}

/// `hipGraphGetRootNodes`.
pub(crate) fn roots(session: &Session, graph: Ptr, nodes: Out<Ptr>, count: Out<usize>) -> HipResult<()> {
    list_nodes(session, nodes, count, |tables| Ok(tables.graphs.roots(graph.wire())?.collect()))
}

/// `hipGraphGetEdges`.
pub(crate) fn edges(
    session: &Session,
    graph: Ptr,
    from: Out<Ptr>,
    to: Out<Ptr>,
    count: Out<usize>,
) -> HipResult<()> {
    if from.is_null() != to.is_null() {
        return Err(HipError::INVALID_VALUE);
    }
    let all: (Vec<u64>, Vec<u64>) =
        session.streams().graphs.with(|tables| HipResult::Ok(tables.graphs.edges(graph.wire())?.unzip()))?;
    list(&[from, to], count, &[&all.0, &all.1])
}

/// `hipGraphNodeGetDependencies`.
pub(crate) fn dependencies(
    session: &Session,
    node: Ptr,
    nodes: Out<Ptr>,
    count: Out<usize>,
) -> HipResult<()> {
    list_nodes(session, nodes, count, |tables| Ok(tables.graphs.dependencies(node.wire())?.collect()))
}

/// `hipGraphNodeGetDependentNodes`.
pub(crate) fn dependents(session: &Session, node: Ptr, nodes: Out<Ptr>, count: Out<usize>) -> HipResult<()> {
    list_nodes(session, nodes, count, |tables| Ok(tables.graphs.dependents(node.wire())?.collect()))
}

/// `hipGraphNodeGetType`.
pub(crate) fn node_type(session: &Session, node: Ptr, node_type: Out<i32>) -> HipResult<()> {
    let out = node_type.check()?;
    out.set(session.streams().graphs.with(|t| t.graphs.content(node.wire()).map(Content::node_type))?);
    Ok(())
}

fn event_of(
    session: &Session,
    node: Ptr,
    event: Out<Event>,
    find: fn(&Command) -> Option<Event>,
) -> HipResult<()> {
    let out = event.check()?;
    out.set(of_work(session, node, find)?);
    Ok(())
}

/// `hipGraphEventRecordNodeGetEvent`.
pub(crate) fn recorded_event(session: &Session, node: Ptr, event: Out<Event>) -> HipResult<()> {
    event_of(
        session,
        node,
        event,
        |command| if let Command::Record(event) = command { Some(*event) } else { None },
    )
}

/// `hipGraphEventWaitNodeGetEvent`.
pub(crate) fn awaited_event(session: &Session, node: Ptr, event: Out<Event>) -> HipResult<()> {
    event_of(
        session,
        node,
        event,
        |command| if let Command::Wait(event, _) = command { Some(*event) } else { None },
    )
}

// ---- other parameters ------------------------------------------------------------------------------------------------

/// `hipGraphKernelNodeSetParams`, `hipGraphExecKernelNodeSetParams`: the node keeps its attribute.
pub(crate) fn set_kernel(session: &Session, node: NodeOf, params: Ptr) -> HipResult<()> {
    node.check(session)?;
    let launch = kernel(session, params).map_err(|error| node.error(error))?;
    node.change_kernel(session, |known| Ok(launch.in_place_of(known)))
}

/// `hipGraphMemsetNodeSetParams`, `hipGraphExecMemsetNodeSetParams`.
pub(crate) fn set_memset(session: &Session, node: NodeOf, params: Ptr) -> HipResult<()> {
    node.set(session, memset_at(session, params)?)
}

/// `hipGraphMemcpyNodeSetParams`, `hipGraphExecMemcpyNodeSetParams`.
pub(crate) fn set_memcpy(session: &Session, node: NodeOf, params: In<hipMemcpy3DParms>) -> HipResult<()> {
    node.check(session)?;
    node.set(session, memcpy(session, params).map_err(|error| node.error(error))?)
}

/// `hipGraphMemcpyNodeSetParams1D`, `hipGraphExecMemcpyNodeSetParams1D`.
pub(crate) fn set_memcpy_1d(
    session: &Session,
    node: NodeOf,
    dst: Ptr,
    src: Ptr,
    len: usize,
    kind: i32,
) -> HipResult<()> {
    node.check(session)?;
    node.set(session, memcpy_1d(session, dst, src, len, kind).map_err(|error| node.error(error))?)
}

/// `hipGraphHostNodeSetParams`, `hipGraphExecHostNodeSetParams`.
pub(crate) fn set_host(session: &Session, node: NodeOf, params: Ptr) -> HipResult<()> {
    node.set(session, host(params)?)
}

/// `hipGraphEventRecordNodeSetEvent`, `hipGraphExecEventRecordNodeSetEvent`.
pub(crate) fn set_event_record(session: &Session, node: NodeOf, event: Event) -> HipResult<()> {
    node.set(session, event_record(session, event)?)
}

/// `hipGraphEventWaitNodeSetEvent`, `hipGraphExecEventWaitNodeSetEvent`.
pub(crate) fn set_event_wait(session: &Session, node: NodeOf, event: Event) -> HipResult<()> {
    node.set(session, event_wait(session, event)?)
}
