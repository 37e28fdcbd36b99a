//! Both predicates, `bloom_contains` and `might_contain`: a bitmap for a batch of values. A filter
//! is decoded once, and then found by its bytes.

use crate::keys::{Class, hash_array, nulls_of};
use crate::metrics::Metrics;
use crate::value::{Filter, external, whole};
use datafusion::arrow::array::{Array, ArrayAccessor, ArrayRef, AsArray, BooleanArray, BooleanBufferBuilder};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use lanebloom::Murmur3;
use lanebloom_formats::{Bitmap, SparkBloom};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

/// The most views of one filter that are remembered within a batch.
const SEEN: usize = 8;

/// The most filters that a function keeps after their batch.
const CACHED: usize = 8;

/// Whose bytes a predicate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Format {
    Ours,
    Spark,
}

/// Writes which values of an array a filter may contain, to a bitmap.
type LookUp = dyn Fn(&dyn Array, &mut [u64]) -> Result<()> + Send + Sync;

impl Format {
    /// Reads a filter.
    fn read(self, bytes: &[u8]) -> Result<Known> {
        let (class, look_up): (_, Box<LookUp>) = match self {
            Self::Ours => {
                let filter = Filter::parse_to_search(bytes)?;
                let class = filter.class;
                let look_up = move |values: &dyn Array, out: &mut [u64]| {
                    filter.look_up(&hash_array(values, &Murmur3::default())?, out);
                    Ok(())
                };
                (Some(class), Box::new(look_up))
            }
            Self::Spark => {
                let filter = whole(SparkBloom::from_bytes(bytes).map_err(external)?)?;
                let look_up = move |values: &dyn Array, out: &mut [u64]| {
                    filter.contains_batch(&hash_array(values, &filter.format())?, Bitmap(out));
                    Ok(())
                };
                (None, Box::new(look_up))
            }
        };
        let watch = Watch::default();
        Ok(Known { class, look_up, watch })
    }
}

/// A filter that was read.
struct Entry {
    /// Shares a column's buffer, or is a copy. While it is held, nothing else has its address.
    bytes: Buffer,
    known: Arc<Known>,
}

struct Known {
    /// The class of its keys, if the filter knows it.
    class: Option<Class>,
    look_up: Box<LookUp>,
    watch: Watch,
}

/// The rows of a window. After it, the filter has pruned enough of them or not.
const WINDOW: u64 = 1 << 16;
/// The number of windows whose rows pass without a lookup after a window that pruned too little.
const SKIPPED: u64 = 16;

/// How much a filter has pruned in this window. A filter that keeps most rows costs more time than
/// it saves.
#[derive(Default)]
struct Watch {
    rows: AtomicU64,
    kept: AtomicU64,
    /// The number of rows that pass without a lookup from now on.
    skip: AtomicU64,
}

// Relaxed: no result depends on these. Threads that race only move the end of a window.
impl Watch {
    fn is_skipped(&self, rows: u64) -> bool {
        let less = |skip: u64| (skip > 0).then(|| skip.saturating_sub(rows));
        self.skip.fetch_update(Relaxed, Relaxed, less).is_ok()
    }

    fn count(&self, rows: u64, kept: u64, least: f64) {
        let rows = self.rows.fetch_add(rows, Relaxed) + rows;
        let kept = self.kept.fetch_add(kept, Relaxed) + kept;
        if rows < WINDOW {
            return;
        }
        self.rows.store(0, Relaxed);
        self.kept.store(0, Relaxed);
        if (rows.saturating_sub(kept) as f64) < least * rows as f64 {
            self.skip.store(SKIPPED * WINDOW, Relaxed);
        }
    }
}

impl Entry {
    fn is(&self, bytes: &[u8]) -> bool {
        std::ptr::eq(self.bytes.as_slice(), bytes) || self.bytes.as_slice() == bytes
    }
}

/// `bloom_contains(filter, value [, least])` or `might_contain(filter, value)`.
pub(crate) struct Contains {
    format: Format,
    signature: Signature,
    pub(crate) metrics: Arc<Metrics>,
    /// The first one is the one that was used last.
    cache: Mutex<Vec<Entry>>,
}

impl Contains {
    pub(crate) fn new(format: Format, metrics: Arc<Metrics>) -> Self {
        Self {
            format,
            signature: Signature::user_defined(Volatility::Immutable),
            metrics,
            cache: Mutex::default(),
        }
    }

