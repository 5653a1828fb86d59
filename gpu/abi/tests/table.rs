//! Tests of the table against its data files, in both directions, and against the numbers of the wire protocol.

use std::collections::BTreeSet;

use hipr_abi as hip;
use hipr_proto::HipError;
use hipr_proto::op::kind;

#[test]
fn every_row_of_the_data_is_a_constant() {
    let constants: BTreeSet<_> = hip::CONSTANTS.iter().map(|(ty, name, _)| (*ty, *name)).collect();
    assert_eq!(constants.len(), hip::CONSTANTS.len(), "no constant twice");
    let data = include_str!("../data/enums.tsv").lines().skip(1);
    let rows: BTreeSet<_> = data
        .map(|line| {
            let columns: Vec<_> = line.split('\t').collect();
            (columns[0], columns[1])
        })
        // Its value is that of one release.
        .filter(|(_, name)| *name != "HIP_VERSION")
        .collect();
    assert_eq!(constants, rows);
}

#[test]
fn the_version_is_that_of_the_older_release() {
    assert_eq!(hip::HIP_VERSION, 6 * 10_000_000 + 4 * 100_000 + 43_484);
}

/// Every structure of the data has a type; that the types are right is checked while compiling.
#[test]
fn every_structure_of_the_data_is_a_type() {
    let data = include_str!("../data/structs.tsv").lines().skip(1);
    let names: BTreeSet<_> = data.filter_map(|line| line.split('\t').next()).collect();
    let types = include_str!("../src/types.rs");
    for name in names {
        assert!(types.contains(&format!("\n    {name} {{\n")), "{name} is not in types.rs");
    }
}

/// The protocol's own error numbers equal HIP's where HIP has the same error.
#[test]
fn the_wire_has_the_same_error_numbers() {
    let mut known = 0;
    for code in 1..2000 {
        let error = HipError(code);
        if error.is_known() {
            known += 1;
            let row = ("hipError_t", error.name(), i64::from(code));
            assert!(hip::CONSTANTS.contains(&row), "{row:?} of the wire is not HIP's");
        }
    }
    assert!(known >= 70, "the wire knows {known} of HIP's errors");
}

const _: () = {
    assert!(kind::HOST_TO_HOST == hip::hipMemcpyHostToHost);
    assert!(kind::HOST_TO_DEVICE == hip::hipMemcpyHostToDevice);
    assert!(kind::DEVICE_TO_HOST == hip::hipMemcpyDeviceToHost);
    assert!(kind::DEVICE_TO_DEVICE == hip::hipMemcpyDeviceToDevice);
    assert!(kind::DEFAULT == hip::hipMemcpyDefault);
};
