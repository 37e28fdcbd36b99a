//! `lanebloom convert`: what can be made of a filter without its keys.

use super::merge::{plain, summary};
use crate::args::{Convert, Target};
use crate::bank;
use crate::filter_file::{Content, FilterFile};
use crate::resp::Dump;
use anyhow::{Context, Result, bail};
use lanebloom::AnyFilter;
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
        (Target::Lanebloom, Content::Filter(filter @ AnyFilter::Bloom(_))) => Content::Filter(filter),
        (Target::Lanebloom, Content::Filter(AnyFilter::Scalable(filter))) => match plain(filter) {
            AnyFilter::Scalable(filter) => bail!(
                "it has {} layers, and a ConcurrentBloom has one: run `build` on the keys, with their --expected number",
                filter.layers().len()
            ),
            plain => Content::Filter(plain),
        },
        (Target::Redisbloom, Content::Redis(Dump { filter, key })) => {
            let key = args.redis_key.clone().map(String::into_bytes).or(key);
            if key.is_none() {
                bail!("replies of BF.SCANDUMP name no key: give --redis-key");
            }
            Content::Redis(Dump { filter, key })
        }
        (_, Content::Unreadable(other)) => bail!("{}", other.reason),
        (_, Content::Bank(_)) => bail!(bank::INSTEAD),
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
