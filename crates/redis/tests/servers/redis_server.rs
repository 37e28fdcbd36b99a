//! A Redis of a test's own: started on a free port of the loopback, in a folder of its own, stopped
//! when it is dropped.
//!
//! Needs `redis-server` (Debian's; elsewhere `LANEBLOOM_REDIS_SERVER` is its path). If there is
//! none the tests say so and pass, unless `LANEBLOOM_REQUIRE_REDIS` is set, as it is in CI.

#![allow(dead_code, reason = "each test binary uses its part")]

use redis::{Client, Connection, FromRedisValue, RedisResult};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server, to be told what it is before it starts: `Server::default().module(path).start()`.
#[derive(Default)]
pub(crate) struct Server {
    arguments: Vec<String>,
}

/// A server that runs. It is killed on drop, also by a panic.
pub(crate) struct Redis {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
    arguments: Vec<String>,
}

/// How long a server may take until it answers. It takes some milliseconds, more where everything
/// is emulated.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ports that are tried: between asking for a free one and starting the server, another process may
/// take it, or the one 10,000 above, which a cluster takes too.
const PORTS: usize = 20;

impl Server {
    /// With a module loaded: `--loadmodule`.
    pub(crate) fn module(self, path: &Path) -> Self {
        self.argument("--loadmodule").argument(&path.display().to_string())
    }

    /// With a further argument of the command line. It is given after those by which nothing is
    /// kept on disk, which it can override.
    pub(crate) fn argument(mut self, argument: &str) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Starts it, and waits until it answers; nothing where there is no `redis-server`.
    ///
    /// # Panics
    ///
    /// If it does not start, or is not there and `LANEBLOOM_REQUIRE_REDIS` is set.
    pub(crate) fn start(self) -> Option<Redis> {
        let program = program();
        match Command::new(&program).arg("--version").stdout(Stdio::null()).status() {
            Ok(status) => assert!(status.success(), "{program} --version: {status}"),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                skip("LANEBLOOM_REQUIRE_REDIS", &format!("there is no {program}"));
                return None;
            }
            Err(error) => panic!("{program}: {error}"),
        }
        let folder = tempfile::tempdir().unwrap();
        let mut last = String::new();
        for _ in 0..PORTS {
            match Redis::launch(free_port(), folder.path(), &self.arguments) {
                Ok((process, port)) => {
                    return Some(Redis {
                        process,
                        port,
                        folder,
                        arguments: self.arguments,
                    });
                }
                Err(log) => last = log,
            }
        }
        panic!("{program} did not start:\n{last}");
    }
}

/// Says that this test is skipped, and fails it where the environment variable `required` says that
/// it must not be.
pub(crate) fn skip(required: &str, why: &str) {
    assert!(std::env::var_os(required).is_none(), "{required} is set, but {why}");
    let thread = thread::current();
    // Past the harness, which keeps what a test that passes prints.
    let _ = writeln!(
        std::io::stderr(),
        "{} was skipped: {why}",
        thread.name().unwrap_or("it")
    );
}

fn program() -> String {
    std::env::var("LANEBLOOM_REDIS_SERVER").unwrap_or_else(|_| "redis-server".into())
}

/// A port at which nobody listens now. Systems give their own choice, from 32,768 on, to outgoing
/// connections too: while a server of such a port is down, a node that connects again may be given
/// that port itself.
fn free_port() -> u16 {
    let random = || 10_240 + (RandomState::new().hash_one(()) % 22_528) as u16;
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    std::iter::repeat_with(random)
        .take(1000)
        .find(free)
        .expect("a free port")
}

impl Redis {
    /// The process and its port, or what it wrote where it ended at once.
    fn launch(port: u16, folder: &Path, arguments: &[String]) -> Result<(Child, u16), String> {
        let log = folder.join("log");
        let mut command = Command::new(program());
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--daemonize", "no"]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder);
        command.arg("--logfile").arg(&log).args(arguments);
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let began = Instant::now();
        loop {
            if let Some(status) = process.try_wait().unwrap() {
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("{status}\n{log}"));
            }
            if answers_as(port, process.id()) {
                return Ok((process, port));
            }
            if began.elapsed() > PATIENCE {
                let _ = process.kill();
                let _ = process.wait();
                let log = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("no answer within {PATIENCE:?} at port {port}\n{log}");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn client(&self) -> Client {
        Client::open(self.url()).unwrap()
    }

    /// A new connection.
    pub(crate) fn connection(&self) -> Connection {
        self.client().get_connection().unwrap()
    }

    /// The reply to a command, by a new connection.
    pub(crate) fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        ask(&mut self.connection(), words)
    }

    /// Where the server writes, `log` among it.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().into()
    }

