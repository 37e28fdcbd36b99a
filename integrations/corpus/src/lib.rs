//! Hashes of documents, paragraphs, word n-grams and MinHash bands, to deduplicate text with a
//! Bloom filter. A text flows in, and [`Pieces`] flow out: where each piece of the text lies, and
//! the hashes that stand for it. The command `lanebloom-corpus` looks these hashes up in a
//! filter, and removes the pieces that it has seen.
//!
//! # When not to use it
//!
//! - To deduplicate lines of a file: `lanebloom dedup`.
//! - Strangers choose the text and gain by a collision: the hashes have a seed, but no secret key.
//!
//! # Example
//!
//! ```
//! use lanebloom_corpus::{Pieces, Rules, Split};
//! use std::collections::HashSet;
//!
//! let rules = Rules { split: Split::Line, ..Rules::default() };
//! let (mut seen, mut left) = (HashSet::new(), Vec::new());
//! let mut pieces = Pieces::default();
//! for text in ["MIT\nOne", "MIT\nTwo"] {
//!     rules.hash(text, &mut pieces)?;
//!     for piece in &pieces.pieces {
//!         if seen.insert(pieces.hashes[piece.hashes.start]) {
//!             left.push(&text[piece.text.clone()]);
//!         }
//!     }
//! }
//! assert_eq!(left, ["MIT", "One", "Two"]);
//! # Ok::<(), lanebloom_corpus::TooMany>(())
//! ```
//!
//! # Cost
//!
//! An n-gram costs one step of a rolling hash over the hashes of its words, whatever its length. A
//! word costs one hash of its bytes. ASCII text, and the ASCII parts of other text, are cut into
//! words by a table; the crate `unicode-segmentation` cuts the rest. A signature ([`Near`]) costs
//! one step for each n-gram.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod near;
mod normalize;
mod pieces;
mod rolling;
mod words;

pub use near::Near;
pub use normalize::Normalize;
pub use pieces::{Piece, Pieces, Rules, Split, TooMany, is_covered};
pub use regex::Regex;
pub use words::Words;
