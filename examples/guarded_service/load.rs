//! The load: clients that send requests through connections of their own, and check the answers.
//!
//! Regular clients ask at a fixed rate, half of the times for made-up ids. Attackers ask for
//! made-up ids only, at a fixed rate too, or else as fast as they get answers. One more client adds
//! rows.

use crate::Result;
use crate::store::{id_of, made_up, row_of};
use axum::body::Bytes;
use axum::http::{Method, Request, StatusCode, header::HOST};
use futures_util::future::{try_join_all, try_join3};
use hdrhistogram::Histogram;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp, Zipf};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// The parts of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Not measured: connections and caches are new.
    Warmup,
    Before,
    Attack,
    After,
    End,
}

/// When the parts begin.
#[derive(Clone, Copy)]
pub struct Schedule {
    pub began: Instant,
    pub seconds: f64,
}

impl Schedule {
    /// Parts of the measured time, at whose ends the attack begins and ends.
    pub const ATTACK: [f64; 2] = [0.4, 0.8];
    const WARMUP: f64 = 0.1;

    pub fn part(&self, now: Instant) -> Part {
        let time = (now - self.began).as_secs_f64() / self.seconds - Self::WARMUP;
        match time {
            ..0.0 => Part::Warmup,
            _ if time < Self::ATTACK[0] => Part::Before,
            _ if time < Self::ATTACK[1] => Part::Attack,
            ..1.0 => Part::After,
            _ => Part::End,
        }
    }

    /// The moment at a fraction of the measured time.
    pub fn at(&self, fraction: f64) -> Instant {
        self.began + Duration::from_secs_f64((Self::WARMUP + fraction) * self.seconds)
    }
}

/// The state that all clients of a run share.
pub struct Load {
    pub server: SocketAddr,
    pub schedule: Schedule,
    pub clients: u32,
    pub attackers: u32,
    /// Requests per second of all regular clients, those of all attackers, and rows added per
    /// second.
    pub rate: f64,
    pub attack_rate: f64,
    pub adds: f64,
    /// Rows that the store had at first.
    pub loaded: u64,
    /// Rows that requests may read: the server has confirmed their `PUT`.
    pub published: Arc<AtomicU64>,
    /// Requests that were answered.
    pub answered: AtomicU64,
    pub seed: u64,
}

/// The answers to requests, by the part in which they were sent.
pub struct Tally {
    pub before: Answers,
    pub attack: Answers,
    pub after: Answers,
    /// Valid ids that were refused. Must stay 0.
    pub refused: u64,
    /// Answers that were otherwise wrong. Must stay 0.
    pub wrong: u64,
    pub added: u64,
}

/// Answers in one part.
#[derive(Clone)]
pub struct Answers {
    /// Latencies of those for ids that exist, in nanoseconds.
    pub valid: Histogram<u64>,
    /// Number of those for made-up ids.
    pub made_up: u64,
}

impl Answers {
    pub fn requests(&self) -> u64 {
        self.made_up + self.valid.len()
    }
}

impl Tally {
    fn new() -> Result<Self> {
        let answers = Answers {
            valid: Histogram::new_with_max(60_000_000_000, 3)?,
            made_up: 0,
        };
        Ok(Self {
            before: answers.clone(),
            attack: answers.clone(),
            after: answers,
            refused: 0,
            wrong: 0,
            added: 0,
        })
    }

    fn answers(&mut self, part: Part) -> Option<&mut Answers> {
        match part {
            Part::Before => Some(&mut self.before),
            Part::Attack => Some(&mut self.attack),
            Part::After => Some(&mut self.after),
            Part::Warmup | Part::End => None,
        }
    }

    fn plus(mut self, other: &Self) -> Result<Self> {
        for (sum, part) in [
            (&mut self.before, &other.before),
            (&mut self.attack, &other.attack),
            (&mut self.after, &other.after),
        ] {
            sum.valid.add(&part.valid)?;
            sum.made_up += part.made_up;
        }
        self.refused += other.refused;
        self.wrong += other.wrong;
        self.added += other.added;
        Ok(self)
    }
}

/// How late the threads that run it are during the attack: each time it should wake up, the
/// nanoseconds until it does. A latency holds the same, once for each thread that a request passes.
pub async fn lateness(schedule: Schedule) -> Result<Histogram<u64>> {
    let mut lateness = Histogram::new_with_max(60_000_000_000, 3)?;
    let [mut due, end] = Schedule::ATTACK.map(|fraction| schedule.at(fraction));
    while due < end {
        tokio::time::sleep_until(due.into()).await;
        lateness.saturating_record(due.elapsed().as_nanos() as u64);
        due = Instant::now() + Duration::from_millis(5);
    }
    Ok(lateness)
}

/// Runs all clients until the schedule's end. Returns their answers, and how late the regular ones
/// were themselves. Regular clients and attackers have a thread each, so
/// that the regular ones wait for the server, and not for the attackers' own work. On Unix the
/// attackers' thread is a nice one, because real attackers have machines of their own.
pub fn run(load: &Load) -> Result<(Tally, Histogram<u64>)> {
    thread::scope(|scope| {
        let regular = scope.spawn(|| {
            on_one_thread(async {
                let clients = Client::connect(load, 1, load.clients).await?;
                let requests = try_join_all(clients.into_iter().map(Client::ask_regularly));
                let (tallies, adder, lateness) = try_join3(requests, add_rows(load), lateness(load.schedule)).await?;
                Ok((sum(tallies)?.plus(&adder)?, lateness))
            })
        });
        let attack = scope.spawn(|| {
            #[cfg(unix)]
            rustix::process::nice(10)?;
            on_one_thread(async {
                let clients = Client::connect(load, 1 << 32, load.attackers).await?;
                tokio::time::sleep_until(load.schedule.at(Schedule::ATTACK[0]).into()).await;
                sum(try_join_all(clients.into_iter().map(Client::attack)).await?)
            })
        });
        let (tally, lateness) = joined(regular)?;
        Ok((tally.plus(&joined(attack)?)?, lateness))
    })
}

