//! Tests a link whose key was lent: the test encrypts in the kernel's place, as RFC 8446, section 5, says, and a client of rustls listens.
//! What Linux does is tested in an emulated machine (`tests/ktls/run.sh`).

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use hipr_io::{Body, Config, ConnId, End, Event, Finish, LentKey, Link, Notice, Peer, Pool, Slots, Stats};
use hipr_proto::op::Malloc;
use hipr_proto::{FLAG_NO_REPLY, Header, Opcode, Outbox, Wire};
use hipr_resume::{Claim, Name};
use hipr_tls::preamble::Hello;
use hipr_tls::{ClientIdentity, Fault, LentCipher, SecretKey, WorkerIdentity};
use rustls::{CipherSuite, ClientConnection, Error};

const CIPHERS: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
];
const DATA: u8 = 23;
const ALERT: u8 = 21;

/// What encrypts in the kernel's place.
struct Kernel {
    key: LessSafeKey,
    iv: [u8; 12],
    record: u64,
}

impl Kernel {
    fn new(lent: &LentKey) -> Self {
        let (algorithm, key) = match &lent.cipher {
            LentCipher::Aes128Gcm(key) => (&AES_128_GCM, &key[..]),
            LentCipher::Aes256Gcm(key) => (&AES_256_GCM, &key[..]),
            LentCipher::ChaCha20Poly1305(key) => (&CHACHA20_POLY1305, &key[..]),
        };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key).unwrap());
        Self { key, iv: lent.iv, record: lent.record }
    }

    fn seal(&mut self, kind: u8, bytes: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        for piece in bytes.chunks(16 << 10) {
            let mut inner = [piece, &[kind]].concat();
            let len = u16::try_from(inner.len() + 16).unwrap().to_be_bytes();
            let head = [DATA, 3, 3, len[0], len[1]];
            let mut nonce = self.iv;
            for (place, byte) in nonce[4..].iter_mut().zip(self.record.to_be_bytes()) {
                *place ^= byte;
            }
            self.record += 1;
            let nonce = Nonce::assume_unique_for_key(nonce);
            self.key.seal_in_place_append_tag(nonce, Aad::from(head), &mut inner).unwrap();
            sealed.extend_from_slice(&head);
            sealed.extend(inner);
        }
        sealed
    }
}

/// A client and the link of its connection.
struct Rig {
    client: ClientConnection,
    link: Link,
    config: Config,
    pool: Pool,
    stats: Stats,
    events: Vec<Event>,
    kernel: Option<Kernel>,
    heard: Vec<u8>,
}

fn id() -> ConnId {
    Slots::default().insert(|_| ()).unwrap()
}

impl Rig {
    /// Carries out the handshake, and sends the client's preamble.
    fn new(cipher: CipherSuite, claim: Option<Claim>, mut config: Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (user, worker) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
        let file = folder.path().join("authorized");
        fs::write(&file, format!("{}\n", user.public())).unwrap();
        config.identity = Some(Arc::new(WorkerIdentity::new(&worker, &file).unwrap()));
        let link = Link::new(id(), Peer::Tcp(([127, 0, 0, 1], 1).into()), &config, 0);
        let user = ClientIdentity::with_cipher(&user, cipher).unwrap();
        let client = ClientConnection::new(user.rustls(), "hipr".try_into().unwrap()).unwrap();
        let (stats, events, kernel, heard) = Default::default();
        let mut rig = Self { client, link, config, pool: Pool::default(), stats, events, kernel, heard };
        while rig.client.is_handshaking() {
            rig.say(&[]).unwrap();
            rig.hear().unwrap();
        }
        rig.say(&Hello { claim, ..Hello::default() }.to_bytes()).unwrap();
        rig
    }

