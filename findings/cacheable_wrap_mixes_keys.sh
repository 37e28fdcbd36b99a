#!/usr/bin/env bash
# cacheable: a wrapped function returns the value of another argument, or of another function.
#
# Package: cacheable 2.5.0 (npm; needs node 20 or later).
#
# wrap(load) is a function that loads once for the same arguments. One expects the arguments, or a
# strong digest of them, as the key of the cache. The key is the function's name and a hash of the
# arguments of 32 bits, which is not even for short texts. An entry that is found is not compared
# with them. Short texts of digits, of hex, or of letters of one case never share a hash: a test
# with "user-1", "user-2" shows nothing. Codes of digits and letters do.
#
# Functions without a name are one function to it: arrow functions that are written into two calls
# of wrap share their values. The option `key`, with which the README sets "a custom key for the
# cache", is ignored. keyPrefix and createKey are not.
#
# Output seen:
#   all codes of two letters or digits: 3844 gets, 1779 loads, 2065 values of another code
#   20000 random codes of four: 20000 gets, 19839 loads, 161 values of another code
#   20000 texts user-0 ...: 20000 gets, 20000 loads, 0 values of another code
#   all codes of two, with createKey: 3844 gets, 3844 loads, 0 values of another code
#   user(1) and order(1): Ada and Ada; with key: Ada and Ada; with keyPrefix: Ada and a lamp
#
# A user of membership filters meets it with this cache between a filter and a store: the key of
# the request is in the filter, its row is in the store, and the row of another key is returned.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-audit --no-fund cacheable@2.5.0
cat >check.mjs <<'JS'
import assert from "node:assert";
import { Cacheable } from "cacheable";

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const pairs = [...letters].flatMap((a) => [...letters].map((b) => a + b));

// Distinct codes of four, by a generator of fixed numbers.
const fours = new Set();
for (let state = 1n; fours.size < 20000; ) {
    state = (state * 6364136223846793005n + 1442695040888963407n) % 2n ** 64n;
    const [i, j] = [Number(state >> 52n) % pairs.length, Number((state >> 40n) % 3844n)];
    fours.add(pairs[i] + pairs[j]);
}

async function check(name, codes, options = {}) {
    let [gets, loads, others] = [0, 0, 0];
    async function load(code) {
        loads += 1;
        return { code };
    }
    const get = new Cacheable().wrap(load, { ttl: "1h", ...options });
    for (const code of codes) {
        gets += 1;
        if ((await get(code)).code !== code) others += 1;
    }
    console.log(`${name}: ${gets} gets, ${loads} loads, ${others} values of another code`);
    assert.equal(loads + others, gets);
    return others;
}

assert((await check("all codes of two letters or digits", pairs)) === 2065);
assert((await check("20000 random codes of four", fours)) > 100);
const texts = [...Array(20000).keys()].map((i) => `user-${i}`);
assert((await check("20000 texts user-0 ...", texts)) === 0);
const createKey = (load, [code]) => `code:${code}`;
assert((await check("all codes of two, with createKey", pairs, { createKey })) === 0);

const users = new Map([[1, "Ada"]]);
const orders = new Map([[1, "a lamp"]]);
async function both(ofUsers, ofOrders) {
    const cache = new Cacheable();
    const user = cache.wrap(async (id) => users.get(id), { ttl: "1h", ...ofUsers });
    const order = cache.wrap(async (id) => orders.get(id), { ttl: "1h", ...ofOrders });
    return `${await user(1)} and ${await order(1)}`;
}
const plain = await both();
const withKey = await both({ key: "users" }, { key: "orders" });
const withPrefix = await both({ keyPrefix: "users" }, { keyPrefix: "orders" });
console.log(`user(1) and order(1): ${plain}; with key: ${withKey}; with keyPrefix: ${withPrefix}`);
assert.deepEqual([plain, withKey, withPrefix], ["Ada and Ada", "Ada and Ada", "Ada and a lamp"]);
JS
node check.mjs
