//! Tests authorities: certificates that `hipr key sign` makes, for users and for workers.

use super::{Home, Safe, WORKERS, refused, run_program, stderr, stdout, succeeds};
use hipr_tests::eventually;
use std::fs;
use std::process::Output;

/// Whoever may say whose a key is.
struct Authority {
    home: Home,
    /// Its key, as a line.
    line: String,
}

impl Authority {
    fn new() -> Self {
        let home = Home::new();
        let line = home.key();
        Self { home, line }
    }

    fn sign(&self, options: &[&str]) -> Output {
        let file = self.home.path("key");
        let file = file.to_str().expect("text");
        self.home.hipr(&[&["key", "sign", "--authority", file], options].concat())
    }

    /// Signs a certificate; returns its line and its serial number.
    fn certificate(&self, options: &[&str]) -> (String, String) {
        let output = self.sign(options);
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stderr(&output);
        let serial = said.lines().find(|line| line.starts_with("serial=")).expect("a serial number");
        (stdout(&output), serial.to_owned())
    }
}

fn info(user: &Home, worker: &str) -> Output {
    user.hipr(&["info", "--worker", worker])
}

#[test]
fn a_users_certificate_opens_workers_that_know_its_authority() {
    let (authority, user, thief) = (Authority::new(), Home::new(), Home::new());
    let line = user.key();
    thief.key();
    let gives = ["tenant=lab-ann", "memory-max=1G", "sessions-max=2"];
    let (certificate, serial) = authority.certificate(&[&["--user", &line], &gives[..]].concat());
    for options in WORKERS {
        let trusted = format!("authority {} tenant=lab-* memory-max=512M\n", authority.line);
        let safe = Safe::start(&trusted, options);
        refused(&info(&user, &safe.pinned()), "your key is not authorized");
        fs::write(user.path("key-cert"), &certificate).expect("written");
        succeeds(&run_program(&user, &safe.pinned()));
        let report = stdout(&user.hipr(&["info", "--json", "--worker", &safe.pinned()]));
        assert!(report.contains(&format!("{}", 512 << 20)), "the authority's limit holds: {report}");
        eventually("the log names the tenant and the certificate", || {
            let log = safe.worker.log();
            log.contains("lab-ann") && log.contains(&serial)
        });
        // It is of no use to others, who are warned that it is not shown.
        fs::write(thief.path("key-cert"), &certificate).expect("written");
        let output = info(&thief, &safe.pinned());
        refused(&output, "your key is not authorized");
        refused(&output, "the certificate is for another key");
        safe.authorize(&format!("{trusted}revoked {serial}\n"));
        refused(&info(&user, &safe.pinned()), "your certificate was revoked");
        safe.authorize(&trusted.replace("lab-*", "ann"));
        refused(&info(&user, &safe.pinned()), "your certificate names the tenant lab-ann");
        safe.authorize(&trusted);
        succeeds(&run_program(&user, &safe.pinned()));
        fs::remove_file(user.path("key-cert")).expect("removed");
    }
}

#[test]
fn a_certificate_ends() {
    let (authority, user) = (Authority::new(), Home::new());
    let (certificate, _) = authority.certificate(&["--user", &user.key(), "--valid-for", "1s"]);
    let safe = Safe::start(&format!("authority {}\n", authority.line), WORKERS[0]);
    fs::write(user.path("key-cert"), certificate).expect("written");
    eventually("it has ended", || {
        let said = stderr(&info(&user, &safe.pinned()));
        said.contains("your certificate ended on 2") && said.contains("`hipr key sign`")
    });
    // A key with a line of its own needs none.
    safe.authorize(&user.key());
    succeeds(&run_program(&user, &safe.pinned()));
}

