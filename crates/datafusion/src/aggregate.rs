//! Both aggregates: how DataFusion's batches and states reach a set of keys. The set is a
//! [`Growing`] for `bloom_agg`, and Spark's filter for `bloom_filter_agg`.

use crate::keys::{Class, Murmur, constant, hash_array, hash_valid, nulls_of};
use crate::value::{Growing, Plan};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};
use std::fmt::Debug;
use std::sync::Arc;

/// A set of keys of one group.
pub(crate) trait Sketch: Debug + Send + Sync + 'static {
    fn update(&mut self, values: &ArrayRef) -> Result<()>;
    fn merge(&mut self, state: &[u8]) -> Result<()>;
    fn state(&mut self) -> Result<ScalarValue>;
    fn finish(&mut self) -> Result<ScalarValue>;
    fn memory_bytes(&self) -> usize;
}

/// A [`Sketch`] as DataFusion's accumulator.
#[derive(Debug)]
pub(crate) struct SketchAccumulator<S>(pub(crate) S);

impl<S: Sketch> Accumulator for SketchAccumulator<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update(&values[0])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        each_binary(states[0].as_ref(), |_, state| self.0.merge(state))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.0.state()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.finish()
    }

    fn size(&self) -> usize {
        size_of::<S>() + self.0.memory_bytes()
    }
}

/// Calls `each(row, bytes)` for every value of a binary array that is not null.
fn each_binary(array: &dyn Array, mut each: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
    let mut all = |values: &mut dyn Iterator<Item = Option<&[u8]>>| {
        let mut rows = values.enumerate();
        rows.try_for_each(|(row, value)| value.map_or(Ok(()), |value| each(row, value)))
    };
    match array.data_type() {
        DataType::Binary => all(&mut array.as_binary::<i32>().iter()),
        DataType::LargeBinary => all(&mut array.as_binary::<i64>().iter()),
        DataType::BinaryView => all(&mut array.as_binary_view().iter()),
        other => exec_err!("a state of type {other} is not binary"),
    }
}

/// The arguments after the value, which are the same for all rows.
pub(crate) struct Arguments {
    pub(crate) class: Class,
    pub(crate) expected: Option<usize>,
    /// The third one: a rate, or a number of bits.
    pub(crate) third: Option<ScalarValue>,
    pub(crate) fourth: Option<ScalarValue>,
}

impl Arguments {
    pub(crate) fn of(args: &AccumulatorArgs<'_>) -> Result<Self> {
        let constant = |i: usize| {
            let value = args.exprs.get(i).map(constant).transpose()?;
            Ok::<_, datafusion::common::DataFusionError>(value.filter(|value| !value.is_null()))
        };
        let expected = match constant(1)? {
            None => None,
            Some(ScalarValue::Int64(Some(keys))) if keys > 0 => Some(keys as usize),
            Some(other) => return exec_err!("{} expected keys of {} are below 1", other, args.name),
        };
        Ok(Self {
            class: Class::of(args.expr_fields[0].data_type())?,
            expected,
            third: constant(2)?,
            fourth: constant(3)?,
        })
    }
}

/// A false-positive rate; fails unless it is between 0 and 1.
pub(crate) fn checked_rate(rate: f64) -> Result<f64> {
    if rate > 0.0 && rate < 1.0 {
        Ok(rate)
    } else {
        exec_err!("a false-positive rate of {rate} is not between 0 and 1")
    }
}

/// The types that an aggregate takes: a key, and numbers.
pub(crate) fn coerce(name: &str, types: &[DataType], most: usize) -> Result<Vec<DataType>> {
    if types.is_empty() || types.len() > most {
        return plan_err!("{name} takes 1 to {most} arguments, not {}", types.len());
    }
    let mut out = types.to_vec();
    if out[0] == DataType::Null {
        out[0] = DataType::Int64;
    }
    Class::of(&out[0])?;
    for (i, of) in out.iter_mut().enumerate().skip(1) {
        *of = match &*of {
            of if of.is_integer() || of.is_null() => DataType::Int64,
            of if i == 2 && of.is_numeric() => DataType::Float64,
            of => return plan_err!("argument {} of {name} is of type {of}, not a number", i + 1),
        };
    }
    Ok(out)
}

/// The one field of a state.
pub(crate) fn state_field(args: &StateFieldsArgs<'_>, data_type: DataType) -> Vec<FieldRef> {
    vec![Arc::new(Field::new(format!("{}[filter]", args.name), data_type, true))]
}

/// `bloom_agg(value [, expected [, rate]])`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct BloomAgg {
    signature: Signature,
}

