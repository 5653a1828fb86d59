//! Tests that the built file `hipr` does not contain the client library. The library's load and unload hooks would register
//! fork handlers and say good-bye for a session that `hipr` does not have.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use object::Endianness;
use object::elf::{FileHeader64, R_X86_64_RELATIVE, SHT_FINI_ARRAY, SHT_INIT_ARRAY, SHT_SYMTAB};
use object::read::elf::{FileHeader, SectionHeader, Sym};

/// The functions that `libamdhip64.so` exports, first column.
const EXPORTS: &str = include_str!("../../client-shim/tests/data/symbols.tsv");

/// The parts of an ELF executable that the test needs.
struct Executable {
    /// Defined symbols by address; the last name of each.
    by_address: BTreeMap<u64, String>,
    names: Vec<String>,
    /// Functions that the loader calls before `main` and after `exit`.
    hooks: Vec<u64>,
}

impl Executable {
    fn read(path: &Path) -> Self {
        let data = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let data = data.as_slice();
        let header = FileHeader64::<Endianness>::parse(data).expect("an ELF file");
        let endian = header.endian().expect("an endianness");
        let sections = header.sections(endian, data).expect("sections");
        let symbols = sections.symbols(endian, data, SHT_SYMTAB).expect("symbols");
        let mut names = Vec::new();
        let mut by_address = BTreeMap::new();
        for symbol in symbols.iter().filter(|symbol| !symbol.is_undefined(endian)) {
            let name = symbol.name(endian, symbols.strings()).expect("a name");
            let name = String::from_utf8_lossy(name).into_owned();
            if symbol.st_value(endian) != 0 && !name.is_empty() {
                by_address.insert(symbol.st_value(endian), name.clone());
            }
            names.push(name);
        }
        let arrays: Vec<_> = sections
            .iter()
            .filter(|section| [SHT_INIT_ARRAY, SHT_FINI_ARRAY].contains(&section.sh_type(endian)))
            .map(|section| {
                let start = section.sh_addr(endian);
                start..start + section.sh_size(endian)
            })
            .collect();
        let mut hooks = Vec::new();
        for section in sections.iter() {
            let relocations = section.rela(endian, data).expect("readable relocations");
            let Some((relocations, _)) = relocations else { continue };
            for relocation in relocations {
                let place = relocation.r_offset.get(endian);
                if relocation.r_type(endian, false) == R_X86_64_RELATIVE
                    && arrays.iter().any(|array| array.contains(&place))
                {
                    hooks.push(relocation.r_addend.get(endian).cast_unsigned());
                }
            }
        }
        Self { by_address, names, hooks }
    }

    fn hook_names(&self) -> Vec<&str> {
        self.hooks.iter().map(|hook| self.by_address.get(hook).map_or("?", String::as_str)).collect()
    }
}

#[test]
fn the_client_library_is_not_in_it() {
    // HIPR_TEST_BINARY: another build of `hipr` to look at.
    let path = env::var_os("HIPR_TEST_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_hipr").into());
    let hipr = Executable::read(Path::new(&path));
    assert!(hipr.names.iter().any(|name| name == "main"), "it has its symbols");

    let hooks = hipr.hook_names();
    // The C library's own are always there.
    assert!(hooks.contains(&"frame_dummy"), "the hooks are found: {hooks:?}");
    let ours = |name: &&&str| name.contains("amdhip64") || name.contains("hipr");
    assert_eq!(hooks.iter().filter(ours).collect::<Vec<_>>(), Vec::<&&str>::new(), "load and unload hooks");

    let exports: Vec<&str> = EXPORTS.lines().filter_map(|line| line.split('\t').next()).collect();
    assert!(exports.contains(&"hipMalloc"));
    let shim = |name: &&String| name.contains("amdhip64") || exports.contains(&name.as_str());
    assert_eq!(hipr.names.iter().filter(shim).take(5).collect::<Vec<_>>(), Vec::<&String>::new());
}
