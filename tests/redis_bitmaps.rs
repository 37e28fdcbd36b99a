//! Redis bitmaps beside a real server.

mod redis_server;

use redis_server::Server;

/// The harness itself: servers of their own, gone when they are dropped.
#[test]
fn servers_are_apart_and_end() {
    let Some(one) = Server::of("servers_are_apart_and_end").start() else {
        return;
    };
    let mut other = Server::of("servers_are_apart_and_end").start().unwrap();
    let set = |redis: &redis_server::Redis| {
        let mut connection = redis.connection();
        redis::cmd("SET")
            .arg("a")
            .arg(redis.port())
            .exec(&mut connection)
            .unwrap();
    };
    let get = |redis: &redis_server::Redis| -> Option<u16> {
        redis::cmd("GET").arg("a").query(&mut redis.connection()).unwrap()
    };
    set(&one);
    set(&other);
    assert_eq!((get(&one), get(&other)), (Some(one.port()), Some(other.port())));
    other.restart();
    assert_eq!((get(&one), get(&other)), (Some(one.port()), None));
    let client = one.client();
    drop(one);
    assert!(client.get_connection().is_err());
}
