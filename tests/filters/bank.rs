//! A bank of filters: each column is the `ConcurrentBloom` of its keys, bit for bit.

use lanebloom::bank::{BankView, FilterBank, columns};
use lanebloom::internal::instruction_sets;
use lanebloom::{ConcurrentBloom, Hashed};
use lanebloom_tests::number;
use std::sync::Barrier;
use std::thread;

/// Builders of each number of words and lines per key, with few and with many bits.
fn builders() -> Vec<lanebloom::bloom::Builder> {
    let of = |keys, rate| ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(rate);
    let mut all = vec![
        of(10, 0.1),
        of(300, 0.01),
        of(300, 1e-3),
        of(200, 1e-4),
        of(200, 1e-5),
        of(100, 1e-6),
    ];
    for words in [1, 2, 4, 8] {
        all.push(of(150, 0.01).words_per_key(words));
        if words > 1 {
            all.push(of(150, 0.001).words_per_key(words).lines_per_key(2));
        }
    }
    all
}

/// The keys of a filter: some that many filters have, some of its own.
fn keys(filter: usize) -> impl Iterator<Item = u64> + Clone {
    let own = (0..30).map(move |i| number((filter * 1000 + i) as u64));
    own.chain((0..40u64).filter(move |key| number(key * 7919 + filter as u64) % 3 == 0))
}

/// Filters of the builder, with keys.
fn filled(builder: &lanebloom::bloom::Builder, count: usize) -> Vec<ConcurrentBloom> {
    let filters = (0..count).map(|i| {
        let filter = builder.clone().build().unwrap();
        keys(i).for_each(|key| _ = filter.insert(&key));
        filter
    });
    filters.collect()
}

/// Keys that many filters hold, keys that one filter holds, if there are as many, and keys of none.
fn asked() -> Vec<u64> {
    (0..40)
        .chain((0..40).map(|i| number(i * 29_001)))
        .chain((0..50).map(|i| number(i + (1 << 40))))
        .collect()
}

/// Every method of a lookup answers as the filters, one after another.
fn answers_as<R: lanebloom::bank::Rows>(bank: &lanebloom::bank::Bank<R>, filters: &[ConcurrentBloom]) {
    let asked = asked();
    let mut in_batch = Vec::new();
    bank.which_batch(&asked, |i, found| {
        assert_eq!(i, in_batch.len());
        in_batch.push(found.to_vec());
    });
    assert_eq!(in_batch.len(), asked.len());
    let mut found = vec![u64::MAX; bank.columns() / 64];
    for (key, in_batch) in asked.iter().zip(in_batch) {
        let expected: Vec<usize> = (0..filters.len()).filter(|&i| filters[i].contains(key)).collect();
        assert_eq!(bank.which(key).collect::<Vec<_>>(), expected);
        assert_eq!(bank.which_into(key, &mut found), !expected.is_empty());
        assert!(columns(&found).eq(expected.iter().copied()) && found == in_batch);
        assert_eq!((bank.any(key), bank.count(key)), (!expected.is_empty(), expected.len()));
        let contains = |i: usize| bank.contains(i, key);
        assert!((0..bank.columns() + 70).filter(|&i| contains(i)).eq(expected));
    }
}

#[test]
fn a_column_is_its_filter_bit_for_bit_both_ways() {
    for builder in builders() {
        for count in [1, 70] {
            let filters = filled(&builder, count);
            // One by one, all at once, and by inserts.
            let pushed = FilterBank::new(count, &builder).unwrap();
            let mut at_once = FilterBank::new(count, &builder).unwrap();
            let inserted = FilterBank::new(count, &builder).unwrap();
            for (i, filter) in filters.iter().enumerate() {
                assert_eq!(pushed.push(filter), Ok(i));
                let batch: Vec<u64> = keys(i).collect();
                if i % 2 == 0 {
                    // (A false positive changes neither.)
                    let other = builder.clone().build().unwrap();
                    let new = batch.iter().filter(|key| other.insert(*key)).count();
                    assert_eq!(inserted.insert_batch(i, &batch), Ok(new));
                } else {
                    let other = builder.clone().build().unwrap();
                    for key in &batch {
                        assert_eq!(inserted.insert(i, key), Ok(other.insert(key)));
                    }
                }
            }
            assert!(at_once.push_all(&filters).unwrap().into_iter().eq(0..count));
            assert!(pushed == at_once && pushed == inserted && pushed.len() == count);
            assert!(FilterBank::from_filters(&filters).unwrap() == pushed);
            assert_eq!(pushed.memory_bytes(), pushed.columns() * filters[0].memory_bytes());
            for (i, filter) in filters.iter().enumerate() {
                let column = pushed.to_filter(i).unwrap();
                assert!(column == *filter && column.expected_keys() == filter.expected_keys());
            }
            if pushed.columns() > count {
                assert!(pushed.to_filter(count).unwrap().is_empty());
            }
            answers_as(&pushed, &filters);
        }
    }
}

