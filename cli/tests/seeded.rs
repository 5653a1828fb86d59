//! Runs `hipr check` on the programs of `tests/check`: those with one mistake each, which has to be found, and those without, of
//! which nothing may be reported. `docs/seeded-bugs.md` has the table of what is found. Every eighth program is run for each change;
//! the test that is ignored runs all, also those of `tests/programs`, and compares the whole table.

use hipr_tests::toolchain::{folder, toolchain};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fmt, fs, thread};

const HIPR: &str = env!("CARGO_BIN_EXE_hipr");
const LEVELS: [&str; 2] = ["O0", "O3"];
const JOBS: usize = 2;
/// Every how many programs one is run for each change.
const SPREAD: usize = 8;
/// What the folders have to hold at least.
const BUGS_MIN: usize = 80;
const CORRECT_MIN: usize = 60;
/// The share of bugs of which kind, kernel and line have to be right, in percent.
const FOUND_MIN_PERCENT: usize = 95;
/// Programs of `tests/programs` that make mistakes on purpose, to see how HIP answers: they free what is no memory, give kernels wrong
/// pointers, or launch more blocks than can wait for each other. `pools` expects memory that was freed to be given out again at once, which a checker delays.
const NOT_CORRECT: [&str; 8] = [
    "arrays",
    "capture_calls",
    "driver_nodes",
    "errors",
    "faults",
    "graph_memory",
    "pools",
    "virtual_memory",
];

/// What has to be found in a program.
struct Bug {
    kind: String,
    /// The kernel's name without parameters; `None` if the mistake is one of the host.
    kernel: Option<String>,
    /// The lines that are marked.
    lines: BTreeSet<u64>,
}

/// A program of `tests/check`, as the first line of its source describes it.
struct Seeded {
    /// The folder and the name, such as `bugs/free_inside`.
    name: String,
    /// `None` if the program is correct.
    bug: Option<Bug>,
    /// More options of `hipr check`.
    options: Vec<String>,
}

impl Seeded {
    fn read(folder_name: &str, path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("the source of a program");
        let name = format!("{folder_name}/{}", path.file_stem().expect("a name").to_string_lossy());
        let first = text.lines().next().and_then(|line| line.strip_prefix("// check: "));
        let words: Vec<&str> = first
            .unwrap_or_else(|| panic!("{name}: the first line says what is to be found"))
            .split(' ')
            .collect();
        let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let lines =
            (1..).zip(text.lines()).filter(|(_, line)| line.ends_with("// BUG")).map(|(number, _)| number);
        let bug = (folder_name == "bugs").then(|| Bug {
            kind: value("kind").unwrap_or_else(|| panic!("{name}: has no kind")).to_owned(),
            kernel: (value("line") != Some("host"))
                .then(|| value("kernel").unwrap_or_else(|| panic!("{name}: has no kernel")).to_owned()),
            lines: lines.collect(),
        });
        assert!(bug.as_ref().is_none_or(|bug| !bug.lines.is_empty()), "{name}: no line is marked");
        assert!(bug.is_some() || words.contains(&"correct"), "{name}: does not say that it is correct");
        let options =
            value("args").map(|args| args.split(',').map(str::to_owned).collect()).unwrap_or_default();
        Self { name, bug, options }
    }
}

/// Returns all programs in an order that stays.
fn all() -> Vec<Seeded> {
    let mut programs = Vec::new();
    for (name, count_min) in [("bugs", BUGS_MIN), ("correct", CORRECT_MIN)] {
        let entries = fs::read_dir(folder().join("check").join(name)).expect("the folder of programs");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        assert!(paths.len() >= count_min, "{} programs in {name}", paths.len());
        programs.extend(paths.iter().map(|path| Seeded::read(name, path)));
    }
    programs
}

/// Compiles programs; returns the folder of the executables, or `None` without a compiler.
fn built(script: &str, names: &[&str]) -> Option<PathBuf> {
    toolchain("hipr check did not run on its programs")?;
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(if script.starts_with("check") {
        "seeded"
    } else {
        "programs"
    });
    let output =
        Command::new(folder().join(script)).arg(&out).args(names).output().expect("the build script runs");
    assert!(
        output.status.success(),
        "the programs do not compile:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(out)
}

/// Runs a program under `hipr check`; returns how it ended and the findings.
fn checked(program: &Path, options: &[String]) -> (Output, Vec<Value>) {
    let report = tempfile::NamedTempFile::new().expect("a file");
    let output = Command::new(HIPR)
        .args(["check", "--format", "json", "-o"])
        .arg(report.path())
        .args(options)
        .arg("--")
        .arg(program)
        .current_dir(program.parent().expect("a folder"))
        .output()
        .expect("hipr runs");
    let text = fs::read(report.path()).expect("a report");
    let Ok(mut report) = serde_json::from_slice::<Value>(&text) else {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        panic!("{}: no report, {}: {errors}", program.display(), output.status)
    };
    let Some(Value::Array(findings)) = report.get_mut("findings").map(Value::take) else {
        panic!("{}: a report without findings", program.display())
    };
    (output, findings)
}

/// How much of a bug was found, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nothing,
    OtherKind,
    OtherKernel,
    OtherLine,
    AndMore,
    Exactly,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "missed",
            Self::OtherKind => "as another kind",
            Self::OtherKernel => "in another kernel",
            Self::OtherLine => "at another line",
            Self::AndMore => "with others",
            Self::Exactly => "found",
        })
    }
}

