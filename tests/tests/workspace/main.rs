//! Checks of the workspace as a whole: its files, its crates, its figures.

mod circles;
mod counts;
mod layers;
