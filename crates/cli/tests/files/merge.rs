//! `merge` and `convert`.

use super::{Shell, Value, lines, stderr};
use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom::hash::SipHash13;
use lanebloom::{ConcurrentBloom, CuckooFilter, ScalableBloom};
use lanebloom_formats::GuavaBloom;
use serde_json::json;

/// The union of two filters of the same layout is the filter of all keys, bit for bit.
#[test]
fn a_merge_is_what_was_built_of_both() {
    let shell = Shell::new();
    shell.write("a", lines(0..50_000));
    shell.write("b", lines(30_000..90_000));
    for (format, rate) in [("lanebloom", "1e-3"), ("lanebloom", "1e-6"), ("guava", "0.01")] {
        for (files, name) in [("a", "fa"), ("b", "fb"), ("a b", "both")] {
            shell.ok(&format!(
                "build {files} -o {name} --format {format} --rate {rate} --expected 90000"
            ));
        }
        shell.ok("merge fa fb -o merged");
        assert_eq!(shell.read("merged"), shell.read("both"), "{format}");
        shell.ok("merge fb fa fa -o fa");
        assert_eq!(shell.read("fa"), shell.read("both"), "{format}");
    }
}

/// Filters that differ, or would be overfull, are layers of one filter.
#[test]
fn a_merge_keeps_the_rate() {
    let shell = Shell::new();
    shell.write("a", lines(0..20_000));
    shell.write("b", lines(20_000..40_000));
    shell.ok("build a -o fa --expected 21000");
    shell.ok("build b -o fb --expected 21000");
    let merged = shell.run("merge fa fb -o both");
    let text = stderr(&merged);
    assert!(
        text.starts_with("2 files, one ScalableBloom of 2 filters, 59.62 KiB, at most about "),
        "{text}"
    );
    // Twice a rate of 0.65%, where one layer would have 9%.
    assert!(text.ends_with(", rate 1.31%\n"), "{text}");
    assert_eq!(shell.fact("both", "kind"), "ScalableBloom");
    assert_eq!(shell.fact("both", "layers"), "2");
    assert_eq!(shell.fact("both", "overfull"), "no");
    assert_eq!(shell.ok("query both a b --absent"), "");

    // The order does not matter, and a third filter may come.
    shell.ok("--quiet merge fb both fa -o all");
    assert_eq!(shell.fact("all", "layers"), "2");

    // A growing one has layers of two sizes, and a state of dedup may be one of them.
    shell.ok("build b -o fb --rate 1e-4");
    shell.ok("--quiet merge fa fb -o both");
    assert_eq!(shell.ok("query both a b --absent"), "");
    let output = shell.run_with("dedup --state both --count", lines(0..40_000));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{}", stderr(&output));
    assert_eq!(shell.fact("both", "kind"), "ScalableBloom");
    // So may a ConcurrentBloom be.
    assert_eq!(shell.fact("fa", "kind"), "ConcurrentBloom");
    let output = shell.run_with("dedup --state fa --count", lines(0..20_000));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{}", stderr(&output));
    assert_eq!(shell.fact("fa", "kind"), "ScalableBloom");
}

#[test]
fn what_cannot_be_merged() {
    let shell = Shell::new();
    shell.write("keys", lines(0..1000));
    shell.ok("build keys -o bloom");
    let seven = ConcurrentBloom::builder().expected_keys(1000).seed(7).build().unwrap();
    shell.write("seven", seven.snapshot().to_vec());
    shell.ok("build keys -o guava --format guava --expected 1000");
    shell.ok("build keys -o other --format guava --expected 2000");
    shell.ok("build keys -o redis --format redisbloom --redis-key a");
    shell.write(
        "cuckoo",
        CuckooFilter::with_capacity(1000, 0.01).unwrap().snapshot().to_vec(),
    );
    shell.write(
        "scalable",
        ScalableBloom::with_capacity(1000, 0.01).unwrap().snapshot().to_vec(),
    );
    let keyed = ConcurrentBloom::builder()
        .expected_keys(1000)
        .hasher(SipHash13::random());
    shell.write("keyed", keyed.clone().build().unwrap().snapshot().to_vec());
    shell.write(
        "rekeyed",
        keyed.hasher(SipHash13::random()).build().unwrap().snapshot().to_vec(),
    );
    shell.ok("build keys -o fast --hasher fast");
    for (files, reason) in [
        (
            "bloom seven",
            "the hasher differs: Murmur3 with seed 7 there, Murmur3 with seed 0 here",
        ),
        (
            "bloom fast",
            "the hasher differs: FastHash with seed 0 there, Murmur3 with seed 0 here",
        ),
        (
            "keyed rekeyed",
            "the hasher differs: SipHash-1-3 there, SipHash-1-3 here with other keys",
        ),
        (
            "bloom guava",
            "the kind differs: a GuavaBloom there, a ConcurrentBloom here",
        ),
        (
            "guava other",
            "the other filter's layout differs: MURMUR128_MITZ_64, 19200 bits",
        ),
        ("redis redis", "a RedisBloom counts its keys"),
        ("cuckoo cuckoo", "a CuckooFilter has no union"),
        (
            "bloom keyed",
            "the hasher differs: SipHash-1-3 there, Murmur3 with seed 0 here",
        ),
    ] {
        let error = shell.error(&format!("merge {files} -o merged"));
        let (first, second) = files.split_once(' ').unwrap();
        let begin = format!("lanebloom: cannot merge {second} with {first}: ");
        assert!(error.starts_with(&begin) && error.contains(reason), "{error}");
        assert!(!shell.path("merged").exists());
    }
    shell.fails("merge bloom -o merged", "2 values");
    let grown = ScalableBloom::with_capacity(1000, 0.01).unwrap();
    grown.insert_all(lines(0..10_000).lines()).unwrap();
    shell.write("grown", grown.snapshot().to_vec());
    for files in ["scalable grown", "grown scalable"] {
        shell.ok(&format!("merge {files} -o merged"));
        assert_eq!(shell.fact("merged", "kind"), "ScalableBloom");
        assert_eq!(shell.run_with("query merged", lines(0..10_000)).status.code(), Some(0));
    }
}

