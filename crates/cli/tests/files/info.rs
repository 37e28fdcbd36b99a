//! `info`: every kind of file, and every way in which one can be wrong.

use super::{Shell, Value, data, lines, stderr};
use lanebloom::hash::{KeyHasher, Murmur3, SipHash13};
use lanebloom::{ConcurrentBloom, ScalableBloom, WindowedBloom};
use lanebloom_formats::GuavaBloom;
use std::fs;
use std::time::Duration;
#[cfg(unix)]
use std::{io::Write, process};
use twox_hash::XxHash3_64;

/// The same facts as the rows, with numbers as numbers.
#[test]
fn info_as_json() {
    let shell = Shell::new();
    shell.write("two", fs::read(data("snapshot_v1_two.bin")).unwrap());
    let text = shell.ok("info --json two two");
    let (first, second) = text.split_once('\n').unwrap();
    assert_eq!(second.strip_suffix('\n'), Some(first));
    // In the order of the rows.
    assert!(
        first.starts_with(r#"{"file":"two","kind":"ConcurrentBloom","format":"#),
        "{first}"
    );
    let value: Value = serde_json::from_str(first).unwrap();
    let bloom = ConcurrentBloom::from_bytes(&shell.read("two")).unwrap().0;
    let now = bloom.statistics();
    for (name, expected) in [
        ("bytes", Value::from(1536)),
        ("hasher", "Murmur3, seed 7".into()),
        ("memory_bytes", bloom.memory_bytes().into()),
        ("keys_estimated", now.len.into()),
        ("checksum", "correct".into()),
    ] {
        assert_eq!(value[name], expected, "{name}");
    }
    for (name, expected) in [
        ("rate_planned", bloom.false_positive_rate()),
        ("fill", now.fill_ratio),
        ("rate_now", now.false_positive_rate),
    ] {
        let found = value[name].as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 1e-12, "{name}: {found} and {expected}");
    }
    assert_eq!(value.as_object().unwrap().len(), shell.ok("info two").lines().count());

    // Layers are an array.
    let scalable = ScalableBloom::with_capacity(100, 0.01).unwrap();
    scalable.insert_all((0..1000).map(|key: u32| key.to_string())).unwrap();
    shell.write("scalable", scalable.snapshot().to_vec());
    let value: Value = serde_json::from_str(&shell.ok("info --json scalable")).unwrap();
    let layers = value["each_layer"].as_array().unwrap();
    assert!(layers.len() > 1 && value["layers"] == layers.len(), "{value}");
    let keys: u64 = layers
        .iter()
        .map(|layer| layer["keys_estimated"].as_u64().unwrap())
        .sum();
    assert!((900..1100).contains(&keys), "{value}");
    assert_eq!(
        layers[1]["blocks"],
        shell.fact("scalable", "layer 2: blocks").parse::<u64>().unwrap()
    );
}

/// One row for each fact, always in the same words.
#[test]
fn info_of_a_snapshot() {
    let shell = Shell::new();
    shell.write("two", fs::read(data("snapshot_v1_two.bin")).unwrap());
    let expected = "\
file            two
kind            ConcurrentBloom
format          snapshot of lanebloom, version 1
bytes           1536
hasher          Murmur3, seed 7
words per key   2
bits per line   6
lines per key   1
blocks          21
keys expected   1000
memory          1.31 KiB
rate planned    1.03%
keys estimated  504
fill            24.11%
rate now        5.91e-4
overfull        no
checksum        correct
";
    assert_eq!(shell.ok("info two"), expected);
    assert_eq!(shell.ok("info two two"), format!("{expected}\n{expected}"));
    let output = shell.run_with("info -", shell.read("two"));
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        expected.replace("  two", "  stdin")
    );
}

/// The verdict about the rate: of one filter, of layers, of a stream of Guava.
#[test]
fn info_says_when_a_filter_is_overfull() {
    let shell = Shell::new();
    let filled = |keys: u32| {
        let filter = ConcurrentBloom::with_capacity(1000, 0.01).unwrap();
        filter.insert_all(0..keys);
        filter
    };
    let both = |one, other| {
        let builder = ScalableBloom::builder().false_positive_rate(0.02);
        builder.build_from([one, other]).unwrap().snapshot().to_vec()
    };
    let guava = |keys: u32| {
        let filter = GuavaBloom::with_capacity(1000, 0.01).unwrap();
        filter.insert_all(0..keys);
        filter.to_bytes()
    };
    for (bytes, overfull) in [
        (filled(1000).snapshot().to_vec(), false),
        (filled(2000).snapshot().to_vec(), true),
        (both(filled(1000), filled(900)), false),
        (both(filled(1000), filled(2000)), true),
        (guava(1000), false),
        (guava(2000), true),
    ] {
        shell.write("file", bytes);
        assert_eq!(shell.fact("file", "overfull"), if overfull { "yes" } else { "no" });
        let value: Value = serde_json::from_str(&shell.ok("info --json file")).unwrap();
        assert_eq!(value["overfull"], overfull);
        assert!((value["rate_now"].as_f64().unwrap() > 0.03) == overfull);
    }
}

