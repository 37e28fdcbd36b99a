//! `bloom_agg`: a set of keys that grows, hashes at first and then a `ScalableBloom`.

use crate::aggregate::{Arguments, Hashes, Sketch, checked_rate, views};
use crate::keys::Class;
use crate::value::{Body, Filter, MAX_BYTES, external, header, written};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err};
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, ConcurrentBloom, Hashed, Murmur3, ScalableBloom};
use std::fmt::Display;

/// The most hashes of a value without a filter: as many as the smallest snapshot takes bytes for.
const FEW: usize = 32;
/// The most hashes that an aggregate keeps before it makes a filter; 2 MiB. Up to here the filter
/// has the right size without a guess.
pub(crate) const MANY: usize = 1 << 18;
/// The most bytes of the headers in a snapshot.
const HEADERS: usize = 1 << 16;

/// The false-positive rate of a filter for which none was asked.
pub(crate) const DEFAULT_RATE: f64 = 0.01;

/// The arguments of `bloom_agg`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    class: Class,
    /// The number of distinct keys that are expected.
    expected: Option<usize>,
    rate: f64,
}

/// A set that grows: hashes at first, then a filter.
#[derive(Debug, Default)]
pub(crate) struct Set {
    hashes: Hashes<u64>,
    filter: Option<Box<ScalableBloom<AnyHasher>>>,
}

impl Set {
    /// Goes on with `filter`, which takes the hashes so far.
    fn go_on_with(&mut self, filter: ScalableBloom<AnyHasher>) -> Result<()> {
        let filter = self.filter.insert(filter.into());
        let hashes = self.hashes.take();
        let inserted = filter.exclusive().insert_batch(Hashed::slice(&hashes));
        inserted.map(drop).map_err(full)
    }
}

/// The error of a filter that takes no more keys.
fn full(error: impl Display) -> DataFusionError {
    DataFusionError::Execution(format!(
        "bloom_agg takes no more keys: {error}. Pass the number of distinct keys as its second argument, or a higher \
         rate as its third"
    ))
}

/// `bloom_agg(value [, expected [, rate]])`.
impl Sketch for Set {
    type Plan = Plan;
    type Hasher = Murmur3;

    const NAME: &str = "bloom_agg";
    const MAX_ARGUMENTS: usize = 3;
    const TYPE: DataType = DataType::BinaryView;

    fn plan(arguments: Arguments) -> Result<Plan> {
        let Arguments {
            class, expected, third, ..
        } = arguments;
        let rate = match third {
            None => DEFAULT_RATE,
            Some(ScalarValue::Float64(Some(rate))) => checked_rate(rate)?,
            Some(other) => return exec_err!("a false-positive rate of {other} is not between 0 and 1, both excluded"),
        };
        Ok(Plan { class, expected, rate })
    }

