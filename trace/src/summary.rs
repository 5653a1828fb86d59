//! Where the time of a program went.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Write as _};

use crate::advice::advice;
use crate::call::Call;
use crate::item::{Item, RECEIVED, Slice, arg, category};
use crate::units::{Bytes, Time};

/// Number of calls that are shown.
const CALLS_MAX: usize = 10;

/// What a trace says about where the time went. Times are in nanoseconds; a time in which several threads wait counts once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// From the beginning of the program to its end; if the trace does not say when it began, from its first call on.
    pub total_ns: u64,
    /// Waiting for answers, as far as the worker was not busy with the request.
    pub network_ns: u64,
    /// Waiting for answers while the worker had the request.
    pub device_ns: u64,
    /// Giving bytes to the network.
    pub sending_ns: u64,
    /// Number of answers that were waited for.
    pub waits: u64,
    /// Bytes that were sent.
    pub sent_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
    /// How far the clocks of client and worker may be apart; `None` if the worker has told no times.
    pub uncertainty_ns: Option<u64>,
    /// How long the program took longer for the trace alone, which is not part of the total.
    pub trace_ns: u64,
    /// Number of events that were lost.
    pub lost: u64,
    /// Calls by function and line, those first that took longest.
    pub calls: Vec<Call>,
}

/// The waits of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    count: u64,
    taken_ns: u64,
    device_ns: u64,
    received_bytes: u64,
    connects: bool,
}

/// Times, each from when to when.
#[derive(Clone, Debug, Default)]
struct Spans(Vec<(u64, u64)>);

impl Spans {
    fn add(&mut self, start_ns: u64, end_ns: u64) {
        if end_ns > start_ns {
            self.0.push((start_ns, end_ns));
        }
    }

    /// Returns how long at least one of them lasts.
    fn len_ns(&self) -> u64 {
        let mut spans = self.0.clone();
        spans.sort_unstable();
        let (mut len_ns, mut until_ns) = (0, 0);
        for (start_ns, end_ns) in spans {
            len_ns += end_ns.saturating_sub(start_ns.max(until_ns));
            until_ns = until_ns.max(end_ns);
        }
        len_ns
    }

    fn with(&self, others: &Self) -> Self {
        Self(self.0.iter().chain(&others.0).copied().collect())
    }
}

impl Summary {
    /// Returns what a trace says.
    pub fn of(items: &[Item]) -> Self {
        let mut summary = Self::default();
        let slices =
            || items.iter().filter_map(|item| if let Item::Slice(slice) = item { Some(slice) } else { None });
        // When the worker had each request.
        let had: HashMap<&str, (u64, u64)> = slices()
            .filter(|slice| slice.category == category::REQUEST)
            .filter_map(|slice| {
                let queued_ns = slice.number(arg::QUEUED_NS).unwrap_or(0);
                Some((slice.text(arg::REQUEST)?, (slice.start_ns.saturating_sub(queued_ns), slice.end_ns)))
            })
            .collect();
        let (mut waits, mut device, mut sends, mut traces) =
            (Spans::default(), Spans::default(), Spans::default(), Spans::default());
        let mut all = (u64::MAX, 0);
        // The waits of each call, by its thread and number.
        let mut of_calls: HashMap<(u64, u64), Waits> = HashMap::new();
        for slice in slices() {
            match &*slice.category {
                category::WAIT => {
                    let told = slice.text(arg::REQUEST).and_then(|request| had.get(request));
                    let (from_ns, to_ns) = told.copied().unwrap_or((0, 0));
                    let (from_ns, to_ns) = (from_ns.max(slice.start_ns), to_ns.min(slice.end_ns));
                    waits.add(slice.start_ns, slice.end_ns);
                    device.add(from_ns, to_ns);
                    summary.waits += 1;
                    let of_call =
                        of_calls.entry((slice.track, slice.number(arg::CALL).unwrap_or(0))).or_default();
                    of_call.count += 1;
                    of_call.taken_ns += slice.len_ns();
                    of_call.device_ns += to_ns.saturating_sub(from_ns);
                    of_call.received_bytes += slice.number(arg::RECEIVED_BYTES).unwrap_or(0);
                    of_call.connects |= slice.arg(arg::REQUEST).is_none();
                }
                category::SEND => {
                    sends.add(slice.start_ns, slice.end_ns);
                    summary.sent_bytes += slice.number(arg::SENT_BYTES).unwrap_or(0);
                }
                category::TRACE => {
                    traces.add(slice.start_ns, slice.end_ns);
                    summary.lost += slice.number(arg::LOST).unwrap_or(0);
                }
                category::REQUEST => {
                    let ns = slice.number(arg::UNCERTAINTY_NS);
                    summary.uncertainty_ns = match (summary.uncertainty_ns, ns) {
                        (Some(best), Some(ns)) => Some(best.min(ns)),
                        (best, ns) => best.or(ns),
                    };
                }
                _ => {}
            }
            if matches!(&*slice.category, category::CALL | category::PROGRAM) {
                all = (all.0.min(slice.start_ns), all.1.max(slice.end_ns));
            }
        }
        let tracks =
            items.iter().filter_map(|item| if let Item::Track(track) = item { Some(track) } else { None });
        let counters: HashSet<u64> =
            tracks.filter(|track| track.name == RECEIVED).map(|track| track.id).collect();
        let mut received: HashMap<u64, u64> = HashMap::new();
        for item in items {
            if let Item::Count { track, value, .. } = item
                && counters.contains(track)
            {
                let most = received.entry(*track).or_default();
                *most = (*most).max(*value);
            }
        }
        summary.received_bytes = received.values().sum();
        let device_ns = device.len_ns();
        let waited_ns = waits.len_ns();
        summary.device_ns = device_ns;
        summary.network_ns = waited_ns - device_ns;
        summary.sending_ns = waits.with(&sends).len_ns() - waited_ns;
        summary.trace_ns = traces.len_ns();
        summary.total_ns = all.1.saturating_sub(all.0).saturating_sub(summary.trace_ns);
        summary.calls = calls(slices(), &of_calls);
        summary
    }

