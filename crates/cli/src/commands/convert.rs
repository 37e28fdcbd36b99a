//! `lanebloom convert`: what can be made of a filter without its keys.

use super::merge::{add_layer, summary};
use crate::args::{Convert, Target};
use crate::filter_file::{Content, FilterFile};
use crate::resp::Dump;
use anyhow::{Context, Result, bail};
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, ConcurrentBloom, ScalableBloom, codec};
use lanebloom_files::output::Output;

pub(crate) fn run(args: &Convert, quiet: bool) -> Result<()> {
    if args.redis_key.is_some() && args.to != Target::Redisbloom {
        bail!("--redis-key is for --to redisbloom");
    }
    let output = Output::new(&args.output)?;
    let FilterFile { name, content, .. } = FilterFile::open(&args.input)?;
    let converted = convert(args, content).with_context(|| format!("cannot convert {name}"))?;
    output.write(|writer| converted.write_to(writer))?;
    let mut summary = summary(&converted);
    summary.text.insert_str(0, &args.output.display().to_string());
    summary.print(&args.summary, quiet);
    Ok(())
}

fn convert(args: &Convert, content: Content) -> Result<Content> {
    Ok(match (args.to, content) {
        (Target::Lanebloom, Content::Row(layers)) => Content::Row(united(layers)?),
        (Target::Lanebloom, Content::Filter(AnyFilter::Scalable(filter))) => Content::Row(united(layers(&filter)?)?),
        (Target::Redisbloom, Content::Redis(Dump { filter, key })) => {
            let key = args.redis_key.clone().map(String::into_bytes).or(key);
            if key.is_none() {
                bail!("replies of BF.SCANDUMP name no key: give --redis-key");
            }
            Content::Redis(Dump { filter, key })
        }
        (_, Content::Unreadable(other)) => bail!("{}", other.reason),
        (target, content) => {
            let wanted = match target {
                Target::Lanebloom => "a ConcurrentBloom",
                Target::Redisbloom => "a RedisBloom",
            };
            bail!(
                "a {} has other hashes or another layout than {wanted}, and it does not hold its keys: \
                 run `build` on the keys",
                content.kind()
            )
        }
    })
}

fn united(layers: Vec<ConcurrentBloom<AnyHasher>>) -> Result<Vec<ConcurrentBloom<AnyHasher>>> {
    let mut all = Vec::new();
    layers.into_iter().try_for_each(|layer| add_layer(&mut all, layer))?;
    Ok(all)
}

/// The layers with the filter's hasher, which only their snapshots have.
fn layers(filter: &ScalableBloom<AnyHasher>) -> Result<Vec<ConcurrentBloom<AnyHasher>>> {
    let bytes = filter.to_bytes();
    let (layers, _) = codec::verify(&bytes)?;
    let read = |bytes| Ok(ConcurrentBloom::from_bytes_with(bytes, *filter.hasher())?.0);
    layers.into_iter().map(read).collect()
}