    fn decode(&self, bytes: &[u8], buffers: &[Buffer]) -> Result<Arc<Known>> {
        {
            // The cache is whole between any two of its calls, also after a panic.
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = cache.iter().position(|entry| entry.is(bytes)) {
                cache[..=at].rotate_right(1);
                return Ok(Arc::clone(&cache[0].known));
            }
        }
        let known = Arc::new(self.format.read(bytes)?);
        self.metrics.filters.fetch_add(1, Relaxed);
        self.metrics.bytes.fetch_add(bytes.len() as u64, Relaxed);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = buffers.iter().find_map(|buffer| {
            let start = (bytes.as_ptr() as usize).checked_sub(buffer.as_ptr() as usize)?;
            (start + bytes.len() <= buffer.len()).then(|| buffer.slice_with_length(start, bytes.len()))
        });
        let bytes = shared.unwrap_or_else(|| Buffer::from(bytes));
        let entry = Entry {
            bytes,
            known: Arc::clone(&known),
        };
        cache.insert(0, entry);
        cache.truncate(CACHED);
        Ok(known)
    }

    /// Whether each value may be in the filter, without the nulls of the values.
    fn search(
        &self,
        filter: &[u8],
        buffers: &[Buffer],
        values: &dyn Array,
        least: Option<f64>,
    ) -> Result<BooleanBuffer> {
        let rows = values.len();
        let mut bitmap = vec![0; rows.div_ceil(64)];
        let known = self.decode(filter, buffers)?;
        let class = Class::of(values.data_type())?;
        if let Some(own) = known.class
            && own != class
        {
            return exec_err!("the filter holds {own}, not {class}: cast the value");
        }
        if least.is_some() && known.watch.is_skipped(rows as u64) {
            self.metrics.rows_skipped.fetch_add(rows as u64, Relaxed);
            return Ok(BooleanBuffer::new_set(rows));
        }
        (known.look_up)(values, &mut bitmap)?;
        // Words are little-endian bytes, as Arrow's bits are.
        bitmap.iter_mut().for_each(|word| *word = word.to_le());
        let found = BooleanBuffer::new(Buffer::from_vec(bitmap), 0, rows);
        let nulls = nulls_of(values);
        let kept = match &nulls {
            Some(nulls) => (&found & nulls.inner()).count_set_bits(),
            None => found.count_set_bits(),
        };
        self.metrics.rows_in.fetch_add(rows as u64, Relaxed);
        self.metrics.rows_pruned.fetch_add((rows - kept) as u64, Relaxed);
        if let Some(least) = least {
            known.watch.count(rows as u64, kept as u64, least);
        }
        Ok(found)
    }

    /// One filter for all values.
    fn one(&self, filter: Option<&[u8]>, values: &dyn Array, least: Option<f64>) -> Result<BooleanArray> {
        let Some(filter) = filter else {
            return Ok(BooleanArray::new_null(values.len()));
        };
        if values.is_empty() {
            return Ok(BooleanArray::new_null(0));
        }
        let found = self.search(filter, &[], values, least)?;
        Ok(BooleanArray::new(found, values.logical_nulls()))
    }

    /// A filter for every value.
    fn each(&self, filters: &ArrayRef, values: &dyn Array, least: Option<f64>) -> Result<BooleanArray> {
        match filters.data_type() {
            // A batch without views repeats the filter for each row. Keep none of it.
            DataType::Binary => self.each_of(filters.as_binary::<i32>(), (&[], &[]), values, least),
            DataType::LargeBinary => self.each_of(filters.as_binary::<i64>(), (&[], &[]), values, least),
            DataType::BinaryView => {
                let filters = filters.as_binary_view();
                self.each_of(filters, (filters.views(), filters.data_buffers()), values, least)
            }
            other => exec_err!("a filter is binary, not of type {other}"),
        }
    }

    /// [`each`](Self::each), with the views and their buffers if the column has them. Equal filters
    /// in a row are searched at once.
    fn each_of<'a>(
        &self,
        filters: impl ArrayAccessor<Item = &'a [u8]> + Copy,
        (views, buffers): (&[u128], &[Buffer]),
        values: &dyn Array,
        least: Option<f64>,
    ) -> Result<BooleanArray> {
        let rows = values.len();
        let mut found = BooleanBufferBuilder::new(rows);
        let mut start = 0;
        while start < rows {
            let mut seen = Vec::new();
            let end = (start + 1..rows)
                .find(|row| !are_same(filters, views, start, *row, &mut seen))
                .unwrap_or(rows);
            if filters.is_valid(start) {
                let values = values.slice(start, end - start);
                found.append_buffer(&self.search(filters.value(start), buffers, values.as_ref(), least)?);
            } else {
                found.append_n(end - start, false);
            }
            start = end;
        }
        let nulls = NullBuffer::union(filters.nulls(), values.logical_nulls().as_ref());
        Ok(BooleanArray::new(found.finish(), nulls))
    }
}

