//! Checks the layouts of structures and unions against `data/structs.tsv`, which was read from the headers of releases 6.4.3
//! and 7.2.4. Its last column says which of the two have the structure in this layout.

use crate::data::{Columns, count, lines, number, same};

const DATA: &[u8] = include_bytes!("../data/structs.tsv");
static ROWS: [Columns; count(DATA)] = lines(DATA);

/// A field: its name, its offset and size, and the message if they differ.
pub(crate) type Field = (&'static str, [usize; 2], &'static str);

/// Stops the build, with a message, if a structure differs from the data in size, alignment or any field.
pub(crate) const fn check(name: &str, layout: [usize; 2], differs: &str, fields: &[Field]) {
    let (mut row, mut field, mut found) = (0, 0, false);
    while row < ROWS.len() {
        let [of, this, _, offset, size, align, _] = ROWS[row];
        row += 1;
        if !same(of, name.as_bytes()) {
            continue;
        }
        if same(this, b"(whole)") {
            found = number(size) as usize == layout[0] && number(align) as usize == layout[1];
            continue;
        }
        if field == fields.len() {
            panic!("{}", differs);
        }
        let (name, layout, differs) = fields[field];
        let placed = number(offset) as usize == layout[0] && number(size) as usize == layout[1];
        if !placed || !same(this, c_name(name.as_bytes())) {
            panic!("{}", differs);
        }
        field += 1;
    }
    if !found || field != fields.len() {
        panic!("{}", differs);
    }
}

/// Returns the C name of a field whose Rust name is `name`: without the `r#` of a keyword.
const fn c_name(name: &[u8]) -> &[u8] {
    match name {
        [b'r', b'#', rest @ ..] => rest,
        _ => name,
    }
}
