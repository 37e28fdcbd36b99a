#!/usr/bin/env bash
# bloom-filters for JavaScript: a HyperLogLog counts half of the values until there are some per
# register, and the rate() of a Bloom filter is a sixth of the rate.
#
# Package: bloom-filters 3.0.4 (npm; needs node).
#
# accuracy() of 4,096 registers is 0.016. One expects an error of about 2%, and less for few values,
# whose number is that of registers that are no longer empty. count() is half of the number up to
# 7,000 values, a third too high at 8,000, and right from 20,000 on. With 16,384 registers, for a
# better count, it is half of the number up to 20,000 values. (Half of all values leave their
# register at 0, and it is counted as empty.)
#
# rate() is to be "the current false positive rate" of a BloomFilter. Of a filter for 0.01 that is
# full it says 0.0017. (Its formula wants the number of keys times hash functions, and gets the
# number of bits that are set.)
#
# Output seen, for 4096 registers and for 16384:
#   of 1000: 499, 507; of 5000: 2405, 2480; of 10000: 11928, 4942; of 20000: 20058, 9835
#   a filter for 5000 keys at 0.01: rate() 0.0017, found 0.0098 of the absent keys
#   a filter for the 2405 keys that were counted: rate() 0.0137, found 0.1785
#
# A user of membership filters meets it who counts a stream to size the filter for it. The filter is
# made for half of its keys, lets 18 times as many needless reads pass, and rate() is near 0.01.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-audit --no-fund bloom-filters@3.0.4
cat >check.js <<'JS'
const assert = require("assert");
const { BloomFilter, HyperLogLog } = require("bloom-filters");

const keys = (number) => Array.from({ length: number }, (_, i) => `user-${i}`);

function count(registers, number) {
    const counter = new HyperLogLog(registers);
    keys(number).forEach((key) => counter.update(key));
    assert(counter.accuracy() < 0.017);
    return Math.round(counter.count());
}

const lines = [1000, 5000, 10000, 20000].map((number) => {
    const [small, large] = [count(4096, number), count(16384, number)];
    assert(large < 0.52 * number);
    assert(number > 5000 || small < 0.52 * number);
    return `of ${number}: ${small}, ${large}`;
});
console.log(lines.join("; "));
assert(count(4096, 10000) > 11500 && Math.abs(count(4096, 20000) - 20000) < 700);

function fill(planned) {
    const filter = BloomFilter.create(planned, 0.01);
    keys(5000).forEach((key) => filter.add(key));
    let found = 0;
    for (let i = 0; i < 50000; i++) found += filter.has(`other-${i}`);
    return [filter.rate(), found / 50000];
}

const counted = count(4096, 5000);
for (const [name, planned, least, most] of [
    ["5000 keys at 0.01", 5000, 0.008, 0.012],
    [`the ${counted} keys that were counted`, counted, 0.15, 0.25],
]) {
    const [rate, found] = fill(planned);
    console.log(`a filter for ${name}: rate() ${rate.toFixed(4)}, found ${found.toFixed(4)}`);
    assert(found > least && found < most && rate < found / 4);
}
JS
node check.js
