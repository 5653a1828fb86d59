//! The log of a program that uses the library: lines on standard error, from level `warn` on.
//!
//! `HIPR_LOG` sets another level or filter (`off`, `info`, `debug`, `trace`, or as in `RUST_LOG`). The shared
//! library has its own copy of the logging machinery, so this never meets a subscriber of the program; where the
//! Rust library is linked into a program that has one, that one stays.

use std::io::Write;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::{EnvFilter, Registry};

/// Starts the log, unless the program has installed one.
pub(crate) fn init() {
    if tracing::dispatcher::has_been_set() {
        return;
    }
    let filter = std::env::var("HIPR_LOG").ok().filter(|text| !text.is_empty());
    let filter =
        filter.and_then(|text| EnvFilter::try_new(text).ok()).unwrap_or_else(|| EnvFilter::new("warn"));
    // It fails only when another thread was faster, which is as good.
    let _ = tracing::subscriber::set_global_default(Registry::default().with(filter).with(Lines));
}

/// Formats a line as `hipr: message`, with the level if it is neither a warning nor an error.
///
/// It keeps nothing in thread-local storage, as a program's destructors call this library when that of the main thread is gone.
struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        let mut line = String::from("hipr: ");
        if level > Level::WARN {
            line.push_str(&level.as_str().to_ascii_lowercase());
            line.push_str(": ");
        }
        if DefaultFields::new().format_fields(Writer::new(&mut line), event).is_ok() {
            line.push('\n');
            // The program may have closed its standard error.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}
