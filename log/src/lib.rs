//! Writes the log of worker, program and client library: one line on standard error for each event, whatever it contains.
//!
//! Kernel names, paths, errors of other processes come from outside. So a line is escaped ([`escaped`]) after it is put together and before
//! it is written, which is the only place where hipr writes log lines; equal lines are counted instead of repeated, and of each kind of line
//! (each place in the sources) only so many bytes are written in a while.
//!
//! Nothing is kept in thread-local storage, as a program's destructors call the client library when that of the main thread is gone.

#![forbid(unsafe_code)]

mod escape;
mod limit;

pub use escape::escaped;

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::{EnvFilter, Registry};

use limit::Limiter;

/// What stands before the text of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Time and level: for a process whose standard error is a log.
    Timed,
    /// `hipr: `, with the level if it is neither a warning nor an error: for a library in somebody else's program.
    Named,
}

/// Maximum length of a line's text in bytes.
const TEXT_MAX_BYTES: usize = 4096;

/// Starts the log, unless the process has one; `HIPR_LOG` sets another level or filter than `default`.
pub fn start(style: Style, default: &str) {
    if tracing::dispatcher::has_been_set() {
        return;
    }
    let filter = std::env::var("HIPR_LOG").ok().filter(|text| !text.is_empty());
    let filter =
        filter.and_then(|text| EnvFilter::try_new(text).ok()).unwrap_or_else(|| EnvFilter::new(default));
    let lines = Lines {
        style,
        has_colors: style == Style::Timed && std::io::stderr().is_terminal(),
        started: Instant::now(),
        limiter: Mutex::default(),
    };
    // It fails only when another thread was faster, which is as good.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(filter).with(lines));
}

/// Formats events as lines and writes them.
struct Lines {
    style: Style,
    has_colors: bool,
    started: Instant,
    limiter: Mutex<Limiter>,
}

impl Lines {
    fn prefix(&self, level: Level) -> String {
        let mut prefix = String::new();
        if self.style == Style::Named {
            prefix.push_str("hipr: ");
            if level > Level::WARN {
                prefix.push_str(&level.as_str().to_ascii_lowercase());
                prefix.push_str(": ");
            }
            return prefix;
        }
        // A time that cannot be told is left out.
        let _ = SystemTime.format_time(&mut Writer::new(&mut prefix));
        let color = match level {
            Level::ERROR => 31,
            Level::WARN => 33,
            Level::INFO => 32,
            Level::DEBUG => 34,
            Level::TRACE => 35,
        };
        match self.has_colors {
            true => format!("\x1b[2m{prefix}\x1b[0m \x1b[{color}m{level:>5}\x1b[0m "),
            false => format!("{prefix} {level:>5} "),
        }
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        let mut text = String::new();
        if DefaultFields::new().format_fields(Writer::new(&mut text), event).is_err() {
            return;
        }
        let text = escaped(&text, TEXT_MAX_BYTES);
        // Who asks for details gets all of them.
        let said = if level > Level::INFO {
            vec![text.into_owned()]
        } else {
            let kind = std::ptr::from_ref(event.metadata()).addr();
            let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
            limiter.admit(kind, &text, self.started.elapsed())
        };
        if said.is_empty() {
            return;
        }
        let prefix = self.prefix(level);
        let lines: String =
            said.into_iter().flat_map(|text| [prefix.clone(), text, "\n".to_owned()]).collect();
        // The process may have closed its standard error.
        let _ = std::io::stderr().write_all(lines.as_bytes());
    }
}
