//! `lanebloom merge`: makes one filter file of several.

use super::info::any;
use crate::args::Merge;
use crate::filter_file::{Content, FilterFile, same_hasher};
use crate::table;
use anyhow::{Context, Result, anyhow, bail};
use indicatif::HumanBytes;
use lanebloom::ConcurrentBloom;
use lanebloom::codec::Kind;
use lanebloom::hash::AnyHasher;
use lanebloom_files::claims::{Claims, INPUT, OUTPUT};
use lanebloom_files::input::is_stdin;
use lanebloom_files::journal;
use lanebloom_files::output::Output;
use lanebloom_files::summary::{Summary, count};

pub(crate) fn run(args: &Merge, quiet: bool) -> Result<()> {
    let output = Output::new(&args.output)?;
    let mut claims = Claims::default();
    for path in args.files.iter().filter(|path| !is_stdin(path)) {
        claims.reads("the journal of an input", &journal::path_of(path));
    }
    output.claim(&mut claims, OUTPUT)?;
    // The output may be one of the filters, which are all read before it is written.
    let journal = journal::merged(&args.files)?.filter(|_| !is_stdin(output.path()));
    if journal.is_some() {
        let mut claims = Claims::default();
        args.files.iter().for_each(|path| claims.reads(INPUT, path));
        claims.writes_path("the journal of the output", &journal::path_of(output.path()))?;
        journal::refuse_to_replace(output.path())?;
    }
    let mut files = args.files.iter();
    let mut merged = FilterFile::open(files.next().context("there is no file")?)?;
    if let Content::Unreadable(other) = &merged.content {
        bail!("{}: {}", merged.name, other.reason);
    }
    for path in files {
        let file = FilterFile::open(path)?;
        let (into, from) = (merged.name.clone(), file.name.clone());
        unite(&mut merged.content, file.content).with_context(|| format!("cannot merge {from} with {into}"))?;
    }
    output.write(|writer| merged.content.write_to(writer))?;
    if let Some(journal) = journal {
        journal.write(output.path())?;
    }
    let mut summary = summary(&merged.content);
    summary.text.insert_str(0, &format!("{} files", args.files.len()));
    summary.statistics.insert(0, ("files", args.files.len().into()));
    summary.print(&args.summary, quiet);
    Ok(())
}

/// Adds the keys of `from`.
fn unite(into: &mut Content, from: Content) -> Result<()> {
    match (into, from) {
        (_, Content::Unreadable(other)) => bail!("{}", other.reason),
        (Content::Row(layers), Content::Row(more)) => {
            same_hasher(layers[0].hasher(), more[0].hasher())?;
            more.into_iter().try_for_each(|layer| add_layer(layers, layer))?;
        }
        (Content::Filter(into), Content::Filter(from)) if into.kind() == from.kind() => {
            into.union_from(&from).map_err(|error| match into.kind() {
                Kind::Cuckoo | Kind::DLeft => anyhow!("{error}: run `build` on all keys"),
                _ => error.into(),
            })?;
        }
        (Content::Guava(into), Content::Guava(from)) => drop(into.union_from(&from)?),
        (Content::Redis(_), Content::Redis(_)) => {
            bail!("a RedisBloom counts its keys, which a union cannot do: run `build` on all keys")
        }
        (into, from) => bail!("the kind differs: a {} there, a {} here", from.kind(), into.kind()),
    }
    Ok(())
}

/// Adds a filter to those that are searched one after another: by union with one of them, if all
/// keys fit into the number that this one is for, so that its rate holds.
///
/// Otherwise the filter follows the others. Their rates add up, and stay far below that of an
/// overfull union: two full filters for 1% each have 2%, and their union has 11%.
pub(crate) fn add_layer(layers: &mut Vec<ConcurrentBloom<AnyHasher>>, new: ConcurrentBloom<AnyHasher>) -> Result<()> {
    for layer in layers.iter_mut() {
        // The number of keys is an estimate; from a thousand keys on its error is below this.
        let most = layer.expected_keys() + layer.expected_keys() / 32;
        let larger = layer.estimated_len().max(new.estimated_len());
        if layer.is_compatible(&new) && larger <= most {
            let united = layer.try_clone()?;
            united.union_from(&new)?;
            if united.estimated_len() <= most {
                *layer = united;
                return Ok(());
            }
        }
    }
    layers.push(new);
    Ok(())
}

/// What a written file has.
pub(crate) fn summary(content: &Content) -> Summary {
    let (filters, memory, len, rate) = match content {
        Content::Row(layers) => {
            let statistics: Vec<_> = layers.iter().map(|layer| layer.statistics()).collect();
            (
                layers.len(),
                layers.iter().map(|layer| layer.memory_bytes()).sum(),
                statistics.iter().map(|now| now.len).sum(),
                any(statistics.iter().map(|now| now.false_positive_rate)),
            )
        }
        Content::Guava(filter) => {
            let now = filter.statistics();
            (1, filter.memory_bytes(), now.len, now.false_positive_rate)
        }
        _ => {
            return Summary {
                text: format!(", one {}", content.kind()),
                statistics: vec![("kind", content.kind().into())],
            };
        }
    };
    // Several filters may have the same key.
    let about = if filters == 1 { "about" } else { "at most about" };
    let text = format!(
        ", {} of {}, {about} {len} keys, rate {}",
        count(filters, "filter"),
        HumanBytes(memory as u64),
        table::rate(rate)
    );
    Summary {
        text,
        statistics: vec![
            ("kind", content.kind().into()),
            ("filters", filters.into()),
            ("memory_bytes", memory.into()),
            ("keys_estimated", len.into()),
            ("rate", rate.into()),
        ],
    }
}
