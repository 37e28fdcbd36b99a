//! Runs that end at any moment: the state is the old one or the new one.

#[cfg(unix)]
use super::signals::{by_default, signal};
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
        #[cfg(unix)]
        let mut command = by_default(&command);
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
        scene.run(&mut random, |child| signal(child, "INT"));
        // (Elsewhere the next run removes it.)
        assert!(!cfg!(target_os = "linux") || scene.folder.leftovers().is_empty());
    }
    scene.end();
}

/// In the middle of a run, which ends by the signal, as a shell expects it. What was there is as
/// before, and nothing is beside it.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_removes_the_files_of_the_run() {
    use super::signals::ends;
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new();
    folder.file("out", "old\n");
    let names = || {
        let entries = fs::read_dir(&folder.path).unwrap();
        let mut names = Vec::from_iter(entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()));
        names.sort();
        names
    };
    // Waits in the middle: its input has no end, and its files are there.
    let start = |before: &str, args: &[&str]| {
        let child = spawn(by_default(&after(before, &dedup(args))).current_dir(&folder.path));
        let all = Instant::now();
        while names().len() < 3 {
            assert!(all.elapsed() < PATIENCE, "{:?}", names());
            thread::sleep(Duration::from_millis(1));
        }
        child
    };
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        if !ends(number) {
            println!("skipped: this test ignores {name}");
            continue;
        }
        let mut child = start("ulimit -c 0", &["-o", "out", "--state", "state"]);
        child.stdin.as_mut().unwrap().write_all(&numbers(0, 100)).unwrap();
        signal(&child, name);
        let status = wait(&mut child);
        assert_eq!(status.signal(), Some(number), "{name}: {status}");
        assert_eq!(names(), ["out"], "{name}");
        assert_eq!(fs::read(folder.path("out")).unwrap(), b"old\n");
        assert_eq!(Run::end(child).errors, "");
    }
    // A signal that is ignored stays so, as `nohup` wants it; others do not.
    for (name, number) in [("HUP", None), ("INT", ends(2).then_some(2))] {
        let mut child = start("trap '' HUP", &["-q", "-o", "out", "--state", "state"]);
        signal(&child, name);
        if number.is_none() {
            thread::sleep(Duration::from_millis(50));
        }
        // It fails if the program has ended.
        let _ = child.stdin.take().unwrap().write_all(b"1\n1\n");
        let status = wait(&mut child);
        assert_eq!(status.signal(), number, "{name}: {status}");
        assert_eq!(status.success(), number.is_none(), "{name}: {status}");
        assert_eq!(fs::read(folder.path("out")).unwrap(), b"1\n");
        assert!(!names().iter().any(|name| name.starts_with('.')), "{:?}", names());
        let _ = fs::remove_file(folder.path("state"));
    }
}

/// At any moment of a run in place, and again: no line is lost, and in the end none is there twice.
#[test]
#[cfg(target_os = "linux")]
fn runs_in_place_that_a_signal_ends() {
    let folder = Folder::new();
    fs::create_dir(folder.path("d")).unwrap();
    let (one, two) = (numbers(0, 100_000), numbers(50_000, 100_000));
    let run = || {
        let mut command = dedup(["--quiet", "--in-place"]);
        command.args(SURE).arg(folder.path("d"));
        by_default(&command)
    };
    let start = Instant::now();
    folder.file("d/1", &one);
    folder.file("d/2", &two);
    assert!(run().status().unwrap().success());
    let whole = start.elapsed();
    let expected = [one.clone(), numbers(100_000, 50_000)];
    let now = || ["d/1", "d/2"].map(|name| fs::read(folder.path(name)).unwrap());
    assert!(now() == expected);
    let mut random = Random(900);
    for round in 0..KILLS / 5 {
        folder.file("d/1", [&one[..], &one[..10]].concat());
        folder.file("d/2", &two);
        for _ in 0..2 {
            let mut child = run().spawn().unwrap();
            thread::sleep(whole.mul_f64(random.below(1 << 20) as f64 / (1 << 20) as f64));
            signal(&child, ["INT", "TERM", "HUP"][round % 3]);
            wait(&mut child);
            assert_eq!(fs::read_dir(folder.path("d")).unwrap().count(), 2);
        }
        assert!(run().status().unwrap().success());
        assert!(now() == expected, "after {round} rounds");
    }
}
