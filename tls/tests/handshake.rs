//! Tests who is let in, over two channels that talk to each other without a socket.

use std::fs::{self, Permissions};
use std::io::IoSlice;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hipr_resume::Claim;
use hipr_tls::preamble::{Answer, Hello};
use hipr_tls::{
    Certificate, ClientChannel, ClientIdentity, Expected, Fault, Invitations, PublicKey, SecretKey,
    ServerChannel, Token, WorkerIdentity, is_alert, is_hello,
};
use tempfile::TempDir;

/// A worker with a file of authorized keys.
struct Worker {
    key: SecretKey,
    file: PathBuf,
    identity: Arc<WorkerIdentity>,
    _folder: TempDir,
}

impl Worker {
    fn new(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("authorized");
        fs::write(&file, lines).unwrap();
        let key = SecretKey::generate().unwrap();
        let identity = Arc::new(WorkerIdentity::new(&key, &file).unwrap());
        Self { key, file, identity, _folder: folder }
    }

    fn invite(&self, valid_for: Duration) -> Token {
        Invitations::beside(&self.file).invite(Some("guest".into()), None, valid_for).unwrap()
    }
}

/// Both ends of a connection.
struct Pair {
    client: ClientChannel,
    server: ServerChannel,
    /// What the client will say when it knows the worker.
    to_say: Vec<u8>,
    /// What the client said, from the beginning.
    said: Vec<u8>,
    client_fault: Option<Fault>,
    server_fault: Option<Fault>,
    received: Vec<u8>,
}

impl Pair {
    fn new(worker: &Worker, key: &SecretKey, expected: Expected, token: Option<Token>) -> Self {
        let identity = ClientIdentity::new(key).unwrap();
        let client = ClientChannel::new(&identity, expected, token).unwrap();
        let server = ServerChannel::new(worker.identity.clone()).unwrap();
        let (to_say, said, client_fault, server_fault, received) = Default::default();
        Self { client, server, to_say, said, client_fault, server_fault, received }
    }

