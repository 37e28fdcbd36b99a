//! `bloom_filter_agg`, with the arguments, the defaults and the bits of Spark's.

use crate::aggregate::{Arguments, Sketch, SketchAccumulator, checked_rate, coerce, state_field};
use crate::keys::hash_valid;
use crate::value::{MAX_BYTES, external};
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};
use lanebloom_formats::SparkBloom;
use lanebloom_formats::spark::Version;

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
        Ok(state_field(&args, DataType::Binary))
    }

    /// DataFusion makes one accumulator for each group, as Spark makes one filter for each.
    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(SketchAccumulator(SparkSketch(build(&args)?))))
    }
}

/// The filter that Spark makes for these arguments.
fn build(args: &AccumulatorArgs<'_>) -> Result<SparkBloom> {
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
    builder.build().map_err(external)
}

#[derive(Debug)]
struct SparkSketch(SparkBloom);

impl SparkSketch {
    /// NULL without a key, as Spark's.
    fn bytes(&self) -> Result<ScalarValue> {
        if self.0.memory_bytes() > MAX_BYTES {
            return exec_err!(
                "a filter of {} bytes is above the limit of {MAX_BYTES}",
                self.0.memory_bytes()
            );
        }
        Ok(ScalarValue::Binary((!self.0.is_empty()).then(|| self.0.to_bytes())))
    }
}

impl Sketch for SparkSketch {
    fn update(&mut self, values: &ArrayRef) -> Result<()> {
        let hashes = hash_valid(values, &self.0)?;
        self.0.insert_hashes_mut(&hashes);
        Ok(())
    }

    fn merge(&mut self, state: &[u8]) -> Result<()> {
        let (more, _) = SparkBloom::from_bytes(state).map_err(external)?;
        self.0.union_from(&more).map(drop).map_err(external)
    }

    fn state(&mut self) -> Result<ScalarValue> {
        self.bytes()
    }

    fn finish(&mut self) -> Result<ScalarValue> {
        self.bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
