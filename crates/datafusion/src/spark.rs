//! `bloom_filter_agg`, with the arguments, the defaults and the bits of Spark's.

use crate::aggregate::{Arguments, Groups, Sketch, SketchAccumulator, checked_rate, coerce, state_field};
use crate::value::{Hashes, MAX_BYTES, external};
use datafusion::arrow::array::{ArrayRef, BinaryArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use lanebloom_formats::SparkBloom;
use lanebloom_formats::spark::{Builder, Version};
use std::sync::Arc;

// spark.sql.optimizer.runtime.bloomFilter.{expectedNumItems, numBits, maxNumItems, maxNumBits}.
const EXPECTED: usize = 1_000_000;
const BITS: u64 = 8_388_608;
const MAX_EXPECTED: usize = 4_000_000;
const MAX_BITS: u64 = 67_108_864;

/// `bloom_filter_agg(value [, expected [, bits or rate [, version]]])`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BloomFilterAgg {
    signature: Signature,
}

impl BloomFilterAgg {
    pub(crate) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl AggregateUDFImpl for BloomFilterAgg {
    fn name(&self) -> &str {
        "bloom_filter_agg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        coerce(self.name(), types, 4)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_field(&args))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(SketchAccumulator::<SparkSet>::new(Plan::of(&args)?)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::<SparkSet>::new(Plan::of(&args)?)))
    }
}

/// What `bloom_filter_agg` was asked for.
#[derive(Debug)]
struct Plan {
    /// The filter that Spark makes for these arguments.
    builder: Builder,
    /// The bytes of one.
    bytes: usize,
    /// Only its hasher is used, which is the same for all versions and sizes.
    hasher: SparkBloom,
}

impl Plan {
    fn of(args: &AccumulatorArgs<'_>) -> Result<Self> {
        let Arguments {
            expected,
            third,
            fourth,
            ..
        } = Arguments::of(args)?;
        let version = match fourth {
            None | Some(ScalarValue::Int64(Some(1))) => Version::V1,
            Some(ScalarValue::Int64(Some(2))) => Version::V2,
            Some(other) => return exec_err!("version {other} of Spark's format is neither 1 nor 2"),
        };
        let builder = SparkBloom::builder().version(version);
        let hasher = builder.clone().expected_keys(1).bits(64).build().map_err(external)?;
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
            Some(other) => return exec_err!("{other} is neither a number of bits nor a rate"),
        };
        let bytes = builder.clone().build().map_err(external)?.memory_bytes();
        if bytes > MAX_BYTES {
            return exec_err!("a filter of {bytes} bytes is above the limit of {MAX_BYTES}");
        }
        Ok(Self { builder, bytes, hasher })
    }
}

/// Spark's filter. Until its hashes take as many bytes, it is these: many groups have few keys.
#[derive(Debug, Default)]
struct SparkSet {
    hashes: Hashes<(i32, i32)>,
    filter: Option<Box<SparkBloom>>,
}

/// Before the hashes of a state, where a filter has its version, which is not 0.
const NO_FILTER: [u8; 4] = [0; 4];

impl SparkSet {
    /// The filter, with all keys so far.
    fn filter(&mut self, plan: &Plan) -> Result<&mut SparkBloom> {
        let filter = match self.filter.take() {
            Some(filter) => filter,
            None => plan.builder.clone().build().map_err(external)?.into(),
        };
        let filter = self.filter.insert(filter);
        filter.insert_hashes_mut(&self.hashes.take());
        Ok(filter)
    }
}

impl Sketch for SparkSet {
    type Plan = Plan;
    type Hasher = SparkBloom;

    fn hasher(plan: &Plan) -> &SparkBloom {
        &plan.hasher
    }

    fn insert(&mut self, hashes: &[(i32, i32)], plan: &Plan) -> Result<()> {
        if let Some(filter) = &mut self.filter {
            filter.insert_hashes_mut(hashes);
        } else if self.hashes.insert(hashes) && self.hashes.memory_bytes() > plan.bytes {
            self.filter(plan)?;
        }
        Ok(())
    }

    fn merge(&mut self, state: &[u8], plan: &Plan) -> Result<()> {
        let Some(hashes) = state.strip_prefix(&NO_FILTER) else {
            let (more, rest) = SparkBloom::from_bytes(state).map_err(external)?;
            if !rest.is_empty() {
                return exec_err!("{} bytes follow a state of bloom_filter_agg", rest.len());
            }
            return self.filter(plan)?.union_from(&more).map(drop).map_err(external);
        };
        let (hashes, rest) = hashes.as_chunks::<8>();
        if !rest.is_empty() {
            return exec_err!("hashes of {} bytes are no multiple of 8", state.len() - NO_FILTER.len());
        }
        let half = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("4 bytes"));
        let hashes = hashes.iter().map(|hash| (half(&hash[..4]), half(&hash[4..])));
        self.insert(&hashes.collect::<Vec<_>>(), plan)
    }

    fn state(&mut self, _: &Plan) -> Result<Vec<u8>> {
        if let Some(filter) = &self.filter {
            return Ok(filter.to_bytes());
        }
        let hashes = self.hashes.compact().iter();
        let hashes = hashes.flat_map(|(one, other)| [one.to_le_bytes(), other.to_le_bytes()]);
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
                "the filters of {} groups take {bytes} bytes, above the limit of {}: expect fewer keys",
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
