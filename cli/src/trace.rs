//! `hipr trace`: runs a program and records where its time goes.

mod lines;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hipr_trace::{File, Item, Slice, Summary, Track, TrackKind, category, track};
use rustix::time::{ClockId, clock_gettime};

use crate::output::say;
use crate::run::Way;

/// Options of `hipr trace`.
#[derive(Debug, Args)]
pub(crate) struct Trace {
    /// The file that is written: for Perfetto's viewer, or Chrome's JSON if its name ends with .json.
    #[arg(long, short, value_name = "FILE", default_value = "hipr.pftrace")]
    output: PathBuf,
    /// Keeps only the last seconds of the trace, for programs that run long.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    last: Option<u64>,
    /// Says where the time went in a trace that was written before; runs nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["program", "last", "output"])]
    summary: Option<PathBuf>,
    #[command(flatten)]
    way: Way,
    /// The program and its arguments.
    #[arg(
        required_unless_present = "summary",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM ARGS"
    )]
    program: Vec<OsString>,
}

/// Runs the program with a trace and says where its time went; returns the program's exit code.
pub(crate) fn run(options: Trace) -> Result<ExitCode, String> {
    if let Some(path) = options.summary {
        let mut items = read(&path)?;
        lines::find(&mut items);
        say!("{}", Summary::of(&items).to_string().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let Trace { output, last, way, program, .. } = options;
    // A file that cannot be written is no reason to lose the trace of a long run.
    fs::write(&output, "").map_err(|why| cannot_write(&output, &why))?;
    let parts = Parts::new(&output)?;
    let start_ns = monotonic_ns();
    let mut pid = 0;
    let exit_code = way.run(&program, |mut program| {
        program.env("HIPR_TRACE", parts.pattern());
        program.envs(last.map(|seconds| ("HIPR_TRACE_LAST_S", seconds.to_string())));
        program.run_told(|started| pid = started)
    })?;
    let end_ns = monotonic_ns();
    let mut items = parts.read()?;
    let called = !items.is_empty();
    let name = program.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    add_program(&mut items, pid, name, start_ns, end_ns);
    if let Some(seconds) = last {
        keep_last(&mut items, end_ns, Duration::from_secs(seconds));
    }
    lines::find(&mut items);
    let mut file = File::open(&output, 1, None).map_err(|why| cannot_write(&output, &why))?;
    file.write(&items).map_err(|why| cannot_write(&output, &why))?;
    parts.remove();
    eprint!("{}", Summary::of(&items));
    if called {
        eprintln!("The trace is in {}: open it with https://ui.perfetto.dev", output.display());
    }
    Ok(ExitCode::from(exit_code))
}

fn cannot_write(path: &Path, why: &io::Error) -> String {
    format!("cannot write {}: {why}", path.display())
}

fn read(path: &Path) -> Result<Vec<Item>, String> {
    hipr_trace::read(path).map_err(|why| format!("cannot read {}: {why}", path.display()))
}

fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The files of the processes, beside the file that is made from them: they are still there if this process is ended.
struct Parts {
    folder: PathBuf,
    /// How the names of all of them begin.
    prefix: String,
}

impl Parts {
    fn new(output: &Path) -> Result<Self, String> {
        let name = output.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| format!("{} is no name of a file", output.display()))?;
        let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Programs may change their folder.
        let folder =
            fs::canonicalize(folder.unwrap_or(Path::new("."))).map_err(|why| cannot_write(output, &why))?;
        Ok(Self { folder, prefix: format!("{name}.{}-", std::process::id()) })
    }

    /// Returns what `HIPR_TRACE` is to be.
    fn pattern(&self) -> PathBuf {
        self.folder.join(format!("{}%p.part", self.prefix))
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&self.prefix))
            .map(|entry| entry.path())
            .collect();
        // The part before the last one comes first.
        files.sort_by_key(|path| {
            (path.with_extension(""), path.extension().is_none_or(|last| last != "before"))
        });
        files
    }

    fn read(&self) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        for path in self.files() {
            items.extend(read(&path)?);
        }
        Ok(items)
    }

    fn remove(&self) {
        for path in self.files() {
            // Who reads the trace does not need them.
            let _ = fs::remove_file(path);
        }
    }
}

/// Adds the time of the whole program.
fn add_program(items: &mut Vec<Item>, pid: u32, name: String, start_ns: u64, end_ns: u64) {
    let process = items.iter().find_map(|item| match item {
        Item::Track(track) if track.kind == (TrackKind::Process { pid }) => Some(track.id),
        _ => None,
    });
    let id = track::id(pid, track::PROGRAM);
    let parent = process.unwrap_or(0);
    items.push(Item::Track(Track { id, parent, kind: TrackKind::Slices, name: "program".to_owned() }));
    items.push(Item::Slice(Slice {
        track: id,
        name,
        category: category::PROGRAM.to_owned(),
        start_ns,
        end_ns,
        ..Slice::default()
    }));
}

/// Drops what was over before the last part of a trace, and counts its time from there on.
fn keep_last(items: &mut Vec<Item>, end_ns: u64, last: Duration) {
    let from_ns = end_ns.saturating_sub(u64::try_from(last.as_nanos()).unwrap_or(u64::MAX));
    items.retain(|item| item.end_ns().is_none_or(|ended_ns| ended_ns >= from_ns));
    for item in items {
        if let Item::Slice(slice) = item {
            slice.start_ns = slice.start_ns.max(from_ns);
        }
    }
}
