//! The layouts of structures against `data/structs.tsv`, which was read from the headers of release 6.4.3; those of 7.2.4 agree.

use crate::data::{Columns, count, lines, number, same};

const DATA: &[u8] = include_bytes!("../data/structs.tsv");
static ROWS: [Columns; count(DATA)] = lines(DATA);

/// A field: name, offset, size.
pub(crate) type Field = (&'static str, usize, usize);

/// Stops the build if a structure differs from the data in size, alignment or any field.
pub(crate) const fn check(name: &str, size: usize, align: usize, fields: &[Field]) {
    let (mut row, mut field, mut found) = (0, 0, false);
    while row < ROWS.len() {
        let columns = ROWS[row];
        row += 1;
        if !same(columns[0], name.as_bytes()) {
            continue;
        }
        let bytes = number(columns[4]) as usize;
        if same(columns[1], b"(whole)") {
            assert!(bytes == size, "size");
            assert!(number(columns[5]) as usize == align, "alignment");
            found = true;
        } else {
            assert!(field < fields.len(), "a field is missing");
            let (name, offset, size) = fields[field];
            assert!(same(columns[1], c_name(name.as_bytes())), "fields differ in name or order");
            assert!(number(columns[3]) as usize == offset, "offset of a field");
            assert!(bytes == size, "size of a field");
            field += 1;
        }
    }
    assert!(found, "the structure is not in data/structs.tsv");
    assert!(field == fields.len(), "the data has fewer fields");
}

/// The C name of a field whose Rust name is `name`: without the `r#` of a keyword.
const fn c_name(name: &[u8]) -> &[u8] {
    match name {
        [b'r', b'#', rest @ ..] => rest,
        _ => name,
    }
}
