//! The one table of metrics: names, labels, what they say, and where each comes from. docs/metrics.md has the same list.

use super::Snapshot;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric as Sample, MetricFamily, MetricType};
use prometheus::{Encoder, TextEncoder};

/// A metric of the worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    kind: MetricType,
    /// The name of its label, if there are several values.
    pub(super) label: Option<&'static str>,
    pub(super) help: &'static str,
    /// Returns its values, with those of the label.
    read: fn(&Snapshot) -> Vec<(String, f64)>,
}

/// Returns the value of a metric without a label.
fn one(value: u64) -> Vec<(String, f64)> {
    vec![(String::new(), value as f64)]
}

/// Returns the values of a metric with a label.
fn many<'a>(values: impl Iterator<Item = (&'a str, u64)>) -> Vec<(String, f64)> {
    values.map(|(label, value)| (label.to_owned(), value as f64)).collect()
}

fn seconds(ns: u64) -> Vec<(String, f64)> {
    vec![(String::new(), ns as f64 / 1e9)]
}

macro_rules! metrics {
    ($($kind:ident $name:literal $([$label:literal])? $help:literal: $read:expr;)*) => {
        /// All metrics.
        pub(super) const METRICS: &[Metric] = &[$(Metric {
            name: $name,
            kind: MetricType::$kind,
            label: metrics!(@label $($label)?),
            help: $help,
            read: $read,
        },)*];
    };
    (@label) => { None };
    (@label $label:literal) => { Some($label) };
}

metrics! {
    GAUGE "hipr_build_info" ["version"] "Which worker this is; always 1.":
        |_| many([(env!("CARGO_PKG_VERSION"), 1)].into_iter());
    GAUGE "hipr_ready" "Whether the worker takes sessions: 1, or 0 while it shuts down or has no seat.":
        |now| one(u64::from(now.unready.is_none()));
    GAUGE "hipr_seats" "How many sessions there may be.":
        |now| one(now.seats as u64);
    GAUGE "hipr_seats_taken" "How many of these seats are taken, by sessions and by clients that have no session yet.":
        |now| one(now.seats_taken as u64);
    GAUGE "hipr_sessions" "Sessions that there are, those without a connection included.":
        |now| one(now.sessions);
    GAUGE "hipr_parked_sessions" "Sessions whose connection was cut and that wait for their clients.":
        |now| one(now.parked);
    COUNTER "hipr_sessions_begun_total" "Sessions that have begun.":
        |now| one(now.begun);
    COUNTER "hipr_sessions_ended_total" ["reason"] "Sessions that have ended, by reason.":
        |now| many(now.ended.iter());
    COUNTER "hipr_sessions_resumed_total" "How often a session went on over another connection.":
        |now| one(now.resumed);
    COUNTER "hipr_refusals_total" ["reason"] "Clients that got no session, by reason.":
        |now| many(now.refused.iter());
    COUNTER "hipr_requests_total" ["operation"] "Requests that were begun, by operation.":
        |now| many(now.counts.by_operation());
    COUNTER "hipr_answered_requests_total" "Requests that asked for an answer, for which a client may have waited.":
        |now| one(now.counts.answered_requests);
    GAUGE "hipr_unfinished_requests" "Requests that have come and are not done.":
        |now| one(now.counts.unfinished_requests());
    COUNTER "hipr_errors_total" ["error"]
        "Requests that failed, by HIP error; one that reports the error of an earlier request counts as well.":
        |now| many(now.counts.by_error());
    COUNTER "hipr_received_bytes_total" "Bytes that came from clients, on the wire.":
        |now| one(now.counts.io.received_bytes);
    COUNTER "hipr_sent_bytes_total" "Bytes that were sent to clients, on the wire.":
        |now| one(now.counts.io.sent_bytes);
    COUNTER "hipr_peer_bytes_total" "Bytes that came from other workers, for copies between devices of both.":
        |now| one(now.counts.peer_bytes);
    COUNTER "hipr_protocol_errors_total" "Connections that were closed because the client broke the protocol.":
        |now| one(now.counts.io.protocol_errors);
    COUNTER "hipr_timeouts_total" "Connections that were closed because nothing came in time.":
        |now| one(now.counts.io.timeouts);
    COUNTER "hipr_device_seconds_total"
        "Time that kernels and copies had on the threads of the emulated GPU, all threads together. A real GPU does not tell.":
        |now| seconds(now.counts.device_ns);
    GAUGE "hipr_memory_bytes" ["tenant"] "Memory that sessions have allocated, code objects included, by tenant.":
        |now| many(now.memory.iter().map(|(tenant, bytes)| (tenant.as_str(), *bytes)));
    GAUGE "hipr_busy_streams" "Streams with work that is not finished, on the emulated GPU. A real GPU does not tell.":
        |now| one(now.counts.busy_streams);
    GAUGE "hipr_queued_commands" "Commands of streams that are enqueued and not finished, on the emulated GPU.":
        |now| one(now.counts.queued_commands);
    COUNTER "hipr_cache_saved_bytes_total" "Bytes that clients did not send because the cache of uploads had them.":
        |now| one(now.counts.cache.saved_bytes);
    COUNTER "hipr_cache_kept_bytes_total" "Bytes that clients sent and the cache of uploads took.":
        |now| one(now.counts.cache.kept_bytes);
    GAUGE "hipr_cache_memory_bytes" "Bytes that the cache of uploads has in memory.":
        |now| one(now.counts.cache.memory_bytes);
    COUNTER "hipr_cache_loaded_chunks_total" "Chunks that the cache of uploads read from its files.":
        |now| one(now.counts.cache.loaded);
    COUNTER "hipr_cache_evicted_chunks_total" "Chunks of the cache of uploads that made room for others in memory.":
        |now| one(now.counts.cache.evicted);
    COUNTER "hipr_cache_refused_chunks_total" "Chunks that the cache of uploads did not take because all of it was in use.":
        |now| one(now.counts.cache.refused);
    COUNTER "hipr_cache_damaged_files_total" "Files of the cache of uploads that were damaged, and were removed.":
        |now| one(now.counts.cache.damaged);
}

