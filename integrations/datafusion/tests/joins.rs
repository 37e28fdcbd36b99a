//! The rule for joins: random plans with and without it, what it plans, and what it leaves alone.

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::exec_err;
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::prelude::{SessionConfig, SessionContext};
use lanebloom_datafusion::{JoinFilters, Metrics};
use std::sync::Arc;

/// Xorshift64*: the numbers of a test are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }

    /// A table of up to 40 rows: two keys, a string, and numbers as strings, of which some are `x`;
    /// all with NULLs and duplicates.
    fn table(&mut self) -> MemTable {
        let rows = [0, 1, 5, 40][self.below(4) as usize];
        let keys = 1 + self.below(30);
        let mut column = |nulls: u64| -> Vec<Option<i64>> {
            let mut value = || (self.below(10) >= nulls).then(|| self.below(keys) as i64);
            (0..rows).map(|_| value()).collect()
        };
        let (a, b, s, n) = (column(1), column(3), column(2), column(1));
        let narrow = b.into_iter().map(|value| value.map(|value| value as i32));
        let strings = s.into_iter().map(|value| value.map(|value| format!("s{value}")));
        let number = |value: i64| if value % 4 == 3 { "x".into() } else { value.to_string() };
        let numbers = n.into_iter().map(|value| value.map(number));
        let columns: [(&str, ArrayRef, bool); 4] = [
            ("a", Arc::new(Int64Array::from(a)), true),
            ("b", Arc::new(narrow.collect::<Int32Array>()), true),
            ("s", Arc::new(strings.collect::<StringArray>()), true),
            ("n", Arc::new(numbers.collect::<StringArray>()), true),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()
    }

    /// A table in a query, maybe with a key that can fail for rows that are not in it.
    fn source(&mut self, table: &str) -> String {
        match self.below(8) {
            0 => format!("(SELECT 10 / b AS a, b, s, n FROM {table} WHERE b <> 0)"),
            1 => format!("(SELECT CAST(n AS BIGINT) + 1 AS a, b, s, n FROM {table} WHERE n <> 'x')"),
            2 => format!(
                "(SELECT 10 / b AS a, min(b) AS b, min(s) AS s, min(n) AS n FROM {table} WHERE b <> 0 GROUP BY 10 / b)"
            ),
            3 => format!(
                "(SELECT 10 / b AS a, b, s, n FROM {table} WHERE b <> 0
                  UNION ALL SELECT a, b, s, n FROM {table} WHERE a > 3)"
            ),
            _ => table.into(),
        }
    }

    fn condition(&mut self, table: &str) -> String {
        match self.below(10) {
            0 => "true".into(),
            1 => format!("{table}.a < {}", self.below(30)),
            2 => format!("{table}.b % 3 = {}", self.below(3)),
            3 => format!("{table}.s > 's{}'", self.below(30)),
            4 => format!("{table}.a IS NULL"),
            5 => format!("{table}.b <> 0"),
            6 => format!("{table}.n <> 'x'"),
            8 => format!("{table}.a >= (SELECT min(a) FROM v)"),
            // A condition that fails for some rows, unless another one drops them before.
            7 => format!("10 / {table}.b > {}", self.below(4)),
            _ => format!("{table}.a IN (1, 4, 9, {})", self.below(30)),
        }
    }

    /// A condition that joins two tables.
    fn on(&mut self, one: &str, other: &str) -> String {
        let mut on = match self.below(9) {
            0 => format!("{one}.a = {other}.b"),
            1 => format!("{one}.s = {other}.s"),
            2 => format!("{one}.a + 1 = {other}.a"),
            3 => format!("{one}.b = {other}.b AND {one}.s = {other}.s"),
            4 => format!("({one}.a IS NOT DISTINCT FROM {other}.a)"),
            5 => format!("10 / {one}.b = {other}.a"),
            6 => format!("CAST({one}.n AS BIGINT) = {other}.a"),
            7 => format!("{one}.a = 10 / {other}.b"),
            _ => format!("{one}.a = {other}.a"),
        };
        if self.below(4) == 0 {
            on += &format!(" AND {one}.b < {other}.a");
        }
        on
    }

    fn query(&mut self) -> String {
        let (x, y) = (self.condition("x"), self.condition("y"));
        let (t, u, v) = (self.source("t"), self.source("u"), self.source("v"));
        let on = self.on("x", "y");
        match self.below(10) {
            0 => format!("SELECT * FROM {t} x JOIN {u} y ON {on} WHERE {x} AND {y}"),
            1 => format!("SELECT * FROM {t} x WHERE {x} AND EXISTS (SELECT 1 FROM {u} y WHERE {on} AND {y})"),
            2 => format!("SELECT * FROM {t} x WHERE x.a IN (SELECT y.a FROM {u} y WHERE {y})"),
            3 => format!("SELECT * FROM {t} x WHERE NOT EXISTS (SELECT 1 FROM {u} y WHERE {on} AND {y})"),
            4 => {
                let kind = self.one_of(&["LEFT", "RIGHT", "FULL"]);
                format!("SELECT * FROM {t} x {kind} JOIN {u} y ON {on} WHERE {x}")
            }
            5 => {
                let (third, z) = (self.on("y", "z"), self.condition("z"));
                format!("SELECT * FROM {t} x JOIN {u} y ON {on} JOIN {v} z ON {third} WHERE {x} AND {z}")
            }
            6 => {
                let (kind, third) = (self.one_of(&["LEFT", "LEFT SEMI"]), self.on("x", "z"));
                format!("SELECT x.a, x.s FROM {t} x {kind} JOIN {u} y ON {on} JOIN {v} z ON {third} WHERE z.b > 2")
            }
            7 => format!(
                "SELECT x.a, count(*), min(y.s) FROM (SELECT * FROM {t} UNION ALL SELECT * FROM {v}) x
                 JOIN (SELECT DISTINCT a, b, s, n FROM {u}) y ON {on} WHERE {x} GROUP BY x.a"
            ),
            // A semi join in which NULL equals NULL.
            8 => format!("SELECT x.a FROM {t} x WHERE {x} INTERSECT SELECT y.a FROM {u} y WHERE {y}"),
            _ => format!(
                "SELECT x.a, y.b FROM {t} x JOIN (SELECT * FROM {u} ORDER BY a, b, s, n LIMIT 5) y ON {on} WHERE {y} AND {x}"
            ),
        }
    }
}

