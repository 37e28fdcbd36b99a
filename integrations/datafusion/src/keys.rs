//! Arrow arrays as keys: one hash for each row of an array of any type. The aggregates insert these
//! hashes, and the predicates look them up.
//!
//! A key is a 64-bit integer if the type allows it, and bytes otherwise. Types that SQL compares
//! without loss have equal keys for equal values: integers of all widths, strings and binary and
//! their views, dictionaries and their values. Other types differ by their [`Class`]: SQL may
//! convert two values before it compares them, which their hashes do not show.

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::*;
use datafusion::common::{Result, exec_err};
use datafusion::physical_plan::PhysicalExpr;
use lanebloom::{KeyHasher, Murmur3};
use lanebloom_formats::JavaFormat;
use lanebloom_formats::spark::{self, Spark};
use std::fmt;
use std::sync::Arc;

/// The kind of a filter's keys. A filter of one class is not searched for keys of another class:
/// equal values of two classes have different hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) kind: u8,
    /// A decimal's scale, or a unit of time: 0 seconds, 3 milli-, 6 micro- and 9 nanoseconds.
    pub(crate) detail: i8,
}

const KINDS: [&str; 11] = [
    "nothing",
    "booleans",
    "integers",
    "floats",
    "decimals",
    "dates",
    "times",
    "timestamps",
    "durations",
    "bytes",
    "zoned timestamps",
];

impl Class {
    /// The class of a type. Fails for a type that cannot be a key: a list, a struct, an interval.
    pub(crate) fn of(data_type: &DataType) -> Result<Self> {
        use DataType::*;
        let unit = |unit: &TimeUnit| match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        };
        let (kind, detail) = match data_type {
            Boolean => (1, 0),
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => (2, 0),
            Float16 | Float32 | Float64 => (3, 0),
            Decimal32(_, scale) | Decimal64(_, scale) | Decimal128(_, scale) | Decimal256(_, scale) => (4, *scale),
            Date32 | Date64 => (5, 0),
            Time32(of) | Time64(of) => (6, unit(of)),
            Timestamp(of, None) => (7, unit(of)),
            // A moment, whatever the zone. Without a zone, it is what a clock shows. SQL compares
            // the two in a zone that the filter does not know.
            Timestamp(of, Some(_)) => (10, unit(of)),
            Duration(of) => (8, unit(of)),
            Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => (9, 0),
            Dictionary(_, value) => return Self::of(value),
            RunEndEncoded(_, value) => return Self::of(value.data_type()),
            other => return exec_err!("values of type {other} cannot be keys of a Bloom filter: cast them"),
        };
        Ok(Self { kind, detail })
    }

    /// The class of these two bytes, if there is one.
    pub(crate) fn from_bytes([kind, detail]: [u8; 2]) -> Option<Self> {
        let class = Self {
            kind,
            detail: detail as i8,
        };
        let is_known = match kind {
            1..=3 | 5 | 9 => detail == 0,
            4 => true,
            6..=8 | 10 => matches!(detail, 0 | 3 | 6 | 9),
            _ => false,
        };
        is_known.then_some(class)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", KINDS[usize::from(self.kind)])?;
        match self.kind {
            4 => write!(f, " of scale {}", self.detail),
            6..=8 | 10 => write!(f, " of 10^-{} s", self.detail),
            _ => Ok(()),
        }
    }
}

/// Hashes keys, many at a time.
pub(crate) trait HashKeys {
    type Hash: Copy + Default + Ord;
    fn hash_longs(&self, keys: &[i64], out: &mut [Self::Hash]);
    fn hash_bytes(&self, keys: &[&[u8]], out: &mut [Self::Hash]);
}

/// The hashes of `bloom_agg`.
impl HashKeys for Murmur3 {
    type Hash = u64;

    fn hash_longs(&self, keys: &[i64], out: &mut [u64]) {
        self.hash_batch(keys, out);
    }

    fn hash_bytes(&self, keys: &[&[u8]], out: &mut [u64]) {
        self.hash_batch(keys, out);
    }
}

impl HashKeys for Spark {
    type Hash = spark::Hash;

    fn hash_longs(&self, keys: &[i64], out: &mut [spark::Hash]) {
        self.hash_batch(keys, out);
    }

    fn hash_bytes(&self, keys: &[&[u8]], out: &mut [spark::Hash]) {
        self.hash_batch(keys, out);
    }
}

