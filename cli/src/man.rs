//! `hipr man`: the manual pages, made of the same text as `--help`.

use clap::Args;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `hipr man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The folder, which is made if it is not there; hipr.1 and a page for each command are written to it.
    folder: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(options: Man, command: clap::Command) -> Result<ExitCode, String> {
    let folder = options.folder;
    let written = fs::create_dir_all(&folder).and_then(|()| clap_mangen::generate_to(command, &folder));
    match written {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(why) => Err(format!("cannot write manual pages to {}: {why}", folder.display())),
    }
}
