//! A Redis of a test's own: started on a free port of the loopback, in a folder of its own, stopped
//! when it is dropped.
//!
//! Needs `redis-server` (Debian's; elsewhere `LANEBLOOM_REDIS_SERVER` is its path). If there is
//! none the tests say so and pass, unless `LANEBLOOM_REQUIRE_REDIS` is set, as it is in CI.

#![allow(dead_code, reason = "each test binary uses its part")]

// Apart, without what only the top of a file can have, so that the examples of the documentation
// can include it too.
include!("server.rs");