    /// Passes bytes of the client on to the link.
    fn say(&mut self, bytes: &[u8]) -> Result<(), End> {
        self.client.writer().write_all(bytes).unwrap();
        let mut said = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut said).unwrap();
        }
        self.read(said)
    }

    fn read(&mut self, mut said: Vec<u8>) -> Result<(), End> {
        let Self { link, pool, stats, events, .. } = self;
        let len = said.len();
        link.receive(&mut said, len, 0, pool, stats, &mut |event| events.push(event))
    }

    /// Passes what the link sends on to the client, through the kernel if that has the key.
    fn hear(&mut self) -> Result<(), Error> {
        let sent: Vec<u8> = self.link.slices().flatten().copied().collect();
        self.link.handle_written(sent.len(), 0, &self.stats);
        let mut sealed = match &mut self.kernel {
            Some(kernel) => kernel.seal(DATA, &sent),
            None => sent,
        };
        if let Some(alert) = self.link.alert() {
            sealed.extend(self.kernel.as_mut().expect("who has the key says it").seal(ALERT, &alert));
            self.link.handle_alert_sent();
        }
        self.listen(&sealed)
    }

    /// Passes bytes of the socket to the client.
    fn listen(&mut self, mut left: &[u8]) -> Result<(), Error> {
        while !left.is_empty() {
            self.client.read_tls(&mut left).unwrap();
            self.client.process_new_packets()?;
            let mut reader = self.client.reader();
            while let Ok(chunk) = std::io::BufRead::fill_buf(&mut reader) {
                let len = chunk.len();
                self.heard.extend_from_slice(chunk);
                std::io::BufRead::consume(&mut reader, len);
                if len == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Lends the key; returns whether there was one to lend.
    fn lend(&mut self) -> bool {
        let Some(key) = self.link.key_to_lend() else { return false };
        self.link.lend(&key, true);
        self.kernel = Some(Kernel::new(&key));
        true
    }

    fn apply(&mut self, notice: Notice) {
        let Self { link, pool, stats, events, .. } = self;
        let applied = link.apply(notice, 0, pool, stats, &mut |event| events.push(event));
        assert!(applied.fatal.is_none());
    }

    fn reply(&mut self, bytes: &[u8]) {
        let mut outbox = Outbox::new();
        outbox.put_inline(Body::from(bytes.to_vec()));
        self.apply(Notice { outbox: Some(outbox), ..Notice::new(self.link.conn()) });
    }

    fn close(&mut self) {
        self.apply(Notice { close: true, ..Notice::new(self.link.conn()) });
    }

    /// Returns what the client has received of HIPR; the worker's preamble comes before it.
    fn heard(&self) -> &[u8] {
        &self.heard[8..]
    }
}

fn malloc() -> Vec<u8> {
    let mut fixed = Vec::new();
    Malloc { size: 5, flags: 0 }.put(&mut fixed);
    let mut bytes = Vec::new();
    Header::new(Opcode::MALLOC, 1, fixed.len() as u64, FLAG_NO_REPLY).put(&mut bytes);
    bytes.extend(fixed);
    bytes
}

fn claim() -> Claim {
    Claim { name: Name::new([7; 32]), epoch: 0, taken: 0 }
}

fn noise(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 256) as u8).collect()
}

const CHACHA: CipherSuite = CipherSuite::TLS13_CHACHA20_POLY1305_SHA256;

/// A client whose worker has lent its key behind the first reply.
fn lent(config: Config) -> Rig {
    let mut rig = Rig::new(CHACHA, None, config);
    rig.say(&malloc()).unwrap();
    assert!(!rig.lend(), "what rustls has encrypted was not sent");
    rig.reply(b"by rustls");
    rig.hear().unwrap();
    assert!(rig.lend() && rig.link.is_in_kernel() && !rig.lend());
    rig
}

#[test]
fn what_is_sent_after_the_key_was_lent_is_in_the_open_and_arrives() {
    let mut rig = lent(Config::default());
    let reply = noise(150_000);
    rig.apply(Notice { wants_drain: Some(50_000), ..Notice::new(rig.link.conn()) });
    rig.reply(&reply);
    // The dispatch's pieces themselves, so that a scattered write has them.
    assert_eq!(rig.link.slices().map(<[u8]>::len).collect::<Vec<_>>(), [reply.len()]);
    assert_eq!(rig.link.unsent_bytes(), reply.len());
    rig.hear().unwrap();
    let Rig { link, events, .. } = &mut rig;
    link.report_drain(&mut |event| events.push(event));
    let Some(Event::Drained { sent_bytes, .. }) = rig.events.last() else { panic!("{:?}", rig.events) };
    assert_eq!(*sent_bytes, 9 + 150_000, "all bytes of the dispatch, whoever encrypts them");
    assert!(rig.heard() == [b"by rustls", reply.as_slice()].concat());
    // Requests are read as before.
    rig.events.clear();
    rig.say(&malloc()).unwrap();
    assert!(matches!(rig.events[..], [Event::Batch { .. }]));
}

