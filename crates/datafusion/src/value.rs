//! The value of `bloom_agg`: bytes that `bloom_contains` reads.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | `LBSQ` |
//! | 4 | 1 | version of this format: 1 |
//! | 5 | 1 | form: 0 hashes, 1 filters |
//! | 6 | 2 | class of the keys: a kind, and a decimal's scale or the unit of a time |
//! | 8 | | the body |
//!
//! The body of form 0 is hashes, little-endian and of 8 bytes each, as the first half of Murmur3
//! x64_128 with seed 0 makes them. A small set is exact that way, and no larger than a filter. The
//! body of form 1 is 1 to 16 snapshots of a `ConcurrentBloom` or a `ScalableBloom` with this hash,
//! one after the other (docs/FORMAT.md). A key may be in the set if it may be in one of them.
//!
//! Reading checks the lengths before it allocates. A value takes at most [`MAX_BYTES`].

use crate::keys::Class;
use datafusion::common::{DataFusionError, Result, exec_err};
use lanebloom::{ConcurrentBloom, ScalableBloom};

/// Bytes of the largest value: half of what one Arrow array holds.
pub const MAX_BYTES: usize = 1 << 30;

/// Hashes that a value keeps as they are: as many as the smallest snapshot takes bytes for.
const FEW: usize = 32;
/// Hashes that an aggregate keeps before it makes a filter; 2 MiB. Up to here the filter has the
/// right size without a guess.
pub(crate) const MANY: usize = 1 << 18;
/// Filters in one value. A lookup of an absent key searches all.
const MAX_PARTS: usize = 16;

const MAGIC: [u8; 4] = *b"LBSQ";
const HEADER: usize = 8;
/// Where a snapshot says its kind, and the kind of a `ConcurrentBloom` (docs/FORMAT.md).
const KIND_AT: usize = 10;
const CONCURRENT: u8 = 1;

pub(crate) fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Filters or hashes that were read.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) class: Class,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    /// Ascending when a `Filter` looks keys up.
    Hashes(Vec<u64>),
    Parts(Vec<Part>),
}

/// One filter of a value.
#[derive(Debug)]
pub(crate) enum Part {
    Sized(Box<ConcurrentBloom>),
    Grown(ScalableBloom),
}

impl Part {
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Sized(filter) => filter.memory_bytes(),
            Self::Grown(filter) => filter.memory_bytes(),
        }
    }

    pub(crate) fn keys(&self) -> usize {
        match self {
            Self::Sized(filter) => filter.estimated_len(),
            Self::Grown(filter) => filter.layers().map(|layer| layer.estimated_len()).sum(),
        }
    }

    pub(crate) fn rate(&self) -> f64 {
        match self {
            Self::Sized(filter) => filter.current_false_positive_rate(),
            Self::Grown(filter) => filter.current_false_positive_rate(),
        }
    }
}

