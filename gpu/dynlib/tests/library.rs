//! Tests a table for the C library's mathematical functions: what is bound, what is missing, the errors.

#![cfg(target_os = "linux")]

use std::ffi::{c_double, c_int};
use std::path::Path;

use hipr_dynlib::{LoadError, Names, Need, Type, functions};

const NAMES: Names = Names {
    what: "mathematics",
    files: &["libnowhere.so.1", "libm.so.6"],
    folders: &["/nonexistent/folder"],
};
const ABSENT: c_int = -1;

functions! {
    /// A table of functions that exist, one that does not, and one that exists under another name.
    pub struct Math, names NAMES, absent ABSENT;
    required cos(x: c_double) -> c_double;
    optional ilogb(x: c_double) -> c_int;
    optional no_such_function(x: c_double, n: c_int) -> c_int;
    optional exponent(x: c_double) -> c_int as "ilogb";
}

mod demanding {
    use super::*;

    functions! {
        /// A table with a required function that no library has.
        pub struct Demanding, names NAMES, absent ABSENT;
        required cos(x: c_double) -> c_double;
        required nothing_like_this(x: c_double) -> c_double;
        required nor_like_this() -> c_int;
        optional nor_this() -> c_int;
    }
}

mod nowhere {
    use super::*;

    const NOWHERE: Names = Names { files: &["libnowhere.so.2", "libnowhere.so.1"], ..NAMES };

    functions! {
        /// A table for a library that does not exist.
        pub struct Nowhere, names NOWHERE, absent ABSENT;
        required cos(x: c_double) -> c_double;
    }
}

#[test]
fn functions_are_bound_and_called() {
    let math = Math::load().expect("every Linux system has libm");
    assert_eq!(math.path(), Path::new("libm.so.6"), "the first of the names that is there");
    // SAFETY: the rows are the prototypes of math.h.
    unsafe {
        assert_eq!(math.cos(0.0), 1.0);
        assert_eq!((math.cos)(0.0), 1.0);
        assert_eq!(math.ilogb(8.0), 3);
        assert_eq!(math.exponent(8.0), 3, "under its other name");
        assert_eq!(math.no_such_function(8.0, 1), ABSENT);
    }
    assert!(math.ilogb.is_some() && math.no_such_function.is_none());
    assert_eq!(math.absent().collect::<Vec<_>>(), ["no_such_function"]);
}

#[test]
fn rows_describe_their_functions() {
    let double = Type::Float { bits: 64 };
    let int = Type::Integer { bits: 32, signed: true };
    let row = |name| Math::FUNCTIONS.iter().find(|row| row.name == name).expect("a row");
    assert_eq!(row("cos").need, Need::Required);
    assert_eq!((row("cos").parameters, row("cos").result), (&[("x", double)][..], double));
    assert_eq!(row("no_such_function").parameters, [("x", double), ("n", int)]);
    assert_eq!((row("exponent").alias, row("ilogb").alias), (Some("ilogb"), None));
}

#[test]
fn all_missing_functions_are_named() {
    let error = demanding::Demanding::load().err().expect("libm lacks them");
    assert_eq!(
        error.to_string(),
        "libm.so.6 is not a usable mathematics: it does not export nothing_like_this, nor_like_this"
    );
    assert!(matches!(error, LoadError::MissingFunctions { .. }));
}

#[test]
fn everything_that_was_tried_is_named() {
    let error = nowhere::Nowhere::load().err().expect("there is none");
    let text = error.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert_eq!(lines[0], "no mathematics found:");
    let tried = [
        "libnowhere.so.2",
        "libnowhere.so.1",
        "/nonexistent/folder/libnowhere.so.2",
        "/nonexistent/folder/libnowhere.so.1",
    ];
    for (line, path) in lines[1..].iter().zip(tried) {
        assert!(line.starts_with(&format!("  {path}: ")) && line.contains("No such file"), "{line}");
    }
}

#[test]
fn a_path_is_the_only_place() {
    let missing = Path::new("/nonexistent/libm.so.6");
    let Err(LoadError::NotFound { tried, .. }) = Math::load_from(missing) else { panic!("it is not there") };
    assert_eq!(tried.iter().map(|(path, _)| path.as_path()).collect::<Vec<_>>(), [missing]);
    assert!(Math::load_from(Path::new("libm.so.6")).is_ok());
}

#[test]
fn a_file_that_is_no_library_is_an_error_with_the_loaders_words() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let Err(LoadError::NotFound { tried, .. }) = Math::load_from(&file) else { panic!("it is no library") };
    assert!(tried[0].1.contains("invalid ELF header"), "{tried:?}");
}
