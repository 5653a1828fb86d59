//! `hipr key` and `hipr invite`: keys of users and workers, certificates for them, and invitations to workers.

mod sign;

use crate::output::say;
use crate::worker::{invitation_url, invite, key_file};
use clap::{Args, Subcommand};
use hipr_tls::{Size, config_folder, make_key, read_key};
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `hipr key`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Key {
    #[command(subcommand)]
    command: Option<KeyCommand>,
    /// Makes the key of a worker in FILE, and prints the fingerprint by which clients know it. [default: your key, in ~/.config/hipr]
    #[arg(long, value_name = "FILE")]
    worker: Option<PathBuf>,
    /// Makes a new key although there is one, which is lost.
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Subcommand)]
enum KeyCommand {
    /// Signs a certificate for a user's or a worker's key with the key of an authority, and prints it.
    Sign(sign::Sign),
    /// Prints the public half of a key, its fingerprint, and what its certificate says.
    Show(sign::Show),
}

/// Makes a key if there is none, and prints its public half.
pub(crate) fn run(options: Key) -> Result<ExitCode, String> {
    let users = || config_folder().map(|folder| folder.join("key")).map_err(|why| why.to_string());
    match options.command {
        Some(KeyCommand::Sign(options)) => return sign::run(options),
        Some(KeyCommand::Show(options)) => return sign::run_show(&options, &users()?),
        None => {}
    }
    let path = options.worker.clone().map_or_else(users, Ok)?;
    let exists = path.try_exists().map_err(|why| format!("{}: {why}", path.display()))?;
    let key = if exists && !options.force { read_key(&path) } else { make_key(&path, options.force) };
    let public = key.map_err(|why| why.to_string())?.public();
    if options.worker.is_some() {
        say!("{}", public.fingerprint());
    } else {
        say!("{public}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Options of `hipr invite`.
#[derive(Debug, Args)]
pub(crate) struct Invite {
    /// The worker's file of authorized keys.
    #[arg(long, value_name = "FILE")]
    authorized: PathBuf,
    /// File with the worker's key. [default: worker-key in ~/.config/hipr]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The tenant that the client will belong to. [default: its key's fingerprint]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// The most memory that a session of the client may have.
    #[arg(long, value_name = "SIZE")]
    memory_max: Option<Size>,
    /// Where clients reach the worker.
    #[arg(value_name = "HOST:PORT")]
    worker: String,
}

/// Prints an address with an invitation to a worker that runs, or will.
pub(crate) fn run_invite(options: Invite) -> Result<ExitCode, String> {
    let key = read_key(&key_file(options.key.as_deref())?).map_err(|why| why.to_string())?;
    let token = invite(&options.authorized, options.tenant, options.memory_max)?;
    say!("{}", invitation_url(&key, &options.worker, &token));
    Ok(ExitCode::SUCCESS)
}
