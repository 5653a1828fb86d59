//! `hipr profile` with kernels of which it can be worked out by hand what they do, and its reports in each form.
//! Without the compiler (`tests/toolchain/setup.sh`) these tests are skipped, or fail if HIPR_REQUIRE_COMPILER is set.

use hipr_tests::toolchain::{compile, installed};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/profile/kernels.hip");

/// Returns the program, compiled once; `None` without a compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let name = format!("profile-kernels-{}", std::process::id());
        let out = Path::new(env!("CARGO_TARGET_TMPDIR"));
        compile(Path::new(SOURCE), "-O3", out, &name, "hipr profile did not run")
    };
    PROGRAM.get_or_init(build).as_deref()
}

fn profile(options: &[&str], program: &Path) -> Output {
    let mut command = Command::new(HIPR);
    command.arg("profile").args(options).arg("--").arg(program).output().expect("hipr runs")
}

/// Runs the program with a report in a file; returns the text of that.
fn reported(format: &str, options: &[&str], program: &Path) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report");
    let file_name = file.to_str().expect("a name of text");
    let options: Vec<_> = ["--format", format, "-o", file_name].iter().chain(options).copied().collect();
    let output = profile(&options, program);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    fs::read_to_string(&file).expect("a report")
}

fn kernels(program: &Path) -> Vec<Value> {
    let report: Value = serde_json::from_str(&reported("json", &[], program)).expect("JSON");
    report["kernels"].as_array().expect("kernels").clone()
}

fn find<'a>(kernels: &'a [Value], name: &str) -> &'a Value {
    let begin = format!("{name}(");
    let is_named = |kernel: &&Value| kernel["name"].as_str().is_some_and(|name| name.starts_with(&begin));
    kernels.iter().find(is_named).unwrap_or_else(|| panic!("no kernel {name}"))
}

/// What each kernel's counts have to be. Those that are not named are not looked at.
const BY_HAND: [(&str, &[(&str, u64)]); 16] = [
    (
        "copy",
        &[
            ("memory_instructions", 32),
            ("loaded_bytes", 4096),
            ("stored_bytes", 4096),
            ("memory_accesses", 32),
            ("cache_lines", 16 * (2 + 2)),
            ("splits", 0),
            ("f32_flops", 0),
        ],
    ),
    ("strided", &[("loaded_bytes", 1024), ("cache_lines", 4 * (64 + 2)), ("memory_accesses", 8)]),
    ("wide", &[("loaded_bytes", 1024), ("stored_bytes", 1024), ("cache_lines", 16), ("memory_accesses", 2)]),
    (
        "saxpy",
        &[
            ("f32_flops", 2 * 1000),
            ("loaded_bytes", 8000),
            ("stored_bytes", 4000),
            // The last wave's 40 lanes have 160 bytes each time: two lines.
            ("cache_lines", 3 * 16 * 2),
            ("splits", 1),
        ],
    ),
    ("doubles", &[("f64_flops", 3 * 128), ("f32_flops", 0), ("loaded_bytes", 1024), ("cache_lines", 16)]),
    ("halves", &[("f16_flops", 4 * 64), ("f16_matrix_flops", 0), ("loaded_bytes", 256)]),
    ("neighbours", &[("lds_instructions", 2), ("lds_bytes", 512), ("lds_cycles", 4), ("lds_conflicts", 0)]),
    ("one_bank", &[("lds_bytes", 512), ("lds_cycles", 128), ("lds_conflicts", 128 - 4)]),
    ("shared_word", &[("lds_bytes", 512), ("lds_cycles", 2 + 2), ("lds_conflicts", 0)]),
    ("pairs", &[("lds_bytes", 1024), ("lds_cycles", 4 + 4), ("lds_conflicts", 0)]),
    (
        "counters",
        // Two lanes store and load, in one cycle each; the atomics need 16 cycles for each half of the wave.
        &[("lds_bytes", 8 + 256 + 8), ("lds_cycles", 1 + 32 + 1), ("lds_conflicts", 30), ("splits", 2)],
    ),
    ("histogram", &[("atomic_bytes", 1024), ("cache_lines", 4), ("memory_accesses", 4), ("loaded_bytes", 0)]),
    ("divided", &[("splits", 2), ("stored_bytes", 512)]),
    // Lane 0 stays outside, and one lane leaves behind each round but the last.
    ("rounds", &[("splits", 1 + 62), ("stored_bytes", 256)]),
    (
        "product",
        &[
            ("matrix_instructions", 2),
            ("f16_flops", 2 * 2 * 32 * 32 * 8),
            ("f16_matrix_flops", 2 * 2 * 32 * 32 * 8),
            ("f32_flops", 0),
        ],
    ),
    ("large", &[("lds_bytes", 4 * 2 * 512), ("lds_cycles", 8 * 4), ("lds_conflicts", 0)]),
];

