//! Graphs and their nodes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};

use hipr_proto::{HipError, HipResult};

use crate::exec::{Exec, ExecStep};
use crate::objects::Objects;
use crate::{Work, node_type};

/// Maximum depth of child graphs inside graphs: a graph without child graphs has height 1. HIP defines no limit; this one
/// bounds recursion.
pub const HEIGHT_MAX: u32 = 32;

/// The content of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<W> {
    /// Nothing: other nodes can depend on it.
    Empty,
    /// A child graph, which is destroyed with the node.
    Child(u64),
    /// Work to do.
    Work(W),
}

impl<W: Work> Content<W> {
    /// Returns the node's type (HIP API: hipGraphNodeType).
    pub fn node_type(&self) -> i32 {
        match self {
            Self::Empty => node_type::EMPTY,
            Self::Child(_) => node_type::GRAPH,
            Self::Work(work) => work.node_type(),
        }
    }

    /// Returns the child graph, if the node is one.
    pub fn child(&self) -> Option<u64> {
        if let Self::Child(child) = self { Some(*child) } else { None }
    }

    fn weight(&self) -> usize {
        if let Self::Work(work) = self { work.weight() } else { 1 }
    }
}

#[derive(Debug)]
struct Node<W> {
    graph: u64,
    content: Content<W>,
    /// The nodes that it depends on.
    dependencies: BTreeSet<u64>,
    dependents: BTreeSet<u64>,
    /// The node that this one was copied from.
    original: Option<u64>,
}

#[derive(Debug)]
struct Graph {
    /// The nodes in the order in which they were added, because handles increase.
    nodes: BTreeSet<u64>,
    /// The node whose child graph this is.
    parent: Option<u64>,
    /// Levels of nested graphs including this one; never decreases.
    height: u32,
    /// The user objects that it keeps, with the number of its references.
    kept: BTreeMap<u64, u64>,
}

/// The graphs of one client. All handles come from one sequence of numbers, so that no two objects share one.
#[derive(Debug)]
pub struct Graphs<W> {
    /// The user objects that graphs can keep.
    pub objects: Objects,
    graphs: HashMap<u64, Graph>,
    nodes: HashMap<u64, Node<W>>,
    last: u64,
    weight: usize,
}

impl<W> Default for Graphs<W> {
    fn default() -> Self {
        let objects = Objects::default();
        Self { objects, graphs: HashMap::new(), nodes: HashMap::new(), last: 0, weight: 0 }
    }
}

