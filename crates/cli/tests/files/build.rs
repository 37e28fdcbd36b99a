//! `build`: its filters keep their rate, and is bit for bit what other systems make.

use super::{Shell, count_lines, golden, hex, lines, stderr};
use lanebloom::hash::Murmur3;
use lanebloom_formats::RedisBloom;
use std::fmt::Write;
use std::fs;

const FORMATS: [&str; 3] = ["lanebloom", "guava", "redisbloom --redis-key ids"];

/// Every key is there, and the others are found at the rate that was asked for: from a file, whose
/// keys are counted; with an expected number; and from a pipe.
#[test]
fn what_was_built_answers_at_its_rate() {
    let shell = Shell::new();
    let present = lines(0..100_000);
    shell.write("keys", &present);
    shell.write("others", lines(100_000..200_000));
    for format in FORMATS {
        for source in ["keys", "keys --expected 100000", "--expected 30000", ""] {
            let line = format!("build {source} -o filter --format {format}");
            let output = shell.run_with(&line, &present[..]);
            assert!(output.status.success(), "{line}: {}", stderr(&output));
            assert!(stderr(&output).contains("100000 lines, about "));

            assert_eq!(shell.ok("query filter keys --present"), present, "{line}");
            assert_eq!(shell.ok("query filter keys --absent"), "");
            let found = shell.run("query filter others --present");
            assert_eq!(found.status.code(), Some(1));
            let found = count_lines(&found.stdout);
            // Three of a Guava filter are for a third of the keys: it does not grow. Poisson's
            // standard deviation is below 32.
            let most = if format == "guava" && source.starts_with("--") {
                60_000
            } else {
                1150
            };
            assert!(found <= most, "{line}: {found}");
            let fits = source.starts_with("keys") || source.is_empty() && format != "lanebloom";
            assert!(
                found >= 100 || !fits,
                "{line}: {found}, so it is larger than it need be"
            );
        }
    }
}

/// The order of the keys and repeated keys change nothing.
#[test]
fn a_static_filter_holds_its_keys_in_less_memory() {
    let shell = Shell::new();
    let present = lines(0..50_000);
    shell.write("keys", &present);
    shell.write("others", lines(50_000..100_000));
    shell.ok("build --static --rate 0.01 keys -o filter");
    shell.ok("build --static --rate 0.01 keys keys --threads 2 -o twice");
    assert_eq!(
        fs::read(shell.path("filter")).unwrap(),
        fs::read(shell.path("twice")).unwrap()
    );
    assert_eq!(shell.ok("query filter keys --present"), present);
    let found = shell.run("query filter others --present").stdout;
    let found = count_lines(&found);
    assert!((300..500).contains(&found), "{found} of 50,000 at 1/128");
    let info = shell.ok("info filter");
    for line in ["StaticFilter", "bits per fingerprint  7", "cells per key         3"] {
        assert!(info.contains(line), "{info}");
    }
    assert!(fs::metadata(shell.path("filter")).unwrap().len() < 50_000 * 9 / 8);
    shell.fails(
        "build --static --format guava keys -o x",
        "--static is for --format lanebloom",
    );
    shell.error("build --static --expected 10 keys -o x");
    // The error comes before the input is read, which is not a list of hashes.
    shell.fails(
        "build --static --rate 1e-12 --hasher prehashed filter -o x",
        "1e-12 takes fingerprints of more than 32 bits",
    );
    shell.fails(
        "merge filter filter -o x",
        "a StaticFilter has no union, since it takes no keys after its build: run `build` on all keys",
    );
    // Neither way: the bits of one do not tell those of the other.
    shell.ok("build keys -o bloom");
    for (from, to) in [
        ("filter", "lanebloom"),
        ("filter", "redisbloom"),
        ("bloom", "redisbloom"),
    ] {
        let line = format!("convert {from} --to {to} -o x");
        for part in ["has other hashes or another layout", "run `build` on the keys"] {
            shell.fails(&line, part);
        }
    }
    shell.fails(
        "convert bloom --to static -o x",
        "[possible values: lanebloom, redisbloom]",
    );
}

/// All threads insert at once, and the bits are the same in any order. With too many keys for that
/// the filter grows, and still has them all.
#[test]
fn threads_build_the_same_filter() {
    let shell = Shell::new();
    let keys = lines(0..200_000);
    let reversed: Vec<&str> = keys.lines().rev().collect();
    shell.write("keys", &keys);
    shell.write("reversed", reversed.join("\n"));
    for format in ["lanebloom", "guava"] {
        let build = |keys: &str, threads: u32| {
            let options = format!("--format {format} --expected 200000 --threads {threads}");
            shell.ok(&format!("build {keys} {keys} -o filter {options}"));
            shell.read("filter")
        };
        let bytes = build("keys", 1);
        assert!(bytes == build("reversed", 8) && bytes == build("keys", 8), "{format}");
        assert_eq!(shell.ok("query filter keys --present"), keys);
    }
    let output = shell.run("build keys reversed keys -o filter --expected 100000 --rate 1e-6 --threads 8");
    let summary = stderr(&output);
    let unique = summary
        .split_once(", about ")
        .unwrap()
        .1
        .split_once(" unique")
        .unwrap()
        .0;
    assert!(unique.parse::<u32>().unwrap().abs_diff(200_000) < 20, "{summary}");
    assert_eq!(shell.ok("query filter keys --present --threads 8"), keys);
    assert!(shell.fact("filter", "layers").parse::<u32>().unwrap() > 1);
}

