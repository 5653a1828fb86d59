//! The committed bounds, and a program that is held to them.

use std::fs;
use std::process::Command;

use hipr_tests::Link;
use hipr_tests::distance::{
    Bound, Measured, PROGRAMS, assert_bound, client_results, committed, keep_largest, parse, render, renewed,
    renewed_page, report, run,
};

fn bound(flights: u64, bytes_to_client: u64) -> Bound {
    Bound { program: "it".to_owned(), mode: "-".to_owned(), flights, bytes_to_client }
}

fn measured(bound: &Bound) -> Measured {
    Measured {
        program: bound.program.clone(),
        mode: bound.mode.clone(),
        flights: bound.flights,
        bytes_to_worker: 1,
        bytes_to_client: bound.bytes_to_client,
        seconds: 0.5,
        waits: vec![("MALLOC".to_owned(), bound.flights)],
    }
}

#[test]
fn every_program_has_a_committed_bound() {
    let bounds = committed();
    let named: Vec<(&str, &str)> =
        bounds.iter().map(|bound| (bound.program.as_str(), bound.mode.as_str())).collect();
    assert_eq!(named, PROGRAMS.map(|program| (program.name, program.mode)));
    assert_eq!(render(&bounds), include_str!("../../distance.tsv"));
    assert!(bounds.iter().all(|bound| bound.flights > 0 && bound.bytes_to_client > 0));
}

#[test]
fn the_page_has_the_committed_bounds() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/distance.md");
    let page = fs::read_to_string(page).expect("docs/distance.md");
    let bounds = committed();
    assert!(renewed_page(&page, &bounds) == page, "hipr-tests distance --renew writes the page");
    for Bound { program, mode, .. } in &bounds {
        let row = format!("| {program} | {mode} | ");
        assert_eq!(page.lines().filter(|line| line.starts_with(&row)).count(), 1, "{row}");
    }
}

#[test]
fn more_is_refused_and_so_is_much_less() {
    for (flights, bytes, says) in [
        (74, 536_905_316, ""),
        (24, 67_113_164, ""),
        (75, 536_905_316, "TOO MANY flights"),
        (74, 536_905_317, "TOO MANY bytes"),
        (23, 536_905_316, "FEWER flights"),
        (74, 67_113_163, "FEWER bytes"),
    ] {
        let result = bound(74, 536_905_316).check(flights, bytes);
        assert_eq!(result.is_ok(), says.is_empty(), "{result:?}");
        assert!(result.err().unwrap_or_default().starts_with(says));
    }
    for flights in 1..=3 {
        assert!(bound(flights, 1_500).check(0, 1_500).is_err(), "none, not {flights}");
    }
}

#[test]
fn a_report_fails_for_each_program_that_is_out_of_its_bound_or_has_none() {
    let bounds = committed();
    let all: Vec<Measured> = bounds.iter().map(measured).collect();
    let (table, is_right) = report(&bounds, &all);
    assert!(is_right && table.lines().skip(1).all(|line| line.ends_with("ok")), "{table}");
    for i in 0..all.len() {
        for factor in [0, 2] {
            let mut changed = all.clone();
            changed[i].flights *= factor;
            let (table, is_right) = report(&bounds, &changed);
            let wrong = table.lines().skip(1).filter(|line| !line.ends_with("ok"));
            assert!(!is_right && wrong.count() == 2, "{table}");
        }
        let others: Vec<Bound> = bounds.iter().filter(|bound| **bound != bounds[i]).cloned().collect();
        assert!(!report(&others, &all).1, "{} without a bound", bounds[i].program);
    }
}

#[test]
fn renewed_bounds_are_what_was_measured_and_keep_the_rest() {
    let before = committed();
    let mut one = measured(&before[1]);
    (one.flights, one.bytes_to_client) = (3, 4097);
    let after = renewed(&before, &[one]);
    assert_eq!((after[1].flights, after[1].bytes_to_client), (3, 16_384));
    assert_eq!((&after[0], &after[2..]), (&before[0], &before[2..]));
    for (program, bytes, flights, rounded) in [
        ("IREE matmul_f32", 100_000, 44, 114_688),
        ("llama.cpp gpt2.gguf", 100_000, 41, 114_688),
        ("llama.cpp gpt2.gguf", 4_096, 41, 16_384),
        ("llama.cpp gpt2.gguf", 4_095, 41, 4_096),
        ("tinygrad gpt2.py", 60, 41, 256),
    ] {
        let i = before.iter().position(|bound| bound.program == program).expect("a bound");
        let mut of_a_client = measured(&before[i]);
        (of_a_client.flights, of_a_client.bytes_to_client) = (41, bytes);
        let client = &renewed(&before, &[of_a_client])[i];
        assert_eq!((client.flights, client.bytes_to_client), (flights, rounded), "{program}");
    }
    assert_eq!(parse(&render(&after)), Ok(after.clone()));
    let page = format!(
        "# Page\n\n| {} | {} | 9 | 9 | more |\n| other | - | 9 | 9 |\n",
        after[1].program, after[1].mode
    );
    let renewed = format!(
        "# Page\n\n| {} | {} | 3 | 16384 |\n| other | - | 9 | 9 |\n",
        after[1].program, after[1].mode
    );
    assert_eq!(renewed_page(&page, &after), renewed);
}

