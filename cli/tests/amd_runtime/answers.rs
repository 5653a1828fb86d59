//! What functions answer to good and bad arguments, by hipr's library and by AMD's runtime: the programs of `tests/programs/answers` call them and
//! print a line for each call. What AMD's releases answer is on record, so that what they do at random once they have been asked for something
//! wrong is not part of it.

use super::{HIPR, Release, System, WITH_LIBRARIES, WorkerProcess, compiled, devices, libraries, serve};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// How many calls are compared at least.
const COMPARED_MIN: usize = 35_000;
/// How often a program is started again, behind a call that has ended it, at most.
const STARTS_MAX: usize = 400;
/// How many times each call is made on AMD's runtime for the record.
const ASKED: usize = 4;
/// What is on record for a call that AMD's runtime does not answer the same way each time.
const RANDOM: &str = "not always the same";
/// The environment variable that makes the ignored test write the record anew instead of comparing it.
const WRITE: &str = "HIPR_WRITE_RECORD";

/// The calls of a program, in their order, and what was answered to each.
type Answers = Vec<(String, String)>;

fn record_path(release: Release) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/answers-{}.tsv.zst", release.name()))
}

fn name(program: &Path) -> String {
    program.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs a program to its end, again behind each call that ends it.
fn ask(program: &Path, run: impl Fn(&str) -> Output) -> Answers {
    let (mut answers, mut first) = (Answers::new(), 0);
    for _ in 0..STARTS_MAX {
        let output = run(&first.to_string());
        let text = String::from_utf8_lossy(&output.stdout);
        let start = first;
        for line in text.lines() {
            let mut fields = line.splitn(3, '\t');
            let number = fields.next().and_then(|number| number.parse::<usize>().ok());
            // Two threads may crash, and both print the line.
            let number = number.filter(|number| *number >= first);
            if let (Some(number), Some(call), Some(answer)) = (number, fields.next(), fields.next()) {
                answers.push((call.to_owned(), answer.to_owned()));
                first = number + 1;
            }
        }
        if output.status.success() {
            return answers;
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(first > start, "{}: {} at call {first}\n{complaint}", name(program), output.status);
    }
    panic!("{} does not get to its end in {STARTS_MAX} starts", name(program));
}

fn ask_amds_runtime(release: Release, program: &Path) -> Answers {
    let libraries = libraries(release).expect("AMD's libraries");
    ask(program, |first| {
        let mut command = Command::new(HIPR);
        command.args(["hsa", "--devices", devices(program), "--", "sh", "-c", WITH_LIBRARIES]).arg(program);
        command.args([&libraries, first]).env_remove("LD_LIBRARY_PATH").output().expect("hipr runs")
    })
}

/// Runs a program over hipr's library, by `hipr run` with these options.
fn ask_hipr(program: &Path, options: &[&str]) -> Answers {
    ask(program, |first| {
        let mut command = Command::new(HIPR);
        command.arg("run").args(options).arg("--").arg(program).arg(first).env_remove("LD_LIBRARY_PATH");
        command.output().expect("hipr runs")
    })
}

/// Returns whether a call has ended the program.
fn has_ended(answer: &str) -> bool {
    ["crashes", "stands still", "faults"].iter().any(|end| answer.ends_with(end))
}

/// Numbers calls that are made more than once.
fn numbered(answers: Answers) -> BTreeMap<(String, usize), String> {
    let mut calls = BTreeMap::new();
    let mut seen = BTreeMap::<String, usize>::new();
    for (call, answer) in answers {
        let times = seen.entry(call.clone()).or_default();
        calls.insert((call, *times), answer);
        *times += 1;
    }
    calls
}

/// Returns what is on record: by program and call, the answer.
fn record(release: Release) -> BTreeMap<String, Answers> {
    let path = record_path(release);
    let packed = fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    let text = String::from_utf8(zstd::decode_all(&*packed).expect("zstd")).expect("UTF-8");
    let mut record = BTreeMap::<String, Answers>::new();
    for line in text.lines() {
        let fields: Vec<_> = line.splitn(3, '\t').collect();
        let [program, call, answer] = fields[..] else { panic!("a line of three fields: {line}") };
        record.entry(program.to_owned()).or_default().push((call.to_owned(), answer.to_owned()));
    }
    record
}

/// Compares AMD's runtimes with the record, or writes it.
#[test]
#[ignore = "asks AMD's runtimes, which is needed only where the programs have changed"]
fn amds_runtimes_answer_as_is_on_record() {
    for release in [Release::Hip6, Release::Hip7] {
        if libraries(release).is_none() {
            return;
        }
        let mut text = String::new();
        for program in compiled("answers", release, &["--answers"]) {
            let first = numbered(ask_amds_runtime(release, &program));
            let again: Vec<_> = (1..ASKED).map(|_| numbered(ask_amds_runtime(release, &program))).collect();
            for (call, answer) in &first {
                let always = again.iter().all(|answers| answers.get(call) == Some(answer));
                let answer = if always { answer.as_str() } else { RANDOM };
                writeln!(text, "{}\t{}\t{answer}", name(&program), call.0).expect("a string");
            }
        }
        if env::var_os(WRITE).is_some() {
            let packed = zstd::encode_all(text.as_bytes(), 19).expect("zstd");
            fs::write(record_path(release), packed).expect("the record");
            continue;
        }
        let on_record = record(release);
        let mut differ = Vec::new();
        for line in text.lines() {
            let fields: Vec<_> = line.splitn(3, '\t').collect();
            let known = on_record.get(fields[0]).into_iter().flatten();
            let known: BTreeSet<_> =
                known.filter(|(call, _)| call == fields[1]).map(|(_, answer)| answer.as_str()).collect();
            if !known.contains(fields[2]) && fields[2] != RANDOM && !known.contains(RANDOM) {
                differ.push(format!("{line}; on record: {known:?}"));
            }
        }
        assert!(differ.is_empty(), "{}:\n{}", release.name(), differ.join("\n"));
    }
}

/// A row of `tests/programs/answers/differences.tsv`: calls, what AMD's runtime and hipr's library answer, and why. A `*` is any text.
struct Difference {
    call: String,
    amds: String,
    hiprs: String,
}

fn differences() -> Vec<Difference> {
    let path = hipr_tests::toolchain::folder().join("programs/answers/differences.tsv");
    let text = fs::read_to_string(&path).expect("the list of differences");
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            let [call, amds, hiprs, why] = fields[..] else { panic!("a row of four fields: {line}") };
            assert!(!why.is_empty(), "a reason: {line}");
            Difference { call: call.into(), amds: amds.into(), hiprs: hiprs.into() }
        })
        .collect()
}

