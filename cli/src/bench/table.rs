//! `hipr bench table`: prints reports of earlier runs as one table.

use super::report::Report;
use crate::output::say;
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Options of `hipr bench table`.
#[derive(Debug, Args)]
pub(crate) struct Table {
    /// Files with the output of `hipr bench … --json`.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints all figures, including those that short tables leave out.
    #[arg(long)]
    all: bool,
}

/// Reads the reports and prints the table.
pub(crate) fn run(options: &Table) -> Result<(), String> {
    let mut rows = String::new();
    for path in &options.files {
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let text = fs::read_to_string(path).map_err(|why| failed(&why))?;
        let report: Report = serde_json::from_str(&text).map_err(|why| failed(&why))?;
        rows += &report.markdown_rows(options.all);
    }
    say!(
        "| bench | figure | median (min … max) | as a multiple of what was measured beside it |\n|---|---|---|---|\n{}",
        rows.trim_end()
    );
    Ok(())
}
