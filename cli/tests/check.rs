//! `hipr check` with a real program: its reports in each form, suppressions, exit codes, and the mistakes of the program's own calls.
//! Without the compiler (`tests/toolchain/setup.sh`) the tests that need the program are skipped, or fail if HIPR_REQUIRE_COMPILER is set.

use hipr_tests::toolchain::compile;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check/mistakes.hip");

/// Returns the program, compiled once; `None` without a compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let name = format!("check-mistakes-{}", std::process::id());
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
    compile(Path::new(SOURCE), "-O0", out, &name, "hipr check did not run")
}

/// Returns the number of the line that is marked with `mark`.
fn line(mark: &str) -> u64 {
    let source = fs::read_to_string(SOURCE).expect("the source");
    let marked = format!("// {mark}");
    let mut lines = (1..).zip(source.lines()).filter(|(_, line)| line.trim_end().ends_with(&marked));
    let (number, _) = lines.next().expect("a marked line");
    assert_eq!(lines.next(), None, "{mark} marks one line");
    number
}

fn check(options: &[&str], program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(HIPR);
    command.arg("check").args(options).arg("--").arg(program).args(arguments);
    command.output().expect("hipr runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the check with a report in a file; returns that and the exit code.
fn reported(format: &str, options: &[&str], program: &Path, arguments: &[&str]) -> (Value, Option<i32>) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report");
    let file_name = file.to_str().expect("a name of text");
    let options: Vec<_> = ["--format", format, "-o", file_name].iter().chain(options).copied().collect();
    let output = check(&options, program, arguments);
    let said = stderr(&output);
    let text = fs::read_to_string(&file).unwrap_or_else(|why| panic!("{why}: {said}"));
    let summary = said.lines().find(|line| line.starts_with("hipr check: ")).expect("how much was found");
    assert!(summary.ends_with(&format!("in {file_name}")), "{summary}");
    (serde_json::from_str(&text).expect("JSON"), output.status.code())
}

fn json(options: &[&str], program: &Path, arguments: &[&str]) -> (Value, Option<i32>) {
    reported("json", options, program, arguments)
}

/// Returns the kind and line of each finding.
fn kinds(report: &Value) -> Vec<(&str, u64)> {
    let findings = report["findings"].as_array().expect("findings");
    findings
        .iter()
        .map(|found| (found["kind"].as_str().expect("a kind"), found["line"].as_u64().unwrap_or(0)))
        .collect()
}

#[test]
fn text_shows_the_access_its_source_and_its_memory() {
    let Some(program) = program() else { return };
    let output = check(&["--tools", "memory"], program, &["out-of-bounds"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(86), "{text}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "over\n");
    for part in [
        "out-of-bounds: store of 4 bytes outside of memory",
        &format!("mistakes.hip:{}:", line("put")),
        &format!("{} |     to[index] = value; // put", line("put")),
        "in kernel fill(float*, int), block (3,0,0), thread (232,0,0)",
        "is 0 bytes behind the end of 4000 bytes at 0x",
        "allocated by hipMalloc",
        &format!("mistakes.hip:{}", line("allocation")),
        "1 finding (memory)",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(!text.contains('\x1b'), "colours are for terminals only:\n{text}");
}

#[test]
fn json_has_all_that_is_known() {
    let Some(program) = program() else { return };
    let (report, code) = json(&["--tools", "memory"], program, &["out-of-bounds"]);
    assert_eq!(code, Some(86));
    assert_eq!(report["version"], 1);
    assert_eq!(report["tools"], serde_json::json!(["memory"]));
    assert_eq!(report["program"][1], "out-of-bounds");
    assert_eq!([&report["suppressed"], &report["exit_code"], &report["program_exit_code"]], [0, 86, 0]);
    assert_eq!(kinds(&report), [("out-of-bounds", line("put"))]);
    let found = &report["findings"][0];
    assert_eq!(found["tool"], "memory");
    assert_eq!([&found["kernel"], &found["kernel_name"]], ["_Z4fillPfi", "fill(float*, int)"]);
    assert_eq!(found["file"], SOURCE);
    assert_eq!(
        [&found["block"], &found["thread"]],
        [&serde_json::json!([3, 0, 0]), &serde_json::json!([232, 0, 0])]
    );
    let frames = found["frames"].as_array().expect("frames").iter();
    let frames: Vec<_> = frames.map(|frame| (frame["function"].as_str(), frame["line"].as_u64())).collect();
    let expected = [("put(float*, int, float)", "put"), ("fill(float*, int)", "call")];
    assert_eq!(frames, expected.map(|(function, mark)| (Some(function), Some(line(mark)))));
    let access = &found["access"];
    assert_eq!([&access["kind"], &access["memory"]], ["store", "device"]);
    assert_eq!(access["len_bytes"], 4);
    let near = &found["near"];
    let number = |value: &Value| {
        let text = value.as_str().and_then(|text| text.strip_prefix("0x")).expect("a hexadecimal number");
        u64::from_str_radix(text, 16).expect("a hexadecimal number")
    };
    assert_eq!(number(&access["address"]), number(&near["address"]) + 4000);
    assert_eq!(near["len_bytes"], 4000);
    // It is freed later.
    assert_eq!([&near["freed"], &near["freed_at"]], [&false.into(), &Value::Null]);
    let allocated = &near["allocated_at"];
    assert_eq!(allocated["function"], "hipMalloc");
    let lines: Vec<_> =
        allocated["frames"].as_array().expect("frames").iter().map(|frame| &frame["line"]).collect();
    assert!(lines.contains(&&Value::from(line("allocation"))), "{lines:?}");
    assert_eq!(found["count"], 1);
}

#[test]
fn a_race_has_both_accesses() {
    let Some(program) = program() else { return };
    let (report, code) = json(&["--tools", "race"], program, &["block-race"]);
    assert_eq!(code, Some(86));
    let findings = report["findings"].as_array().expect("findings");
    assert!(!findings.is_empty());
    for found in findings {
        assert_eq!([&found["kind"], &found["access"]["memory"]], ["block-race", "lds"]);
        let mut lines = [&found["line"], &found["other"]["line"]].map(|line| line.as_u64().unwrap_or(0));
        lines.sort_unstable();
        assert_eq!(lines, [line("write"), line("read")], "{found:#}");
        assert_eq!(found["other"]["kernel_name"], "neighbours(int*)");
    }
}

#[test]
fn only_the_tools_that_are_asked_for_look() {
    let Some(program) = program() else { return };
    for (tools, mistake) in [("race,sync", "out-of-bounds"), ("memory,sync", "block-race"), ("race", "host")]
    {
        let (report, code) = json(&["--tools", tools], program, &[mistake, "3"]);
        assert_eq!((kinds(&report), code), (Vec::new(), Some(3)), "{tools} {mistake}");
    }
}

/// The lines of what the program frees wrongly, in their order.
fn host_mistakes() -> [(&'static str, u64); 4] {
    [
        ("wrong-free", line("inside")),
        ("wrong-free", line("function")),
        ("double-free", line("again")),
        ("wrong-free", line("host")),
    ]
}

#[test]
fn wrong_frees_have_the_lines_of_their_calls() {
    let Some(program) = program() else { return };
    let (report, code) = json(&["--tools", "memory"], program, &["host"]);
    assert_eq!((kinds(&report), code), (host_mistakes().to_vec(), Some(86)));
    let functions: Vec<_> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|found| &found["host"]["function"])
        .collect();
    assert_eq!(functions, ["hipFree", "hipHostFree", "hipFree", "hipFree"]);
    let freed = |index: usize| &report["findings"][index]["near"]["freed"];
    assert_eq!(
        [freed(0), freed(1), freed(2), freed(3)],
        [&false.into(), &false.into(), &true.into(), &Value::Null]
    );
    let notes =
        ["the pointer is 16 bytes into the allocation", "hipHostFree does not free what hipMalloc allocates"];
    assert_eq!([&report["findings"][0]["note"], &report["findings"][1]["note"]], notes);
    let twice = &report["findings"][2];
    let frame_lines = |stack: &Value| -> Vec<u64> {
        stack["frames"].as_array().into_iter().flatten().filter_map(|frame| frame["line"].as_u64()).collect()
    };
    assert!(frame_lines(&twice["near"]["allocated_at"]).contains(&line("allocation")), "{twice:#}");
    assert!(frame_lines(&twice["near"]["freed_at"]).contains(&line("free")), "{twice:#}");
}

#[test]
fn a_program_that_crashes_leaves_what_was_found_before() {
    let Some(program) = program() else { return };
    let (report, code) = json(&["--tools", "memory"], program, &["crash"]);
    assert_eq!((kinds(&report), code), (host_mistakes().to_vec(), Some(86)));
    assert_eq!(report["program_exit_code"], 128 + 6);
}

#[test]
fn leaks_are_found_when_asked_for_and_equal_ones_are_one() {
    let Some(program) = program() else { return };
    let (report, code) = json(&[], program, &["leak"]);
    assert_eq!((kinds(&report), code), (Vec::new(), Some(0)));
    let (report, code) = json(&["--leaks"], program, &["leak"]);
    assert_eq!(code, Some(86));
    let leaks: Vec<_> = report["findings"].as_array().expect("findings").iter().collect();
    let mut found: Vec<_> = leaks
        .iter()
        .map(|leak| {
            let lines =
                leak["frames"].as_array().expect("frames").iter().filter_map(|frame| frame["line"].as_u64());
            (
                leak["host"]["function"].as_str(),
                leak["count"].as_u64(),
                leak["near"]["len_bytes"].as_u64(),
                lines.collect::<Vec<_>>(),
            )
        })
        .collect();
    found.sort();
    assert_eq!(found.len(), 2, "{report:#}");
    assert_eq!((found[0].0, found[0].1, found[0].2), (Some("hipHostMalloc"), Some(1), Some(500)));
    assert_eq!(found[0].3[0], line("pinned"));
    assert_eq!((found[1].0, found[1].1, found[1].2), (Some("hipMalloc"), Some(3), Some(3000)));
    assert!(found[1].3.contains(&line("leaks")), "{found:?}");
}

/// Fails if an object has a field that SARIF 2.1.0 does not know there: its schema allows no others.
fn assert_fields(object: &Value, allowed: &[&str]) {
    let fields = object.as_object().expect("an object").keys();
    fields.for_each(|field| assert!(allowed.contains(&field.as_str()), "{field} in {object:#}"));
}

/// Fails if a location is none as SARIF 2.1.0 describes it.
fn assert_location(location: &Value) {
    assert_fields(location, &["id", "physicalLocation", "logicalLocations", "message", "annotations"]);
    assert_fields(&location["message"], &["text", "markdown", "id", "arguments"]);
    let place = &location["physicalLocation"];
    assert_fields(place, &["address", "artifactLocation", "region", "contextRegion"]);
    assert_fields(&place["artifactLocation"], &["uri", "uriBaseId", "index", "description"]);
    let region = &place["region"];
    assert_fields(region, &["startLine", "startColumn", "endLine", "endColumn", "snippet", "message"]);
    for (_, number) in region.as_object().expect("an object") {
        assert!(number.as_u64().is_some_and(|number| number > 0), "{region:#}");
    }
}

#[test]
fn each_function_that_allocates_or_frees_is_seen() {
    let Some(program) = program() else { return };
    let (report, _) = json(&["--tools", "memory", "--leaks"], program, &["each"]);
    let of_kind = |kind: &str| -> Vec<(String, u64)> {
        let findings = report["findings"].as_array().expect("findings").iter();
        let findings = findings.filter(|found| found["kind"] == kind).map(|found| {
            let function = found["host"]["function"].as_str().expect("a function").to_owned();
            (function, found["near"]["len_bytes"].as_u64().unwrap_or(0))
        });
        findings.collect()
    };
    let mut leaks = of_kind("leak");
    leaks.sort_by_key(|(_, len_bytes)| *len_bytes);
    let allocating = [
        "hipMalloc",
        "hipExtMallocWithFlags",
        "hipMallocManaged",
        "hipHostMalloc",
        "hipHostAlloc",
        "hipMemAllocHost",
        "hipMallocPitch",
        "hipMemAllocPitch",
        "hipMalloc3D",
        "hipMallocAsync",
        "hipMallocFromPoolAsync",
    ];
    let expected: Vec<_> =
        (1..).zip(allocating).map(|(number, name)| (name.to_owned(), 256 * number)).collect();
    assert_eq!(leaks, expected);
    let freeing = [
        "hipFree",
        "hipFreeAsync",
        "hipHostFree",
        "hipFreeHost",
        "hipFreeArray",
        "hipArrayDestroy",
        "hipIpcCloseMemHandle",
    ];
    assert_eq!(of_kind("wrong-free"), freeing.map(|name| (name.to_owned(), 0)));
}

#[test]
fn a_call_that_fails_for_another_reason_is_no_wrong_free() {
    let Some(program) = program() else { return };
    let (report, code) = json(&["--leaks"], program, &["capture"]);
    assert_eq!((kinds(&report), code), (Vec::new(), Some(0)), "{report:#}");
}

#[test]
fn sarif_has_rules_results_and_places() {
    let Some(program) = program() else { return };
    let (report, code) = reported("sarif", &["--tools", "memory,race"], program, &["out-of-bounds"]);
    assert_eq!(code, Some(86));
    assert_eq!(report["version"], "2.1.0");
    let run = &report["runs"][0];
    let rules: Vec<_> = run["tool"]["driver"]["rules"].as_array().expect("rules").iter().collect();
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "hipr check");
    assert_fields(&report, &["$schema", "version", "runs"]);
    assert_fields(run, &["tool", "invocations", "results"]);
    assert_fields(driver, &["name", "version", "informationUri", "rules"]);
    for rule in &rules {
        let text = rule["shortDescription"]["text"].as_str().unwrap_or("");
        assert!(text.ends_with('.'), "{rule:#}");
        assert_fields(rule, &["id", "shortDescription", "fullDescription", "help", "helpUri", "properties"]);
    }
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 1, "{report:#}");
    let result = &results[0];
    let fields =
        ["ruleId", "ruleIndex", "level", "message", "locations", "relatedLocations", "occurrenceCount"];
    assert_fields(result, &fields);
    for places in ["locations", "relatedLocations"] {
        result[places].as_array().expect("places").iter().for_each(assert_location);
    }
    assert_eq!((&result["level"], &result["occurrenceCount"]), (&"error".into(), &1.into()));
    assert_eq!(result["ruleId"], "out-of-bounds");
    assert_eq!(rules[result["ruleIndex"].as_u64().expect("an index") as usize]["id"], "out-of-bounds");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], format!("file://{SOURCE}"));
    assert_eq!(place["region"]["startLine"], line("put"));
    let related = result["relatedLocations"].as_array().expect("related places");
    assert_eq!(related[0]["message"]["text"], "allocated here");
    assert_eq!(related[0]["physicalLocation"]["region"]["startLine"], line("allocation"));
}

