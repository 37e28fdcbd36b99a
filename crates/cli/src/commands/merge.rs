//! `lanebloom merge`: makes one filter file of several.

use crate::args::Merge;
use crate::bank;
use crate::filter_file::{Content, FilterFile};
use crate::table;
use anyhow::{Context, Result, anyhow, bail};
use indicatif::HumanBytes;
use lanebloom::codec::Kind;
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, ScalableBloom};
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
    if let Content::Bank(_) = &merged.content {
        bail!("{}: {}", merged.name, bank::INSTEAD);
    }
    for path in files {
        let file = FilterFile::open(path)?;
        let (into, from) = (&merged.name, file.name);
        let united = united(merged.content, file.content);
        merged.content = united.with_context(|| format!("cannot merge {from} with {into}"))?;
    }
    output.write(|writer| merged.content.write_to(writer))?;
    if let Some(journal) = journal {
        journal.write_beside(output.path())?;
    }
    let mut summary = summary(&merged.content);
    summary.text.insert_str(0, &format!("{} files", args.files.len()));
    summary.statistics.insert(0, ("files", args.files.len().into()));
    summary.print(&args.summary, quiet);
    Ok(())
}

/// The union of two filters.
fn united(into: Content, from: Content) -> Result<Content> {
    use AnyFilter::{Bloom, Scalable};
    Ok(match (into, from) {
        (_, Content::Unreadable(other)) => bail!("{}", other.reason),
        (_, Content::Bank(_)) => bail!(bank::INSTEAD),
        (Content::Filter(into @ (Bloom(_) | Scalable(_))), Content::Filter(from @ (Bloom(_) | Scalable(_)))) => {
            Content::Filter(united_layers(into, from)?)
        }
        (Content::Filter(into), Content::Filter(from)) => {
            into.union_from(&from).map_err(|error| match into.kind() {
                Kind::Cuckoo | Kind::DLeft | Kind::Static if from.kind() == into.kind() => {
                    anyhow!("{error}: run `build` on all keys")
                }
                _ => error.into(),
            })?;
            Content::Filter(into)
        }
        (Content::Bitmap(into), Content::Bitmap(from)) => {
            into.union_from(&from)?;
            Content::Bitmap(into)
        }
        (Content::Guava(into), Content::Guava(from)) => {
            into.union_from(&from)?;
            Content::Guava(into)
        }
        (Content::Redis(_), Content::Redis(_)) => {
            bail!("a RedisBloom counts its keys, which a union cannot do: run `build` on all keys")
        }
        (into, from) => bail!("the kind differs: a {} there, a {} here", from.kind(), into.kind()),
    })
}

/// The union of two filters, each of which is a `ConcurrentBloom` or a `ScalableBloom`. Two
/// `ConcurrentBloom`s stay one if one layer takes all keys. Otherwise layers follow one another,
/// and their rates add up: two full filters for 1% each have 2%, and one layer with all their keys
/// would have 10%.
fn united_layers(into: AnyFilter, from: AnyFilter) -> Result<AnyFilter> {
    let [ours, theirs] = [&into, &from].map(|filter| *filter.hasher());
    if ours != theirs {
        let is_keyed = ours.to_string() == theirs.to_string();
        let keys = if is_keyed { " with other keys" } else { "" };
        bail!("the hasher differs: {theirs} there, {ours} here{keys}");
    }
    let is_plain = matches!(into, AnyFilter::Bloom(_));
    let rate = (rate_of(&into) + rate_of(&from)).min(0.5);
    let into = growing(into, rate)?;
    into.union_from(&growing(from, rate)?)?;
    Ok(if is_plain {
        plain(into)
    } else {
        AnyFilter::Scalable(into)
    })
}

/// The rate that a filter is for.
fn rate_of(filter: &AnyFilter) -> f64 {
    match filter {
        AnyFilter::Bloom(filter) => filter.false_positive_rate(),
        AnyFilter::Scalable(filter) => filter.max_false_positive_rate(),
        _ => unreachable!("its kind was compared"),
    }
}

/// A filter that takes layers, for this rate unless it has one of its own.
fn growing(filter: AnyFilter, rate: f64) -> Result<ScalableBloom<AnyHasher>> {
    match filter {
        AnyFilter::Bloom(filter) => {
            let builder = ScalableBloom::builder().false_positive_rate(rate);
            Ok(builder.hasher(*filter.hasher()).build_from([filter])?)
        }
        AnyFilter::Scalable(filter) => Ok(filter),
        _ => unreachable!("its kind was compared"),
    }
}

/// A filter of one layer as a `ConcurrentBloom`, which more programs read, and any other one as it
/// is. Its hint is about the input that filled it, and stays out.
pub(crate) fn plain(filter: ScalableBloom<AnyHasher>) -> AnyFilter {
    if filter.layers().len() > 1 {
        filter.set_hint(0);
        return AnyFilter::Scalable(filter);
    }
    let layer = filter.into_layers().pop();
    AnyFilter::Bloom(layer.expect("there is a layer"))
}

/// The summary of a written file.
pub(crate) fn summary(content: &Content) -> Summary {
    let (filters, memory, now) = content.measured();
    let kind = content.kind();
    let parts = match filters {
        1 => String::new(),
        _ => format!(" of {}", count(filters, "filter")),
    };
    let mut text = format!(", one {kind}{parts}, {}", HumanBytes(memory as u64));
    let mut statistics = vec![
        ("kind", kind.into()),
        ("filters", filters.into()),
        ("memory_bytes", memory.into()),
    ];
    if let Content::Bitmap(_) = content {
        text += &format!(", {} numbers", now.len);
        statistics.push(("numbers", now.len.into()));
    } else {
        // Several filters may have the same key.
        let about = if filters == 1 { "about" } else { "at most about" };
        let rate = table::rate(now.false_positive_rate);
        text += &format!(", {about} {} keys, rate {rate}", now.len);
        statistics.push(("keys_estimated", now.len.into()));
        statistics.push(("rate", now.false_positive_rate.into()));
    }
    Summary { text, statistics }
}
