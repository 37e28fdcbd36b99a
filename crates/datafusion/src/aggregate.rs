//! Both aggregates: how DataFusion's batches and states reach a set of keys. The set is a
//! [`Growing`] for `bloom_agg`, and Spark's filter for `bloom_filter_agg`.

use crate::keys::{Class, HashKeys, Murmur, constant, hash_array, hash_valid, nulls_of};
use crate::value::{Growing, Plan};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};
use std::fmt::Debug;
use std::sync::Arc;

/// A set of keys of one group: a [`Growing`], or Spark's filter.
pub(crate) trait Sketch: Debug + Default + Send + Sync + 'static {
    /// What all groups of one aggregate share.
    type Plan: Debug + Send + Sync + 'static;
    type Hasher: HashKeys;

    fn hasher(plan: &Self::Plan) -> &Self::Hasher;
    fn insert(&mut self, hashes: &[HashOf<Self>], plan: &Self::Plan) -> Result<()>;
    /// Adds what another one's `state` wrote.
    fn merge(&mut self, state: &[u8], plan: &Self::Plan) -> Result<()>;
    fn state(&mut self, plan: &Self::Plan) -> Result<Vec<u8>>;
    /// The value; `None` is NULL.
    fn finish(&mut self, plan: &Self::Plan) -> Result<Option<Vec<u8>>>;
    /// A value as one of the aggregate's type.
    fn scalar(value: Option<Vec<u8>>) -> ScalarValue;
    /// The values of some groups as a column of this type.
    fn column(values: Vec<Option<Vec<u8>>>) -> Result<ArrayRef>;
    fn memory_bytes(&self) -> usize;
}

type HashOf<S> = <<S as Sketch>::Hasher as HashKeys>::Hash;

/// A column of binary views. A join that repeats a value of it for every row copies no filter.
pub(crate) fn views(values: Vec<Option<Vec<u8>>>) -> Result<ArrayRef> {
    let mut out = BinaryViewBuilder::with_capacity(values.len());
    for value in values {
        match value {
            Some(value) => out.try_append_value(value)?,
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

/// The accumulator of an aggregate without groups.
#[derive(Debug)]
pub(crate) struct SketchAccumulator<S: Sketch> {
    plan: S::Plan,
    set: S,
}

impl<S: Sketch> SketchAccumulator<S> {
    pub(crate) fn new(plan: S::Plan) -> Self {
        let set = S::default();
        Self { plan, set }
    }
}

impl<S: Sketch> Accumulator for SketchAccumulator<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.set
            .insert(&hash_valid(&values[0], S::hasher(&self.plan))?, &self.plan)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        each_binary(states[0].as_ref(), |_, state| self.set.merge(state, &self.plan))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::BinaryView(Some(self.set.state(&self.plan)?))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(S::scalar(self.set.finish(&self.plan)?))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.set.memory_bytes()
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
pub(crate) fn state_field(args: &StateFieldsArgs<'_>) -> Vec<FieldRef> {
    let name = format!("{}[filter]", args.name);
    vec![Arc::new(Field::new(name, DataType::BinaryView, true))]
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

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_field(&args))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(SketchAccumulator::<Growing>::new(Plan::of(&args)?)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::<Growing>::new(Plan::of(&args)?)))
    }
}

impl Sketch for Growing {
    type Plan = Plan;
    type Hasher = Murmur;

    fn hasher(_: &Plan) -> &Murmur {
        &Murmur
    }

    fn insert(&mut self, hashes: &[u64], plan: &Plan) -> Result<()> {
        Growing::insert(self, hashes, plan)
    }

    fn merge(&mut self, state: &[u8], plan: &Plan) -> Result<()> {
        Growing::merge(self, state, plan)
    }

    fn state(&mut self, plan: &Plan) -> Result<Vec<u8>> {
        Growing::state(self, plan)
    }

    fn finish(&mut self, plan: &Plan) -> Result<Option<Vec<u8>>> {
        Growing::finish(self, plan).map(Some)
    }

    fn scalar(value: Option<Vec<u8>>) -> ScalarValue {
        ScalarValue::BinaryView(value)
    }

    fn column(values: Vec<Option<Vec<u8>>>) -> Result<ArrayRef> {
        views(values)
    }

    fn memory_bytes(&self) -> usize {
        Growing::memory_bytes(self)
    }
}

/// The sets of many groups. A batch is hashed once for all of them.
pub(crate) struct Groups<S: Sketch> {
    plan: S::Plan,
    sets: Vec<S>,
    /// The memory of all sets.
    bytes: usize,
}

impl<S: Sketch> Groups<S> {
    pub(crate) fn new(plan: S::Plan) -> Self {
        let (sets, bytes) = (vec![], 0);
        Self { plan, sets, bytes }
    }

    fn grow(&mut self, groups: usize) {
        self.sets.resize_with(groups.max(self.sets.len()), S::default);
    }

    fn change(&mut self, group: usize, change: impl FnOnce(&mut S, &S::Plan) -> Result<()>) -> Result<()> {
        let set = &mut self.sets[group];
        let before = set.memory_bytes();
        let out = change(set, &self.plan);
        self.bytes = self.bytes + set.memory_bytes() - before;
        out
    }

    /// What `bytes` makes of the first sets, which go.
    fn emit(
        &mut self,
        emit_to: EmitTo,
        bytes: impl Fn(&mut S, &S::Plan) -> Result<Option<Vec<u8>>>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let sets = emit_to.take_needed(&mut self.sets);
        self.bytes -= sets.iter().map(S::memory_bytes).sum::<usize>();
        sets.into_iter().map(|mut set| bytes(&mut set, &self.plan)).collect()
    }
}

/// Whether a row passes a `FILTER` clause.
fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<S: Sketch> GroupsAccumulator for Groups<S> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.grow(total_num_groups);
        let hashes = hash_array(values[0].as_ref(), S::hasher(&self.plan))?;
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
        S::column(self.emit(emit_to, S::finish)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let states = self.emit(emit_to, |set, plan| set.state(plan).map(Some))?;
        Ok(vec![views(states)?])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.grow(total_num_groups);
        each_binary(values[0].as_ref(), |row, state| {
            self.change(group_indices[row], |set, plan| set.merge(state, plan))
        })
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let hashes = hash_array(values[0].as_ref(), S::hasher(&self.plan))?;
        let nulls = nulls_of(values[0].as_ref());
        let mut states = Vec::with_capacity(hashes.len());
        for (row, hash) in hashes.iter().enumerate() {
            let is_key = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) && passes(opt_filter, row);
            let mut set = S::default();
            set.insert(if is_key { std::slice::from_ref(hash) } else { &[] }, &self.plan)?;
            states.push(Some(set.state(&self.plan)?));
        }
        Ok(vec![views(states)?])
    }

    fn size(&self) -> usize {
        self.sets.capacity() * size_of::<S>() + self.bytes
    }
}
