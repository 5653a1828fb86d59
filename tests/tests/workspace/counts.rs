//! The comparison of instruction counts with committed figures; `.ci/run counts` counts.

use std::path::Path;

use hipr_tests::counts::{BENCHMARKS, Figures, Runner, compare, parse, render};

static COMMITTED: &str = include_str!("../../counts.tsv");

fn committed() -> Figures {
    parse(COMMITTED).expect("the committed table can be read")
}

/// The committed figures with one of them changed.
fn changed(name: &str, factor: f64) -> Figures {
    let change = |(other, figure): (String, f64)| {
        let factor = if other == name { factor } else { 1.0 };
        (other, figure * factor)
    };
    committed().into_iter().map(change).collect()
}

#[test]
fn every_path_has_a_committed_figure_and_does_what_it_says() {
    let committed = committed();
    let names: Vec<&str> = committed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, BENCHMARKS.map(|benchmark| benchmark.name));
    assert!(committed.iter().all(|(_, figure)| *figure > 1.0));
    assert_eq!(render(&committed), COMMITTED);
    let runner = Runner::new(Path::new(env!("CARGO_BIN_EXE_hipr-tests"))).expect("a worker");
    BENCHMARKS.iter().for_each(|benchmark| assert_eq!(runner.run(benchmark, 1_000), Ok(())));
}

#[test]
fn ten_per_cent_more_instructions_of_any_path_fail() {
    for benchmark in &BENCHMARKS {
        for (factor, says) in [(1.10, "SLOWER"), (1.035, "SLOWER"), (0.90, "faster")] {
            let (report, is_right) = compare(&committed(), &changed(benchmark.name, factor));
            let line = report.lines().find(|line| line.contains(says)).expect(says);
            assert!(!is_right && line.starts_with(benchmark.name), "{report}");
        }
        let (report, is_right) = compare(&committed(), &changed(benchmark.name, 1.025));
        assert!(is_right, "{report}");
    }
}

#[test]
fn a_path_that_only_one_of_the_two_knows_fails() {
    let all = committed();
    let fewer = all[1..].to_vec();
    for (committed, measured) in [(&all, &fewer), (&fewer, &all)] {
        let (report, is_right) = compare(committed, measured);
        assert!(!is_right && report.contains("renew the table"), "{report}");
    }
    assert!(!compare(&changed("encode", 0.0), &all).1, "no count is nothing to compare with");
}

#[test]
fn a_table_that_is_none_is_refused() {
    assert!(parse("encode 12").is_err());
    assert!(parse("encode\ttwelve").is_err());
    assert_eq!(parse("# nothing\n\n"), Ok(Figures::new()));
}
