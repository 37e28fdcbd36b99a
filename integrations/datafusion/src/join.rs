//! The rule for joins: a filter of the small side's keys, above the scan of the large side.
//!
//! The rule gets a logical plan from DataFusion's optimizer. It adds a condition
//! `bloom_contains((SELECT bloom_agg(key) FROM small side), key, 0.1)` to the large side of joins,
//! and gives the plan to the planner of the session. These are plain SQL functions, so the plan can
//! go to executors.
//!
//! The rule needs statistics. Only a physical plan has them, and a logical rule cannot make one. So
//! this is a [`QueryPlanner`] around the session's own.

use crate::Functions;
use crate::bloom::{DEFAULT_RATE, MANY};
use crate::keys::Class;
use crate::metrics::Metrics;
use crate::total::{is_total_plan, is_total_within};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, NullEquality, Result, Spans};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::logical_plan::{Filter, Join, PlanType, Subquery};
use datafusion::logical_expr::{
    AggregateUDF, Expr, ExprSchemable, JoinType, LogicalPlan, LogicalPlanBuilder, ScalarUDF, lit,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionContext;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Plans filters below joins, once it is [installed](Self::install).
///
/// A join gets a filter if all of this holds:
///
/// - It is an inner or a semi join by equality, and a NULL equals nothing.
/// - By its statistics, the small side has at most [`max_build_rows`](Self::max_build_rows), and
///   the other side has at least [`min_ratio`](Self::min_ratio) times as many. Or a
///   [hint](Self::small_table) names the small side.
/// - Ballista would not send all of the small side to every executor. It does so up to its
///   `broadcast_join_threshold_bytes`, 128 MiB by default, and then sends nothing of the other
///   side. Or a hint names the small side.
/// - The small side has a condition, so that it may lack keys of the other side. Or a hint names
///   it.
/// - The small side has the same rows when it is read twice: it consists of tables, conditions,
///   columns, unions, inner and semi joins, without `LIMIT` and volatile functions.
/// - The keys, and what the small side computes for its keys, cannot fail. The filter makes
///   DataFusion compute them for rows that a condition drops, or that a join does not reach.
///   Columns, comparisons, `CASE`, casts to a type with all values of the other type, `TRY_CAST`
///   to a number, and the arithmetic of integers and floats cannot fail. Other casts, functions,
///   decimals' arithmetic and a division by a column can.
///
/// The small side is read twice: for the filter, and for the join. If a table changes between the
/// two reads, the join has rows of both states.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// use datafusion::prelude::SessionContext;
/// use lanebloom_datafusion::JoinFilters;
///
/// let ctx = SessionContext::new();
/// let metrics = JoinFilters::new().small_table("dim").install(&ctx);
/// ctx.sql("CREATE TABLE dim AS VALUES (1), (7)").await?.collect().await?;
/// let sql = "CREATE TABLE fact AS SELECT value AS id
///            FROM generate_series(1, 5000)";
/// ctx.sql(sql).await?.collect().await?;
/// let sql = "SELECT * FROM fact JOIN dim ON id = column1";
/// let rows = ctx.sql(sql).await?.collect().await?;
/// assert_eq!(rows.iter().map(|batch| batch.num_rows()).sum::<usize>(), 2);
/// assert_eq!((metrics.rows_in(), metrics.rows_pruned()), (5000, 4998));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct JoinFilters {
    max_build_rows: usize,
    min_ratio: usize,
    rate: f64,
    min_pruned: f64,
    small: HashSet<String>,
}

