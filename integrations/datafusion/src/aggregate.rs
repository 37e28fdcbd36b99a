//! The code of both aggregates: how arguments, batches and states of DataFusion reach a set of
//! keys. `bloom.rs` and `spark.rs` have the sets.

use crate::keys::{Class, HashKeys, constant, hash_array, hash_valid, nulls_of};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryViewBuilder, BooleanArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, Signature, Volatility};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

/// The set of keys of one group.
pub(crate) trait Sketch: Debug + Default + Send + Sync + 'static {
    /// The plan that all groups of one aggregate share.
    type Plan: Debug + Send + Sync + 'static;
    type Hasher: HashKeys + Default;

    /// The aggregate's name in SQL, the most arguments that it takes, and the type of its value.
    const NAME: &str;
    const MAX_ARGUMENTS: usize;
    const TYPE: DataType;

    fn plan(arguments: Arguments) -> Result<Self::Plan>;
    fn insert(&mut self, hashes: &[HashOf<Self>], plan: &Self::Plan) -> Result<()>;
    /// Adds what another set's `state` wrote.
    fn merge(&mut self, state: &[u8], plan: &Self::Plan) -> Result<()>;
    fn state(&mut self, plan: &Self::Plan) -> Result<Vec<u8>>;
    /// The value; `None` is NULL. The set stays as it is: a window takes the value after each of
    /// its rows.
    fn finish(&mut self, plan: &Self::Plan) -> Result<Option<Vec<u8>>>;
    /// A value as one of the aggregate's type.
    fn scalar(value: Option<Vec<u8>>) -> ScalarValue;
    /// The values of some groups as a column of this type.
    fn column(values: Vec<Option<Vec<u8>>>) -> Result<ArrayRef>;
    fn memory_bytes(&self) -> usize;
}

type HashOf<S> = <<S as Sketch>::Hasher as HashKeys>::Hash;

/// The hashes of a small set.
#[derive(Debug, Default)]
pub(crate) struct Hashes<H> {
    list: Vec<H>,
    /// The number of hashes at which duplicates go.
    compact_at: usize,
}

impl<H: Copy + Ord> Hashes<H> {
    /// Adds hashes; returns whether duplicates went meanwhile, so that the length is the number of
    /// keys.
    pub(crate) fn insert(&mut self, hashes: &[H]) -> bool {
        self.list.extend_from_slice(hashes);
        let is_due = self.list.len() >= self.compact_at.max(128);
        if is_due {
            self.compact();
        }
        is_due
    }

    /// Sorts the hashes, and removes duplicates.
    pub(crate) fn compact(&mut self) -> &[H] {
        self.list.sort_unstable();
        self.list.dedup();
        self.compact_at = 2 * self.list.len();
        &self.list
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn take(&mut self) -> Vec<H> {
        self.compact_at = 0;
        std::mem::take(&mut self.list)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.list.capacity() * size_of::<H>()
    }
}

/// The aggregate of a set.
#[derive(Debug)]
pub(crate) struct Aggregate<S> {
    signature: Signature,
    set: PhantomData<S>,
}

impl<S> Aggregate<S> {
    pub(crate) fn new() -> Self {
        Self {
            signature: Signature::user_defined(Volatility::Immutable),
            set: PhantomData,
        }
    }
}

// All aggregates of one set are the same function.
impl<S> PartialEq for Aggregate<S> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<S> Eq for Aggregate<S> {}

impl<S> Hash for Aggregate<S> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<S: Sketch> AggregateUDFImpl for Aggregate<S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// A key, and numbers.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (name, most) = (S::NAME, S::MAX_ARGUMENTS);
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
                of => return plan_err!("argument {} of {name} is of type {of}: pass a number", i + 1),
            };
        }
        Ok(out)
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(S::TYPE)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let name = format!("{}[filter]", args.name);
        Ok(vec![Arc::new(Field::new(name, DataType::BinaryView, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let (plan, set) = (S::plan(Arguments::of(S::NAME, &args)?)?, S::default());
        Ok(Box::new(SketchAccumulator { plan, set }))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let (plan, sets, bytes) = (S::plan(Arguments::of(S::NAME, &args)?)?, Vec::<S>::new(), 0);
        Ok(Box::new(Groups { plan, sets, bytes }))
    }
}

/// A column of binary views. A join that repeats a value for every row does not copy the filter.
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
struct SketchAccumulator<S: Sketch> {
    plan: S::Plan,
    set: S,
}

impl<S: Sketch> Accumulator for SketchAccumulator<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.set
            .insert(&hash_valid(&values[0], &S::Hasher::default())?, &self.plan)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        each_binary(states[0].as_ref(), |_, state| self.set.merge(state, &self.plan))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::BinaryView(Some(self.set.state(&self.plan)?))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.set.finish(&self.plan).map(S::scalar)
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
        other => exec_err!("a state of an aggregate is binary, not of type {other}"),
    }
}

/// The class of the keys, and the other arguments, which are the same for all rows.
pub(crate) struct Arguments {
    pub(crate) class: Class,
    pub(crate) expected: Option<usize>,
    /// The third argument: a rate, or a number of bits.
    pub(crate) third: Option<ScalarValue>,
    pub(crate) fourth: Option<ScalarValue>,
}

impl Arguments {
    fn of(name: &str, args: &AccumulatorArgs<'_>) -> Result<Self> {
        let constant = |i: usize| {
            let value = args.exprs.get(i).map(constant).transpose()?;
            Ok::<_, DataFusionError>(value.filter(|value| !value.is_null()))
        };
        let expected = match constant(1)? {
            None => None,
            Some(ScalarValue::Int64(Some(keys))) if keys > 0 => Some(keys as usize),
            Some(other) => return exec_err!("{name} expects {other} keys: pass at least 1"),
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
        exec_err!("a false-positive rate of {rate} is not between 0 and 1, both excluded")
    }
}

/// The sets of many groups. A batch is hashed once for all of them.
struct Groups<S: Sketch> {
    plan: S::Plan,
    sets: Vec<S>,
    /// The memory of all sets.
    bytes: usize,
}

impl<S: Sketch> Groups<S> {
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

    /// Removes the first sets; returns what `bytes` makes of each.
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
        let hashes = hash_array(values[0].as_ref(), &S::Hasher::default())?;
        let nulls = nulls_of(values[0].as_ref());
        // A run of rows of one group, as in sorted input, is inserted at once.
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
        let hashes = hash_array(values[0].as_ref(), &S::Hasher::default())?;
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
