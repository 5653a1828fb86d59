//! Latencies of calls and their percentiles.

use super::report::{Figure, Goal, Unit};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// A histogram of latencies from 1 ns to a minute, with three significant digits.
#[derive(Debug)]
pub(crate) struct Latencies(Histogram<u64>);

/// Percentiles of a turn in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) max: f64,
}

/// The longest latency that the histogram distinguishes.
const LONGEST: Duration = Duration::from_secs(60);

impl Latencies {
    /// Creates an empty histogram.
    pub(crate) fn new() -> Result<Self, String> {
        let longest_ns = u64::try_from(LONGEST.as_nanos()).unwrap_or(u64::MAX);
        Histogram::new_with_max(longest_ns, 3).map(Self).map_err(|why| why.to_string())
    }

    /// Adds a latency.
    pub(crate) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    /// Repeats `call` for about `time` and records how long each takes.
    ///
    /// # Errors
    /// The first that `call` has.
    pub(crate) fn of_calls(time: Duration, call: impl FnMut() -> Result<(), String>) -> Result<Self, String> {
        let end = Instant::now() + time;
        Self::until(|| Instant::now() >= end, call)
    }

    /// Repeats `call` at least once and until `is_over`, and records how long each takes.
    ///
    /// # Errors
    /// The first that `call` has.
    pub(crate) fn until(
        is_over: impl Fn() -> bool,
        mut call: impl FnMut() -> Result<(), String>,
    ) -> Result<Self, String> {
        let mut latencies = Self::new()?;
        loop {
            let start = Instant::now();
            call()?;
            latencies.record(start.elapsed());
            if is_over() {
                return Ok(latencies);
            }
        }
    }

    /// Returns the percentiles.
    pub(crate) fn percentiles(&self) -> Percentiles {
        let us = |quantile| self.0.value_at_quantile(quantile) as f64 / 1e3;
        Percentiles { p50: us(0.5), p99: us(0.99), p999: us(0.999), max: us(1.0) }
    }
}

/// A column of a report: its name and its percentile.
type Column = (&'static str, fn(&Percentiles) -> f64);

/// The percentiles that reports contain.
const COLUMNS: [Column; 4] =
    [("p50", |p| p.p50), ("p99", |p| p.p99), ("p99.9", |p| p.p999), ("longest", |p| p.max)];

/// Returns a figure for each column, compared with the same column of the others; the goals apply to the first comparison.
pub(crate) fn figures(
    name: &str,
    own: &[Percentiles],
    goal: Goal,
    others: &[(String, &[Percentiles], Goal)],
) -> Vec<Figure> {
    let columns = COLUMNS.iter().enumerate();
    let figures = columns.map(|(index, (column, of))| {
        let only_first = |goal| if index == 0 { goal } else { Goal::None };
        let list = |percentiles: &[Percentiles]| percentiles.iter().map(of).collect::<Vec<_>>();
        let own = list(own);
        let figure = Figure::new(format!("{name}, {column}"), Unit::Microseconds, &own, only_first(goal));
        // The rare ones are as much the machine's as the worker's.
        let figure = if index > 1 { figure.into_detail() } else { figure };
        others.iter().fold(figure, |figure, (to, percentiles, goal)| {
            figure.compare(to.as_str(), &own, &list(percentiles), only_first(*goal))
        })
    });
    figures.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_microseconds() {
        let mut latencies = Latencies::new().expect("a histogram");
        (1..=1000).for_each(|us| latencies.record(Duration::from_micros(us)));
        let Percentiles { p50, p99, p999, max } = latencies.percentiles();
        for (got, expected) in [(p50, 500.0), (p99, 990.0), (p999, 999.0), (max, 1000.0)] {
            assert!((got - expected).abs() <= expected / 500.0, "{got} instead of {expected}");
        }
    }
}