impl JoinFilters {
    /// The defaults: at most 1,000,000 rows on the small side, at least 10 times as many on the
    /// other side, a false-positive rate of 1%, and at least 10% of the rows pruned.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_build_rows: 1_000_000,
            min_ratio: 10,
            rate: DEFAULT_RATE,
            min_pruned: 0.1,
            small: HashSet::new(),
        }
    }

    /// The most rows of a small side, as its statistics estimate them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// # use lanebloom_datafusion::JoinFilters;
    /// # let ctx = datafusion::prelude::SessionContext::new();
    /// let metrics = JoinFilters::new().max_build_rows(0).install(&ctx);
    /// let sql = "CREATE TABLE t AS SELECT value AS id FROM range(5000)";
    /// ctx.sql(sql).await?.collect().await?;
    /// let sql = "SELECT * FROM t JOIN t AS u ON t.id = u.id WHERE u.id = 3";
    /// ctx.sql(sql).await?.collect().await?;
    /// assert_eq!(metrics.planned(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn max_build_rows(mut self, rows: usize) -> Self {
        self.max_build_rows = rows;
        self
    }

    /// The other side has at least this many times the rows of the small side.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// # use lanebloom_datafusion::JoinFilters;
    /// # let ctx = datafusion::prelude::SessionContext::new();
    /// let metrics = JoinFilters::new().min_ratio(1).install(&ctx);
    /// let sql = "CREATE TABLE t AS SELECT value AS id FROM range(5000)";
    /// ctx.sql(sql).await?.collect().await?;
    /// let sql = "SELECT * FROM t JOIN t AS u ON t.id = u.id WHERE u.id % 9 = 3";
    /// ctx.sql(sql).await?.collect().await?;
    /// assert_eq!(metrics.planned(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn min_ratio(mut self, times: usize) -> Self {
        self.min_ratio = times;
        self
    }

    /// The false-positive rate of the filters: of the rows without a partner, this share passes.
    ///
    /// # Errors
    ///
    /// Fails unless the rate is between 0 and 1, both excluded.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_datafusion::JoinFilters;
    ///
    /// assert!(JoinFilters::new().rate(0.001).is_ok());
    /// assert!(JoinFilters::new().rate(1.0).is_err());
    /// ```
    pub fn rate(mut self, rate: f64) -> Result<Self> {
        self.rate = crate::aggregate::checked_rate(rate)?;
        Ok(self)
    }

    /// The least share of the other side's rows that a filter must prune, from 0 to 1. Statistics
    /// do not have it, so it is measured: after 65,536 rows of which the filter pruned less, the
    /// next million rows pass without a lookup. Then the filter is tried again.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> datafusion::error::Result<()> {
    /// use lanebloom_datafusion::JoinFilters;
    ///
    /// let ctx = datafusion::prelude::SessionContext::new();
    /// let metrics = JoinFilters::new().min_ratio(1).min_pruned(0.6).install(&ctx);
    /// let sql = "CREATE TABLE t AS SELECT value AS id, value % 9000 AS d
    ///            FROM generate_series(1, 300000)";
    /// ctx.sql(sql).await?.collect().await?;
    /// // Half of the rows have a partner.
    /// let sql = "SELECT * FROM t JOIN (SELECT id FROM t WHERE id < 4500) u
    ///            ON t.d = u.id";
    /// ctx.sql(sql).await?.collect().await?;
    /// assert_eq!((metrics.planned(), metrics.rows_in() < 200_000), (1, true));
    /// assert_eq!(metrics.rows_in() + metrics.rows_skipped(), 300_000);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn min_pruned(mut self, part: f64) -> Self {
        self.min_pruned = part;
        self
    }

    /// A hint: a side that reads only such tables is small, and lacks keys of the other side,
    /// whatever the statistics are. The name is that of the table, not an alias in the query.
    #[must_use]
    pub fn small_table(mut self, name: impl Into<String>) -> Self {
        self.small.insert(name.into());
        self
    }

    /// Registers the functions, and makes the session plan filters from now on. Returns the
    /// counters.
    ///
    /// For Ballista, call this on the context that `SessionContext::remote` returned. The scheduler
    /// and the executors need only [the functions](crate::Functions).
    pub fn install(self, ctx: &SessionContext) -> Arc<Metrics> {
        let functions = Functions::default();
        functions.register_in(ctx);
        let Functions {
            scalar,
            aggregate,
            metrics,
        } = functions;
        let state = ctx.state();
        let planner = JoinFilterPlanner {
            inner: Arc::clone(state.query_planner()),
            contains: Arc::clone(&scalar[0]),
            aggregate: Arc::clone(&aggregate[0]),
            metrics: Arc::clone(&metrics),
            settings: self,
        };
        let state = SessionStateBuilder::new_from_existing(state)
            .with_query_planner(Arc::new(planner))
            .build();
        *ctx.state_ref().write() = state;
        metrics
    }
}

impl Default for JoinFilters {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
struct JoinFilterPlanner {
    inner: Arc<dyn QueryPlanner + Send + Sync>,
    settings: JoinFilters,
    contains: Arc<ScalarUDF>,
    aggregate: Arc<AggregateUDF>,
    metrics: Arc<Metrics>,
}

#[async_trait]
impl QueryPlanner for JoinFilterPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = match plan {
            LogicalPlan::Explain(explain) => {
                let mut explain = explain.clone();
                explain.plan = Arc::new(self.rewrite(&explain.plan, session).await?);
                for shown in &mut explain.stringified_plans {
                    if shown.plan_type == PlanType::FinalLogicalPlan {
                        shown.plan = Arc::new(explain.plan.display_indent().to_string());
                    }
                }
                LogicalPlan::Explain(explain)
            }
            LogicalPlan::Analyze(analyze) => {
                let mut analyze = analyze.clone();
                analyze.input = Arc::new(self.rewrite(&analyze.input, session).await?);
                LogicalPlan::Analyze(analyze)
            }
            other => self.rewrite(other, session).await?,
        };
        self.inner.create_physical_plan(&plan, session).await
    }
}

