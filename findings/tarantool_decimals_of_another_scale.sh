#!/usr/bin/env bash
# Tarantool 2.6.0: once a snapshot is written, the row 7.50 is not found by the key 7.5, and 7.5 is
# taken as a second row of the primary key.
#
# Package: tarantool 2.6.0-1.2+b1, that of Debian 12 (newer ones were not tried). Needs Debian 12 on
# x86-64 with a list of packages (apt-get update). Nothing is installed outside the folder.
#
# 7.5 == 7.50 is true for Tarantool's decimals, and a tree finds each by the other. One expects the
# same of all indexes. The engine vinyl writes a Bloom filter with each run of rows by default
# (bloom_fpr, 0.05). A decimal keeps the zeros at its end, and the filter gets its bytes: for 7.5 it
# says that no row has the key. In memory all is found, so the rows are lost by the snapshot. With
# bloom_fpr = 1, without filters, they are not. A hash index of the engine memtx loses them at once.
#
# Output seen, for 200 rows 1.50 to 200.50 (found by 1.50 and so on, by 1.5 and so on; a row 7.5):
#   vinyl, no filter         200, 200, refused
#   vinyl, before snapshot   200, 200, refused
#   vinyl, after snapshot    200, 5, taken as a second row
#   memtx, tree              200, 200, refused
#   memtx, hash              200, 1, taken as a second row
#
# A user of membership filters meets it whose keys are prices or amounts: clients send 7.5 or 7.50,
# tests in memory pass, and a unique key has two rows later. Keys that are equal must be hashed in
# one form.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p debs/partial root
apt-get install -qq --reinstall --download-only -o Dir::Cache::archives="$work/debs" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User=root --no-install-recommends tarantool=2.6.0-1.2+b1 >/dev/null
for package in debs/*.deb; do
    dpkg --extract "$package" root
done
cat >check.lua <<'LUA'
box.cfg{log = 'log'}
local decimal = require('decimal').new
assert(decimal('7.5') == decimal('7.50'))

-- The rows that are found by a key of the same value, whose text is written by `form`.
local function found(space, form)
    local count = 0
    for i = 1, 200 do
        if space:get{decimal(form:format(i))} ~= nil then count = count + 1 end
    end
    return count
end

local function check(name, engine, options, snapshot, expected)
    local space = box.schema.space.create(name, {engine = engine})
    options.parts = {{1, 'decimal'}}
    space:create_index('primary', options)
    for i = 1, 200 do space:insert{decimal(('%d.50'):format(i))} end
    if snapshot then box.snapshot() end
    -- A row that was read is in vinyl's cache, and any form finds it: the other form comes first.
    local inserted = pcall(space.insert, space, {decimal('7.5')})
    local as_other, as_written = found(space, '%d.5'), found(space, '%d.50')
    local verdict = inserted and 'taken as a second row' or 'refused'
    print(('%-24s %d, %d, %s'):format(name, as_written, as_other, verdict))
    expected(as_written, as_other, inserted)
end

local function right(as_written, as_other, inserted)
    assert(as_written == 200 and as_other == 200 and not inserted)
end
local function wrong(as_written, as_other, inserted)
    assert(as_written == 200 and as_other < 40 and inserted)
end

check('vinyl, no filter', 'vinyl', {bloom_fpr = 1}, true, right)
check('vinyl, before snapshot', 'vinyl', {}, false, right)
check('vinyl, after snapshot', 'vinyl', {}, true, wrong)
check('memtx, tree', 'memtx', {type = 'tree'}, false, right)
check('memtx, hash', 'memtx', {type = 'hash'}, false, wrong)
os.exit(0)
LUA
LD_LIBRARY_PATH=root/usr/lib/x86_64-linux-gnu root/usr/bin/tarantool check.lua