fn contexts(random: &mut Random) -> (SessionContext, SessionContext, Arc<Metrics>) {
    let batch = [1, 3, 8192][random.below(3) as usize];
    let config = SessionConfig::new()
        .with_target_partitions(1 + random.below(3) as usize)
        .with_batch_size(batch)
        // A side that fails is not read if the other one comes first and is empty. A filter may
        // change the statistics and so the order.
        .set_bool("datafusion.optimizer.join_reordering", false)
        .set_bool(
            "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery",
            // The setting of Ballista.
            random.below(2) == 0,
        );
    let (plain, filtered) = (
        SessionContext::new_with_config(config.clone()),
        SessionContext::new_with_config(config),
    );
    for name in ["t", "u", "v"] {
        let table = Arc::new(random.table());
        plain.register_table(name, Arc::clone(&table) as _).unwrap();
        filtered.register_table(name, table).unwrap();
    }
    // Filters wherever the rule allows them.
    let rule = JoinFilters::new().min_ratio(0).small_table("u").small_table("v");
    let metrics = rule.rate(0.3).unwrap().install(&filtered);
    (plain, filtered, metrics)
}

async fn rows(ctx: &SessionContext, sql: &str) -> Vec<String> {
    try_rows(ctx, sql)
        .await
        .unwrap_or_else(|error| panic!("{sql}\n{error}"))
}

async fn try_rows(ctx: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = ctx.sql(sql).await?.collect().await?;
    let text = pretty_format_batches(&batches)?.to_string();
    let mut lines: Vec<String> = text.lines().map(|line| line.replace(' ', "")).collect();
    lines.retain(|line| line.starts_with('|'));
    lines.sort();
    // The header, which an empty result may lack.
    Ok(lines)
}