impl Filter {
    /// Reads a value.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        if bytes.len() < HEADER || bytes[..4] != MAGIC {
            return exec_err!("these {} bytes are no value of bloom_agg", bytes.len());
        }
        check_len(bytes)?;
        if bytes[4] != 1 {
            return exec_err!("version {} of a filter's format is not 1", bytes[4]);
        }
        let Some(class) = Class::from_bytes([bytes[6], bytes[7]]) else {
            return exec_err!("class {}, {} of a filter's keys is unknown", bytes[6], bytes[7]);
        };
        let mut rest = &bytes[HEADER..];
        let body = match bytes[5] {
            0 => {
                let (hashes, more) = rest.as_chunks::<8>();
                if !more.is_empty() {
                    return exec_err!("a filter's hashes take {} bytes, no multiple of 8", rest.len());
                }
                Body::Hashes(hashes.iter().map(|hash| u64::from_le_bytes(*hash)).collect())
            }
            1 => {
                let mut parts = vec![];
                while !rest.is_empty() {
                    if parts.len() == MAX_PARTS {
                        return exec_err!("a filter has more than {MAX_PARTS} parts");
                    }
                    if rest.get(KIND_AT) == Some(&CONCURRENT) {
                        let (filter, after) = ConcurrentBloom::from_bytes(rest).map_err(external)?;
                        check_seed(filter.hasher().seed())?;
                        parts.push(Part::Sized(filter.into()));
                        rest = after;
                    } else {
                        let (filter, after) = ScalableBloom::from_bytes(rest).map_err(external)?;
                        check_seed(filter.hasher().seed())?;
                        parts.push(Part::Grown(filter));
                        rest = after;
                    }
                }
                if parts.is_empty() {
                    return exec_err!("a filter has no part");
                }
                Body::Parts(parts)
            }
            form => return exec_err!("form {form} of a filter is neither 0 nor 1"),
        };
        Ok(Self { class, body })
    }

    /// Reads a value to look keys up in it.
    pub(crate) fn parse_to_search(bytes: &[u8]) -> Result<Self> {
        let mut filter = Self::parse(bytes)?;
        if let Body::Hashes(hashes) = &mut filter.body {
            hashes.sort_unstable();
        }
        Ok(filter)
    }

    /// Writes whether each hash may be in the set, to a bitmap.
    pub(crate) fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        match &self.body {
            Body::Hashes(few) => {
                out.fill(0);
                for (i, hash) in hashes.iter().enumerate() {
                    out[i / 64] |= u64::from(few.binary_search(hash).is_ok()) << (i % 64);
                }
            }
            Body::Parts(parts) => {
                out.fill(0);
                let mut answers = vec![0; out.len()];
                for part in parts {
                    match part {
                        Part::Sized(filter) => filter.contains_hashes_bitmap(hashes, &mut answers),
                        Part::Grown(filter) => filter.contains_hashes_bitmap(hashes, &mut answers),
                    }
                    out.iter_mut().zip(&answers).for_each(|(out, more)| *out |= *more);
                }
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.body {
            Body::Hashes(hashes) => hashes.len() * 8,
            Body::Parts(parts) => parts.iter().map(Part::memory_bytes).sum(),
        }
    }

    pub(crate) fn keys(&self) -> usize {
        match &self.body {
            Body::Hashes(hashes) => hashes.len(),
            Body::Parts(parts) => parts.iter().map(Part::keys).sum(),
        }
    }

    /// The rate of false positives at the present keys.
    pub(crate) fn rate(&self) -> f64 {
        match &self.body {
            Body::Hashes(_) => 0.0,
            Body::Parts(parts) => 1.0 - parts.iter().map(|part| 1.0 - part.rate()).product::<f64>(),
        }
    }
}

/// Fails for a filter whose hashes are not those of this crate: it would miss its own keys.
fn check_seed(seed: u32) -> Result<()> {
    if seed == 0 {
        return Ok(());
    }
    exec_err!("the seed {seed} of a filter's hasher is not 0: build the filter with bloom_agg, or without a seed")
}

/// What `bloom_agg` was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) class: Class,
    /// Distinct keys that were announced.
    pub(crate) expected: Option<usize>,
    pub(crate) rate: f64,
}

/// Hashes of a small set.
#[derive(Debug, Default)]
pub(crate) struct Hashes<H> {
    list: Vec<H>,
    /// The number of hashes at which duplicates go.
    compact_at: usize,
}

impl<H: Copy + Ord> Hashes<H> {
    /// Adds hashes; returns whether the set was made smaller meanwhile, so that its length tells
    /// the number of keys.
    pub(crate) fn insert(&mut self, hashes: &[H]) -> bool {
        self.list.extend_from_slice(hashes);
        let is_due = self.list.len() >= self.compact_at.max(4 * FEW);
        if is_due {
            self.compact();
        }
        is_due
    }

    /// Sorts the hashes, and removes duplicates.
    pub(crate) fn compact(&mut self) -> &[H] {
        self.list.sort_unstable();
        self.list.dedup();
        self.compact_at = 2 * self.list.len();
        &self.list
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn take(&mut self) -> Vec<H> {
        self.compact_at = 0;
        std::mem::take(&mut self.list)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<H>()
    }
}

/// A set that grows: hashes at first, then filters.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    hashes: Hashes<u64>,
    parts: Vec<ScalableBloom>,
}