    /// Ends the server as `kill -9` does. Connections break; [`restart`](Self::restart) starts it
    /// again.
    pub(crate) fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Stops the process, which responds to nothing, and keeps its connections, until the value is
    /// dropped.
    #[cfg(unix)]
    pub(crate) fn freeze(&self) -> Frozen {
        Frozen::signal("-STOP", self.id());
        Frozen(self.id())
    }

    /// Starts the server again, at the same port and in the same folder. Its data is lost, unless
    /// its arguments say otherwise.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let began = Instant::now();
        self.process = loop {
            match Self::launch(self.port, self.folder.path(), &self.arguments) {
                Ok((process, _)) => break process,
                // Another process may have taken the port for a moment.
                Err(log) => assert!(began.elapsed() < PATIENCE, "the server did not start again:\n{log}"),
            }
        };
    }
}

/// A process that is stopped; made by [`Redis::freeze`].
#[cfg(unix)]
pub(crate) struct Frozen(u32);

#[cfg(unix)]
impl Frozen {
    fn signal(signal: &str, id: u32) {
        let status = Command::new("kill").args([signal, &id.to_string()]).status();
        assert!(status.unwrap().success());
    }
}

#[cfg(unix)]
impl Drop for Frozen {
    fn drop(&mut self) {
        Self::signal("-CONT", self.0);
    }
}

/// Whether the server at this port is this process: on a machine with many tests it may be
/// another's.
fn answers_as(port: u16, process: u32) -> bool {
    let connection = Client::open(("127.0.0.1", port)).and_then(|client| client.get_connection_with_timeout(PATIENCE));
    let info = connection.and_then(|mut connection| try_ask::<String>(&mut connection, &["INFO", "server"]));
    info.is_ok_and(|info| info.lines().any(|line| line == format!("process_id:{process}")))
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Harmless where it has ended.
        self.kill();
    }
}

/// The reply to a command.
pub(crate) fn try_ask<T: FromRedisValue>(connection: &mut Connection, words: &[&str]) -> RedisResult<T> {
    redis::cmd(words[0]).arg(&words[1..]).query(connection)
}

/// The reply to a command that succeeds.
pub(crate) fn ask<T: FromRedisValue>(connection: &mut Connection, words: &[&str]) -> T {
    try_ask(connection, words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

/// The number in the line of `INFO` that begins so; 0 without such a line.
pub(crate) fn figure(connection: &mut Connection, section: &str, line: &str) -> u64 {
    let info: String = ask(connection, &["INFO", section]);
    let rest = info.lines().find_map(|text| text.strip_prefix(line));
    rest.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

/// A server that has loaded RedisBloom, and runs. Nothing where there is none.
pub(crate) fn bloom_server() -> Option<Redis> {
    server_with_bloom()?.start()
}

/// A server that will load RedisBloom, which `ci/fetch/redis_module.sh` fetches;
/// `LANEBLOOM_REDIS_BLOOM` is its path elsewhere. Without the module this says so and returns
/// nothing, or fails if `LANEBLOOM_REQUIRE_REDIS` is set.
pub(crate) fn server_with_bloom() -> Option<Server> {
    let Some(module) = bloom_module() else {
        let why = "there is no RedisBloom: run ci/fetch/redis_module.sh";
        skip("LANEBLOOM_REQUIRE_REDIS", why);
        return None;
    };
    Some(Server::default().module(&module))
}

/// The module, where there is one.
pub(crate) fn bloom_module() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = || std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let path = match std::env::var_os("LANEBLOOM_REDIS_BLOOM") {
        Some(path) => path.into(),
        None => cache()?.join("lanebloom/redisbloom.so"),
    };
    path.exists().then_some(path)
}