/// `LANEBLOOM_PLANS` sets the number of plans; 10,000 take some minutes.
#[tokio::test]
async fn random_plans_give_the_same_rows() {
    let plans = std::env::var("LANEBLOOM_PLANS").map_or(400, |plans| plans.parse().unwrap());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut planned, mut pruned, mut run, mut failed) = (0, 0, 0, 0);
    while run < plans {
        let (plain, filtered, metrics) = contexts(&mut random);
        for _ in 0..20 {
            let sql = random.query();
            // A query that fails for a row may succeed with a filter.
            let Ok(expected) = try_rows(&plain, &sql).await else {
                failed += 1;
                continue;
            };
            assert_eq!(rows(&filtered, &sql).await, expected, "{sql}");
            run += 1;
        }
        planned += metrics.planned();
        pruned += metrics.rows_pruned();
    }
    println!("{run} plans, {planned} filters, {pruned} rows pruned; {failed} failed");
    assert!(planned > plans as u64 / 6, "{planned} filters");
    assert!(pruned > plans as u64, "{pruned} rows");
    assert!(failed < plans / 2, "{failed} failed");
}

async fn fact_and_dim() -> (SessionContext, Arc<Metrics>) {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    let metrics = JoinFilters::new().install(&ctx);
    for sql in [
        "CREATE TABLE fact AS SELECT value AS id, value % 1000 AS d FROM generate_series(1, 100000)",
        "CREATE TABLE dim AS SELECT value AS d, value % 10 AS kind FROM generate_series(0, 999)",
    ] {
        ctx.sql(sql).await.unwrap().collect().await.unwrap();
    }
    (ctx, metrics)
}

