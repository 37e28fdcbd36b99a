//! Runs the files of `tests/slt`, in the format of sqllogictest: `statement ok`, `statement error`
//! with a part of its message, and `query` with rows whose values are separated by spaces.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::prelude::{SessionConfig, SessionContext};

/// The rows as sqllogictest writes them: NULL, (empty), and no alignment.
fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut out = vec![];
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let values = columns.iter().map(|column| match column.value(row).to_string() {
                value if value.is_empty() => "(empty)".into(),
                value => value,
            });
            out.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    out
}

async fn run(ctx: &SessionContext, file: &str, text: &str) -> usize {
    let mut checked = 0;
    for record in text.split("\n\n") {
        let lines = record.lines().filter(|line| !line.starts_with('#'));
        let lines: Vec<&str> = lines.collect();
        let Some(head) = lines.first().filter(|line| !line.is_empty()) else {
            continue;
        };
        let split = lines.iter().position(|line| *line == "----").unwrap_or(lines.len());
        let sql = lines[1..split].join("\n");
        let result = match ctx.sql(&sql).await {
            Ok(frame) => frame.collect().await,
            Err(error) => Err(error),
        };
        if let Some(part) = head.strip_prefix("statement error ") {
            let error = result.expect_err(&format!("{file}: no error from {sql}")).to_string();
            assert!(error.contains(part), "{file}: {sql}\n{error}");
        } else {
            let result = result.unwrap_or_else(|error| panic!("{file}: {sql}\n{error}"));
            if head.starts_with("query") {
                let mut found = rows(&result);
                if head.ends_with("rowsort") {
                    found.sort();
                }
                assert_eq!(found, lines[split + 1..], "{file}: {sql}");
            }
        }
        checked += 1;
    }
    checked
}

/// One partition, and several of small batches, so that states are merged.
fn contexts() -> [SessionContext; 2] {
    [(1, 8192), (4, 2)].map(|(partitions, batch)| {
        let config = SessionConfig::new()
            .with_target_partitions(partitions)
            .with_batch_size(batch);
        let ctx = SessionContext::new_with_config(config);
        lanebloom_datafusion::register(&ctx);
        ctx
    })
}

#[tokio::test]
async fn the_files() {
    let mut checked = 0;
    let mut files: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slt"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        for ctx in contexts() {
            checked += run(&ctx, &path.display().to_string(), &text).await;
        }
    }
    assert!(checked > 100, "{checked} records");
}

/// Keys of the left type, looked up as the right one. Several types are casts in a row, and none is
/// the type of the literals.
#[tokio::test]
async fn every_type_is_a_key() {
    let numbers = [
        ("Int8", "Int64"),
        ("Int16", "UInt8"),
        ("Int32", "UInt16"),
        ("Int64", "UInt32"),
        ("UInt8", "UInt64"),
        ("UInt16", "Int8"),
        ("UInt32", "Int16"),
        ("UInt64", "Int32"),
        ("Float16", "Float64"),
        ("Float32", "Float16"),
        ("Float64", "Float32"),
        ("Decimal32(9, 2)", "Decimal128(38, 2)"),
        ("Decimal64(18, 2)", "Decimal256(76, 2)"),
        ("Decimal128(38, 2)", "Decimal64(18, 2)"),
        ("Decimal256(76, 2)", "Decimal32(9, 2)"),
        ("Int32>Date32", "Int32>Date32>Date64"),
        ("Int32>Date32>Date64", "Int32>Date32"),
        ("Timestamp(s)", "Timestamp(s)"),
        ("Timestamp(ms, \"+02:00\")", "Timestamp(ms, \"UTC\")"),
        ("Timestamp(us)", "Timestamp(us)"),
        ("Timestamp(ns)", "Timestamp(ns)"),
        ("Int32>Time32(s)", "Int32>Time32(s)"),
        ("Time64(us)", "Time64(us)"),
        ("Time64(ns)", "Time64(ns)"),
        ("Duration(ms)", "Duration(ms)"),
        ("Dictionary(Int8, Int64)", "Int16"),
    ];
    let strings = [
        ("Utf8", "Utf8View"),
        ("LargeUtf8", "Binary"),
        ("Utf8View", "LargeBinary"),
        ("Binary", "BinaryView"),
        ("LargeBinary", "Utf8"),
        ("BinaryView", "LargeUtf8"),
    ];
    let letters = [
        ("Binary>FixedSizeBinary(1)", ""),
        ("Dictionary(Int32, Utf8)", ""),
        ("", "Dictionary(UInt8, Utf8View)"),
    ];
    let cast = |types: &str| {
        let types = types.split_terminator('>');
        types.fold("x".to_string(), |value, of| format!("arrow_cast({value}, '{of}')"))
    };
    let contexts = contexts();
    for (types, keys, values) in [
        (&numbers[..], "(1), (2)", "(1), (3), (NULL)"),
        (&strings, "('a'), ('')", "('a'), ('b'), (NULL)"),
        (&letters, "('a'), ('a'), ('c')", "('a'), ('b'), (NULL)"),
    ] {
        for (key, value) in types.iter().map(|(key, value)| (cast(key), cast(value))) {
            for (contains, filter) in [
                ("bloom_contains", format!("bloom_agg({key})")),
                ("might_contain", format!("bloom_filter_agg({key}, 1000, 0.001)")),
            ] {
                let sql = format!(
                    "SELECT {contains}((SELECT {filter} FROM (VALUES {keys}) t(x)), {value}) FROM (VALUES {values}) t(x)"
                );
                for ctx in &contexts {
                    let mut found = rows(&ctx.sql(&sql).await.unwrap().collect().await.unwrap());
                    found.sort();
                    assert_eq!(found, ["NULL", "false", "true"], "{sql}");
                }
            }
        }
    }
}