#[test]
fn the_rate_is_the_one_asked_for() {
    let shell = Shell::new();
    shell.write("keys", lines(0..100_000));
    let memory = |rate: &str| {
        shell.ok(&format!("build keys -o filter --expected 100000 --rate {rate}"));
        assert_eq!(shell.fact("filter", "kind"), "ConcurrentBloom");
        shell.read("filter").len() as f64 * 8.0 / 100_000.0
    };
    // The tables of the crate, with a tenth of the rate and 4% of the memory for keys beyond.
    assert!((11.2..11.7).contains(&memory("1%")));
    assert!((34.6..35.8).contains(&memory("1e-6")));
    assert!(memory("0.01") == memory("1%"));
}

/// The bytes of the JVM and of RedisBloom's module.
#[test]
fn foreign_formats_are_bit_for_bit() {
    let shell = Shell::new();
    for case in golden("guava.json")["small_filters_n10_p001_128bits_k7"]
        .as_array()
        .unwrap()
    {
        let stream = hex(case["hex"].as_str().unwrap());
        let (funnel, keys) = case["keys"].as_str().unwrap().split_once(' ').unwrap();
        let funnel = if funnel == "unencodedChars" { "utf16" } else { funnel };
        let keys = match keys {
            "[] and 00010203" => b"\n\x00\x01\x02\x03\n".to_vec(),
            keys => (keys.replace(',', "\n") + "\n").into_bytes(),
        };
        if case["strategy"] == "MITZ_64" {
            let line = "build -o guava --format guava --expected 10 --rate 0.01 --funnel";
            let output = shell.run_with(&format!("{line} {funnel}"), &keys[..]);
            assert!(output.status.success(), "{}", stderr(&output));
            assert_eq!(shell.read("guava"), stream, "{case}");
            assert_eq!(shell.fact("guava", "strategy"), "Mitz64");
        }
        shell.write("guava", stream);
        let found = |funnel: &str| shell.run_with(&format!("query guava --present --funnel {funnel}"), &keys[..]);
        let output = found(funnel);
        assert_eq!(
            (output.status.code(), &output.stdout[..]),
            (Some(0), &keys[..]),
            "{case}"
        );
        assert_eq!(stderr(&output), "");
        for other in ["long", "int", "utf8", "utf16", "bytes"] {
            let is_same = funnel == other || ["utf8", "bytes"].contains(&funnel) && ["utf8", "bytes"].contains(&other);
            assert_eq!(
                found(other).status.code(),
                Some(if is_same { 0 } else { 1 }),
                "{case} {other}"
            );
        }
        assert_eq!(shell.fact("guava", "hash functions"), "7");
    }

    let case = &golden("redisbloom.json")["cases"][0];
    let keys: String = (0..100).map(|key| format!("{key}\n")).collect();
    let line = "build -o dump --format redisbloom --redis-key a:1 --expected 10 --rate 0.01";
    assert!(shell.run_with(line, keys.clone()).status.success());
    let [header, link] = ["header_hex", "link0_hex"].map(|name| hex(case[name].as_str().unwrap()));
    let command = |cursor: &str, bytes: &[u8]| {
        let begin = format!(
            "*4\r\n$12\r\nBF.LOADCHUNK\r\n$3\r\na:1\r\n${}\r\n{cursor}\r\n",
            cursor.len()
        );
        [
            begin.as_bytes(),
            format!("${}\r\n", bytes.len()).as_bytes(),
            bytes,
            b"\r\n",
        ]
        .concat()
    };
    let dump = shell.read("dump");
    assert!(dump.starts_with(&[command("1", &header), command("17", &link)].concat()));
    assert_eq!(shell.fact("dump", "key in Redis"), "a:1");
    assert_eq!(shell.fact("dump", "items counted"), "99");
    assert_eq!(shell.fact("dump", "layer 4: bits"), "1280");

    // The replies of BF.SCANDUMP, with the last one, which is empty; and under another key.
    let mut filter = RedisBloom::with_capacity(10, 0.01).unwrap();
    filter.insert_all((0..100).map(|key| key.to_string())).unwrap();
    let mut replies = Vec::new();
    for (cursor, chunk) in filter.to_loadchunks().chain([(0, Vec::new())]) {
        replies.extend(format!("*2\r\n:{cursor}\r\n${}\r\n", chunk.len()).bytes());
        replies.extend([&chunk[..], b"\r\n"].concat());
    }
    shell.write("replies", replies);
    assert_eq!(
        shell.run_with("query replies --present", keys.clone()).stdout,
        keys.as_bytes()
    );
    shell.fails("convert replies -o copy --to redisbloom", "give --redis-key");
    shell.ok("convert replies -o copy --to redisbloom --redis-key a:1");
    assert_eq!(shell.read("copy"), dump);
    shell.ok("convert dump -o copy --to redisbloom --redis-key b");
    assert_eq!(shell.fact("copy", "key in Redis"), "b");
    shell.fails("build dump -o copy --format redisbloom", "--redis-key");
}