async fn explained(ctx: &SessionContext, sql: &str) -> String {
    let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

#[tokio::test]
async fn statistics_decide() {
    let (ctx, metrics) = fact_and_dim().await;
    let sql = "SELECT count(*) FROM fact JOIN dim ON fact.d = dim.d WHERE kind = 3";
    assert_eq!(rows(&ctx, sql).await[0], "|10000|");
    assert_eq!((metrics.planned(), metrics.rows_in()), (1, 100_000));
    assert!(
        (89_000..=90_000).contains(&metrics.rows_pruned()),
        "{}",
        metrics.rows_pruned()
    );
    assert!((0.1..0.11).contains(&metrics.pass_rate()) && metrics.bytes() > 0);

    // No condition, or nearly as many rows: no filter.
    for sql in [
        "SELECT count(*) FROM fact JOIN dim ON fact.d = dim.d",
        "SELECT count(*) FROM fact a JOIN fact b ON a.id = b.id WHERE a.d > 3 AND b.d > 3",
        "SELECT count(*) FROM fact JOIN (SELECT * FROM dim WHERE kind = 3 ORDER BY d LIMIT 3) dim ON fact.d = dim.d",
        "SELECT count(*) FROM fact JOIN (SELECT * FROM dim WHERE kind + random() < 3) dim ON fact.d = dim.d",
        "SELECT count(*) FROM fact LEFT JOIN dim ON fact.d = dim.d AND kind = 3",
        "SELECT count(*) FROM fact JOIN dim ON fact.d + CAST(random() AS BIGINT) = dim.d WHERE kind = 3",
    ] {
        rows(&ctx, sql).await;
        assert_eq!(metrics.planned(), 1, "{sql}");
    }

    // More rows than are allowed, and a hint for only one of two tables.
    for (rule, planned) in [
        (JoinFilters::new().max_build_rows(99), 0),
        (JoinFilters::new().max_build_rows(1000), 1),
    ] {
        let (ctx, _) = fact_and_dim().await;
        let metrics = rule.install(&ctx);
        rows(&ctx, sql).await;
        assert_eq!(metrics.planned(), planned);
    }
    let metrics = JoinFilters::new().small_table("dim").min_ratio(1 << 20).install(&ctx);
    let sql = "SELECT count(*) FROM fact JOIN (SELECT dim.d FROM dim JOIN fact ON dim.d = fact.id) x ON fact.d = x.d";
    rows(&ctx, sql).await;
    assert_eq!(metrics.planned(), 1, "only that of the inner join");
}

#[tokio::test]
async fn explain_shows_the_filter_and_its_rows() {
    let (ctx, _) = fact_and_dim().await;
    let sql = "SELECT count(*) FROM fact JOIN dim ON fact.d = dim.d WHERE kind = 3";
    let plan = explained(&ctx, &format!("EXPLAIN {sql}")).await;
    assert_eq!(plan.matches("bloom_contains(").count(), 2, "{plan}");
    assert!(plan.contains("bloom_agg(dim.d)"), "{plan}");
    let plan = explained(&ctx, &format!("EXPLAIN ANALYZE {sql}")).await;
    assert!(plan.contains("FilterExec: bloom_contains("), "{plan}");
    let line = plan
        .lines()
        .find(|line| line.contains("FilterExec: bloom_contains("))
        .unwrap();
    assert!(
        line.contains("output_rows=10") && line.contains("selectivity="),
        "{line}"
    );
}

/// A table of 5,000 rows with zeros in `x`, another one, and three keys that all of them lack.
async fn zeros_and_dim() -> (SessionContext, SessionContext, Arc<Metrics>) {
    let (plain, filtered) = (SessionContext::new(), SessionContext::new());
    let metrics = JoinFilters::new()
        .small_table("dim")
        .min_ratio(1 << 20)
        .install(&filtered);
    for ctx in [&plain, &filtered] {
        ctx.register_udf(create_udf(
            "checked_id",
            vec![DataType::Int64],
            DataType::Int64,
            Volatility::Immutable,
            Arc::new(|args: &[ColumnarValue]| {
                let array = args[0].to_array(1)?;
                match array.as_primitive::<Int64Type>().values().contains(&0) {
                    true => exec_err!("a zero"),
                    false => Ok(args[0].clone()),
                }
            }),
        ));
        for sql in [
            "CREATE TABLE fact AS SELECT value AS id, value % 10 AS x, CAST(value % 10 AS INT) AS i,
                    CASE WHEN value % 10 = 0 THEN 'x' ELSE CAST(value % 10 AS VARCHAR) END AS s,
                    CAST(CASE WHEN value % 10 = 0 THEN '99999999999999999999999999999999999999' ELSE '2' END
                    AS DECIMAL(38, 0)) AS big, named_struct('a', value % 10) AS st,
                    arrow_cast(arrow_cast(value % 10, 'Timestamp(s)'), 'Timestamp(s, \"+00:00\")') AS tz
                    FROM generate_series(1, 5000)",
            "CREATE TABLE other AS SELECT * FROM fact",
            "CREATE TABLE none AS SELECT * FROM fact WHERE id < 0",
            "CREATE TABLE dim AS SELECT value AS k, value - 3 AS zero, arrow_cast(value, 'Timestamp(s)') AS ts,
                    arrow_cast(arrow_cast(value, 'Timestamp(s)'), 'Timestamp(s, \"+02:00\")') AS tz
                    FROM generate_series(3, 5)",
        ] {
            ctx.sql(sql).await.unwrap().collect().await.unwrap();
        }
    }
    (plain, filtered, metrics)
}

/// Each of these queries drops the rows for which its key or a condition fails.
#[tokio::test]
async fn keys_that_can_fail_get_no_filter() {
    let (plain, filtered, metrics) = zeros_and_dim().await;
    let over = |key: &str| format!("SELECT id FROM (SELECT * FROM fact WHERE x <> 0) f JOIN dim ON {key} = dim.k");
    let from = |source: &str| format!("SELECT count(*) FROM ({source}) f JOIN dim ON f.q = dim.k");
    let queries = [
        over("10 / f.x"),
        over("10 % f.x"),
        over("1 + 10 / f.x"),
        over("CASE WHEN f.x = 4 THEN 10 / f.x ELSE f.x END"),
        over("coalesce(10 / f.x, 1)"),
        over("CAST(f.s AS BIGINT)"),
        over("CAST(CAST(f.s AS INT) AS BIGINT)"),
        over("f.big + f.big"),
        over("checked_id(f.x)"),
        // A cast to the zone of the other side, in which some times of a clock do not exist.
        "SELECT id FROM fact f JOIN dim ON f.tz = dim.ts".into(),
        // The optimizer moves a condition through each of these.
        from("SELECT 10 / x AS q FROM fact WHERE x <> 0"),
        from("SELECT q + 1 AS q FROM (SELECT 10 / x AS q FROM fact WHERE x <> 0)"),
        from("SELECT checked_id(x) AS q FROM fact WHERE x <> 0"),
        from("SELECT 10 / x AS q, max(id) FROM fact WHERE x <> 0 GROUP BY 10 / x"),
        from("SELECT DISTINCT 10 / x AS q FROM fact WHERE x <> 0"),
        from("SELECT id AS q FROM other UNION ALL SELECT 10 / x FROM fact WHERE x <> 0"),
        from("SELECT q, count(*) OVER (PARTITION BY q) FROM (SELECT 10 / x AS q FROM fact WHERE x <> 0)"),
        from("SELECT 10 / fact.x AS q FROM fact JOIN other ON fact.id = other.id WHERE fact.x <> 0"),
        from("SELECT q FROM (SELECT 10 / x AS q, id FROM fact WHERE x <> 0) f LEFT JOIN other ON other.id = f.id"),
        from("SELECT q FROM (SELECT 10 / x AS q, id FROM fact WHERE x <> 0 ORDER BY id)"),
        // A condition on a column holds for an equal one of another table.
        from(
            "SELECT y.id AS q FROM other y JOIN (SELECT 10 / x AS e, id FROM fact WHERE x <> 0) z ON y.id = z.e
             GROUP BY y.id, z.id",
        ),
        // A join of nothing does not read the other side.
        "SELECT * FROM none JOIN (SELECT * FROM dim WHERE 10 / zero > 1) d ON none.x = d.k".into(),
        "SELECT * FROM none JOIN (SELECT k FROM dim WHERE checked_id(zero) > 1) d ON none.x = d.k".into(),
        "SELECT * FROM none JOIN (SELECT 10 / zero AS k FROM dim) d ON none.x = d.k".into(),
        "SELECT * FROM none JOIN dim ON none.x = 10 / dim.zero".into(),
    ];
    for sql in &queries {
        let expected = rows(&plain, sql).await;
        assert_eq!(rows(&filtered, sql).await, expected, "{sql}");
        assert_eq!(metrics.planned(), 0, "{sql}");
    }
}

#[tokio::test]
async fn keys_that_cannot_fail_get_a_filter() {
    let (plain, filtered, metrics) = zeros_and_dim().await;
    let keys = [
        "f.x",
        "f.i",
        "f.x + 1",
        "f.x * 2 - f.i",
        "-f.x",
        "f.x % 7",
        "f.x / 2",
        "CASE WHEN f.x > 7 THEN 3 ELSE f.x END",
        "TRY_CAST(f.s AS BIGINT)",
    ];
    let mut queries: Vec<_> = keys
        .map(|key| format!("SELECT id FROM (SELECT * FROM fact WHERE x <> 0) f JOIN dim ON {key} = dim.k"))
        .into();
    queries.extend(
        [
            "SELECT id FROM fact f JOIN dim ON f.st['a'] = dim.k",
            "SELECT id FROM fact f JOIN dim ON f.tz = dim.tz",
            // Only the keys count, and one of several is enough.
            "SELECT f.id, q FROM (SELECT *, 10 / x AS q FROM fact WHERE x <> 0) f JOIN dim ON f.x = dim.k",
            "SELECT f.id FROM (SELECT * FROM fact WHERE x <> 0) f JOIN dim ON 12 / f.x = dim.k AND f.x = dim.k",
            "SELECT f.id FROM fact f JOIN (SELECT k, 10 / (k - 2) AS z FROM dim WHERE zero + 1 > 1) d ON f.x = d.k
             WHERE f.id + d.z > 9",
            "SELECT f.q FROM (SELECT i + 1 AS q, max(id) FROM fact GROUP BY i + 1) f JOIN dim ON f.q = dim.k",
            "SELECT f.q FROM (SELECT max(10 / x) AS q FROM fact WHERE x <> 0 GROUP BY id) f JOIN dim ON f.q = dim.k",
        ]
        .map(String::from),
    );
    for (at, sql) in queries.iter().enumerate() {
        let expected = rows(&plain, sql).await;
        assert_eq!(rows(&filtered, sql).await, expected, "{sql}");
        assert_eq!(metrics.planned(), at as u64 + 1, "{sql}");
    }
}

/// A star: the filter of the upper join goes below the lower join, which gets its own too.
#[tokio::test]
async fn every_join_of_a_star_gets_its_filter() {
    let (ctx, _) = fact_and_dim().await;
    let metrics = JoinFilters::new().small_table("dim").install(&ctx);
    let sql = "SELECT count(*) FROM fact JOIN dim a ON fact.d = a.d JOIN dim b ON fact.id = b.d
               JOIN dim c ON fact.id - 1 = c.d WHERE a.kind = 3 AND b.kind < 5 AND c.kind > 0";
    assert_eq!(rows(&ctx, sql).await[0], "|100|");
    assert_eq!(metrics.planned(), 3);
}

/// `pushdown_filters` moves the predicate into the scan of Parquet.
#[tokio::test]
async fn parquet_runs_the_filter_in_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    let config = SessionConfig::new()
        .with_target_partitions(2)
        .set_bool("datafusion.execution.parquet.pushdown_filters", true);
    let ctx = SessionContext::new_with_config(config);
    let metrics = JoinFilters::new().small_table("dim").install(&ctx);
    for sql in [
        format!(
            "COPY (SELECT value AS id, value % 1000 AS d FROM generate_series(1, 50000)) TO '{}/fact.parquet'",
            folder.path().display()
        ),
        format!(
            "CREATE EXTERNAL TABLE fact STORED AS PARQUET LOCATION '{}/fact.parquet'",
            folder.path().display()
        ),
        "CREATE TABLE dim AS SELECT value AS k FROM generate_series(0, 9)".into(),
    ] {
        ctx.sql(&sql).await.unwrap().collect().await.unwrap();
    }
    let sql = "SELECT sum(id) FROM fact JOIN dim ON d = k";
    let plan = explained(&ctx, &format!("EXPLAIN {sql}")).await;
    let scan = plan.lines().find(|line| line.contains("file_type=parquet")).unwrap();
    assert!(scan.contains("predicate=bloom_contains("), "{plan}");
    assert!(!plan.contains("FilterExec"), "{plan}");
    let expected: i64 = (1..=50_000).filter(|id| id % 1000 < 10).sum();
    assert_eq!(rows(&ctx, sql).await[0], format!("|{expected}|"));
    assert_eq!((metrics.rows_in(), metrics.rows_pruned()), (50_000, 49_500));
}

