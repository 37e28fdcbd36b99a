#!/usr/bin/env bash
# lru-cache 11.5.3 (npm): `max` also limits how many keys can be loaded at once. `fetch` keeps its
# running loads as entries of the cache. One load more than `max` evicts the oldest one, and that
# `fetch` rejects with "evicted", although its `fetchMethod` resolves. One expects that a full cache
# returns the value and does not keep it.
#
# Seen: with max 2, of four keys that are fetched at once, "a" and "b" reject with "evicted", "c"
# and "d" resolve. All four loads resolved. One after another, all four keys resolve. With the
# option `ignoreFetchAbort`, all four resolve at once too.
#
# A user of membership filters meets it with a small cache behind a filter: a burst of new valid
# keys passes the filter, and some of these requests fail although the store has answered them.
#
# Needs node 20 or later with npm. Fails if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund lru-cache@11.5.3
cat >check.mjs <<'JS'
import assert from "node:assert";
import { setTimeout as sleep } from "node:timers/promises";
import { LRUCache } from "lru-cache";

async function fetchAll(options, isAtOnce) {
    let loaded = 0;
    const cache = new LRUCache({
        max: 2,
        ...options,
        async fetchMethod(key) {
            await sleep(20);
            loaded += 1;
            return key.toUpperCase();
        },
    });
    const gets = [];
    for (const key of ["a", "b", "c", "d"]) {
        gets.push(cache.fetch(key).catch((error) => error.message));
        if (!isAtOnce) await gets.at(-1);
    }
    const results = await Promise.all(gets);
    console.log(`${JSON.stringify(options)}, ${isAtOnce ? "at once" : "in turn"}: ${results.join(", ")}`);
    await sleep(50);
    assert.equal(loaded, 4, "every load resolves");
    return results;
}

assert.deepEqual(await fetchAll({}, true), ["evicted", "evicted", "C", "D"]);
assert.deepEqual(await fetchAll({}, false), ["A", "B", "C", "D"]);
assert.deepEqual(await fetchAll({ ignoreFetchAbort: true }, true), ["A", "B", "C", "D"]);
JS
node check.mjs