impl<W: Work> Graphs<W> {
    /// Returns how much all graphs, nodes and edges count against a limit of handles.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Returns a handle that no other object has.
    pub fn new_handle(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Creates a graph and returns its handle (HIP API: hipGraphCreate).
    pub fn create(&mut self) -> u64 {
        let graph = self.new_handle();
        let (nodes, kept) = (BTreeSet::new(), BTreeMap::new());
        self.graphs.insert(graph, Graph { nodes, parent: None, height: 1, kept });
        self.weight += 1;
        graph
    }

    fn graph(&self, graph: u64) -> HipResult<&Graph> {
        self.graphs.get(&graph).ok_or(HipError::INVALID_VALUE)
    }

    fn node(&self, node: u64) -> HipResult<&Node<W>> {
        self.nodes.get(&node).ok_or(HipError::INVALID_VALUE)
    }

    /// Checks that a graph exists.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is none of this handle.
    pub fn check(&self, graph: u64) -> HipResult<()> {
        self.graph(graph).map(drop)
    }

    /// Destroys a graph with its nodes (HIP API: hipGraphDestroy).
    ///
    /// # Errors
    /// `INVALID_VALUE`: no graph, or one that belongs to a node.
    pub fn destroy(&mut self, graph: u64) -> HipResult<()> {
        if self.graph(graph)?.parent.is_some() {
            return Err(HipError::INVALID_VALUE);
        }
        self.remove(graph);
        Ok(())
    }

    fn remove(&mut self, graph: u64) {
        let mut left = vec![graph];
        while let Some(graph) = left.pop().and_then(|graph| self.graphs.remove(&graph)) {
            self.weight -= 1;
            self.release(&graph.kept);
            for node in graph.nodes.iter().filter_map(|node| self.nodes.remove(node)) {
                self.weight -= node.content.weight() + node.dependencies.len();
                left.extend(node.content.child());
            }
        }
    }

    // ---- user objects ------------------------------------------------------------------------------------------------

    /// Gives a graph references to a user object: new ones, or ones that the program had (HIP API: hipGraphRetainUserObject).
    ///
    /// # Errors
    /// `INVALID_VALUE`: no graph or object, or the object has fewer references than are to be moved.
    pub fn keep(&mut self, graph: u64, object: u64, count: u64, is_moved: bool) -> HipResult<()> {
        self.check(graph)?;
        if is_moved {
            self.objects.check(object, count)?;
        } else {
            self.objects.retain(object, count)?;
        }
        let known = self.graphs.get_mut(&graph).ok_or(HipError::INVALID_VALUE)?;
        *known.kept.entry(object).or_default() += count;
        Ok(())
    }

    /// Removes references of a graph to a user object, at most as many as it has (HIP API: hipGraphReleaseUserObject).
    ///
    /// # Errors
    /// `INVALID_VALUE`: no graph.
    pub fn let_go(&mut self, graph: u64, object: u64, count: u64) -> HipResult<()> {
        let graph = self.graphs.get_mut(&graph).ok_or(HipError::INVALID_VALUE)?;
        let Some(known) = graph.kept.get_mut(&object) else { return Ok(()) };
        let count = count.min(*known);
        *known -= count;
        if *known == 0 {
            graph.kept.remove(&object);
        }
        self.objects.release(object, count)
    }

    /// Adds references to all user objects that a graph and its child graphs keep, for an instance of it, and returns the objects
    /// with the numbers of their references.
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn keep_all(&mut self, graph: u64) -> HipResult<BTreeMap<u64, u64>> {
        let (mut all, mut left) = (BTreeMap::new(), vec![graph]);
        while let Some(graph) = left.pop() {
            let graph = self.graph(graph)?;
            graph.kept.iter().for_each(|(object, count)| *all.entry(*object).or_default() += count);
            let nodes = graph.nodes.iter().filter_map(|node| self.nodes.get(node));
            left.extend(nodes.filter_map(|node| node.content.child()));
        }
        self.retain(&all)?;
        Ok(all)
    }

    fn retain(&mut self, kept: &BTreeMap<u64, u64>) -> HipResult<()> {
        kept.iter().try_for_each(|(object, count)| self.objects.retain(*object, *count))
    }

    /// Removes references that a graph or an instance of one had.
    pub fn release(&mut self, kept: &BTreeMap<u64, u64>) {
        for (object, count) in kept {
            // The program can have released references that were not its own.
            let _ = self.objects.release(*object, *count);
        }
    }

    // ---- nodes and edges ---------------------------------------------------------------------------------------------

    /// Adds a node with work, or an empty node (HIP API: hipGraphAddKernelNode and similar functions).
    ///
    /// # Errors
    /// `INVALID_VALUE`: no graph, or a dependency that is not in it or is named twice.
    pub fn add(&mut self, graph: u64, dependencies: &[u64], work: Option<W>) -> HipResult<u64> {
        self.insert(graph, dependencies, work.map_or(Content::Empty, Content::Work))
    }

    /// Adds a copy of a whole graph as one node (HIP API: hipGraphAddChildGraphNode).
    ///
    /// # Errors
    /// As [`add`](Self::add); `NOT_SUPPORTED` above [`HEIGHT_MAX`].
    pub fn add_child(&mut self, graph: u64, dependencies: &[u64], child: u64) -> HipResult<u64> {
        self.check_dependencies(graph, dependencies)?;
        let height = self.graph(child)?.height + 1;
        let raised = self.raised(graph, height)?;
        let copy = self.copy(child)?;
        for (graph, height) in raised {
            self.graphs.entry(graph).and_modify(|graph| graph.height = height);
        }
        let node = self.insert(graph, dependencies, Content::Child(copy))?;
        self.graphs.entry(copy).and_modify(|graph| graph.parent = Some(node));
        Ok(node)
    }

    /// Returns the graphs that become higher if `graph` gets this height, with their new heights.
    fn raised(&self, mut graph: u64, mut height: u32) -> HipResult<Vec<(u64, u32)>> {
        let mut raised = Vec::new();
        loop {
            let known = self.graph(graph)?;
            if height <= known.height {
                return Ok(raised);
            }
            if height > HEIGHT_MAX {
                return Err(HipError::NOT_SUPPORTED);
            }
            raised.push((graph, height));
            let Some(parent) = known.parent else { return Ok(raised) };
            graph = self.node(parent)?.graph;
            height += 1;
        }
    }

    fn check_dependencies(&self, graph: u64, dependencies: &[u64]) -> HipResult<BTreeSet<u64>> {
        let nodes = &self.graph(graph)?.nodes;
        let distinct: BTreeSet<u64> = dependencies.iter().copied().collect();
        let is_good = distinct.len() == dependencies.len() && distinct.is_subset(nodes);
        if is_good { Ok(distinct) } else { Err(HipError::INVALID_VALUE) }
    }

    fn insert(&mut self, graph: u64, dependencies: &[u64], content: Content<W>) -> HipResult<u64> {
        let dependencies = self.check_dependencies(graph, dependencies)?;
        let handle = self.new_handle();
        self.weight += content.weight();
        let (none, original) = (BTreeSet::new(), None);
        let node = Node { graph, content, dependencies: none.clone(), dependents: none, original };
        self.nodes.insert(handle, node);
        self.graphs.get_mut(&graph).ok_or(HipError::INVALID_VALUE)?.nodes.insert(handle);
        dependencies.into_iter().for_each(|from| self.link(from, handle));
        Ok(handle)
    }

    /// Adds an edge that does not exist.
    fn link(&mut self, from: u64, to: u64) {
        if let Some(node) = self.nodes.get_mut(&from) {
            node.dependents.insert(to);
        }
        if let Some(node) = self.nodes.get_mut(&to) {
            node.dependencies.insert(from);
        }
        self.weight += 1;
    }

    /// Removes an edge that exists.
    fn unlink(&mut self, from: u64, to: u64) {
        if let Some(node) = self.nodes.get_mut(&from) {
            node.dependents.remove(&to);
        }
        if let Some(node) = self.nodes.get_mut(&to) {
            node.dependencies.remove(&from);
        }
        self.weight -= 1;
    }

    /// Removes a node and its edges from its graph (HIP API: hipGraphDestroyNode).
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is none of this handle.
    pub fn destroy_node(&mut self, node: u64) -> HipResult<()> {
        let known = self.node(node)?;
        let (before, after) = (known.dependencies.clone(), known.dependents.clone());
        before.into_iter().for_each(|from| self.unlink(from, node));
        after.into_iter().for_each(|to| self.unlink(node, to));
        let gone = self.nodes.remove(&node).ok_or(HipError::INVALID_VALUE)?;
        self.weight -= gone.content.weight();
        if let Some(graph) = self.graphs.get_mut(&gone.graph) {
            graph.nodes.remove(&node);
        }
        if let Content::Child(child) = gone.content {
            self.remove(child);
        }
        Ok(())
    }

    /// Adds all edges or none (HIP API: hipGraphAddDependencies). Cycles are detected when the graph is instantiated.
    ///
    /// # Errors
    /// `INVALID_VALUE`: no graph, a node that is not in it, an edge to itself, one that is there, or one named twice.
    pub fn add_edges(&mut self, graph: u64, edges: &[(u64, u64)]) -> HipResult<()> {
        self.check_edges(graph, edges, false)?;
        edges.iter().for_each(|&(from, to)| self.link(from, to));
        Ok(())
    }

    /// Removes all edges or none (HIP API: hipGraphRemoveDependencies).
    ///
    /// # Errors
    /// `INVALID_VALUE`: no graph, an edge that is not in it, or one named twice.
    pub fn remove_edges(&mut self, graph: u64, edges: &[(u64, u64)]) -> HipResult<()> {
        self.check_edges(graph, edges, true)?;
        edges.iter().for_each(|&(from, to)| self.unlink(from, to));
        Ok(())
    }

    /// Checks that edges join nodes of the graph, and that all of them exist or that none does.
    fn check_edges(&self, graph: u64, edges: &[(u64, u64)], are_there: bool) -> HipResult<()> {
        let nodes = &self.graph(graph)?.nodes;
        let distinct: BTreeSet<_> = edges.iter().collect();
        let is_good = |&(from, to): &(u64, u64)| {
            let is_there = self.nodes.get(&to).is_some_and(|node| node.dependencies.contains(&from));
            from != to && nodes.contains(&from) && nodes.contains(&to) && is_there == are_there
        };
        if distinct.len() == edges.len() && edges.iter().all(is_good) {
            Ok(())
        } else {
            Err(HipError::INVALID_VALUE)
        }
    }

    // ---- questions ---------------------------------------------------------------------------------------------------

    /// Returns the content of a node.
    ///
    /// # Errors
    /// `INVALID_VALUE`: there is none of this handle; so in all questions about nodes and graphs.
    pub fn content(&self, node: u64) -> HipResult<&Content<W>> {
        self.node(node).map(|node| &node.content)
    }

    /// Replaces the work of a node by work of the same type.
    ///
    /// # Errors
    /// As [`content`](Self::content), also for a node of another kind.
    pub fn set_work(&mut self, node: u64, work: W) -> HipResult<()> {
        let known = self.nodes.get_mut(&node).ok_or(HipError::INVALID_VALUE)?;
        if known.content.node_type() != work.node_type() {
            return Err(HipError::INVALID_VALUE);
        }
        let content = Content::Work(work);
        self.weight = self.weight - known.content.weight() + content.weight();
        known.content = content;
        Ok(())
    }

    /// Returns how much more `work` counts than the node's current work, to be checked before [`set_work`](Self::set_work).
    pub fn growth(&self, node: u64, work: &W) -> usize {
        let known = self.nodes.get(&node).map_or(0, |node| node.content.weight());
        work.weight().saturating_sub(known)
    }

    /// Iterates over all nodes of a graph (HIP API: hipGraphGetNodes).
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn nodes(&self, graph: u64) -> HipResult<impl Iterator<Item = u64> + Clone + '_> {
        Ok(self.graph(graph)?.nodes.iter().copied())
    }

