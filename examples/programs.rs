//! Each program runs to its end at a small size. They check what they compute.

use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may run. It takes seconds.
const LONG: Duration = Duration::from_secs(300);

/// Runs a program, of which `line` holds the arguments.
fn runs(program: &str, line: &str) {
    let mut output = tempfile::tempfile().unwrap();
    let mut child = Command::new(program)
        .args(line.split(' '))
        .stdout(Stdio::from(output.try_clone().unwrap()))
        .spawn()
        .unwrap();
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > LONG {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut text = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut text).unwrap();
    assert!(status.success(), "{program} {line}: {status}\n{text}");
}

macro_rules! programs {
    ($($test:ident: $name:literal $line:literal;)*) => {
        $(
            #[test]
            fn $test() {
                runs(env!(concat!("CARGO_BIN_EXE_", $name)), $line);
            }
        )*
    };
}

programs! {
    cache_guard: "cache_guard" "--rows 20000 --seconds 1";
    scoped_threads: "scoped_threads" "--keys 1000000";
    inlined: "inlined" "--keys 10000 --ids 100000 --rounds 2";
    crawler_dedup: "crawler_dedup" "--pages 100000";
    rate_window: "rate_window" "--requests 400000 --users 20000";
    rate_window_by_time: "rate_window" "--seconds 1 --window 0.2 --users 20000";
    coupons: "coupons" "--coupons 100000";
    scale: "scale" "--keys 100000";
    log_days: "log_days" "--days 100 --lines 1000 --addresses 1000";
    blocked_domains: "blocked_domains" "--domains 20000";
    leaked_passwords: "leaked_passwords" "--digests 20000 --rate 0.0001";
    guarded_service: "guarded_service" "--test";
    replicas: "replicas" "--requests 20000 --rate 2000 --silence 400 --rows 5000";
}

/// Runs a program that starts a server of its own.
fn runs_redis(program: &str, line: &str) {
    let has_server = Command::new("redis-server").arg("--version").output().is_ok();
    if !has_server && std::env::var_os("LANEBLOOM_REQUIRE_REDIS").is_none() {
        eprintln!("skipped: there is no redis-server");
        return;
    }
    runs(program, line);
}

/// With servers of its own, of which one is frozen and killed after the other.
#[test]
#[ignore = "needs PostgreSQL and a machine that is not busy; `ci/replicas.sh` runs it"]
fn replicas_on_servers() {
    let line = "--requests 20000 --rate 2000 --silence 400 --rows 5000 --postgres";
    runs(env!("CARGO_BIN_EXE_replicas"), line);
    runs_redis(env!("CARGO_BIN_EXE_replicas"), &format!("{line} --redis"));
}

#[test]
fn shared_guard() {
    let line = "--rate 500 --seconds 1 --interval 20";
    runs_redis(env!("CARGO_BIN_EXE_shared_guard"), line);
}

#[test]
fn shared_set() {
    runs_redis(env!("CARGO_BIN_EXE_shared_set"), "--rows 20000");
}
