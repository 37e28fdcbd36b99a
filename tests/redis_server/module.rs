// Included beside `server.rs`: where the real RedisBloom is.

/// A server that has loaded RedisBloom, and runs. Nothing where there is none.
pub(crate) fn bloom_server(test: &str) -> Option<Redis> {
    server_with_bloom(test)?.start()
}

/// A server that will load RedisBloom, which `ci/redis_module.sh` fetches; `LANEBLOOM_REDIS_BLOOM`
/// is its path elsewhere. Nothing where there is none, which is said, and is a failure where
/// `LANEBLOOM_REQUIRE_REDIS` is set.
pub(crate) fn server_with_bloom(test: &str) -> Option<Server> {
    let Some(module) = bloom_module().filter(|path| path.exists()) else {
        skip(test, "LANEBLOOM_REQUIRE_REDIS", "there is no RedisBloom: run ci/redis_module.sh");
        return None;
    };
    Some(Server::of(test).module(&module))
}

fn bloom_module() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("LANEBLOOM_REDIS_BLOOM") {
        return Some(path.into());
    }
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    Some(cache.join("lanebloom/redisbloom.so"))
}
