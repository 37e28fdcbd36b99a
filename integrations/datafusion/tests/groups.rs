//! Aggregates with many groups: the filters do not depend on batches, partitions and spills, and
//! DataFusion's memory pool counts them.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::collections::BTreeMap;
use std::sync::Arc;

fn context(config: SessionConfig, runtime: RuntimeEnvBuilder) -> SessionContext {
    let ctx = SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap());
    lanebloom_datafusion::register(&ctx);
    ctx
}

fn config(partitions: usize, batch: usize) -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(partitions)
        .with_batch_size(batch)
}

/// The filter of each group, and how often the plan spilled.
async fn run(ctx: &SessionContext, sql: &str) -> Result<(BTreeMap<i64, Vec<u8>>, usize), DataFusionError> {
    fn spills(plan: &dyn ExecutionPlan) -> usize {
        let own = plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0);
        own + plan
            .children()
            .iter()
            .map(|child| spills(child.as_ref()))
            .sum::<usize>()
    }
    let plan = ctx.sql(sql).await?.create_physical_plan().await?;
    let mut filters = BTreeMap::new();
    for batch in collect(Arc::clone(&plan), ctx.task_ctx()).await? {
        let groups = batch.column(0).as_primitive::<Int64Type>().values();
        let values = cast(batch.column(1), &DataType::LargeBinary)?;
        // NULL becomes no bytes.
        let values = values
            .as_binary::<i64>()
            .iter()
            .map(|value| value.unwrap_or_default().to_vec());
        filters.extend(groups.iter().copied().zip(values));
    }
    Ok((filters, spills(plan.as_ref())))
}

/// A table of `rows` distinct keys, every tenth of them NULL.
fn table(rows: usize) -> String {
    format!(
        "(SELECT value AS g, CASE WHEN value % 10 = 3 THEN NULL ELSE value END AS x FROM generate_series(1, {rows}))"
    )
}

const AGGREGATES: [&str; 5] = [
    "bloom_agg(x)",
    "bloom_agg(x, 10, 0.2)",
    // Hashes until the end, and filters of 100 bytes.
    "bloom_filter_agg(x, 1000, 80000)",
    "bloom_filter_agg(x, 100, 800)",
    "bloom_filter_agg(x, 100, 800, 2) FILTER (WHERE x % 3 = 1)",
];

#[tokio::test]
async fn groups_have_the_same_filters_on_all_ways() {
    let table = table(30_000);
    let reference = context(config(1, 8192), RuntimeEnvBuilder::new());
    let merged = context(config(4, 100), RuntimeEnvBuilder::new());
    let unmerged = context(
        config(3, 512)
            .set_u64("datafusion.execution.skip_partial_aggregation_probe_rows_threshold", 1)
            .set_str(
                "datafusion.execution.skip_partial_aggregation_probe_ratio_threshold",
                "0.0",
            ),
        RuntimeEnvBuilder::new(),
    );
    for aggregate in AGGREGATES {
        for groups in [10, 3000] {
            let sql = format!("SELECT g % {groups} AS g, {aggregate} AS f FROM {table} GROUP BY g % {groups}");
            let (expected, _) = run(&reference, &sql).await.unwrap();
            assert_eq!(expected.len(), groups, "{sql}");
            for (name, ctx) in [("merged", &merged), ("unmerged", &unmerged)] {
                let (found, _) = run(ctx, &sql).await.unwrap();
                assert!(found == expected, "{name}: {sql}");
            }
            // The accumulator without groups.
            for group in [0, 3, 7] {
                let sql = format!("SELECT {group} AS g, {aggregate} AS f FROM {table} WHERE g % {groups} = {group}");
                let (alone, _) = run(&reference, &sql).await.unwrap();
                assert!(alone[&group] == expected[&group], "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn groups_that_spill_have_the_same_filters() {
    let table = table(200_000);
    let reference = context(config(2, 1024), RuntimeEnvBuilder::new());
    for aggregate in ["bloom_agg(x)", "bloom_filter_agg(x, 100, 800)"] {
        let sql = format!("SELECT g % 20000 AS g, {aggregate} AS f FROM {table} GROUP BY g % 20000");
        let (expected, spills) = run(&reference, &sql).await.unwrap();
        assert_eq!((expected.len(), spills), (20_000, 0));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(6 << 20)));
        let (found, spills) = run(&context(config(2, 1024), runtime), &sql).await.unwrap();
        assert!(spills > 0, "{sql}");
        assert!(found == expected, "{sql}");
    }
}

/// Without the memory of the filters, each query here would fit.
#[tokio::test]
async fn the_pool_knows_the_filters() {
    let table = table(400_000);
    for (aggregate, groups, pool) in [
        ("bloom_agg(x)", "", 500_000),
        ("bloom_filter_agg(x, 1000000)", "", 500_000),
        ("bloom_agg(x)", "GROUP BY g % 20", 1_500_000),
        ("bloom_filter_agg(x, 1000000)", "GROUP BY g % 20", 1_500_000),
    ] {
        let sql = format!("SELECT min(g), {aggregate} AS f FROM {table} {groups}");
        // Nothing spills.
        let limited = |bytes| {
            let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
            let runtime = RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::new(GreedyMemoryPool::new(bytes)))
                .with_disk_manager_builder(disk);
            context(config(1, 8192), runtime)
        };
        let error = run(&limited(pool), &sql).await.unwrap_err();
        assert!(
            matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)),
            "{sql}: {error}"
        );
        run(&limited(20 * pool), &sql).await.unwrap();
    }
}