/// The old file is there until the new one is whole.
#[test]
fn outputs_are_replaced_as_a_whole() {
    let shell = Shell::new();
    shell.write("keys", lines(0..50_000));
    shell.ok("build keys -o filter");
    shell.ok("build keys -o other --rate 0.1");
    let old = shell.read("filter");
    let names = shell.names(".");
    // An input that fails after the first keys.
    let mut broken = zstd::encode_all(&lines(0..500_000).into_bytes()[..], 1).unwrap();
    broken.truncate(broken.len() / 2);
    shell.write("keys.zst", broken);
    shell.fails("build keys.zst -o filter", "keys.zst");
    shell.fails("merge filter keys -o filter", "keys");
    shell.fails("convert keys -o filter --to lanebloom", "keys");
    assert_eq!(shell.read("filter"), old);
    fs::remove_file(shell.path("keys.zst")).unwrap();

    // A disk without room, as a limit on the size of files. Nothing of the new file is left.
    #[cfg(unix)]
    for line in [
        "build keys -o filter",
        "merge filter other -o filter",
        "convert filter -o filter --to lanebloom",
    ] {
        let output = shell.run_after("trap '' XFSZ; ulimit -f 1", line);
        assert_eq!(output.status.code(), Some(2), "{line}");
        let text = stderr(&output);
        assert!(
            text.contains("cannot write filter: ") && text.contains("too large"),
            "{text}"
        );
        assert_eq!(shell.read("filter"), old);
        assert_eq!(shell.names("."), names);
    }

    // An output that cannot be written is an error before anything is read.
    let (null, reason) = if cfg!(windows) {
        ("NUL", "") // In the words of Windows.
    } else {
        ("/dev/null", "it is not a regular file")
    };
    shell.fails(
        "build no/keys -o no/filter",
        "cannot write no/filter: no file can be created in its folder",
    );
    shell.fails("build no/keys -o .", "cannot write .: it is a directory");
    shell.fails(
        &format!("merge no/a no/b -o {null}"),
        &format!("cannot write {null}: {reason}"),
    );
    assert_eq!(shell.names("."), names);
    // A link stays.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("filter", shell.path("link")).unwrap();
        shell.ok("convert other -o link --to lanebloom");
        assert!(shell.path("link").is_symlink());
        assert_eq!(shell.read("filter"), shell.read("other"));
        shell.ok("build keys -o filter");
    }
    // Stdout is one too.
    let output = shell.run("build keys -o -");
    assert_eq!(output.stdout, old);
}

/// The keys are not replaced by their filter, nor is a list of inputs. (`dedup/outputs.rs` has all
/// names of a file.)
#[test]
fn an_input_is_no_output() {
    let shell = Shell::new();
    shell.write("keys", lines(0..100));
    shell.write("more", lines(0..100));
    shell.write("list", "keys\n");
    shell.ok("build keys -o filter");
    shell.fails("build more keys -o ./keys", "keys: it is also an input");
    for line in [
        "build --files-from list -o list",
        "build more --files0-from list -o ./list",
        "query filter --files-from list -o list",
    ] {
        shell.fails(line, "list: it is also the list of inputs");
    }
    assert_eq!(shell.read("list"), b"keys\n");
    assert_eq!(shell.read("keys"), shell.read("more"));
    // A filter may take the place of one it was made of.
    shell.ok("build more -o other");
    shell.ok("merge filter other -o filter");
}

/// Golden filters of a million keys: Guava's, from a JVM.
#[test]
fn a_large_stream_of_guava() {
    let shell = Shell::new();
    let mut keys = String::new();
    (0..1_000_000).for_each(|number| writeln!(keys, "{}", 2 * number).unwrap());
    shell.write("keys", &keys);
    let golden = golden("guava.json");
    for (case, funnel) in [(1, "utf16"), (2, "utf8")] {
        shell.ok(&format!(
            "build keys -o guava --format guava --expected 1000000 --rate 0.03 --funnel {funnel}"
        ));
        let case = &golden["big_filters"]["cases"][case];
        let (a, b) = Murmur3::with_seed(0).hash128(&shell.read("guava")[..]);
        assert_eq!(format!("{b:016x}{a:016x}"), case["murmur3_x64_128"].as_str().unwrap());
        assert_eq!(shell.fact("guava", "keys estimated"), case["approx_count"].to_string());
        assert_eq!(shell.fact("guava", "rate now"), "3.00%");
    }
}
