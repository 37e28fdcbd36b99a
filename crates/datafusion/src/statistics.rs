//! `bloom_figures(filter)`: what is in a value of `bloom_agg`.

use crate::value::Filter;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, StructArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// `bloom_figures(filter)`: a struct of the keys' class, bytes, estimated keys, and present rate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BloomFigures {
    signature: Signature,
}

impl BloomFigures {
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

impl ScalarUDFImpl for BloomFigures {
    fn name(&self) -> &str {
        "bloom_figures"
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
            return exec_err!("bloom_figures takes a filter");
        };
        use datafusion::arrow::array::AsArray;
        let filters = values.as_binary_view().iter();
        let filters = filters.map(|value| value.map(Filter::parse).transpose());
        let filters: Vec<Option<Filter>> = filters.collect::<Result<_>>()?;
        fn column<T>(filters: &[Option<Filter>], of: impl Fn(&Filter) -> T) -> Vec<Option<T>> {
            filters.iter().map(|filter| filter.as_ref().map(&of)).collect()
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(column(&filters, |filter| filter.class.to_string()))),
            Arc::new(Int64Array::from(column(&filters, |filter| {
                filter.memory_bytes() as i64
            }))),
            Arc::new(Int64Array::from(column(&filters, |filter| filter.keys() as i64))),
            Arc::new(Float64Array::from(column(&filters, Filter::rate))),
        ];
        let nulls = NullBuffer::from(filters.iter().map(Option::is_some).collect::<Vec<_>>());
        Ok(ColumnarValue::Array(Arc::new(StructArray::new(
            fields(),
            columns,
            Some(nulls),
        ))))
    }
}
