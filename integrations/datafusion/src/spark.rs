//! `bloom_filter_agg`, with the arguments, the defaults and the bits of Spark's.

use crate::aggregate::{Arguments, Hashes, Sketch, checked_rate};
use crate::value::{MAX_BYTES, external, hashes_of, whole};
use datafusion::arrow::array::{ArrayRef, BinaryArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use lanebloom_formats::SparkBloom;
use lanebloom_formats::spark::{Builder, Hash, Spark, Version};
use std::sync::Arc;

// spark.sql.optimizer.runtime.bloomFilter.{expectedNumItems, numBits, maxNumItems, maxNumBits}.
const EXPECTED: usize = 1_000_000;
const BITS: u64 = 8_388_608;
const MAX_EXPECTED: usize = 4_000_000;
const MAX_BITS: u64 = 67_108_864;

/// The arguments of `bloom_filter_agg`.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Builds the filter that Spark makes for these arguments.
    builder: Builder,
    /// The memory of this filter.
    bytes: usize,
}

/// Hashes until they take as many bytes as the filter, then Spark's filter: many groups have few
/// keys.
#[derive(Debug, Default)]
pub(crate) struct SparkSet {
    hashes: Hashes<Hash>,
    filter: Option<Box<SparkBloom>>,
}

/// The first bytes of a state without a filter. A filter begins with its version, which is not 0.
const NO_FILTER: [u8; 4] = [0; 4];

impl SparkSet {
    /// The filter, with all keys so far.
    fn filter(&mut self, plan: &Plan) -> Result<&mut SparkBloom> {
        let filter = match self.filter.take() {
            Some(filter) => filter,
            None => plan.builder.clone().build().map_err(external)?.into(),
        };
        let filter = self.filter.insert(filter);
        filter.exclusive().insert_batch(&self.hashes.take());
        Ok(filter)
    }
}

/// `bloom_filter_agg(value [, expected [, bits or rate [, version]]])`.
impl Sketch for SparkSet {
    type Plan = Plan;
    /// All versions and sizes have the same hash.
    type Hasher = Spark;

    const NAME: &str = "bloom_filter_agg";
    const MAX_ARGUMENTS: usize = 4;
    const TYPE: DataType = DataType::Binary;

    fn plan(arguments: Arguments) -> Result<Plan> {
        let Arguments {
            expected,
            third,
            fourth,
            ..
        } = arguments;
        let version = match fourth {
            None | Some(ScalarValue::Int64(Some(1))) => Version::V1,
            Some(ScalarValue::Int64(Some(2))) => Version::V2,
            Some(other) => return exec_err!("bloom_filter_agg writes versions 1 and 2 of Spark's format, not {other}"),
        };
        let builder = SparkBloom::builder().version(version);
        let capped = expected.map_or(EXPECTED, |keys| keys.min(MAX_EXPECTED));
        let builder = match third {
            Some(ScalarValue::Float64(Some(rate))) => builder
                .expected_keys(expected.unwrap_or(EXPECTED))
                .false_positive_rate(checked_rate(rate)?),
            Some(ScalarValue::Int64(Some(bits))) if bits > 0 => {
                builder.expected_keys(capped).bits((bits as u64).min(MAX_BITS))
            }
            // One byte for each key, as Spark's form with two arguments has it.
            None if expected.is_some() => builder.expected_keys(capped).bits(capped as u64 * 8),
            None => builder.expected_keys(capped).bits(BITS),
            Some(other) => return exec_err!("bloom_filter_agg takes a number of bits or a rate, not {other}"),
        };
        let bytes = builder.clone().build().map_err(external)?.memory_bytes();
        if bytes > MAX_BYTES {
            return exec_err!("a filter of {bytes} bytes is above the limit of {MAX_BYTES}: ask for a higher rate");
        }
        Ok(Plan { builder, bytes })
    }

    fn insert(&mut self, hashes: &[Hash], plan: &Plan) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            filter.exclusive().insert_batch(hashes);
        } else if self.hashes.insert(hashes) && self.hashes.memory_bytes() > plan.bytes {
            self.filter(plan)?;
        }
        Ok(())
    }

    fn merge(&mut self, state: &[u8], plan: &Plan) -> Result<()> {
        let Some(hashes) = state.strip_prefix(&NO_FILTER) else {
            let more = whole(SparkBloom::from_bytes(state).map_err(external)?)?;
            return self.filter(plan)?.union_from(&more).map(drop).map_err(external);
        };
        let hashes = hashes_of(hashes, |[a, b, c, d, e, f, g, h]| {
            Hash(i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]))
        })?;
        self.insert(&hashes, plan)
    }

    fn state(&mut self, _: &Plan) -> Result<Vec<u8>> {
        if let Some(filter) = &self.filter {
            return Ok(filter.to_bytes());
        }
        let hashes = self.hashes.compact().iter();
        let hashes = hashes.flat_map(|Hash(one, other)| [one.to_le_bytes(), other.to_le_bytes()]);
        Ok([NO_FILTER].into_iter().chain(hashes).flatten().collect())
    }

    /// NULL without a key, as Spark's.
    fn finish(&mut self, plan: &Plan) -> Result<Option<Vec<u8>>> {
        if self.filter.is_none() && self.hashes.len() == 0 {
            return Ok(None);
        }
        Ok(Some(self.filter(plan)?.to_bytes()))
    }

    fn scalar(value: Option<Vec<u8>>) -> ScalarValue {
        ScalarValue::Binary(value)
    }

    fn column(values: Vec<Option<Vec<u8>>>) -> Result<ArrayRef> {
        let bytes: usize = values.iter().flatten().map(Vec::len).sum();
        if bytes > i32::MAX as usize {
            return exec_err!(
                "the filters of {} groups take {bytes} bytes, above the limit of {}: ask for fewer bits",
                values.len(),
                i32::MAX
            );
        }
        Ok(Arc::new(values.iter().map(Option::as_deref).collect::<BinaryArray>()))
    }

    fn memory_bytes(&self) -> usize {
        self.hashes.memory_bytes() + self.filter.as_ref().map_or(0, |filter| filter.memory_bytes())
    }
}