    /// Passes bytes on until nobody says anything more; `garble` may change those of the client.
    fn talk(&mut self, mut garble: impl FnMut(usize, &mut Vec<u8>)) -> &mut Self {
        let mut buffer = [0; 4096];
        loop {
            if self.client.is_ready() && !self.to_say.is_empty() {
                self.client.channel().send(&[IoSlice::new(&std::mem::take(&mut self.to_say))]);
            }
            let mut up = Vec::new();
            self.client.channel().take_output(&mut up);
            let is_silent = up.is_empty();
            let at = self.said.len();
            self.said.extend_from_slice(&up);
            garble(at, &mut up);
            let mut left = up.as_slice();
            while !left.is_empty() && self.server_fault.is_none() {
                match self.server.receive(&mut left, &mut buffer) {
                    Ok(len) => self.received.extend_from_slice(&buffer[..len]),
                    Err(why) => self.server_fault = Some(why),
                }
            }
            let mut down = Vec::new();
            self.server.channel().take_output(&mut down);
            if is_silent && down.is_empty() {
                return self;
            }
            let mut left = down.as_slice();
            while !left.is_empty() && self.client_fault.is_none() {
                if let Err(why) = self.client.receive(&mut left, &mut buffer) {
                    self.client_fault = Some(why);
                }
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.to_say.extend_from_slice(bytes);
    }
}

fn key() -> SecretKey {
    SecretKey::generate().unwrap()
}

fn refusal(pair: &Pair) -> &str {
    match (&pair.server_fault, &pair.client_fault) {
        (Some(Fault::Refused(_)), Some(Fault::Refused(told))) => told,
        faults => panic!("{faults:?}"),
    }
}

#[test]
fn who_is_authorized_comes_in_and_gets_what_the_line_says() {
    let user = key();
    let terms = "tenant=lab memory-max=16G memory-total=32G sessions-max=65536 parked-max=3 weight=100 kernel-timeout=30 connections-per-second=7 requests-per-second=900 # a comment";
    let line = format!("# ours\n{} {terms}\n", user.public());
    let worker = Worker::new(&line);
    let mut pair = Pair::new(&worker, &user, Expected::Known(worker.key.public().fingerprint()), None);
    pair.talk(|_, _| ());
    assert!(pair.client.is_in(), "{:?} {:?}", pair.client_fault, pair.server_fault);
    let grant = pair.server.grant().unwrap();
    assert_eq!((&*grant.tenant, grant.memory_max_bytes, grant.key), ("lab", Some(16 << 30), user.public()));
    let terms = (grant.sessions_max, grant.weight, grant.kernel_timeout_s);
    assert_eq!(terms, (Some(65536), 100, Some(30)));
    assert_eq!((grant.connections_per_second, grant.requests_per_second), (Some(7), Some(900)));
    assert_eq!((grant.parked_max, grant.memory_total_bytes), (Some(3), Some(32 << 30)));
    pair.say(b"HIPR");
    pair.talk(|_, _| ());
    assert_eq!(pair.received, b"HIPR");
    // An end without a good-bye is told from one with it.
    assert_eq!(pair.server.handle_eof(), Err(Fault::Truncated));
    pair.client.channel().close();
    pair.talk(|_, _| ());
    assert_eq!(pair.server.handle_eof(), Ok(()));
}

#[test]
fn who_is_not_authorized_is_told_so_and_nothing_else_passes() {
    let (user, stranger) = (key(), key());
    let worker = Worker::new(&format!("{}\n", user.public()));
    let mut pair = Pair::new(&worker, &stranger, Expected::Any, None);
    pair.say(b"HIPR");
    pair.talk(|_, _| ());
    assert!(refusal(&pair).contains(&stranger.public().to_string()), "{}", refusal(&pair));
    assert!(pair.received.is_empty() && pair.server.grant().is_none());
    // Without a tenant in the line, the key is one.
    let mut pair = Pair::new(&worker, &user, Expected::Any, None);
    pair.talk(|_, _| ());
    assert_eq!(pair.server.grant().unwrap().tenant, user.public().fingerprint().to_string());
}

#[test]
fn the_file_is_read_again_when_it_changes() {
    let (first, second) = (key(), key());
    let worker = Worker::new(&format!("{}\n", first.public()));
    let is_in = |key: &SecretKey| Pair::new(&worker, key, Expected::Any, None).talk(|_, _| ()).client.is_in();
    assert_eq!((is_in(&first), is_in(&second)), (true, false));
    fs::write(&worker.file, format!("{}\n", second.public())).unwrap();
    assert_eq!((is_in(&first), is_in(&second)), (false, true), "one was struck off, one was added");
    // A file that is wrong, or that others may change, lets nobody in.
    fs::write(&worker.file, format!("{}\nnonsense\n", second.public())).unwrap();
    assert!(!is_in(&second));
    fs::write(&worker.file, format!("{}\n", second.public())).unwrap();
    assert!(is_in(&second));
    fs::set_permissions(&worker.file, Permissions::from_mode(0o666)).unwrap();
    assert!(!is_in(&second));
    fs::remove_file(&worker.file).unwrap();
    assert!(!is_in(&second));
}

#[test]
fn a_worker_with_another_key_is_told_nothing() {
    let user = key();
    let worker = Worker::new(&format!("{}\n", user.public()));
    let expected = key().public().fingerprint();
    let mut pair = Pair::new(&worker, &user, Expected::Known(expected), None);
    // Nor by who does not wait until it knows.
    pair.client.channel().send(&[IoSlice::new(b"secret")]);
    pair.say(b"HIPR");
    pair.talk(|_, _| ());
    let Some(Fault::Changed(changed)) = &pair.client_fault else { panic!("{:?}", pair.client_fault) };
    assert_eq!((changed.expected, changed.found), (expected, worker.key.public().fingerprint()));
    assert!(!pair.client.is_ready() && pair.received.is_empty());
}

#[test]
fn an_invitation_lets_one_key_in_once() {
    let worker = Worker::new("");
    let token = worker.invite(Duration::from_secs(60));
    let (guest, thief) = (key(), key());
    let come = |key: &SecretKey, token: Option<&Token>| {
        let mut pair = Pair::new(&worker, key, Expected::Any, token.cloned());
        pair.talk(|_, _| ());
        pair
    };
    let stored = fs::read_to_string(Invitations::beside(&worker.file).path()).unwrap();
    assert!(!stored.contains(&token.text()), "the token is not stored");
    let wrong = Token::parse(&token.text().chars().rev().collect::<String>());
    if let Some(wrong) = wrong {
        assert!(refusal(&come(&thief, Some(&wrong))).contains("invitation"));
    }
    assert_eq!(come(&guest, Some(&token)).server.grant().unwrap().tenant, "guest");
    assert!(refusal(&come(&thief, Some(&token))).contains("invitation"));
    assert!(refusal(&come(&guest, Some(&token))).contains("invitation"), "not even for the same key");
    assert_eq!(come(&guest, None).server.grant().unwrap().tenant, "guest", "the key stays");
    assert!(!come(&thief, None).client.is_in());
    // What has ended is nothing.
    let late = worker.invite(Duration::ZERO);
    assert!(refusal(&come(&thief, Some(&late))).contains("has ended"));
    let lines = fs::read_to_string(&worker.file).unwrap();
    assert_eq!(lines, format!("{} tenant=guest\n", guest.public()));
}

#[test]
fn an_invitation_is_used_once_by_many_at_a_time() {
    let worker = Worker::new("");
    let token = worker.invite(Duration::from_secs(60));
    let entered: usize = std::thread::scope(|scope| {
        let come =
            || Pair::new(&worker, &key(), Expected::Any, Some(token.clone())).talk(|_, _| ()).client.is_in();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(come)).collect();
        all.into_iter().map(|guest| usize::from(guest.join().unwrap())).sum()
    });
    assert_eq!(entered, 1);
}

/// Returns a client's bytes up to and with "HIPR", of a connection that goes well.
fn good_bytes(worker: &Worker, user: &SecretKey) -> Vec<u8> {
    let mut pair = Pair::new(worker, user, Expected::Any, None);
    pair.say(b"HIPR");
    pair.talk(|_, _| ());
    assert_eq!(pair.received, b"HIPR");
    pair.said
}

/// Returns the places of the versions in the headers of records, which mean nothing (RFC 8446, section 5.1).
fn versions(said: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let mut places = Vec::new();
    while let Some([_, _, _, high, low]) = said.get(at..at + 5) {
        places.extend([at + 1, at + 2]);
        at += 5 + usize::from(u16::from_be_bytes([*high, *low]));
    }
    assert_eq!(at, said.len(), "whole records");
    places
}

#[test]
fn a_changed_byte_anywhere_lets_nothing_else_in() {
    let user = key();
    let worker = Worker::new(&format!("{}\n", user.public()));
    let said = good_bytes(&worker, &user);
    let versions = versions(&said);
    for at in 0..said.len() {
        let mut pair = Pair::new(&worker, &user, Expected::Any, None);
        pair.say(b"HIPR");
        pair.talk(|begin, bytes| {
            if let Some(byte) = at.checked_sub(begin).and_then(|at| bytes.get_mut(at)) {
                *byte ^= 0x10;
            }
        });
        assert!(pair.received.is_empty() || versions.contains(&at) && pair.received == b"HIPR", "byte {at}");
        assert!(pair.server.grant().is_none_or(|grant| grant.key == user.public()), "byte {at}");
    }
}

#[test]
fn a_connection_that_is_cut_off_anywhere_is_not_in_order() {
    let user = key();
    let worker = Worker::new(&format!("{}\n", user.public()));
    // The last record has the session's bytes.
    for end in 0..good_bytes(&worker, &user).len() {
        let mut pair = Pair::new(&worker, &user, Expected::Any, None);
        pair.say(b"HIPR");
        pair.talk(|begin, bytes| bytes.truncate(end.saturating_sub(begin)));
        assert!(pair.received.is_empty(), "{end} bytes");
        assert_eq!(pair.server.handle_eof(), Err(Fault::Truncated), "{end} bytes");
    }
}

#[test]
fn what_is_not_tls_is_refused_with_an_alert_at_its_first_byte() {
    let worker = Worker::new("");
    for said in [&b"RPIH"[..], b"GET / HTTP/1.1\r\n\r\n", b"\0", b"SSH-2.0-x\r\n"] {
        let mut server = ServerChannel::new(worker.identity.clone()).unwrap();
        let fault = server.receive(&mut &said[..], &mut [0; 64]);
        assert_eq!(fault, Err(Fault::NotTls));
        let mut told = Vec::new();
        server.channel().take_output(&mut told);
        assert!(is_alert(&told), "{told:?}");
        assert_eq!(is_hello(said), None);
    }
}

#[test]
fn a_beginning_has_an_end() {
    let user = key();
    let worker = Worker::new(&format!("{}\n", user.public()));
    // A handshake message that never ends, in records that each are whole.
    let mut server = ServerChannel::new(worker.identity.clone()).unwrap();
    let mut record = vec![22, 3, 1, 0x40, 0];
    record.resize(5 + 0x4000, 0);
    record[5..9].copy_from_slice(&[1, 0, 0xff, 0xff]);
    let mut taken = 0;
    let fault = loop {
        taken += record.len();
        match server.receive(&mut record.as_slice(), &mut [0; 64]) {
            Ok(_) => assert!(taken < 1 << 20, "it takes everything"),
            Err(why) => break why,
        }
    };
    assert!(matches!(fault, Fault::TooLong | Fault::Tls(_)), "{fault:?}");
}

#[test]
fn a_client_without_a_key_or_with_an_older_tls_is_refused() {
    let worker = Worker::new("");
    // A client of rustls that asks for a raw key and shows none; and bytes of a TLS 1.2 hello without the extension for versions.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let mut client = rustls::ClientConnection::new(Arc::new(config), "hipr".try_into().unwrap()).unwrap();
    let mut server = ServerChannel::new(worker.identity.clone()).unwrap();
    let mut said = Vec::new();
    client.write_tls(&mut said).unwrap();
    let fault = server.receive(&mut said.as_slice(), &mut [0; 64]).unwrap_err();
    assert!(matches!(fault, Fault::Tls(_)), "{fault:?}");
    assert!(server.grant().is_none());

    let mut old = vec![22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 3];
    old.extend([7; 32]);
    old.extend([0, 0, 2, 0xc0, 0x2f, 1, 0]);
    let mut server = ServerChannel::new(worker.identity.clone()).unwrap();
    let fault = server.receive(&mut old.as_slice(), &mut [0; 64]).unwrap_err();
    assert!(matches!(fault, Fault::Tls(_)), "{fault:?}");
}

#[test]
fn preambles_are_read_as_they_are_written() {
    let token =
        Token::parse(&PublicKey::from_spki(&key().public().spki()).unwrap().to_string()[13..]).unwrap();
    let certificate = Some(vec![7; Certificate::MAX_BYTES]);
    let claim = Claim::from_bytes(&[1; 44]);
    assert!(claim.is_some());
    for hello in [
        Hello::default(),
        Hello { token: Some(token.clone()), ..Hello::default() },
        Hello { certificate: certificate.clone(), ..Hello::default() },
        Hello { token: Some(token), claim, certificate, route: None, capability: None },
        Hello { capability: Some([7; 32]), ..Hello::default() },
    ] {
        let bytes = hello.to_bytes();
        let (head, fields) = bytes.split_first_chunk().unwrap();
        assert_eq!(hipr_tls::preamble::fields_len(*head), Ok(fields.len()));
        assert_eq!(Hello::from_fields(fields), Ok(hello));
    }
    for text in ["no", "", &"é".repeat(1000)] {
        let bytes = Answer { refusal: Some(text.to_owned()), terms: None }.to_bytes();
        let read = Answer::from_fields(&bytes[8..]).unwrap().refusal.unwrap();
        assert!(text.starts_with(&read) && read.len() <= 512 && (text.len() > 512 || read == text));
    }
    // To the byte: docs/identity.md.
    let hello = Hello { certificate: Some(b"x".to_vec()), ..Hello::default() };
    assert_eq!(hello.to_bytes(), b"HIPS\x01\0\x05\0\x01\x80\x01\0x");
    assert_eq!(Hello::default().to_bytes(), b"HIPS\x01\0\0\0");
    assert_eq!(
        Answer { refusal: Some("no".into()), terms: None }.to_bytes(),
        b"HIPS\x01\0\x06\0\x01\0\x02\0no"
    );
}

#[test]
fn preambles_that_are_none_are_refused() {
    use hipr_tls::preamble::fields_len;
    for head in [*b"HIPR\x01\0\0\0", *b"HIPS\x02\0\0\0", *b"HIPS\0\0\0\0", *b"HIPS\x01\0\x01\x04"] {
        assert!(fields_len(head).is_err(), "{head:?}");
    }
    assert_eq!(fields_len(*b"HIPS\x01\0\0\x04"), Ok(1024));
    let token = [&[1, 0, 32, 0][..], &[7; 32]].concat();
    assert!(Hello::from_fields(&token).unwrap().token.is_some());
    let twice = token.repeat(2);
    assert!(Hello::from_fields(&[1, 0x80, 0, 0, 1, 0x80, 0, 0]).is_err(), "two certificates");
    let cases = [&token[..35], &token[..3], &[1, 0, 0, 0], &[2, 0, 0, 0], &[0, 0, 1, 0, 9], &twice];
    for fields in cases {
        assert!(Hello::from_fields(fields).is_err(), "{fields:?}");
    }
    // What may be ignored is ignored.
    assert_eq!(Hello::from_fields(&[0, 0x80, 1, 0, 9]), Ok(Hello::default()));
    assert!(Answer::from_fields(&[1, 0, 1, 0, 0xff]).is_err(), "not UTF-8");
}