/// Every file of version 1 is recognized, and queried if it can be.
#[test]
fn every_kind_is_recognized() {
    let shell = Shell::new();
    let mut count = 0;
    for entry in fs::read_dir(data("")).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.file_name().unwrap().to_str().unwrap().strip_suffix(".bin") else {
            continue;
        };
        count += 1;
        shell.write("file", fs::read(&path).unwrap());
        let kind = match name.trim_start_matches("snapshot_v1_") {
            "delta_v1_four" => "delta of a ConcurrentBloom",
            "bitmap" => "ConcurrentBitmap",
            "counting" | "counting_one" => "CountingBloom",
            "scalable" | "scalable_hint" => "ScalableBloom",
            "windowed" => "WindowedBloom",
            "tombstone" => "TombstoneBloom",
            "static" => "StaticFilter",
            "bank" => "FilterBank",
            name if name.starts_with("cuckoo") => "CuckooFilter",
            name if name.starts_with("dleft") => "DLeftFilter",
            _ => "ConcurrentBloom",
        };
        assert_eq!(shell.fact("file", "kind"), kind, "{name}");
        assert_eq!(shell.fact("file", "checksum"), "correct");
        let text = shell.ok("info file");
        let query = shell.run_with("query file", "no key of them\n");
        let hasher = text.contains("\nhasher ").then(|| shell.fact("file", "hasher"));
        let hasher = hasher.as_deref().and_then(|hasher| hasher.split_once(", fingerprint "));
        if let (Some((hasher, _)), false) = (hasher, text.contains("\nnot readable ")) {
            let reason = format!("lanebloom: file: its keys are hashed by {hasher}");
            assert!(stderr(&query).starts_with(&reason), "{name}: {}", stderr(&query));
            assert!(text.contains("\nrate now "));
        } else if text.contains("\nnot readable ") {
            let reason = shell.fact("file", "not readable");
            assert_eq!(stderr(&query), format!("lanebloom: file: {reason}\n"));
        } else if kind == "FilterBank" {
            assert!(stderr(&query).starts_with("lanebloom: file: it is a bank of filters: `which` says"));
            assert_eq!(shell.run_with("which file", "in all\n").status.code(), Some(0));
        } else if kind == "ConcurrentBitmap" {
            assert_eq!(
                stderr(&query),
                "lanebloom: file: a ConcurrentBitmap holds numbers, not keys\n"
            );
        } else {
            assert_eq!(query.stdout, b"absent\tno key of them\n", "{name}: {}", stderr(&query));
            assert!(text.contains("\nrate now "));
        }
    }
    assert!(count >= 20);
}

/// A filter whose hasher has a secret key is described. Its keys cannot be looked up.
#[test]
fn a_secret_key() {
    let shell = Shell::new();
    let filter = ConcurrentBloom::builder()
        .expected_keys(1000)
        .hasher(SipHash13::random())
        .build()
        .unwrap();
    filter.insert("a");
    let scalable = ScalableBloom::builder()
        .expected_keys(10)
        .hasher(SipHash13::random())
        .build()
        .unwrap();
    scalable.insert_all(0..100u32).unwrap();
    for (kind, bytes) in [
        ("ConcurrentBloom", filter.snapshot().to_vec()),
        ("ScalableBloom", scalable.snapshot().to_vec()),
    ] {
        shell.write("keyed", &bytes);
        assert_eq!(shell.fact("keyed", "kind"), kind);
        assert!(shell.fact("keyed", "hasher").starts_with("SipHash-1-3, fingerprint "));
        assert_eq!(
            shell.fact("keyed", "rate planned"),
            if kind == "ScalableBloom" { "0.18%" } else { "0.87%" }
        );
        let keys: u32 = shell.fact("keyed", "keys estimated").parse().unwrap();
        let expected = if kind == "ScalableBloom" { 95..=105 } else { 1..=1 };
        assert!(expected.contains(&keys), "{keys}");
        shell.fails("query keyed", "a secret key, which is not in the file");
    }
}