#[test]
fn counts_are_those_that_were_worked_out_by_hand() {
    let Some(program) = program() else { return };
    let kernels = kernels(program);
    assert_eq!(kernels.len(), BY_HAND.len());
    for (name, expected) in BY_HAND {
        let counts = &find(&kernels, name)["counts"];
        for (count, value) in expected {
            // What is 0 is left out.
            assert_eq!(counts[count].as_u64().unwrap_or(0), *value, "{name}: {count} of {counts:#}");
        }
    }
}

#[test]
fn an_instruction_has_its_own_counts() {
    let Some(program) = program() else { return };
    let kernels = kernels(program);
    let instruction = |kernel: &str, mnemonic: &str| {
        let all = find(&kernels, kernel)["instructions"].as_array().expect("instructions").clone();
        let mut named = all.into_iter().filter(|one| one["mnemonic"] == mnemonic);
        let found = named.next().unwrap_or_else(|| panic!("{kernel} has no {mnemonic}"));
        assert!(named.next().is_none(), "{kernel} has one {mnemonic}");
        found
    };
    // The half of the lanes of two waves; the lanes of each round, 63 + 62 + ... + 1.
    for (kernel, executed, lanes) in [("divided", 2, 64), ("rounds", 63, 63 * 64 / 2)] {
        let counts = &instruction(kernel, "v_bfrev_b32")["counts"];
        assert_eq!(
            (&counts["instructions"], &counts["lanes"]),
            (&executed.into(), &lanes.into()),
            "{kernel}"
        );
    }
    assert_eq!(instruction("neighbours", "s_barrier")["counts"]["instructions"], 1);
    assert_eq!(instruction("copy", "s_endpgm")["counts"]["instructions"], 16);
}

#[test]
fn a_kernel_says_how_it_was_launched_and_how_much_of_a_compute_unit_it_needs() {
    let Some(program) = program() else { return };
    let kernels = kernels(program);
    let large = find(&kernels, "large");
    assert_eq!((&large["launches"], &large["blocks"], &large["waves"]), (&2.into(), &4.into(), &8.into()));
    assert_eq!((&large["block"], &large["threads"]), (&serde_json::json!([128, 1, 1]), &512.into()));
    // One block of two waves has its LDS.
    assert_eq!((&large["lds_bytes"], &large["waves_per_cu"]), (&36_000.into(), &2.into()));
    assert_eq!(large["waves_per_cu_bounded_by"], "lds");
    let copy = find(&kernels, "copy");
    assert_eq!((&copy["waves_per_cu"], &copy["waves_per_cu_bounded_by"]), (&32.into(), &"waves".into()));
}

/// Returns the number of the line of the source that has this text.
fn line(text: &str) -> usize {
    let source = fs::read_to_string(SOURCE).expect("the source");
    1 + source.lines().position(|line| line.contains(text)).expect("a line")
}

#[test]
fn lines_have_the_counts_of_their_instructions() {
    let Some(program) = program() else { return };
    let kernels = kernels(program);
    let kernel = find(&kernels, "rounds");
    let lines = kernel["lines"].as_array().expect("lines");
    let hottest = &lines[0];
    assert_eq!(hottest["line"], line("for (unsigned n = 0; n < threadIdx.x"));
    assert!(hottest["file"].as_str().is_some_and(|file| file == SOURCE), "{hottest}");
    let sum: u64 = lines.iter().filter_map(|line| line["counts"]["instructions"].as_u64()).sum();
    assert_eq!(kernel["counts"]["instructions"], sum);
}

#[test]
fn counts_are_the_same_in_each_run() {
    let Some(program) = program() else { return };
    assert_eq!(kernels(program), kernels(program));
}

#[test]
fn the_source_is_shown_with_its_counts() {
    let Some(program) = program() else { return };
    let text = reported("source", &["--kernel", "rounds"], program);
    assert!(text.starts_with("rounds(int*)\n"), "{text}");
    assert!(!text.contains("saxpy("), "{text}");
    let number = line("for (unsigned n = 0; n < threadIdx.x");
    let hot = text.lines().find(|line| line.contains(&format!(" {number} | "))).expect("the loop");
    assert!(hot.contains("97.4 %") && hot.contains("for (unsigned n = 0;"), "{hot}");
}

