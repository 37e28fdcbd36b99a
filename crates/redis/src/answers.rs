//! Answers that are computed as flags, passed on to any place for [`Answers`].

use lanebloom::Answers;
use lanebloom::internal::Place;

/// Calls `work` with a flag for each key, and passes the flags on.
pub(crate) fn flagged(keys: usize, out: impl Answers, work: impl FnOnce(&mut [bool])) {
    out.receive(keys, |place| match place {
        Place::Flags(flags) => work(flags),
        place => {
            let mut flags = vec![false; keys];
            work(&mut flags);
            write(&flags, place);
        }
    });
}

/// Passes these flags on, those of a batch that was awaited. (`receive` cannot wait.)
pub(crate) fn pass_on(flags: &[bool], out: impl Answers) {
    out.receive(flags.len(), |place| write(flags, place));
}

fn write(flags: &[bool], place: Place<'_>) {
    let word = |flags: &[bool]| flags.iter().rev().fold(0, |word, &flag| word << 1 | u64::from(flag));
    let words = flags.chunks(64).map(word);
    match place {
        Place::Flags(out) => out.copy_from_slice(flags),
        Place::Bitmap(out) => out.iter_mut().zip(words).for_each(|(out, word)| *out = word),
        Place::Absent(absent) => flags
            .iter()
            .enumerate()
            .filter(|(_, flag)| !**flag)
            .for_each(|(i, _)| absent(i)),
        Place::Nowhere => {}
    }
}
