//! The statistics of a run.

use super::args::Args;
use super::decide::{By, Decider, Statistics};
use super::documents::{Counts, Fate};
use indicatif::HumanBytes;
use lanebloom_files::summary::Summary;
use serde_json::Value;
use std::time::Instant;

pub(super) fn of(
    decider: &Decider,
    counts: &Counts,
    bands: usize,
    skipped: usize,
    args: &Args,
    start: Instant,
) -> Summary {
    let Decider { filter, way, .. } = decider;
    let (is_build, is_against) = (way.by == By::Nothing, way.by == By::Found);
    let (documents, shortened) = (counts.documents(), counts.of(Fate::Shortened));
    let (empty, too_short) = (counts.of(Fate::Empty), counts.of(Fate::TooShort));
    let with_nan = counts.of(Fate::WithNan);
    let not_json = counts.of(Fate::NotJson) + with_nan;
    let (without_text, half_surrogate) = (counts.of(Fate::WithoutText), counts.of(Fate::HalfSurrogate));
    let Counts {
        pieces,
        pieces_removed,
        hashes,
        hashes_seen,
        text_bytes,
        mistaken,
        ..
    } = *counts;
    let seconds = start.elapsed().as_secs_f64();
    let mb = text_bytes as f64 / 1e6;
    let Statistics { memory, fill, rate } = decider.statistics();
    let rate = rate * bands as f64;
    let mut statistics: Vec<(&'static str, Value)> = vec![
        ("documents", documents.into()),
        ("not_json", not_json.into()),
        ("not_json_with_nan", with_nan.into()),
        ("without_text", without_text.into()),
        ("half_surrogate", half_surrogate.into()),
        ("shortened", shortened.into()),
        ("dropped_empty", empty.into()),
        ("dropped_too_short", too_short.into()),
        ("pieces", pieces.into()),
        ("pieces_removed", pieces_removed.into()),
        ("hashes", hashes.into()),
        ("hashes_seen", hashes_seen.into()),
        ("inputs_skipped", skipped.into()),
    ];
    let (what, to) = match args.annotate {
        Some(_) => ("marked", "to be "),
        None => ("removed", ""),
    };
    let mut text = format!("{documents} documents");
    let uncompared = not_json + without_text + half_surrogate;
    if uncompared > 0 {
        let with_nan = match with_nan {
            0 => String::new(),
            with_nan => format!(" ({with_nan} with NaN or Infinity)"),
        };
        let reasons = [
            (without_text, "without a text".to_owned()),
            (not_json, format!("not JSON{with_nan}")),
            (half_surrogate, "with half a surrogate pair".to_owned()),
        ];
        let reasons = reasons.iter().filter(|(count, _)| *count > 0);
        let reasons = Vec::from_iter(reasons.map(|(count, reason)| format!("{count} {reason}")));
        text += &format!(", {uncompared} of them not compared: {}", reasons.join(", "));
    }
    if is_build {
        text += &format!(", {pieces} pieces, {hashes} hashes");
    } else {
        text += &format!(
            ", {} {to}dropped, {shortened} {to}shortened; {pieces} pieces, {pieces_removed} {what}",
            empty + too_short
        );
        if args.near.is_some() {
            text += &format!("; {hashes} bands, {hashes_seen} seen");
        } else if args.ngrams.is_some() {
            text += &format!("; {hashes} sequences, {hashes_seen} seen");
        }
    }
    if !is_against {
        statistics.extend([
            ("wrongly_removed_expected", Value::from(mistaken)),
            ("rate_now", rate.into()),
            ("memory_bytes", memory.into()),
            ("fill", fill.into()),
            ("forgotten", filter.forgotten.into()),
            ("full", filter.is_closed.into()),
        ]);
        if !is_build {
            text += &format!("; {mistaken:.2} pieces expected to be wrongly {what}");
        }
        text += &format!("; a filter of {}, {:.0}% full", HumanBytes(memory as u64), 100.0 * fill);
        if filter.is_closed {
            text += ", which remembers nothing more";
        }
        if filter.forgotten > 0 {
            text += &format!(", which forgot {} hashes", filter.forgotten);
        }
    }
    statistics.extend([
        ("text_bytes", Value::from(text_bytes)),
        ("seconds", seconds.into()),
        ("mb_per_second", (mb / seconds).into()),
    ]);
    text += &format!("; {mb:.0} MB of text, {seconds:.2} s, {:.0} MB/s", mb / seconds);
    Summary { text, statistics }
}
