//! Promises that show only at size: the contract among real threads, and false-positive rates as
//! measured.

mod rates;
mod threads;
