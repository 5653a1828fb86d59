//! Findings as reports show them: with names, lines and sentences.

use std::collections::BTreeSet;

use hipr_check::host::{Host, Stack};
use hipr_check::{Access, Accessed, Finding, Kind, Memory, Near, Place, Tool};
use hipr_lines::{Frame, demangled};

use crate::frames::own;

/// A finding with what the program's own calls tell of it.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) finding: Finding,
    /// What it is, as a sentence without a full stop.
    pub(super) message: String,
    /// Where the memory that it is about was allocated.
    pub(super) allocated_at: Option<Stack>,
    /// Where that was freed.
    pub(super) freed_at: Option<Stack>,
    /// The call of the program, for what no kernel has done.
    pub(super) host: Option<Stack>,
}

impl Described {
    /// Returns the frames that the finding is at: the kernel's, or for what the program has done its own.
    pub(super) fn frames(&self) -> &[Frame] {
        let kernel = self.finding.place.as_ref().map(|place| place.frames.as_slice());
        let host = || self.host.as_ref().map_or(&[][..], |stack| &stack.frames);
        kernel.filter(|frames| !frames.is_empty()).unwrap_or_else(host)
    }

    /// Returns the frame that people look for: the first that is in their own source.
    pub(super) fn frame(&self) -> Option<&Frame> {
        own(self.frames())
    }

    /// Returns the kernel's name as its source has it.
    pub(super) fn kernel(&self) -> Option<String> {
        self.finding.place.as_ref().map(|place| demangled(&place.kernel))
    }
}

/// Adds what the program's calls tell, and their own mistakes.
pub(super) fn describe(
    findings: Vec<Finding>,
    host: &Host,
    tools: &BTreeSet<Tool>,
    leaks: bool,
) -> Vec<Described> {
    let of_host =
        host.findings(leaks).into_iter().filter(|(finding, _)| tools.contains(&finding.kind.tool()));
    let kernels = findings.into_iter().map(|finding| {
        let allocation = finding.near.as_ref().and_then(|near| host.allocation(near));
        Described {
            message: message(&finding),
            allocated_at: allocation.map(|allocation| host.stack(&allocation.stack)),
            // It may have been freed after the finding.
            freed_at: allocation
                .filter(|_| finding.near.as_ref().is_some_and(|near| near.is_freed))
                .and_then(|allocation| Some(host.stack(allocation.freed_at.as_ref()?))),
            host: None,
            finding,
        }
    });
    let calls = of_host.map(|(finding, called)| Described {
        message: message(&finding),
        allocated_at: called.allocated_at.as_ref().map(|stack| host.stack(stack)),
        freed_at: called.freed_at.as_ref().map(|stack| host.stack(stack)),
        host: Some(host.stack(&called.at)),
        finding,
    });
    kernels.chain(calls).collect()
}

fn noun(kind: Access) -> &'static str {
    match kind {
        Access::Load => "load",
        Access::Store => "store",
        Access::Atomic => "atomic",
    }
}

fn memory(memory: Memory) -> &'static str {
    match memory {
        Memory::Device => "memory",
        Memory::Lds => "LDS",
        Memory::Scratch => "scratch",
    }
}

/// Returns what a finding is, as a sentence without a full stop.
fn message(finding: &Finding) -> String {
    let accessed = |access: &Accessed| format!("{} of {} bytes", noun(access.kind), access.len_bytes);
    let access = finding.accessed.as_ref().map(accessed).unwrap_or_default();
    let space = finding.accessed.as_ref().map_or("memory", |access| memory(access.memory));
    match finding.kind {
        Kind::OutOfBounds => format!("{access} outside of {space}"),
        Kind::UseAfterFree => format!("{access} in memory that was freed"),
        Kind::Misaligned => format!("misaligned {access}"),
        Kind::NullPointer => format!("{access} through a null pointer"),
        Kind::HostPointer => format!("{access} through a pointer to host memory that kernels cannot access"),
        Kind::WildPointer => format!("{access} through a pointer to nothing"),
        Kind::DoubleFree => "memory is freed a second time".to_owned(),
        Kind::WrongFree => "what is freed is no allocation that this function frees".to_owned(),
        Kind::Leak => {
            let len_bytes = finding.near.as_ref().map_or(0, |near| near.len_bytes);
            match finding.count {
                1 => format!("{len_bytes} bytes are not freed"),
                count => format!("{len_bytes} bytes in {count} allocations are not freed"),
            }
        }
        Kind::UninitializedRead => format!("use of bytes in {space} that nobody wrote ({access})"),
        Kind::BlockRace => format!("race between threads of a block in {space}: {access}"),
        Kind::GridRace => format!("race between blocks: {access}"),
        Kind::StreamRace => format!("race between streams: {access}"),
        Kind::DivergentBarrier => "a barrier that not all threads of the block reach".to_owned(),
        Kind::EndlessWait => "a wait that does not end".to_owned(),
        Kind::CooperativeTooLarge => {
            "a cooperative launch with more blocks than the device holds at once".to_owned()
        }
    }
}

/// Returns where an address lies, seen from the memory that it is near.
pub(super) fn distance(address: u64, len_bytes: u32, near: &Near) -> String {
    let end = near.address.saturating_add(near.len_bytes);
    if address < near.address {
        format!("{} bytes before the beginning of", near.address - address)
    } else if address >= end {
        format!("{} bytes behind the end of", address - end)
    } else if address + u64::from(len_bytes) > end {
        format!("{} bytes before the end of", end - address)
    } else {
        format!("{} bytes into", address - near.address)
    }
}

/// Returns a place as `x,y,z`.
pub(super) fn triple(place: &Place, of: fn(&Place) -> Option<[u32; 3]>) -> Option<String> {
    of(place).map(|[x, y, z]| format!("({x},{y},{z})"))
}

pub(super) fn access_name(kind: Access) -> &'static str {
    noun(kind)
}

/// Returns what a kind of finding is in general, as a sentence.
pub(super) fn explained(kind: Kind) -> &'static str {
    match kind {
        Kind::OutOfBounds => "An access leaves its allocation, variable, LDS or scratch.",
        Kind::UseAfterFree => "An access is to memory that the program has freed.",
        Kind::Misaligned => "An access is at an address that is no multiple of what the instruction needs.",
        Kind::NullPointer => "An access is through a null pointer.",
        Kind::HostPointer => "An access is to memory of the host that no kernel can access.",
        Kind::WildPointer => "An access is to what never was memory of the device.",
        Kind::DoubleFree => "The program frees the same memory twice.",
        Kind::WrongFree => "The program frees what is no allocation that this function frees.",
        Kind::Leak => "The program does not free memory before it ends.",
        Kind::UninitializedRead => "Bytes that nobody wrote are used.",
        Kind::BlockRace => "Two threads of one block access the same bytes without an order.",
        Kind::GridRace => "Two blocks of one kernel access the same bytes without an order.",
        Kind::StreamRace => "Two kernels, or a kernel and a copy, access the same bytes without an order.",
        Kind::DivergentBarrier => "Not all threads of a block reach a barrier.",
        Kind::EndlessWait => "A kernel waits for what does not come.",
        Kind::CooperativeTooLarge => "A cooperative launch has more blocks than the device holds at once.",
    }
}

/// Returns the name of a memory in machine-readable reports.
pub(super) fn memory_name(memory: Memory) -> &'static str {
    match memory {
        Memory::Device => "device",
        Memory::Lds => "lds",
        Memory::Scratch => "scratch",
    }
}
