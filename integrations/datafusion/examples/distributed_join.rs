//! A join through Ballista with and without filters: one scheduler and two executors, each a
//! process of its own on this machine. Makes TPC-H-like data (`lineitem`, and `part` with a
//! thirtieth of its rows) as Parquet, then runs the same query both ways. It prints the median
//! times, and the rows and bytes that the executors wrote for the shuffle, and fails unless both
//! answers are equal. Then it kills executors in the middle of queries, `--kills` times, and fails
//! unless each query returns the right answer or an error within [`DEADLINE`].
//!
//! Ballista sends all of a small side of up to 128 MiB to every executor, and then nothing of the
//! large side crosses the shuffle. The small side here stands for one above this limit, so the
//! limit is 0, unless `--broadcast-bytes` sets it.
//!
//! ```sh
//! cargo run --release --example distributed_join -- --rows 20000000 --partitions 8
//! cargo run --example distributed_join -- --rows 200000 --partitions 4
//! ```

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::JobId;
use ballista_core::execution_plans::DistributedQueryExec;
use ballista_core::registry::BallistaFunctionRegistry;
use ballista_core::serde::protobuf::CancelJobParams;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_scheduler::cluster::{BallistaCluster, ClusterState, JobState};
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::start_server;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_plan::collect;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use datafusion_proto::protobuf::LogicalPlanNode;
use lanebloom_datafusion::{Functions, JoinFilters};
use std::collections::HashSet;
use std::error::Error;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The number after an option.
fn option(name: &str, default: usize) -> usize {
    let mut args = std::env::args().skip_while(|arg| arg != name).skip(1);
    args.next().map_or(default, |value| value.parse().expect("a number"))
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some("scheduler") => scheduler(args[2].parse()?).await,
        Some("executor") => executor(args[2].parse()?, args[3].parse()?, &args[4]).await,
        _ => compare().await,
    }
}

/// The scheduler plans with our functions.
async fn scheduler(port: u16) -> Result<()> {
    let session = |config: SessionConfig| {
        let mut state =
            SessionStateBuilder::new_from_existing(ballista_core::utils::default_session_builder(config)?).build();
        Functions::default().register(&mut state)?;
        Ok(state)
    };
    let config = SchedulerConfig {
        // Executors send a heartbeat each second, so a dead one is found after 3 to 6 s. By
        // default, Ballista needs three minutes. It also stops an executor that is alive and silent
        // for as long.
        executor_timeout_seconds: 4,
        expire_dead_executor_interval_seconds: 1,
        override_session_builder: Some(Arc::new(session)),
        ..SchedulerConfig::default().with_port(port)
    };
    let cluster = BallistaCluster::new_from_config(&config).await?;
    let (executors, jobs) = (cluster.cluster_state(), cluster.job_state());
    tokio::spawn(cancel_when_executors_die(executors, jobs, port));
    let address = format!("127.0.0.1:{port}").parse()?;
    Ok(start_server(cluster, address, Arc::new(config)).await?)
}

/// Cancels all jobs when an executor is lost. Ballista's adaptive planner, its default, does not
/// recover from that: the query never ends (apache/datafusion-ballista#1986). Its static planner
/// runs tasks again, but some queries here did not end, and some counted rows twice.
async fn cancel_when_executors_die(executors: Arc<dyn ClusterState>, jobs: Arc<dyn JobState>, port: u16) {
    let mut known = HashSet::new();
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let alive: HashSet<String> = executors.executor_heartbeats().into_keys().collect();
        if !known.is_subset(&alive) {
            for job in jobs.get_all_jobs().await.into_iter().flatten() {
                let status = jobs.get_job_status(&job).await.ok().flatten();
                if let Some(Status::Queued(_) | Status::Running(_)) = status.and_then(|job| job.status) {
                    // Fails if the job has just ended.
                    let _ = cancel(job, port).await;
                }
            }
        }
        known = alive;
    }
}

async fn cancel(job: JobId, scheduler_port: u16) -> Result<()> {
    let mut scheduler = SchedulerGrpcClient::connect(format!("http://127.0.0.1:{scheduler_port}")).await?;
    let job_id = job.into();
    scheduler.cancel_job(CancelJobParams { job_id }).await?;
    Ok(())
}

/// An executor, with our functions.
async fn executor(scheduler_port: u16, port: u16, work_dir: &str) -> Result<()> {
    let functions = Functions::default();
    let mut registry = BallistaFunctionRegistry::default();
    for function in &functions.scalar {
        registry
            .scalar_functions
            .insert(function.name().into(), Arc::clone(function));
    }
    for function in &functions.aggregate {
        registry
            .aggregate_functions
            .insert(function.name().into(), Arc::clone(function));
    }
    let config = ExecutorProcessConfig {
        port,
        grpc_port: free_port()?,
        scheduler_host: "127.0.0.1".into(),
        scheduler_port,
        scheduler_connect_timeout_seconds: 60,
        vcores: 1,
        work_dir: Some(work_dir.into()),
        executor_heartbeat_interval_seconds: 1,
        override_function_registry: Some(Arc::new(registry)),
        ..ExecutorProcessConfig::default()
    };
    Ok(start_executor_process(Arc::new(config)).await?)
}

fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Processes that end with the program.
struct Cluster(Vec<Child>);

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Fails if it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(args: &[String]) -> Result<Child> {
    Ok(Command::new(std::env::current_exe()?).args(args).spawn()?)
}

fn spawn_executor(port: u16, work_dir: &Path) -> Result<Child> {
    std::fs::create_dir_all(work_dir)?;
    spawn(&[
        "executor".into(),
        port.to_string(),
        free_port()?.to_string(),
        work_dir.display().to_string(),
    ])
}

async fn make_data(folder: &Path, rows: usize, partitions: usize) -> Result<()> {
    let ctx = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let parts = (rows / 30).max(1);
    let each = rows / partitions;
    for file in 0..partitions {
        let sql = format!(
            "COPY (SELECT value AS l_orderkey, value * 7919 % {parts} AS l_partkey, value % 1000 AS l_suppkey,
                   value % 50 AS l_quantity, value % 100000 AS l_price, concat('ship ', value % 7, ' by ', value % 5) AS l_comment
             FROM generate_series({}, {})) TO '{}/lineitem/{file}.parquet'",
            file * each,
            (file + 1) * each - 1,
            folder.display()
        );
        ctx.sql(&sql).await?.collect().await?;
        let sql = format!(
            "COPY (SELECT value AS p_partkey, concat('brand ', value % 25) AS p_brand, value * 31 % 1000 AS p_permille
             FROM generate_series({}, {})) TO '{}/part/{file}.parquet'",
            file * parts / partitions,
            ((file + 1) * parts / partitions).max(1) - 1,
            folder.display()
        );
        ctx.sql(&sql).await?.collect().await?;
    }
    Ok(())
}

fn query(permille: usize) -> String {
    format!(
        "SELECT p_brand, l_suppkey % 10 AS s, count(*) AS n, sum(l_price) AS price, min(l_comment) AS c
         FROM lineitem JOIN part ON l_partkey = p_partkey WHERE p_permille < {permille}
         GROUP BY p_brand, l_suppkey % 10 ORDER BY p_brand, s"
    )
}

/// A session of the cluster, with filters or without.
async fn session(port: u16, data: &Path, partitions: usize, filters: bool) -> Result<SessionContext> {
    let config = SessionConfig::new_with_ballista()
        .with_target_partitions(partitions)
        .with_ballista_broadcast_join_threshold_bytes(option("--broadcast-bytes", 0))
        .with_ballista_broadcast_join_threshold_rows(0);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_default_features()
        .build();
    let ctx = SessionContext::remote_with_state(&format!("df://127.0.0.1:{port}"), state).await?;
    for table in ["lineitem", "part"] {
        let path = format!("{}/{table}/", data.display());
        ctx.register_parquet(table, &path, ParquetReadOptions::default())
            .await?;
    }
    if filters {
        JoinFilters::new().install(&ctx);
    }
    Ok(ctx)
}

async fn answer(ctx: &SessionContext, sql: &str) -> Result<String> {
    let batches = ctx.sql(sql).await?.collect().await?;
    Ok(pretty_format_batches(&batches)?.to_string())
}

/// A query that takes longer fails.
const DEADLINE: Duration = Duration::from_secs(30);

/// The answer, or an error after [`DEADLINE`]. Ballista itself has no deadline for a query, and a
/// client that goes away does not cancel it.
async fn answer_in_time(ctx: &SessionContext, sql: &str, port: u16) -> Result<String> {
    let plan = ctx.sql(sql).await?.create_physical_plan().await?;
    let run = collect(Arc::clone(&plan), ctx.task_ctx());
    if let Ok(batches) = tokio::time::timeout(DEADLINE, run).await {
        return Ok(pretty_format_batches(&batches?)?.to_string());
    }
    let query = plan.downcast_ref::<DistributedQueryExec<LogicalPlanNode>>();
    if let Some(job) = query.and_then(DistributedQueryExec::job_id) {
        cancel(job, port).await?;
    }
    Err(format!("no answer within {} s", DEADLINE.as_secs()).into())
}

