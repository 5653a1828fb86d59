//! Attributes of memory of the program: above all which agents reach it at its own address.
//!
//! Attributes belong to pages, and are kept for ranges of pages that have the same. Who reaches a page by them is one claim for each
//! range. The runtime does not notice when the program unmaps memory: it has to take access away before it does.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use hipr_grid::lock;

use crate::agent::handle_of;
use crate::clock::now;
use crate::facts::{AgentIndex, Agents};
use crate::foreign::{Claim, is_foreign, pages_of};
use crate::host_memory::{self, Wanted};
use crate::pointer::{In, Out, Ptr};
use crate::runtime::{Runtime, runtime};
use crate::status::{HsaResult, Status};
use crate::types::{Agent, ProfilingTime, Signal, SvmAttribute};
use crate::vmem::Vmem;
use crate::{signal, signal_op, watch};

/// `hsa_amd_svm_attribute_t`.
mod attribute {
    pub(super) const GLOBAL_FLAG: u64 = 0;
    pub(super) const READ_ONLY: u64 = 1;
    pub(super) const HIVE_LOCAL: u64 = 2;
    pub(super) const MIGRATION_GRANULARITY: u64 = 3;
    pub(super) const PREFERRED_LOCATION: u64 = 4;
    pub(super) const PREFETCH_LOCATION: u64 = 5;
    pub(super) const READ_MOSTLY: u64 = 6;
    pub(super) const GPU_EXEC: u64 = 7;
    pub(super) const AGENT_ACCESSIBLE: u64 = 0x200;
    pub(super) const AGENT_ACCESSIBLE_IN_PLACE: u64 = 0x201;
    pub(super) const AGENT_NO_ACCESS: u64 = 0x202;
    pub(super) const ACCESS_QUERY: u64 = 0x203;
}

/// `HSA_AMD_SVM_GLOBAL_FLAG_FINE_GRAINED`.
const FINE: u64 = 0;
/// `HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED`.
const COARSE: u64 = 1;
/// `HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE`.
const INDETERMINATE: u64 = 2;
/// The largest granularity of migration, a power of two of pages: 1 GiB.
const GRANULARITY_MAX: u64 = 18;

/// The attributes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Attributes {
    model: u64,
    /// The attributes that are true or false, a bit for each by its number.
    bits: u64,
    granularity: u64,
    preferred: Agent,
    prefetched: Agent,
    accessible: Agents,
    in_place: Agents,
}

/// What pages have of which nothing was said: 2 MiB at once, and the host's access.
const DEFAULT: Attributes = Attributes {
    model: FINE,
    bits: 0,
    granularity: 9,
    preferred: Agent(0),
    prefetched: Agent(0),
    accessible: Agents(1),
    in_place: Agents(0),
};

impl Attributes {
    fn reach(&self) -> Agents {
        self.accessible.with(self.in_place)
    }

    /// Returns who reaches the pages at the addresses of the map, if a GPU does.
    fn claimed(&self) -> Option<Agents> {
        let host = Agents::only(0);
        Some(self.reach().with(host)).filter(|&reach| reach != host)
    }

    fn set(&mut self, change: Change) {
        match change {
            Change::Model(model) => self.model = model,
            Change::Bit(number, value) => self.bits = self.bits & !(1 << number) | u64::from(value) << number,
            Change::Granularity(granularity) => self.granularity = granularity,
            Change::Preferred(agent) => self.preferred = agent,
            Change::Prefetched(agent) => self.prefetched = agent,
            Change::Access(agent, access) => {
                let without = |set: Agents| Agents(set.0 & !(1 << agent));
                let with = |set: Agents, wanted| {
                    if access == wanted { set.with(Agents::only(agent)) } else { without(set) }
                };
                self.accessible = with(self.accessible, attribute::AGENT_ACCESSIBLE);
                self.in_place = with(self.in_place, attribute::AGENT_ACCESSIBLE_IN_PLACE);
            }
            Change::Forget => *self = DEFAULT,
        }
    }
}

/// A change of pages' attributes.
#[derive(Clone, Copy, Debug)]
enum Change {
    Model(u64),
    Bit(u64, bool),
    Granularity(u64),
    Preferred(Agent),
    Prefetched(Agent),
    /// An agent's access becomes this attribute.
    Access(AgentIndex, u64),
    /// Nothing was said of the pages any more.
    Forget,
}

/// A range of pages with the same attributes.
#[derive(Debug)]
struct Piece {
    end: u64,
    attributes: Attributes,
    claim: Option<Claim>,
}

/// The attributes that differ from [`DEFAULT`], by first address.
#[derive(Debug, Default)]
pub(crate) struct Svm(Mutex<BTreeMap<u64, Piece>>);

