//! Runs that are killed at any moment go on where they were.

use super::*;
use std::collections::HashMap;
use std::thread;
use std::time::Instant;

/// How often a run is killed.
const KILLS: usize = 100;

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let shell = Shell::new();
    let mut random = Random(11);
    let all = random.texts(4000);
    let names = Vec::from_iter((0..40).map(|number| format!("{number:02}.jsonl")));
    for (name, texts) in names.iter().zip(all.chunks(100)) {
        shell.write(&format!("in/{name}"), lines(texts));
    }
    let options = format!("--unit line {SURE} --threads 2 --save-every 0");
    let start = Instant::now();
    shell.ok(&format!("in --output-dir whole --state whole.lbf {options}"));
    let whole = start.elapsed();
    let expected: HashMap<&String, Vec<u8>> = names
        .iter()
        .map(|name| (name, shell.read(&format!("whole/in/{name}"))))
        .collect();

    let (mut kills, mut ends, mut between) = (0, 0, 0);
    let mut round = 0;
    while kills < KILLS {
        round += 1;
        let line = format!("in --output-dir out{round} --state s{round}.lbf {options}");
        // At most a quarter of a whole run at first, and more with each kill: on a machine that has
        // become slower, a run might not come to the next input otherwise, and this would not end.
        let mut longest = whole / 4;
        loop {
            let mut child = shell.command(&line).stderr(Stdio::piped()).spawn().unwrap();
            thread::sleep(longest.mul_f64(random.below(1 << 20) as f64 / (1 << 20) as f64));
            longest = longest.mul_f64(1.05);
            let _ = child.kill();
            let output = child.wait_with_output().unwrap();
            kills += 1;
            let mut done = 0;
            for name in &names {
                // Each output is whole or absent.
                if let Ok(bytes) = fs::read(shell.path(&format!("out{round}/in/{name}"))) {
                    assert!(bytes == expected[name], "{name} after {kills} kills");
                    done += 1;
                }
            }
            between += usize::from(done > 0 && done < names.len());
            if output.status.success() {
                ends += 1;
                break;
            }
            assert_ne!(output.status.code(), Some(2), "{}", stderr(&output));
        }
        // The last run says that all is done, and leaves nothing beside the outputs.
        let output = shell.run(&line);
        assert!(
            stderr(&output).contains("40 inputs were done before"),
            "{}",
            stderr(&output)
        );
        assert_eq!(shell.names(&format!("out{round}/in")), names);
        assert!(!shell.names(".").iter().any(|name| name.starts_with('.')));
    }
    assert!(
        ends > 0 && between > 0,
        "{ends} ends, {between} of {kills} kills in the middle"
    );
}

/// Without a state each output is whole or absent all the same.
#[test]
fn a_killed_run_without_a_state_leaves_whole_outputs() {
    let shell = Shell::new();
    let mut random = Random(12);
    for number in 0..20 {
        let texts = Vec::from_iter((0..2000).map(|_| random.next().to_string()));
        shell.write(&format!("in/{number:02}.jsonl.gz"), gzip(lines(&texts).as_bytes()));
    }
    let start = Instant::now();
    shell.ok("in --output-dir whole");
    let whole = start.elapsed();
    for round in 0..20 {
        let line = format!("in --output-dir out{round}");
        let mut child = shell.command(&line).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(whole.mul_f64(random.below(1 << 20) as f64 / (1 << 20) as f64));
        let _ = child.kill();
        child.wait().unwrap();
        for number in 0..20 {
            let name = format!("in/{number:02}.jsonl.gz");
            if let Ok(bytes) = fs::read(shell.path(&format!("out{round}/{name}"))) {
                assert!(bytes == shell.read(&format!("whole/{name}")));
            }
        }
    }
}

/// A signal removes the files that have no name yet, and the run ends by it, as a shell expects it.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_removes_the_files_of_the_run() {
    use super::signals::{by_default, ends, signal};
    use std::os::unix::process::ExitStatusExt;
    // In the middle: the input has no end.
    let shell = Shell::new();
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        if !ends(number) {
            println!("skipped: this test ignores {name}");
            continue;
        }
        let mut command = by_default(&shell.command("- -o out.jsonl --state s.lbf"));
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while shell.names(".").len() < 2 {
            assert!(start.elapsed().as_secs() < 120, "{:?}", shell.names("."));
            thread::sleep(std::time::Duration::from_millis(1));
        }
        signal(&child, name);
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{name}: {status}");
        assert!(shell.names(".").is_empty(), "{name}: {:?}", shell.names("."));
    }
    // At any moment.
    let mut random = Random(13);
    for number in 0..20 {
        let texts = Vec::from_iter((0..2000).map(|_| random.next().to_string()));
        shell.write(&format!("in/{number:02}.jsonl.gz"), gzip(lines(&texts).as_bytes()));
    }
    let start = Instant::now();
    shell.ok("in --output-dir whole");
    let whole = start.elapsed();
    for round in 0..20 {
        let line = format!("in --output-dir out{round} -q");
        let mut command = by_default(&shell.command(&line));
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        thread::sleep(whole.mul_f64(random.below(1 << 20) as f64 / (1 << 20) as f64));
        signal(&child, "INT");
        let status = child.wait().unwrap();
        assert!(status.success() || status.signal() == Some(2), "{status}");
        let folder = format!("out{round}/in");
        if shell.path(&folder).exists() {
            let names = shell.names(&folder);
            assert!(!names.iter().any(|name| name.starts_with('.')), "{names:?}");
        }
    }
}