#[test]
fn what_is_suppressed_is_not_reported_and_does_not_count() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("known");
    let with = |text: &str| {
        fs::write(&file, text).expect("the file is written");
        let name = file.to_str().expect("a name of text");
        (json(&["--tools", "memory", "--suppress", name], program, &["out-of-bounds", "5"]), {
            let output = check(&["--tools", "memory", "--suppress", name], program, &["out-of-bounds", "5"]);
            stderr(&output)
        })
    };
    for line in [
        "out-of-bounds".to_owned(),
        "out-of-bounds fill".to_owned(),
        "* fi* mistakes.hip".to_owned(),
        format!("out-of-bounds * */mistakes.hip:{} # known", line("put")),
        format!("out-of-bounds * mistakes.hip:{}", line("call")),
    ] {
        let ((report, code), text) = with(&line);
        assert_eq!((kinds(&report), code), (Vec::new(), Some(5)), "{line}");
        assert_eq!(report["suppressed"], 1, "{line}");
        assert!(text.contains("nothing found, 1 suppressed"), "{line}: {text}");
        assert!(!text.contains("nothing was suppressed"), "{line}: {text}");
    }
    let ((report, code), text) = with("\nout-of-bounds other_kernel\n");
    assert_eq!((kinds(&report).len(), code), (1, Some(86)));
    assert!(text.contains("nothing was suppressed by line 2"), "{text}");
}