#[test]
fn of_several_measurements_the_largest_figures_count() {
    let bounds = committed();
    let (mut one, mut other) = (measured(&bounds[0]), measured(&bounds[0]));
    (one.flights, one.bytes_to_client, one.seconds) = (5, 900, 0.25);
    (other.flights, other.bytes_to_client, other.waits) = (6, 800, vec![("INIT".to_owned(), 6)]);
    let mut all = [one, measured(&bounds[1])];
    keep_largest(&mut all, &[other]);
    assert_eq!((all[0].flights, all[0].bytes_to_client, all[0].seconds), (6, 900, 0.5));
    assert_eq!((all[0].waits(), &all[1]), ("INIT 6".to_owned(), &measured(&bounds[1])));
}

#[test]
fn a_table_that_is_none_is_refused() {
    for line in ["it\t-\t3", "it\t-\tthree\t4", "it\t-\t3\t4\t5", "\t-\t3\t4", "it - 3 4"] {
        assert!(parse(line).is_err(), "{line:?}");
    }
    assert_eq!(parse("# nothing\n\n"), Ok(Vec::new()));
}

#[test]
fn results_of_the_clients_have_to_be_there_and_right() {
    let results = |failure: &str, flights: &str| {
        format!(
            r#"[{{"client": "IREE", "program": "matmul_f32", "mode": "streams, async", "worker": "embedded", "failure": null,
                "seconds": 1.0}},
               {{"client": "IREE", "program": "matmul_f32", "mode": "streams, async", "worker": "separate", "failure": {failure},
                "seconds": 1.5, {flights} "waits": {{"INIT": 1, "MALLOC": 7}}, "bytes_to_worker": 7, "bytes_to_client": 9}}]"#
        )
    };
    let file = tempfile::NamedTempFile::new().expect("a file");
    let read = |text: String| {
        fs::write(file.path(), text).expect("written");
        client_results(&PROGRAMS[..4], &[file.path()])
    };
    let [found] = &read(results("null", r#""flights": 8,"#)).expect("the results")[..] else {
        panic!("the one program of a client among the first four")
    };
    assert_eq!((found.flights, found.bytes_to_worker, found.bytes_to_client, found.seconds), (8, 7, 9, 1.5));
    assert_eq!(found.waits(), "MALLOC 7, INIT 1");
    assert!(read(results("\"wrong\"", r#""flights": 8,"#)).is_err(), "its results are wrong");
    assert!(read(results("null", "")).is_err(), "it was not counted");
    assert!(read("[]".to_owned()).is_err());
    assert!(read("{".to_owned()).is_err());
}

#[test]
fn a_small_program_keeps_to_its_bound() {
    let folder = tempfile::tempdir().expect("a folder");
    let statistics = folder.path().join("stats.json");
    let mut program = Command::new(env!("CARGO_BIN_EXE_twelve-calls"));
    let run = run(program.env("HIPR_STATS_FILE", &statistics), Link::default());
    let (traffic, _) = run.unwrap_or_else(|why| panic!("{why}"));
    let statistics = fs::read_to_string(statistics).expect("the library's statistics");
    let statistics: serde_json::Value = serde_json::from_str(&statistics).expect("a line of JSON");
    assert_eq!(statistics["calls"], 12);
    assert_bound("twelve-calls", "-", &traffic);
}

#[test]
fn a_program_that_fails_or_calls_nothing_is_not_measured() {
    for (program, says) in [("false", "fails"), ("true", "never called"), ("/no/such/program", "cannot run")]
    {
        let why = run(&mut Command::new(program), Link::default()).expect_err(program);
        assert!(why.contains(says), "{why}");
    }
}
