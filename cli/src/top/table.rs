//! The table of `hipr top`: rates between two looks, in an order, on a terminal or as text.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};

use crate::worker::metrics::{NOBODY, SessionRow, Sessions};

const HEAD: [&str; 10] =
    ["SESSION", "TENANT", "FROM", "AGE", "REQUESTS/s", "SENT/s", "DEVICE %", "MEMORY", "STREAMS", "QUEUED"];
const TENANT_HEAD: [&str; 7] =
    ["TENANT", "SESSIONS", "REQUESTS/s", "SENT/s", "DEVICE %", "MEMORY", "STREAMS"];
/// Widths of the columns in characters.
const WIDTHS: [u16; 10] = [9, 18, 22, 9, 11, 10, 9, 10, 8, 8];
const TENANT_WIDTHS: [u16; 7] = [28, 9, 11, 10, 9, 10, 8];
/// Most tenants that are shown.
const TENANTS_MAX: usize = 8;

/// What sessions are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum By {
    #[default]
    Device,
    Memory,
    Requests,
    Number,
}

impl By {
    /// Returns what a key sorts by.
    pub(super) fn of_key(key: char) -> Option<Self> {
        match key {
            'd' => Some(Self::Device),
            'm' => Some(Self::Memory),
            'r' => Some(Self::Requests),
            'n' => Some(Self::Number),
            _ => None,
        }
    }
}

/// What a session, or those of a tenant, do in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rates {
    sessions: u64,
    requests: f64,
    sent_bytes: f64,
    /// Parts of a processor's time.
    device: f64,
    memory_bytes: u64,
    streams: u64,
}

impl Rates {
    fn add(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.requests += other.requests;
        self.sent_bytes += other.sent_bytes;
        self.device += other.device;
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.streams = self.streams.saturating_add(other.streams);
    }
}

/// What is shown.
pub(super) struct View {
    seats: usize,
    at: Instant,
    rows: Vec<(SessionRow, Rates)>,
    by: By,
}

impl View {
    /// Returns a first look, of which no rates are known.
    pub(super) fn new(sessions: Sessions, at: Instant) -> Self {
        let mut view = Self { seats: 0, at, rows: Vec::new(), by: By::default() };
        view.renew(sessions, at);
        view
    }

    /// Takes a further look.
    pub(super) fn renew(&mut self, sessions: Sessions, at: Instant) {
        let seconds = at.duration_since(self.at).as_secs_f64();
        let before: HashMap<u64, SessionRow> =
            self.rows.drain(..).map(|(row, _)| (row.number, row)).collect();
        let rate = |now: u64, before: u64| {
            if seconds > 0.0 { now.saturating_sub(before) as f64 / seconds } else { 0.0 }
        };
        let rated = |row: SessionRow| {
            // Another worker at the same address counts from the beginning.
            let known = before.get(&row.number).filter(|known| known.from == row.from).unwrap_or(&row);
            let rates = Rates {
                sessions: 1,
                requests: rate(row.requests, known.requests),
                sent_bytes: rate(row.sent_bytes, known.sent_bytes),
                device: rate(row.device_ns, known.device_ns) / 1e9,
                memory_bytes: row.memory_bytes,
                streams: row.busy_streams,
            };
            (row, rates)
        };
        self.rows = sessions.sessions.into_iter().map(rated).collect();
        (self.seats, self.at) = (sessions.seats, at);
        self.sort(self.by);
    }

    /// Sorts the sessions.
    pub(super) fn sort(&mut self, by: By) {
        self.by = by;
        self.rows.sort_by_key(|(row, _)| row.number);
        match by {
            By::Device => self.rows.sort_by(|(_, one), (_, other)| other.device.total_cmp(&one.device)),
            By::Memory => self.rows.sort_by_key(|(row, _)| Reverse(row.memory_bytes)),
            By::Requests => self.rows.sort_by(|(_, one), (_, other)| other.requests.total_cmp(&one.requests)),
            By::Number => {}
        }
    }

    fn head(&self) -> String {
        let mut all = Rates::default();
        self.rows.iter().for_each(|(_, rates)| all.add(*rates));
        let parked = self.rows.iter().filter(|(row, _)| row.is_parked).count();
        let parked = if parked > 0 { format!(", {parked} without a connection") } else { String::new() };
        format!(
            "{} of {} sessions{parked}; {} requests/s, {}/s sent, device {:.0} %, {} of memory, {} streams at work",
            self.rows.len(),
            self.seats,
            count(all.requests),
            bytes(all.sent_bytes),
            all.device * 100.0,
            bytes(all.memory_bytes as f64),
            all.streams
        )
    }

    fn sessions(&self) -> Vec<[String; 10]> {
        let cells = |(row, rates): &(SessionRow, Rates)| {
            [
                row.number.to_string(),
                row.tenant.clone().unwrap_or_else(|| NOBODY.to_owned()),
                if row.is_parked { "(cut)".to_owned() } else { row.from.clone() },
                age(row.age_s),
                count(rates.requests),
                bytes(rates.sent_bytes),
                format!("{:.0}", rates.device * 100.0),
                bytes(row.memory_bytes as f64),
                row.busy_streams.to_string(),
                row.queued_commands.to_string(),
            ]
        };
        self.rows.iter().map(cells).collect()
    }