fn on_one_thread<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(future)
}

fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().map_err(|_| "a client panicked")?
}

fn sum(tallies: Vec<Tally>) -> Result<Tally> {
    tallies.iter().try_fold(Tally::new()?, Tally::plus)
}

struct Client<'a> {
    load: &'a Load,
    connection: Connection,
    rng: SmallRng,
    /// Requests are frequent for few rows, and rare for most rows.
    ranks: Zipf<f64>,
    tally: Tally,
}

impl<'a> Client<'a> {
    /// Connects `number` clients. Each has a seed of its own, the same at every server.
    async fn connect(load: &'a Load, first_seed: u64, number: u32) -> Result<Vec<Self>> {
        let seeds = first_seed..first_seed + u64::from(number);
        try_join_all(seeds.map(|seed| Self::new(load, seed))).await
    }

    async fn new(load: &'a Load, seed: u64) -> Result<Self> {
        Ok(Self {
            load,
            connection: Connection::open(load.server).await?,
            rng: SmallRng::seed_from_u64(load.seed.wrapping_add(seed)),
            ranks: Zipf::new(load.loaded as f64, 0.99)?,
            tally: Tally::new()?,
        })
    }

    /// At random moments, independent of each other. If an answer is late, the next request is, and
    /// its latency counts from the moment at which it was due.
    async fn ask_regularly(mut self) -> Result<Tally> {
        let pauses = Exp::new(self.load.rate / f64::from(self.load.clients))?;
        let mut due = Instant::now();
        loop {
            due += Duration::from_secs_f64(pauses.sample(&mut self.rng));
            if due > Instant::now() {
                tokio::time::sleep_until(due.into()).await;
                due = Instant::now(); // timers are late by up to a millisecond
            }
            let part = self.load.schedule.part(due);
            if part == Part::End {
                return Ok(self.tally);
            }
            let row = self.rng.random::<bool>().then(|| self.pick_row());
            self.ask(row, part, due).await?;
        }
    }

    async fn attack(mut self) -> Result<Tally> {
        let pauses = Exp::new(self.load.attack_rate / f64::from(self.load.attackers))?;
        let mut due = Instant::now();
        loop {
            due += Duration::from_secs_f64(pauses.sample(&mut self.rng));
            if due > Instant::now() {
                tokio::time::sleep_until(due.into()).await;
            }
            let now = Instant::now();
            let part = self.load.schedule.part(now);
            if part != Part::Attack {
                return Ok(self.tally);
            }
            self.ask(None, part, now).await?;
        }
    }

    /// Asks for a row, or for a made-up id, and checks the answer.
    async fn ask(&mut self, row: Option<u64>, part: Part, due: Instant) -> Result<()> {
        let id = id_of(row.unwrap_or_else(|| made_up(self.rng.random())));
        let answer = self.connection.send(Method::GET, id).await?;
        let latency = due.elapsed().as_nanos() as u64;
        self.load.answered.fetch_add(1, Ordering::Relaxed);
        self.verify(id, row.is_some(), answer);
        if let Some(answers) = self.tally.answers(part) {
            match row {
                Some(_) => answers.valid.saturating_record(latency),
                None => answers.made_up += 1,
            }
        }
        Ok(())
    }

    /// A row that exists at this moment.
    fn pick_row(&mut self) -> u64 {
        let loaded = self.load.loaded;
        let published = self.load.published.load(Ordering::Acquire);
        if published > loaded && self.rng.random_bool(0.1) {
            // One of the newest rows, which a late guard would refuse.
            return self
                .rng
                .random_range(published.saturating_sub(100).max(loaded)..published);
        }
        self.ranks.sample(&mut self.rng) as u64 - 1
    }

    fn verify(&mut self, id: u64, is_valid: bool, (status, body): (StatusCode, Bytes)) {
        match status {
            StatusCode::OK if is_valid && body == row_of(id) => {}
            StatusCode::NOT_FOUND if !is_valid => {}
            StatusCode::NOT_FOUND => {
                eprintln!("FAILED: the valid id {id} was refused");
                self.tally.refused += 1;
            }
            _ => {
                eprintln!("FAILED: id {id}: {status}, {body:?}");
                self.tally.wrong += 1;
            }
        }
    }
}

/// Adds rows one after another. Once the server has confirmed a row, all clients may ask for it.
async fn add_rows(load: &Load) -> Result<Tally> {
    let mut connection = Connection::open(load.server).await?;
    let mut tally = Tally::new()?;
    let mut due = Instant::now();
    loop {
        due += Duration::from_secs_f64(1.0 / load.adds);
        tokio::time::sleep_until(due.into()).await;
        if load.schedule.part(Instant::now()) == Part::End {
            return Ok(tally);
        }
        let id = id_of(load.published.load(Ordering::Relaxed));
        let (status, _) = connection.send(Method::PUT, id).await?;
        if status != StatusCode::CREATED {
            return Err(format!("the server could not add {id}: {status}").into());
        }
        load.published.fetch_add(1, Ordering::Release);
        tally.added += 1;
    }
}

/// A connection that is kept open.
struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    host: String,
}

impl Connection {
    async fn open(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Self {
            sender,
            host: server.to_string(),
        })
    }

    async fn send(&mut self, method: Method, id: u64) -> Result<(StatusCode, Bytes)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("/users/{id}"))
            .header(HOST, &self.host)
            .body(Empty::new())?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}
