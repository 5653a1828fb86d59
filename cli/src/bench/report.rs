//! The report of a benchmark: medians of rounds and of their references, as a table or as JSON.

use super::rounds::Rounds;
use crate::output::say;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::{fmt, fs};

/// The report of one run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Name of the benchmark.
    pub(crate) bench: String,
    host: Host,
    rounds: u32,
    /// Length of a turn in seconds.
    seconds: f64,
    /// The options of the run.
    pub(crate) settings: BTreeMap<String, String>,
    pub(crate) figures: Vec<Figure>,
    /// Remarks that are needed to read the figures.
    pub(crate) notes: Vec<String>,
}

/// The kind of machine that the benchmark ran on.
#[derive(Debug, Serialize, Deserialize)]
struct Host {
    cores: usize,
    cpu: String,
    kernel: String,
}

/// A measured figure.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    pub(crate) name: String,
    /// Whether short tables leave the figure out.
    #[serde(default)]
    detail: bool,
    pub(crate) unit: Unit,
    pub(crate) value: Spread,
    #[serde(flatten)]
    goal: Goal,
    /// Whether the goal is met; absent if there is none.
    holds: Option<bool>,
    pub(crate) compared: Vec<Comparison>,
}

/// The reference with which a figure is compared.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Comparison {
    pub(crate) to: String,
    pub(crate) value: Spread,
    /// The figure divided by the other one, round by round.
    pub(crate) ratio: Spread,
    #[serde(flatten)]
    goal: Goal,
    /// Whether the ratio meets its goal; absent if there is none.
    holds: Option<bool>,
}

/// Median, minimum and maximum of the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// The goal of a figure or a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// There is no goal.
    #[serde(rename = "goal")]
    None,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Unit {
    #[serde(rename = "1/s")]
    PerSecond,
    #[serde(rename = "B/s")]
    BytesPerSecond,
    #[serde(rename = "B")]
    Bytes,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "1")]
    Ratio,
}

impl Report {
    /// Creates an empty report.
    pub(crate) fn new(bench: &str, rounds: &Rounds) -> Self {
        Self {
            bench: bench.into(),
            host: Host::this(),
            rounds: rounds.count,
            seconds: rounds.seconds,
            settings: BTreeMap::new(),
            figures: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Records an option of the run.
    pub(crate) fn set(&mut self, option: &str, value: impl fmt::Display) {
        self.settings.insert(option.into(), value.to_string());
    }

    /// Prints the report on standard output.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub(crate) fn print(&self, json: bool) -> Result<(), String> {
        if json {
            say!("{}", serde_json::to_string_pretty(self).map_err(|why| why.to_string())?);
        } else {
            say!("{self}");
        }
        Ok(())
    }

    /// Returns rows of a Markdown table: bench, figure, median and goal, comparisons and their goals; with `with_details`
    /// also the figures that short tables leave out.
    pub(crate) fn markdown_rows(&self, with_details: bool) -> String {
        let settings = ["transport", "device", "place"]
            .map(|option| self.settings.get(option).map_or("", String::as_str));
        let bench = format!("{}: {}", self.bench, settings.join(" ").trim());
        let figures = self.figures.iter().filter(|figure| with_details || !figure.detail);
        let rows = figures.map(|Figure { name, unit, value, goal, holds, compared, .. }| {
            let value = with_goal(value.text(*unit), *goal, *unit, *holds);
            let compared = compared.iter().map(|Comparison { to, value, ratio, goal, holds }| {
                let ratio = with_goal(ratio.text(Unit::Ratio), *goal, Unit::Ratio, *holds);
                format!("{ratio} × {to}, {}", unit.text(value.median))
            });
            format!("| {bench} | {name} | {value} | {} |\n", compared.collect::<Vec<_>>().join("<br>"))
        });
        rows.collect()
    }
}

/// Returns a cell of the Markdown table.
fn with_goal(text: String, goal: Goal, unit: Unit, holds: Option<bool>) -> String {
    let goal = goal_text(goal, unit, holds, "**");
    if goal.is_empty() { text } else { format!("{text} [{goal}]") }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<_> =
            self.settings.iter().map(|(option, value)| format!("--{option} {value}")).collect();
        writeln!(f, "hipr bench {} {}", self.bench, settings.join(" "))?;
        let Host { cores, cpu, kernel } = &self.host;
        writeln!(f, "{cores} cores, {cpu}, {kernel}; {} rounds, {} s a turn\n", self.rounds, self.seconds)?;
        // Name, median, range, goal.
        let mut rows = vec![["".to_owned(), "median".to_owned(), "min .. max".to_owned(), String::new()]];
        for Figure { name, unit, value, goal, holds, compared, .. } in &self.figures {
            rows.push(row(name.clone(), value, *unit, *goal, *holds));
            for Comparison { to, value, ratio, goal, holds } in compared {
                let to = format!("  as a multiple of: {to}, {}", unit.text(value.median));
                rows.push(row(to, ratio, Unit::Ratio, *goal, *holds));
            }
        }
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths = [0, 1, 2].map(width);
        for [name, median, range, goal] in &rows {
            let [w0, w1, w2] = widths;
            writeln!(f, "{}", format!("{name:<w0$}  {median:>w1$}  {range:>w2$}  {goal}").trim_end())?;
        }
        for note in &self.notes {
            write!(f, "\n{note}")?;
        }
        Ok(())
    }
}

