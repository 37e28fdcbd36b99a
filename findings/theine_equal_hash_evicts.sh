#!/usr/bin/env bash
# theine: two keys with the same hash() are never in the cache together, however empty it is.
#
# Package: theine 2.0.0 with theine-core 2.1.0 (PyPI), a cache with a W-TinyLFU admission filter.
#
# A key is "a Hashable object", so one expects the rule of dict and lru_cache: keys with one hash
# are told apart by ==, and all stay. theine tells them apart too, and never returns a wrong value.
# But its policy knows a key by the hash alone: set of the second one removes the first. In Python,
# hash(-1) is hash(-2), so (x, -1) and (x, -2) are such a pair, and a class may hash one of its
# fields only. Two calls in turn of a memoized function are loaded each time.
#
# Output seen (room for 1,000 keys):
#   f(3, -1) and f(3, -2), 100 times in turn: theine 200 loads, lru_cache 2
#   f(3, -3) and f(3, -4), 100 times in turn: theine 2 loads, lru_cache 2
#   a grid of 10 by 10 from -5 to 4, again: theine 36 loads, lru_cache 0
#   5 users of one tenant, hashed by the tenant: theine holds 1
#
# A user of membership filters meets it with such a cache between a filter and a store: tiles or
# shifts around zero, or the rows of one tenant, push each other out and are read from the store
# again. The cache is far from full, so a larger one does not help. Texts as keys avoid it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check theine==2.0.0 theine-core==2.1.0
"$work/venv/bin/python" - <<'PYTHON'
from dataclasses import dataclass, field
from functools import lru_cache

from theine import Cache, Memoize

loads = 0


def load(x, y):
    global loads
    loads += 1
    return x, y


def loads_of(function, calls):
    global loads
    loads = 0
    for call in calls:
        assert function(*call) == call
    return loads


memoized = {"theine": Memoize(1000, None)(load), "lru_cache": lru_cache(1000)(load)}


def seen(name, calls):
    counts = {cache: loads_of(function, calls) for cache, function in memoized.items()}
    print(f"{name}: theine {counts['theine']} loads, lru_cache {counts['lru_cache']}")
    return counts


for first, second, expected in (-1, -2, 200), (-3, -4, 2):
    calls = [(3, first), (3, second)] * 100
    counts = seen(f"f(3, {first}) and f(3, {second}), 100 times in turn", calls)
    assert counts == {"theine": expected, "lru_cache": 2}
grid = [(x, y) for x in range(-5, 5) for y in range(-5, 5)]
for function in memoized.values():
    loads_of(function, grid)
assert seen("a grid of 10 by 10 from -5 to 4, again", grid) == {"theine": 36, "lru_cache": 0}


@dataclass(frozen=True)
class User:
    tenant: int
    number: int = field(hash=False)


cache = Cache(1000)
users = [User(7, number) for number in range(5)]
for user in users:
    cache.set(user, user.number)
held = [cache.get(user) for user in users]
print(f"5 users of one tenant, hashed by the tenant: theine holds {len(cache)}")
assert held == [(None, False)] * 4 + [(4, True)] and len(cache) == 1
cache.close()
PYTHON