#[test]
fn every_instruction_set_gives_the_same_columns() {
    for builder in [&builders()[1], &builders()[4]] {
        for count in [64, 320, 640, 1100] {
            let filters = filled(builder, count);
            for isa in instruction_sets() {
                let mut bank = FilterBank::new(count, builder).unwrap().with_isa(isa);
                bank.push_all(&filters).unwrap();
                answers_as(&bank, &filters);
            }
        }
    }
}

/// A bank beyond the caches, so that batches prefetch; and one whose bitmap is not kept on the
/// stack.
#[test]
fn batches_of_large_banks_answer_as_single_calls() {
    for (count, keys) in [(64, 60_000), (1000, 4000), (10_000, 400)] {
        let bank = FilterBank::with_capacity(count, keys, 0.5).unwrap();
        assert!(bank.memory_bytes() > 4 << 20);
        let all: Vec<u64> = (0..3000).map(number).collect();
        for (i, keys) in all.chunks(10).enumerate() {
            let column = number(i as u64) as usize % count;
            bank.insert_batch(column, keys).unwrap();
            assert!(keys.iter().all(|key| bank.contains(column, key)));
        }
        let mut next = 0;
        bank.which_batch(&all, |i, found| {
            assert!(i == next && columns(found).eq(bank.which(&all[i])) && found.iter().any(|&word| word != 0));
            next += 1;
        });
        assert_eq!(next, all.len());
        let hashes: Vec<u64> = all.iter().map(|key| bank.hash(key)).collect();
        let mut next = 0;
        bank.which_batch(Hashed::slice(&hashes), |i, found| {
            assert!(i == next && columns(found).eq(bank.which(&Hashed(hashes[i]))));
            next += 1;
        });
        assert_eq!(next, all.len());
    }
}

#[test]
fn larger_filters_fold_and_others_are_refused() {
    for (lines, words) in [(1, 2), (2, 4)] {
        let built = |blocks: usize| {
            let filter = ConcurrentBloom::builder()
                .memory_budget(64 * blocks)
                .false_positive_rate(0.01);
            filter.lines_per_key(lines).words_per_key(words).build().unwrap()
        };
        let small = built(4);
        let mut bank = FilterBank::from_filters(&[&small]).unwrap();
        for factor in [1, 2, 3, 7] {
            let mut filter = built(4 * factor);
            keys(factor).for_each(|key| _ = filter.insert(&key));
            let column = bank.push(&filter).unwrap();
            let also = bank.push_all(&[&filter]).unwrap()[0];
            filter.exclusive().fold(factor).unwrap();
            assert!(bank.to_filter(column).unwrap() == filter && bank.to_filter(also).unwrap() == filter);
        }
        let before = bank.try_clone().unwrap();
        let other_shape = ConcurrentBloom::builder()
            .memory_budget(256)
            .words_per_key(1)
            .build()
            .unwrap();
        for filter in [built(2), built(6), other_shape] {
            let error = bank.push(&filter).unwrap_err();
            assert!(
                error.is_incompatible() && error.to_string().contains("does not fit"),
                "{error}"
            );
            assert_eq!(bank.push_all(&[&small, &filter]), Err(error));
        }
        let seeded = ConcurrentBloom::builder()
            .memory_budget(256)
            .false_positive_rate(0.01)
            .seed(1);
        let seeded = seeded.lines_per_key(lines).words_per_key(words).build().unwrap();
        assert!(
            bank.push(&seeded)
                .unwrap_err()
                .to_string()
                .contains("the filter's hasher")
        );
        assert!(bank == before);
    }
}

