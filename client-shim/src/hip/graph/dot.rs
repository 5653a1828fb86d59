//! Graphs described in the language of Graphviz: a cluster for the graph and for each child graph in it, with a node for each node and
//! an edge for each dependency. Names of clusters and nodes are those that AMD's runtime gives them.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::fs;
use std::os::unix::ffi::OsStrExt;

use hipr_abi::*;
use hipr_graph::{Content, Graphs};
use hipr_proto::op::kind;
use hipr_proto::{HipError, HipResult};

use crate::command::{Command, HostFunction, KernelLaunch, MemoryCopy, MemoryFill, Node, NodeAttribute};
use crate::convert::{Ptr, Str};
use crate::session::Session;

/// `hipGraphDebugDotPrint`.
pub(crate) fn print(session: &Session, graph: Ptr, path: Str, flags: u32) -> HipResult<()> {
    let path = OsStr::from_bytes(path.bytes().ok_or(HipError::INVALID_VALUE)?);
    let detail = Detail(flags);
    let text = session.streams().graphs.with(|tables| describe(&tables.graphs, graph.wire(), detail))?;
    fs::write(path, text).map_err(|error| {
        tracing::debug!(%error, ?path, "the description of a graph is not written");
        HipError::OPERATING_SYSTEM
    })
}

/// What is said of nodes: a sum of `hipGraphDebugDotFlags`.
#[derive(Clone, Copy, Debug)]
struct Detail(u32);

impl Detail {
    fn has(self, flag: hipGraphDebugDotFlags) -> bool {
        self.0 & (hipGraphDebugDotFlagsVerbose | flag).cast_unsigned() != 0
    }
}

fn describe(graphs: &Graphs<Node>, graph: u64, detail: Detail) -> HipResult<String> {
    let mut text = String::from("digraph dot {\n");
    let mut clusters = vec![graph];
    let mut at = 0;
    while let Some(&graph) = clusters.get(at) {
        at += 1;
        // Writing to a string does not fail.
        let _ = writeln!(text, "subgraph cluster_{graph} {{\nlabel=\"graph_{graph}\"; style=\"dashed\";");
        for node in graphs.nodes(graph)? {
            let content = graphs.content(node)?;
            let label = Label::of(node, content, detail);
            let _ = writeln!(
                text,
                "\"graph_{graph}_node_{node}\"[shape=\"{}\" label=\"{label}\"];",
                shape(content)
            );
            clusters.extend(content.child());
        }
        for (from, to) in graphs.edges(graph)? {
            let _ = writeln!(text, "\"graph_{graph}_node_{from}\" -> \"graph_{graph}_node_{to}\";");
        }
        text.push_str("}\n");
    }
    text.push_str("}\n");
    Ok(text)
}

fn shape(content: &Content<Node>) -> &'static str {
    match content {
        Content::Empty | Content::Child(_) => "rectangle",
        Content::Work(work) => match &**work {
            Command::Kernel(_) => "octagon",
            Command::Copy(_) | Command::PeerCopy(_) => "trapezium",
            Command::Fill(_) => "invtrapezium",
            _ => "rectangle",
        },
    }
}

/// The lines of a node's label.
struct Label {
    lines: Vec<String>,
    detail: Detail,
}

impl Label {
    fn of(node: u64, content: &Content<Node>, detail: Detail) -> Self {
        let mut label = Self { lines: vec![node.to_string()], detail };
        match content {
            Content::Empty => label.add("EMPTY"),
            Content::Child(child) => label.add(format!("graph_{child}")),
            Content::Work(work) => label.add_work(work),
        }
        label.add_if(hipGraphDebugDotFlagsHandles, || format!("node {:?}", Ptr::from_wire(node)));
        label
    }

