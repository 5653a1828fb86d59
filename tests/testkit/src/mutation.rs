//! Bugs that the invariants have to catch: tests of the tests.