/// Whether a row has the filter of the row `start`. Bytes are compared only if the views differ.
/// `seen` has the views that were found equal to that of `start`: a batch that was gathered from
/// others has one filter in several buffers, and comparing 100 KB for each row takes longer than
/// the lookup.
fn are_same<'a>(
    filters: impl ArrayAccessor<Item = &'a [u8]>,
    views: &[u128],
    start: usize,
    row: usize,
    seen: &mut Vec<u128>,
) -> bool {
    if filters.is_null(start) || filters.is_null(row) {
        return filters.is_null(start) && filters.is_null(row);
    }
    let view = views.get(row);
    if view.is_some_and(|view| *view == views[start] || seen.contains(view)) {
        return true;
    }
    let is_same = filters.value(start) == filters.value(row);
    if let (true, Some(view)) = (is_same, view) {
        seen.truncate(SEEN - 1);
        seen.insert(0, *view);
    }
    is_same
}

impl ScalarUDFImpl for Contains {
    fn name(&self) -> &str {
        match self.format {
            Format::Ours => "bloom_contains",
            Format::Spark => "might_contain",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (filter, value, least) = match types {
            [filter, value] => (filter, value, None),
            [filter, value, least] if self.format == Format::Ours && least.is_numeric() => {
                (filter, value, Some(DataType::Float64))
            }
            _ => {
                return plan_err!(
                    "{} takes a filter and a value, not {} arguments",
                    self.name(),
                    types.len()
                );
            }
        };
        let filter = match filter {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => filter.clone(),
            DataType::FixedSizeBinary(_) | DataType::Null => DataType::BinaryView,
            other => return plan_err!("a filter is binary, not of type {other}: pass a value of an aggregate"),
        };
        // NULL has no class.
        if !value.is_null() {
            Class::of(value)?;
        }
        Ok([filter, value.clone()].into_iter().chain(least).collect())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (filter, values, least) = match &args.args[..] {
            [filter, values] => (filter, values, None),
            [filter, values, ColumnarValue::Scalar(ScalarValue::Float64(least))] => (filter, values, *least),
            _ => return exec_err!("the third argument of {} depends on rows: pass a constant", self.name()),
        };
        if values.data_type().is_null() {
            return Ok(ColumnarValue::Scalar(ScalarValue::Boolean(None)));
        }
        // A value that is the same for all rows is looked up once.
        let (values, is_scalar) = match (filter, values) {
            (_, ColumnarValue::Array(values)) => (Arc::clone(values), false),
            (ColumnarValue::Array(_), ColumnarValue::Scalar(value)) => {
                (value.to_array_of_size(args.number_rows)?, false)
            }
            (_, ColumnarValue::Scalar(value)) => (value.to_array()?, true),
        };
        let found = match filter {
            ColumnarValue::Array(filters) => self.each(filters, values.as_ref(), least)?,
            ColumnarValue::Scalar(
                ScalarValue::Binary(filter) | ScalarValue::LargeBinary(filter) | ScalarValue::BinaryView(filter),
            ) => self.one(filter.as_deref(), values.as_ref(), least)?,
            ColumnarValue::Scalar(other) => return exec_err!("a filter is binary, not of type {}", other.data_type()),
        };
        if is_scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(found)))
    }
}

// All predicates of one format are the same function: cache and counters change no result.
impl PartialEq for Contains {
    fn eq(&self, other: &Self) -> bool {
        self.format == other.format
    }
}

impl Eq for Contains {}

impl Hash for Contains {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.format.hash(state);
    }
}

impl fmt::Debug for Contains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contains")
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::BinaryViewArray;
    use datafusion::arrow::compute::interleave;

    #[test]
    fn the_filter_that_was_not_used_for_longest_goes_first() {
        let contains = Contains::new(Format::Ours, Arc::default());
        let reads = |filter: u64| {
            let before = contains.metrics.filters();
            let bytes = [&b"LBSQ\x01\x00\x02\x00"[..], &filter.to_le_bytes()].concat();
            contains.decode(&bytes, &[]).unwrap();
            contains.metrics.filters() - before
        };
        for filter in 0..CACHED as u64 {
            assert_eq!(reads(filter), 1);
        }
        // All are there, and the last two are used before a new one comes: 1 and 0.
        assert_eq!((reads(1), reads(0), reads(100)), (0, 0, 1));
        assert_eq!((reads(1), reads(0), reads(2)), (0, 0, 1));
    }

    #[test]
    fn equal_filters_in_several_buffers_are_compared_once_for_each_buffer() {
        let column = |filter: &[u8]| -> ArrayRef { Arc::new(BinaryViewArray::from_iter_values([filter; 2])) };
        let columns = [column(&[1; 100]), column(&[1; 100]), column(&[2; 100]), column(b"")];
        let columns: Vec<&dyn Array> = columns.iter().map(|column| column.as_ref()).collect();
        let filters = interleave(&columns, &[(0, 0), (1, 0), (0, 0), (1, 0), (1, 0), (2, 0), (3, 0)]).unwrap();
        let filters = filters.as_binary_view();
        let mut seen = Vec::new();
        let same = Vec::from_iter((1..7).map(|row| are_same(filters, filters.views(), 0, row, &mut seen)));
        assert_eq!(same, [true, true, true, true, false, false]);
        assert_eq!(seen.len(), 1);
    }
}
