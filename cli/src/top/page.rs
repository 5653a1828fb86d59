//! Asks a worker for its sessions.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use crate::worker::metrics::Sessions;

/// Longest time for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of an answer.
const ANSWER_MAX_BYTES: u64 = 16 << 20;
const HEADERS_MAX: usize = 32;

/// Returns the sessions of the worker whose metrics are at `address`.
pub(super) fn fetch(address: &str) -> Result<Sessions, String> {
    let cannot = |why: String| {
        format!("cannot ask {address} for its sessions: {why} (is it what --metrics of the worker says?)")
    };
    let answer = get(address).map_err(|why| cannot(why.to_string()))?;
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let body = match head.parse(&answer) {
        Ok(httparse::Status::Complete(at)) if head.code == Some(200) => answer.get(at..).unwrap_or_default(),
        Ok(httparse::Status::Complete(_)) => {
            return Err(cannot(format!("it answers {}", head.code.unwrap_or_default())));
        }
        Ok(httparse::Status::Partial) | Err(_) => return Err(cannot("it does not speak HTTP".to_owned())),
    };
    serde_json::from_slice(body).map_err(|_| cannot("it answers something else".to_owned()))
}

fn get(address: &str) -> io::Result<Vec<u8>> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it is no address");
    for at in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&at, TIMEOUT) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(TIMEOUT))?;
                stream.set_write_timeout(Some(TIMEOUT))?;
                let request =
                    format!("GET /sessions HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
                stream.write_all(request.as_bytes())?;
                let mut answer = Vec::new();
                stream.take(ANSWER_MAX_BYTES).read_to_end(&mut answer)?;
                return Ok(answer);
            }
            Err(why) => last = why,
        }
    }
    Err(last)
}
