//! Bytes that a filter writes can be read, whatever happened to the filter before: random
//! histories. (`tests/filters` has models of a bitmap and of the filters that delete or forget,
//! which are read now and then.)

use crate::contract::read;
use lanebloom::bank::FilterBank;
use lanebloom::internal::traits::{Encode, Insert};
use lanebloom::{ConcurrentBloom, Filter, Hashed, ScalableBloom, StaticFilter, bloom};
use lanebloom_tests::number;

/// Numbers that decide what happens next.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 += 1;
        number(self.0) % end
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Hashes that were not there before, and some that may have been.
    fn hashes(&mut self) -> Vec<u64> {
        let most = self.one_of(&[2, 60, 600, 6000]);
        let (first, len) = (self.below(1 << 14), self.below(most));
        (first..first + len).map(number).collect()
    }
}

/// Histories of every type, with their number of steps. Without the optimizer a layer takes ten
/// milliseconds to plan.
fn histories(mut of: impl FnMut(&mut Chance, usize)) {
    let histories = if cfg!(debug_assertions) { 60 } else { 400 };
    for history in 0..histories {
        let mut chance = Chance(history << 32);
        let steps = 1 + chance.below(25) as usize;
        of(&mut chance, steps);
    }
}

/// Does things that every filter can do, and things that only this one can (`own` says what), and
/// reads the filter after each.
fn live<E: Insert + Encode>(
    mut filter: Filter<E>,
    chance: &mut Chance,
    steps: usize,
    mut own: impl FnMut(&mut Filter<E>, &mut Chance) -> String,
) {
    let mut history = Vec::new();
    for _ in 0..steps {
        let hashes = chance.hashes();
        let flags = &mut vec![false; hashes.len()][..];
        history.push(match chance.below(12) {
            0..3 => format!(
                "insert {} hashes: {:?}",
                hashes.len(),
                filter.try_insert_batch(Hashed::slice(&hashes))
            ),
            3 => format!(
                "insert {:?}",
                hashes
                    .iter()
                    .take(9)
                    .map(|&hash| filter.try_insert(&Hashed(hash)))
                    .last()
            ),
            4 => format!(
                "insert {} flagged: {:?}",
                hashes.len(),
                filter.try_insert_batch_into(Hashed::slice(&hashes), flags)
            ),
            5 => {
                filter = filter.try_clone().unwrap();
                "clone".into()
            }
            6 if chance.below(3) == 0 => {
                filter.clear();
                "clear".into()
            }
            _ => own(&mut filter, chance),
        });
        let bytes = filter.snapshot().to_vec();
        let same = read::<E, _>(&bytes, filter.hasher()).unwrap_or_else(|error| panic!("{history:#?}: {error}"));
        assert_eq!(same.statistics(), filter.statistics(), "{history:#?}");
        assert!(same.snapshot().to_vec().len() == bytes.len(), "{history:#?}");
        assert!(
            hashes
                .iter()
                .all(|&hash| same.look_up(&Hashed(hash)) == filter.look_up(&Hashed(hash)))
        );
        if chance.below(4) == 0 {
            filter = same;
            history.push("go on with the one that was read".into());
        }
    }
}

#[test]
fn a_bloom_filter_is_read_after_any_history() {
    histories(|chance, steps| {
        let words = chance.one_of(&[1, 2, 4, 8]);
        let builder = ConcurrentBloom::builder().words_per_key(words);
        let make = || builder.clone().expected_keys(500).build().unwrap();
        live(make(), chance, steps, |filter, chance| {
            let other = make();
            other.insert_batch(Hashed::slice(&chance.hashes()));
            match chance.below(3) {
                0 => format!("unite: {:?}", filter.union_from(&other)),
                1 => {
                    let delta = other.with(filter).map(|pair| pair.delta()).unwrap();
                    format!("add a delta: {:?}", bloom::apply_deltas(filter, &delta).unwrap())
                }
                _ => format!(
                    "insert by plain stores: {}",
                    filter.exclusive().insert_batch(Hashed::slice(&chance.hashes()))
                ),
            }
        });
    });
}