/// The summary has the kind of what is written. Numbers are counted, and keys are estimated.
#[test]
fn a_summary_names_the_kind() {
    let shell = Shell::new();
    let bitmap = ConcurrentBitmap::new(1000).unwrap();
    (0..5).for_each(|number| assert_eq!(bitmap.insert(number), Ok(true)));
    shell.write("bitmap", bitmap.snapshot().to_vec());
    let text = stderr(&shell.run("merge bitmap bitmap -o both"));
    assert_eq!(text, "2 files, one ConcurrentBitmap, 128 B, 5 numbers\n");
    let text = stderr(&shell.run("merge bitmap bitmap -o both --json-summary"));
    let found: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({"files": 2, "kind": "ConcurrentBitmap", "filters": 1, "memory_bytes": 128, "numbers": 5});
    assert_eq!(found, expected);

    shell.write("keys", lines(0..1000));
    shell.ok("build keys -o redis --format redisbloom --redis-key a");
    let text = stderr(&shell.run("convert redis -o same --to redisbloom"));
    assert_eq!(text, "same, one RedisBloom, 1.62 KiB, about 997 keys, rate 0.49%\n");
}

/// Filters under a secret key are merged without it.
#[test]
fn filters_of_a_hasher_that_is_not_at_hand() {
    let shell = Shell::new();
    let hasher = SipHash13::random();
    let filter = |keys: std::ops::Range<u32>| {
        let builder = ConcurrentBloom::builder().expected_keys(1000).hasher(hasher);
        let filter = builder.build().unwrap();
        filter.insert_all(keys);
        filter.snapshot().to_vec()
    };
    shell.write("one", filter(0..300));
    shell.write("two", filter(200..500));
    shell.ok("merge one two -o both");
    assert!(shell.read("both") == filter(0..500));
    let scalable = |keys: std::ops::Range<u32>| {
        let builder = ScalableBloom::builder().expected_keys(1000).hasher(hasher);
        let filter = builder.build().unwrap();
        filter.insert_all(keys).unwrap();
        filter.snapshot().to_vec()
    };
    shell.write("one", scalable(0..300));
    shell.write("two", scalable(200..500));
    shell.ok("merge one two -o both");
    assert!(shell.read("both") == scalable(0..500));
    shell.ok("convert both -o plain --to lanebloom");
    assert_eq!(shell.fact("plain", "kind"), "ConcurrentBloom");
    shell.fails(
        "query plain one",
        "SipHash-1-3 with a secret key, which is not in the file",
    );
}

#[test]
fn conversions() {
    let shell = Shell::new();
    let all = lines(0..5000);
    let keys: Vec<&str> = all.lines().collect();
    let scalable = ScalableBloom::builder().expected_keys(500).seed(3).build().unwrap();
    scalable.insert_all(&keys).unwrap();
    shell.write("scalable", scalable.snapshot().to_vec());
    shell.write("keys", &all);
    let error = shell.error("convert scalable -o bloom --to lanebloom");
    let text = format!(
        "it has {} layers, and a ConcurrentBloom has one: run `build`",
        scalable.layers().len()
    );
    assert!(error.contains(&text), "{error}");
    // All keys are in one layer.
    let scalable = ScalableBloom::builder().hint(5000).seed(3).build().unwrap();
    scalable.insert_all(&keys).unwrap();
    shell.write("scalable", scalable.snapshot().to_vec());
    shell.ok("convert scalable -o bloom --to lanebloom");
    assert!(shell.read("bloom") == scalable.into_layers()[0].snapshot().to_vec());
    assert_eq!(shell.fact("bloom", "kind"), "ConcurrentBloom");
    assert_eq!(shell.fact("bloom", "hasher"), "Murmur3, seed 3");
    assert_eq!(shell.ok("query bloom keys --present"), all);
    assert_eq!(
        shell.run("query bloom scalable").stdout,
        shell.run("query scalable scalable").stdout
    );

    shell.write(
        "cuckoo",
        CuckooFilter::with_capacity(10, 0.01).unwrap().snapshot().to_vec(),
    );
    shell.write("guava", GuavaBloom::with_capacity(10, 0.01).unwrap().to_bytes());
    for (file, target) in [
        ("guava", "lanebloom"),
        ("bloom", "redisbloom --redis-key a"),
        ("cuckoo", "lanebloom"),
    ] {
        let error = shell.error(&format!("convert {file} -o out --to {target}"));
        assert!(
            error.starts_with(&format!("lanebloom: cannot convert {file}: ")),
            "{error}"
        );
        assert!(
            error.ends_with("it does not hold its keys: run `build` on the keys\n"),
            "{error}"
        );
        assert!(!shell.path("out").exists());
    }
}
