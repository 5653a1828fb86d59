//! What functions answer to good and bad arguments, by hipr's library and by AMD's runtime: the programs of `tests/programs/answers` call them and
//! print a line for each call. What AMD's releases answer is on record, so that what they do at random once they have been asked for something
//! wrong is not part of it.

use super::{HIPR, Release, WITH_LIBRARIES, compiled, libraries};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// How many calls are compared at least.
const COMPARED_MIN: usize = 20_000;
/// How often a program is started again, behind a call that has ended it, at most.
const STARTS_MAX: usize = 400;
/// How often AMD's runtime is asked for the record.
const ASKED: usize = 4;
/// What is on record for a call that AMD's runtime does not answer the same way each time.
const RANDOM: &str = "not always the same";
/// If this variable of the environment is set, the record is written anew instead of compared.
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
        command.args(["hsa", "--", "sh", "-c", WITH_LIBRARIES]).arg(program).args([&libraries, first]);
        command.env_remove("LD_LIBRARY_PATH").output().expect("hipr runs")
    })
}

fn ask_hipr(program: &Path) -> Answers {
    ask(program, |first| {
        let mut command = Command::new(HIPR);
        command.args(["run", "--"]).arg(program).arg(first).env_remove("LD_LIBRARY_PATH");
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
            let hiprs = numbered(ask_hipr(&program));
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
