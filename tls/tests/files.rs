//! Tests the files of keys: what is read, what is refused, and that nothing is lost.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use hipr_tls::{Authorized, AuthorizedFile, KnownWorkers, SecretKey, make_key, read_key};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_key_is_made_for_this_user_alone_and_never_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/hipr/key");
    let made = make_key(&path, false).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    assert_eq!(read_key(&path).unwrap().public(), made.public());
    let refused = make_key(&path, false).unwrap_err().to_string();
    assert!(refused.contains("--force"), "{refused}");
    assert_eq!(read_key(&path).unwrap().public(), made.public());
    let other = make_key(&path, true).unwrap();
    assert_ne!(other.public(), made.public());
    assert_eq!((mode(&path), read_key(&path).unwrap().public()), (0o600, other.public()));
}

#[test]
fn a_private_key_that_others_can_reach_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    make_key(&path, false).unwrap();
    for bits in [0o640, 0o604, 0o620, 0o602, 0o601, 0o777] {
        fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        let refused = read_key(&path).unwrap_err().to_string();
        assert!(refused.contains(&format!("{bits:04o}")) && refused.contains("chmod 600"), "{refused}");
    }
    for bits in [0o600, 0o400] {
        fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        read_key(&path).unwrap();
    }
    for (text, why) in [
        ("", "not an Ed25519"),
        ("\0", "not an Ed25519"),
        ("-----BEGIN PRIVATE KEY-----\n", "not an Ed25519"),
    ] {
        let path = folder.path().join("bad");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(read_key(&path).unwrap_err().to_string().contains(why));
    }
    assert!(read_key(folder.path()).unwrap_err().to_string().contains("not a file"));
    assert!(read_key(&folder.path().join("none")).is_err());
    let long = folder.path().join("long");
    fs::write(&long, vec![b'x'; (1 << 20) + 1]).unwrap();
    assert!(read_key(&long).unwrap_err().to_string().contains("1 MiB"));
}

#[test]
fn lines_of_authorized_keys_say_what_is_wrong_with_them() {
    let key = SecretKey::generate().unwrap().public().to_string();
    let good = format!("\n# comment\n  {key}  tenant=a.b-c_d@e   memory-max=16G # x\n\n");
    assert_eq!(Authorized::parse(&good).unwrap().len(), 1);
    assert!(Authorized::parse("").unwrap().is_empty());
    let long = "t".repeat(65);
    for (line, why) in [
        ("ssh-ed25519 AAAA".to_owned(), "hipr-ed25519"),
        (key[..30].to_owned(), "hipr-ed25519"),
        (format!("{key} tenant="), "1 to 64"),
        (format!("{key} tenant=a/b"), "1 to 64"),
        (format!("{key} tenant={long}"), "1 to 64"),
        (format!("{key} tenant=a tenant=b"), "says again"),
        (format!("{key} memory-max=much"), "memory-max"),
        (format!("{key} memory-max=1G memory-max=1G"), "says again"),
        (format!("{key} memory-total=much"), "memory-total: expected a number"),
        (format!("{key} memory-total=127M"), "memory-total: it must be at least 128M"),
        (format!("{key} memory-total=1G memory-total=1G"), "says again"),
        (format!("{key} sessions-max=0"), "sessions-max: '0' is not a number from 1 to 65536"),
        (format!("{key} sessions-max=65537"), "sessions-max"),
        (format!("{key} weight=0"), "weight"),
        (format!("{key} weight=101"), "a number from 1 to 100"),
        (format!("{key} weight=-1"), "weight"),
        (format!("{key} kernel-timeout=0"), "kernel-timeout"),
        (format!("{key} kernel-timeout=4294967296"), "kernel-timeout"),
        (format!("{key} weight=2 weight=2"), "says again"),
        (format!("{key} connections-per-second=0"), "connections-per-second: '0' is not a number"),
        (format!("{key} parked-max=0"), "parked-max"),
        (format!("{key} parked-max=1 parked-max=2"), "says again"),
        (format!("{key} requests-per-second=1000000001"), "requests-per-second"),
        (format!("{key} requests-per-second=1 requests-per-second=2"), "says again"),
        (format!("{key} admin"), "'admin'"),
        (format!("{key}\n{key}"), "an earlier line"),
    ] {
        let (number, said) = Authorized::parse(&format!("#\n{line}\n")).unwrap_err();
        assert!(said.contains(why), "{line}: {said}");
        assert_eq!(number, 2 + line.matches('\n').count(), "{line}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("authorized");
    fs::write(&path, "\n\nnonsense\n").unwrap();
    let said = AuthorizedFile::new(&path).count().unwrap_err().to_string();
    assert!(said.starts_with(&format!("{}:3: ", path.display())), "{said}");
}

/// What a tenant's sessions may have together is one number, whichever of its keys they have.
#[test]
fn the_least_total_of_a_tenants_lines_holds_for_all_its_keys() {
    let [a, b, c] = [(); 3].map(|()| SecretKey::generate().unwrap().public());
    let totals = |[first, second, third]: [&str; 3]| {
        let lines = format!("{a} tenant=lab {first}\n{b} tenant=lab {second}\n{c} tenant=other {third}\n");
        let all = Authorized::parse(&lines).unwrap();
        [a, b, c].map(|key| all.grant(&key).unwrap().memory_total_bytes.map(|bytes| bytes >> 30))
    };
    for (said, expected) in [
        (["", "", ""], [None, None, None]),
        (["memory-total=2G", "", ""], [Some(2), Some(2), None]),
        (["", "memory-total=2G", ""], [Some(2), Some(2), None]),
        (["memory-total=2G", "memory-total=3G", "memory-total=1G"], [Some(2), Some(2), Some(1)]),
        (["memory-total=3G", "memory-total=2G", "memory-total=4G"], [Some(2), Some(2), Some(4)]),
    ] {
        assert_eq!(totals(said), expected, "{said:?}");
    }
}

#[test]
fn a_worker_is_noted_once_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let known = KnownWorkers::new(&folder.path().join("hipr/known_workers"));
    let first = SecretKey::generate().unwrap().public().fingerprint();
    let second = SecretKey::generate().unwrap().public().fingerprint();
    let find = |worker: &str| known.find(worker).map(|known| known.fingerprint);
    assert_eq!(find("gpu:1"), Ok(None));
    assert_eq!(known.add("gpu:1", first), Ok(true));
    assert_eq!(known.add("gpu:2", second), Ok(true));
    assert_eq!(known.add("gpu:1", second), Ok(false), "what is noted stays");
    assert_eq!((find("GPU:1"), find("gpu:2")), (Ok(Some(first)), Ok(Some(second))));
    assert_eq!(mode(known.path()), 0o600);
    // A file that an editor has left without a last newline.
    fs::write(known.path(), format!("gpu:1 {first}")).unwrap();
    assert_eq!(known.add("gpu:3", second), Ok(true));
    assert_eq!((find("gpu:1"), find("gpu:3")), (Ok(Some(first)), Ok(Some(second))));
    for (line, why) in
        [("gpu:1", "SHA256"), ("gpu:1 x", "SHA256"), (&*format!("gpu:1 {first} x"), "nothing else")]
    {
        fs::write(known.path(), format!("{line}\n")).unwrap();
        let said = known.find("gpu:9").unwrap_err().to_string();
        assert!(said.contains(why) && said.contains(":1: "), "{said}");
    }
    fs::write(known.path(), format!("gpu:1 {first}\ngpu:1 {second}\n")).unwrap();
    assert!(known.find("gpu:1").is_err(), "which of the two is not for us to say");
}