/// The filter of one join, and the key of the side that it prunes.
struct Planned {
    filter: Expr,
    probe_key: Expr,
    is_left_probed: bool,
}

impl JoinFilterPlanner {
    /// The plan with filters where they pay.
    async fn rewrite(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<LogicalPlan> {
        // A decision needs a physical plan, which is made asynchronously. So all decisions come
        // before the rewriting, which is not asynchronous. Both go through the joins from the
        // bottom: a filter that is placed changes the joins above it and below it.
        let mut joins = vec![];
        plan.clone().transform_up(|node| {
            joins.extend(filterable(&node).cloned());
            Ok(Transformed::no(node))
        })?;
        let mut filters = vec![];
        for join in joins {
            filters.push(self.decide(&join, session).await?);
        }
        let planned = filters.iter().flatten().count();
        if planned == 0 {
            return Ok(plan.clone());
        }
        let mut filters = filters.into_iter();
        let rewritten = plan.clone().transform_up(|node| {
            let Some(join) = filterable(&node) else {
                return Ok(Transformed::no(node));
            };
            let Some(planned) = filters.next().flatten() else {
                return Ok(Transformed::no(node));
            };
            let mut join = join.clone();
            let probe = if planned.is_left_probed {
                &mut join.left
            } else {
                &mut join.right
            };
            *probe = Arc::new(self.place(LogicalPlan::clone(probe), planned.probe_key, planned.filter)?);
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        })?;
        self.metrics.planned.fetch_add(planned as u64, Relaxed);
        session.optimize(&rewritten.data)
    }

    /// The filter for a join, if one side can filter the other.
    async fn decide(&self, join: &Join, session: &dyn Session) -> Result<Option<Planned>> {
        let Some((left_key, right_key)) = join.on.iter().find(|(left, right)| {
            let class = |key: &Expr, plan: &LogicalPlan| {
                let of = key.get_type(plan.schema()).ok()?;
                Class::of(&of)
                    .ok()
                    .filter(|_| is_total_within(key, plan).unwrap_or(false))
            };
            class(left, &join.left).is_some_and(|of| class(right, &join.right) == Some(of))
        }) else {
            return Ok(None);
        };
        let sides = [
            (&join.left, left_key, &join.right, right_key, false),
            (&join.right, right_key, &join.left, left_key, true),
        ];
        for (build, build_key, probe, probe_key, is_left_probed) in sides {
            if !is_repeatable(build)? {
                continue;
            }
            let mut expected = None;
            if !self.is_hinted(build)? {
                if !has_condition(build)? {
                    continue;
                }
                let (Some(own), Some(other)) = (size(build, session).await, size(probe, session).await) else {
                    continue;
                };
                let is_small =
                    own.rows <= self.settings.max_build_rows && own.rows <= other.rows / self.settings.min_ratio.max(1);
                if !is_small || own.is_broadcast(session) {
                    continue;
                }
                expected = (own.rows > MANY).then_some(own.rows);
            }
            if !is_total(build, build_key, session)? {
                continue;
            }
            return Ok(Some(Planned {
                filter: self.subquery(build, build_key, expected)?,
                probe_key: probe_key.clone(),
                is_left_probed,
            }));
        }
        Ok(None)
    }

    fn is_hinted(&self, build: &LogicalPlan) -> Result<bool> {
        let mut tables = 0;
        let mut hinted = 0;
        build.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                tables += 1;
                hinted += usize::from(self.settings.small.contains(scan.table_name.table()));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(tables > 0 && tables == hinted)
    }

    /// `(SELECT bloom_agg(key, ...) FROM build)`.
    fn subquery(&self, build: &Arc<LogicalPlan>, key: &Expr, expected: Option<usize>) -> Result<Expr> {
        let mut arguments = vec![key.clone()];
        if expected.is_some() || self.settings.rate != DEFAULT_RATE {
            arguments.push(lit(expected.unwrap_or(1) as i64));
            arguments.push(lit(self.settings.rate));
        }
        let plan = LogicalPlanBuilder::from(Arc::clone(build))
            .aggregate(Vec::<Expr>::new(), [self.aggregate.call(arguments)])?
            .build()?;
        Ok(Expr::ScalarSubquery(Subquery {
            subquery: Arc::new(plan),
            outer_ref_columns: vec![],
            spans: Spans::new(),
        }))
    }

    /// Puts the condition as deep into the probed side as the key goes unchanged, but above the
    /// conditions that are there, since these are cheaper.
    fn place(&self, plan: LogicalPlan, key: Expr, filter: Expr) -> Result<LogicalPlan> {
        if let Expr::Column(column) = &key {
            match &plan {
                LogicalPlan::SubqueryAlias(alias) => {
                    let at = alias.schema.index_of_column(column)?;
                    let below = Column::from(alias.input.schema().qualified_field(at));
                    let input = self.place(LogicalPlan::clone(&alias.input), Expr::Column(below), filter)?;
                    return plan.with_new_exprs(vec![], vec![input]);
                }
                LogicalPlan::Projection(projection) => {
                    let at = projection.schema.index_of_column(column)?;
                    if let Expr::Column(below) = projection.expr[at].clone().unalias() {
                        let input = self.place(LogicalPlan::clone(&projection.input), Expr::Column(below), filter)?;
                        return plan.with_new_exprs(projection.expr.clone(), vec![input]);
                    }
                }
                LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
                    let mut join = join.clone();
                    let is_left = join.left.schema().has_column(column);
                    let side = if is_left { &mut join.left } else { &mut join.right };
                    *side = Arc::new(self.place(LogicalPlan::clone(side), key, filter)?);
                    return Ok(LogicalPlan::Join(join));
                }
                _ => {}
            }
        }
        let arguments = vec![filter, key, lit(self.settings.min_pruned)];
        let condition = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&self.contains), arguments));
        Ok(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?))
    }
}