/// Returns the name of a function from what demangling gives, without its type, parameters and namespace.
fn plain(demangled: &str) -> &str {
    let name = demangled.split(['(', '<']).next().unwrap_or_default();
    name.rsplit([' ', ':']).next().unwrap_or_default()
}

/// Returns the lines of a program's source that a finding names: its frames and those of the other access.
fn lines<'a>(finding: &'a Value, source: &'a str) -> impl Iterator<Item = u64> + 'a {
    let frames = [&finding["frames"], &finding["host"]["frames"], &finding["other"]["frames"]];
    frames
        .into_iter()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(move |frame| frame["file"].as_str()?.ends_with(source).then(|| frame["line"].as_u64())?)
}

fn judge(name: &str, bug: &Bug, findings: &[Value]) -> Found {
    let source = format!("{name}.hip");
    let of_finding = |finding: &Value| {
        if finding["kind"] != bug.kind.as_str() {
            return Found::OtherKind;
        }
        // Which one of two kernels without an order is the other one, is chance.
        let mut kernels = [&finding["kernel_name"], &finding["other"]["kernel_name"]].into_iter();
        if !kernels.any(|kernel| kernel.as_str().map(plain) == bug.kernel.as_deref()) {
            return Found::OtherKernel;
        }
        if lines(finding, &source).any(|line| bug.lines.contains(&line)) {
            Found::Exactly
        } else {
            Found::OtherLine
        }
    };
    let best = findings.iter().map(of_finding).max().unwrap_or(Found::Nothing);
    let has_others = findings.iter().any(|finding| finding["kind"] != bug.kind.as_str());
    if best == Found::Exactly && has_others { Found::AndMore } else { best }
}

/// A finding in one line, for messages.
fn short(finding: &Value) -> String {
    let text = |key: &str| finding[key].as_str().unwrap_or("-").to_owned();
    let other = finding["other"]["line"].as_u64().map(|line| format!(", other line {line}"));
    let line = finding["line"].as_u64().unwrap_or_default();
    format!(
        "{} in {} at {}:{line}{}: {}",
        text("kind"),
        text("kernel_name"),
        text("file"),
        other.unwrap_or_default(),
        text("message")
    )
}

/// Runs a function on every item, `jobs` at a time; returns the results in the order of the items.
fn each<T: Sync, R: Send>(jobs: usize, items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    let result = run(item);
                    results.lock().expect("no panic")[index] = Some(result);
                }
            });
        }
    });
    results
        .into_inner()
        .expect("no panic")
        .into_iter()
        .map(|result| result.expect("every item was run"))
        .collect()
}

/// What was found in programs.
#[derive(Default)]
struct Results {
    /// Name and kind of each bug, and what was found at each level.
    bugs: Vec<(String, String, [Found; 2])>,
    /// What was found where nothing is, and correct programs that failed.
    wrong: Vec<String>,
    /// Bugs that were not found exactly, for people.
    missed: Vec<String>,
}

fn run(programs: &[&Seeded], built: &Path) -> Results {
    let mut results = Results::default();
    let findings = each(JOBS, programs, |program| {
        LEVELS.map(|level| checked(&built.join(format!("{}.{level}", program.name)), &program.options))
    });
    for (program, levels) in programs.iter().zip(findings) {
        let mut found = [Found::Nothing; 2];
        for ((level, found), (output, findings)) in LEVELS.iter().zip(&mut found).zip(levels) {
            let list: String = findings.iter().map(|finding| format!("\n    {}", short(finding))).collect();
            let Some(bug) = &program.bug else {
                results.wrong.extend(unless_clean(&format!("{}.{level}", program.name), &output, &findings));
                continue;
            };
            *found = judge(&program.name, bug, &findings);
            if *found != Found::Exactly {
                let lines = &bug.lines;
                results
                    .missed
                    .push(format!("{}.{level}: {found}: {} at {lines:?}{list}", program.name, bug.kind));
            }
        }
        if let Some(bug) = &program.bug {
            let name = program.name.trim_start_matches("bugs/").to_owned();
            results.bugs.push((name, bug.kind.clone(), found));
        }
    }
    results
}

/// Returns what is wrong if a correct program fails or something is found in it.
fn unless_clean(name: &str, output: &Output, findings: &[Value]) -> Option<String> {
    let list: String = findings.iter().map(|finding| format!("\n    {}", short(finding))).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_clean = findings.is_empty() && output.status.success();
    (!is_clean).then(|| format!("{name}: {}{list}\n{errors}", output.status))
}

