//! A worker's metrics as Debian's Prometheus reads them.

use super::{WORKERS, send_some, start};
use hipr_tests::metrics::ask;
use hipr_tests::toolchain::prometheus;
use hipr_tests::{WireClient, eventually};
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use tempfile::TempDir;

/// A running Prometheus; killed when dropped.
struct Prometheus {
    child: Child,
    at: SocketAddr,
    folder: TempDir,
}

impl Prometheus {
    /// Starts one that reads the metrics of a worker each second.
    fn start(programs: &Path, target: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs: [{{job_name: hipr, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        let file = folder.path().join("prometheus.yml");
        fs::write(&file, config).expect("written");
        // It cannot say which free port it has taken. When another program was faster, it ends, and another port is tried.
        for _ in 0..10 {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
            let at = free.expect("a free port");
            let log = fs::File::create(folder.path().join("log")).expect("a file");
            let mut child = Command::new(programs.join("usr/bin/prometheus"))
                .arg(format!("--config.file={}", file.display()))
                .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
                .arg(format!("--web.listen-address={at}"))
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .expect("prometheus starts");
            let mut has_ended = false;
            eventually("prometheus is ready", || {
                has_ended = child.try_wait().expect("a process").is_some();
                has_ended || std::net::TcpStream::connect(at).is_ok() && ask(at, "/-/ready").0 == 200
            });
            if !has_ended {
                return Self { child, at, folder };
            }
        }
        panic!("{}", fs::read_to_string(folder.path().join("log")).unwrap_or_default());
    }

    /// Returns the one value of a query, if it has one.
    fn value(&self, query: &str) -> Option<f64> {
        let (status, text) = ask(self.at, &format!("/api/v1/query?query={query}"));
        assert_eq!(status, 200, "{query}: {text}");
        let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let results = answer["data"]["result"].as_array().expect("results");
        assert!(results.len() <= 1, "{query}: {text}");
        results.first()?["value"][1].as_str()?.parse().ok()
    }

    fn wait_for(&self, query: &str, expected: f64) {
        let mut last = None;
        let start = std::time::Instant::now();
        while last != Some(expected) {
            assert!(
                start.elapsed() < std::time::Duration::from_secs(60),
                "{query} is {last:?} and not {expected}:\n{}",
                fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
            );
            thread::sleep(std::time::Duration::from_millis(100));
            last = self.value(query);
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prometheus_knows_what_clients_have_sent() {
    let Some(programs) = prometheus("what Prometheus reads of a worker is not tested") else { return };
    for options in WORKERS {
        let (worker, at) = start(options, &[]);
        let known = Prometheus::start(&programs, at);
        known.wait_for("up", 1.0);
        let load = || {
            let mut client = WireClient::open(worker.address());
            // The session was opened with one.
            1 + (0..20).map(|_| send_some(&mut client, 4096)).sum::<u64>()
        };
        let sent = thread::scope(|scope| {
            let clients: Vec<_> = (0..4).map(|_| scope.spawn(load)).collect();
            clients.into_iter().map(|client| client.join().expect("it has sent")).sum::<u64>()
        });
        known.wait_for("sum(hipr_requests_total)", sent as f64);
        known.wait_for("hipr_requests_total{operation=\"MEMSET\"}", (4 * 20 * 100) as f64);
        known.wait_for("hipr_errors_total{error=\"hipErrorInvalidValue\"}", (4 * 20) as f64);
        known.wait_for("sum(hipr_sessions_ended_total)", 4.0);
        known.wait_for("hipr_sessions", 0.0);
        known.wait_for("up", 1.0);
    }
}

#[test]
fn promtool_finds_nothing_wrong() {
    let Some(programs) = prometheus("whether names are Prometheus' is not tested") else { return };
    for options in WORKERS {
        let (worker, at) = start(options, &["--cache", "16M"]);
        let mut client = WireClient::open(worker.address());
        send_some(&mut client, 4096);
        drop(client);
        eventually("its end is counted", || ask(at, "/metrics").1.contains("hipr_sessions_ended_total{"));
        let text = ask(at, "/metrics").1;
        let mut tool = Command::new(programs.join("usr/bin/promtool"))
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("promtool starts");
        tool.stdin.take().expect("piped").write_all(text.as_bytes()).expect("taken");
        let output = tool.wait_with_output().expect("it ends");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success() && said.is_empty(), "{}\n{text}", String::from_utf8_lossy(&said));
    }
}