/// Returns whether a text is what a pattern says.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(left) = text.strip_prefix(head) else { return false };
    (0..=left.len()).filter(|at| left.is_char_boundary(*at)).any(|at| fits(rest, &left[at..]))
}

#[test]
fn hiprs_library_answers_as_amds_runtime_does_or_as_is_listed() {
    let listed = differences();
    let (mut used, mut differ, mut compared) = (BTreeSet::new(), Vec::new(), 0);
    let records = [Release::Hip6, Release::Hip7].map(record);
    for release in [Release::Hip6, Release::Hip7] {
        if libraries(release).is_none() {
            return;
        }
        for program in compiled("answers", release, &["--answers"]) {
            let name = name(&program);
            let [six, seven] = [&records[0], &records[1]].map(|record| {
                numbered(record.get(&name).cloned().unwrap_or_else(|| panic!("{name} is not on record")))
            });
            let (own, others) = if release == Release::Hip6 { (six, seven) } else { (seven, six) };
            let hiprs = numbered(ask_hipr(&program, &["--sim-devices", devices(&program)]));
            assert_eq!(
                hiprs.len(),
                own.len(),
                "{name}: the record is of other calls; {WRITE}=1 writes it anew"
            );
            for (call, answer) in hiprs {
                let amds = own.get(&call).unwrap_or_else(|| panic!("{name}: {} is not on record", call.0));
                assert!(!has_ended(&answer), "{name}: {}: {answer}", call.0);
                if has_ended(amds) || amds == RANDOM {
                    continue;
                }
                compared += 1;
                if answer == *amds || others.get(&call) == Some(&answer) {
                    continue;
                }
                let row = listed.iter().position(|row| {
                    fits(&row.call, &call.0) && fits(&row.amds, amds) && fits(&row.hiprs, &answer)
                });
                match row {
                    Some(row) => drop(used.insert(row)),
                    None => {
                        differ.push(format!("{}\t{amds}\t{answer}\t{name}, {}", call.0, release.name()));
                    }
                }
            }
        }
    }
    assert!(compared >= COMPARED_MIN, "{compared} calls");
    assert!(differ.is_empty(), "{} of {compared} calls differ:\n{}", differ.len(), differ.join("\n"));
    let unused: Vec<_> =
        (0..listed.len()).filter(|row| !used.contains(row)).map(|row| &listed[row].call).collect();
    assert!(unused.is_empty(), "listed, but not different: {unused:?}");
}

