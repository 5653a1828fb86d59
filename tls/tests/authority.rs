//! Tests certificates: who signs them, who is let in by them, and all that is wrong with others.

use std::fs;
use std::io::{IoSlice, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hipr_tls::{
    Authorized, Certificate, CertificateError, ClientChannel, ClientIdentity, Expected, Fault, Grant, Known,
    NotAuthorized, PublicKey, Revoked, Says, SecretKey, ServerChannel, Statement, WorkerIdentity,
};
use tempfile::TempDir;

/// A time in the middle of what certificates hold here.
const NOW_S: u64 = 1_000_000;

fn key() -> SecretKey {
    SecretKey::generate().unwrap()
}

/// What an authority signs for a key, from a thousand seconds before [`NOW_S`] to a thousand after it.
fn statement(key: PublicKey, says: Says) -> Statement {
    Statement {
        serial: 0x0123_4567_89ab_cdef,
        not_before_s: NOW_S - 1000,
        not_after_s: NOW_S + 1000,
        key,
        authority: key,
        says,
    }
}

fn user(key: PublicKey, gives: &str) -> Statement {
    statement(key, Says::User(gives.parse().unwrap()))
}

fn worker(key: PublicKey, hosts: &str) -> Statement {
    statement(key, Says::Worker(hosts.parse().unwrap()))
}

fn admit(
    lines: &str,
    key: &SecretKey,
    certificate: &Certificate,
    now_s: u64,
) -> Result<Grant, NotAuthorized> {
    let authorized = Authorized::parse(lines).unwrap();
    authorized.admit(&key.public(), Some(certificate.bytes()), now_s)
}

#[test]
fn a_certificate_is_read_as_it_is_written() {
    let (authority, holder) = (key(), key());
    let long = format!(
        "tenant={} memory-max=1023G memory-total=1023G sessions-max=65536 parked-max=65536 weight=100 kernel-timeout=4294967295 connections-per-second=1000000000 requests-per-second=1000000000",
        "t".repeat(64)
    );
    for signed in [
        user(holder.public(), ""),
        user(holder.public(), "memory-max=16G tenant=lab"),
        user(holder.public(), &long),
        worker(holder.public(), "gpu"),
        worker(holder.public(), "GPU.lab,*.example.org,10.0.0.7,::1"),
        worker(holder.public(), &"h".repeat(512)),
    ] {
        let certificate = Certificate::sign(&authority, signed.clone()).unwrap();
        assert!(certificate.bytes().len() <= Certificate::MAX_BYTES);
        assert_eq!(*certificate, Statement { authority: authority.public(), ..signed });
        assert_eq!(Certificate::from_bytes(certificate.bytes()), Ok(certificate.clone()));
        let line = certificate.to_string();
        assert!(line.starts_with("hipr-certificate ") && !line.contains('='), "{line}");
        assert_eq!(line.parse(), Ok(certificate));
    }
}

/// The bytes of docs/identity.md, which do not change.
#[test]
fn a_certificate_has_these_bytes() {
    let [holder, authority] = [1, 2].map(|byte| {
        let spki = [&key().public().spki()[..12], &[byte; 32]].concat();
        PublicKey::from_spki(&spki).unwrap()
    });
    let said = Statement { authority, ..user(holder, "memory-max=1G tenant=lab") };
    let expected = [
        &b"HIPC\x01\0\x01\0"[..],
        &[0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01],
        &999_000_u64.to_le_bytes(),
        &1_001_000_u64.to_le_bytes(),
        &[1; 32],
        &[2; 32],
        b"\x01\0\x18\0tenant=lab memory-max=1G",
    ]
    .concat();
    assert_eq!(said.to_bytes(), expected);
    assert_eq!(Statement::from_bytes(&expected), Ok(said));
    let hosts = Statement { authority, ..worker(holder, "a,b") };
    let expected = [b"HIPC\x01\0\x02\0", &expected[8..96], b"\x02\0\x03\0a,b"].concat();
    assert_eq!(hosts.to_bytes(), expected);
    // Signed by the key of RFC 8410, section 10.1, for itself.
    let line = "hipr-certificate SElQQwEAAQDvzauJZ0UjAYA7sWoAAAAAANJJawAAAAAZv0QJaYTN_oVBusFn3DuWyFCGqjC2tssMXDitcDFm4Rm_RAlphM3-hUG6wWfcO5bIUIaqMLa2ywxcOK1wMWbhAQAiAHRlbmFudD1sYWIgbWVtb3J5LW1heD0xNkcgd2VpZ2h0PTKnVJ-U0t2DyBngP_9-zoDBHoUMPmPHFNKw9jEI0jQaXxoSx--eLqbTblC0VTdRwt4b-ZHzYUIfWp3Jm0BSpFEA";
    let certificate: Certificate = line.parse().unwrap();
    let gives = "tenant=lab memory-max=16G weight=2".parse().unwrap();
    assert_eq!((certificate.serial, certificate.says.clone()), (0x0123_4567_89ab_cdef, Says::User(gives)));
    assert_eq!(certificate.key, certificate.authority);
}

#[test]
fn a_change_of_any_bit_and_a_cut_anywhere_make_it_none() {
    let (authority, holder) = (key(), key());
    let lines = format!("authority {}\n", authority.public());
    for signed in [user(holder.public(), "tenant=lab"), worker(holder.public(), "gpu")] {
        let certificate = Certificate::sign(&authority, signed).unwrap();
        let bytes = certificate.bytes();
        let authorized = Authorized::parse(&lines).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.to_vec();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Certificate::from_bytes(&changed).is_err(), "bit {bit}");
            let admitted = authorized.admit(&holder.public(), Some(&changed), NOW_S);
            assert!(matches!(admitted, Err(NotAuthorized::Certificate(_))), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(Certificate::from_bytes(&bytes[..len]).is_err(), "{len} bytes");
        }
        for more in [&[0][..], &[0; 64], &[0; 4096]] {
            assert!(Certificate::from_bytes(&[bytes, more].concat()).is_err());
        }
        let line = certificate.to_string();
        for at in 0..line.len() {
            assert!(line[..at].parse::<Certificate>().is_err(), "{at} letters");
        }
    }
}