#[test]
fn a_workers_certificate_is_as_good_as_its_fingerprint() {
    let (authority, user) = (Authority::new(), Home::new());
    let line = user.key();
    let known = format!("@authority 127.0.0.* {}\n", authority.line);
    for options in WORKERS {
        fs::write(user.path("known_workers"), &known).expect("written");
        let safe = Safe::start(&line, options);
        let address = format!("hipr://{}", safe.place());
        refused(&info(&user, &address), "it has shown none; nothing was sent");
        let key = safe.home.path("worker-key");
        let shown = stdout(&safe.home.hipr(&["key", "show", key.to_str().expect("text")]));
        let key_line = shown.lines().next().expect("a line");
        assert!(shown.contains(&safe.fingerprint), "{shown}");
        let sign = |host| authority.certificate(&["--worker", key_line, "--host", host]);
        let file = safe.home.path("worker-key-cert");
        // The worker runs on, and shows what the file has now.
        fs::write(&file, sign("gpu.example.org").0).expect("written");
        refused(&info(&user, &address), "is for gpu.example.org and not for 127.0.0.1");
        let (certificate, serial) = sign("gpu.example.org,127.0.0.1");
        fs::write(&file, certificate).expect("written");
        let scripted =
            user.command().args(["info", "--worker", &address]).env("HIPR_TRUST_NEW", "off").output();
        let output = scripted.expect("hipr runs");
        assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
        succeeds(&run_program(&user, &address));
        assert_eq!(user.text("known_workers"), known, "nothing has to be noted");
        for revoked in [serial, safe.fingerprint.clone()] {
            fs::write(user.path("known_workers"), format!("{known}@revoked {revoked}\n")).expect("written");
            refused(&info(&user, &address), "was revoked");
        }
        fs::remove_file(user.path("known_workers")).expect("removed");
        // Who knows no authority trusts it at first use, as before.
        assert!(stderr(&info(&user, &address)).contains(&safe.fingerprint));
    }
}

#[test]
fn what_cannot_be_signed_is_said() {
    let authority = Authority::new();
    let line = &*Home::new().key();
    for (options, why) in [
        (&["--user", line, "--worker", line, "--host", "gpu"][..], "cannot be used with"),
        (&["tenant=ann"], "required"),
        (&["--worker", line], "--host"),
        (&["--user", line, "--host", "gpu"], "cannot be used with"),
        (&["--worker", line, "--host", "gpu", "tenant=ann"], "cannot be used with"),
        (&["--worker", line, "--host", "a b"], "a host's name"),
        (&["--user", "nobody"], "'nobody' is neither a key"),
        // Who forgets the quotes.
        (&["--user", "hipr-ed25519", "w2_n7", "tenant=ann"], "in quotes"),
        (&["--user", line, "admin"], "'admin' is none of"),
        (&["--user", line, "tenant=a/b"], "1 to 64"),
        (&["--user", line, "--valid-for", "1"], "expected a number and"),
        (&["--user", line, "--valid-for", "0d"], "at least a second"),
    ] {
        let output = authority.sign(options);
        refused(&output, why);
        assert_eq!(stdout(&output), "");
    }
    // A file with a line is as good as the line, and what was signed is shown.
    let file = authority.home.path("line");
    let file = file.to_str().expect("text");
    fs::write(file, format!("{line}\n")).expect("written");
    let (certificate, serial) = authority.certificate(&["--user", file, "tenant=ann"]);
    let shown = stdout(&authority.home.hipr(&["key", "show", certificate.trim()]));
    assert!(shown.contains(&serial) && shown.contains("gives: tenant=ann"), "{shown}");
    fs::write(authority.home.path("key-cert"), &certificate).expect("written");
    let both = stdout(&authority.home.hipr(&["key", "show"]));
    assert!(both.starts_with(&authority.line) && both.ends_with(&shown), "{both}");
    refused(
        &authority.home.hipr(&["key", "show", &certificate.trim()[..40]]),
        "the certificate cannot be read",
    );
    refused(&authority.home.hipr(&["key", "show", "nothing"]), "nothing: ");
}
