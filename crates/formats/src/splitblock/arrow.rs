//! Columns as Arrow lays them out: [`Column`]. No crate of Arrow's is needed for it; with the
//! feature `arrow`, its arrays become columns.

use super::{SplitBlockBloom, Xxh64, xxh64};
use crate::{CHUNK, told};
use alloc::format;
use alloc::string::String;
use core::error::Error;
use core::fmt;
use lanebloom::KeyHasher;
use lanebloom::internal::as_chunks;
use lanebloom::{Answers, Bitmap, Hashed};

/// A column of keys: one buffer of values, for strings their offsets too, and which of them are not
/// null. Borrows Arrow's buffers.
///
/// ```
/// use lanebloom_formats::splitblock::Column;
/// use lanebloom_formats::{Bitmap, SplitBlockBloom};
///
/// let filter = SplitBlockBloom::with_capacity(1000, 0.01)?;
/// // "ann", null, "bob"
/// let names = Column::bytes(&[0, 3, 3, 6], b"annbob")?;
/// let names = names.with_validity(&[0b101], 0)?;
/// assert_eq!(filter.insert_column(&names), 2);
/// let mut found = [0];
/// filter.contains_column(&names, Bitmap(&mut found));
/// assert_eq!(found, [0b101]);
/// assert!(filter.contains("ann") && !filter.contains(""));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    keys: Keys<'a>,
    len: usize,
    /// Bits, the lowest of a byte first, and the number of the first key's.
    validity: Option<(&'a [u8], usize)>,
}

