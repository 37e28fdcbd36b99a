// The caches of npm in the table of crates/guard/README.md: see rust.rs. Run in a folder where they
// are installed.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import assert from "node:assert";

const require = createRequire(process.cwd() + "/package.json");
const module = async (name) => import(pathToFileURL(require.resolve(name)));
const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`)).version;

const { LRUCache } = await module("lru-cache");
const { Cacheable } = await module("cacheable");
const { createCache } = await module("cache-manager");

const KEY = "1";
const CAPACITY = 100;
// Lets all other work go on.
const settle = () => new Promise((done) => setTimeout(done, 20));

class Store {
    rows = new Map();
    loads = 0;
    fails = false;
    #waiting = [];
    #isGo = false;

    async load(key) {
        this.loads += 1;
        const [row, fails] = [this.rows.get(key) ?? null, this.fails];
        if (!this.#isGo) await new Promise((go) => this.#waiting.push(go));
        if (fails) throw new Error("the store is down");
        return row;
    }

    letGo() {
        this.#isGo = true;
        this.#waiting.forEach((go) => go());
    }
}

// A cache is made by a store. Its gets take a signal if they can be cancelled, and it has `held` if
// its values have weights.
const caches = {
    [`lru-cache ${version("lru-cache")}, \`fetch\``]: (store) => {
        const fetchMethod = (key) => store.load(key);
        // A null has no number of its own.
        const sizeCalculation = (value) => value ?? 1;
        const cache = new LRUCache({ maxSize: CAPACITY, sizeCalculation, fetchMethod });
        return {
            get: (key, signal) => cache.fetch(key, { signal }),
            set: (key, row) => cache.set(key, row),
            invalidate: (key) => cache.delete(key),
            cancels: true,
            held: (key) => cache.get(key),
        };
    },
    [`cacheable ${version("cacheable")}, \`getOrSet\``]: (store) => {
        const cache = new Cacheable();
        return {
            get: (key) => cache.getOrSet(key, () => store.load(key)),
            set: (key, row) => cache.set(key, row),
            invalidate: (key) => cache.delete(key),
        };
    },
    [`cache-manager ${version("cache-manager")}, \`wrap\``]: (store) => {
        const cache = createCache();
        return {
            get: (key) => cache.wrap(key, () => store.load(key)),
            set: (key, row) => cache.set(key, row),
            invalidate: (key) => cache.del(key),
        };
    },
};

const caught = (get) => get.then((row) => ({ row }), (error) => ({ error }));

async function changed(make, before, isSet) {
    const store = new Store();
    const cache = make(store);
    if (before !== null) store.rows.set(KEY, before);
    const first = caught(cache.get(KEY));
    await settle();
    assert.equal(store.loads, 1);
    store.rows.set(KEY, 2);
    await (isSet ? cache.set(KEY, 2) : cache.invalidate(KEY));
    const second = caught(cache.get(KEY));
    await settle();
    store.letGo();
    const { error } = await first;
    assert("row" in (await second));
    await settle();
    const last = await cache.get(KEY);
    assert([before, 2].includes(last), String(last));
    return (last === before ? "old" : "new") + (error ? ", the first get fails" : "");
}

async function five(make, fails) {
    const store = new Store();
    const cache = make(store);
    if (!fails && !cache.cancels) return "-";
    store.rows.set(KEY, 1);
    store.fails = fails;
    const abort = new AbortController();
    const gets = [];
    for (let i = 0; i < 5; i += 1) {
        gets.push(caught(cache.get(KEY, i === 0 ? abort.signal : undefined)));
        await settle();
    }
    if (!fails) {
        abort.abort();
        await settle();
    }
    store.letGo();
    let results = await Promise.all(gets);
    if (!fails) {
        const first = results.shift();
        assert(first.error, "the first get is cancelled");
    }
    const texts = new Set(results.map(({ row, error }) => (error ? "an error" : String(row))));
    assert.equal(texts.size, 1, [...texts].join());
    const [text] = texts;
    const who = fails ? "all" : "the others";
    const what = { 1: "the row", "an error": fails ? "the error" : "an error" }[text] ?? `\`${text}\``;
    const loads = store.loads;
    store.fails = false;
    assert.equal(await cache.get(KEY), 1, "an error is not cached");
    return `${loads} load${loads === 1 ? "" : "s"}, ${who} get ${what}`;
}

function heavy(make) {
    const cache = make(new Store());
    if (!cache.held) return "-";
    const others = [2, 3, 4, 5].map(String);
    for (const key of [KEY, ...others]) {
        cache.set(key, 10);
        assert.equal(cache.held(key), 10);
    }
    cache.set(KEY, 2 * CAPACITY);
    const held = { undefined: "not held", 10: "the old value is held" }[cache.held(KEY)] ?? "held";
    const left = others.filter((key) => cache.held(key)).length;
    return left === 4 ? held : `${held}, and ${left || "no"} other value${left ? "s" : ""}`;
}

for (const [name, make] of Object.entries(caches)) {
    const cells = [
        name,
        await changed(make, null, true),
        await changed(make, 1, true),
        await changed(make, 1, false),
        await five(make, true),
        await five(make, false),
        heavy(make),
    ];
    console.log(`| ${cells.join(" | ")} |`);
}
process.exit();