/// Bytes of the files below a folder.
fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// The rows that stages wrote for the shuffle, as `EXPLAIN ANALYZE` counts them.
fn shuffled_rows(analyzed: &str) -> u64 {
    let writers = analyzed.lines().filter(|line| line.contains("ShuffleWriterExec"));
    let rows = writers.filter_map(|line| {
        let (_, after) = line
            .split_once("input_rows=")
            .or_else(|| line.split_once("output_rows="))?;
        let (number, _) = after.split_once([',', ']'])?;
        let (number, times) = match number.trim() {
            number if number.ends_with(" K") => (number.trim_end_matches(" K"), 1e3),
            number if number.ends_with(" M") => (number.trim_end_matches(" M"), 1e6),
            number => (number, 1.0),
        };
        number.parse::<f64>().ok().map(|number| (number * times) as u64)
    });
    rows.sum()
}

async fn compare() -> Result<()> {
    let (rows, partitions) = (option("--rows", 2_000_000), option("--partitions", 8));
    let folder = tempfile::tempdir()?;
    let (data, work) = (folder.path().join("data"), folder.path().join("work"));
    let start = Instant::now();
    make_data(&data, rows, partitions).await?;
    println!(
        "{rows} rows, {partitions} partitions, {} MB of Parquet, made in {:.1} s",
        bytes_below(&data) / 1_000_000,
        start.elapsed().as_secs_f64()
    );
    let port = free_port()?;
    let mut cluster = Cluster(vec![spawn(&["scheduler".into(), port.to_string()])?]);
    for name in ["one", "two"] {
        cluster.0.push(spawn_executor(port, &work.join(name))?);
    }
    tokio::time::sleep(Duration::from_secs(4)).await;

    println!("\n| selectivity | filters | time, s | shuffle, rows | shuffle, bytes |\n|---|---|--:|--:|--:|");
    let selectivities = match option("--permille", 0) {
        0 => vec![1, 10, 100, 500],
        one => vec![one],
    };
    let mut expected = String::new();
    let mut seconds = 0.0;
    for permille in selectivities {
        let sql = query(permille);
        let mut sides = vec![];
        for filters in [false, true] {
            let ctx = session(port, &data, partitions, filters).await?;
            // One run to warm the file cache up.
            let answer = answer(&ctx, &sql).await?;
            sides.push((filters, ctx, answer, vec![], 0));
        }
        // Runs with and without filters take turns.
        for _ in 0..option("--runs", 3) {
            for (_, ctx, expected, times, bytes) in &mut sides {
                let before = bytes_below(&work);
                let start = Instant::now();
                let answer = answer(ctx, &sql).await?;
                times.push(start.elapsed().as_secs_f64());
                *bytes = bytes_below(&work) - before;
                if answer != *expected {
                    return Err(format!("another answer to {sql}\n{expected}\n{answer}").into());
                }
            }
        }
        let mut answers = vec![];
        for (filters, ctx, expected, mut times, bytes) in sides {
            times.sort_by(f64::total_cmp);
            seconds = times[times.len() / 2];
            let analyzed = answer(&ctx, &format!("EXPLAIN ANALYZE {sql}")).await?;
            if std::env::var_os("SHOW_PLANS").is_some() {
                println!("{analyzed}");
            }
            println!(
                "| {}% | {} | {seconds:.2} | {} | {bytes} |",
                permille as f64 / 10.0,
                if filters { "yes" } else { "no" },
                shuffled_rows(&analyzed),
            );
            answers.push(expected);
        }
        if answers[0] != answers[1] {
            return Err(format!("different answers to {sql}\n{}\n{}", answers[0], answers[1]).into());
        }
        expected = answers.swap_remove(0);
    }

    // The last query again, while an executor dies at another moment of it each time.
    let sql = query(option("--permille", 500));
    let (mut right, mut errors) = (vec![], vec![]);
    for kill in 0..option("--kills", 10) {
        let ctx = session(port, &data, partitions, true).await?;
        let sql = sql.clone();
        let start = Instant::now();
        let run = tokio::spawn(async move {
            answer_in_time(&ctx, &sql, port)
                .await
                .map_err(|error| error.to_string())
        });
        let moment = (kill as f64 * 0.618).fract();
        tokio::time::sleep(Duration::from_secs_f64(seconds * moment)).await;
        let executor = &mut cluster.0[1 + kill % 2];
        executor.kill()?;
        executor.wait()?;
        let answer = run.await?;
        let seconds = start.elapsed().as_secs_f64();
        match answer {
            Ok(answer) if answer == expected => right.push(seconds),
            Ok(answer) => return Err(format!("an executor was killed: a wrong answer\n{answer}").into()),
            Err(error) => {
                println!(
                    "killed at {moment:.2} of a query: {}",
                    error.lines().next().unwrap_or_default()
                );
                errors.push(seconds);
            }
        }
        *executor = spawn_executor(port, &work.join(format!("after {kill}")))?;
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let slowest = |seconds: &[f64]| seconds.iter().copied().fold(0.0, f64::max);
    println!(
        "\nan executor was killed: {} right answers, after at most {:.1} s; {} errors, after at most {:.1} s",
        right.len(),
        slowest(&right),
        errors.len(),
        slowest(&errors),
    );
    Ok(())
}
