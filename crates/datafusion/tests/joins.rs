//! The rule for joins: random plans with and without it, what it plans, and what it leaves alone.

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use lanebloom_datafusion::{JoinFilters, Metrics};
use std::sync::Arc;

/// Xorshift64*; a test's numbers are the same each time.
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

    /// A table of up to 40 rows: two keys and a string, all with NULLs and duplicates.
    fn table(&mut self) -> MemTable {
        let rows = [0, 1, 5, 40][self.below(4) as usize];
        let keys = 1 + self.below(30);
        let mut column = |nulls: u64| -> Vec<Option<i64>> {
            let mut value = || (self.below(10) >= nulls).then(|| self.below(keys) as i64);
            (0..rows).map(|_| value()).collect()
        };
        let (a, b, s) = (column(1), column(3), column(2));
        let narrow = b.into_iter().map(|value| value.map(|value| value as i32));
        let strings = s.into_iter().map(|value| value.map(|value| format!("s{value}")));
        let columns: [(&str, ArrayRef, bool); 3] = [
            ("a", Arc::new(Int64Array::from(a)), true),
            ("b", Arc::new(narrow.collect::<Int32Array>()), true),
            ("s", Arc::new(strings.collect::<StringArray>()), true),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()
    }

    fn condition(&mut self, table: &str) -> String {
        match self.below(6) {
            0 => "true".into(),
            1 => format!("{table}.a < {}", self.below(30)),
            2 => format!("{table}.b % 3 = {}", self.below(3)),
            3 => format!("{table}.s > 's{}'", self.below(30)),
            4 => format!("{table}.a IS NULL"),
            _ => format!("{table}.a IN (1, 4, 9, {})", self.below(30)),
        }
    }

    /// A condition that joins two tables.
    fn on(&mut self, one: &str, other: &str) -> String {
        let mut on = match self.below(6) {
            0 => format!("{one}.a = {other}.b"),
            1 => format!("{one}.s = {other}.s"),
            2 => format!("{one}.a + 1 = {other}.a"),
            3 => format!("{one}.b = {other}.b AND {one}.s = {other}.s"),
            4 => format!("({one}.a IS NOT DISTINCT FROM {other}.a)"),
            _ => format!("{one}.a = {other}.a"),
        };
        if self.below(4) == 0 {
            on += &format!(" AND {one}.b < {other}.a");
        }
        on
    }

    fn query(&mut self) -> String {
        let (x, y) = (self.condition("x"), self.condition("y"));
        let on = self.on("x", "y");
        match self.below(10) {
            0 => format!("SELECT * FROM t x JOIN u y ON {on} WHERE {x} AND {y}"),
            1 => format!("SELECT * FROM t x WHERE {x} AND EXISTS (SELECT 1 FROM u y WHERE {on} AND {y})"),
            2 => format!("SELECT * FROM t x WHERE x.a IN (SELECT y.a FROM u y WHERE {y})"),
            3 => format!("SELECT * FROM t x WHERE NOT EXISTS (SELECT 1 FROM u y WHERE {on} AND {y})"),
            4 => {
                let kind = self.one_of(&["LEFT", "RIGHT", "FULL"]);
                format!("SELECT * FROM t x {kind} JOIN u y ON {on} WHERE {x}")
            }
            5 => {
                let (third, z) = (self.on("y", "z"), self.condition("z"));
                format!("SELECT * FROM t x JOIN u y ON {on} JOIN v z ON {third} WHERE {x} AND {z}")
            }
            6 => {
                let third = self.on("x", "z");
                format!("SELECT x.a, y.s FROM t x LEFT JOIN u y ON {on} JOIN v z ON {third} WHERE z.b > 2")
            }
            7 => format!(
                "SELECT x.a, count(*), min(y.s) FROM (SELECT a, b, s FROM t UNION ALL SELECT a, b, s FROM v) x
                 JOIN (SELECT DISTINCT a, b, s FROM u) y ON {on} WHERE {x} GROUP BY x.a"
            ),
            // A semi join in which NULL equals NULL.
            8 => format!("SELECT x.a FROM t x WHERE {x} INTERSECT SELECT y.a FROM u y WHERE {y}"),
            _ => format!(
                "SELECT x.a, y.b FROM t x JOIN (SELECT * FROM u ORDER BY a, b, s LIMIT 5) y ON {on} WHERE {y} AND {x}"
            ),
        }
    }
}

fn contexts(random: &mut Random) -> (SessionContext, SessionContext, Arc<Metrics>) {
    let batch = [1, 3, 8192][random.below(3) as usize];
    let config = SessionConfig::new()
        .with_target_partitions(1 + random.below(3) as usize)
        .with_batch_size(batch)
        .set_bool(
            "datafusion.optimizer.enable_physical_uncorrelated_scalar_subquery",
            // As Ballista has it.
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
    // Filters wherever they are allowed.
    let rule = JoinFilters::new().min_ratio(0).small_table("u").small_table("v");
    let metrics = rule.rate(0.3).unwrap().install(&filtered);
    (plain, filtered, metrics)
}

async fn rows(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let frame = ctx.sql(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let batches = frame.collect().await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let text = pretty_format_batches(&batches).unwrap().to_string();
    let mut lines: Vec<String> = text.lines().map(|line| line.replace(' ', "")).collect();
    lines.retain(|line| line.starts_with('|'));
    lines.sort();
    // The header, which an empty result may lack.
    lines
}

/// `LANEBLOOM_PLANS` sets how many; 10,000 take some minutes.
#[tokio::test]
async fn random_plans_give_the_same_rows() {
    let plans = std::env::var("LANEBLOOM_PLANS").map_or(400, |plans| plans.parse().unwrap());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut planned, mut pruned, mut run) = (0, 0, 0);
    while run < plans {
        let (plain, filtered, metrics) = contexts(&mut random);
        for _ in 0..20 {
            let sql = random.query();
            let expected = rows(&plain, &sql).await;
            assert_eq!(rows(&filtered, &sql).await, expected, "{sql}");
            run += 1;
        }
        planned += metrics.planned();
        pruned += metrics.rows_pruned();
    }
    println!("{run} plans, {planned} filters, {pruned} rows pruned");
    assert!(planned > plans as u64 / 4, "{planned} filters");
    assert!(pruned > plans as u64, "{pruned} rows");
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

    // More rows than are allowed; a hint at one of two tables.
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

/// A filter that prunes too little is asked again only after a million rows.
#[tokio::test]
async fn a_filter_that_prunes_little_is_not_asked() {
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
