//! The errors of the crate in a function that returns `anyhow::Result`: `?` takes each as it is.

use crate::gets::builder;
use lanebloom_guard::{CacheBuildError, LoadError, RebuildError};

fn read(id: u64) -> anyhow::Result<Option<u64>> {
    match id {
        13 => anyhow::bail!("row 13 is damaged"),
        id => Ok((id < 100).then_some(id)),
    }
}

fn serve(rate: f64, id: u64) -> anyhow::Result<Option<u64>> {
    let cache = builder().false_positive_rate(rate).build_blocking(read)?;
    cache.rebuild_now(|keys| match id {
        7 => Err(anyhow::anyhow!("the store is down"))?,
        _ => Ok(keys.insert_all(0..100)?),
    })?;
    Ok(cache.get(&id)?)
}

#[test]
fn a_question_mark_passes_every_error_on() -> anyhow::Result<()> {
    assert_eq!((serve(0.01, 17)?, serve(0.01, 1_000_017)?), (Some(17), None));
    let error = serve(2.0, 17).unwrap_err();
    assert!(error.is::<CacheBuildError>(), "{error:?}");
    let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert!(causes[1].starts_with("false-positive rate 2 is not"), "{causes:?}");
    let error = serve(0.01, 7).unwrap_err();
    assert!(error.is::<RebuildError>() && format!("{error:#}") == "reading the keys failed: the store is down");
    let error = serve(0.01, 13).unwrap_err();
    assert!(error.is::<LoadError>() && format!("{error:#}") == "the load failed: row 13 is damaged");
    Ok(())
}