fn row((name, kind, [at_o0, at_o3]): &(String, String, [Found; 2])) -> String {
    format!("| `{name}` | {kind} | {at_o0} | {at_o3} |\n")
}

fn page_path() -> PathBuf {
    folder().join("../docs/seeded-bugs.md")
}

fn page(results: &Results) -> String {
    let count = |level: usize| results.bugs.iter().filter(|bug| bug.2[level] == Found::Exactly).count();
    let mut page = format!(
        "# What `hipr check` finds\n\n\
         Each program of `tests/check/bugs` has exactly one mistake. The table says whether `hipr check` finds it, with the right kind, kernel\n\
         and line and without another finding, when the program is compiled with `-O0 -g` and with `-O3 -g`: {} and {} of {}.\n\
         The programs of `tests/check/correct` have no mistakes: the same programs without theirs, and what a checker could take for a mistake.\n\
         Nothing is found in them.\n\n\
         `cargo test -p hipr --test seeded -- --ignored` compares this page with what is found; with `HIPR_UPDATE_DOCS=1` it writes the page.\n\n\
         | program | mistake | `-O0` | `-O3` |\n|---|---|---|---|\n",
        count(0),
        count(1),
        results.bugs.len()
    );
    page.extend(results.bugs.iter().map(row));
    page
}

#[test]
fn some_programs_are_judged_as_the_page_says() {
    let programs = all();
    let some: Vec<&Seeded> = programs.iter().step_by(SPREAD).collect();
    let names: Vec<&str> = some.iter().map(|program| program.name.as_str()).collect();
    let Some(built) = built("check/build.sh", &names) else { return };
    let results = run(&some, &built);
    assert!(results.wrong.is_empty(), "in correct programs:\n{}", results.wrong.join("\n"));
    let page = fs::read_to_string(page_path()).expect("docs/seeded-bugs.md");
    let other: Vec<String> =
        results.bugs.iter().map(row).filter(|row| !page.contains(row.as_str())).collect();
    assert!(
        other.is_empty(),
        "not as docs/seeded-bugs.md says:\n{}\n{}",
        other.concat(),
        results.missed.join("\n")
    );
}

#[test]
#[ignore = "compiles and runs all programs, for minutes"]
fn all_bugs_are_found_and_nothing_else() {
    let programs = all();
    let Some(built) = built("check/build.sh", &[]) else { return };
    let results = run(&programs.iter().collect::<Vec<_>>(), &built);
    eprintln!("not found exactly:\n{}", results.missed.join("\n"));
    let total = results.bugs.len();
    for (level, name) in LEVELS.iter().enumerate() {
        let at_least = |least: Found| results.bugs.iter().filter(|bug| bug.2[level] >= least).count();
        let (kinds, kernels, exact) =
            (at_least(Found::OtherKernel), at_least(Found::OtherLine), at_least(Found::Exactly));
        eprintln!(
            "-{name}: kind right {kinds}, kernel too {kernels}, line too and nothing else {exact}, of {total}"
        );
    }
    let page = page(&results);
    if env::var_os("HIPR_UPDATE_DOCS").is_some() {
        fs::write(page_path(), &page).expect("the page can be written");
    }
    assert!(results.wrong.is_empty(), "in correct programs:\n{}", results.wrong.join("\n"));
    for (level, name) in LEVELS.iter().enumerate() {
        let exact = results.bugs.iter().filter(|bug| bug.2[level] == Found::Exactly).count();
        assert!(exact * 100 >= total * FOUND_MIN_PERCENT, "-{name}: {exact} of {total}");
    }
    let other_lines: Vec<_> =
        results.bugs.iter().filter(|bug| bug.2[0] == Found::OtherLine).map(row).collect();
    assert!(other_lines.is_empty(), "at -O0 every line is right, but for:\n{}", other_lines.concat());
    assert!(
        fs::read_to_string(page_path()).is_ok_and(|old| old == page),
        "docs/seeded-bugs.md is old: run this test with HIPR_UPDATE_DOCS=1"
    );
}

#[test]
#[ignore = "runs all programs of tests/programs under a checker, for minutes"]
fn nothing_is_found_in_the_programs_of_the_project() {
    let Some(built) = built("programs/build.sh", &[]) else { return };
    let entries = fs::read_dir(folder().join("programs")).expect("the folder of programs");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "hip"))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .filter(|name| !NOT_CORRECT.contains(&name.as_str()))
        .flat_map(|name| LEVELS.map(|level| format!("{name}.{level}")))
        .collect();
    names.sort();
    assert!(names.len() / LEVELS.len() + CORRECT_MIN >= 100, "100 correct programs and more");
    // One at a time: `coherent` waits for its kernel without pause.
    let wrong: Vec<String> = each(1, &names, |name| {
        let (output, findings) = checked(&built.join(name), &[]);
        unless_clean(name, &output, &findings)
    })
    .into_iter()
    .flatten()
    .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), names.len(), wrong.join("\n"));
}