/// Nothing that is wrong with a file goes unnoticed, and every error names the file.
#[test]
fn corrupt_truncated_and_foreign_files() {
    let shell = Shell::new();
    shell.write("keys", lines(0..300));
    shell.ok("build keys -o guava --format guava --expected 300");
    shell.ok("build keys -o redis --format redisbloom --redis-key a --expected 100");
    shell.ok("build keys -o bloom --expected 300");
    let snapshots = "scalable counting tombstone cuckoo_12 dleft bitmap static windowed bank siphash dleft_siphash";
    let snapshots = snapshots.split(' ').map(|name| format!("snapshot_v1_{name}.bin"));
    let snapshots = snapshots.chain(["delta_v1_four.bin".into()]);
    let others = ["guava", "redis", "bloom"].map(|name| shell.read(name));
    let files = snapshots.map(|name| fs::read(data(&name)).unwrap());
    for (number, bytes) in others.iter().cloned().chain(files).enumerate() {
        let has_checksum = number > 1;
        shell.write("file", &bytes);
        shell.ok("info file");
        for len in [0, 1, 5, 9, 20, 60, 100, 127, 128, 200, bytes.len() - 1] {
            shell.write("file", &bytes[..len.min(bytes.len() - 1)]);
            let error = shell.error("info file");
            assert!(error.starts_with("lanebloom: file: "), "{error}");
        }
        shell.write("file", [&bytes[..], b"x"].concat());
        assert!(shell.error("info file").starts_with("lanebloom: file: "));
        if has_checksum {
            for at in (0..bytes.len()).step_by(37) {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                shell.write("file", flipped);
                assert!(
                    shell.error("info file").starts_with("lanebloom: file: "),
                    "{number} {at}"
                );
            }
        }
    }

    let len = others[2].len();
    shell.write("file", &others[2][..len - 1]);
    let text = format!("file: the bytes end after {} of {len}", len - 1);
    shell.says("info file", &text);
    shell.write("file", others[2].repeat(2));
    shell.says("info file", "file: more bytes follow the snapshot of a ConcurrentBloom");
    let mut stream = others[0].clone();
    stream.pop();
    shell.write("file", stream);
    let bytes = others[0].len();
    let text = format!("it has {} bytes of {bytes}", bytes - 1);
    shell.says(
        "query file",
        &format!("file: not a filter file; if it is a Guava stream, {text}"),
    );
    shell.write(
        "file",
        b"\xac\xed\0\x05sr\x002com.google.common.hash.BloomFilter$SerialForm",
    );
    let text = "a serialized Java object (0xACED): write the filter by BloomFilter.writeTo, not by ObjectOutputStream";
    shell.says("info file", &format!("file: not a filter file: {text}"));
    let begins = "lanebloom: keys: not a filter file: it begins with \"key 0\\nke\", which no ";
    for line in [
        "query keys",
        "info keys",
        "merge keys keys -o out",
        "convert keys -o out --to lanebloom",
    ] {
        assert!(shell.error(line).starts_with(begins), "{}", shell.error(line));
    }
    shell.write("empty", "");
    shell.says("info empty", "empty: not a filter file: it is empty");
    shell.fails("info .", ".: cannot read it: is a directory");
    let error = shell.error("info nothing");
    assert!(
        error.starts_with("lanebloom: nothing: cannot read it: ") && error.ends_with("(os error 2)\n"),
        "{error}"
    );
    shell.fails("query - -", "cannot both come from stdin");
    for resp in [
        "*2\r\n:1\r\n$-1\r\n",
        "*2\r\n:1\r\n$99999999999\r\nx",
        "*2\r\n:1\r\n$1\r\nxyz",
        "*2\r\n:x\r\n",
        "*4\r\n$12\r\nBF.LOADCHUNK\r\n$1\r\na\r\n$1\r\n1\r\n",
        "*4\r\n$12\r\nBF.LOADCHUNK\r\n*1\r\n",
    ] {
        shell.write("resp", resp);
        assert!(
            shell
                .error("info resp")
                .starts_with("lanebloom: resp: chunk 1 of a RedisBloom filter: ")
        );
    }
    let two = [others[1].clone(), others[1].clone()].concat();
    shell.write("resp", two);
    shell.fails("info resp", "came after the end");
}

/// A pipe that goes on, as `/dev/zero` does, is read no further than a filter file could begin, or
/// than its header says.
#[cfg(unix)]
#[test]
fn an_endless_pipe_is_no_filter() {
    let shell = Shell::new();
    let made = process::Command::new("mkfifo").arg(shell.path("pipe")).status();
    assert!(made.unwrap().success());
    // Open for both, it waits for no reader, and has no end while the test runs.
    let mut pipe = fs::File::options()
        .read(true)
        .write(true)
        .open(shell.path("pipe"))
        .unwrap();
    let and_more = |bytes: &[u8]| [bytes, b"x"].concat();
    let zeros = "not a filter file: it begins with \"\\x00";
    let guava = and_more(&GuavaBloom::with_capacity(1000, 0.01).unwrap().to_bytes());
    let bloom = and_more(&ConcurrentBloom::with_capacity(1000, 0.01).unwrap().snapshot().to_vec());
    for (line, bytes, error) in [
        ("info pipe", &[0; 128][..], zeros),
        ("query pipe -", &[0; 128], zeros),
        ("which pipe -", &[0; 128], zeros),
        (
            "info pipe",
            &guava,
            "not a filter file; if it is a Guava stream, more bytes follow its ",
        ),
        (
            "query pipe -",
            &bloom,
            "more bytes follow the snapshot of a ConcurrentBloom",
        ),
    ] {
        pipe.write_all(bytes).unwrap();
        let mut command = assert_cmd::Command::from_std(shell.command(line));
        let output = command.timeout(Duration::from_secs(60)).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line} waits for the end");
        let found = stderr(&output);
        assert!(found.starts_with(&format!("lanebloom: pipe: {error}")), "{found}");
    }
}

