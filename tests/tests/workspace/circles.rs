//! Tests the search for circles of files on small crates.

use std::fs;
use std::path::Path;

use hipr_tests::circles::{self, Circle};

/// Returns the circles of a workspace of one crate with these files in its `src`.
fn circles_of(files: &[(&str, &str)]) -> Vec<Circle> {
    let folder = tempfile::tempdir().expect("a folder for the crate");
    fs::write(folder.path().join("Cargo.toml"), "[workspace]\nmembers = [\n    \"one\",\n]\n")
        .expect("written");
    for (name, source) in files {
        let file = folder.path().join("one/src").join(name);
        fs::create_dir_all(file.parent().expect("in a folder")).expect("the folder is made");
        fs::write(file, source).expect("written");
    }
    circles::find(folder.path()).expect("a crate that can be read")
}

/// Returns the files of each circle.
fn files_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    circles_of(files).into_iter().map(|circle| circle.files).collect()
}

const TWO: [&str; 2] = ["a.rs", "b.rs"];

#[test]
fn two_modules_that_use_each_other_are_a_circle_however_it_is_spelled() {
    let lib = ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B as C;\nstruct L;");
    let a = ("a.rs", "pub struct A(crate::b::B);");
    for b in [
        "use crate::a::A; pub struct B;",
        "use crate::{L, a::{A as X}}; pub struct B;",
        "use super::a::*; pub struct B; fn f(_: A) {}",
        "use super::A; pub struct B;",
        "use crate::a; pub struct B; fn f(_: a::A) {}",
        "pub struct B; fn f() -> Option<&'static str> { let _ = 'a'; crate::A::new() }",
        "pub struct B; mod inner { fn f(_: super::super::a::A) {} }",
        "pub struct B; macro_rules! make { () => { $crate::a::A } }",
    ] {
        assert_eq!(files_of(&[lib, a, ("b.rs", b)]), [TWO], "{b}");
    }
}

#[test]
fn what_only_looks_like_a_use_is_no_circle() {
    let lib = ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\nstruct L;");
    let a = ("a.rs", "pub struct A(crate::b::B);");
    for b in [
        "pub struct B; // crate::a::A",
        "/* /* */ crate::a::A */ pub struct B;",
        "pub struct B; const TEXT: &str = \"crate::a::A \\\" crate::a::A\";",
        "pub struct B; const TEXT: &str = r#\"crate::a::A \" \"#;",
        "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }",
        "pub struct B; use crate::L;",
        "pub struct B; pub use crate::a::A as Handed;",
        "pub struct B; fn f() { other::a::A::new() }",
    ] {
        assert_eq!(files_of(&[lib, a, ("b.rs", b), ("c.rs", "")]), Vec::<Vec<String>>::new(), "{b}");
    }
}

#[test]
fn parent_and_child_may_use_each_other_and_other_families_may_not() {
    let lib = ("lib.rs", "mod a;\nmod b;");
    let a = ("a.rs", "mod child; pub struct A(child::Child);");
    let child = ("a/child.rs", "use super::A; use crate::b::B; pub struct Child;");
    assert_eq!(files_of(&[lib, a, child, ("b.rs", "pub struct B;")]), Vec::<Vec<String>>::new());
    let b = ("b.rs", "use crate::a::A; pub struct B;");
    assert_eq!(files_of(&[lib, a, child, b]), [["a.rs", "a/child.rs", "b.rs"]]);
}

#[test]
fn a_long_circle_says_who_uses_what() {
    let files = [
        ("main.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "use crate::b::f; pub struct A; fn g() { f() }"),
        ("b.rs", "use crate::c::C; pub fn f() { C::new() }"),
        ("c.rs", "use crate::a::A; pub struct C(A);"),
    ];
    let [circle] = &circles_of(&files)[..] else { panic!("one circle") };
    assert_eq!(
        circle.to_string(),
        "one: 3 files: a.rs b.rs c.rs\n    a.rs uses f of b.rs\n    b.rs uses C of c.rs\n    c.rs uses A of a.rs\n"
    );
    let named = circles::named(
        "### Circles of files\n\n| crate | files | why |\n|---|---|---|\n| `one` | `b.rs` `a.rs`, `c.rs` | because |\n\n## Next\n| `two` | `x.rs` | no |\n",
    );
    assert_eq!(named.len(), 1);
    assert!(circle.is_named(&named));
    assert!(!circle.is_named(&circles::named("no such section")));
}

#[test]
fn there_is_no_circle_that_architecture_md_does_not_name() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let architecture = fs::read_to_string(workspace.join("ARCHITECTURE.md")).expect("the page can be read");
    assert!(architecture.contains("### Circles of files\n"), "the page has the section that names circles");
    let named = circles::named(&architecture);
    let found = circles::find(workspace).expect("the sources can be read");
    let unnamed: Vec<String> =
        found.iter().filter(|circle| !circle.is_named(&named)).map(ToString::to_string).collect();
    assert!(unnamed.is_empty(), "\n{}", unnamed.concat());
    let stale: Vec<_> = named
        .iter()
        .filter(|named| !found.iter().any(|circle| circle.is_named(&[(*named).clone()])))
        .collect();
    assert!(stale.is_empty(), "ARCHITECTURE.md names circles that are gone: {stale:?}");
}
