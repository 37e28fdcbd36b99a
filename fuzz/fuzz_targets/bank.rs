//! Snapshots of a bank of any bytes: every way to read them gives the same error, or the same bank,
//! which writes the same bytes again and does what as many filters do.
//!
//! Half of the inputs get correct checksums.

#![no_main]

mod summed;

use lanebloom::bank::{BankView, FilterBank, columns};
use lanebloom::{ConcurrentBloom, codec};
use libfuzzer_sys::fuzz_target;
use summed::{LIMIT, agree, summed};

fuzz_target!(|input: &[u8]| {
    let bytes = summed(input);
    let by_slice = FilterBank::from_bytes(&bytes);
    let by_reader = FilterBank::read_from(&bytes[..], LIMIT);
    let by_view = BankView::from_bytes(&bytes);
    match (by_slice, by_reader) {
        (Ok((bank, rest)), Ok(same)) => {
            let (view, behind) = by_view.unwrap();
            codec::verify(view.bytes()).unwrap();
            assert!(bank == same && view == bank && behind == rest);
            // (The rate in the header is that of the model again.)
            let written = bank.snapshot().to_vec();
            let body = 128..written.len() - 64;
            assert!(bytes[body.clone()] == written[body] && written.len() == bytes.len() - rest.len());
            check(bank, &input[..input.len().min(64)]);
        }
        (Err(one), Err(other)) => {
            agree(&one, &other);
            if let Ok((view, _)) = by_view {
                for &key in &input[..input.len().min(8)] {
                    assert_eq!(view.which(&key).count(), view.count(&key));
                }
            }
        }
        (Ok(_), Err(error)) => assert!(error.to_string().contains("more than the limit of"), "{error}"),
        (Err(error), Ok(_)) => panic!("{error}"),
    }
});

/// The bank beside its filters, with operations that the input gives.
fn check(mut bank: FilterBank, input: &[u8]) {
    let mut filters: Vec<ConcurrentBloom> = (0..bank.columns()).map(|i| bank.to_filter(i).unwrap()).collect();
    let mut found = vec![0; bank.columns() / 64];
    for bytes in input.chunks_exact(3) {
        let (key, column) = (bytes[1], usize::from(bytes[2]) % (bank.columns() + 1));
        match (bytes[0] % 4, filters.get(column)) {
            (0 | 1, Some(filter)) => assert_eq!(bank.insert(column, &key), Ok(filter.insert(&key))),
            (2, Some(_)) => {
                bank.clear(column).unwrap();
                filters[column] = bank.to_filter(column).unwrap();
                assert!(filters[column].is_empty());
            }
            (3, Some(filter)) => {
                let free = (0..filters.len()).find(|&i| bank.columns_in_use().all(|used| used != i));
                assert_eq!(bank.push(filter).ok(), free);
                if let Some(free) = free {
                    filters[free] = filter.clone();
                }
            }
            _ => assert!(bank.insert(column, &key).is_err() && bank.clear(column).is_err()),
        }
        assert_eq!(bank.which_into(&key, &mut found), bank.any(&key));
        assert!(columns(&found).eq((0..filters.len()).filter(|&i| filters[i].contains(&key))));
    }
    assert!(
        filters
            .iter()
            .enumerate()
            .all(|(i, filter)| bank.to_filter(i).unwrap() == *filter)
    );
}
