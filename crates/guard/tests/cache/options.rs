//! Options that a cache cannot have, and the text of those that it has.

use crate::gets::{builder, read};
use std::time::Duration;

#[test]
fn an_option_that_a_cache_cannot_have_is_an_error() {
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(5));
    let years = |n: u64| Duration::from_secs(n * 365 * 24 * 3600);
    let options = || builder().expected_keys(10);
    for (builder, option) in [
        (options().time_to_live(years(1001)), "time_to_live"),
        (options().time_to_idle(years(1001)), "time_to_idle"),
        (options().miss_time_to_live(years(1001)), "miss_time_to_live"),
        (options().refresh_after_write(years(1001)), "refresh_after_write"),
    ] {
        let text = format!("{option} of 31567536000s is longer than the limit of 1000 years");
        assert_eq!(builder.build_blocking(read).unwrap_err().to_string(), text);
    }
    for (builder, text) in [
        (
            options().refresh_after_write(long).time_to_live(long),
            "refresh_after_write of 5s must be less than time_to_live, 5s",
        ),
        (
            options().stale_if_error(long),
            "stale_if_error of 5s needs a time_to_live: without it, no value is stale",
        ),
        (
            options().stale_if_error(short).time_to_live(long),
            "stale_if_error of 1s must be greater than time_to_live, 5s",
        ),
        (
            options().load_limit(0, 5).load_timeout(long),
            "load_limit(0, 5): no load could run; allow at least 1",
        ),
        (
            options().load_limit(2, 5),
            "load_limit(2, 5) needs a load_timeout: a load that never ends would keep its permit forever",
        ),
        (
            options().gather_gets(short, 9),
            "gather_gets needs a cache whose gets are awaited; call `build`",
        ),
    ] {
        assert_eq!(builder.build_blocking(read).unwrap_err().to_string(), text);
    }
    let longest = options().time_to_live(years(1000)).time_to_idle(years(1000));
    let longest = longest.miss_time_to_live(years(1000)).refresh_after_write(short);
    let unlimited = options().load_limit(usize::MAX, usize::MAX).load_timeout(long);
    let stale = options()
        .refresh_after_write(short)
        .time_to_live(2 * short)
        .stale_if_error(long);
    for builder in [longest, unlimited, stale] {
        assert_eq!(builder.build_blocking(read).unwrap().get(&17).unwrap(), Some(17));
    }
}

#[test]
fn a_builder_shows_its_times_and_limits() {
    let seconds = Duration::from_secs;
    let builder = builder().time_to_live(seconds(9)).time_to_idle(seconds(8));
    let builder = builder
        .load_limit(2, 5)
        .load_timeout(seconds(7))
        .gather_gets(seconds(1), 6);
    let text = format!("{builder:?}");
    for option in [
        "time_to_live: Some(9s)",
        "time_to_idle: Some(8s)",
        "miss_memory: 33554432",
        "miss_time_to_live: 60s",
        "load_limit: Some((2, 5))",
        "load_timeout: Some(7s)",
        "gather: Some((1s, 6))",
    ] {
        assert!(text.contains(option), "{text}");
    }
}
