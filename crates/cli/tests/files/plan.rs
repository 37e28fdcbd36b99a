//! `plan`.

use super::{Shell, Value};
use lanebloom::{ConcurrentBloom, CuckooFilter, ScalableBloom, StaticFilter};
use lanebloom_formats::{GuavaBloom, RedisBloom};

/// The cells of a table: more than one space separates them.
fn cells(line: &str) -> Vec<&str> {
    line.split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

/// The same figures as the table's, for programs.
#[test]
fn plans_as_json() {
    let shell = Shell::new();
    let objects = |line: &str| -> Vec<Value> {
        let text = shell.ok(line);
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of_rate = objects("plan --keys 1000 --rate 0.01 --json");
    assert_eq!(of_rate.len(), 11);
    let bloom = ConcurrentBloom::with_capacity(1000, 0.01).unwrap();
    let is_about = |value: &Value, expected: f64| assert!((value.as_f64().unwrap() / expected - 1.0).abs() < 1e-12);
    let found = of_rate
        .iter()
        .find(|object| object["filter"] == "ConcurrentBloom")
        .unwrap();
    is_about(&found["bits_per_key"], bloom.statistics().bits_per_key);
    assert_eq!(found["memory_bytes"], bloom.memory_bytes());
    assert_eq!((&found["keys"], &found["rate_wanted"]), (&1000.into(), &0.01.into()));
    is_about(&found["rate"], bloom.false_positive_rate());
    assert_eq!(
        (&found["lines_present"], &found["lines_absent"]),
        (&1.0.into(), &1.0.into())
    );
    let all = objects("plan --keys 1000 --json");
    assert_eq!(all.len(), 8 * 11);
    assert!(of_rate.iter().all(|object| all.contains(object)));
    // Out of reach for fingerprints of 21 bits.
    let last = all.iter().rfind(|object| object["filter"] == "CuckooFilter").unwrap();
    assert!(last["rate"].is_null() && last["memory_bytes"].is_null(), "{last}");
}

/// The figures are those of the library's filters, without their memory.
#[test]
fn plans() {
    let shell = Shell::new();
    let table = shell.ok("plan --keys 3M --rate 0.1%");
    let bits = |name: &str| -> f64 {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        cells(line)[2].parse().unwrap()
    };
    let bloom = ConcurrentBloom::with_capacity(3_000_000, 1e-3).unwrap();
    let cuckoo = CuckooFilter::with_capacity(3_000_000, 1e-3).unwrap();
    let guava = GuavaBloom::with_capacity(3_000_000, 1e-3).unwrap();
    let scalable = ScalableBloom::with_capacity(3_000_000, 1e-3).unwrap();
    let redis = RedisBloom::with_capacity(3_000_000, 1e-3).unwrap();
    let fixed = StaticFilter::from_keys(0..3_000_000u32, 1e-3).unwrap();
    for (name, built) in [
        ("ConcurrentBloom", bloom.statistics().bits_per_key),
        ("CuckooFilter", cuckoo.statistics().bits_per_key),
        ("GuavaBloom", guava.statistics().bits_per_key),
        ("ScalableBloom", scalable.statistics().bits_per_key),
        ("RedisBloom", redis.statistics().bits_per_key),
        ("StaticFilter", fixed.statistics().bits_per_key),
        ("textbook Bloom filter", 14.3776),
    ] {
        assert!((bits(name) - built).abs() < 0.055, "{name}: {} and {built}", bits(name));
    }
    // 1.125 cells for each key.
    for (rate, expected) in [("0.0039063", "9.0"), ("0.0000152588", "18.0")] {
        let table = shell.ok(&format!("plan --keys 10M --rate {rate}"));
        let line = table.lines().find(|line| line.starts_with("StaticFilter")).unwrap();
        assert_eq!((cells(line)[2], cells(line)[5]), (expected, "3"));
        assert!(table.contains("it is not for keys that change"));
    }
    // A small one is built as it is.
    let table = shell.ok("plan --keys 1000 --rate 0.01");
    let line = table.lines().find(|line| line.starts_with("ConcurrentBloom")).unwrap();
    assert_eq!(
        cells(line),
        ["ConcurrentBloom", "1.38 KiB", "11.3", "1.18", "0.87%", "1", "1"]
    );

    let table = shell.ok("plan --keys 1000");
    let row: Vec<_> = table.lines().find(|line| line.starts_with("1.00%")).map(cells).unwrap();
    assert_eq!(
        row,
        [
            "1.00%", "9.6", "1.17 KiB", "11.3", "1.38 KiB", "1", "10.8", "1.31 KiB", "12.9", "1.57 KiB"
        ]
    );
    // Out of reach for fingerprints of 21 bits.
    let last = table.lines().find(|line| line.starts_with("1.00e-7")).unwrap();
    assert!(last.ends_with('-'), "{last}");

    // The hashers of `build` follow both tables, once.
    let help = shell.ok("build --help");
    for line in ["plan --keys 1000", "plan --keys 1000 --rate 0.01"] {
        let table = shell.ok(line);
        let (_, hashers) = table.split_once("\n\n").unwrap();
        for (hasher, hostile) in [("murmur3", "no"), ("fast", "no"), ("prehashed", "as yours")] {
            assert!(help.contains(&format!("- {hasher}:")), "{help}");
            let row: Vec<_> = hashers.lines().map(cells).filter(|row| row.contains(&hasher)).collect();
            assert_eq!(row.len(), 1, "{hashers}");
            assert_eq!(row[0].last(), Some(&hostile));
        }
    }

    // Terabytes are planned in a quarter of a gigabyte of address space.
    #[cfg(unix)]
    for line in ["plan --keys 1e12 --rate 1e-6", "plan --keys 1e12"] {
        let output = shell.run_after("ulimit -v 262144", line);
        assert!(output.status.success(), "{}", super::stderr(&output));
        let table = String::from_utf8(output.stdout).unwrap();
        let is_planned = |line: &str| line.matches("TiB").count() == if line.starts_with('1') { 4 } else { 1 };
        let row = table
            .lines()
            .find(|line| line.starts_with("ConcurrentBloom") || line.starts_with("1.00e-6"));
        assert!(is_planned(row.unwrap()), "{table}");
    }
    shell.fails("plan --keys 0", "--keys");
    shell.fails("plan --keys 5 --rate 2", "--rate");
}