/// The hash of every row. The hash of a null has no meaning: see [`nulls_of`].
pub(crate) fn hash_array<H: HashKeys>(array: &dyn Array, hasher: &H) -> Result<Vec<H::Hash>> {
    use DataType::*;
    let mut out = vec![H::Hash::default(); array.len()];
    match array.data_type() {
        Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            if dictionary.values().is_empty() {
                return Ok(out);
            }
            let hashes = hash_array(dictionary.values().as_ref(), hasher)?;
            for (out, key) in out.iter_mut().zip(dictionary.normalized_keys()) {
                *out = hashes[key];
            }
        }
        RunEndEncoded(_, value) => return hash_array(&cast(array, value.data_type())?, hasher),
        Int64 => hasher.hash_longs(array.as_primitive::<Int64Type>().values(), &mut out),
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 | Boolean => {
            let wide = cast(array, &Int64)?;
            hasher.hash_longs(wide.as_primitive::<Int64Type>().values(), &mut out);
        }
        UInt64 => longs::<UInt64Type, _>(array, hasher, &mut out, |value| value as i64),
        Float16 | Float32 => return hash_array(&cast(array, &Float64)?, hasher),
        Float64 => longs::<Float64Type, _>(array, hasher, &mut out, float_bits),
        Date32 => longs::<Date32Type, _>(array, hasher, &mut out, i64::from),
        Date64 => longs::<Date64Type, _>(array, hasher, &mut out, |ms| ms.div_euclid(86_400_000)),
        Time32(_) => {
            let wide = cast(&cast(array, &Int32)?, &Int64)?;
            hasher.hash_longs(wide.as_primitive::<Int64Type>().values(), &mut out);
        }
        // The values of the buffer, whatever the unit.
        Time64(_) | Timestamp(_, _) | Duration(_) => {
            let data = array.to_data();
            let values = &data.buffers()[0].typed_data::<i64>()[data.offset()..][..data.len()];
            hasher.hash_longs(values, &mut out);
        }
        Decimal32(_, _) => longs::<Decimal32Type, _>(array, hasher, &mut out, i64::from),
        Decimal64(_, _) => longs::<Decimal64Type, _>(array, hasher, &mut out, |value| value),
        Decimal128(_, _) => decimals::<Decimal128Type, _>(array, hasher, &mut out, i256::from_i128),
        Decimal256(_, _) => decimals::<Decimal256Type, _>(array, hasher, &mut out, |value| value),
        Utf8 => bytes(array.as_string::<i32>().iter(), hasher, &mut out),
        LargeUtf8 => bytes(array.as_string::<i64>().iter(), hasher, &mut out),
        Utf8View => bytes(array.as_string_view().iter(), hasher, &mut out),
        Binary => bytes(array.as_binary::<i32>().iter(), hasher, &mut out),
        LargeBinary => bytes(array.as_binary::<i64>().iter(), hasher, &mut out),
        BinaryView => bytes(array.as_binary_view().iter(), hasher, &mut out),
        FixedSizeBinary(_) => bytes(array.as_fixed_size_binary().iter(), hasher, &mut out),
        other => return exec_err!("values of type {other} cannot be keys of a Bloom filter: cast them"),
    }
    Ok(out)
}

/// The bits of a float: one for both zeros, and one for all NaNs.
fn float_bits(value: f64) -> i64 {
    let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
    value.to_bits() as i64
}

fn longs<T: ArrowPrimitiveType, H: HashKeys>(
    array: &dyn Array,
    hasher: &H,
    out: &mut [H::Hash],
    long: impl Fn(T::Native) -> i64,
) {
    let longs: Vec<i64> = array
        .as_primitive::<T>()
        .values()
        .iter()
        .map(|value| long(*value))
        .collect();
    hasher.hash_longs(&longs, out);
}

/// The key of a value beyond 64 bits is its bytes, 16 or 32. Other values have the keys of narrower
/// decimals.
fn decimals<T: ArrowPrimitiveType, H: HashKeys>(
    array: &dyn Array,
    hasher: &H,
    out: &mut [H::Hash],
    wide: impl Fn(T::Native) -> i256,
) {
    longs::<T, H>(array, hasher, out, |value| wide(value).as_i128() as i64);
    for (value, out) in array.as_primitive::<T>().values().iter().zip(out) {
        let out = std::slice::from_mut(out);
        match wide(*value).to_i128() {
            Some(value) if i128::from(value as i64) == value => {}
            Some(value) => hasher.hash_bytes(&[&value.to_le_bytes()], out),
            None => hasher.hash_bytes(&[&wide(*value).to_le_bytes()], out),
        }
    }
}

fn bytes<'a, T: AsRef<[u8]> + ?Sized + 'a, H: HashKeys>(
    values: impl Iterator<Item = Option<&'a T>>,
    hasher: &H,
    out: &mut [H::Hash],
) {
    let keys: Vec<&[u8]> = values.map(|value| value.map_or(&[][..], AsRef::as_ref)).collect();
    hasher.hash_bytes(&keys, out);
}

/// The hashes of the rows that are not null.
pub(crate) fn hash_valid<H: HashKeys>(array: &ArrayRef, hasher: &H) -> Result<Vec<H::Hash>> {
    let mut hashes = hash_array(array.as_ref(), hasher)?;
    if let Some(nulls) = nulls_of(array.as_ref()) {
        let mut len = 0;
        for row in nulls.valid_indices() {
            hashes[len] = hashes[row];
            len += 1;
        }
        hashes.truncate(len);
    }
    Ok(hashes)
}

/// The nulls of an array, if it has any.
pub(crate) fn nulls_of(array: &dyn Array) -> Option<NullBuffer> {
    array.logical_nulls().filter(|nulls| nulls.null_count() > 0)
}

/// The value of a constant argument.
pub(crate) fn constant(expr: &Arc<dyn PhysicalExpr>) -> Result<datafusion::common::ScalarValue> {
    use datafusion::logical_expr::ColumnarValue;
    let empty = datafusion::arrow::array::RecordBatch::new_empty(Arc::new(Schema::empty()));
    match expr.evaluate(&empty) {
        Ok(ColumnarValue::Scalar(value)) => Ok(value),
        _ => exec_err!("the argument {expr} of a Bloom filter depends on rows: pass a constant"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Date32Array, Date64Array, Float64Array};

    #[test]
    fn equal_values_are_one_key() {
        let hashes = |array: &dyn Array| hash_array(array, &Murmur3::default()).unwrap();
        // A millisecond before 1970 is on the day before it.
        let days = hashes(&Date32Array::from(vec![-1, 0]));
        assert_eq!(hashes(&Date64Array::from(vec![-1, 86_399_999])), days);
        assert_ne!(days[0], days[1]);
        let floats = hashes(&Float64Array::from(vec![f64::NAN, -f64::NAN, 0.0, -0.0]));
        assert_eq!((floats[0], floats[2]), (floats[1], floats[3]));
        assert_ne!(floats[0], floats[2]);
    }
}