#[test]
fn the_good_bye_comes_behind_everything_else_and_the_socket_stays_open() {
    let mut rig = lent(Config::default());
    rig.reply(&noise(20_000));
    rig.close();
    assert_eq!((rig.link.alert(), rig.link.finish(0)), (None, Finish::No), "bytes are not sent yet");
    let sent: Vec<u8> = rig.link.slices().flatten().copied().collect();
    rig.link.handle_written(sent.len(), 0, &rig.stats);
    assert_eq!((rig.link.alert(), rig.link.finish(0)), (Some([1, 0]), Finish::No));
    let sealed = rig.kernel.as_mut().unwrap().seal(DATA, &sent);
    rig.listen(&sealed).unwrap();
    assert!(rig.heard().ends_with(&noise(20_000)));
    let nothing = rig.client.reader().read(&mut [0; 9]).map_err(|why| why.kind());
    assert_eq!(nothing, Err(ErrorKind::WouldBlock), "the good-bye was not said yet");
    rig.hear().unwrap();
    assert_eq!(rig.client.reader().read(&mut [0; 9]).unwrap(), 0);
    assert_eq!(rig.link.finish(0), Finish::Linger, "a kernel that still encrypts is not cut off");
    rig.reply(b"too late");
    assert!(!rig.link.wants_write(), "nothing follows a good-bye");
}

#[test]
fn a_fault_is_said_with_an_alert_and_nothing_else() {
    // A record that somebody has changed, and the wish for new keys, which no kernel that was lent one key can fulfil.
    for is_changed in [true, false] {
        let mut rig = lent(Config::default());
        let end = if is_changed {
            rig.client.writer().write_all(&malloc()).unwrap();
            let mut said = Vec::new();
            rig.client.write_tls(&mut said).unwrap();
            *said.last_mut().unwrap() ^= 1;
            rig.read(said)
        } else {
            rig.client.refresh_traffic_keys().unwrap();
            rig.say(&malloc())
        };
        match end {
            Err(End::Channel(Fault::Tls(Error::DecryptError))) if is_changed => {}
            Err(End::Channel(Fault::KeyIsOver)) if !is_changed => {}
            end => panic!("{end:?}"),
        }
        rig.reply(b"too late");
        assert!(!rig.link.wants_write() && rig.link.has_answer());
        assert!(matches!(rig.hear(), Err(Error::AlertReceived(_))));
    }
}

#[test]
fn a_key_that_has_a_limit_is_lent_to_sessions_only_that_can_go_on_over_another_connection() {
    for cipher in CIPHERS {
        for (claim, timeout_ms) in [(None, 60_000), (Some(claim()), 60_000), (Some(claim()), 0)] {
            let mut rig =
                Rig::new(cipher, claim, Config { resume_timeout_ms: timeout_ms, ..Config::default() });
            if let Some(claim) = claim {
                assert!(!rig.lend(), "the claim is not answered");
                rig.link.begin_session(&claim, &rig.config);
            }
            rig.hear().unwrap();
            let expected = cipher == CHACHA || (claim.is_some() && timeout_ms > 0);
            assert_eq!(rig.lend(), expected, "{cipher:?} {claim:?} {timeout_ms}");
            assert!(!rig.lend(), "it is lent once, or never");
        }
    }
}

#[test]
fn no_key_is_lent_that_is_not_the_first_one_or_that_nobody_is_to_have() {
    let mut rig = Rig::new(CHACHA, None, Config::default());
    rig.client.refresh_traffic_keys().unwrap();
    rig.say(&malloc()).unwrap();
    rig.hear().unwrap();
    // rustls has other keys now, and what it sends is still understood.
    for _ in 0..3 {
        rig.reply(b"a reply");
        assert!(!rig.lend());
        rig.hear().unwrap();
        assert!(!rig.lend());
    }
    assert!(rig.heard() == b"a reply".repeat(3));

    let mut rig = Rig::new(CHACHA, None, Config { ktls: false, ..Config::default() });
    rig.hear().unwrap();
    assert!(!rig.lend());

    // Who is not let in, or has said good-bye, gets none.
    let mut rig = lent(Config::default());
    rig.close();
    assert!(!rig.lend());
}