/// Snapshots that the library cannot read, and bytes after them, are described as in a file.
#[test]
fn unreadable_snapshots_come_from_stdin_too() {
    let shell = Shell::new();
    let windowed = WindowedBloom::builder()
        .expected_keys(1000)
        .window(Duration::from_secs(9));
    let windowed = windowed.clock(|| Duration::ZERO).build().unwrap();
    windowed.insert("a");
    let delta = fs::read(data("delta_v1_four.bin")).unwrap();
    let of = |parts: &[&[u8]]| parts.concat();
    for bytes in [
        windowed.snapshot().to_vec(),
        of(&[&windowed.snapshot().to_vec(), &delta, &delta]),
        of(&[&delta, &windowed.snapshot().to_vec()]),
        delta.clone(),
    ] {
        shell.write("file", &bytes);
        let expected = shell.ok("info file");
        assert_eq!(shell.fact("file", "bytes"), bytes.len().to_string());
        let found = shell.run_with("info -", &bytes[..]);
        let found = String::from_utf8(found.stdout).unwrap();
        assert_eq!(found.replacen("stdin", "file", 1), expected);
        for more in [&[0; 300][..], &delta[..100]] {
            let bytes = of(&[&bytes, more]);
            let text = format!(": the record at byte {}: ", bytes.len() - more.len());
            shell.write("file", &bytes);
            shell.fails("info file", &text);
            let found = stderr(&shell.run_with("info -", bytes));
            assert!(
                found.starts_with("lanebloom: stdin") && found.contains(&text),
                "{found}"
            );
        }
    }
}

/// Checksums that are right, around a header that is not, as only malice makes it.
#[test]
fn hostile_headers() {
    let shell = Shell::new();
    // A filter of 64 TiB, for which nothing is allocated.
    let mut bytes = ConcurrentBloom::with_capacity(1000, 0.01).unwrap().snapshot().to_vec();
    bytes[40..48].copy_from_slice(&(1u64 << 40).to_le_bytes());
    bytes[24..32].copy_from_slice(&((64u64 << 40) + 192).to_le_bytes());
    let sum = XxHash3_64::oneshot(&bytes[..120]).to_le_bytes();
    bytes[120..128].copy_from_slice(&sum);
    shell.write("file", &bytes);
    shell.fails("info file", &format!("the bytes end after {} of 7", bytes.len()));

    let random = |round: u64, place: u64| Murmur3::with_seed(1).hash_key(&(round, place));
    for round in 0..150 {
        let kind = [1, 2, 3, 4, 5, 6, 7, 8, 129][round as usize % 9];
        let mut bytes = vec![0; 64 * (2 + random(round, 0) as usize % 4)];
        bytes[..12].copy_from_slice(b"\x89LBF\r\n\x1a\n\x01\0\0\x02");
        bytes[10] = kind;
        for place in 4..15 {
            // Some small, some all bits, some anything.
            let number = match random(round, place) {
                number if number % 4 == 0 => number >> 61,
                number if number % 4 == 1 => u64::MAX,
                number => number,
            };
            bytes[8 * place as usize..][..8].copy_from_slice(&number.to_le_bytes());
        }
        let len = bytes.len();
        if random(round, 1) % 4 != 0 {
            bytes[24..32].copy_from_slice(&(len as u64).to_le_bytes());
        }
        let sum = |bytes: &[u8]| XxHash3_64::oneshot(bytes).to_le_bytes();
        if kind == 129 {
            let all = sum(&[&bytes[..56], &bytes[64..]].concat());
            bytes[56..64].copy_from_slice(&all);
        } else {
            let header = sum(&bytes[..120]);
            bytes[120..128].copy_from_slice(&header);
            let all = sum(&bytes[..len - 64]);
            if len > 128 {
                bytes[len - 64..][..8].copy_from_slice(&all);
            }
        }
        shell.write("file", &bytes);
        let output = shell.run("info file");
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 2)), "{round}: {code:?} {}", stderr(&output));
        assert_eq!(shell.run("query file").status.code(), Some(2));
    }
}