/// Hints and limits that change at any time, also when the filter is full, and limits of readers.
#[test]
fn a_filter_that_grows_is_read_after_any_history() {
    const HINTS: [usize; 8] = [0, 1, 50, 900, 10_000, 1 << 62, usize::MAX - 1, usize::MAX];
    const LIMITS: [usize; 4] = [1000, 5000, 20_000, 100_000];
    histories(|chance, steps| {
        // Without a limit, the highest hints would make large layers.
        let (limit, hints) = match chance.below(2) {
            0 => (usize::MAX, &HINTS[..5]),
            _ => (chance.one_of(&[20_000, 100_000]), &HINTS[..]),
        };
        let mut builder = ScalableBloom::builder()
            .expected_keys(chance.one_of(&[1, 20, 1000]))
            .expansion(chance.one_of(&[1, 2, 4]))
            .tightening_ratio(chance.one_of(&[0.3, 0.5, 0.9]))
            .false_positive_rate(chance.one_of(&[0.1, 0.01, 1e-4]))
            // More layers take long.
            .max_layers(chance.one_of(&[1, 2, 5]))
            .max_bytes(limit)
            .hint(chance.one_of(hints));
        if chance.below(3) == 0 {
            builder = builder.words_per_key(1);
        }
        let filter = builder.clone().build().unwrap();
        live(filter, chance, steps, |filter, chance| match chance.below(7) {
            0..3 => {
                let hint = chance.one_of(hints);
                filter.set_hint(hint);
                format!("hint {hint}")
            }
            3 => {
                // Above the builder's too.
                let limit = chance.one_of(&LIMITS);
                filter.set_max_bytes(limit);
                format!("limit {limit}")
            }
            4 => {
                let limit = filter.memory_bytes() + chance.below(5000) as usize;
                *filter = ScalableBloom::read_from(&filter.snapshot().to_vec()[..], limit).unwrap();
                format!("read with the limit {limit}")
            }
            5 => {
                let other = builder.clone().hint(0).build().unwrap();
                let _ = other.insert_batch(Hashed::slice(&chance.hashes()));
                format!("unite: {:?}", filter.union_from(&other))
            }
            _ => format!(
                "insert by plain stores: {:?}",
                filter.exclusive().insert_batch(Hashed::slice(&chance.hashes()))
            ),
        });
    });
}

#[test]
fn filters_without_inserts_are_read_after_any_history() {
    histories(|chance, steps| {
        let bits = 7 + chance.below(26) as usize;
        let builder = StaticFilter::builder().fingerprint_bits(bits);
        let builder = builder.cells_per_key(chance.one_of(&[3, 4]));
        let filter = builder.build_from_batch(Hashed::slice(&chance.hashes())).unwrap();
        let (same, _) = StaticFilter::from_bytes(&filter.snapshot().to_vec()).unwrap();
        assert!(same.snapshot().to_vec() == filter.snapshot().to_vec());

        let columns = ConcurrentBloom::builder().expected_keys(100);
        let mut bank = FilterBank::new(1 + chance.below(150) as usize, &columns).unwrap();
        for _ in 0..steps {
            let column = chance.below(bank.columns().max(1) as u64) as usize;
            match chance.below(4) {
                0 => {
                    let filter = columns.clone().build().unwrap();
                    filter.insert_batch(Hashed::slice(&chance.hashes()));
                    bank.push(&filter).unwrap();
                }
                1 => _ = bank.clear(column),
                2 => bank = bank.try_clone().unwrap(),
                _ => _ = bank.insert_batch(column, Hashed::slice(&chance.hashes())),
            }
            let (same, _) = FilterBank::from_bytes(&bank.snapshot().to_vec()).unwrap();
            assert!(same == bank);
        }
    });
}