#[derive(Clone, Copy, Debug)]
enum Keys<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
    /// At least one offset; rising, and none beyond the values.
    Bytes(&'a [i32], &'a [u8]),
    LargeBytes(&'a [i64], &'a [u8]),
    /// Values of this number of bytes.
    Fixed(usize, &'a [u8]),
    #[cfg(feature = "arrow")]
    Views(&'a arrow_array::BinaryViewArray),
    #[cfg(feature = "arrow")]
    StringViews(&'a arrow_array::StringViewArray),
    // Parquet stores these as INT32.
    #[cfg(feature = "arrow")]
    I8(&'a [i8]),
    #[cfg(feature = "arrow")]
    I16(&'a [i16]),
    #[cfg(feature = "arrow")]
    U8(&'a [u8]),
    #[cfg(feature = "arrow")]
    U16(&'a [u16]),
}

/// Why buffers are not a column of keys, or an array has no keys of Parquet's.
///
/// ```
/// use lanebloom_formats::splitblock::Column;
///
/// let error = Column::bytes(&[0, 9], b"ann").unwrap_err();
/// assert_eq!(error.to_string(), "value 0 ends at byte 9 of 3");
/// ```
#[derive(Debug)]
pub struct ColumnError(String);

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ColumnError {}

/// Making one.
///
/// ```
/// use lanebloom_formats::{SplitBlockBloom, splitblock::Column};
///
/// let filter = SplitBlockBloom::with_capacity(1000, 0.01)?;
/// assert_eq!(filter.insert_column(&Column::i32s(&[1, 2])), 2);
/// assert_eq!(filter.insert_column(&Column::i64s(&[3])), 1);
/// assert!(filter.contains(&2_i32) && filter.contains(&3_i64));
/// assert!(!filter.contains(&3_i32));
///
/// let names = Column::large_bytes(&[0, 3, 6], b"annbob")?;
/// assert!(names.len() == 2 && !names.is_empty());
/// filter.insert_column(&names);
/// filter.insert_column(&Column::fixed(3, b"evejoe")?);
/// assert!(filter.contains("bob") && filter.contains("joe"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<'a> Column<'a> {
    fn of(keys: Keys<'a>, len: usize) -> Self {
        Self {
            keys,
            len,
            validity: None,
        }
    }

    /// Keys of Parquet's type `INT32`.
    #[must_use]
    pub fn i32s(values: &'a [i32]) -> Self {
        Self::of(Keys::I32(values), values.len())
    }

    /// Keys of Parquet's type `INT64`.
    #[must_use]
    pub fn i64s(values: &'a [i64]) -> Self {
        Self::of(Keys::I64(values), values.len())
    }

    /// Strings or bytes: key `i` is `values[offsets[i]..offsets[i + 1]]`. The offsets may begin
    /// above 0.
    ///
    /// # Errors
    ///
    /// If there is no offset, they fall, or one is negative or beyond the values.
    pub fn bytes(offsets: &'a [i32], values: &'a [u8]) -> Result<Self, ColumnError> {
        let len = check_offsets(offsets, values)?;
        Ok(Self::of(Keys::Bytes(offsets, values), len))
    }

    /// [`bytes`](Self::bytes) with offsets of 64 bits. Fails as that does.
    pub fn large_bytes(offsets: &'a [i64], values: &'a [u8]) -> Result<Self, ColumnError> {
        let len = check_offsets(offsets, values)?;
        Ok(Self::of(Keys::LargeBytes(offsets, values), len))
    }

    /// Values of `width` bytes each: Parquet's type `FIXED_LEN_BYTE_ARRAY`, or `INT96` with 12.
    ///
    /// Fails if the width is 0, or the values are not a multiple of it.
    pub fn fixed(width: usize, values: &'a [u8]) -> Result<Self, ColumnError> {
        if width == 0 || values.len() % width != 0 {
            return Err(ColumnError(format!(
                "{} bytes are not a whole number of values of {width} bytes",
                values.len()
            )));
        }
        Ok(Self::of(Keys::Fixed(width, values), values.len() / width))
    }

    /// The column whose key `i` is null if bit `first + i` of `bits` is 0: bit `j % 8` of byte
    /// `j / 8`, as in Arrow's validity bitmaps.
    ///
    /// # Errors
    ///
    /// If there are not enough bits.
    pub fn with_validity(self, bits: &'a [u8], first: usize) -> Result<Self, ColumnError> {
        let needed = first.saturating_add(self.len);
        if bits.len() < needed.div_ceil(8) {
            return Err(ColumnError(format!(
                "{needed} keys have {} bytes of validity",
                bits.len()
            )));
        }
        let validity = Some((bits, first));
        Ok(Self { validity, ..self })
    }

    /// The number of keys, nulls too.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The validity of up to 64 keys from `start` on, as a bitmap.
    fn valid(&self, start: usize) -> u64 {
        let Some((bits, first)) = self.validity else {
            return u64::MAX;
        };
        let (byte, shift) = ((first + start) / 8, (first + start) % 8);
        let mut nine = [0; 9];
        let there = &bits[byte..bits.len().min(byte + 9)];
        nine[..there.len()].copy_from_slice(there);
        let low = u64::from_le_bytes(as_chunks(&nine).0[0]);
        let high = if shift == 0 {
            0
        } else {
            u64::from(nine[8]) << (64 - shift)
        };
        low >> shift | high
    }

    /// Writes the hashes of the keys from `start` on. Hashes of nulls have no meaning.
    fn hash(&self, start: usize, out: &mut [u64]) {
        let range = start..start + out.len();
        match self.keys {
            Keys::I32(values) => Xxh64.hash_batch(&values[range], out),
            Keys::I64(values) => Xxh64.hash_batch(&values[range], out),
            Keys::Bytes(offsets, values) => {
                let ends = offsets[start..].windows(2);
                hash_each(ends.map(|ends| &values[ends[0] as usize..ends[1] as usize]), out);
            }
            Keys::LargeBytes(offsets, values) => {
                let ends = offsets[start..].windows(2);
                hash_each(ends.map(|ends| &values[ends[0] as usize..ends[1] as usize]), out);
            }
            Keys::Fixed(width, values) => hash_each(values[start * width..].chunks_exact(width), out),
            #[cfg(feature = "arrow")]
            Keys::Views(array) => hash_each(range.map(|i| array.value(i)), out),
            #[cfg(feature = "arrow")]
            Keys::StringViews(array) => hash_each(range.map(|i| array.value(i).as_bytes()), out),
            #[cfg(feature = "arrow")]
            Keys::I8(values) => hash_widened(&values[range], out),
            #[cfg(feature = "arrow")]
            Keys::I16(values) => hash_widened(&values[range], out),
            #[cfg(feature = "arrow")]
            Keys::U8(values) => hash_widened(&values[range], out),
            #[cfg(feature = "arrow")]
            Keys::U16(values) => hash_widened(&values[range], out),
        }
    }

    /// Calls `each(start, hashes)` for every chunk.
    fn hashed(&self, mut each: impl FnMut(usize, &mut [u64])) {
        let mut hashes = [0; CHUNK];
        for start in (0..self.len).step_by(CHUNK) {
            let hashes = &mut hashes[..CHUNK.min(self.len - start)];
            self.hash(start, hashes);
            each(start, hashes);
        }
    }
}

/// The number of values that the offsets delimit.
fn check_offsets<O: Copy + TryInto<usize>>(offsets: &[O], values: &[u8]) -> Result<usize, ColumnError> {
    let Some(len) = offsets.len().checked_sub(1) else {
        return Err(ColumnError("there is no offset".into()));
    };
    let mut start = 0;
    for (i, offset) in offsets.iter().enumerate() {
        let position = (*offset).try_into().ok().filter(|position| *position >= start);
        start = position.ok_or_else(|| ColumnError(format!("offset {i} is below the one before, or negative")))?;
    }
    if start > values.len() {
        return Err(ColumnError(format!(
            "value {} ends at byte {start} of {}",
            offsets.len().saturating_sub(2),
            values.len()
        )));
    }
    Ok(len)
}

fn hash_each<'v>(values: impl Iterator<Item = &'v [u8]>, out: &mut [u64]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = xxh64::of_bytes(value);
    }
}

#[cfg(feature = "arrow")]
fn hash_widened<T: Copy + Into<i32>>(values: &[T], out: &mut [u64]) {
    let mut wide = [0_i32; CHUNK];
    for (wide, value) in wide.iter_mut().zip(values) {
        *wide = (*value).into();
    }
    Xxh64.hash_batch(&wide[..out.len()], out);
}

/// Columns of Arrow.
impl SplitBlockBloom {
    /// Inserts the keys of a column that are not null; returns how many changed the filter.
    ///
    /// ```
    /// use lanebloom_formats::{SplitBlockBloom, splitblock::Column};
    ///
    /// let filter = SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.insert_column(&Column::i64s(&[1, 2, 1])), 2);
    /// assert!(filter.contains(&2_i64));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn insert_column(&self, column: &Column<'_>) -> usize {
        let mut new = 0;
        column.hashed(|start, hashes| {
            let mut len = hashes.len();
            if column.validity.is_some() {
                len = 0;
                for first in (0..hashes.len()).step_by(64) {
                    let valid = column.valid(start + first);
                    for i in first..hashes.len().min(first + 64) {
                        // Overwrites those of nulls.
                        hashes[len] = hashes[i];
                        len += (valid >> (i - first) & 1) as usize;
                    }
                }
            }
            new += self.insert_batch(Hashed::slice(&hashes[..len]));
        });
        new
    }

    /// Passes on whether each key of a column may be in the filter; `false` for nulls.
    /// [`Answers`] has the places for `out`.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::{SplitBlockBloom, splitblock::Column};
    ///
    /// let filter = SplitBlockBloom::with_capacity(1000, 0.01)?;
    /// filter.insert(&2_i64);
    /// let mut found = [false; 3];
    /// filter.contains_column(&Column::i64s(&[1, 2, 3]), &mut found);
    /// assert_eq!(found, [false, true, false]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn contains_column(&self, column: &Column<'_>, out: impl Answers) {
        let mut found = [0; CHUNK / 64];
        out.receive(column.len, |place| {
            told(place, |each| {
                column.hashed(|start, hashes| {
                    let found = &mut found[..hashes.len().div_ceil(64)];
                    self.contains_batch(Hashed::slice(hashes), Bitmap(found));
                    for (at, found) in (0..hashes.len()).step_by(64).zip(found) {
                        let valid = column.valid(start + at);
                        each(start + at, (hashes.len() - at).min(64), *found & valid);
                    }
                });
            });
        });
    }
}

/// Arrow's arrays.
#[cfg(feature = "arrow")]
mod arrays {
    use super::{Bitmap, Column, ColumnError, Keys, SplitBlockBloom};
    use alloc::format;
    use alloc::vec;
    use arrow_array::cast::AsArray;
    use arrow_array::types::*;
    use arrow_array::{Array, BooleanArray};
    use arrow_buffer::{BooleanBuffer, Buffer};
    use arrow_schema::{DataType, TimeUnit};

    /// The offsets and the values of strings or bytes.
    fn parts<T: ByteArrayType>(array: &dyn Array) -> (&[T::Offset], &[u8]) {
        let array = array.as_bytes::<T>();
        (array.value_offsets(), array.value_data())
    }

    impl<'a> Column<'a> {
        /// The keys of an array, as Parquet stores them: integers up to 32 bits, `Date32` and
        /// `Time32` as `INT32`; of 64 bits, `Time64` and `Timestamp` as `INT64`; strings, binary
        /// and their views; `FixedSizeBinary`.
        ///
        /// # Errors
        ///
        /// If Parquet stores the array's type otherwise. (Floats are hashed by their bits: give
        /// [`Column::i64s`] or [`Column::i32s`] these.) Parquet has no times in seconds: for
        /// `Time32`, some writers store the seconds, others milliseconds.
        ///
        /// # Examples
        ///
        /// ```
        /// use arrow_array::{Array, Int64Array, StringArray};
        /// use lanebloom_formats::{SplitBlockBloom, splitblock::Column};
        ///
        /// let filter = SplitBlockBloom::with_capacity(1000, 0.01)?;
        /// let ids = Int64Array::from(vec![Some(1), None, Some(3)]);
        /// assert_eq!(filter.insert_column(&Column::of_array(&ids)?), 2);
        /// let found = filter.contains_array(&ids)?;
        /// assert_eq!(found, vec![Some(true), None, Some(true)].into());
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub fn of_array(array: &'a dyn Array) -> Result<Self, ColumnError> {
            macro_rules! values {
                ($type:ty) => {
                    array.as_primitive::<$type>().values()
                };
            }
            let small = |(offsets, values)| Keys::Bytes(offsets, values);
            let large = |(offsets, values)| Keys::LargeBytes(offsets, values);
            let keys = match array.data_type() {
                DataType::Int8 => Keys::I8(values!(Int8Type)),
                DataType::Int16 => Keys::I16(values!(Int16Type)),
                DataType::UInt8 => Keys::U8(values!(UInt8Type)),
                DataType::UInt16 => Keys::U16(values!(UInt16Type)),
                DataType::Int32 => Keys::I32(values!(Int32Type)),
                DataType::Date32 => Keys::I32(values!(Date32Type)),
                DataType::UInt32 => Keys::I32(values!(UInt32Type).inner().typed_data()),
                DataType::Time32(TimeUnit::Millisecond) => Keys::I32(values!(Time32MillisecondType)),
                DataType::Int64 => Keys::I64(values!(Int64Type)),
                DataType::UInt64 => Keys::I64(values!(UInt64Type).inner().typed_data()),
                DataType::Time64(TimeUnit::Microsecond) => Keys::I64(values!(Time64MicrosecondType)),
                DataType::Time64(_) => Keys::I64(values!(Time64NanosecondType)),
                DataType::Timestamp(TimeUnit::Millisecond, _) => Keys::I64(values!(TimestampMillisecondType)),
                DataType::Timestamp(TimeUnit::Microsecond, _) => Keys::I64(values!(TimestampMicrosecondType)),
                DataType::Timestamp(TimeUnit::Nanosecond, _) => Keys::I64(values!(TimestampNanosecondType)),
                DataType::Utf8 => small(parts::<Utf8Type>(array)),
                DataType::LargeUtf8 => large(parts::<LargeUtf8Type>(array)),
                DataType::Binary => small(parts::<BinaryType>(array)),
                DataType::LargeBinary => large(parts::<LargeBinaryType>(array)),
                DataType::BinaryView => Keys::Views(array.as_binary_view()),
                DataType::Utf8View => Keys::StringViews(array.as_string_view()),
                DataType::FixedSizeBinary(width) if *width > 0 => {
                    let width = *width as usize;
                    Keys::Fixed(width, &array.as_fixed_size_binary().value_data()[..width * array.len()])
                }
                other => {
                    return Err(ColumnError(format!(
                        "an array of type {other} has no keys of Parquet's"
                    )));
                }
            };
            let column = Self::of(keys, array.len());
            match array.nulls() {
                Some(nulls) => column.with_validity(nulls.validity(), nulls.offset()),
                None => Ok(column),
            }
        }
    }

    impl SplitBlockBloom {
        /// [`contains_column`](Self::contains_column) of an array. A null's answer is null.
        ///
        /// Fails as [`Column::of_array`] does.
        pub fn contains_array(&self, array: &dyn Array) -> Result<BooleanArray, ColumnError> {
            let column = Column::of_array(array)?;
            let mut found = vec![0_u64; array.len().div_ceil(64)];
            self.contains_column(&column, Bitmap(&mut found));
            // Arrow's bitmaps are bytes, the lowest bit first.
            found.iter_mut().for_each(|word| *word = word.to_le());
            let found = BooleanBuffer::new(Buffer::from_vec(found), 0, array.len());
            Ok(BooleanArray::new(found, array.nulls().cloned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    /// Columns of several chunks, whose bitmaps begin at any bit: the keys that are not null are
    /// inserted and found, and no others.
    #[test]
    fn nulls_are_neither_inserted_nor_found() {
        let values: Vec<i64> = (0..2500).map(|i| i * 0x1234_5678_9abc).collect();
        for first in [0, 1, 7, 8, 63] {
            let is_valid = |i: usize| i % 3 != 0 && i % 64 != 5;
            let mut bits = alloc::vec![0_u8; (first + values.len()).div_ceil(8)];
            for i in (0..values.len()).filter(|i| is_valid(*i)) {
                bits[(first + i) / 8] |= 1 << ((first + i) % 8);
            }
            let column = Column::i64s(&values).with_validity(&bits, first).unwrap();
            let filter = SplitBlockBloom::with_capacity(2500, 1e-6).unwrap();
            let model = SplitBlockBloom::with_capacity(2500, 1e-6).unwrap();
            let valid = (0..values.len()).filter(|i| is_valid(*i));
            let new: usize = valid.map(|i| usize::from(model.insert(&values[i]))).sum();
            assert_eq!(filter.insert_column(&column), new);
            assert!(filter == model, "{first}");

            let all = SplitBlockBloom::from_bitset(&[0xff; 64]).unwrap();
            let mut found = alloc::vec![0; values.len().div_ceil(64)];
            all.contains_column(&column, Bitmap(&mut found));
            for i in 0..64 * found.len() {
                let expected = i < values.len() && is_valid(i);
                assert_eq!(found[i / 64] >> (i % 64) & 1 == 1, expected, "{first} {i}");
            }
        }
    }

    /// Columns longer than a chunk of hashes; the offsets begin above 0.
    #[test]
    fn every_layout_has_the_keys_hashes() {
        let names: Vec<String> = (0..3000).map(|i| "name".repeat(i % 20) + &i.to_string()).collect();
        let (mut values, mut ends) = (Vec::from(*b"before"), alloc::vec![6_i32]);
        for name in &names {
            values.extend(name.bytes());
            ends.push(values.len() as i32);
        }
        let large: Vec<i64> = ends.iter().map(|end| i64::from(*end)).collect();
        let numbers: Vec<i32> = (0..3000).map(|i| i * 654_321).collect();
        let [strings, pairs, ints] = [(); 3].map(|()| SplitBlockBloom::with_capacity(3000, 1e-6).unwrap());
        strings.insert_all(&names);
        pairs.insert_all(values.chunks_exact(2));
        ints.insert_all(&numbers);
        for (column, model) in [
            (Column::bytes(&ends, &values), &strings),
            (Column::large_bytes(&large, &values), &strings),
            (Column::fixed(2, &values[..values.len() / 2 * 2]), &pairs),
            (Ok(Column::i32s(&numbers)), &ints),
        ] {
            let (column, filter) = (column.unwrap(), SplitBlockBloom::with_capacity(3000, 1e-6).unwrap());
            filter.insert_column(&column);
            assert!(filter == *model);
            let mut found = Vec::new();
            filter.contains_column(&column, &mut found);
            assert!(found == alloc::vec![true; column.len()]);
        }
    }

    #[test]
    fn buffers_that_do_not_fit_are_errors() {
        let error = |column: Result<Column<'_>, ColumnError>| column.unwrap_err().to_string();
        assert_eq!(error(Column::bytes(&[], b"")), "there is no offset");
        assert_eq!(error(Column::bytes(&[7], b"ann")), "value 0 ends at byte 7 of 3");
        for offsets in [[0, 2, 1], [-1, 0, 1]] {
            assert!(error(Column::bytes(&offsets, b"ann")).ends_with("below the one before, or negative"));
        }
        assert!(Column::large_bytes(&[0, i64::MAX], b"ann").is_err());
        assert!(Column::fixed(0, b"").is_err() && Column::fixed(2, b"ann").is_err());
        let column = Column::i64s(&[1; 9]);
        assert_eq!(error(column.with_validity(&[0], 0)), "9 keys have 1 bytes of validity");
        assert!(column.with_validity(&[0; 2], 7).is_ok() && column.with_validity(&[0; 2], 8).is_err());
        assert!(column.with_validity(&[0; 2], usize::MAX).is_err());
    }

    /// The types that Arrow and Parquet name differently, sliced: the keys are those of the slice.
    /// (The writers of Arrow store an unsigned integer as the signed one of the same bits.)
    #[cfg(feature = "arrow")]
    #[test]
    fn arrays_have_the_keys_that_parquet_stores() {
        use arrow_array::*;

        let inserted = |array: &dyn Array| {
            let filter = SplitBlockBloom::with_capacity(1000, 1e-6).unwrap();
            assert_eq!(filter.insert_column(&Column::of_array(&array.slice(1, 2)).unwrap()), 1);
            assert_eq!(
                filter.contains_array(&array.slice(1, 2)).unwrap(),
                alloc::vec![None, Some(true)].into()
            );
            filter
        };
        let of = |keys: [&dyn Array; 4]| keys.map(inserted);
        let small = of([
            &Int8Array::from(alloc::vec![Some(-3), None, Some(-2), Some(-1)]),
            &Int16Array::from(alloc::vec![Some(-3), None, Some(-2), Some(-1)]),
            &Int32Array::from(alloc::vec![Some(-3), None, Some(-2), Some(-1)]),
            &UInt32Array::from(alloc::vec![Some(7), None, Some(u32::MAX - 1), Some(9)]),
        ]);
        assert!(small.iter().all(|filter| filter.contains(&-2_i32)));
        let unsigned = of([
            &UInt8Array::from(alloc::vec![Some(7), None, Some(200), Some(9)]),
            &UInt16Array::from(alloc::vec![Some(7), None, Some(200), Some(9)]),
            &Date32Array::from(alloc::vec![Some(7), None, Some(200), Some(9)]),
            &Time32MillisecondArray::from(alloc::vec![Some(7), None, Some(200), Some(9)]),
        ]);
        assert!(unsigned.iter().all(|filter| filter.contains(&200_i32)));
        let long = of([
            &UInt64Array::from(alloc::vec![Some(7), None, Some(u64::MAX - 1), Some(9)]),
            &Int64Array::from(alloc::vec![Some(7), None, Some(-2), Some(9)]),
            &Time64MicrosecondArray::from(alloc::vec![Some(7), None, Some(-2), Some(9)]),
            &TimestampNanosecondArray::from(alloc::vec![Some(7), None, Some(-2), Some(9)]),
        ]);
        assert!(long.iter().all(|filter| filter.contains(&-2_i64)));
        let name = "a name that is too long to lie in a view";
        let names = alloc::vec![Some("ann"), None, Some(name), Some("eve")];
        let strings = of([
            &StringArray::from(names.clone()),
            &LargeStringArray::from(names.clone()),
            &StringViewArray::from(names.clone()),
            &BinaryViewArray::from_iter(names),
        ]);
        assert!(strings.iter().all(|filter| filter.contains(name)));

        // Writers store these in different units, or in no type of Parquet's.
        for array in [
            &Time32SecondArray::from(alloc::vec![1]) as &dyn Array,
            &TimestampSecondArray::from(alloc::vec![1]),
            &BooleanArray::from(alloc::vec![true]),
            &Float64Array::from(alloc::vec![1.0]),
        ] {
            let error = Column::of_array(array).unwrap_err().to_string();
            assert!(error.ends_with("has no keys of Parquet's"), "{error}");
        }
    }
}