#[test]
fn the_table_names_kernels_and_their_hottest_lines() {
    let Some(program) = program() else { return };
    let output = profile(&[], program);
    assert!(output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    let expected = [
        "saxpy(float, float const*, float*, int)\n  launches     1: 4 blocks of 256x1x1 threads, 16 waves\n",
        "8,000 bytes loaded, 4,000 stored, 0 by atomics; 96 cache lines of 128 bytes, 98 % of them asked for\n",
        "512 bytes in 128 cycles of its banks, 96.9 % of them for conflicts\n",
        "32,768 f16 (100.0 % by matrices)",
        "hipr profile: 16 kernels of 17 launches.",
    ];
    for part in expected {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[test]
fn the_page_has_the_report_and_needs_nothing_else() {
    let Some(program) = program() else { return };
    let page = reported("html", &[], program);
    let begin = "<script id=\"data\" type=\"application/json\">";
    let data = page.split(begin).nth(1).and_then(|rest| rest.split("</script>").next()).expect("data");
    let data: Value = serde_json::from_str(data).expect("JSON");
    let own = data["kernels"].as_array().expect("kernels");
    let saxpy = find(own, "saxpy");
    // 2,000 operations, 96 lines of 128 bytes and 16 waves' arguments: bounded by memory of 5.3 TB/s.
    let bytes = 96 * 128 + saxpy["counts"]["scalar_bytes"].as_u64().expect("bytes");
    let intensity = 2000.0 / bytes as f64;
    let roof = &saxpy["roof"];
    let near =
        |value: &Value, expected: f64| (value.as_f64().expect("a number") / expected - 1.0).abs() < 1e-9;
    assert!(near(&roof["flops_per_byte"], intensity) && near(&roof["tflops"], intensity * 5.3), "{roof}");
    let source = saxpy["lines"].as_array().expect("lines").iter().find(|line| line["source"].is_string());
    assert!(source.is_some(), "{saxpy}");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let parts = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!parts.contains(outside), "the page asks for {outside}");
    }
}

#[test]
#[ignore = "needs a browser"]
fn the_page_sorts_its_tables_in_a_browser() {
    let Some(program) = program() else { return };
    let Some(browser) = installed("chromium", "the page of hipr profile was not opened") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    // Sorts the kernels as a person would, and leaves in the title which came first.
    let script = r##"<script>
        const first = () => document.querySelector("#kernels tbody td").textContent.split("(")[0];
        const click = head => [...document.querySelectorAll("#kernels th")].find(th => th.textContent === head).click();
        const seen = [first()];
        for (const head of ["flops", "flops", "LDS conflicts", "kernel"]) { click(head); seen.push(first()); }
        const points = document.querySelectorAll("#roofline circle").length;
        const lines = document.querySelectorAll("#details details").length;
        document.title = [...seen, points, lines, window.failed || "no error"].join(" ");
    </script>"##;
    let failures =
        "<script>window.addEventListener('error', event => { window.failed = event.message; });</script>";
    let text = reported("html", &[], program).replacen("<body>", &format!("<body>{failures}"), 1) + script;
    fs::write(&page, text).expect("the page is written");
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let title = text.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    // By flops down and up; up, kernels without any are equal, and stay in the order that they are in. Four kernels have flops.
    let title = title.expect("a title").split(' ').collect::<Vec<_>>();
    assert_eq!(
        (title[0], title[1], title[3], title[4]),
        ("rounds", "product", "one_bank", "wide"),
        "{title:?}"
    );
    assert_eq!(title[5..], ["4", "32", "no", "error"], "{title:?}");
}

#[test]
fn wrong_options_are_told_before_the_program_runs() {
    let program = Path::new("/bin/true");
    let output = profile(&["--format", "html"], program);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "hipr: --format html needs a file for the page: --output FILE\n"
    );
    let output = profile(&["-o", "/nowhere/report"], program);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "hipr: cannot write /nowhere/report: No such file or directory (os error 2)\n"
    );
}

#[test]
fn the_exit_code_is_that_of_the_program() {
    let output = profile(&[], Path::new("/bin/false"));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.starts_with("hipr profile: 0 kernels of 0 launches."), "{text}");
}
