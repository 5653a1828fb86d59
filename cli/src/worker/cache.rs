//! Command line options for the cache of uploads.

use clap::Args;
use hipr_tls::Size;
use hipr_worker::CacheConfig;
use std::path::PathBuf;

/// The cache of what clients upload.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cache of uploads")]
pub(crate) struct Cache {
    /// Keeps what clients upload, up to so many bytes of memory, so that the same client need not send it again over a slow link. With
    /// a process for each session each has so many bytes, and only --cache-dir keeps anything beyond a session. [default: no cache]
    #[arg(long = "cache", value_name = "SIZE")]
    memory: Option<Size>,
    /// Folder in which the cache is kept as well: it outlasts the worker, and all sessions share it.
    #[arg(long = "cache-dir", value_name = "FOLDER", requires = "memory")]
    folder: Option<PathBuf>,
    /// Maximum bytes in that folder. [default: as --cache]
    #[arg(long = "cache-dir-max", value_name = "SIZE", requires = "folder")]
    folder_max: Option<Size>,
}

impl Cache {
    /// Returns the worker's cache, if it is to have one.
    pub(crate) fn config(&self) -> Option<CacheConfig> {
        let max = self.memory?;
        let folder_max = self.folder_max.unwrap_or(max);
        Some(CacheConfig { max_bytes: max.0, folder: self.folder.clone(), folder_max_bytes: folder_max.0 })
    }

    /// Returns the folder of the cache, if it has one.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        self.folder.clone()
    }

    /// Checks what the processes of sessions would find out, one after another.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub(crate) fn check_for_processes(&self) -> Result<(), String> {
        match &self.folder {
            Some(folder) => std::fs::create_dir_all(folder)
                .map_err(|why| format!("cannot open the cache: {}: {why}", folder.display())),
            None if self.memory.is_some() => {
                tracing::warn!(
                    "--cache keeps nothing beyond a session that has a process of its own; give it a --cache-dir"
                );
                Ok(())
            }
            None => Ok(()),
        }
    }
}