/// Returns the attributes of all parts of a range, in order.
fn parts(pieces: &BTreeMap<u64, Piece>, range: &Range<u64>) -> Vec<(Range<u64>, Attributes)> {
    let mut parts = Vec::new();
    let mut at = range.start;
    let before = pieces.range(..range.start).next_back().filter(|(_, piece)| piece.end > range.start);
    for (&start, piece) in before.into_iter().chain(pieces.range(range.clone())) {
        if start > at {
            parts.push((at..start, DEFAULT));
        }
        let end = piece.end.min(range.end);
        parts.push((start.max(at)..end, piece.attributes));
        at = end;
    }
    if at < range.end {
        parts.push((at..range.end, DEFAULT));
    }
    parts
}

impl Runtime {
    /// Returns the pages of a range of the program.
    ///
    /// # Errors
    /// `ERROR` if the range is empty, or has memory that is not the program's own.
    fn svm_pages(&self, ptr: Ptr, len_bytes: usize) -> HsaResult<Range<u64>> {
        let pages = pages_of(ptr.addr(), len_bytes as u64).filter(|_| len_bytes > 0);
        pages.filter(|pages| is_foreign(pages) && !self.part::<Vmem>().withholds(pages)).ok_or(Status::ERROR)
    }

    /// Forgets the attributes of pages that are about to be unmapped, and returns when no kernel reaches them by these.
    ///
    /// # Errors
    /// `ERROR` if the program has unmapped some of them already.
    pub(crate) fn forget_svm(&self, pages: &Range<u64>) -> HsaResult {
        self.change_svm(pages, &[Change::Forget])
    }

    /// Changes the attributes of pages, and returns when agents reach what these say.
    fn change_svm(&self, pages: &Range<u64>, changes: &[Change]) -> HsaResult {
        let mut pieces = lock(&self.part::<Svm>().0);
        // The pieces that begin before the range or end behind it are made anew, too, and may become one with what is next to them.
        let mut wide = pages.clone();
        if let Some((&start, piece)) =
            pieces.range(..pages.start).next_back().filter(|(_, piece)| piece.end >= pages.start)
        {
            wide = start..wide.end.max(piece.end);
        }
        if let Some((_, piece)) = pieces.range(pages.start..=pages.end).next_back() {
            wide.end = wide.end.max(piece.end);
        }
        let mut renewed: Vec<(Range<u64>, Attributes)> = Vec::new();
        for (range, attributes) in parts(&pieces, &wide) {
            let cuts = [
                range.start,
                pages.start.clamp(range.start, range.end),
                pages.end.clamp(range.start, range.end),
                range.end,
            ];
            for cut in cuts.windows(2).filter(|cut| cut[0] < cut[1]) {
                let mut attributes = attributes;
                if cut[0] >= pages.start && cut[1] <= pages.end {
                    changes.iter().for_each(|&change| attributes.set(change));
                }
                match renewed.last_mut() {
                    Some((last, same)) if *same == attributes => last.end = cut[1],
                    _ => renewed.push((cut[0]..cut[1], attributes)),
                }
            }
        }
        let is_reached = |(range, attributes): &(Range<u64>, Attributes)| {
            let is_new = range.start < pages.end && pages.start < range.end;
            is_new && attributes.claimed().is_some()
        };
        let wanted = if renewed.iter().any(is_reached) { Wanted::Writable } else { Wanted::Mapped };
        if !host_memory::is(wanted, pages) {
            tracing::debug!(
                ?pages,
                "attributes of memory that is not there, or that GPUs could not write, cannot be set"
            );
            return Err(Status::ERROR);
        }
        renewed.retain(|(_, attributes)| *attributes != DEFAULT);
        let starts: Vec<u64> = pieces.range(wide).map(|(&start, _)| start).collect();
        let ended: Vec<Claim> =
            starts.iter().filter_map(|start| pieces.remove(start).and_then(|piece| piece.claim)).collect();
        let made: Vec<_> = renewed
            .iter()
            .filter_map(|(range, attributes)| Some((range.clone(), attributes.claimed()?)))
            .collect();
        let mut claims = self.memory.claim_all(&ended, &made).into_iter();
        for (range, attributes) in renewed {
            let claim = attributes.claimed().and_then(|_| claims.next());
            pieces.insert(range.start, Piece { end: range.end, attributes, claim });
        }
        drop(pieces);
        let takes_away = |change: &Change| {
            matches!(change, Change::Access(_, attribute::AGENT_NO_ACCESS) | Change::Forget)
        };
        if changes.iter().any(takes_away) {
            self.memory.wait_until_left(pages);
        }
        Ok(())
    }
}