impl Growing {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.hashes.memory_bytes() + self.parts.iter().map(ScalableBloom::memory_bytes).sum::<usize>()
    }

    pub(crate) fn insert(&mut self, hashes: &[u64], plan: &Plan) -> Result<()> {
        for chunk in hashes.chunks(MANY) {
            if !self.parts.is_empty() {
                self.insert_into_parts(chunk)?;
                continue;
            }
            if self.hashes.insert(chunk) && self.hashes.len() > MANY {
                self.promote(plan)?;
            }
        }
        Ok(())
    }

    /// Makes a filter of the hashes.
    fn promote(&mut self, plan: &Plan) -> Result<()> {
        let filter = ScalableBloom::builder()
            .expected_keys(plan.expected.unwrap_or(0).max(4 * MANY))
            .false_positive_rate(plan.rate)
            .max_bytes(MAX_BYTES / 2)
            .build()
            .map_err(external)?;
        self.parts.push(filter);
        let hashes = self.hashes.take();
        self.insert_into_parts(&hashes)
    }

    fn insert_into_parts(&mut self, hashes: &[u64]) -> Result<()> {
        let filter = self.parts.first();
        filter.map_or(Ok(()), |filter| {
            filter.insert_hashes(hashes).map(drop).map_err(external)
        })
    }

    /// Adds the set of another aggregate's state.
    pub(crate) fn merge(&mut self, state: &[u8], plan: &Plan) -> Result<()> {
        let Filter { class, body } = Filter::parse(state)?;
        if class != plan.class {
            return exec_err!("a state of bloom_agg holds {class}, not {}", plan.class);
        }
        match body {
            Body::Hashes(hashes) => self.insert(&hashes, plan),
            Body::Parts(parts) => {
                for part in parts {
                    match part {
                        Part::Grown(filter) => self.add_part(filter)?,
                        Part::Sized(_) => return exec_err!("a state of bloom_agg holds a filter that cannot grow"),
                    }
                }
                let hashes = self.hashes.take();
                self.insert_into_parts(&hashes)
            }
        }
    }

    /// Unites a filter with one that stays within its rate, or keeps it beside the others.
    fn add_part(&mut self, part: ScalableBloom) -> Result<()> {
        let is_last_resort = self.parts.len() >= MAX_PARTS;
        for own in &mut self.parts {
            if !own.is_compatible(&part) {
                continue;
            }
            if is_last_resort {
                own.union_from(&part).map_err(external)?;
                return Ok(());
            }
            if let Some(union) = united(own, &part)? {
                *own = union;
                return Ok(());
            }
        }
        if is_last_resort {
            return exec_err!("bloom_agg has more than {MAX_PARTS} filters that cannot be united: expect more keys");
        }
        self.parts.push(part);
        Ok(())
    }

    /// The state, for an aggregate that merges it.
    pub(crate) fn state(&mut self, plan: &Plan) -> Result<Vec<u8>> {
        let form = u8::from(!self.parts.is_empty());
        self.hashes.compact();
        let mut out = header(plan.class, form, self.memory_bytes());
        out.extend(self.hashes.list.iter().flat_map(|hash| hash.to_le_bytes()));
        for part in &self.parts {
            part.write_to(&mut out).map_err(external)?;
        }
        check_len(&out)?;
        Ok(out)
    }

    /// The value, whose filter has the right size as far as the keys are still known. The set stays
    /// as it is: a window asks for the value after each of its rows.
    pub(crate) fn finish(&mut self, plan: &Plan) -> Result<Vec<u8>> {
        let hashes = self.hashes.compact();
        if !self.parts.is_empty() || hashes.len() <= FEW {
            return self.state(plan);
        }
        let filter = ConcurrentBloom::with_capacity(hashes.len(), plan.rate).map_err(external)?;
        filter.insert_hashes(hashes);
        let mut out = header(plan.class, 1, filter.memory_bytes());
        filter.write_to(&mut out).map_err(external)?;
        check_len(&out)?;
        Ok(out)
    }
}

/// The header of a value, with room for a body of that many bytes.
fn header(class: Class, form: u8, body: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + body);
    out.extend(MAGIC);
    out.extend([1, form, class.kind, class.detail as u8]);
    out
}

fn check_len(value: &[u8]) -> Result<()> {
    if value.len() > MAX_BYTES {
        return exec_err!("a filter of {} bytes is above the limit of {MAX_BYTES}", value.len());
    }
    Ok(())
}

