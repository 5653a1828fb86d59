//! `hipr completions`: what a shell offers when the tabulator key is pressed.

use clap::Args;
use clap_complete::Shell;
use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

/// Options of `hipr completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

/// Prints the script that the shell reads.
pub(crate) fn run(options: Completions, mut command: clap::Command) -> Result<ExitCode, String> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, name, &mut script);
    match io::stdout().write_all(&script) {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => {
            Err(format!("cannot print the completions: {why}"))
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