/// `hsa_amd_svm_attributes_set`.
pub(crate) fn set(ptr: Ptr, len_bytes: usize, list: Out<SvmAttribute>, count: usize) -> HsaResult {
    use attribute as a;
    let runtime = runtime()?;
    let (mut changes, mut agents, mut numbers) = (Vec::new(), Agents::default(), 0u64);
    for SvmAttribute { attribute, value } in list.list(count)? {
        let change = match attribute {
            a::GLOBAL_FLAG if value == FINE || value == COARSE => Change::Model(value),
            a::READ_ONLY | a::HIVE_LOCAL | a::READ_MOSTLY | a::GPU_EXEC => Change::Bit(attribute, value != 0),
            a::MIGRATION_GRANULARITY => Change::Granularity(value.min(GRANULARITY_MAX)),
            a::PREFERRED_LOCATION => {
                if value != 0 {
                    runtime.agent(Agent(value))?;
                }
                Change::Preferred(Agent(value))
            }
            a::AGENT_ACCESSIBLE | a::AGENT_ACCESSIBLE_IN_PLACE | a::AGENT_NO_ACCESS => {
                let agent = runtime.agent(Agent(value))?;
                if agents.contains(agent) {
                    return Err(Status::ERROR_INCOMPATIBLE_ARGUMENTS);
                }
                agents = agents.with(Agents::only(agent));
                Change::Access(agent, attribute)
            }
            _ => return Err(Status::ERROR_INVALID_ARGUMENT),
        };
        if attribute < 64 {
            if numbers >> attribute & 1 != 0 {
                return Err(Status::ERROR_INCOMPATIBLE_ARGUMENTS);
            }
            numbers |= 1 << attribute;
        }
        changes.push(change);
    }
    let pages = runtime.svm_pages(ptr, len_bytes)?;
    runtime.change_svm(&pages, &changes)
}

/// `hsa_amd_svm_attributes_get`: where pages differ, what holds for all of them.
pub(crate) fn get(ptr: Ptr, len_bytes: usize, list: Out<SvmAttribute>, count: usize) -> HsaResult {
    use attribute as a;
    let runtime = runtime()?;
    let mut pairs = list.list(count)?;
    for pair in &pairs {
        match pair.attribute {
            a::GLOBAL_FLAG..=a::GPU_EXEC => {}
            a::ACCESS_QUERY => drop(runtime.agent(Agent(pair.value))?),
            _ => return Err(Status::ERROR_INVALID_ARGUMENT),
        }
    }
    let pages = runtime.svm_pages(ptr, len_bytes)?;
    if !host_memory::is(Wanted::Mapped, &pages) {
        return Err(Status::ERROR);
    }
    let parts: Vec<Attributes> = parts(&lock(&runtime.part::<Svm>().0), &pages)
        .into_iter()
        .map(|(_, attributes)| attributes)
        .collect();
    let same = |value: fn(&Attributes) -> u64| {
        let first = parts.first().map(value);
        first.filter(|&first| parts.iter().all(|part| value(part) == first))
    };
    let all = |holds: &dyn Fn(&Attributes) -> bool| parts.iter().all(holds);
    for pair in &mut pairs {
        match pair.attribute {
            a::GLOBAL_FLAG => pair.value = same(|part| part.model).unwrap_or(INDETERMINATE),
            a::MIGRATION_GRANULARITY => {
                pair.value = parts.iter().map(|part| part.granularity).min().unwrap_or(DEFAULT.granularity);
            }
            a::PREFERRED_LOCATION => pair.value = same(|part| part.preferred.0).unwrap_or(0),
            a::PREFETCH_LOCATION => pair.value = same(|part| part.prefetched.0).unwrap_or(0),
            a::ACCESS_QUERY => {
                let agent = runtime.agent(Agent(pair.value))?;
                pair.attribute = if all(&|part| part.accessible.contains(agent)) {
                    a::AGENT_ACCESSIBLE
                } else if all(&|part| part.in_place.contains(agent)) {
                    a::AGENT_ACCESSIBLE_IN_PLACE
                } else {
                    a::AGENT_NO_ACCESS
                };
            }
            number => pair.value = all(&|part| part.bits >> number & 1 != 0).into(),
        }
    }
    for (index, &pair) in pairs.iter().enumerate() {
        list.offset(index).put(pair)?;
    }
    Ok(())
}

/// `hsa_amd_svm_prefetch_async`: memory stays where it is; which agent it was to go to is told.
pub(crate) fn prefetch(
    ptr: Ptr,
    len_bytes: usize,
    agent: Agent,
    count: u32,
    dependencies: In<Signal>,
    completion: Signal,
) -> HsaResult {
    let runtime = runtime()?;
    let agent = handle_of(runtime.agent(agent)?);
    let dependencies = dependencies.list(count as usize)?;
    dependencies.iter().try_for_each(|&dependency| signal::check(dependency))?;
    if completion.0 != 0 {
        signal::check(completion)?;
    }
    let pages = runtime.svm_pages(ptr, len_bytes)?;
    runtime.change_svm(&pages, &[Change::Prefetched(agent)])?;
    watch::after(dependencies, move || {
        let at = now();
        signal_op::complete(completion, ProfilingTime { start: at, end: at });
    });
    Ok(())
}