#[test]
fn the_exit_code_is_the_programs_if_nothing_is_found() {
    let Some(program) = program() else { return };
    let (report, code) = json(&["--leaks"], program, &["clean", "7"]);
    assert_eq!((kinds(&report), code), (Vec::new(), Some(7)));
    let output = check(&["--exit-code", "12", "--limit", "0"], program, &["out-of-bounds"]);
    assert_eq!(output.status.code(), Some(12));
    let text = stderr(&output);
    assert!(text.contains("1 are not shown (--limit)"), "{text}");
}

#[test]
fn what_is_wrong_with_the_options_is_said_before_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = folder.path().join("ran");
    let bad = folder.path().join("bad");
    fs::write(&bad, "# known\nrace\n").expect("the file is written");
    let bad = bad.to_str().expect("a name of text");
    let nowhere = folder.path().join("no/report");
    let nowhere = nowhere.to_str().expect("a name of text");
    for (options, said) in [
        (["--tools", "memroy"], "memory, init, race, sync"),
        (["--suppress", bad], "line 2: 'race' is no kind of finding"),
        (["--suppress", "/nowhere/known"], "cannot read /nowhere/known"),
        (["--format", "xml"], "sarif"),
        (["-o", nowhere], "cannot write"),
        (["--exit-code", "300"], "300"),
    ] {
        let touch = [ran.to_str().expect("a name of text")];
        let output = check(&options, Path::new("touch"), &touch);
        let text = stderr(&output);
        assert!(!output.status.success() && text.contains(said), "{options:?}: {text}");
        assert!(!text.contains("panicked") && !text.contains("backtrace"), "{text}");
        assert!(!ran.exists(), "{options:?}");
    }
    let output = check(&[], Path::new("/nowhere/program"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot start /nowhere/program"), "{}", stderr(&output));
}