/// 1,000,000 keys in 8,388,608 bits, 8 bits for each expected key, or the given number of bits; at
/// most 4,000,000 keys, and 67,108,864 bits.
#[tokio::test]
async fn sizes_are_those_of_spark() {
    let ctx = SessionContext::new();
    lanebloom_datafusion::register(&ctx);
    let sql = "SELECT bloom_filter_agg(x), bloom_filter_agg(x, 1000), bloom_filter_agg(x, 1000, 640),
                      bloom_filter_agg(x, 100000000), bloom_filter_agg(x, 1000, 640, 2),
                      bloom_filter_agg(x, 1000, 100000000) FROM (VALUES (1)) t(x)";
    let batches = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    let columns = batches[0].columns().iter();
    let bytes: Vec<_> = columns.map(|column| column.as_binary::<i32>().value(0).len()).collect();
    assert_eq!(
        bytes,
        [
            12 + 1_048_576,
            12 + 1000,
            12 + 80,
            12 + 4_000_000,
            16 + 80,
            12 + 8_388_608
        ]
    );
}

/// The SQL of the README, as it is printed there.
#[tokio::test]
async fn the_readme_works() {
    let ctx = SessionContext::new();
    lanebloom_datafusion::register(&ctx);
    let tables = "CREATE TABLE customers AS SELECT value AS id, value AS user_id,
                         CASE WHEN value % 2 = 0 THEN 'IS' ELSE 'FO' END AS country FROM generate_series(1, 20);
                  CREATE TABLE events AS SELECT value AS user_id FROM generate_series(1, 100);
                  CREATE TABLE from_spark AS SELECT bloom_filter_agg(value, 1000, 0.001) AS f FROM generate_series(1, 5)";
    let (_, sql) = include_str!("../README.md").split_once("```sql\n").unwrap();
    let (sql, _) = sql.split_once("```").unwrap();
    let mut answers = vec![];
    for statement in tables.split(';').chain(sql.trim().trim_end_matches(';').split(';')) {
        let batches = ctx.sql(statement).await.unwrap().collect().await.unwrap();
        answers.extend(rows(&batches));
    }
    // 10 of 100 events, a filter of Spark's, 5 events, and what is in the first filter.
    let [contained, spark, might, figures] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((&contained[..], &might[..]), ("10", "5"));
    assert_eq!(figures, "{class: integers, bytes: 80, keys: 10, rate: 0.0}");
    assert_eq!(spark.len(), 2 * (12 + 1_048_576));
}