/// A filter that prunes too little is tried again only after a million rows.
#[tokio::test]
async fn a_filter_that_prunes_little_is_tried_rarely() {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let metrics = JoinFilters::new().min_pruned(0.6).small_table("dim").install(&ctx);
    for sql in [
        // Rows with a partner are 45% of the first million and a half, and 0.1% of the rest.
        "CREATE TABLE fact AS SELECT value AS id,
                CASE WHEN value < 1500000 THEN value % 100 ELSE value % 45000 END AS d FROM generate_series(1, 3000000)",
        "CREATE TABLE dim AS SELECT value AS d FROM generate_series(0, 44)",
    ] {
        ctx.sql(sql).await.unwrap().collect().await.unwrap();
    }
    let sql = "SELECT count(*) FROM fact JOIN dim ON fact.d = dim.d";
    let expected = (1..=3_000_000).filter(|id| if *id < 1_500_000 { id % 100 } else { id % 45_000 } < 45);
    assert_eq!(rows(&ctx, sql).await[0], format!("|{}|", expected.count()));
    // Twice 65,536 rows and the million after each, then the rest. Windows end with a batch.
    let (looked_up, skipped) = (metrics.rows_in(), metrics.rows_skipped());
    assert_eq!(looked_up + skipped, 3_000_000);
    assert!((2_090_000..=2_110_000).contains(&skipped), "{skipped}");
    assert!(metrics.rows_pruned() > 700_000, "{}", metrics.rows_pruned());
}
