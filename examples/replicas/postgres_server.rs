//! A PostgreSQL of the program's own: in a temporary folder, reached by a socket there, stopped
//! when it is dropped. Needs `initdb` and `postgres`, in the path or where Debian has them.

use crate::Result;
use crate::servers::signal;
use rustix::process::{Signal, geteuid};
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long the server may take until it is ready. It takes a second or two, and longer after a
/// crash.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Postgres {
    process: Child,
    programs: PathBuf,
    folder: tempfile::TempDir,
}

impl Postgres {
    pub fn start() -> Result<Self> {
        let programs = programs().ok_or("there is no PostgreSQL here: give a URL, or install it")?;
        let folder = tempfile::tempdir()?;
        if let Some((user, group)) = other_user()? {
            chown(folder.path(), Some(user), Some(group))?;
        }
        let mut initialize = command(&programs, "initdb")?;
        initialize.arg("--pgdata").arg(folder.path().join("data"));
        initialize.args([
            "--username=postgres",
            "--auth=trust",
            "--no-locale",
            "--encoding=UTF8",
            "--no-sync",
        ]);
        let output = initialize.output()?;
        if !output.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(Self {
            process: launch(&programs, folder.path())?,
            programs,
            folder,
        })
    }

    /// The parameters of a connection.
    pub fn url(&self) -> String {
        format!("host={} user=postgres dbname=postgres", self.folder.path().display())
    }

    /// The process that starts those of the connections.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Ends all processes at once, as a crash does, and starts the server again. It has kept what
    /// was committed.
    pub fn crash(&mut self) -> Result<()> {
        self.end();
        self.process = launch(&self.programs, self.folder.path())?;
        Ok(())
    }

    /// By a signal after which the process removes what it shares with the others.
    fn end(&mut self) {
        if signal(&[self.process.id()], Signal::QUIT).is_ok() {
            let _ = self.process.wait();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end();
    }
}

/// The folder of the programs.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    std::env::split_paths(&path)
        .chain(versions.map(|version| version.path().join("bin")))
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

/// PostgreSQL does not run as root. Then it runs as the user that its package has added.
fn other_user() -> Result<Option<(u32, u32)>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let id = |which| -> Result<u32> {
        let output = Command::new("id").args([which, "postgres"]).output()?;
        let id = String::from_utf8(output.stdout)?;
        Ok(id.trim().parse().map_err(|_| "there is no user postgres")?)
    };
    Ok(Some((id("-u")?, id("-g")?)))
}

fn command(programs: &Path, name: &str) -> Result<Command> {
    let mut command = Command::new(programs.join(name));
    if let Some((user, group)) = other_user()? {
        command.uid(user).gid(group);
    }
    command.current_dir("/").stdin(Stdio::null());
    Ok(command)
}

/// Starts the server, and waits until it is ready.
fn launch(programs: &Path, folder: &Path) -> Result<Child> {
    let mut server = command(programs, "postgres")?;
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    // By the socket alone. A crash of the server, unlike one of the machine, needs no fsync.
    server.args([
        "-c",
        "listen_addresses=",
        "-c",
        "fsync=off",
        "-c",
        "log_min_messages=panic",
    ]);
    let mut process = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let began = Instant::now();
    loop {
        // Its first line has the process, and the last one says when it is ready.
        let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
        let mut lines = state.lines();
        if lines.next() == Some(&process.id().to_string()) && lines.last().is_some_and(|line| line.trim() == "ready") {
            return Ok(process);
        }
        if let Some(status) = process.try_wait()? {
            return Err(format!("postgres: {status}").into());
        }
        if began.elapsed() > PATIENCE {
            process.kill()?;
            return Err(format!("postgres is not ready after {PATIENCE:?}").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
}
