//! Tests of the table against the prototypes of the C headers, row by row.

mod prototype;

use std::collections::{BTreeMap, BTreeSet};

use hip_sys::{Hip, Need, Row};
use prototype::{Declared, Typedefs};

/// One line of `data/prototypes.tsv`: function, result, parameters, and the releases that export it with this prototype; where a
/// release has it under another symbol only, that symbol stands after a colon.
struct Prototype {
    result: &'static str,
    parameters: Vec<&'static str>,
    releases: BTreeMap<&'static str, Option<&'static str>>,
}

fn prototypes() -> BTreeMap<&'static str, Prototype> {
    include_str!("data/prototypes.tsv").lines().skip(1).map(prototype).collect()
}

fn prototype(line: &'static str) -> (&'static str, Prototype) {
    let columns: Vec<_> = line.split('\t').collect();
    let [function, result, parameters, releases] = columns[..] else { panic!("not four columns: {line}") };
    let parameters = parameters.split(';').map(str::trim).filter(|text| !text.is_empty()).collect();
    let releases = releases
        .split(' ')
        .map(|release| {
            release.split_once(':').map_or((release, None), |(release, symbol)| (release, Some(symbol)))
        })
        .collect();
    (function, Prototype { result, parameters, releases })
}

#[test]
fn every_row_is_the_prototype_of_its_function() {
    let (typedefs, prototypes) = (Typedefs::read(), prototypes());
    let mut differences = Vec::new();
    for row in Hip::FUNCTIONS {
        let prototype = &prototypes[row.name];
        let number = (row.parameters.len(), prototype.parameters.len());
        if number.0 != number.1 {
            differences.push(format!("{}: {} parameters, the header has {}", row.name, number.0, number.1));
        }
        let declared = prototype.parameters.iter().map(|text| typedefs.parameter(text));
        let pairs = row.parameters.iter().map(|&(name, ty)| (name, ty)).zip(declared);
        let result = (("its result", row.result), typedefs.parse(prototype.result));
        for ((name, ty), declared) in pairs.chain([result]) {
            if !declared.fits(ty) {
                differences.push(format!("{}: {name} is {ty:?}, the header has {declared:?}", row.name));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn the_comparison_sees_differences() {
    use hipr_dynlib::{CType, Type};
    use std::ffi::{c_char, c_int, c_uint, c_void};
    let typedefs = Typedefs::read();
    let fits = |c: &str, ty: Type| typedefs.parse(c).fits(ty);
    assert!(fits("int", c_int::TYPE) && !fits("int", c_uint::TYPE) && !fits("int", i64::TYPE));
    assert!(fits("size_t", usize::TYPE) && !fits("size_t", u32::TYPE) && !fits("float", f64::TYPE));
    assert!(fits("const char *", <*const c_char>::TYPE) && !fits("const char *", <*mut c_char>::TYPE));
    assert!(fits("void **", <*mut *mut c_void>::TYPE) && !fits("void **", <*mut c_void>::TYPE));
    assert!(
        fits("hipStream_t", hip_sys::hipStream_t::TYPE) && !fits("hipStream_t", hip_sys::hipEvent_t::TYPE)
    );
    assert!(fits("enum hipLimit_t", hip_sys::hipLimit_t::TYPE) && !fits("hipMemcpyKind", u8::TYPE));
    assert!(fits("hipExtent", hip_sys::hipExtent::TYPE) && !fits("hipPos", hip_sys::hipExtent::TYPE));
    assert!(
        fits("hipHostFn_t", hip_sys::hipHostFn_t::TYPE)
            && !fits("hipStreamCallback_t", hip_sys::hipHostFn_t::TYPE)
    );
    assert!(matches!(typedefs.parse("no_such_t"), Declared::Unknown(name) if name == "no_such_t"));
}

#[test]
fn every_prototype_has_its_row() {
    let rows: BTreeSet<_> = Hip::FUNCTIONS.iter().map(|row| row.name).collect();
    let data: BTreeSet<_> = prototypes().into_keys().collect();
    assert_eq!(rows, data);
    assert_eq!(rows.len(), Hip::FUNCTIONS.len(), "no row twice");
}

#[test]
fn what_is_required_is_in_every_release() {
    let prototypes = prototypes();
    let exported = |row: &Row, release: &str| match prototypes[row.name].releases.get(release) {
        Some(&symbol) => symbol.is_none_or(|symbol| row.alias == Some(symbol)),
        None => false,
    };
    for release in ["5.2.3", "6.4.3", "7.2.4"] {
        let absent: Vec<_> = Hip::FUNCTIONS.iter().filter(|row| !exported(row, release)).collect();
        assert!(absent.iter().all(|row| row.need == Need::Optional), "{release} lacks {absent:?}");
        // Release 5.2 is the one that lacks something.
        assert_eq!(absent.is_empty(), release != "5.2.3", "{release} lacks {absent:?}");
    }
}

#[test]
fn every_operation_has_its_functions() {
    let rows: BTreeSet<_> = Hip::FUNCTIONS.iter().map(|row| row.name).collect();
    for operation in hipr_proto::op::OPS {
        // "hipMalloc x count", "hipModuleLoadData + hipModuleGetFunction"; the management operations have none.
        for function in operation.hip_function.split([' ', '+']).filter(|word| word.starts_with("hip")) {
            assert!(rows.contains(function), "{}: {function} is not in the table", operation.name);
        }
    }
}

#[test]
fn threads_share_a_library() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Hip>();
}