/// Returns a line of the table.
fn row(name: String, value: &Spread, unit: Unit, goal: Goal, holds: Option<bool>) -> [String; 4] {
    let Spread { median, min, max } = value;
    let range = format!("{} .. {}", unit.text(*min), unit.text(*max));
    [name, unit.text(*median), range, goal_text(goal, unit, holds, "")]
}

/// Describes the goal and whether it is met; empty without a goal.
fn goal_text(goal: Goal, unit: Unit, holds: Option<bool>, mark: &str) -> String {
    let words = match goal {
        Goal::AtLeast(value) => format!("at least {}", unit.text(value)),
        Goal::AtMost(value) => format!("at most {}", unit.text(value)),
        Goal::None => return String::new(),
    };
    let verdict = if holds == Some(true) { "holds".to_owned() } else { format!("{mark}missed{mark}") };
    format!("{words}: {verdict}")
}

impl Host {
    fn this() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line =
                cpuinfo.lines().find(|line| line.split(':').next().is_some_and(|key| key.trim() == name));
            line.and_then(|line| line.split(':').nth(1)).map_or("unknown", str::trim).to_owned()
        };
        let cpu = format!("{} family {} model {}", field("vendor_id"), field("cpu family"), field("model"));
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        // Numbers only: what a distribution appends names the machine's make.
        let numbers: String = release.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        // All that there are: this thread may have one of them.
        let cores = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
        Self { cores, cpu, kernel: format!("Linux {numbers}") }
    }
}

impl Figure {
    /// Creates a figure from one sample per round.
    pub(crate) fn new(name: impl Into<String>, unit: Unit, samples: &[f64], goal: Goal) -> Self {
        let value = Spread::of(samples);
        let holds = goal.holds(value.median);
        Self { name: name.into(), detail: false, unit, value, goal, holds, compared: Vec::new() }
    }

    /// Marks the figure as one that short tables leave out.
    pub(crate) fn into_detail(mut self) -> Self {
        self.detail = true;
        self
    }

    /// Adds a comparison with samples of the same rounds; `own` are the figure's.
    pub(crate) fn compare(mut self, to: impl Into<String>, own: &[f64], others: &[f64], goal: Goal) -> Self {
        let ratios: Vec<f64> = own.iter().zip(others).map(|(own, other)| own / other).collect();
        let ratio = Spread::of(&ratios);
        let holds = goal.holds(ratio.median);
        self.compared.push(Comparison { to: to.into(), value: Spread::of(others), ratio, goal, holds });
        self
    }
}

