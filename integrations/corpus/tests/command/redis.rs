//! A filter in Redis that several processes share. Needs `redis-server` (elsewhere
//! `LANEBLOOM_REDIS_SERVER` is its path). If there is none, the tests say so and pass, unless
//! `LANEBLOOM_REQUIRE_REDIS` is set.

use super::*;
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// A server at a socket in the shell's folder. It is killed on drop.
struct Server(Child, String);

impl Server {
    fn start(shell: &Shell) -> Option<Self> {
        let program = env::var("LANEBLOOM_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let socket = shell.path("socket");
        let mut command = Command::new(&program);
        command.args(["--port", "0", "--save", "", "--unixsocket"]).arg(&socket);
        let Ok(process) = command.stdout(Stdio::null()).current_dir(&shell.0).spawn() else {
            assert!(
                env::var_os("LANEBLOOM_REQUIRE_REDIS").is_none(),
                "there is no {program}"
            );
            eprintln!("skipped: there is no {program}");
            return None;
        };
        let server = Self(process, format!("--redis unix://{}", socket.display()));
        let start = Instant::now();
        while UnixStream::connect(&socket).is_err() {
            assert!(start.elapsed() < Duration::from_secs(60), "{program} does not start");
            thread::sleep(Duration::from_millis(5));
        }
        Some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Each document stays once, on one of the machines, and each machine keeps the order.
#[test]
fn two_machines_share_a_filter() {
    let shell = Shell::new();
    let Some(server) = Server::start(&shell) else { return };
    // Most texts are on both machines, at about the same time.
    let mut random = Random(1);
    let parts = [0, 1].map(|part| {
        Vec::from_iter((0..20_000).map(|at| match random.below(8) {
            0 => format!("{part} {}", random.below(5000)),
            _ => format!("{}", at / 2 + random.below(100)),
        }))
    });
    let runs = [0, 1].map(|part: usize| {
        shell.write(&format!("{part}.jsonl"), lines(&parts[part]));
        let line = format!(
            "{part}.jsonl -o out{part} {} --redis-key x --expected 50000 --rate 1e-9 --report r{part}",
            server.1
        );
        shell.command(&line).stderr(Stdio::piped()).spawn().unwrap()
    });
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let mut found = HashMap::<String, usize>::new();
    let mut kept = [0, 0];
    for (part, texts_in) in parts.iter().enumerate() {
        let left = texts(&shell.read(&format!("out{part}")));
        let mut all = texts_in.iter();
        assert!(left.iter().all(|text| all.any(|other| other == text)), "in order");
        kept[part] = left.len();
        left.into_iter().for_each(|text| *found.entry(text).or_default() += 1);
    }
    assert!(found.values().all(|&count| count == 1), "twice");
    assert!(parts.iter().flatten().all(|text| found.contains_key(text)), "lost");
    assert!(kept.iter().all(|&kept| kept > 2000), "both had their share: {kept:?}");
    let reports = [0, 1].map(|part| -> Value { serde_json::from_slice(&shell.read(&format!("r{part}"))).unwrap() });
    for report in &reports {
        assert!(report["memory_bytes"].as_u64().unwrap() > 250_000, "{report}");
        assert!((0.01..0.4).contains(&report["fill"].as_f64().unwrap()), "{report}");
        assert!(report["rate_now"].as_f64().unwrap() < 1e-9, "{report}");
    }
}

/// Documents that the filter has, but no output, would be lost.
#[test]
fn what_does_not_fit_a_shared_filter_is_an_error() {
    let shell = Shell::new();
    let Some(server) = Server::start(&shell) else { return };
    shell.write("a.jsonl", lines(&["a", "b"]));
    shell.write("b.jsonl", lines(&["b", "c"]));
    shell.write("copy.jsonl", lines(&["a", "b"]));
    let line = |options: &str| format!("{options} {} --redis-key x", server.1);
    shell.ok(&line("a.jsonl copy.jsonl --expected 100"));
    shell.error(
        &line("b.jsonl copy.jsonl --expected 100"),
        &["copy.jsonl was given to the filter x", "{x}:corpus"],
    );
    // That error has begun nothing.
    assert_eq!(texts(&shell.ok(&line("b.jsonl --expected 100"))), ["c"]);
    shell.error(
        &line("b.jsonl --expected 200"),
        &["the filter x in Redis", "hash functions"],
    );
    shell.error(
        &line("b.jsonl --expected 100 --unit line"),
        &["--unit document", "--unit line"],
    );
    shell.error(&line("b.jsonl --expected 100 --seed 1"), &["--seed 0", "--seed 1"]);
    shell.error(&line("b.jsonl --expected 100 --ngrams 3"), &["--ngrams"]);
    shell.error(&line("b.jsonl --expected 100 --state s"), &["--state"]);
    shell.error(&line("b.jsonl --expected 100 --min-words 2"), &["--min-words"]);
    shell.error(&line("b.jsonl"), &["--expected"]);

    // Lines of their own chunks: the server is asked after each.
    let many = Vec::from_iter((0..5000).map(|number| format!("{number} {}", "-".repeat(500))));
    shell.write("many.jsonl", lines(&many));
    let full = format!("many.jsonl -o out {} --redis-key full --expected 1000", server.1);
    shell.error(&full, &["the filter full in Redis is full", "for 1000"]);
    assert!(!shell.path("out").exists());
    drop(server);
    shell.error(
        "b.jsonl --redis unix:///nowhere --redis-key x --expected 9",
        &["cannot connect"],
    );
}