impl Metric {
    fn sample(&self, (label, value): (String, f64)) -> Sample {
        let mut sample = Sample::default();
        if let Some(name) = self.label {
            let mut pair = LabelPair::default();
            pair.set_name(name.to_owned());
            pair.set_value(label);
            sample.set_label(vec![pair]);
        }
        if self.kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            sample.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            sample.set_gauge(gauge);
        }
        sample
    }

    /// Returns the metric with its values; `None` if it has none yet.
    fn family(&self, now: &Snapshot) -> Option<MetricFamily> {
        let samples: Vec<_> = (self.read)(now).into_iter().map(|value| self.sample(value)).collect();
        let mut family = MetricFamily::default();
        family.set_name(self.name.to_owned());
        family.set_help(self.help.to_owned());
        family.set_field_type(self.kind);
        let has_some = !samples.is_empty();
        family.set_metric(samples);
        has_some.then_some(family)
    }
}

/// Returns all metrics as Prometheus reads them.
///
/// # Errors
/// A name or a label is none.
pub(super) fn text(now: &Snapshot) -> prometheus::Result<Vec<u8>> {
    let families: Vec<_> = METRICS.iter().filter_map(|metric| metric.family(now)).collect();
    let mut text = Vec::new();
    TextEncoder::new().encode(&families, &mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    fn read(file: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        fs::read_to_string(root.join(file)).unwrap_or_else(|why| panic!("{file}: {why}"))
    }

    /// Returns the words of a text that are names of metrics.
    fn names(text: &str) -> BTreeSet<&str> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with("hipr_")).collect()
    }

    #[test]
    fn names_are_as_prometheus_wants_them() {
        let mut seen = BTreeSet::new();
        for Metric { name, kind, label, help, .. } in METRICS {
            assert!(seen.insert(name), "{name} is there twice");
            assert!(name.starts_with("hipr_") && !name.contains("__"), "{name}");
            let is_counter = *kind == MetricType::COUNTER;
            assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            assert!(
                label.is_none_or(|label| !label.is_empty() && label.bytes().all(|c| c.is_ascii_lowercase()))
            );
            assert!(help.ends_with('.') && help.is_ascii(), "{name}: {help}");
        }
    }

    #[test]
    fn the_document_lists_all_metrics() {
        let document = read("docs/metrics.md");
        let rows: Vec<_> = document.lines().filter(|line| line.starts_with("| `hipr_")).collect();
        let expected = METRICS.iter().map(|Metric { name, kind, label, help, .. }| {
            let kind = if *kind == MetricType::COUNTER { "counter" } else { "gauge" };
            let label = label.map(|label| format!("`{label}`")).unwrap_or_default();
            format!("| `{name}` | {kind} | {label} | {help} |")
        });
        let expected: Vec<_> = expected.collect();
        assert_eq!(rows, expected, "docs/metrics.md has to have these rows:\n{}", expected.join("\n"));
    }

    #[test]
    fn the_dashboard_shows_what_there_is() {
        let text = read("packaging/hipr-grafana.json");
        let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let panels = dashboard["panels"].as_array().expect("panels");
        let mut shown = BTreeSet::new();
        for panel in panels {
            let targets = panel["targets"].as_array().into_iter().flatten();
            let queries: Vec<_> = targets.map(|target| target["expr"].as_str().expect("a query")).collect();
            assert!(!queries.is_empty() || panel["type"] == "row", "{panel} asks for nothing");
            shown.extend(queries.into_iter().flat_map(names));
        }
        let known: BTreeSet<_> = METRICS.iter().map(|metric| metric.name).collect();
        assert!(!shown.is_empty());
        assert_eq!(
            shown.difference(&known).collect::<Vec<_>>(),
            Vec::<&&str>::new(),
            "there are no such metrics"
        );
        assert_eq!(names(&text), shown, "also in titles and variables");
    }
}