impl Spread {
    /// Computes the spread of at least one sample.
    pub(crate) fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Self { median: (at(last / 2) + at(last.div_ceil(2))) / 2.0, min: at(0), max: at(last) }
    }

    fn text(&self, unit: Unit) -> String {
        let Self { median, min, max } = self;
        format!("{} ({} … {})", unit.text(*median), unit.text(*min), unit.text(*max))
    }
}

impl Goal {
    fn holds(self, value: f64) -> Option<bool> {
        match self {
            Self::AtLeast(least) => Some(value >= least),
            Self::AtMost(most) => Some(value <= most),
            Self::None => None,
        }
    }
}

impl Unit {
    /// Formats a value with three or four digits and its unit.
    pub(crate) fn text(self, value: f64) -> String {
        let scaled = |step: f64, units: [&str; 4]| {
            let mut value = value;
            let mut units = units.into_iter();
            let mut unit = units.next().unwrap_or_default();
            for larger in units {
                if value.abs() < step {
                    break;
                }
                value /= step;
                unit = larger;
            }
            format!("{}{unit}", digits(value))
        };
        match self {
            Self::PerSecond => scaled(1e3, ["/s", " k/s", " M/s", " G/s"]),
            Self::BytesPerSecond => scaled(1e3, [" B/s", " kB/s", " MB/s", " GB/s"]),
            Self::Bytes => scaled(1024.0, [" B", " KiB", " MiB", " GiB"]),
            Self::Microseconds => format!("{} us", digits(value)),
            Self::Ratio => digits(value),
        }
    }
}

fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_median_and_extremes() {
        let spread = |samples: &[f64]| {
            let Spread { median, min, max } = Spread::of(samples);
            (median, min, max)
        };
        assert_eq!(spread(&[3.0, 1.0, 2.0]), (2.0, 1.0, 3.0));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), (2.5, 1.0, 4.0));
        assert_eq!(spread(&[7.0]), (7.0, 7.0, 7.0));
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let (own, raw) = ([10.0, 30.0, 20.0], [10.0, 10.0, 5.0]);
        let figure = Figure::new("copy", Unit::BytesPerSecond, &own, Goal::AtLeast(20.0));
        let figure = figure.compare("raw", &own, &raw, Goal::AtMost(2.0));
        assert_eq!(figure.holds, Some(true));
        let [comparison] = figure.compared.as_slice() else { panic!("one comparison") };
        assert_eq!(comparison.ratio, Spread { median: 3.0, min: 1.0, max: 4.0 });
        assert_eq!(comparison.holds, Some(false));
    }

    #[test]
    fn a_report_survives_its_json() {
        let mut report = Report::new("copy", &Rounds { count: 1, seconds: 0.5 });
        report.set("io", "mio");
        let goals = [Goal::AtLeast(1.0), Goal::AtMost(2.0), Goal::None];
        report.figures.extend(goals.map(|goal| Figure::new("copy", Unit::Bytes, &[1.5], goal)));
        let text = serde_json::to_string(&report).expect("JSON");
        let read: Report = serde_json::from_str(&text).expect("the same report");
        assert_eq!(read.to_string(), report.to_string());
        assert_eq!(read.figures.iter().map(|figure| figure.goal).collect::<Vec<_>>(), goals);
    }

    #[test]
    fn values_have_few_digits_and_a_unit() {
        for (unit, value, text) in [
            (Unit::PerSecond, 5_123_456.0, "5.12 M/s"),
            (Unit::PerSecond, 12.34, "12.3/s"),
            (Unit::BytesPerSecond, 4.2e9, "4.20 GB/s"),
            (Unit::Bytes, 1536.0, "1.50 KiB"),
            (Unit::Microseconds, 31.26, "31.3 us"),
            (Unit::Ratio, 0.914, "0.914"),
        ] {
            assert_eq!(unit.text(value), text);
        }
    }
}