    /// The tenants, those with most device time first; none if nobody has a name.
    fn tenants(&self) -> Vec<[String; 7]> {
        let mut tenants: BTreeMap<&str, Rates> = BTreeMap::new();
        for (row, rates) in &self.rows {
            tenants.entry(row.tenant.as_deref().unwrap_or(NOBODY)).or_default().add(*rates);
        }
        if tenants.keys().all(|tenant| *tenant == NOBODY) {
            return Vec::new();
        }
        let mut tenants: Vec<_> = tenants.into_iter().collect();
        tenants.sort_by(|(_, one), (_, other)| other.device.total_cmp(&one.device));
        let cells = |(tenant, rates): (&str, Rates)| {
            [
                tenant.to_owned(),
                rates.sessions.to_string(),
                count(rates.requests),
                bytes(rates.sent_bytes),
                format!("{:.0}", rates.device * 100.0),
                bytes(rates.memory_bytes as f64),
                rates.streams.to_string(),
            ]
        };
        tenants.into_iter().take(TENANTS_MAX).map(cells).collect()
    }

    /// Draws the view; `why` says why the last look failed.
    pub(super) fn draw(&self, frame: &mut Frame<'_>, worker: &str, why: Option<&str>) {
        let tenants = self.tenants();
        let tenant_lines = if tenants.is_empty() { 0 } else { tenants.len() as u16 + 2 };
        let [title, state, middle, list, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(2),
            Constraint::Length(tenant_lines),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        frame.render_widget(Line::from(format!("hipr top: {worker}")).bold(), title);
        let said = why.map_or_else(|| Line::from(self.head()), |why| Line::from(why.to_owned()).red());
        frame.render_widget(said, state);
        let head = Style::new().reversed();
        let widths =
            |widths: &[u16]| widths.iter().map(|width| Constraint::Length(*width)).collect::<Vec<_>>();
        let rows = tenants.into_iter().map(Row::new);
        frame.render_widget(
            Table::new(rows, widths(&TENANT_WIDTHS)).header(Row::new(TENANT_HEAD).style(head)),
            middle,
        );
        let rows = self.sessions().into_iter().map(Row::new);
        frame.render_widget(Table::new(rows, widths(&WIDTHS)).header(Row::new(HEAD).style(head)), list);
        frame.render_widget(
            Line::from("q ends; sort by: d device, m memory, r requests, n number").dim(),
            keys,
        );
    }

    /// Returns the view as text.
    pub(super) fn text(&self) -> String {
        let line = |cells: &[String], widths: &[u16]| {
            let cells = cells.iter().zip(widths).map(|(cell, width)| {
                let cell = hipr_log::escaped(cell, 256).to_string();
                format!("{cell:<width$} ", width = usize::from(*width))
            });
            format!("{}\n", cells.collect::<String>().trim_end())
        };
        let mut text = format!("{}\n", self.head());
        let tenants = self.tenants();
        if !tenants.is_empty() {
            text += &line(&TENANT_HEAD.map(str::to_owned), &TENANT_WIDTHS);
            tenants.iter().for_each(|row| text += &line(row, &TENANT_WIDTHS));
        }
        text += &line(&HEAD.map(str::to_owned), &WIDTHS);
        self.sessions().iter().for_each(|row| text += &line(row, &WIDTHS));
        text
    }
}

fn count(number: f64) -> String {
    if number < 10_000.0 { format!("{number:.0}") } else { format!("{:.1}k", number / 1e3) }
}

fn bytes(number: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = number;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let unit = units.get(unit).copied().unwrap_or("B");
    if value < 10.0 && unit != "B" { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn row(
        number: u64,
        tenant: Option<&str>,
        requests: u64,
        device_ns: u64,
        memory_bytes: u64,
    ) -> SessionRow {
        let tenant = tenant.map(str::to_owned);
        SessionRow { number, tenant, requests, device_ns, memory_bytes, ..SessionRow::default() }
    }

    fn numbers(view: &View) -> Vec<u64> {
        view.rows.iter().map(|(row, _)| row.number).collect()
    }

    #[test]
    fn rates_are_those_between_two_looks() {
        let start = Instant::now();
        let look = |sessions| Sessions { seats: 8, sessions };
        let mut view = View::new(look(vec![row(1, None, 100, 0, 5), row(2, Some("ann"), 10, 0, 7)]), start);
        assert!(view.text().contains("2 of 8 sessions; 0 requests/s"), "{}", view.text());
        let later = vec![
            row(1, None, 300, 500_000_000, 5),
            row(2, Some("ann"), 10, 2_000_000_000, 7),
            row(3, None, 99, 9, 9),
        ];
        view.renew(look(later), start + Duration::from_secs(2));
        assert!(
            view.text().contains("3 of 8 sessions; 100 requests/s, 0 B/s sent, device 125 %"),
            "{}",
            view.text()
        );
        assert_eq!(numbers(&view), [2, 1, 3], "by device time");
        for (key, order) in [('m', [3, 2, 1]), ('r', [1, 2, 3]), ('n', [1, 2, 3]), ('d', [2, 1, 3])] {
            view.sort(By::of_key(key).expect("a key"));
            assert_eq!(numbers(&view), order, "{key}");
        }
        assert_eq!(By::of_key('x'), None);
        let tenants: Vec<_> =
            view.tenants().into_iter().map(|cells| (cells[0].clone(), cells[1].clone())).collect();
        assert_eq!(tenants, [("ann".into(), "1".into()), (NOBODY.into(), "2".into())]);
        // A worker that begins anew takes nothing back.
        view.renew(look(vec![row(1, None, 5, 0, 5)]), start + Duration::from_secs(3));
        assert!(view.text().contains("1 of 8 sessions; 0 requests/s"), "{}", view.text());
    }

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1500.0, "1.5 kB"),
            (25e6, "25 MB"),
            (3.2e12, "3.2 TB"),
            (5e15, "5000 TB"),
        ] {
            assert_eq!(bytes(number), text);
        }
        assert_eq!([5, 65, 7300, 200_000].map(age), ["5 s", "1 min", "2 h", "2 d"]);
        assert_eq!((count(9999.0), count(12_345.0)), ("9999".to_owned(), "12.3k".to_owned()));
    }
}
