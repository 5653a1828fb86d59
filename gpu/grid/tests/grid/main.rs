//! Tests of grids at the public door of the crate, in one program.

mod bench;
mod ends;
mod registers;
mod sizes;