/// Calls that several workers answer otherwise than one with as many devices, and why.
const ON_SEVERAL_WORKERS: &[(&str, &str)] = &[
    ("hipDeviceGetAttribute(&r.number, hipDeviceAttributePciBusId, *", "each is a machine of its own"),
    ("hipDeviceCanAccessPeer(*", "kernels reach the memory of their own worker"),
    ("hipDeviceGetP2PAttribute(*", "the same"),
    ("hipDevice*ablePeerAccess*", "the same"),
    ("hipMemGetAllocationGranularity(*", "virtual memory is one worker's"),
    ("hipMemSetAccess(*", "the same"),
];

/// Calls that a worker with AMD's runtime 7.2.4 answers otherwise than one with emulated GPUs, and why.
const ON_AMDS_RUNTIME: &[(&str, &str)] = &[
    ("hipDeviceGetAttribute(*", "the devices differ, as differences.tsv says"),
    ("hipDeviceSetLimit(*", "the same"),
    ("hipMemGetAllocationGranularity(*", "the same"),
    ("hipMemSetAccess(*, hipMemLocationTypeDevice, *", "the same"),
    ("hipLaunchCooperativeKernel*(kernel, 1000000, *", "the error comes late"),
    ("hipDrvLaunchKernelEx(100000, *", "the same"),
    (
        "hipIpcGetMemHandle(*",
        "the sandbox of a session refuses the socket by which emulated GPUs share memory",
    ),
    ("hipStreamWaitEvent(stream, shared, 0)", "the same"),
];

/// Runs the programs in two ways and compares the answers. A call may differ if it is listed, and every row of the list has to be of one that does.
fn compare(
    programs: &[PathBuf],
    listed: &[(&str, &str)],
    one: impl Fn(&Path) -> Answers,
    other: impl Fn(&Path) -> Answers,
) {
    let (mut used, mut differ) = (BTreeSet::new(), Vec::new());
    for program in programs {
        let (expected, found) = (numbered(one(program)), numbered(other(program)));
        assert_eq!(found.len(), expected.len(), "{}: the calls", name(program));
        for (call, answer) in found {
            let wanted = expected.get(&call);
            if wanted == Some(&answer) {
                continue;
            }
            match listed.iter().position(|(pattern, _)| fits(pattern, &call.0)) {
                Some(row) => drop(used.insert(row)),
                None => differ.push(format!("{}\t{wanted:?}\t{answer}\t{}", call.0, name(program))),
            }
        }
    }
    assert!(differ.is_empty(), "{} calls differ:\n{}", differ.len(), differ.join("\n"));
    assert_eq!(used.len(), listed.len(), "rows that are of use: {used:?} of {listed:?}");
}

