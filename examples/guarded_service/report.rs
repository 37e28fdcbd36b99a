//! The results of the runs, as text.

use crate::load::{Answers, Schedule};
use crate::{Run, SAMPLES, Sample};
use axum::body::Bytes;
use hdrhistogram::Histogram;
use lanebloom_guard::{CacheStats, future::GuardedCache};

/// One part of a run, between two samples.
struct Part<'a> {
    answers: &'a Answers,
    from: &'a Sample,
    to: &'a Sample,
}

impl Part<'_> {
    fn seconds(&self) -> f64 {
        self.to.at - self.from.at
    }

    fn requests(&self) -> u64 {
        self.to.answered - self.from.answered
    }

    fn queries(&self) -> u64 {
        self.to.queries.all - self.from.queries.all
    }

    /// Queries for made-up ids.
    fn in_vain(&self) -> u64 {
        self.to.queries.in_vain - self.from.queries.in_vain
    }

    fn stats(&self) -> Option<CacheStats> {
        Some(self.to.stats?.since(&self.from.stats?))
    }
}

fn before(run: &Run) -> Part<'_> {
    Part {
        answers: &run.tally.before,
        from: &run.samples[0],
        to: &run.samples[index(0)],
    }
}

fn attack(run: &Run) -> Part<'_> {
    Part {
        answers: &run.tally.attack,
        from: &run.samples[index(0)],
        to: &run.samples[index(1)],
    }
}

/// The sample at which the attack begins, and the one at which it ends.
fn index(end: usize) -> usize {
    (Schedule::ATTACK[end] * SAMPLES as f64).round() as usize
}

pub fn print(runs: &[Run; 3]) {
    let line = |name: &str, [a, b, c]: [&str; 3]| println!("{name:<34}{a:>16}{b:>16}{c:>16}");
    println!();
    line("", runs.each_ref().map(|run| run.name));
    let row = |name: &str, cell: &dyn Fn(&Run) -> Option<String>| {
        let cells = runs.each_ref().map(|run| cell(run).unwrap_or("-".into()));
        line(name, cells.each_ref().map(String::as_str));
    };
    for (name, part) in [
        ("before the attack", before as fn(&Run) -> Part<'_>),
        ("during the attack", attack),
    ] {
        println!("{name}");
        row("  requests/s", &|run| {
            let part = part(run);
            Some(format!("{:.0}", part.requests() as f64 / part.seconds()))
        });
        row("  made-up ids", &|run| {
            let answers = part(run).answers;
            let part = answers.made_up as f64 / answers.requests() as f64;
            Some(format!("{:.1}%", part * 100.0))
        });
        row("  µs for an id that exists, p50", &|run| {
            micros(&part(run).answers.valid, 0.5)
        });
        row("    p99", &|run| micros(&part(run).answers.valid, 0.99));
        row("    p99.9", &|run| micros(&part(run).answers.valid, 0.999));
        row("  store queries/s", &|run| {
            let part = part(run);
            Some(format!("{:.0}", part.queries() as f64 / part.seconds()))
        });
        row("    for ids that do not exist", &|run| {
            Some(part(run).in_vain().to_string())
        });
        row("    per request for such an id", &|run| {
            Some(format!("{:.4}", query_rate(&part(run))))
        });
        row("  refused by the filter", &|run| {
            Some(part(run).stats()?.guard.turned_away.to_string())
        });
        row("  false positives", &|run| {
            Some(part(run).stats()?.guard.false_positives.to_string())
        });
        row("  loads", &|run| Some(part(run).stats()?.loads.to_string()));
        row("    joined", &|run| Some(part(run).stats()?.joined.to_string()));
    }
    println!("µs late during the attack, p50 / p99");
    row("  clients", &|run| both(&run.clients_late));
    row("  server", &|run| both(&run.server_late));
    println!("what the attack does");
    row("  p99, during / before", &|run| {
        let p99 = |part: Part<'_>| part.answers.valid.value_at_quantile(0.99) as f64;
        Some(format!("{:.2}", p99(attack(run)) / p99(before(run))))
    });
    row("  fewer store queries for such ids", &|run| {
        Some(format!(
            "{:.1}",
            query_rate(&attack(&runs[0])) / query_rate(&attack(run))
        ))
    });
    println!();
}

/// Store queries per request for an id that does not exist.
fn query_rate(part: &Part<'_>) -> f64 {
    part.in_vain() as f64 / part.answers.made_up as f64
}

fn micros(latencies: &Histogram<u64>, quantile: f64) -> Option<String> {
    (!latencies.is_empty()).then(|| format!("{:.0}", latencies.value_at_quantile(quantile) as f64 / 1e3))
}

fn both(lateness: &Histogram<u64>) -> Option<String> {
    Some(format!("{} / {}", micros(lateness, 0.5)?, micros(lateness, 0.99)?))
}

/// Says which runs had too few processors: where threads of the clients or of the server wait for
/// one, the latencies are those of the machine. (With nothing to do, a timer is late by one or two
/// milliseconds.)
pub fn warn_of_late_threads(runs: &[Run; 3]) {
    let mut any = false;
    for run in runs {
        for (who, lateness) in [("clients", &run.clients_late), ("server", &run.server_late)] {
            let [p50, p99] = [0.5, 0.99].map(|quantile| lateness.value_at_quantile(quantile) / 1_000_000);
            if p50 > 2 || p99 > 10 {
                println!(
                    "TOO FEW PROCESSORS: {}: the {who} waited for one {p50} ms at p50 and {p99} ms at p99 of the attack.",
                    run.name
                );
                any = true;
            }
        }
    }
    if any {
        println!("So the latencies say little of the cache: use an idle machine, or a lower --rate and --attack.\n");
    }
}

/// Prints and returns whether all answers were right.
pub fn all_answers_were_right(runs: &[Run; 3]) -> bool {
    for run in runs {
        let tally = &run.tally;
        if tally.refused + tally.wrong > 0 {
            println!(
                "FAILED: {}: {} valid ids were refused, {} answers were otherwise wrong",
                run.name, tally.refused, tally.wrong
            );
            return false;
        }
    }
    let tally = &runs[2].tally;
    let valid: u64 = [&tally.before, &tally.attack, &tally.after]
        .iter()
        .map(|answers| answers.valid.len())
        .sum();
    println!(
        "No valid id was refused: {valid} requests to the guarded server got their row, while {} rows were added.",
        tally.added
    );
    true
}

/// Asks the filter for all ids. Prints and returns whether all pass.
pub fn every_id_passes(cache: &GuardedCache<u64, Bytes>, ids: &[u64]) -> bool {
    let mut passed = 0;
    cache.guard().check_batch(ids, |_, _| passed += 1);
    let rebuilds = cache.stats().rebuilds;
    if passed == ids.len() {
        println!("The filter has all {passed} ids, after {rebuilds} rebuilds.");
    } else {
        println!(
            "FAILED: the filter has {passed} of {} ids, after {rebuilds} rebuilds",
            ids.len()
        );
    }
    passed == ids.len()
}

/// Prints and returns whether few of the attackers' requests reached the store: at most twice those
/// that the filter's rate promises, which leaves room for chance, and for requests that are counted
/// in one part and their queries in the next.
pub fn the_store_was_spared(run: &Run, rate: f64) -> bool {
    let part = attack(run);
    let (queries, requests) = (part.in_vain(), part.answers.made_up);
    let is_spared = queries as f64 <= 2.0 * rate * requests as f64 + 20.0;
    println!(
        "{}{queries} of {requests} requests for made-up ids reached the store during the attack.",
        if is_spared { "" } else { "FAILED: " }
    );
    is_spared
}
