//! `hipr top`: shows the sessions of a worker while they work.

mod page;
mod table;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use self::table::{By, View};
use crate::output::say;

/// Options of `hipr top`.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Where the worker says what it does: what `hipr worker --metrics` was given.
    #[arg(long, value_name = "HOST:PORT")]
    worker: String,
    /// Time between two looks, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// Prints the table once, after one interval, and ends.
    #[arg(long)]
    once: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "it is a number from 0.1 to 3600".to_owned())
}

/// Shows the sessions until the user ends it.
pub(crate) fn run(options: Top) -> Result<ExitCode, String> {
    // A port alone is on this machine, as for the worker.
    let worker =
        if options.worker.contains(':') { options.worker } else { format!("127.0.0.1:{}", options.worker) };
    let mut view = View::new(page::fetch(&worker)?, Instant::now());
    if options.once {
        thread::sleep(options.interval);
        view.renew(page::fetch(&worker)?, Instant::now());
        say!("{}", view.text().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if !std::io::stdout().is_terminal() {
        return Err("hipr top needs a terminal; --once prints the table once".to_owned());
    }
    let failed = |why: std::io::Error| format!("cannot use the terminal: {why}");
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let shown = (|| {
        let (mut next, mut why) = (Instant::now() + options.interval, None);
        loop {
            terminal.draw(|frame| view.draw(frame, &worker, why.as_deref())).map_err(failed)?;
            let left = next.saturating_duration_since(Instant::now());
            if event::poll(left).map_err(failed)? {
                match event::read().map_err(failed)? {
                    Event::Key(key) if key.kind == KeyEventKind::Press && ends(key) => return Ok(()),
                    Event::Key(KeyEvent { code: KeyCode::Char(key), kind: KeyEventKind::Press, .. }) => {
                        By::of_key(key).into_iter().for_each(|by| view.sort(by));
                    }
                    _ => {}
                }
            }
            let now = Instant::now();
            if now >= next {
                // A worker that is started anew is shown again.
                match page::fetch(&worker) {
                    Ok(sessions) => {
                        view.renew(sessions, now);
                        why = None;
                    }
                    Err(reason) => why = Some(reason),
                }
                next = now + options.interval;
            }
        }
    })();
    ratatui::restore();
    shown.map(|()| ExitCode::SUCCESS)
}

fn ends(key: KeyEvent) -> bool {
    let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}
