//! The functions and the rule through Ballista: a scheduler and an executor in this process.

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use lanebloom_datafusion::{Functions, JoinFilters};
use std::path::Path;

async fn rows(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let frame = ctx.sql(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let batches = frame.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let text = pretty_format_batches(&batches).unwrap().to_string();
    let mut lines: Vec<String> = text.lines().skip(3).map(|line| line.replace(' ', "")).collect();
    lines.retain(|line| line.starts_with('|'));
    lines.sort();
    lines
}

/// `fact` in four files, and `dim`.
async fn write(folder: &Path) {
    let ctx = SessionContext::new();
    for part in 0..4 {
        let sql = format!(
            "COPY (SELECT value AS id, value * 7 % 5000 AS d, concat('s', value % 50) AS s
                   FROM generate_series({}, {})) TO '{}/fact/{part}.parquet'",
            part * 10_000,
            part * 10_000 + 9_999,
            folder.display()
        );
        ctx.sql(&sql).await.unwrap().collect().await.unwrap();
    }
    let sql = format!(
        "COPY (SELECT value AS d, value % 100 AS kind FROM generate_series(0, 4999)) TO '{}/dim/0.parquet'",
        folder.display()
    );
    ctx.sql(&sql).await.unwrap().collect().await.unwrap();
}

async fn context(folder: &Path, broadcast: usize) -> SessionContext {
    let config = SessionConfig::new_with_ballista()
        .with_target_partitions(3)
        .with_ballista_standalone_parallelism(2)
        .with_ballista_broadcast_join_threshold_bytes(broadcast)
        .with_ballista_broadcast_join_threshold_rows(0);
    let mut state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    Functions::default().register(&mut state).unwrap();
    let ctx = SessionContext::standalone_with_state(state).await.unwrap();
    // Ballista gives the client a set of functions of its own.
    lanebloom_datafusion::register(&ctx);
    for table in ["fact", "dim"] {
        let path = format!("{}/{table}/", folder.display());
        ctx.register_parquet(table, &path, ParquetReadOptions::default())
            .await
            .unwrap();
    }
    ctx
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_and_filters_travel() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path()).await;
    let ctx = context(folder.path(), 0).await;

    // Partial states from several tasks are merged.
    for (agg, contains) in [("bloom_agg", "bloom_contains"), ("bloom_filter_agg", "might_contain")] {
        let sql = format!(
            "SELECT f.s, bool_and({contains}(f.b, fact.id)) FROM fact
             JOIN (SELECT s, {agg}(id, 1000, 0.01) AS b FROM fact GROUP BY s) f ON fact.s = f.s
             WHERE f.s IN ('s1', 's2') GROUP BY f.s"
        );
        assert_eq!(rows(&ctx, &sql).await, ["|s1|true|", "|s2|true|"], "{agg}");
    }

    let queries = [
        "SELECT count(*), sum(id) FROM fact JOIN dim ON fact.d = dim.d WHERE kind = 3",
        "SELECT s, count(*) FROM fact WHERE d IN (SELECT d FROM dim WHERE kind = 7) GROUP BY s",
        "SELECT a.id, dim.d FROM fact a JOIN fact b ON a.id = b.id JOIN dim ON b.d = dim.d WHERE kind = 3 AND a.id < 900",
    ];
    let mut expected = vec![];
    for sql in queries {
        expected.push(rows(&ctx, sql).await);
    }
    assert_eq!(expected[0][0], "|400|7991600|");
    let metrics = JoinFilters::new().install(&ctx);
    for (sql, expected) in queries.iter().zip(&expected) {
        let before = metrics.planned();
        let explained = ctx
            .sql(&format!("EXPLAIN {sql}"))
            .await
            .unwrap()
            .collect()
            .await
            .unwrap();
        let explained = pretty_format_batches(&explained).unwrap().to_string();
        assert!(explained.contains("bloom_contains("), "{explained}");
        assert_eq!(rows(&ctx, sql).await, *expected, "{sql}");
        assert!(metrics.planned() > before, "{sql}");
    }

    // A side that Ballista sends to all executors gets no filter.
    let ctx = context(folder.path(), 10_000_000).await;
    let metrics = JoinFilters::new().install(&ctx);
    assert_eq!(rows(&ctx, queries[0]).await, expected[0]);
    assert_eq!(metrics.planned(), 0);
}