/// Signs bytes that no `hipr key sign` would write.
#[test]
fn statements_that_are_none_are_refused() {
    let good = user(key().public(), "tenant=lab").to_bytes();
    let head = &good[..96];
    let with = |fields: &[u8]| [head, fields].concat();
    let field = |kind: u16, value: &[u8]| {
        [&kind.to_le_bytes()[..], &(value.len() as u16).to_le_bytes(), value].concat()
    };
    let lab = field(1, b"tenant=lab");
    let swapped = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    for (bytes, why) in [
        (swapped(0, b"HIPS"), "does not begin"),
        (swapped(4, &[2, 0]), "version"),
        (swapped(6, &[0, 0]), "not known"),
        (swapped(6, &[3, 0]), "not known"),
        // A worker's with the fields of a user's.
        (swapped(6, &[2, 0]), "not known"),
        (swapped(24, &(NOW_S - 1000).to_le_bytes()), "ends before it begins"),
        (swapped(24, &[0; 8]), "ends before it begins"),
        (with(&[]), "does not say"),
        (with(&[1]), "cut off"),
        (with(&[1, 0, 1]), "cut off"),
        (with(&[1, 0, 1, 0]), "cut off"),
        (with(&lab[..lab.len() - 1]), "cut off"),
        (with(&field(2, b"gpu")), "not known"),
        (with(&field(3, b"")), "not known"),
        (with(&[&lab[..], &field(0x7fff, b"x")].concat()), "not known"),
        (with(&lab.repeat(2)), "twice"),
        (with(&field(0x8000, b"x")), "does not say"),
        (with(&field(1, b"\xff")), "UTF-8"),
        (with(&field(1, b"root=yes")), "not known here"),
        (with(&field(1, b"tenant=a/b")), "not known here"),
        (with(&field(1, b" tenant=lab")), "not known here"),
        (with(&field(1, b"tenant=lab ")), "not known here"),
        (with(&field(1, b"tenant=lab  weight=2")), "not known here"),
        (with(&field(1, b"weight=2 tenant=lab")), "not known here"),
        (with(&field(1, b"memory-max=1024M")), "not known here"),
        (with(&field(1, b"weight=02")), "not known here"),
    ] {
        match Statement::from_bytes(&bytes) {
            Err(CertificateError::Malformed(said)) => assert!(said.contains(why), "{why}: {said}"),
            other => panic!("{why}: {other:?}"),
        }
    }
    let hosts = &worker(key().public(), "gpu").to_bytes()[..96];
    for name in [&b""[..], b"GPU", b"a,,b", b"a b", b"a\n"] {
        let bytes = [hosts, &field(2, name)].concat();
        assert!(Statement::from_bytes(&bytes).is_err(), "{name:?}");
    }
    // What may be passed over is passed over.
    let more = with(&[&field(0x8000, b"x")[..], &lab, &field(0xffff, b"")].concat());
    assert_eq!(Statement::from_bytes(&more), Statement::from_bytes(&good));
}

