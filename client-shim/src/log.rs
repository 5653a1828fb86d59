//! The log of a program that uses the library: lines on standard error, from `warn` on.
//!
//! `HIPR_LOG` sets another level or filter (`off`, `info`, `debug`, `trace`, or as in `RUST_LOG`). The shared
//! library has its own copy of the logging machinery, so this never meets a subscriber of the program; where the
//! Rust library is linked into a program that has one, that one stays.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

/// Starts the log unless the program has one.
pub(crate) fn init() {
    if tracing::dispatcher::has_been_set() {
        return;
    }
    let filter = std::env::var("HIPR_LOG").ok().filter(|text| !text.is_empty());
    let filter =
        filter.and_then(|text| EnvFilter::try_new(text).ok()).unwrap_or_else(|| EnvFilter::new("warn"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .event_format(Line)
        .finish();
    // It fails only when another thread was faster, which is as good.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// `hipr: message`, with the level where it is not a warning or an error.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = *event.metadata().level();
        write!(writer, "hipr: ")?;
        if level > Level::WARN {
            write!(writer, "{}: ", level.as_str().to_ascii_lowercase())?;
        }
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
