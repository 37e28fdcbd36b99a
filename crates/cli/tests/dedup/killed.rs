//! Runs that end at any moment: the state is the old one or the new one.

use super::*;
use std::time::{Duration, Instant};

/// A state, an input, and the state after the input.
struct Scene {
    folder: Folder,
    old: Vec<u8>,
    new: Vec<u8>,
    /// How long a whole run takes.
    whole: Duration,
}

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        let state = folder.path("state");
        Run::new(dedup(["-q", "--state"]).arg(&state), numbers(0, 1000)).output();
        let old = fs::read(&state).unwrap();
        folder.file("input", numbers(1000, 20_000));
        let mut scene = Self {
            folder,
            old,
            new: Vec::new(),
            whole: Duration::ZERO,
        };
        let start = Instant::now();
        assert!(scene.command().status().unwrap().success());
        scene.whole = start.elapsed();
        scene.new = fs::read(&state).unwrap();
        scene
    }

    fn command(&self) -> Command {
        let mut command = dedup(["--quiet", "--state"]);
        command.arg(self.folder.path("state")).arg(self.folder.path("input"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Starts a run on the old state, ends it by `kill` at a random moment, and returns whether the
    /// state is the new one.
    fn run(&self, random: &mut Random, kill: impl Fn(&mut std::process::Child)) -> bool {
        self.folder.file("state", &self.old);
        let before = self.folder.leftovers();
        let mut child = self.command().spawn().unwrap();
        if random.below(2) == 0 {
            // Any moment of a run.
            thread::sleep(self.whole.mul_f64(random.below(1 << 20) as f64 / (1 << 20) as f64));
        } else {
            // A moment soon after the write has begun.
            while child.try_wait().unwrap().is_none() && self.folder.leftovers() == before {
                thread::yield_now();
            }
            thread::sleep(Duration::from_micros(random.below(500) as u64));
        }
        kill(&mut child);
        let status = child.wait().unwrap();
        let state = fs::read(self.folder.path("state")).unwrap();
        assert!(
            state == self.old || state == self.new,
            "{status}: neither the old nor the new state"
        );
        // The next run reads it, whichever it is.
        assert!(!status.success() || state == self.new);
        state == self.new
    }

    /// The next whole run removes what killed ones left, and its state is the same as ever.
    fn end(&self) {
        let left = self.folder.leftovers().len();
        assert!(self.command().status().unwrap().success());
        assert!(self.folder.leftovers().is_empty(), "of {left}");
        let output = Run::new(self.command().arg("--count"), "");
        assert!(output.status.success(), "{}", output.errors);
    }
}

/// (On Windows by `TerminateProcess`.)
#[test]
fn by_sigkill_at_random_moments() {
    let scene = Scene::new();
    let mut random = Random(700);
    let mut replaced = 0;
    for _ in 0..KILLS {
        replaced += usize::from(scene.run(&mut random, |child| child.kill().unwrap()));
    }
    println!("{replaced} of {KILLS} killed runs had replaced the state");
    scene.end();
}

#[test]
#[cfg(unix)] // A signal.
fn by_sigint() {
    let scene = Scene::new();
    let mut random = Random(800);
    for _ in 0..KILLS / 10 {
        scene.run(&mut random, |child| {
            // It may have ended already; its number is not given away before it is waited for.
            let mut kill = Command::new("sh");
            kill.args(["-c", "kill -INT \"$0\" 2>/dev/null", &child.id().to_string()]);
            kill.status().unwrap();
        });
    }
    scene.end();
}