/// The join in this node, if its result has only rows with a partner: the others can be dropped
/// before.
fn filterable(node: &LogicalPlan) -> Option<&Join> {
    let LogicalPlan::Join(join) = node else { return None };
    let drops_others = matches!(
        join.join_type,
        JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi
    );
    (drops_others && join.null_equality == NullEquality::NullEqualsNothing && !join.on.is_empty()).then_some(join)
}

/// Whether a plan is known to have the same rows each time that it runs.
fn is_repeatable(plan: &LogicalPlan) -> Result<bool> {
    let mut is_repeatable = true;
    plan.apply_with_subqueries(|node| {
        is_repeatable &= match node {
            LogicalPlan::TableScan(scan) => scan.fetch.is_none(),
            LogicalPlan::Join(_) => filterable(node).is_some(),
            LogicalPlan::Filter(_)
            | LogicalPlan::Projection(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Repartition(_) => true,
            LogicalPlan::Sort(sort) => sort.fetch.is_none(),
            // Groups are the same each time. The value of an aggregate may depend on the order.
            LogicalPlan::Aggregate(aggregate) => aggregate.aggr_expr.is_empty(),
            _ => false,
        };
        is_repeatable &= !node.expressions().iter().any(Expr::is_volatile);
        Ok(if is_repeatable {
            TreeNodeRecursion::Continue
        } else {
            TreeNodeRecursion::Stop
        })
    })?;
    Ok(is_repeatable)
}

/// Whether nothing that a plan computes for a key can fail. Columns that the key does not need are
/// left out, as in the plan of its filter.
fn is_total(plan: &Arc<LogicalPlan>, key: &Expr, session: &dyn Session) -> Result<bool> {
    let keys = LogicalPlanBuilder::from(Arc::clone(plan)).project([key.clone()])?;
    is_total_plan(&session.optimize(&keys.build()?)?)
}

/// Whether a plan may lack keys of its tables.
fn has_condition(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(match node {
            LogicalPlan::Filter(_) | LogicalPlan::Join(_) => true,
            LogicalPlan::TableScan(scan) => !scan.filters.is_empty(),
            _ => false,
        })
    })
}

/// The size of a plan's result, by its statistics.
struct Size {
    rows: usize,
    bytes: Option<usize>,
}

async fn size(plan: &LogicalPlan, session: &dyn Session) -> Option<Size> {
    let planner = DefaultPhysicalPlanner::default();
    let physical = planner.create_physical_plan(plan, session).await.ok()?;
    let context = StatisticsContext::new();
    let statistics = context.compute(physical.as_ref(), &StatisticsArgs::new()).ok()?;
    Some(Size {
        rows: *statistics.num_rows.get_value()?,
        bytes: statistics.total_byte_size.get_value().copied(),
    })
}

impl Size {
    /// Whether Ballista sends all of this side of a join to every executor, and nothing of the
    /// other side. Only Ballista has these limits.
    fn is_broadcast(&self, session: &dyn Session) -> bool {
        let entries = session.config_options().entries();
        let is_within = |size: usize, limit: &str| {
            let limit = entries.iter().find(|entry| entry.key == limit);
            let limit = limit.and_then(|entry| entry.value.as_ref()?.parse::<usize>().ok());
            limit.is_some_and(|limit| size <= limit)
        };
        match self.bytes {
            Some(bytes) => is_within(bytes, "ballista.optimizer.broadcast_join_threshold_bytes"),
            None => is_within(self.rows, "ballista.optimizer.broadcast_join_threshold_rows"),
        }
    }
}
