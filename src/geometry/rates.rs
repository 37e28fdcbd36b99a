//! The models of false-positive rates: the chance that a filter finds a key that it does not have.
//! All formulas are here or in the file that the table names; filters, builders and statistics call
//! them.
//!
//! | filter | a lookup finds an absent key if | formula |
//! |---|---|---|
//! | bits or counters in lines | all its draws hit set cells | `sizing.rs`: `Layout::rate_of` by the number of keys, `Layout::mean_rate` by the bits |
//! | fingerprints in slots | a slot that it searches has its fingerprint | [`of_slots`], [`of_distinct_slots`]; [`load_for`] is the way back |
//! | `StaticFilter` | the sum of its cells is its fingerprint | `fuse.rs`: `rate_at` by the number of keys, `rate_of` by the cells; [`fits_fingerprint`] is the way back |
//! | layers, generations | any of them finds it | [`any`] |
//! | `TombstoneBloom` | the added keys have it, and the removed ones do not | [`but_not`] |
//!
//! A filter of several filters divides its rate among them: `of_each`, [`of_next_layer`].
//!
//! The models take hashes for random, and filters of one hash for independent. Only `+ - * /` are
//! used, in one order: `sizing.rs` says why. (The filters of other systems have these systems'
//! formulas, in the crate `lanebloom-formats`.)

#[cfg(feature = "std")]
use crate::geometry::layout::{LINE_WORDS, Layout};

/// The mean number of equal values among those that a lookup compares: `slots` slots, of which the
/// part `load` is taken, each with one of `values` values.
///
/// It is the rate itself if no two of the slots can have the same value at a time.
pub(crate) fn of_distinct_slots(slots: usize, load: f64, values: u64) -> f64 {
    slots as f64 * load / values as f64
}

/// The chance that any of the slots has the value, if they are independent: `1 - exp(-x)` of the
/// mean number `x`.
pub(crate) fn of_slots(slots: usize, load: f64, values: u64) -> f64 {
    let x = of_distinct_slots(slots, load, values);
    // x is at most 0.012, and the next term below 1e-9.
    x - x * x / 2.0 + x * x * x / 6.0
}

/// The largest load, `planned` at most, at which `rate_at` is `rate`.
pub(crate) fn load_for(rate: f64, planned: f64, rate_at: impl Fn(f64) -> f64) -> f64 {
    if rate_at(planned) <= rate {
        return planned;
    }
    // Linear up to a percent, which a few corrections remove.
    let mut load = 0.0;
    for _ in 0..8 {
        load += (rate - rate_at(load)) / rate_at(1.0);
    }
    load
}

/// Whether a fingerprint of `bits` bits is long enough for `rate`: another key has it with the
/// chance `2^-bits`.
pub(crate) fn fits_fingerprint(rate: f64, bits: u32) -> bool {
    rate * (1u64 << bits) as f64 >= 1.0
}

/// The chance that any of several independent events happens.
pub(crate) fn any(chances: impl IntoIterator<Item = f64>) -> f64 {
    chances.into_iter().fold(0.0, |any, chance| any + (1.0 - any) * chance)
}

/// The chance that one event happens, and an independent other one does not.
pub(crate) fn but_not(chance: f64, other: f64) -> f64 {
    chance * (1.0 - other)
}

/// The rate of several filters of one layout for hashes that pick this line, which each of the
/// filters has with other bits.
#[cfg(feature = "std")]
#[inline]
pub(crate) fn of_line_in_any(layout: Layout, line: &[[u64; LINE_WORDS]]) -> f64 {
    any(line.iter().map(|words| layout.rate_of_line(*words)))
}

/// The rate of each of several filters that have the rate `all` together. (The chance that one of
/// them is wrong is a little less than the sum, 1% of it at a rate of 2%.)
#[cfg(feature = "std")]
pub(crate) fn of_each(all: f64, filters: usize) -> f64 {
    all / filters as f64
}

/// The rate of the layer after `layers` layers, which together have the rate `taken`, of a filter
/// that may have the rate `all`: a share of the rest.
///
/// The share is `1 - ratio`, so that layer `i` has the rate `all * (1 - ratio) * ratio^i`, and any
/// number of layers has less than `all`. If at most `most` layers come, they take all of it. A
/// layer that probably is the last one takes the share `hinted`, if that is more.
pub(crate) fn of_next_layer(
    all: f64,
    ratio: f64,
    most: Option<usize>,
    (layers, taken): (usize, f64),
    hinted: Option<f64>,
) -> f64 {
    let power = |n: usize| (0..n).fold(1.0, |power, _| power * ratio);
    let mut left = all - taken;
    // Growth leaves more than this. Layers that came by unions may leave nothing: then the next
    // layers take what they would take without those.
    let tail = all * power(layers);
    if left < tail * (1.0 - ratio) / 64.0 {
        left = tail;
    }
    // All of what is left, for the last layer of a limited number.
    let share = match most {
        Some(most) => (1.0 - ratio) / (1.0 - power(most.saturating_sub(layers).max(1))),
        None => 1.0 - ratio,
    };
    left * hinted.map_or(share, |hinted| hinted.max(share))
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    /// Beside the layers' geometric series, and beside all of the rate.
    #[test]
    fn layers_take_the_rate_and_no_more() {
        let (all, ratio) = (0.01, 0.8);
        for most in [None, Some(1), Some(7)] {
            let mut taken = 0.0;
            for layers in 0..most.unwrap_or(50) {
                let next = of_next_layer(all, ratio, most, (layers, taken), None);
                let series = all * (1.0 - ratio) * power(ratio, layers);
                match most {
                    None => assert!((next / series - 1.0).abs() < 1e-9, "{layers}: {next}"),
                    Some(_) => assert!(next > series, "{layers}: {next}"),
                }
                taken += next;
            }
            let left = most.map_or(all * power(ratio, 50), |_| 0.0);
            assert!((taken + left - all).abs() < 1e-12, "{most:?}: {taken}");
        }
    }

    fn power(x: f64, n: usize) -> f64 {
        (0..n).map(|_| x).product()
    }

    #[test]
    fn chances_combine() {
        assert_eq!(any([0.5, 0.5, 0.0]), 0.75);
        assert_eq!(any([1e-30, 1e-30]), 2e-30);
        assert_eq!((any([]), any([0.25, 1.0])), (0.0, 1.0));
        assert_eq!(but_not(0.5, 0.25), 0.375);
        #[cfg(feature = "std")]
        assert_eq!(of_each(0.04, 4), 0.01);
        assert!(fits_fingerprint(0.25, 2) && !fits_fingerprint(0.25, 1));
    }

    /// By every slot: `1 - (1 - load / values)^slots`.
    #[test]
    fn a_slot_of_many_has_the_fingerprint() {
        for (slots, values) in [(12, 1023), (10, 4095), (8, 65_535)] {
            for load in [0.1, 0.5, 1.0] {
                let exact = any((0..slots).map(|_| load / values as f64));
                let rate = of_slots(slots, load, values);
                assert!(
                    (rate / exact - 1.0).abs() < 0.001,
                    "{slots} {values} {load}: {rate} {exact}"
                );
                let back = load_for(rate, 1.0, |load| of_slots(slots, load, values));
                assert!((back / load - 1.0).abs() < 1e-12);
            }
        }
    }
}