    /// Returns how long the program neither waited nor sent.
    pub fn computing_ns(&self) -> u64 {
        self.total_ns.saturating_sub(self.network_ns + self.device_ns + self.sending_ns)
    }
}

fn calls<'a>(slices: impl Iterator<Item = &'a Slice>, waits: &HashMap<(u64, u64), Waits>) -> Vec<Call> {
    let mut calls: BTreeMap<(&str, Option<String>), Call> = BTreeMap::new();
    for slice in slices.filter(|slice| slice.category == category::CALL) {
        let place = slice.text(arg::LINE).or_else(|| slice.text(arg::STACK)?.split(';').next());
        let line = place.map(str::to_owned);
        let call = calls.entry((&slice.name, line.clone())).or_insert_with(|| Call {
            function: slice.name.clone(),
            line,
            ..Call::default()
        });
        call.count += 1;
        call.errors += u64::from(slice.arg(arg::ERROR).is_some());
        call.taken_ns += slice.len_ns();
        call.sent_bytes += slice.number(arg::SENT_BYTES).unwrap_or(0);
        if let Some(waits) = waits.get(&(slice.track, slice.number(arg::CALL).unwrap_or(0))) {
            call.waits += waits.count;
            call.waited_ns += waits.taken_ns;
            call.device_ns += waits.device_ns;
            call.received_bytes += waits.received_bytes;
            call.connects |= waits.connects;
        }
    }
    let mut calls: Vec<_> = calls.into_values().collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.taken_ns));
    calls
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |ns: u64| ns as f64 * 100.0 / self.total_ns.max(1) as f64;
        let mut row = |name: &str, ns: u64, more: &str| {
            writeln!(f, "  {name:<24}{:>10} {:>5.1} %{more}", Time(ns), share(ns))
        };
        let traced = format!("   without {} at the end, for the trace", Time(self.trace_ns));
        row("total", self.total_ns, if self.trace_ns > 0 { &traced } else { "" })?;
        row("computing", self.computing_ns(), "")?;
        let waits = format!("   {} answers were waited for", self.waits);
        row("waiting for the network", self.network_ns, &waits)?;
        let told = match self.uncertainty_ns {
            Some(ns) => format!("   (the clocks of client and worker agree within {})", Time(ns)),
            None => "   (the worker does not tell: its time counts as the network's)".to_owned(),
        };
        row("waiting for the device", self.device_ns, &told)?;
        let bytes = format!("   {} sent, {} received", Bytes(self.sent_bytes), Bytes(self.received_bytes));
        row("sending", self.sending_ns, &bytes)?;
        if self.lost > 0 {
            writeln!(
                f,
                "  {} events were lost: the program made calls faster than they could be written",
                self.lost
            )?;
        }
        if self.calls.is_empty() {
            return writeln!(f, "The program made no HIP call.");
        }
        writeln!(f, "The calls that took longest:")?;
        for call in self.calls.iter().take(CALLS_MAX) {
            let mut line = format!("{:>10}  {} × {}", Time(call.taken_ns), call.function, call.count);
            // Writing to a String does not fail.
            let _ = call.line.as_ref().map(|place| write!(line, " at {place}"));
            if call.waits > 0 {
                let _ = write!(line, ", {} waits", call.waits);
            }
            if call.errors > 0 {
                let _ = write!(line, ", {} errors", call.errors);
            }
            writeln!(f, "{line}")?;
            if let Some(advice) = advice(call) {
                writeln!(f, "{:>10}  {advice}", "")?;
            }
        }
        Ok(())
    }
}