    /// Returns the number of nodes of a graph.
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn node_count(&self, graph: u64) -> HipResult<usize> {
        Ok(self.graph(graph)?.nodes.len())
    }

    /// Iterates over the nodes that depend on no other (HIP API: hipGraphGetRootNodes).
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn roots(&self, graph: u64) -> HipResult<impl Iterator<Item = u64> + Clone + '_> {
        let is_root = |node: &u64| self.nodes.get(node).is_some_and(|node| node.dependencies.is_empty());
        Ok(self.nodes(graph)?.filter(is_root))
    }

    /// Iterates over all edges as pairs (from, to) (HIP API: hipGraphGetEdges).
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn edges(&self, graph: u64) -> HipResult<impl Iterator<Item = (u64, u64)> + Clone + '_> {
        let of = |from| self.nodes.get(&from).map(|node| node.dependents.iter().map(move |to| (from, *to)));
        Ok(self.nodes(graph)?.filter_map(of).flatten())
    }

    /// Iterates over the nodes that a node depends on (HIP API: hipGraphNodeGetDependencies).
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn dependencies(&self, node: u64) -> HipResult<impl Iterator<Item = u64> + Clone + '_> {
        Ok(self.node(node)?.dependencies.iter().copied())
    }

    /// Iterates over the nodes that depend on a node (HIP API: hipGraphNodeGetDependentNodes).
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn dependents(&self, node: u64) -> HipResult<impl Iterator<Item = u64> + Clone + '_> {
        Ok(self.node(node)?.dependents.iter().copied())
    }

    /// Returns whether each of `wanted` is in `ends` or comes before one of them.
    pub(crate) fn are_before(&self, wanted: &BTreeSet<u64>, ends: &BTreeSet<u64>) -> bool {
        let mut missing: BTreeSet<u64> = wanted.difference(ends).copied().collect();
        let (mut seen, mut left) = (ends.clone(), Vec::from_iter(ends.iter().copied()));
        while let Some(node) = left.pop().filter(|_| !missing.is_empty()) {
            for &before in self.nodes.get(&node).into_iter().flat_map(|node| &node.dependencies) {
                missing.remove(&before);
                left.extend(seen.insert(before).then_some(before));
            }
        }
        missing.is_empty()
    }

    // ---- copies ------------------------------------------------------------------------------------------------------

    /// Returns how much a copy or an instance of a graph counts against a limit of handles.
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn weight_of(&self, graph: u64) -> HipResult<usize> {
        let (mut weight, mut left) = (0, vec![graph]);
        while let Some(graph) = left.pop() {
            weight += 1;
            for node in self.graph(graph)?.nodes.iter().filter_map(|node| self.nodes.get(node)) {
                weight += node.content.weight() + node.dependencies.len();
                left.extend(node.content.child());
            }
        }
        Ok(weight)
    }

    /// Copies a graph (HIP API: hipGraphClone).
    ///
    /// # Errors
    /// As [`content`](Self::content).
    pub fn copy(&mut self, graph: u64) -> HipResult<u64> {
        let Graph { nodes, height, kept, .. } = self.graph(graph)?;
        let (nodes, height, kept) = (nodes.clone(), *height, kept.clone());
        self.retain(&kept)?;
        let copy = self.create();
        self.graphs.entry(copy).and_modify(|graph| graph.kept = kept);
        let mut copies = HashMap::new();
        for &original in &nodes {
            let content = match self.content(original)?.clone() {
                Content::Child(child) => Content::Child(self.copy(child)?),
                content => content,
            };
            let child = content.child();
            let node = self.insert(copy, &[], content)?;
            if let Some(child) = child {
                self.graphs.entry(child).and_modify(|child| child.parent = Some(node));
            }
            self.nodes.entry(node).and_modify(|node| node.original = Some(original));
            copies.insert(original, node);
        }
        let of = |node: &u64| copies.get(node).copied().ok_or(HipError::INVALID_VALUE);
        let edges: Vec<(u64, u64)> =
            self.edges(graph)?.map(|(from, to)| Ok((of(&from)?, of(&to)?))).collect::<HipResult<_>>()?;
        self.add_edges(copy, &edges)?;
        self.graphs.entry(copy).and_modify(|graph| graph.height = height);
        Ok(copy)
    }

    /// Returns the node of `copy` that was copied from `original` (HIP API: hipGraphNodeFindInClone).
    ///
    /// # Errors
    /// As [`content`](Self::content), also if there is none.
    pub fn find_in_copy(&self, original: u64, copy: u64) -> HipResult<u64> {
        let is_it = |node: &u64| self.nodes.get(node).is_some_and(|node| node.original == Some(original));
        self.nodes(copy)?.find(is_it).ok_or(HipError::INVALID_VALUE)
    }

    /// Instantiates a graph (HIP API: hipGraphInstantiate). Of the nodes that could come next, the one that was added first
    /// does.
    ///
    /// # Errors
    /// `INVALID_VALUE`: no graph, or nodes that wait for each other in a circle.
    pub fn instantiate(&self, graph: u64) -> HipResult<Exec<W>> {
        let mut steps = Vec::new();
        self.append(graph, &mut steps)?;
        Ok(Exec::new(steps))
    }

    fn append(&self, graph: u64, steps: &mut Vec<ExecStep<W>>) -> HipResult<()> {
        let nodes = &self.graph(graph)?.nodes;
        let mut left: HashMap<u64, usize> = HashMap::new();
        for &node in nodes {
            left.insert(node, self.node(node)?.dependencies.len());
        }
        let mut places = HashMap::new();
        let mut next: BinaryHeap<_> = self.roots(graph)?.map(Reverse).collect();
        while let Some(Reverse(handle)) = next.pop() {
            let node = self.node(handle)?;
            places.insert(handle, steps.len());
            let after = node.dependencies.iter().filter_map(|node| places.get(node).copied()).collect();
            let work = if let Content::Work(work) = &node.content { Some(work.clone()) } else { None };
            steps.push(ExecStep::new(handle, node.content.node_type(), after, work));
            if let Content::Child(child) = node.content {
                let first = steps.len();
                self.append(child, steps)?;
                let inside = steps.len() - first;
                if let Some(step) = steps.get_mut(first - 1) {
                    step.inside = inside;
                }
            }
            for &dependent in &node.dependents {
                let count = left.entry(dependent).or_default();
                *count = count.saturating_sub(1);
                next.extend((*count == 0).then_some(Reverse(dependent)));
            }
        }
        if places.len() == nodes.len() { Ok(()) } else { Err(HipError::INVALID_VALUE) }
    }
}
