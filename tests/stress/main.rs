//! Promises that show only at size: the contract among real threads, and false-positive rates as
//! measured.

#[path = "../common/mod.rs"]
mod common;

mod rates;
mod threads;
