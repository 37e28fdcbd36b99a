//! Finds the expressions that cannot fail: a query can compute them for rows that it drops.
//!
//! The rule for joins asks this. The optimizer moves a filter below conditions, projections, groups
//! and unions, and to both sides of joins, and the filter's key is computed there. The small side
//! is read even if the join would not have read it. So the rule needs a value for every row. The
//! list is of what cannot fail, so that it stays right when DataFusion gets new expressions. Any
//! function may fail.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions::core::get_field;
use datafusion::logical_expr::utils::{grouping_set_to_exprlist, merge_schema};
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator};

/// Whether no expression in a plan can fail.
pub(crate) fn is_total_plan(plan: &LogicalPlan) -> Result<bool> {
    let may_fail = plan.exists(|node| {
        let schema = match node {
            // Its conditions can use columns that are not in its result.
            LogicalPlan::TableScan(scan) => {
                DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?
            }
            _ => merge_schema(&node.inputs()),
        };
        for expr in node.expressions() {
            if !is_total_expr(&expr, &schema)? {
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    Ok(!may_fail)
}

/// Whether an expression on a plan's rows cannot fail wherever in the plan it is computed, with its
/// columns replaced by the expressions that compute them.
pub(crate) fn is_total_within(expr: &Expr, plan: &LogicalPlan) -> Result<bool> {
    if !is_total_expr(expr, plan.schema())? {
        return Ok(false);
    }
    for column in expr.column_refs() {
        if !is_total_column(column, plan)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// [`is_total_within`] for a column of a plan. DataFusion's optimizer moves conditions through
/// these nodes. A column that no other expression replaces is a value.
fn is_total_column(column: &Column, plan: &LogicalPlan) -> Result<bool> {
    let at = plan.schema().index_of_column(column)?;
    let of_input = |input: &LogicalPlan| {
        let (qualifier, field) = input.schema().qualified_field(at);
        is_total_column(&Column::from((qualifier, field)), input)
    };
    match plan {
        LogicalPlan::Projection(projection) => is_total_within(&projection.expr[at], &projection.input),
        LogicalPlan::SubqueryAlias(alias) => of_input(&alias.input),
        LogicalPlan::Union(union) => {
            let mut inputs = union.inputs.iter();
            inputs.try_fold(true, |is_total, input| Ok(is_total && of_input(input)?))
        }
        LogicalPlan::Aggregate(aggregate) => match grouping_set_to_exprlist(&aggregate.group_expr)?.get(at) {
            Some(group) => is_total_within(group, &aggregate.input),
            None => Ok(true),
        },
        LogicalPlan::Join(join) => {
            // The optimizer also applies a condition to an equal column of the other side.
            let equal = join.on.iter().filter_map(|pair| match pair {
                (Expr::Column(left), Expr::Column(right)) if left == column => Some((right, &join.right)),
                (Expr::Column(left), Expr::Column(right)) if right == column => Some((left, &join.left)),
                _ => None,
            });
            let own = [(column, &join.left), (column, &join.right)];
            let mut columns = own.into_iter().chain(equal);
            columns.try_fold(true, |is_total, (column, side)| {
                Ok(is_total && (!side.schema().has_column(column) || is_total_column(column, side)?))
            })
        }
        LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Distinct(Distinct::All(_))
        | LogicalPlan::Window(_)
        | LogicalPlan::Unnest(_) => match plan.inputs()[..] {
            [input] if input.schema().has_column(column) => is_total_column(column, input),
            _ => Ok(true),
        },
        other => Ok(other.inputs().is_empty()),
    }
}

fn is_total_expr(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let may_fail = |node: &Expr| Ok(!is_total_node(node, schema).unwrap_or(false));
    Ok(!expr.exists(may_fail)?)
}

/// Whether an expression cannot fail if its parts do not.
fn is_total_node(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let type_of = |expr: &Expr| expr.get_type(schema);
    Ok(match expr {
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::Literal(..)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::InList(_) => true,
        Expr::Like(like) => matches!(*like.pattern, Expr::Literal(..)),
        // The field of a struct.
        Expr::ScalarFunction(function) => {
            function.func == get_field()
                && matches!(&function.args[..], [of, _] if matches!(type_of(of)?, DataType::Struct(_)))
        }
        Expr::Negative(of) => {
            let of = type_of(of)?;
            of.is_signed_integer() || of.is_floating()
        }
        Expr::Cast(cast) => is_total_cast(&type_of(&cast.expr)?, cast.field.data_type()),
        Expr::TryCast(cast) => {
            let (from, to) = (type_of(&cast.expr)?, cast.field.data_type());
            is_total_cast(&from, to) || (is_number(&from) || from.is_string()) && is_number(to)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And
            | Operator::Or
            | Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom => true,
            // An overflow is not an error, except for decimals and times.
            Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo => {
                let are_numbers = is_number(&type_of(left)?) && is_number(&type_of(right)?);
                are_numbers && (!matches!(op, Operator::Divide | Operator::Modulo) || is_divisor(right))
            }
            _ => false,
        },
        _ => false,
    })
}

/// Whether a type is that of integers or floats.
fn is_number(of: &DataType) -> bool {
    of.is_integer() || of.is_floating()
}

/// Whether a division by this integer or float has a quotient for every dividend. The least integer
/// divided by -1 has none.
fn is_divisor(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else {
        return false;
    };
    matches!(value.cast_to(&DataType::Int64), Ok(ScalarValue::Int64(Some(value))) if value != 0 && value != -1)
        || value.data_type().is_floating()
}

/// Whether the second type has all values of the first one.
fn is_total_cast(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        _ if from == to => true,
        (Null, _) => true,
        (Dictionary(_, from), to) => is_total_cast(from, to),
        (Boolean, to) => is_number(to) || is_wide_string(to),
        (from, to) if from.is_integer() && to.is_integer() => {
            let (bits, own) = (from.primitive_width(), to.primitive_width());
            if from.is_unsigned_integer() || to.is_signed_integer() {
                bits < own || bits == own && from.is_unsigned_integer() == to.is_unsigned_integer()
            } else {
                false
            }
        }
        (from, Float32 | Float64) if from.is_integer() => true,
        (Float16, Float32 | Float64) | (Float32, Float64) => true,
        (Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..), Float64) => true,
        (
            from,
            Decimal32(precision, scale)
            | Decimal64(precision, scale)
            | Decimal128(precision, scale)
            | Decimal256(precision, scale),
        ) => {
            let (own, own_scale) = match from {
                Int8 | UInt8 => (3, 0),
                Int16 | UInt16 => (5, 0),
                Int32 | UInt32 => (10, 0),
                Int64 => (19, 0),
                UInt64 => (20, 0),
                Decimal32(own, scale) | Decimal64(own, scale) | Decimal128(own, scale) | Decimal256(own, scale) => {
                    (*own, *scale)
                }
                _ => return false,
            };
            let digits = |precision: u8, scale: i8| i16::from(precision) - i16::from(scale);
            *scale >= own_scale && digits(*precision, *scale) >= digits(own, own_scale)
        }
        (from, to) if from.is_integer() || from.is_string() => is_wide_string(to),
        (Binary | LargeBinary | BinaryView | FixedSizeBinary(_), LargeBinary | BinaryView) => true,
        (Date32, Date64) => true,
        // The moment is the same in every zone.
        (Timestamp(unit, Some(_)), Timestamp(other, _)) => unit == other,
        _ => false,
    }
}

/// Whether a type is that of strings, of which a column may have more than 2 GiB.
fn is_wide_string(of: &DataType) -> bool {
    matches!(of, DataType::LargeUtf8 | DataType::Utf8View)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        Array, ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
    };
    use datafusion::arrow::compute::{CastOptions, cast, cast_with_options};
    use datafusion::common::ToDFSchema;
    use datafusion::logical_expr::{binary_expr, col, lit, try_cast};
    use datafusion::prelude::SessionContext;
    use std::sync::Arc;

    /// The least and the largest values of all types.
    fn extremes() -> Vec<ArrayRef> {
        let longs = Int64Array::from_iter((0..64).flat_map(|bits| [i64::MAX >> bits, i64::MIN >> bits, 0]));
        let unsigned = UInt64Array::from_iter_values((0..64).map(|bits| u64::MAX >> bits));
        let nines = 10_i128.pow(38) - 1;
        let decimals = Decimal128Array::from_iter_values((0..38).flat_map(|digits| {
            let value = nines / 10_i128.pow(digits);
            [value, -value]
        }));
        let floats = Float64Array::from(vec![f64::MIN, f64::MAX, f64::NAN, f64::INFINITY, -0.0, 5e-324, 0.1]);
        vec![
            Arc::new(longs),
            Arc::new(unsigned),
            Arc::new(decimals.with_precision_and_scale(38, 0).unwrap()),
            Arc::new(floats),
            Arc::new(StringArray::from(vec![
                "",
                "x",
                "1e999",
                "\u{10ffff}",
                "-0",
                "12345678901234567890",
            ])),
        ]
    }

    fn types() -> Vec<DataType> {
        use DataType::*;
        let mut all = vec![
            Boolean, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, Float32,
        ];
        all.extend([
            Float64,
            Utf8,
            LargeUtf8,
            Utf8View,
            Binary,
            LargeBinary,
            BinaryView,
            Date32,
            Date64,
        ]);
        for scale in [-3, 0, 2, 9] {
            all.extend([
                Decimal32(9, scale),
                Decimal64(18, scale),
                Decimal128(38, scale),
                Decimal256(76, scale),
            ]);
            all.extend([Decimal128(10, scale), Decimal128(20, scale), Decimal256(40, scale)]);
        }
        use datafusion::arrow::datatypes::TimeUnit::*;
        for unit in [Second, Millisecond, Microsecond, Nanosecond] {
            all.extend([Timestamp(unit, None), Timestamp(unit, Some("+02:00".into()))]);
        }
        all
    }

    #[test]
    fn casts_that_cannot_fail_do_not() {
        let checked = CastOptions {
            safe: false,
            ..CastOptions::default()
        };
        let mut total = 0;
        for from in types() {
            // Values that this type does not have become nulls.
            let arrays = extremes().into_iter().filter_map(|values| cast(&values, &from).ok());
            let arrays: Vec<_> = arrays.filter(|array| array.null_count() < array.len()).collect();
            // Arrow panics for some of the other casts.
            for to in types().into_iter().filter(|to| is_total_cast(&from, to)) {
                total += usize::from(from != to);
                for array in &arrays {
                    let result = cast_with_options(array, &to, &checked);
                    let result = result.unwrap_or_else(|error| panic!("{from} to {to}: {error}"));
                    assert_eq!(result.null_count(), array.null_count(), "{from} to {to}");
                }
            }
        }
        assert!(total > 200, "{total}");
    }

    #[test]
    fn operators_that_cannot_fail_do_not() {
        let ctx = SessionContext::new();
        let [longs, unsigned, decimals, floats, strings] = &extremes()[..] else {
            unreachable!()
        };
        let (mut total, mut failed) = (0, 0);
        for (values, numbers) in [
            (
                longs,
                vec![
                    lit(0_i64),
                    lit(-1_i64),
                    lit(7_i64),
                    lit(i64::MIN),
                    lit(ScalarValue::Int64(None)),
                ],
            ),
            (unsigned, vec![lit(0_u64), lit(7_u64)]),
            (
                decimals,
                vec![
                    lit(ScalarValue::Decimal128(Some(0), 38, 0)),
                    lit(ScalarValue::Decimal128(Some(7), 38, 0)),
                ],
            ),
            (floats, vec![lit(0.0), lit(0.5), lit(f64::NAN)]),
            (strings, vec![lit("x")]),
        ] {
            // Every value beside every other.
            let rows = values.len();
            let pairs = (0..rows * rows).map(|pair| (pair / rows, pair % rows));
            let take = |rows: Vec<u32>| {
                datafusion::arrow::compute::take(values, &datafusion::arrow::array::UInt32Array::from(rows), None)
                    .unwrap()
            };
            let left = take(pairs.clone().map(|(row, _)| row as u32).collect());
            let right = take(pairs.map(|(_, row)| row as u32).collect());
            let batch = RecordBatch::try_from_iter([("l", left), ("r", right)]).unwrap();
            let schema = batch.schema().to_dfschema().unwrap();
            let mut exprs = vec![
                -col("l"),
                try_cast(col("l"), DataType::Int8),
                try_cast(col("l"), DataType::Float32),
            ];
            for right in [vec![col("r")], numbers].concat() {
                use Operator::*;
                for op in [Plus, Minus, Multiply, Divide, Modulo, Eq, Lt, IsDistinctFrom] {
                    exprs.push(binary_expr(col("l"), op, right.clone()));
                }
            }
            for expr in exprs {
                let is_total = is_total_expr(&expr, &schema).unwrap();
                let physical = ctx.create_physical_expr(expr.clone(), &schema);
                let result = physical.and_then(|expr| expr.evaluate(&batch));
                total += usize::from(is_total);
                failed += usize::from(result.is_err());
                assert!(result.is_ok() || !is_total, "{expr}: {:?}", result.err());
            }
        }
        assert!(total > 50 && failed > 10, "{total} {failed}");
    }
}