/// The union of both, if each of its layers has at most a tenth more keys than it is for.
fn united(own: &ScalableBloom, more: &ScalableBloom) -> Result<Option<ScalableBloom>> {
    let union = own.try_clone().map_err(external)?;
    union.union_from(more).map_err(external)?;
    let is_within = union
        .layers()
        .all(|layer| layer.estimated_len() <= layer.expected_keys() + layer.expected_keys() / 10);
    Ok(is_within.then_some(union))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{HashKeys, Murmur};

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
        Murmur.hash_longs(&keys, &mut out);
        out
    }

    fn count(filter: &Filter, keys: std::ops::Range<i64>) -> u32 {
        let hashes = hashes(keys);
        let mut found = vec![0; hashes.len().div_ceil(64)];
        filter.contains_hashes_bitmap(&hashes, &mut found);
        found.iter().map(|word| word.count_ones()).sum()
    }

    fn set(keys: std::ops::Range<i64>, plan: &Plan) -> Growing {
        let mut set = Growing::default();
        for chunk in hashes(keys).chunks(8192) {
            set.insert(chunk, plan).unwrap();
        }
        set
    }

    /// The union of sets by their states, as an aggregate's last phase makes it.
    fn merged(sets: &[std::ops::Range<i64>], plan: &Plan) -> Filter {
        let mut all = Growing::default();
        for keys in sets {
            let state = set(keys.clone(), plan).state(plan).unwrap();
            all.merge(&state, plan).unwrap();
        }
        Filter::parse_to_search(&all.finish(plan).unwrap()).unwrap()
    }

    #[test]
    fn few_keys_are_exact_and_more_get_a_filter_of_their_size() {
        let plan = plan(None);
        for (keys, bytes) in [(0, 8), (1, 16), (FEW, 8 + 8 * FEW), (5000, 7000), (200_000, 270_000)] {
            let value = set(0..keys as i64, &plan).finish(&plan).unwrap();
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
        let mut set = Growing::default();
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
        // Two filters at most: the first is for 1,048,576 keys.
        let wrong = count(&filter, 10_000_000..10_100_000);
        assert!(wrong < 2200, "{wrong}");
        let estimated = filter.keys() as f64 / (6 * each) as f64;
        assert!((0.95..1.05).contains(&estimated), "{estimated}");
        assert!(
            (filter.rate() - f64::from(wrong) / 1e5).abs() < 0.003,
            "{}",
            filter.rate()
        );

        // The same keys everywhere: one filter.
        let filter = merged(&[0..each, 0..each, 0..each], &plan(None));
        assert!(matches!(&filter.body, Body::Parts(parts) if parts.len() == 1));
        assert_eq!(count(&filter, 0..each), each as u32);
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
        let mut one = Growing::default();
        let mut from = 0;
        // Few keys, filters of their size, and one that grows.
        for to in [5, 100, 5000, 3 * MANY as i64] {
            one.insert(&hashes(from..to), &plan).unwrap();
            let value = one.finish(&plan).unwrap();
            assert!(value == one.finish(&plan).unwrap(), "{to}");
            let filter = Filter::parse_to_search(&value).unwrap();
            assert_eq!(count(&filter, 0..to), to as u32);
            assert!(filter.rate() < 0.011, "{to}: {}", filter.rate());
            from = to;
        }
    }

    #[test]
    fn hashers_with_another_seed_are_refused() {
        let value = |filter: Vec<u8>| [b"LBSQ\x01\x01\x02\x00".to_vec(), filter].concat();
        let sized = |seed| {
            let filter = ConcurrentBloom::builder().expected_keys(1000).seed(seed).build();
            value(filter.unwrap().to_bytes())
        };
        let grown = |seed| {
            let filter = ScalableBloom::builder().expected_keys(1000).seed(seed).build();
            value(filter.unwrap().to_bytes())
        };
        for (own, other) in [(sized(0), sized(7)), (grown(0), grown(7))] {
            assert!(Filter::parse(&own).is_ok());
            let error = Filter::parse(&other).unwrap_err().to_string();
            assert!(error.contains("the seed 7 of a filter's hasher is not 0"), "{error}");
        }
    }

    #[test]
    fn other_classes_do_not_merge() {
        let plan = plan(None);
        let state = set(0..3, &plan).state(&plan).unwrap();
        let class = Class { kind: 9, detail: 0 };
        let error = Growing::default().merge(&state, &Plan { class, ..plan }).unwrap_err();
        assert!(error.to_string().contains("holds integers, not bytes"), "{error}");
    }

    #[test]
    fn damaged_values_are_read_or_refused() {
        let plan = plan(None);
        for keys in [3, 100] {
            let value = set(0..keys, &plan).finish(&plan).unwrap();
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
        let many: Vec<u8> = [
            b"LBSQ\x01\x01\x02\x00".to_vec(),
            ConcurrentBloom::with_capacity(1, 0.5).unwrap().to_bytes().repeat(17),
        ]
        .concat();
        assert!(
            Filter::parse(&many)
                .unwrap_err()
                .to_string()
                .contains("more than 16 parts")
        );
        assert!(Filter::parse(&many[..many.len() - (many.len() - HEADER) / 17]).is_ok());
    }
}
