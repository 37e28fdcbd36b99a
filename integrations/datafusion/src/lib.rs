//! Bloom filters as SQL functions of DataFusion, and a rule that puts them below joins. All threads
//! or executors of a query build parts of one filter. The query merges them, and looks rows up in
//! the filter on all of them.
//!
//! # When not to use it
//!
//! - For a join within one process: DataFusion pushes its own dynamic filters into scans. They are
//!   exact, and this rule reads the small side twice.
//! - If every row has a partner: a filter costs time, and removes nothing.
//! - In Spark and Comet: these have such functions. They read the bytes of `bloom_filter_agg`.
//!
//! # Example
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> datafusion::error::Result<()> {
//! use datafusion::arrow::util::pretty::pretty_format_batches;
//! use datafusion::prelude::SessionContext;
//!
//! let ctx = SessionContext::new();
//! lanebloom_datafusion::register(&ctx);
//! let sql = "WITH dim AS (SELECT bloom_agg(value) FROM generate_series(1, 900))
//!            SELECT count(*) AS kept FROM generate_series(1, 100000) AS fact(id)
//!            WHERE bloom_contains((SELECT * FROM dim), id)";
//! let kept = ctx.sql(sql).await?.collect().await?;
//! let kept = pretty_format_batches(&kept)?.to_string();
//! // 900 keys, and about 1% of the others.
//! let kept = kept.split_whitespace().find_map(|word| word.parse().ok());
//! let kept: u32 = kept.unwrap();
//! assert!((900..3000).contains(&kept));
//! # Ok(())
//! # }
//! ```
//!
//! # Functions
//!
//! | function | |
//! |---|---|
//! | `bloom_agg(value [, expected [, rate]])` | an aggregate: a filter of the values that are not NULL. `expected` is the number of distinct values, see [Size](#size); the rate is 1% by default |
//! | `bloom_contains(filter, value [, least])` | whether the filter may contain the value; NULL if one of both is NULL. With `least`, it returns true without a lookup while the filter rejects less than this share of the rows: only for a query that checks the rows again |
//! | `bloom_statistics(filter)` | a struct: `class` of keys, `bytes`, estimated `keys`, false-positive `rate` now |
//! | `bloom_filter_agg(value [, expected [, bits or rate [, version]]])` | Spark's aggregate, bit for bit; NULL without a key. `version` is 1 (default) or 2 |
//! | `might_contain(filter, value)` | Spark's predicate, for filters of both versions |
//!
//! # Size
//!
//! For up to 262,144 distinct keys, a filter of `bloom_agg` has the size for its keys. For more
//! keys, pass their number: 10 million keys then take 11.0 bits each, and 21.1 bits without it. If
//! more keys come, the filter grows. The threads of a query then unite full filters, so the rate
//! can exceed the requested one: 1.5% for four threads, twice the expected keys and a rate of 1%.
//!
//! # Keys
//!
//! Booleans, integers, floats, decimals, dates, times, timestamps, durations, strings and binary,
//! in all widths, as views and as dictionaries. Equal values of different widths are equal keys.
//!
//! A filter of `bloom_agg` knows the class of its keys, with a decimal's scale, a time's unit, and
//! whether a timestamp has a zone. `bloom_contains` refuses a value of another class, which SQL's
//! `=` may convert. Cast such a value.
//!
//! Spark's format does not say what its keys are. As in Spark, `TINYINT` to `BIGINT` are one kind
//! of key, and strings and binary are another. Spark hashes other types first: pass
//! `xxhash64(value)` of the crate `datafusion-spark`. Here these types are keys too, but no other
//! system has the same bits for them: a date is its days, a timestamp its count of units, in UTC if
//! it has a zone, a float the bits of its `DOUBLE`, a decimal its unscaled value.
//!
//! # Hostile bytes
//!
//! The bytes of a filter can come from strangers. Whatever they are, a predicate returns a value or
//! an error. It allocates in proportion to the bytes, which are at most [`MAX_BYTES`]. Murmur3 with
//! a known seed hashes the keys, so strangers can make keys that collide.

mod aggregate;
mod bloom;
mod join;
mod keys;
mod metrics;
mod predicate;
mod spark;
mod statistics;
mod total;
mod value;

use aggregate::Aggregate;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::prelude::SessionContext;
pub use join::JoinFilters;
pub use metrics::Metrics;
use predicate::{Contains, Format};
use std::sync::Arc;
pub use value::MAX_BYTES;

/// The functions of this crate, for a registry of functions that is not a `SessionContext`, such as
/// that of a Ballista scheduler or executor.
///
/// ```
/// let functions = lanebloom_datafusion::Functions::default();
/// let scalar = functions.scalar.iter();
/// let names: Vec<_> = scalar.map(|function| function.name().to_owned()).collect();
/// assert_eq!(names, ["bloom_contains", "might_contain", "bloom_statistics"]);
/// assert_eq!(functions.aggregate[0].name(), "bloom_agg");
/// assert_eq!(functions.aggregate[1].name(), "bloom_filter_agg");
/// assert_eq!(functions.metrics.rows_in(), 0);
/// ```
#[derive(Debug)]
pub struct Functions {
    /// The scalar functions.
    pub scalar: Vec<Arc<ScalarUDF>>,
    /// The aggregates.
    pub aggregate: Vec<Arc<AggregateUDF>>,
    /// The counters of both predicates.
    pub metrics: Arc<Metrics>,
}

/// The functions, with counters of their own.
impl Default for Functions {
    fn default() -> Self {
        let metrics = Arc::new(Metrics::default());
        let contains = |format| Arc::new(ScalarUDF::from(Contains::new(format, Arc::clone(&metrics))));
        Self {
            scalar: vec![
                contains(Format::Ours),
                contains(Format::Spark),
                Arc::new(ScalarUDF::from(statistics::BloomStatistics::new())),
            ],
            aggregate: vec![
                Arc::new(AggregateUDF::from(Aggregate::<bloom::Set>::new())),
                Arc::new(AggregateUDF::from(Aggregate::<spark::SparkSet>::new())),
            ],
            metrics,
        }
    }
}

impl Functions {
    /// Adds the functions to a registry, such as a `SessionState`.
    ///
    /// # Errors
    ///
    /// Fails if the registry takes no functions.
    ///
    /// # Examples
    ///
    /// ```
    /// use datafusion::execution::session_state::SessionStateBuilder;
    ///
    /// let mut state = SessionStateBuilder::new().with_default_features().build();
    /// lanebloom_datafusion::Functions::default().register(&mut state)?;
    /// assert!(state.aggregate_functions().contains_key("bloom_agg"));
    /// # Ok::<(), datafusion::error::DataFusionError>(())
    /// ```
    pub fn register(&self, registry: &mut dyn FunctionRegistry) -> datafusion::error::Result<()> {
        for function in &self.scalar {
            registry.register_udf(Arc::clone(function))?;
        }
        for function in &self.aggregate {
            registry.register_udaf(Arc::clone(function))?;
        }
        Ok(())
    }

    fn register_in(&self, ctx: &SessionContext) {
        let registered = self.register(&mut *ctx.state_ref().write());
        registered.expect("a session takes functions");
    }
}

/// Adds the functions to a session; returns the counters of its predicates.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = datafusion::prelude::SessionContext::new();
/// let metrics = lanebloom_datafusion::register(&ctx);
/// let sql = "WITH f AS (SELECT bloom_agg(x) FROM (VALUES (1)) AS t(x))
///            SELECT bloom_contains((SELECT * FROM f), y)
///            FROM (VALUES (1), (2)) AS t(y)";
/// ctx.sql(sql).await?.collect().await?;
/// assert_eq!((metrics.rows_in(), metrics.rows_pruned()), (2, 1));
/// assert_eq!(metrics.pass_rate(), 0.5);
/// # Ok(())
/// # }
/// ```
pub fn register(ctx: &SessionContext) -> Arc<Metrics> {
    let functions = Functions::default();
    functions.register_in(ctx);
    functions.metrics
}

/// The code in the README of the package, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