    fn insert(&mut self, hashes: &[u64], plan: &Plan) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            let inserted = filter.exclusive().insert_batch(Hashed::slice(hashes));
            return inserted.map(drop).map_err(full);
        }
        if !self.hashes.insert(hashes) || self.hashes.len() <= MANY {
            return Ok(());
        }
        let filter = ScalableBloom::builder()
            .hasher(AnyHasher::from(Murmur3::default()))
            .expected_keys(4 * MANY)
            .hint(plan.expected.filter(|keys| *keys > MANY).unwrap_or(0))
            .false_positive_rate(plan.rate)
            .max_bytes(MAX_BYTES - HEADERS)
            .build()
            .map_err(external)?;
        self.go_on_with(filter)
    }

    fn merge(&mut self, state: &[u8], plan: &Plan) -> Result<()> {
        let Filter { class, body } = Filter::parse(state)?;
        if class != plan.class {
            return exec_err!("a state of bloom_agg holds {class}, not {}", plan.class);
        }
        match body {
            Body::Hashes(hashes) => self.insert(&hashes, plan),
            Body::Filter(filter) => match (*filter, &self.filter) {
                (AnyFilter::Scalable(more), Some(filter)) => filter.union_from(&more).map(drop).map_err(full),
                (AnyFilter::Scalable(more), None) => self.go_on_with(more),
                (other, _) => exec_err!("a state of bloom_agg is a {}, which cannot grow", other.kind()),
            },
        }
    }

    fn state(&mut self, plan: &Plan) -> Result<Vec<u8>> {
        let Some(filter) = &self.filter else {
            let hashes = self.hashes.compact();
            let mut out = header(plan.class, 0, hashes.len() * 8);
            out.extend(hashes.iter().flat_map(|hash| hash.to_le_bytes()));
            return Ok(out);
        };
        written(plan.class, filter.memory_bytes(), |out| filter.snapshot().write_to(out))
    }

    /// The filter has the right size as far as the keys are still known.
    fn finish(&mut self, plan: &Plan) -> Result<Option<Vec<u8>>> {
        let hashes = self.hashes.compact();
        if self.filter.is_some() || hashes.len() <= FEW {
            return self.state(plan).map(Some);
        }
        let mut filter = ConcurrentBloom::with_capacity(hashes.len(), plan.rate).map_err(external)?;
        filter.exclusive().insert_batch(Hashed::slice(hashes));
        written(plan.class, filter.memory_bytes(), |out| filter.snapshot().write_to(out)).map(Some)
    }

    fn scalar(value: Option<Vec<u8>>) -> ScalarValue {
        ScalarValue::BinaryView(value)
    }

    fn column(values: Vec<Option<Vec<u8>>>) -> Result<ArrayRef> {
        views(values)
    }

    fn memory_bytes(&self) -> usize {
        self.hashes.memory_bytes() + self.filter.as_ref().map_or(0, |filter| filter.memory_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::HashKeys;
    use crate::value::HEADER;

    fn plan(expected: Option<usize>) -> Plan {
        let class = Class { kind: 2, detail: 0 };
        Plan {
            class,
            expected,
            rate: 0.01,
        }
    }

    fn hashes(keys: std::ops::Range<i64>) -> Vec<u64> {
        let keys: Vec<i64> = keys.collect();
        let mut out = vec![0; keys.len()];
        Murmur3::default().hash_longs(&keys, &mut out);
        out
    }

    fn count(filter: &Filter, keys: std::ops::Range<i64>) -> u32 {
        let hashes = hashes(keys);
        let mut found = vec![0; hashes.len().div_ceil(64)];
        filter.look_up(&hashes, &mut found);
        found.iter().map(|word| word.count_ones()).sum()
    }

    /// A value with these snapshots as its body.
    fn value(filters: Vec<u8>) -> Vec<u8> {
        [b"LBSQ\x01\x01\x02\x00".to_vec(), filters].concat()
    }

    fn set(keys: std::ops::Range<i64>, plan: &Plan) -> Set {
        let mut set = Set::default();
        for chunk in hashes(keys).chunks(8192) {
            set.insert(chunk, plan).unwrap();
        }
        set
    }

    fn layers(filter: &Filter) -> usize {
        match &filter.body {
            Body::Filter(filter) => match &**filter {
                AnyFilter::Scalable(filter) => filter.layers().len(),
                _ => 1,
            },
            Body::Hashes(_) => 0,
        }
    }

    /// The union of sets by their states, as an aggregate's last phase makes it.
    fn merged(sets: &[std::ops::Range<i64>], plan: &Plan) -> Filter {
        let mut all = Set::default();
        for keys in sets {
            let state = set(keys.clone(), plan).state(plan).unwrap();
            all.merge(&state, plan).unwrap();
        }
        Filter::parse_to_search(&all.finish(plan).unwrap().unwrap()).unwrap()
    }

    #[test]
    fn few_keys_are_exact_and_more_get_a_filter_of_their_size() {
        let plan = plan(None);
        for (keys, bytes) in [(0, 8), (1, 16), (FEW, 8 + 8 * FEW), (5000, 7000), (200_000, 272_000)] {
            let value = set(0..keys as i64, &plan).finish(&plan).unwrap().unwrap();
            assert!(
                value.len() <= bytes && value.len() * 10 >= keys * 8,
                "{keys}: {}",
                value.len()
            );
            let filter = Filter::parse_to_search(&value).unwrap();
            assert_eq!(count(&filter, 0..keys as i64), keys as u32);
            assert!(count(&filter, 1_000_000..1_010_000) < 150, "{keys}");
        }
    }

    #[test]
    fn duplicates_take_no_memory() {
        let plan = plan(None);
        let mut set = Set::default();
        for _ in 0..200 {
            set.insert(&hashes(0..2000), &plan).unwrap();
        }
        assert!(set.memory_bytes() < 200_000, "{}", set.memory_bytes());
    }

    #[test]
    fn parts_of_many_keys_keep_their_rate() {
        let each = MANY as i64 + 40_000;
        let parts: Vec<_> = (0..6).map(|part| part * each..(part + 1) * each).collect();
        let filter = merged(&parts, &plan(None));
        assert_eq!(count(&filter, 0..6 * each), 6 * each as u32);
        // Two layers at most: the first is for 1,048,576 keys.
        let wrong = count(&filter, 10_000_000..10_100_000);
        assert!(wrong < 2200, "{wrong}");
        let (keys, rate) = filter.keys_and_rate();
        let estimated = keys as f64 / (6 * each) as f64;
        assert!((0.95..1.05).contains(&estimated), "{estimated}");
        assert!((rate - f64::from(wrong) / 1e5).abs() < 0.003, "{rate}");

        // The same keys everywhere: one filter.
        let filter = merged(&[0..each, 0..each, 0..each], &plan(None));
        assert_eq!(layers(&filter), 1);
        assert_eq!(count(&filter, 0..each), each as u32);
    }

    #[test]
    fn a_filter_for_the_expected_keys_has_one_layer_of_their_size() {
        let keys = 4 * (MANY as i64 + 40_000);
        for parts in [1, 4] {
            let each = keys / parts;
            let sets: Vec<_> = (0..parts).map(|part| part * each..(part + 1) * each).collect();
            let filter = merged(&sets, &plan(Some(keys as usize)));
            assert_eq!(layers(&filter), 1);
            let bits = (filter.memory_bytes() * 8) as f64 / keys as f64;
            assert!((9.0..12.0).contains(&bits), "{bits}");
            let wrong = count(&filter, 10_000_000..10_100_000);
            assert!(wrong < 1050, "{wrong}");
        }
    }

    #[test]
    fn small_and_large_states_merge_either_way() {
        let large = MANY as i64 + 1000;
        for sets in [[0..large, large..large + 50], [large..large + 50, 0..large]] {
            let filter = merged(&sets, &plan(Some(1)));
            assert_eq!(count(&filter, 0..large + 50), large as u32 + 50);
        }
    }

    #[test]
    fn a_value_does_not_change_the_set() {
        let plan = plan(None);
        let mut one = Set::default();
        let mut from = 0;
        // Few keys, filters of their size, and one that grows.
        for to in [5, 100, 5000, 3 * MANY as i64] {
            one.insert(&hashes(from..to), &plan).unwrap();
            let value = one.finish(&plan).unwrap().unwrap();
            assert!(value == one.finish(&plan).unwrap().unwrap(), "{to}");
            let filter = Filter::parse_to_search(&value).unwrap();
            assert_eq!(count(&filter, 0..to), to as u32);
            let (_, rate) = filter.keys_and_rate();
            assert!(rate < 0.011, "{to}: {rate}");
            from = to;
        }
    }

    #[test]
    fn hashers_with_another_seed_are_refused() {
        let sized = |seed| {
            let filter = ConcurrentBloom::builder().expected_keys(1000).seed(seed).build();
            value(filter.unwrap().snapshot().to_vec())
        };
        let grown = |seed| {
            let filter = ScalableBloom::builder().expected_keys(1000).seed(seed).build();
            value(filter.unwrap().snapshot().to_vec())
        };
        for (own, other) in [(sized(0), sized(7)), (grown(0), grown(7))] {
            assert!(Filter::parse(&own).is_ok());
            let error = Filter::parse(&other).unwrap_err().to_string();
            assert!(
                error.contains("Murmur3 with seed 7 there, Murmur3 with seed 0 here"),
                "{error}"
            );
        }
    }

    #[test]
    fn other_classes_do_not_merge() {
        let plan = plan(None);
        let state = set(0..3, &plan).state(&plan).unwrap();
        let class = Class { kind: 9, detail: 0 };
        let error = Set::default().merge(&state, &Plan { class, ..plan }).unwrap_err();
        assert!(error.to_string().contains("holds integers, not bytes"), "{error}");
    }

    #[test]
    fn damaged_values_are_read_or_refused() {
        let plan = plan(None);
        for keys in [3, 100] {
            let value = set(0..keys, &plan).finish(&plan).unwrap().unwrap();
            for len in 0..value.len() {
                // A whole number of hashes is a value.
                let is_value = keys == 3 && len >= HEADER && len % 8 == 0;
                assert_eq!(Filter::parse(&value[..len]).is_ok(), is_value, "{len}");
            }
            for at in 0..value.len() {
                for bit in 0..8 {
                    let mut value = value.clone();
                    value[at] ^= 1 << bit;
                    if let Ok(filter) = Filter::parse_to_search(&value) {
                        count(&filter, 0..100);
                    } else {
                        assert!(at < HEADER || keys == 100, "{at}");
                    }
                }
            }
        }
        let filter = ConcurrentBloom::with_capacity(1, 0.5).unwrap().snapshot().to_vec();
        assert!(Filter::parse(&value(filter.clone())).is_ok());
        let counting = lanebloom::CountingBloom::with_capacity(1, 0.5)
            .unwrap()
            .snapshot()
            .to_vec();
        for (filters, expected) in [(filter.repeat(2), "unknown bytes"), (counting, "is a CountingBloom")] {
            let error = Filter::parse(&value(filters)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