impl BloomAgg {
    pub(crate) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

/// The false-positive rate of a filter for which none was asked.
pub(crate) const DEFAULT_RATE: f64 = 0.01;

impl Plan {
    fn of(args: &AccumulatorArgs<'_>) -> Result<Self> {
        let Arguments {
            class, expected, third, ..
        } = Arguments::of(args)?;
        let rate = match third {
            None => DEFAULT_RATE,
            Some(ScalarValue::Float64(Some(rate))) => checked_rate(rate)?,
            Some(other) => return exec_err!("a false-positive rate of {other} is not between 0 and 1"),
        };
        Ok(Self { class, expected, rate })
    }
}

impl AggregateUDFImpl for BloomAgg {
    fn name(&self) -> &str {
        "bloom_agg"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        coerce(self.name(), types, 3)
    }

    /// A view, so that a join that repeats the filter for every row copies no filter.
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_field(&args, DataType::BinaryView))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(SketchAccumulator(PlannedGrowing {
            plan: Plan::of(&args)?,
            set: Growing::default(),
        })))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups {
            plan: Plan::of(&args)?,
            sets: vec![],
            bytes: 0,
        }))
    }
}

#[derive(Debug)]
struct PlannedGrowing {
    plan: Plan,
    set: Growing,
}

impl Sketch for PlannedGrowing {
    fn update(&mut self, values: &ArrayRef) -> Result<()> {
        self.set.insert(&hash_valid(values, &Murmur)?, &self.plan)
    }

    fn merge(&mut self, state: &[u8]) -> Result<()> {
        self.set.merge(state, &self.plan)
    }

    fn state(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::BinaryView(Some(self.set.state(&self.plan)?)))
    }

    fn finish(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::BinaryView(Some(self.set.finish(&self.plan)?)))
    }

    fn memory_bytes(&self) -> usize {
        self.set.memory_bytes()
    }
}

/// The sets of many groups. A batch is hashed once for all of them.
struct Groups {
    plan: Plan,
    sets: Vec<Growing>,
    /// The memory of all sets.
    bytes: usize,
}

impl Groups {
    fn grow(&mut self, groups: usize) {
        self.sets.resize_with(groups.max(self.sets.len()), Growing::default);
    }

    fn change<T>(&mut self, group: usize, change: impl FnOnce(&mut Growing, &Plan) -> Result<T>) -> Result<T> {
        let set = &mut self.sets[group];
        let before = set.memory_bytes();
        let out = change(set, &self.plan);
        self.bytes = self.bytes + set.memory_bytes() - before;
        out
    }

    fn emit(&mut self, emit_to: EmitTo, bytes: impl Fn(&mut Growing, &Plan) -> Result<Vec<u8>>) -> Result<ArrayRef> {
        let mut sets = emit_to.take_needed(&mut self.sets);
        let mut out = BinaryViewBuilder::with_capacity(sets.len());
        for set in &mut sets {
            self.bytes -= set.memory_bytes();
            out.try_append_value(bytes(set, &self.plan)?)?;
        }
        Ok(Arc::new(out.finish()))
    }
}

/// Whether a row passes a `FILTER` clause.
fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        let hashes = hash_array(values[0].as_ref(), &Murmur)?;
        let nulls = nulls_of(values[0].as_ref());
        // Runs of one group, as sorted input has them, are inserted at once.
        let mut run = vec![];
        for (row, (hash, group)) in hashes.iter().zip(group_indices).enumerate() {
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) && passes(opt_filter, row) {
                run.push(*hash);
            }
            if group_indices.get(row + 1) != Some(group) && !run.is_empty() {
                self.change(*group, |set, plan| set.insert(&run, plan))?;
                run.clear();
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        self.emit(emit_to, Growing::finish)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.emit(emit_to, Growing::state)?])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.grow(total_num_groups);
        each_binary(values[0].as_ref(), |row, state| {
            self.change(group_indices[row], |set, plan| set.merge(state, plan))
        })
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let hashes = hash_array(values[0].as_ref(), &Murmur)?;
        let nulls = nulls_of(values[0].as_ref());
        let mut out = BinaryViewBuilder::with_capacity(hashes.len());
        for (row, hash) in hashes.iter().enumerate() {
            let is_key = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) && passes(opt_filter, row);
            let mut set = Growing::default();
            set.insert(if is_key { std::slice::from_ref(hash) } else { &[] }, &self.plan)?;
            out.append_value(set.state(&self.plan)?);
        }
        Ok(vec![Arc::new(out.finish())])
    }

    fn size(&self) -> usize {
        self.sets.capacity() * size_of::<Growing>() + self.bytes
    }
}