    fn add(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn add_if(&mut self, flag: hipGraphDebugDotFlags, line: impl FnOnce() -> String) {
        if self.detail.has(flag) {
            self.lines.push(line());
        }
    }

    fn add_work(&mut self, work: &Command) {
        match work {
            Command::Kernel(kernel) => self.add_kernel(kernel),
            Command::Copy(copy) => self.add_copy(copy),
            Command::PeerCopy(copy) => {
                self.add("MEMCPY");
                self.add_if(hipGraphDebugDotFlagsMemcpyNodeParams, || format!("{copy:?}"));
            }
            Command::Fill(fill) => self.add_fill(fill),
            Command::Host(HostFunction::Value(_)) | Command::Values(_) => self.add("BATCH_MEM_OP"),
            Command::Host(function) => {
                self.add("HOST");
                self.add_if(hipGraphDebugDotFlagsHostNodeParams, || host(*function));
            }
            Command::GraphAllocate(_) => self.add("MEM_ALLOC"),
            Command::GraphFree(_) | Command::Free(_) => self.add("MEM_FREE"),
            Command::Record(event) => {
                self.add("EVENT_RECORD");
                self.add_if(hipGraphDebugDotFlagsEventNodeParams, || format!("event {:#x}", event.0));
            }
            Command::Wait(event, _) => {
                self.add("EVENT_WAIT");
                self.add_if(hipGraphDebugDotFlagsEventNodeParams, || format!("event {:#x}", event.0));
            }
            // As what it counts: other commands are in no graph.
            _ => self.add("EMPTY"),
        }
    }

    fn add_kernel(&mut self, kernel: &KernelLaunch) {
        self.add(kernel.function.name.as_str());
        self.add_if(hipGraphDebugDotFlagsKernelNodeParams, || {
            let dim = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
            let config = &kernel.config;
            format!("<<<{},{},{}>>>", dim(config.grid), dim(config.block), config.shared_mem_bytes)
        });
        if let Some(attribute) = kernel.attribute() {
            self.add_if(hipGraphDebugDotFlagsKernelNodeAttributes, || match attribute {
                NodeAttribute::Cooperative(value) => format!("cooperative {value}"),
                NodeAttribute::CacheWindow(window) => format!(
                    "cache {} bytes at {:?}, ratio {}, hit {}, miss {}",
                    window.len, window.base, window.hit_ratio, window.hit, window.miss
                ),
            });
        }
        self.add_if(hipGraphDebugDotFlagsHandles, || format!("function {:#x}", kernel.function.handle));
    }

    fn add_copy(&mut self, copy: &MemoryCopy) {
        let MemoryCopy { dst, src, size } = copy;
        self.add("MEMCPY");
        let kind = match copy.kind() {
            kind::HOST_TO_HOST => "HtoH",
            kind::HOST_TO_DEVICE => "HtoD",
            kind::DEVICE_TO_HOST => "DtoH",
            kind::DEVICE_TO_DEVICE => "DtoD",
            _ => "default",
        };
        self.add(format!("{kind}, {} x {} x {} bytes", size.width, size.height, size.depth));
        for (name, place) in [("to", dst), ("from", src)] {
            self.add_if(hipGraphDebugDotFlagsMemcpyNodeParams, || {
                format!("{name} {:?}, pitch {}, {} rows", place.at, place.pitch, place.rows)
            });
        }
    }

    fn add_fill(&mut self, fill: &MemoryFill) {
        let params = fill.node_params();
        self.add("MEMSET");
        self.add(format!("{} x {} elements of {} bytes", params.width, params.height, params.elementSize));
        self.add_if(hipGraphDebugDotFlagsMemsetNodeParams, || {
            format!("value {:#x} at {:?}, pitch {}", params.value, fill.dst, params.pitch)
        });
    }
}

fn host(function: HostFunction) -> String {
    let (function, data) = match function {
        HostFunction::Plain(function, data) => (function.map_or(0, |function| function as usize), data),
        HostFunction::Callback(function, _, data) => (function.map_or(0, |function| function as usize), data),
        HostFunction::Value(op) => (0, op.place().0),
        HostFunction::Await(_) => (0, Ptr::NULL),
    };
    format!("function {function:#x}, data {data:?}")
}

impl fmt::Display for Label {
    /// Writes the lines as what is between the quotation marks of a string of Graphviz.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, line) in self.lines.iter().enumerate() {
            if index > 0 {
                f.write_str("\\n")?;
            }
            for c in line.chars() {
                match c {
                    '"' | '\\' => write!(f, "\\{c}")?,
                    c if c.is_control() => f.write_char(' ')?,
                    c => f.write_char(c)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_no_string() {
        let lines = vec!["1".into(), "a\"b\\".into(), "c\nd\0".into()];
        assert_eq!(Label { lines, detail: Detail(0) }.to_string(), r#"1\na\"b\\\nc d "#);
    }

    #[test]
    fn verbose_is_everything() {
        assert!(Detail(1).has(hipGraphDebugDotFlagsHandles));
        assert!(Detail(1024).has(hipGraphDebugDotFlagsHandles));
        assert!(!Detail(4).has(hipGraphDebugDotFlagsHandles));
    }
}
