//! Tests that the library exports AMD's symbols with the same ELF versions: the table is compared with the list of symbols, and
//! the built library with the table.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use amdhip64::api::EXPORTS;
use amdhip64::export::Route;
use object::elf::{FileHeader64, SHT_DYNSYM};
use object::read::elf::{Dyn, FileHeader, Sym};
use object::{Endianness, SectionIndex};

/// Symbols and version nodes of libamdhip64 6.4.3 and 7.2.4 together.
const SYMBOLS: &str = include_str!("data/symbols.tsv");

fn wanted() -> BTreeMap<String, String> {
    let rows = SYMBOLS.lines().skip(1).map(|line| {
        let mut columns = line.split('\t').map(str::to_owned);
        (columns.next().expect("a symbol"), columns.next().expect("a version node"))
    });
    rows.collect()
}

fn exports() -> BTreeMap<String, String> {
    EXPORTS.iter().map(|export| (export.name.to_owned(), export.node.to_owned())).collect()
}

#[test]
fn every_symbol_has_one_row() {
    assert_eq!(wanted().len(), 543, "the list is whole");
    assert_eq!(EXPORTS.len(), exports().len(), "no function has two rows");
    assert_eq!(exports(), wanted());
}

#[test]
fn rows_are_in_order() {
    let version = |node: &str| {
        let (major, minor) =
            node.strip_prefix("hip_").and_then(|n| n.split_once('.')).expect("hip_MAJOR.MINOR");
        (major.parse::<u32>().expect("a number"), minor.parse::<u32>().expect("a number"))
    };
    let name = |name: &str| name.trim_start_matches('_').to_lowercase();
    let order: Vec<_> = EXPORTS.iter().map(|export| (version(export.node), name(export.name))).collect();
    assert!(order.is_sorted(), "by version node, then by name without case");
}

/// Symbols that real clients of HIP import, and how many clients import each: IREE's driver, tinygrad's device, and programs of
/// AMD's compilers.
const CLIENTS: &str = include_str!("data/clients.tsv");

#[test]
fn what_clients_import_is_there() {
    let there = |name: &str| {
        let row = EXPORTS.iter().find(|export| export.name == name);
        row.unwrap_or_else(|| panic!("{name} has no row")).route != Route::Unsupported
    };
    let imported: Vec<&str> = CLIENTS.lines().skip(1).filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(imported.len(), 119, "the list is whole");
    let missing: Vec<&str> = imported.iter().copied().filter(|name| !there(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
    // What every program's start-up code calls.
    for name in ["__hipRegisterManagedVar", "hipMemcpyToSymbol"] {
        assert!(there(name), "{name}");
    }
}

/// Returns the path of the shared library that cargo has built beside this test.
fn library() -> PathBuf {
    let test = env::current_exe().expect("a running test has a file");
    test.with_file_name("libamdhip64.so")
}

#[test]
fn the_library_has_the_symbols_with_their_versions() {
    let path = library();
    let data = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let data = data.as_slice();
    let header = FileHeader64::<Endianness>::parse(data).expect("an ELF file");
    let endian = header.endian().expect("an endianness");
    let sections = header.sections(endian, data).expect("sections");
    let symbols = sections.symbols(endian, data, SHT_DYNSYM).expect("dynamic symbols");
    let versions = sections.versions(endian, data).expect("readable versions").expect("versions");

    let mut found = BTreeMap::new();
    for (index, symbol) in symbols.iter().enumerate() {
        let index = object::SymbolIndex(index);
        if symbol.is_undefined(endian) || index.0 == 0 {
            continue;
        }
        let name = symbol.name(endian, symbols.strings()).expect("a name");
        let name = String::from_utf8(name.to_vec()).expect("a readable name");
        let version_index = versions.version_index(endian, index);
        let version = versions.version(version_index).expect("a version that exists");
        let version = version.map_or("", |v| core::str::from_utf8(v.name()).expect("a readable version"));
        assert!(!version_index.is_hidden(), "{name}@{version} is the default version of its name");
        // The nodes themselves are symbols as well in some linkers' output.
        if !name.starts_with("hip_") {
            found.insert(name, version.to_owned());
        }
    }
    assert_eq!(found, exports(), "{}", path.display());

    let (entries, strings) = sections.dynamic(endian, data).expect("readable").map_or_else(
        || panic!("no dynamic section"),
        |(entries, link): (&[_], SectionIndex)| {
            (entries, sections.strings(endian, data, link).expect("dynamic strings"))
        },
    );
    let soname =
        entries.iter().find(|entry| entry.tag32(endian) == Some(object::elf::DT_SONAME)).expect("a soname");
    assert_eq!(soname.string(endian, strings), Ok(b"libamdhip64.so.6".as_slice()));
}