#[test]
fn two_workers_answer_as_one_with_two_devices_does() {
    if libraries(Release::Hip6).is_none() {
        return;
    }
    let programs: Vec<_> = compiled("answers", Release::Hip6, &["--answers"]);
    let for_two: Vec<_> = programs.into_iter().filter(|program| devices(program) == "2").collect();
    let mut workers = [(); 2].map(|()| WorkerProcess::start_logged(Path::new(HIPR), &["--device", "sim"]));
    let addresses = workers.each_ref().map(|worker| worker.address().to_string()).join(",");
    compare(
        &for_two,
        ON_SEVERAL_WORKERS,
        |program| ask_hipr(program, &["--sim-devices", "2"]),
        |program| ask_hipr(program, &["--worker", &addresses]),
    );
    for worker in &mut workers {
        assert!(worker.lives(), "{}", worker.log());
    }
}

#[test]
fn a_worker_with_amds_runtime_answers_as_one_with_emulated_gpus_does() {
    let Some(system) = System::new() else { return };
    let mut command = system.hipr(Release::Hip7);
    command.env("HIPR_SIM_DEVICES", "2");
    let mut worker = serve(command, Release::Hip7, "process", &[]);
    let address = worker.address().to_string();
    compare(
        &compiled("answers", Release::Hip7, &["--answers"]),
        ON_AMDS_RUNTIME,
        |program| ask_hipr(program, &["--sim-devices", "2"]),
        |program| ask_hipr(program, &["--worker", &address]),
    );
    assert!(worker.lives(), "{}", worker.log());
}

/// Functions that no program asks, by how their names begin or end, and why.
const NOT_ASKED: &[(&str, &str)] = &[
    ("__gnu_*", "conversions of numbers: they have no errors"),
    ("__hip*", "compilers have them called, before a program begins"),
    ("_Z*", "a C++ name of a function that is asked"),
    ("amd_dbgapi_*", "for AMD's debugger"),
    ("hip*R0000", "an old form of a function that is asked"),
    ("hip*R0600", "the name in the library of a function that is asked"),
    ("hipGetDriverEntryPoint_spt", "no header has it"),
    ("hipGetCmdName", "for tracers"),
    ("hipRegisterTracerCallback", "for tracers"),
    ("hipHccModuleLaunchKernel", "an old name of hipExtModuleLaunchKernel"),
    ("hipLink*", "AMD's runtime compiler answers"),
    ("hiprtc*", "AMD's runtime compiler answers"),
];

#[test]
fn every_function_that_is_there_is_asked() {
    let folder = hipr_tests::toolchain::folder().join("programs/answers");
    let mut asked = BTreeSet::new();
    for file in fs::read_dir(folder).expect("the programs") {
        let path = file.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "hip") {
            let text = fs::read_to_string(&path).expect("a program");
            asked.extend(
                text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').map(str::to_owned),
            );
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/hip-functions.md");
    let page = fs::read_to_string(page).expect("the page of functions");
    let there = page
        .lines()
        .filter(|line| line.starts_with("There ("))
        .flat_map(|line| line.split('`').skip(1).step_by(2));
    let (mut used, mut missing) = (BTreeSet::new(), Vec::new());
    for function in there.filter(|function| !asked.contains(*function)) {
        match NOT_ASKED.iter().position(|(pattern, _)| fits(pattern, function)) {
            Some(row) => drop(used.insert(row)),
            None => missing.push(function),
        }
    }
    assert!(missing.is_empty(), "tests/programs/answers does not ask {missing:?}");
    assert_eq!(used.len(), NOT_ASKED.len(), "rows that are of use: {used:?}");
}
