//! `bloom_statistics(filter)`: the content of a value of `bloom_agg`.

use crate::value::Filter;
use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, StringArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// `bloom_statistics(filter)`: a struct of the class of the keys, the bytes, the estimated number
/// of keys, and the false-positive rate now.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BloomStatistics {
    signature: Signature,
}

impl BloomStatistics {
    pub(crate) fn new() -> Self {
        Self {
            signature: Signature::exact(vec![DataType::BinaryView], Volatility::Immutable),
        }
    }
}

fn fields() -> Fields {
    Fields::from(vec![
        Field::new("class", DataType::Utf8, true),
        Field::new("bytes", DataType::Int64, true),
        Field::new("keys", DataType::Int64, true),
        Field::new("rate", DataType::Float64, true),
    ])
}

impl ScalarUDFImpl for BloomStatistics {
    fn name(&self) -> &str {
        "bloom_statistics"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [values] = &arrays[..] else {
            return exec_err!("bloom_statistics takes one filter, not {} arguments", arrays.len());
        };
        let filters = values.as_binary_view().iter();
        let read = |filter: &[u8]| {
            let filter = Filter::parse(filter)?;
            let (keys, rate) = filter.keys_and_rate();
            Ok((
                filter.class.to_string(),
                filter.memory_bytes() as i64,
                keys as i64,
                rate,
            ))
        };
        let rows = filters.map(|filter| filter.map(read).transpose());
        let rows = rows.collect::<Result<Vec<_>>>()?;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter(rows.iter().map(|row| Some(&row.as_ref()?.0)))),
            Arc::new(Int64Array::from_iter(rows.iter().map(|row| Some(row.as_ref()?.1)))),
            Arc::new(Int64Array::from_iter(rows.iter().map(|row| Some(row.as_ref()?.2)))),
            Arc::new(Float64Array::from_iter(rows.iter().map(|row| Some(row.as_ref()?.3)))),
        ];
        let nulls = NullBuffer::from(rows.iter().map(Option::is_some).collect::<Vec<_>>());
        Ok(ColumnarValue::Array(Arc::new(StructArray::new(
            fields(),
            columns,
            Some(nulls),
        ))))
    }
}