#[test]
fn who_is_refused_is_told_why() {
    let (authority, other, holder, thief) = (key(), key(), key(), key());
    let trusted = format!("authority {}\n", authority.public());
    let good = user(holder.public(), "tenant=lab");
    let until = |end_s| Statement { not_after_s: end_s, ..good.clone() };
    let from = |begin_s| Statement { not_before_s: begin_s, ..good.clone() };
    let fingerprint = |key: &SecretKey| key.public().fingerprint();
    let line = |words: &str| format!("authority {} {words}\n", authority.public());
    let revoked = |what: String| format!("{trusted}revoked {what}\n");
    let none = |name| user(holder.public(), name);
    for (what, lines, signer, signed, who, why) in [
        ("another authority's", &trusted, &other, &good, &holder, "is no authority here"),
        ("signed by itself", &trusted, &holder, &good, &holder, "is no authority here"),
        ("no authority at all", &String::new(), &authority, &good, &holder, "is no authority here"),
        ("a key is none", &format!("{}\n", authority.public()), &authority, &good, &holder, "no authority"),
        ("another's", &trusted, &authority, &good, &thief, "is for another key"),
        ("a worker's", &trusted, &authority, &worker(holder.public(), "gpu"), &holder, "not one of a user"),
        ("ended", &trusted, &authority, &until(NOW_S - 1), &holder, "ended on 1970-01-12T13:46:39Z"),
        ("ends now", &trusted, &authority, &until(NOW_S), &holder, "`hipr key sign`"),
        ("begins later", &trusted, &authority, &from(NOW_S + 1), &holder, "begins on 1970-01-12T13:46:41Z"),
        ("revoked", &revoked("serial=0123456789abcdef".into()), &authority, &good, &holder, "was revoked"),
        (
            "authority",
            &revoked(fingerprint(&authority).to_string()),
            &authority,
            &good,
            &holder,
            "was revoked",
        ),
        ("tenant", &line("tenant=other"), &authority, &good, &holder, "names the tenant lab, which"),
        ("prefix", &line("tenant=lab-*"), &authority, &good, &holder, "names the tenant lab, which"),
        ("no tenant", &line("tenant=lab-*"), &authority, &none(""), &holder, "names no tenant"),
    ] {
        let certificate = Certificate::sign(signer, signed.clone()).unwrap();
        match admit(lines, who, &certificate, NOW_S) {
            Err(NotAuthorized::Certificate(said)) => {
                assert!(said.to_string().contains(why), "{what}: {said}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    // A key that was revoked has nothing, whatever else says so.
    let certificate = Certificate::sign(&authority, good).unwrap();
    let lines = format!("{}{}\n", revoked(fingerprint(&holder).to_string()), holder.public());
    assert_eq!(admit(&lines, &holder, &certificate, NOW_S), Err(NotAuthorized::Revoked));
    // What was revoked of others is nobody's loss.
    let lines = revoked(format!("serial=0123456789abcdee\nrevoked {}", fingerprint(&thief)));
    assert_eq!(admit(&lines, &holder, &certificate, NOW_S).unwrap().tenant, "lab");
}

#[test]
fn a_certificate_gives_what_it_says_and_no_more_than_the_line() {
    let (authority, holder) = (key(), key());
    let all = "memory-max=8G memory-total=8G sessions-max=8 parked-max=8 weight=8 kernel-timeout=8 connections-per-second=8 requests-per-second=8";
    let less = all.replace("=8", "=4");
    let more = all.replace("=8", "=16");
    let fingerprint = holder.public().fingerprint().to_string();
    for (gives, line, expected, tenant) in [
        ("tenant=lab", "", "", "lab"),
        ("", "", "", &*fingerprint),
        (all, "", all, &fingerprint),
        (all, &less, &less, &fingerprint),
        (all, &more, all, &fingerprint),
        // Who says no weight has the weight 1, also where more may be given.
        ("", all, &all.replace(" weight=8", ""), &fingerprint),
        ("weight=2", "weight=1", "weight=1", &fingerprint),
        ("memory-max=1025M", "memory-max=1G", "memory-max=1G", &fingerprint),
        ("memory-total=1025M", "memory-total=1G", "memory-total=1G", &fingerprint),
        ("", "memory-total=1G", "memory-total=1G", &fingerprint),
        ("tenant=lab", "tenant=lab", "", "lab"),
        ("", "tenant=lab", "", "lab"),
        ("tenant=lab-1", "tenant=lab-*", "", "lab-1"),
    ] {
        let certificate = Certificate::sign(&authority, user(holder.public(), gives)).unwrap();
        let lines = format!("authority {} {line}\n", authority.public());
        let grant = admit(&lines, &holder, &certificate, NOW_S).unwrap();
        let own = format!("{} {expected}\n", holder.public());
        let own = Authorized::parse(&own).unwrap().grant(&holder.public()).unwrap().clone();
        let expected = Grant { tenant: tenant.to_owned(), serial: Some(certificate.serial), ..own };
        assert_eq!(grant, expected, "{gives} within {line}");
    }
    // What lines say of the tenant's memory holds for certificates that name it as well.
    for (gives, line, other, expected) in [
        ("tenant=lab", "", "tenant=lab memory-total=1G", Some(1)),
        ("tenant=lab memory-total=2G", "", "tenant=lab memory-total=1G", Some(1)),
        ("tenant=lab memory-total=1G", "", "tenant=lab memory-total=2G", Some(1)),
        ("tenant=lab memory-total=3G", "memory-total=2G", "tenant=lab", Some(2)),
        ("tenant=lab", "", "tenant=other memory-total=1G", None),
    ] {
        let certificate = Certificate::sign(&authority, user(holder.public(), gives)).unwrap();
        let lines = format!("authority {} {line}\n{} {other}\n", authority.public(), key().public());
        let total = admit(&lines, &holder, &certificate, NOW_S).unwrap().memory_total_bytes;
        assert_eq!(total.map(|bytes| bytes >> 30), expected, "{gives} within {line} beside {other}");
    }
    // A line of its own holds before a certificate, whatever that is.
    let lines = format!("{} tenant=own\nauthority {}\n", holder.public(), authority.public());
    let authorized = Authorized::parse(&lines).unwrap();
    for bytes in [&b"nonsense"[..], Certificate::sign(&authority, user(key().public(), "")).unwrap().bytes()]
    {
        assert_eq!(authorized.admit(&holder.public(), Some(bytes), NOW_S).unwrap().tenant, "own");
    }
    assert_eq!(authorized.admit(&key().public(), None, NOW_S), Err(NotAuthorized::Unknown));
}

#[test]
fn a_certificate_holds_from_its_first_second_until_before_its_last() {
    let (authority, holder) = (key(), key());
    let lines = format!("authority {}\n", authority.public());
    let certificate = Certificate::sign(&authority, user(holder.public(), "")).unwrap();
    for (now_s, expected) in [
        (0, false),
        (NOW_S - 1001, false),
        (NOW_S - 1000, true),
        (NOW_S + 999, true),
        (NOW_S + 1000, false),
        (u64::MAX, false),
    ] {
        assert_eq!(admit(&lines, &holder, &certificate, now_s).is_ok(), expected, "at {now_s}");
    }
}

#[test]
fn a_workers_certificate_is_checked_for_key_and_host() {
    let (authority, other, holder, thief) = (key(), key(), key(), key());
    let authorities = [other.public(), authority.public()];
    let good = worker(holder.public(), "gpu,*.lab");
    let check = |signer: &SecretKey, signed: &Statement, who: &SecretKey, lines: &str, host: &str| {
        let certificate = Certificate::sign(signer, signed.clone()).unwrap();
        let revoked = Known::parse(lines, "x:1").unwrap().revoked;
        let place = (host, NOW_S);
        Certificate::check_worker(certificate.bytes(), &who.public(), &authorities, &revoked, place)
            .map_err(|why| why.to_string())
    };
    for host in ["gpu", "GPU", "a.lab"] {
        assert_eq!(check(&authority, &good, &holder, "", host), Ok(()));
        assert_eq!(check(&other, &good, &holder, "", host), Ok(()));
    }
    let ended = Statement { not_after_s: NOW_S, ..good.clone() };
    let early = Statement { not_before_s: NOW_S + 1, ..good.clone() };
    let [serial, its_key, its_authority] = [
        "@revoked serial=0123456789abcdef".to_owned(),
        format!("@revoked {}", holder.public().fingerprint()),
        format!("@revoked {}", authority.public().fingerprint()),
    ];
    for (signer, signed, who, lines, host, why) in [
        (&thief, &good, &holder, "", "gpu", "no authority here"),
        (&holder, &good, &holder, "", "gpu", "no authority here"),
        (&authority, &good, &thief, "", "gpu", "for another key"),
        (&authority, &user(holder.public(), ""), &holder, "", "gpu", "not one of a worker"),
        (&authority, &ended, &holder, "", "gpu", "ended on"),
        (&authority, &early, &holder, "", "gpu", "begins on"),
        (&authority, &good, &holder, &*serial, "gpu", "was revoked"),
        (&authority, &good, &holder, &its_key, "gpu", "was revoked"),
        (&authority, &good, &holder, &its_authority, "gpu", "was revoked"),
        (&authority, &good, &holder, "", "gpu2", "is for gpu,*.lab and not for gpu2"),
        (&authority, &good, &holder, "", "lab", "and not for lab"),
        (&authority, &good, &holder, "", "", "and not for "),
    ] {
        let said = check(signer, signed, who, lines, host).unwrap_err();
        assert!(said.contains(why), "{why}: {said}");
    }
    let revoked = Revoked::default();
    let missing =
        Certificate::check_worker(&[], &holder.public(), &authorities, &revoked, ("gpu", NOW_S)).unwrap_err();
    assert_eq!(missing, CertificateError::Missing);
}

#[test]
fn lines_of_authorities_say_what_is_wrong_with_them() {
    let key = key().public();
    let fingerprint = key.fingerprint();
    let lines = format!(
        "authority {key} tenant=lab-* memory-max=1G weight=2\nrevoked {fingerprint}\nrevoked serial=00000000000000ff # a comment\n"
    );
    let authorized = Authorized::parse(&lines).unwrap();
    assert_eq!((authorized.len(), authorized.authorities()), (0, vec![fingerprint]));
    for (line, why) in [
        ("authority".to_owned(), "hipr-ed25519"),
        (format!("authority {fingerprint}"), "hipr-ed25519"),
        (format!("authority {key} tenant=*"), "1 to 64"),
        (format!("authority {key} tenant=a*b"), "1 to 64"),
        (format!("authority {key} tenant=a tenant=b"), "says again"),
        (format!("authority {key} weight=0"), "weight"),
        (format!("authority {key} weight=1 weight=1"), "says again"),
        (format!("authority {key} admin"), "'admin'"),
        (format!("{key} tenant=a*"), "1 to 64"),
        (format!("authority {key}\nauthority {key}"), "an earlier line"),
        ("revoked".to_owned(), "SHA256:"),
        (format!("revoked {key}"), "SHA256:"),
        (format!("revoked {fingerprint} {fingerprint}"), "a line of its own"),
        ("revoked serial=ff".to_owned(), "16 digits"),
        ("revoked serial=+0000000000000ff".to_owned(), "16 digits"),
        ("revoked serial=00000000000000fg".to_owned(), "16 digits"),
    ] {
        let (number, said) = Authorized::parse(&format!("#\n{line}\n")).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
        assert_eq!(number, 2 + line.matches('\n').count(), "{line}");
    }
    for (line, why) in [
        ("@authority".to_owned(), "a host's name"),
        (format!("@authority {key}"), "hipr-ed25519"),
        (format!("@authority a/b {key}"), "a host's name"),
        (format!("@authority gpu {key} more"), "nothing else"),
        ("@revoked".to_owned(), "SHA256:"),
        (format!("@revoked gpu:1 {fingerprint}"), "SHA256:"),
    ] {
        let (number, said) = Known::parse(&format!("#\n{line}\n"), "gpu:1").unwrap_err();
        assert!(number == 2 && said.contains(why), "{line}: {said}");
    }
    let known =
        Known::parse(&format!("@authority *.lab,gpu {key}\n@authority gpu {key}\n"), "gpu:1").unwrap();
    assert_eq!((known.fingerprint, known.authorities), (None, vec![key]));
    assert!(Known::parse(&format!("@authority *.lab {key}\n"), "gpu:1").unwrap().authorities.is_empty());
}

// ---- both ends ---------------------------------------------------------------------------------------------------------

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Signs what holds for an hour.
fn sign(authority: &SecretKey, signed: Statement) -> Certificate {
    let (not_before_s, not_after_s) = (now_s() - 3600, now_s() + 3600);
    Certificate::sign(authority, Statement { not_before_s, not_after_s, ..signed }).unwrap()
}

/// A worker with files of its own.
struct Worker {
    key: SecretKey,
    authorized: PathBuf,
    certificate: PathBuf,
    identity: Arc<WorkerIdentity>,
    _folder: TempDir,
}

impl Worker {
    fn new(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (authorized, file) = (folder.path().join("authorized"), folder.path().join("worker-key"));
        let certificate = Certificate::beside(&file);
        fs::write(&authorized, lines).unwrap();
        let key = key();
        let identity = WorkerIdentity::new(&key, &authorized).unwrap().with_certificate(&certificate);
        Self { key, authorized, certificate, identity: Arc::new(identity), _folder: folder }
    }
}

/// What became of a connection: the worker's decision, the client's fault, and what HIPR bytes came through.
#[derive(Debug)]
struct Outcome {
    grant: Option<Grant>,
    word: Option<&'static str>,
    fault: Option<Fault>,
    received: Vec<u8>,
    /// How often the client had to wait for the worker before it could send HIPR.
    flights: usize,
}

fn talk(worker: &Worker, mut client: ClientChannel) -> Outcome {
    let mut server = ServerChannel::new(worker.identity.clone()).unwrap();
    let mut buffer = [0; 4096];
    let (mut received, mut fault, mut has_said, mut flights) = (Vec::new(), None, false, 0);
    loop {
        if client.is_ready() && !std::mem::replace(&mut has_said, true) {
            client.channel().send(&[IoSlice::new(b"HIPR")]);
        }
        let (mut up, mut down) = (Vec::new(), Vec::new());
        client.channel().take_output(&mut up);
        let mut left = up.as_slice();
        while !left.is_empty() {
            match server.receive(&mut left, &mut buffer) {
                Ok(len) => received.extend_from_slice(&buffer[..len]),
                Err(_) => break,
            }
        }
        server.channel().take_output(&mut down);
        if up.is_empty() && down.is_empty() {
            break;
        }
        flights += usize::from(!has_said);
        let mut left = down.as_slice();
        while !left.is_empty() && fault.is_none() {
            fault = client.receive(&mut left, &mut buffer).err();
        }
    }
    let grant = server.grant().map(|admission| Grant::clone(admission));
    Outcome { grant, word: server.turned_away().map(|away| away.word), fault, received, flights }
}

fn connect(
    worker: &Worker,
    user: &SecretKey,
    certificate: Option<&Certificate>,
    expected: Expected,
) -> Outcome {
    let identity = ClientIdentity::new(user).unwrap();
    let identity = match certificate {
        Some(certificate) => identity.with_certificate(certificate.clone()),
        None => identity,
    };
    talk(worker, ClientChannel::new(&identity, expected, None).unwrap())
}

#[test]
fn a_users_certificate_lets_its_key_in_until_it_is_revoked() {
    let (authority, holder, thief) = (key(), key(), key());
    let line = format!("authority {} tenant=lab-* memory-max=1G\n", authority.public());
    let worker = Worker::new(&line);
    let certificate = sign(&authority, user(holder.public(), "tenant=lab-1 memory-max=2G"));
    let strange = sign(&thief, user(holder.public(), ""));
    let come = |key: &SecretKey, certificate| connect(&worker, key, certificate, Expected::Any);
    let grant = come(&holder, Some(&certificate)).grant.unwrap();
    assert_eq!((&*grant.tenant, grant.memory_max_bytes), ("lab-1", Some(1 << 30)));
    for (key, certificate, word, why) in [
        (&holder, None, "wrong-key", "your key is not authorized"),
        (&thief, Some(&certificate), "certificate", "your certificate is for another key"),
        (&holder, Some(&strange), "certificate", "no authority here"),
    ] {
        let outcome = come(key, certificate);
        let told = outcome.fault.map(|fault| fault.to_string()).unwrap_or_default();
        assert!(told.contains(why) && outcome.word == Some(word), "{told} {:?}", outcome.word);
        assert!(outcome.grant.is_none() && outcome.received.is_empty());
    }
    for (more, word) in [
        ("revoked serial=0123456789abcdef\n".to_owned(), "certificate"),
        (format!("revoked {}\n", holder.public().fingerprint()), "revoked"),
    ] {
        fs::write(&worker.authorized, format!("{line}{more}")).unwrap();
        assert_eq!(come(&holder, Some(&certificate)).word, Some(word));
    }
    fs::write(&worker.authorized, &line).unwrap();
    assert!(come(&holder, Some(&certificate)).grant.is_some());
}

#[test]
fn a_worker_with_a_certificate_is_trusted_without_waiting_longer() {
    let (authority, user) = (key(), key());
    let worker_line = format!("{}\n", user.public());
    let it = Worker::new(&worker_line);
    let certified = |host: &str| Expected::Certified {
        host: host.to_owned(),
        authorities: vec![authority.public()],
        now_s: now_s(),
    };
    let write = |certificate: &Certificate| {
        // Not in its place, so that each has another inode.
        let beside = it.certificate.with_extension("new");
        fs::write(&beside, format!("# ours\n{certificate}\n")).unwrap();
        fs::rename(beside, &it.certificate).unwrap();
    };
    let refused = |host: &str, why: &str| {
        let outcome = connect(&it, &user, None, certified(host));
        let Some(Fault::Uncertified(said)) = &outcome.fault else { panic!("{outcome:?}") };
        assert!(said.to_string().contains(why), "{said}");
        assert!(outcome.received.is_empty() && outcome.grant.is_none(), "the worker was told something");
    };
    refused("gpu", "it has shown none");
    let good = sign(&authority, worker(it.key.public(), "gpu"));
    write(&good);
    let outcome = connect(&it, &user, None, certified("gpu"));
    assert_eq!(outcome.received, b"HIPR", "{outcome:?}");
    assert_eq!(outcome.flights, connect(&it, &user, None, Expected::Any).flights, "no flight more");
    refused("other", "is for gpu and not for other");
    // It is read again when it has changed, and what is wrong with it changes nothing.
    write(&sign(&authority, worker(it.key.public(), "other")));
    assert_eq!(connect(&it, &user, None, certified("other")).received, b"HIPR");
    for wrong in
        [sign(&authority, worker(key().public(), "gpu")), sign(&authority, self::user(it.key.public(), ""))]
    {
        write(&wrong);
        assert!(it.identity.certificate().is_err());
        assert_eq!(connect(&it, &user, None, certified("other")).received, b"HIPR");
    }
    write(&sign(&user, worker(it.key.public(), "gpu")));
    refused("gpu", "no authority here");
    fs::remove_file(&it.certificate).unwrap();
    refused("gpu", "it has shown none");
    // Who knows the key needs no certificate, and a key that was revoked is worth nothing.
    let known = Expected::Known(it.key.public().fingerprint());
    assert_eq!(connect(&it, &user, None, known.clone()).received, b"HIPR");
    let line = format!("@revoked {}\n", it.key.public().fingerprint());
    let revoked = Known::parse(&line, "gpu:1").unwrap().revoked;
    for expected in [known, Expected::Any, certified("gpu")] {
        let identity = ClientIdentity::new(&user).unwrap();
        let client = ClientChannel::new(&identity, expected, None).unwrap().refusing(revoked.clone());
        let outcome = talk(&it, client);
        assert!(matches!(outcome.fault, Some(Fault::Revoked(_))) && outcome.received.is_empty());
    }
}

/// Passes on what rustls has to say, until neither side says anything more.
fn pass_on(old: &mut rustls::Connection, other: &mut dyn FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut down = other(&[]);
    loop {
        let mut left = down.as_slice();
        while !left.is_empty() {
            old.read_tls(&mut left).unwrap();
            old.process_new_packets().unwrap();
        }
        let mut chunk = [0; 4096];
        while let Ok(len @ 1..) = old.reader().read(&mut chunk) {
            plain.extend_from_slice(&chunk[..len]);
        }
        let mut up = Vec::new();
        while old.wants_write() {
            old.write_tls(&mut up).unwrap();
        }
        let is_silent = up.is_empty() && down.is_empty();
        down = other(&up);
        if is_silent && down.is_empty() {
            return plain;
        }
    }
}

/// What was before there were authorities: TLS with the same settings, and these bytes inside.
#[test]
fn ends_that_know_no_certificates_pass_them_over() {
    let (authority, holder) = (key(), key());
    let it = Worker::new(&format!("{}\n", holder.public()));
    let shown = sign(&authority, worker(it.key.public(), "gpu"));
    fs::write(&it.certificate, format!("{shown}\n")).unwrap();
    let certificate = sign(&authority, user(holder.public(), ""));
    let identity = ClientIdentity::new(&holder).unwrap().with_certificate(certificate.clone());
    let mut buffer = [0; 4096];

    // An older client shows no certificate, and is shown one.
    let client = rustls::ClientConnection::new(identity.rustls(), "hipr".try_into().unwrap()).unwrap();
    let mut old: rustls::Connection = client.into();
    old.writer().write_all(b"HIPS\x01\0\0\0HIPR").unwrap();
    let mut server = ServerChannel::new(it.identity.clone()).unwrap();
    let mut received = Vec::new();
    let answered = pass_on(&mut old, &mut |mut up| {
        while !up.is_empty() {
            let len = server.receive(&mut up, &mut buffer).unwrap();
            received.extend_from_slice(&buffer[..len]);
        }
        let mut down = Vec::new();
        server.channel().take_output(&mut down);
        down
    });
    assert_eq!((received.as_slice(), answered.as_slice()), (&b"HIPR"[..], &b"HIPS\x01\0\0\0"[..]));

    // An older worker shows none, and gets one in a field that it may pass over.
    let plain = WorkerIdentity::new(&it.key, &it.authorized).unwrap();
    let mut old: rustls::Connection = rustls::ServerConnection::new(plain.rustls()).unwrap().into();
    old.writer().write_all(b"HIPS\x01\0\0\0").unwrap();
    let mut client = ClientChannel::new(&identity, Expected::Any, None).unwrap();
    let said = pass_on(&mut old, &mut |mut down| {
        while !down.is_empty() {
            client.receive(&mut down, &mut buffer).unwrap();
        }
        let mut up = Vec::new();
        client.channel().take_output(&mut up);
        up
    });
    assert!(client.is_in());
    let len = certificate.bytes().len() as u16;
    let fields = [&0x8001_u16.to_le_bytes()[..], &len.to_le_bytes(), certificate.bytes()].concat();
    let expected = [b"HIPS\x01\0", &(len + 4).to_le_bytes()[..], &fields].concat();
    assert_eq!(said, expected);
}
