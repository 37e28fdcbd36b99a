//! Histories of the simulation that have a name, each a script of its steps. Its rules hold after
//! every step, and at the end, as they do in those that are drawn. Nodes and rows have numbers from
//! 0. A `$` stands for each of the variants.
//!
//! `LANEBLOOM_STORY` is a part of the names of the stories that are to be told alone.

use super::simulation::{Kind, World};

struct Story {
    name: &'static str,
    kind: Kind,
    keys: usize,
    variants: &'static [&'static str],
    script: &'static str,
}

const fn story(kind: Kind, name: &'static str, variants: &'static [&'static str], script: &'static str) -> Story {
    // A chunk in generations and windows, and 13 chunks in a set that is filled once.
    let keys = if matches!(kind, Kind::Bloom) { 18_000 } else { 200 };
    Story {
        name,
        kind,
        keys,
        variants,
        script,
    }
}

const ONCE: &[&str] = &[""];
/// Before which request of another pass: the exchange, the announcement, what is newest, and the
/// exchange of that.
const REQUESTS: &[&str] = &["1", "2", "3", "4", "5", "6"];
/// Chunks, or what a set cannot do without.
const LOSSES: &[&str] = &[
    ":5",
    ":0 :3 :12",
    ":versions",
    ":versions :4",
    ":log :5",
    ":log",
    ":5 :log :versions",
];

const STORIES: &[Story] = &[
    // A set that is filled once.
    story(Kind::Bloom, "what one pushes another pulls", ONCE, "
        0 passes; 1 passes; 0 writes 3; 1 lacks 0..3; 0 passes; 1 passes; 1 has 0..3;
        0 writes 500; 0 passes; 1 passes; 1 has 0..503; 1 writes 9; 1 passes; 0 passes; 0 has 0..512;
        0 compared 1; 1 compared 1; 0 failed 0; 1 failed 0"),
    story(Kind::Bloom, "a new node starts from the server's state, and pushes its own", ONCE, "
        0 writes 50; 0 passes; 1 writes; 1 passes; 1 has 0..50; 1 compared 1; 0 passes; 0 has 50..51;
        0 dies; 1 dies; 2 passes; 2 has 0..51"),
    story(Kind::Bloom, "requests are lost, late, doubled, or their replies are",
        &["lost 1", "lost 2", "lost 3", "unheard 1", "unheard 2", "unheard 3", "late 1", "late 2", "twice 1", "twice 2"], "
        0 passes; 1 passes; 1 writes 9; 1 passes; 0 writes 300; 0 passes $; 1 passes; late arrives; 0 passes;
        1 passes; 1 has 0..309; 0 has 0..309"),
    story(Kind::Bloom, "what the server lost is pushed again", &["0", "1", "5"], "
        0 writes 9; 0 passes; 1 passes; 2 passes; backup; 0 writes; 0 passes; 0 writes; 0 passes; 1 writes; 1 passes;
        lose 0; 2 writes $; 2 passes; 2 writes $; 2 passes; 0 passes; 1 passes; 2 passes; 0 passes; 1 passes;
        0 has 0..12; 1 has 0..12; 2 has 0..12"),
    story(Kind::Bloom, "a server that takes nothing still gives", &["full", "replica"], "
        0 writes 100; 0 passes; 1 passes; 0 writes 9; 0 passes; 1 writes 9; $: 1 passes; 1 is refused; 1 has 0..109; 0 lacks 109..118;
        1 passes; 0 passes; 0 has 0..118"),
    story(Kind::Bloom, "a push while chunks are fetched is known as what it is", &[
        "", "& 3 1 writes 9 & 3 1 passes", "& 3 1 writes 9 & 3 1 passes & 3 1 writes 9 & 3 1 passes & 3 1 writes 9 & 3 1 passes",
    ], "
        0 writes 50; 0 passes; backup; 2 passes before 2 0 writes 50 & 2 0 passes & 3 lose 0 $; 2 passes; 2 has 0..100; 0 dies; 1 dies;
        1 passes; 1 has 0..100"),
    story(Kind::Bloom, "a set without its meta begins anew", &[":meta", ":meta :0 :7", ":meta :log :0 :7", ":meta :versions"], "
        0 writes 300; 0 passes; 0 writes 9; 0 passes; delete $; 0 passes; 1 passes; 1 has 0..309; 0 writes; 0 passes;
        0 failed 0"),
    story(Kind::Bloom, "no old key comes back to a set that begins anew", &[":meta", ":meta :versions"], "
        0 writes 100; 0 passes; 0 dies; delete $; 1 writes 9; 1 passes; 2 passes; 2 has 100..109; 2 lacks 0..100"),
    story(Kind::Bloom, "a lost chunk is pushed again by a node that has it", LOSSES, "
        0 writes 900; 0 fills; 1 passes; 1 is closed; delete $; 0 passes; 1 passes; 0 passes; 1 passes; 2 passes; 2 has 0..900;
        0 failed 0; 1 failed 0; 2 dies; delete $; 0 writes; 0 passes; 1 passes; 0 passes; 1 passes; 0 passes; 2 passes;
        2 has 0..901"),
    story(Kind::Bloom, "a new node notices a lost chunk, and is open until it is there again", ONCE, "
        commit 900; 0 fills; 1 passes; 1 is closed; delete :5 :6; 2 passes; 2 is open; 2 writes 99; 2 passes; 2 is open;
        0 passes; 2 passes; 2 is closed; 2 has 0..999; 1 passes; 0 passes; 0 is closed; 1 has 0..999;
        0 dies; 1 dies; delete :5; 2 writes 99; 2 passes; 2 passes; 2 is closed"),
    story(Kind::Bloom, "a node that had a lost chunk, and not what was pushed there since, does not bring back the mark", ONCE, "
        commit 900; 0 fills; 1 passes; delete :5; 2 passes; full: 0 passes; 1 writes 99; 1 passes; 1 dies; delete :5 :log; 0 passes; 0 passes;
        0 passes; 0 is open; 0 fills; 0 is closed"),
    story(Kind::Bloom, "a chunk that is lost once more is not restored by the push of before", ONCE, "
        commit 900; 0 fills; 1 passes; delete :5; 2 passes; 0 passes before 2 2 writes & 2 2 passes; delete :5; 2 passes; 2 passes; 2 passes;
        2 passes; 2 dies; 0 passes before 2 2 passes; 2 is open"),
    story(Kind::Bloom, "a chunk that is pushed again does not make good another loss", ONCE, "
        commit 900; 0 fills; 1 passes; delete :5; 2 passes; 0 passes lost 2; backup; 2 writes; 2 passes; lose 0; 2 passes; 0 passes; 0 passes;
        0 is open"),
    story(Kind::Bloom, "a chunk that no node has is read from the store", ONCE, "
        commit 900; 0 fills; 0 dies; delete :5; 1 passes; 2 passes; 1 passes; 2 passes; 1 is open; 2 is open;
        1 fills; 2 passes; 1 is closed; 2 is closed"),
    story(Kind::Bloom, "a filler that dies is replaced when its lease has ended", ONCE, "
        commit 500; 0 wants; 0 passes; 0 reads; 0 reads; 0 passes; 0 dies; 1 fills; 1 cannot fill; 1 is open; leases end;
        1 fills; 1 is closed; 2 passes; 2 is closed; 2 cannot fill"),
    story(Kind::Bloom, "a filler that lost its lease goes on", ONCE, "
        commit 500; 0 wants; 0 passes; 0 reads; 0 reads; leases end; 1 wants; 1 passes; 1 reads; 2 passes; 2 is open;
        1 fills; 2 passes; 2 is closed; 0 fills; 0 is closed"),
    story(Kind::Bloom, "a source that fails leaves the set to another", ONCE, "
        commit 9; 0 wants; 0 passes; 1 wants; 1 passes; 1 cannot fill; 0 gives up; 0 passes; 1 fills; 1 is closed"),
    story(Kind::Bloom, "the exchange of the mark does not come to its end", &["lost", "unheard", "late", "twice"], "
        commit 500; 0 wants; 0 passes; 0 reads all; 0 passes $ 1 2; 1 passes; late arrives; 2 passes; 0 fills; 0 is closed; 2 passes; 2 is closed"),
    story(Kind::Bloom, "after a loss all are open until a source has read again", &["all", "0", "1"], "
        backup; commit 100; 0 fills; 1 passes; backup; 1 writes 9; 1 passes; lose $; 1 passes; 1 is open; 2 passes; 2 is open;
        0 passes; 0 is open; 2 passes; 2 has 100..109; 1 fills; 1 is closed; 2 passes; 2 is closed"),
    story(Kind::Bloom, "a node that hears of a loss after the next fill opens nobody",
        &["0", "all", "all; 0 fills; 1 passes; lose all; 0 fills; 1 passes; lose all"], "
        commit 100; 0 fills; 1 passes; backup; 0 writes; 0 passes; 1 passes; lose $; 0 passes; 0 is open; 0 fills; 0 is closed;
        1 passes; 1 is closed; 0 passes; 0 is closed; 2 passes; 2 is closed"),
    story(Kind::Bloom, "a row whose node dies with the server's data is read again", ONCE, "
        commit 100; 0 fills; 1 passes; 2 passes; 2 writes 9; 2 passes; 2 dies; lose all; 0 passes; 1 passes; 0 is open; 1 is open;
        1 fills; 0 passes; 0 is closed; 0 has 0..109"),
    story(Kind::Bloom, "a source that ran during a loss reads again", &["all", "0"], "
        commit 100; backup; 0 wants; 0 passes; 0 reads; 0 reads; 1 writes 9; 1 passes; 1 dies; lose $; 0 fills; 0 is open;
        0 fills; 0 is closed; 0 has 0..109"),
    story(Kind::Bloom, "a source that ran while a chunk was lost reads again", ONCE, "
        commit 100; 0 wants; 0 passes; 0 reads; 1 writes 900; 1 passes; 1 dies; delete :5 :log; 0 reads all; 0 passes; 0 passes; 0 is open;
        0 fills; 0 is closed; 0 has 0..1000"),
    story(Kind::Bloom, "an exchange that the server has lost opens all, though its bits are there again", ONCE, "
        commit 100; 0 fills; 1 passes; 2 passes; backup; 0 writes; 0 passes; 1 passes; 2 writes; 2 passes; 2 dies; lose 0; 0 dies;
        0 passes; 0 is closed; 0 writes again 100; 0 passes; 1 passes; 1 is open; 0 passes; 0 is open"),
    story(Kind::Bloom, "no mark is made in an era that a source has not read", ONCE, "
        commit 100; 0 passes; 1 passes; backup; 1 writes; 1 passes; 0 wants; 0 passes; 0 reads all; lose 0; 0 passes; 0 is open; 1 passes; 1 is open; 0 fills; 0 is closed"),
    story(Kind::Bloom, "a value that a shared filter cannot have is an error", &[
        "HSET {ids}:meta description words; 2 says {ids}:meta was not written by a shared filter: it describes no shared filter",
        "HSET {ids}:meta head x; 2 says {ids}:meta was not written by a shared filter: the head is not the id of a stream entry",
        "HSET {ids}:versions 99 1-1; 2 says {ids}:versions was not written by a shared filter: a chunk is none of the filter's",
        "HSET {ids}:versions 5 1; 2 says {ids}:versions was not written by a shared filter: a version is not the id of a stream entry",
        "SETRANGE {ids}:5 9000 x; 2 says {ids}:5 was not written by a shared filter: the chunk is longer than its part of the filter",
        "DEL {ids}:5; redis LPUSH {ids}:5 x; 2 says WRONGTYPE",
        "HSET {ids}:meta description 1_2_3; 0 says {ids}:meta was not written by a shared filter",
        "XADD {ids}:log 9-7 somebody junk; redis HSET {ids}:meta head 9-7; 1 says {ids}:log was not written by a shared filter: ; \
         1 passes; 1 compared 2",
    ], "
        0 writes 100; 0 passes; 1 passes; redis $; 1 has 0..100; lose all; 1 passes; 2 passes; 2 has 0..100"),
    // A set with generations.
    story(Kind::Set, "nodes rebuild at once, and one begins a generation", REQUESTS, "
        commit 9; 0 fills; 1 passes; 0 wants a rebuild; 0 passes before $ 1 rebuilds 300; 0 writes; 0 passes; 1 writes; 1 passes;
        0 passes; 0 is closed; 1 is closed; 0 has 9..11; 1 has 9..11; 0 is at 1; 1 is at 1"),
    story(Kind::Set, "a generation in between is not passed over", ONCE, "
        commit 9; 0 fills; 1 passes; 0 rebuilds 200; 0 writes; 0 passes; 0 rebuilds 200; 1 passes; 1 is open; 0 is closed"),
    story(Kind::Set, "a generation that is lost opens all", &["", "; 1 rebuilds 200"], "
        commit 9; 0 fills; 1 passes; backup; 0 rebuilds 200; 0 writes; 0 passes; lose 0 $; 0 passes; 1 passes;
        0 is open; 1 is open"),
    story(Kind::Set, "a loss that is made good opens nobody in the next rebuild", ONCE, "
        commit 9; 0 fills; 1 passes; backup; 0 writes; 0 passes; lose 0; 0 passes; 0 is open; 0 fills; 1 passes; 1 rebuilds 200; 0 passes;
        0 is closed; 0 is at 1"),
    story(Kind::Set, "a push that is lost before a rebuild opens all", ONCE, "
        commit 9; 0 fills; 1 passes; backup; 0 writes; 0 passes; lose 0; 1 rebuilds 200; 0 passes; 1 passes; 1 is open"),
    story(Kind::Set, "an insert while a node comes to the next generation comes along", &["1", "2", "3", "4", "5"], "
        commit 9; 0 fills; 1 passes; 1 rebuilds 200; 1 wants; 1 passes; 1 reads; 0 passes before $ 0 writes; 1 reads all; 1 passes;
        0 passes; 1 passes; 0 has 9..10; 1 has 9..10; 0 is closed; 1 is closed"),
    story(Kind::Set, "inserts that were pushed do not count as too many", ONCE, "
        commit 9; 0 fills; 1 passes; 0 inserts 600000 more; 0 passes; 0 inserts 600000 more; 1 rebuilds 200; 0 passes; 0 is closed; 0 is at 1"),
    story(Kind::Set, "too many inserts of a node that was away open all", ONCE, "
        commit 9; 0 fills; 1 passes; 1 rebuilds 200; 1 wants; 1 passes; 1 reads all; 0 writes; 0 inserts too much; 1 passes; 0 passes;
        0 is open; 1 passes; 1 is open"),
    story(Kind::Set, "too many inserts open all, though another generation came and was lost", ONCE, "
        commit 9; 0 fills; 1 passes; 2 passes; 1 rebuilds 200; backup; 0 writes; 0 inserts too much; 0 passes before 6 1 rebuilds 200 & 7 lose 0;
        1 dies; 2 passes; 2 is open"),
    story(Kind::Set, "a generation that was filled and is not covers no loss of the one before", ONCE, "
        commit 9; 0 fills; 1 passes; 2 passes; 2 writes; 2 passes; 2 rebuilds 200; 2 wants; 2 passes; 2 reads; 2 reads; 2 reads; 2 reads; 2 reads; 2 passes;
        backup; 2 reads; 2 passes; 1 passes before 2 lose 0 & 3 2 passes & 3 2 passes & 4 lose 0; 1 is open"),
    story(Kind::Set, "a lost chunk that all know of needs no other generation", ONCE, "
        commit 9; 0 fills; 1 passes; delete :0; 2 passes; 2 rebuilds 200; delete :log; 0 passes; 0 is at 1"),
    story(Kind::Set, "a generation that is lost while a node comes to it is none", ONCE, "
        commit 9; 0 fills; 1 passes; backup; 1 rebuilds 200; 0 passes before 2 lose 0; 0 compared 1; 0 is closed; 0 is at 0"),
    story(Kind::Set, "a generation that is announced twice is two", &["", "; 0 rebuilds 300"], "
        commit 9; 0 fills; 1 passes; 0 wants a rebuild; 0 passes lost 3; 1 passes; 1 writes; 1 passes; delete }:meta;
        0 rebuilds 9000 $; 0 passes; 1 passes; 0 passes"),
    story(Kind::Set, "a rebuild outlives the node that began it", REQUESTS, "
        commit 9; 0 fills; 1 passes; 2 passes; 0 wants a rebuild; 0 passes lost $; 0 dies; 1 fills; 2 passes; 1 is closed; 2 is closed"),
    story(Kind::Set, "a rebuild forgets what the store has removed, and not earlier", ONCE, "
        commit 99; 0 fills; 1 passes; remove 50..99; 0 rebuilds 200; 1 passes; 1 has 0..99; 1 is closed; 2 passes; 2 is open;
        1 fills; 0 passes; 0 has 0..50; 0 lacks 50..99; 2 passes; 2 is closed; 0 is closed"),
    story(Kind::Set, "inserts of a node that was away come to the newest generation", ONCE, "
        commit 9; 0 fills; 1 passes; 1 rebuilds 200; 1 wants; 1 passes; 1 reads; 0 writes 9; 0 passes lost 1; 1 reads all; 1 passes; 0 passes;
        1 passes; 1 has 9..18; 0 is closed; 1 is closed"),
    // A window.
    story(Kind::Window, "a key is seen for its window, and at most a generation longer", &["0", "1", "50", "99"], "
        after $; 0 passes; 1 passes; 0 writes 9; 0 passes; 1 lacks 0..9; 1 passes; 1 has 0..9; after 75; 1 writes; after 75; 1 passes;
        after 75; 1 writes; 1 has 0..9; after 74; 1 has 0..9; 2 passes; 2 has 0..9; after 101; 1 passes; 0 dies; 0 passes; 1 has 10..11;
        0 has 10..11; 1 lacks 0..9; 0 lacks 0..9; 2 lacks 0..9"),
    story(Kind::Window, "a new node starts from all generations that live", ONCE, "
        0 writes 9; 0 passes; after 100; 0 writes 9; 0 passes; after 100; 0 writes 9; 0 passes; after 100; 0 writes 9; 0 passes;
        after 100; 0 writes 9; 0 passes; 1 writes; 1 passes; 1 has 9..46; 1 lacks 0..9; 0 passes; 0 has 45..46; after 199; 1 has 27..46;
        after 1; 1 lacks 0..27; 1 has 27..46"),
    story(Kind::Window, "what is pushed late goes where it belongs", ONCE, "
        0 passes; 1 passes; 0 writes; 0 passes lost 1; after 100; 0 writes; after 100; 0 writes; 0 passes lost 1; after 100; 0 writes;
        after 100; 0 writes; 0 passes; 1 passes; 1 lacks 0..1; 1 has 1..5; after 100; 1 lacks 0..2; 1 has 2..5; after 100; 1 lacks 0..3;
        after 100; 1 lacks 0..4; after 99; 1 has 4..5; after 1; 1 lacks 4..5"),
    story(Kind::Window, "what the server lost is pushed again", &["", "; delete 0:meta 0:log 0:versions", "; delete 1:versions"], "
        0 writes 9; 0 passes; after 100; 0 writes 9; 0 passes; after 100; 0 writes 9; 0 passes; lose all; 0 passes; 1 passes; 1 has 0..27
        $; 0 passes; 2 passes; 0 passes; 2 passes; 2 has 0..27"),
    story(Kind::Window, "a full server still gives", &["full", "replica"], "
        0 passes; 1 passes; 0 writes 9; after 100; 0 writes 9; 0 passes; delete }:meta; 1 writes 9; $: 1 passes; 1 is refused; 1 has 0..18;
        0 lacks 18..27; 1 passes; 0 passes; 0 has 18..27"),
    story(Kind::Window, "a lost chunk of a generation is pushed again", &["2 passes; 0 passes", "0 writes; 0 passes; 0 passes; 2 passes"], "
        0 writes 20; 0 passes; 1 passes; delete 0:0; $; 1 passes; 2 passes; 2 has 0..20"),
    story(Kind::Window, "a value that a shared window cannot have is an error", &[
        "HSET {ids}:meta description words; 0 says {ids}:meta was not written by a shared filter: it describes no shared filter",
        "DEL {ids}:meta; redis LPUSH {ids}:meta x; 0 says WRONGTYPE",
        "HSET {ids}:1000000:meta head x; 0 says {ids}:1000000:meta was not written by a shared filter: the head is not the id of a stream entry",
    ], "
        0 writes 9; 0 passes; redis $; lose all; 0 passes; 1 passes; 1 has 0..9"),
    story(Kind::Window, "clocks that differ cost no more than the difference", &["1", "50", "99"], "
        skew $; 0 passes; 2 passes; 0 writes; 0 passes; 2 passes; 2 has 0..1; 2 writes; 2 passes; 0 passes; 0 has 0..2; after 99; 2 writes;
        2 passes; 0 passes; 0 has 0..3; after 50; 0 passes; 0 writes; 0 passes; 2 passes; 2 has 0..4; after 50; 2 passes; after 101; 2 passes;
        2 has 2..4; after 99; 0 passes; 2 passes; after 201; 2 lacks 0..2"),
    story(Kind::Window, "a wrong clock harms nobody else", ONCE, "
        0 writes 100; 0 passes; 2 is off by 1000; 2 writes 100; 2 passes; 1 passes; 1 has 0..100; 1 lacks 100..200; after 299; 1 passes;
        1 has 0..100; 2 is off by 100; 2 dies; 2 writes; 2 passes; 1 passes; 2 is off by 200; 2 dies; 2 writes; 2 passes; 1 passes; 2 is off by 300;
        2 dies; 2 writes; 2 passes; 1 passes; 1 passes; 1 has 200..201; 1 lacks 201..203; after 701; 1 passes; 1 has 100..200;
        2 is off by 0; 2 dies"),
    story(Kind::Window, "a window that is astray is an error until its generations have expired", ONCE, "
        after 500; 0 writes 100; 0 is off by -100; 0 passes; 0 is off by -101;
        0 says the window's generations differ from those of other nodes until they expire: its clock was set back;
        0 is off by 0; 0 passes; 1 passes; 1 has 0..100; 0 rotates; 0 writes 100; 0 says or `rotate` was called; 0 has 100..200; after 300;
        0 writes 100; after 100; 0 passes; 1 passes; 1 has 200..300; 0 is off by -100; 0 writes 100; 0 says its clock was set back;
        0 has 300..400; after 300; 0 writes 100; after 100; 0 passes; 1 passes; 1 has 400..500; 0 is off by 0"),
    Story { keys: 18_000, ..story(Kind::Window, "a later end is that of all chunks", ONCE, "
        skew 50; 0 writes 300; 0 passes; 2 writes; 2 passes; after 50; 0 writes; 0 passes; 2 writes; 2 passes") },
    story(Kind::Window, "a pass without news is one call, and looks at what has some", ONCE, "
        0 writes; 0 passes; 1 passes; 0 calls 1; 1 calls 1; 0 writes; 0 calls 2; 1 calls 2; 1 has 0..2"),
];

fn play(kind: Kind) {
    let redis = server!();
    let only = std::env::var("LANEBLOOM_STORY").unwrap_or_default();
    for story in STORIES
        .iter()
        .filter(|story| story.kind == kind && story.name.contains(&only))
    {
        for variant in story.variants {
            let world = World::new(&redis, &format!("{}, {variant}", story.name), kind, story.keys);
            world.play(&story.script.replace('$', variant));
            world.end();
        }
    }
}

#[test]
fn stories_of_a_set_that_is_filled_once() {
    play(Kind::Bloom);
}

#[test]
fn stories_of_a_set_with_generations() {
    play(Kind::Set);
}

#[test]
fn stories_of_a_window() {
    play(Kind::Window);
}