#[test]
fn a_fold_that_breaks_the_rate_is_refused() {
    let builder = |keys| ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(1e-3);
    let small = builder(1).build().unwrap();
    let large = builder(20_000).build().unwrap();
    large.insert_all(0..20_000u64);
    let mut bank = FilterBank::from_filters(&[&small]).unwrap();
    let error = bank.push(&large).unwrap_err();
    let blocks = large.layout().blocks;
    let expected = format!(
        "a filter of {blocks} blocks, folded to the 1 of the bank, would have a false-positive rate of 1.00e0, more than the "
    );
    assert!(
        error.is_incompatible() && error.to_string().starts_with(&expected),
        "{error}"
    );
    assert_eq!(bank.push_all(&[&small, &large]), Err(error.clone()));
    assert_eq!(FilterBank::from_filters(&[&small, &large]).err(), Some(error));
    assert_eq!(bank.len(), 1);
    // With few keys it may be folded.
    let few = builder(20_000).build().unwrap();
    few.insert(&7u64);
    assert_eq!(bank.push(&few), Ok(1));
    assert!(bank.contains(1, &7u64));
}

#[test]
fn a_full_bank_refuses_and_cleared_columns_are_used_again() {
    let builder = ConcurrentBloom::builder().expected_keys(100);
    let filters = filled(&builder, 66);
    let mut bank = FilterBank::new(64, &builder).unwrap();
    bank.insert(5, &0u64).unwrap();
    assert_eq!(bank.push(&filters[0]), Ok(0));
    assert!(
        bank.push_all(&filters[1..63])
            .unwrap()
            .into_iter()
            .eq((1..64).filter(|&i| i != 5))
    );
    let error = bank.push(&filters[0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the bank has 0 free columns of 64, and 1 filters were pushed"
    );
    assert!(error.is_full() && bank.len() == 64);

    let before = bank.try_clone().unwrap();
    bank.clear(17).unwrap();
    bank.clear(40).unwrap();
    assert!(bank.to_filter(17).unwrap().is_empty() && bank.len() == 62);
    assert!(
        (0..64)
            .filter(|&i| bank.to_filter(i).unwrap() == before.to_filter(i).unwrap())
            .count()
            == 62
    );
    assert!(bank.push_all(&filters[..3]).unwrap_err().is_full());
    assert_eq!(bank.push_all(&filters[64..]), Ok(vec![17, 40]));
    assert!(bank.to_filter(17).unwrap() == filters[64] && bank.to_filter(40).unwrap() == filters[65]);
    for error in [
        bank.clear(64).unwrap_err(),
        bank.insert(64, "a").unwrap_err(),
        bank.to_filter(64).unwrap_err(),
    ] {
        assert_eq!(error.to_string(), "column 64 is not below the bank's 64 columns");
    }
    let no_key: [u64; 0] = [];
    assert_eq!(bank.insert_batch(63, &no_key), Ok(0));

    // The same bit of three words of each row.
    let mut wide = FilterBank::new(192, &builder).unwrap();
    for column in [2, 66, 130] {
        wide.insert(column, &1u64).unwrap();
    }
    wide.clear(66).unwrap();
    assert!(
        [2, 66, 130]
            .into_iter()
            .filter(|&column| wide.contains(column, &1u64))
            .eq([2, 130])
    );
}

#[test]
fn settings_that_no_bank_can_have_are_errors() {
    let text = |result: Result<FilterBank, lanebloom::BuildError>| result.unwrap_err().to_string();
    assert!(text(FilterBank::with_capacity(0, 10, 0.1)).starts_with("0 columns are not in 1 to "));
    assert!(text(FilterBank::with_capacity(usize::MAX, 10, 0.1)).contains("columns are not in 1 to "));
    for wrong in [0.0, -1.0, 128.0, f64::NAN, f64::INFINITY] {
        let text = text(FilterBank::with_capacity(65, 10, wrong));
        assert_eq!(
            text,
            format!("{wrong} false columns per key is not between 0 and the 128 columns, both excluded")
        );
    }
    let builder = ConcurrentBloom::builder().expected_keys(1000);
    for columns in [1 << 40, 1 << 60] {
        assert!(FilterBank::new(columns, &builder).unwrap_err().is_out_of_memory());
    }
    let none: [ConcurrentBloom; 0] = [];
    assert!(
        FilterBank::from_filters(&none)
            .unwrap_err()
            .to_string()
            .contains("0 filters")
    );
}

/// On average, a key of no filter is found in as many columns as the bank was built for.
#[test]
fn the_wrong_columns_per_key_are_those_of_the_builder() {
    for (columns, wrong) in [(64, 0.64), (256, 1.0), (128, 0.1)] {
        let bank = FilterBank::with_capacity(columns, 500, wrong).unwrap();
        for column in 0..columns {
            let keys: Vec<u64> = (0..500).map(|i| number((column as u64) << 32 | i)).collect();
            bank.insert_batch(column, &keys).unwrap();
        }
        let asked = 20_000;
        let found: usize = (0..asked).map(|i| bank.count(&number(1 << 60 | i))).sum();
        let mean = found as f64 / asked as f64;
        assert!(mean < wrong * 1.1 && mean > wrong * 0.5, "{mean} of {wrong}");
    }
}

/// Threads insert into the columns of the same words while others look up: no insert is lost, and a
/// key is found as soon as its insert has returned.
#[test]
fn threads_insert_push_and_look_up_at_once() {
    let builder = ConcurrentBloom::builder().expected_keys(300);
    let bank = FilterBank::new(128, &builder).unwrap();
    let filters = filled(&builder, 32);
    let start = Barrier::new(5);
    thread::scope(|scope| {
        for worker in 0..4u64 {
            let (bank, start, filters) = (&bank, &start, &filters);
            scope.spawn(move || {
                start.wait();
                let mut found = [0; 2];
                for i in 0..2000 {
                    let (column, key) = (64 + (i * 4 + worker) as usize % 32, number(worker << 32 | i));
                    bank.insert(column, &key).unwrap();
                    assert!(bank.which_into(&key, &mut found) && found[column / 64] >> (column % 64) & 1 == 1);
                }
                if worker < 2 {
                    for filter in &filters[16 * worker as usize..][..16] {
                        let column = bank.push(filter).unwrap();
                        assert!(bank.to_filter(column).unwrap() == *filter);
                    }
                }
            });
        }
        start.wait();
        let bytes = bank.snapshot().to_vec();
        let (view, _) = BankView::from_bytes(&bytes).unwrap();
        assert!(FilterBank::from_bytes(&bytes).unwrap().0 == view);
    });
    assert_eq!(bank.len(), 64);
    for (worker, i) in (0..4).flat_map(|worker| (0..2000).map(move |i| (worker, i))) {
        let (column, key) = (64 + (i * 4 + worker) as usize % 32, number(worker << 32 | i));
        assert!(bank.contains(column, &key));
    }
}

/// The table of the module's page.
#[test]
fn banks_take_the_bits_of_their_page() {
    let builder = |columns| ConcurrentBloom::builder().false_positive_rate(0.1 / columns as f64);
    let bits = |bank: FilterBank, keys: usize| (8 * bank.memory_bytes()) as f64 / (keys * bank.columns()) as f64;
    for (columns, keys, expected) in [
        (64, 20_000, 15.3),
        (256, 20_000, 20.1),
        (1024, 5000, 23.6),
        (8192, 500, 33.7),
    ] {
        let bits = bits(FilterBank::with_capacity(columns, keys, 0.1).unwrap(), keys);
        assert!((bits / expected - 1.0).abs() < 0.02, "{columns} columns: {bits}");
    }
    let two_lines = builder(8192).expected_keys(500).lines_per_key(2);
    let bits = bits(FilterBank::new(8192, &two_lines).unwrap(), 500);
    assert!((bits / 26.1 - 1.0).abs() < 0.03, "{bits}");
}
