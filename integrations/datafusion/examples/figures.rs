//! Times of the functions on two threads: aggregates of BIGINTs beside `count(DISTINCT)` and
//! `approx_distinct`, predicates beside an `IN` list and a semi join, and joins with the rule and
//! without. Every answer is checked. Times are medians of `--runs` runs.
//!
//! ```sh
//! cargo run --release --example figures         # 100 million rows, 4 GB of memory
//! cargo run --example figures -- --rows 100000 --keys 1000
//! ```

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::prelude::{SessionConfig, SessionContext};
use lanebloom_datafusion::JoinFilters;
use std::sync::Arc;
use std::time::Instant;

const BATCH: usize = 8192;

fn option(name: &str, default: usize) -> usize {
    let mut args = std::env::args().skip_while(|arg| arg != name).skip(1);
    args.next().map_or(default, |value| value.parse().expect("a number"))
}

/// A bijection of 64 bits: distinct rows in a random order.
fn mixed(row: u64) -> i64 {
    let mut x = row.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x ^ (x >> 27)) as i64
}

/// A table of two partitions with columns `x`, all different, and `permille`.
fn table(rows: usize) -> Result<MemTable> {
    let batch = |start: usize| {
        let rows = start as u64..(start + BATCH).min(rows) as u64;
        let x: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(mixed)));
        let permille: ArrayRef = Arc::new(Int64Array::from_iter_values(
            rows.map(|row| (mixed(row) as u64 >> 32) as i64 % 1000),
        ));
        RecordBatch::try_from_iter([("x", x), ("permille", permille)])
    };
    let batches = (0..rows)
        .step_by(BATCH)
        .map(batch)
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let schema = batches[0].schema();
    let (one, other) = batches.split_at(batches.len() / 2);
    MemTable::try_new(schema, vec![one.to_vec(), other.to_vec()])
}

/// The median seconds of queries, whose runs take turns, and the number that each returns.
async fn run(queries: &[(&SessionContext, String)]) -> Result<Vec<(f64, i64)>> {
    let mut out = vec![(vec![], 0); queries.len()];
    for _ in 0..option("--runs", 3) {
        for ((ctx, sql), (times, answer)) in queries.iter().zip(&mut out) {
            let frame = ctx.sql(sql).await?;
            let start = Instant::now();
            let batches = frame.collect().await?;
            times.push(start.elapsed().as_secs_f64());
            let column = batches[0].column(0);
            *answer = column
                .as_primitive_opt::<Int64Type>()
                .map_or(0, |column| column.value(0));
        }
    }
    let median = |(mut times, answer): (Vec<f64>, i64)| {
        times.sort_by(f64::total_cmp);
        (times[times.len() / 2], answer)
    };
    Ok(out.into_iter().map(median).collect())
}

fn context(tables: &[(&str, &Arc<MemTable>)]) -> Result<SessionContext> {
    let config = SessionConfig::new().with_target_partitions(2);
    let ctx = SessionContext::new_with_config(config);
    for (name, table) in tables {
        ctx.register_table(*name, Arc::clone(table) as _)?;
    }
    lanebloom_datafusion::register(&ctx);
    Ok(ctx)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let (rows, keys) = (option("--rows", 100_000_000), option("--keys", 100_000));
    let fact = Arc::new(table(rows)?);
    let dim = Arc::new(table(keys)?);
    let ctx = context(&[("fact", &fact), ("dim", &dim)])?;
    println!("{rows} rows in two partitions, {keys} keys\n\n| aggregate | s | ns a row |\n|---|--:|--:|");
    let aggregates = [
        "sum(x)".into(),
        format!("bloom_filter_agg(x, {rows}, 0.01)"),
        format!("bloom_filter_agg(x, {rows}, 0.01, 2)"),
        format!("bloom_agg(x, {rows})"),
        "bloom_agg(x)".into(),
        "approx_distinct(x)".into(),
        "count(DISTINCT x)".into(),
    ];
    let queries = aggregates
        .iter()
        .map(|aggregate: &String| (&ctx, format!("SELECT {aggregate} FROM fact")));
    let figures = run(&queries.collect::<Vec<_>>()).await?;
    for (aggregate, (seconds, _)) in aggregates.iter().zip(figures) {
        println!("| `{aggregate}` | {seconds:.3} | {:.2} |", seconds * 1e9 / rows as f64);
    }

    println!("\n| rows of {keys} keys among {rows} | s | ns a row |\n|---|--:|--:|");
    let list: Vec<String> = (0..keys as u64).map(|key| mixed(key).to_string()).collect();
    let predicates = [
        (
            "`bloom_contains`",
            "bloom_contains((SELECT bloom_agg(x) FROM dim), x)".into(),
        ),
        (
            "`might_contain`, V1",
            format!("might_contain((SELECT bloom_filter_agg(x, {keys}, 0.01) FROM dim), x)"),
        ),
        (
            "`might_contain`, V2",
            format!("might_contain((SELECT bloom_filter_agg(x, {keys}, 0.01, 2) FROM dim), x)"),
        ),
        ("semi join", "x IN (SELECT x FROM dim)".into()),
        ("`IN` list", format!("x IN ({})", list.join(", "))),
    ];
    let queries = predicates
        .iter()
        .map(|(_, predicate)| (&ctx, format!("SELECT count(*) FROM fact WHERE {predicate}")));
    let figures = run(&queries.collect::<Vec<_>>()).await?;
    for ((name, _), (seconds, found)) in predicates.iter().zip(figures) {
        assert!(
            found as usize >= keys && found as usize <= keys + rows / 50,
            "{name}: {found}"
        );
        println!("| {name} | {seconds:.3} | {:.2} |", seconds * 1e9 / rows as f64);
    }

    println!("\n| the join's large side keeps | without, s | with, s |\n|---|--:|--:|");
    let joined = context(&[("fact", &fact), ("dim", &dim)])?;
    JoinFilters::new()
        .small_table("large")
        .small_table("dim")
        .install(&joined);
    for permille in [1, 10, 100, 500] {
        // The large side has keys of the small one, and others.
        let sql = format!(
            "SELECT count(*) FROM (SELECT CASE WHEN permille < {permille} THEN permille ELSE x END AS k FROM fact) f
             JOIN (SELECT x, row FROM (SELECT x, permille AS row FROM dim) UNION ALL
                   SELECT DISTINCT permille AS x, permille AS row FROM dim WHERE permille < {permille}) d ON k = d.x"
        );
        let figures = run(&[(&ctx, sql.clone()), (&joined, sql)]).await?;
        let [(without, expected), (with, found)] = figures[..] else {
            unreachable!("two queries");
        };
        assert_eq!(found, expected);
        println!("| {}% | {without:.3} | {with:.3} |", permille as f64 / 10.0);
    }
    Ok(())
}
