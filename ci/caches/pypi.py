"""The caches of PyPI in the table of crates/guard/README.md: see rust.rs."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import cachetools
from async_lru import alru_cache
from dogpile.cache import make_region

KEY = 1
CAPACITY = 100


class Store:
    def __init__(self):
        self.rows, self.loads, self.fails, self.lock = {}, 0, False, threading.Lock()

    def read(self, key):
        with self.lock:
            self.loads += 1
            return self.rows.get(key), self.fails


def returned(row, fails):
    if fails:
        raise OSError("the store is down")
    return row


class ThreadedStore(Store):
    """Its loads and gets block threads."""

    def __init__(self):
        super().__init__()
        self.go, self.pool = threading.Event(), ThreadPoolExecutor(5)

    def load(self, key):
        read = self.read(key)
        assert self.go.wait(60)
        return returned(*read)

    async def start(self, get):
        return asyncio.wrap_future(self.pool.submit(get, KEY))


class AwaitedStore(Store):
    def __init__(self):
        super().__init__()
        self.go = asyncio.Event()

    async def load(self, key):
        read = self.read(key)
        await self.go.wait()
        return returned(*read)

    async def start(self, get):
        return asyncio.ensure_future(get(KEY))


class Cachetools:
    name = f"cachetools {version('cachetools')}, `cached(condition=)`"
    store, sets, cancels = ThreadedStore, True, False

    def __init__(self, store):
        self.lock = threading.Condition()
        # None has no number of its own.
        self.cache = cachetools.LRUCache(CAPACITY, getsizeof=lambda row: row or 1)
        self.get = cachetools.cached(self.cache, condition=self.lock)(store.load)

    def set(self, key, row):
        with self.lock:
            self.cache[cachetools.keys.hashkey(key)] = row

    def invalidate(self, key):
        with self.lock:
            self.cache.pop(cachetools.keys.hashkey(key), None)

    def held(self, key):
        return self.cache.get(cachetools.keys.hashkey(key))


class Dogpile:
    name = f"dogpile.cache {version('dogpile.cache')}, `get_or_create`"
    store, sets, cancels, held = ThreadedStore, True, False, None

    def __init__(self, store):
        self.region = make_region(key_mangler=str).configure("dogpile.cache.memory")
        self.get = lambda key: self.region.get_or_create(key, store.load, creator_args=((key,), {}))
        self.set, self.invalidate = self.region.set, self.region.delete


class AsyncLru:
    name = f"async-lru {version('async-lru')}, `alru_cache`"
    store, sets, cancels, held = AwaitedStore, False, True, None

    def __init__(self, store):
        self.get = alru_cache(store.load)
        self.invalidate = self.get.cache_invalidate


async def settle():
    await asyncio.sleep(0.1)


async def changed(kind, before, is_set):
    if is_set and not kind.sets:
        return "-"
    store = kind.store()
    cache = kind(store)
    if before is not None:
        store.rows[KEY] = before
    first = await store.start(cache.get)
    while store.loads == 0:
        await settle()
    store.rows[KEY] = 2
    cache.set(KEY, 2) if is_set else cache.invalidate(KEY)
    second = await store.start(cache.get)
    await settle()
    store.go.set()
    (error,) = await asyncio.gather(first, return_exceptions=True)
    await second
    last = await (await store.start(cache.get))
    assert last in (before, 2)
    return ("old" if last == before else "new") + (", the first get fails" if isinstance(error, Exception) else "")


async def five(kind, fails):
    if not (fails or kind.cancels):
        return "-"
    store = kind.store()
    cache = kind(store)
    store.rows[KEY], store.fails = 1, fails
    gets = []
    for _ in range(5):
        gets.append(await store.start(cache.get))
        await settle()
    if not fails:
        first = gets.pop(0)
        first.cancel()
        await settle()
        assert first.cancelled()
    store.go.set()
    results = await asyncio.gather(*gets, return_exceptions=True)
    texts = {"an error" if isinstance(result, BaseException) else str(result) for result in results}
    (text,) = texts
    what = {"1": "the row", "an error": "the error" if fails else "an error"}[text]
    loads, store.fails = store.loads, False
    assert await (await store.start(cache.get)) == 1, "an error is not cached"
    return f"{loads} load{'s' * (loads > 1)}, {'all' if fails else 'the others'} get {what}"


def heavy(kind):
    if kind.held is None:
        return "-"
    cache = kind(kind.store())
    others = range(KEY + 1, KEY + 5)
    for key in [KEY, *others]:
        cache.set(key, 10)
        assert cache.held(key) == 10
    error = ""
    try:
        cache.set(KEY, 2 * CAPACITY)
    except ValueError:
        error = "an error, "
    held = {None: "not held", 10: "the old value is held"}.get(cache.held(KEY), "held")
    left = sum(cache.held(key) is not None for key in others)
    return error + held + ("" if left == 4 else f", and {left or 'no'} other value{'s' * (left > 0)}")


async def row(kind):
    cells = [
        kind.name,
        await changed(kind, None, True),
        await changed(kind, 1, True),
        await changed(kind, 1, False),
        await five(kind, True),
        await five(kind, False),
        heavy(kind),
    ]
    print(f"| {' | '.join(cells)} |")


async def main():
    for kind in [Cachetools, Dogpile, AsyncLru]:
        await row(kind)


asyncio.run(main())
