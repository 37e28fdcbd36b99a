"""The argument hasher: the hashes of "fast", and keys that are hashes."""

import array
import pickle

import numpy as np
import pytest

from common import command, needs_command
from lanebloom import (
    Bitmap,
    BloomFilter,
    CuckooFilter,
    Filter,
    GuavaBloomFilter,
    ScalableBloomFilter,
    WindowedBloomFilter,
)

CLASSES = [BloomFilter, ScalableBloomFilter, WindowedBloomFilter, CuckooFilter]

# docs/HASHES.md, and XXH3 of a longer key.
FAST = {
    "": 0x9DB04C5566254743,
    "a": 0x03FB70D87C058EEB,
    17: 0xAF9EDB5C3B8A926B,
    "customer": 0x21A862A70352508C,
    "customer:0042": 0x156C9FC5773BEA97,
    "lanebloom hasher print": 0x6DB8209A89D82DB9,
}


def hashes(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def body(f):
    """The bytes without what names the hasher, and without the checksum."""
    return f.to_bytes()[128:-64]


def test_fast_hashes_are_those_of_the_specification():
    for key, hash in FAST.items():
        fast, given = BloomFilter(1000, hasher="fast"), BloomFilter(1000, hasher="prehashed")
        fast.add(key)
        given.add(hash)
        assert body(fast) == body(given), key
        many = BloomFilter(1000, hasher="fast")
        assert many.add_many([key] * 300) == 1 and many == fast


@pytest.mark.parametrize("cls", CLASSES)
def test_fast_filters_keep_their_keys_and_their_hasher(cls, tmp_path):
    f = cls(3000, 1e-4, hasher="fast")
    assert f.hasher == "fast" and ", fast" in repr(f) and f.secret is None
    words, texts = np.arange(1000), [f"key {i}" for i in range(1000)]
    assert f.add_many(words) > 990 and f.add_many(texts) > 990
    path = tmp_path / "filter"
    f.save(path)
    for g in f, f.copy(), Filter.from_bytes(f.to_bytes()), Filter.load(path), pickle.loads(pickle.dumps(f)):
        assert g.hasher == "fast" and g == f
        assert g.contains_many(words).all() and g.contains_many(texts).all()
        assert 999 in g and "key 999" in g and b"key 999" in g
        assert g.contains_many(np.arange(1000, 100_000)).sum() < 60
    assert cls(3000, 1e-4, hasher="fast", seed=7) != cls(3000, 1e-4, hasher="fast") or cls is not BloomFilter
    seeded = cls(3000, 1e-4, hasher="fast", seed=7)
    seeded.add("a")
    assert Filter.from_bytes(seeded.to_bytes()) == seeded and "a" in seeded


@pytest.mark.parametrize("cls", CLASSES)
def test_hashes_come_in_any_form(cls):
    values = hashes(2000)
    assert (values >= 2**63).sum() > 800
    forms = [
        values,
        values.astype(np.int64),
        values.tolist(),
        values.astype(np.int64).tolist(),
        array.array("Q", values.tolist()),
        iter(values.tolist()),
        values.astype(object),
    ]
    for form in forms:
        f = cls(2000, 1e-6, hasher="prehashed")
        assert f.hasher == "prehashed" and ", prehashed" in repr(f)
        assert f.add_many(form) > 1990
        for known in values, values.astype(np.int64), values.tolist():
            assert f.contains_many(known).all()
        assert int(values[5]) in f and values[5] in f and int(values[5].astype(np.int64)) in f
        assert f.contains_many(hashes(2000, 1)).sum() <= 2
    one = cls(2000, 1e-6, hasher="prehashed")
    assert sum(one.add(int(value)) for value in values) > 1990
    assert one.contains_many(values).all()
    fresh = cls(2000, 1e-6, hasher="prehashed")
    new = fresh.add_new(np.concatenate([values, values]))
    assert new[:2000].sum() > 1990 and (cls is CuckooFilter or new[2000:].sum() == 0)


def test_threads_add_and_find_hashes():
    values = hashes(1_000_000)
    for hasher in "prehashed", "fast":
        one, many = (BloomFilter(1_000_000, hasher=hasher) for _ in range(2))
        one.add_many(values)
        many.add_many(values, threads=4)
        assert one == many and many.contains_many(values, threads=4).all()


@pytest.mark.parametrize("cls", CLASSES)
def test_a_filter_of_hashes_takes_no_other_keys(cls):
    f = cls(100, hasher="prehashed")
    f.add(5 << 60)
    refused = [
        lambda: f.add("a"),
        lambda: "a" in f,
        lambda: f.add(b"12345678"),
        lambda: f.add(None),
        lambda: f.add((1, 2)),
        lambda: f.add(1.5),
        lambda: f.add(2**64),
        lambda: f.add(-(2**63) - 1),
        lambda: f.add_many(["a"]),
        lambda: f.add_many([1, "a"]),
        lambda: f.contains_many(["a"]),
        lambda: f.update(["a"]),
        lambda: f.add_many(np.array([1.5])),
        lambda: f.add_many(np.array(["a"])),
        lambda: f.contains_many(np.array([b"ab"])),
        lambda: f.add_new([None]),
        lambda: f.add_many(np.ma.array([1, 2], mask=[False, True])),
    ]
    for refuse in refused:
        with pytest.raises(TypeError, match='hasher="prehashed" takes hashes only: integers of 64 bits'):
            refuse()
    keyed = cls(100, hasher="prehashed", key=hash)
    keyed.add("a")
    assert "a" in keyed
    if cls is CuckooFilter:
        assert f.count(5 << 60) == 1
        f.remove(5 << 60)
        with pytest.raises(TypeError, match="hashes only"):
            f.discard("a")


def test_hashes_in_arrow():
    pa = pytest.importorskip("pyarrow")
    values = hashes(1000)
    f = BloomFilter(1000, 1e-6, hasher="prehashed")
    assert f.add_many(pa.chunked_array([values[:500], values[500:]])) > 990
    assert f.contains_many(pa.array(values)).all()
    assert f.contains_many(pa.array(values).dictionary_encode()).all()
    for wrong in pa.array(["a"]), pa.array([1, None]), pa.array([1.5]), pa.array([1, None]).dictionary_encode():
        with pytest.raises(TypeError, match="hashes only"):
            f.contains_many(wrong)


def test_mapped_files_have_their_hasher(tmp_path):
    for hasher, keys in ("fast", ["a", "b"]), ("prehashed", [1 << 60, 1 << 63]), ("murmur3", ["a", 7]):
        f = BloomFilter(100, hasher=hasher)
        f.update(keys)
        f.save(tmp_path / hasher)
        view = BloomFilter.mmap(tmp_path / hasher)
        assert view.hasher == hasher and view == f and view.copy() == f
        assert all(key in view for key in keys) and view.contains_many(keys).all()
        assert view.copy().add(3 << 40)
    with pytest.raises(TypeError, match="hashes only"):
        "a" in BloomFilter.mmap(tmp_path / "prehashed")
    secret = BloomFilter(100, secret=True)
    secret.save(tmp_path / "secret")
    with pytest.raises(ValueError, match="pass it as secret="):
        BloomFilter.mmap(tmp_path / "secret")
    assert BloomFilter.mmap(tmp_path / "secret", secret=secret.secret) == secret


def test_filters_of_two_hashers_do_not_go_together():
    filters = [BloomFilter(100, hasher=hasher) for hasher in ("murmur3", "fast", "prehashed")]
    filters.append(BloomFilter(100, secret=True))
    assert [f.hasher for f in filters] == ["murmur3", "fast", "prehashed", "siphash"]
    for f in filters:
        assert f | f == f and f & f == f and f.issubset(f)
        for g in filters:
            if f is g:
                continue
            assert f != g
            operations = [
                lambda: f | g,
                lambda: f & g,
                lambda: f.update(g),
                lambda: f.issubset(g),
                lambda: f.isdisjoint(g),
                lambda: f.approx_intersection_len(g),
            ]
            for operation in operations:
                with pytest.raises(TypeError, match="one hasher"):
                    operation()
    fast = BloomFilter(100, hasher="fast")
    with pytest.raises(ValueError, match="hasher differs"):
        fast | BloomFilter(100, hasher="fast", seed=1)


@pytest.mark.parametrize("cls", CLASSES)
def test_arguments_that_exclude_each_other(cls):
    for options, text in [
        ({"hasher": "sha256"}, 'hasher="sha256": "murmur3", "fast" or "prehashed"'),
        ({"hasher": "siphash"}, "secret=True is SipHash"),
        ({"hasher": "fast", "secret": True}, 'hasher="fast" and secret exclude'),
        ({"hasher": "prehashed", "secret": b"s" * 16}, 'hasher="prehashed" and secret exclude'),
        ({"hasher": "prehashed", "seed": 1}, 'hasher="prehashed" and seed exclude'),
        ({"seed": 1, "secret": True}, "seed and secret exclude"),
    ]:
        with pytest.raises(ValueError, match=text):
            cls(10, **options)
    assert Bitmap(10).hasher is None and GuavaBloomFilter(10).hasher is None


@needs_command
def test_files_of_the_command(tmp_path):
    texts = [f"key {i}" for i in range(1000)]
    values = hashes(1000).tolist()
    for hasher, keys in ("murmur3", texts), ("fast", texts), ("prehashed", values):
        (tmp_path / "keys").write_text("".join(f"{key}\n" for key in keys))
        build = ["build", "keys", "-o", "filter", "--hasher", hasher, "--expected", "1000"]
        command(*build, cwd=tmp_path, check=True)
        f = BloomFilter.load(tmp_path / "filter")
        assert f.hasher == hasher and f.contains_many(keys).all()
        mine = BloomFilter(1000, 0.01, hasher=hasher)
        mine.update(keys)
        mine.save(tmp_path / "mine")
        command("query", "mine", "keys", cwd=tmp_path, check=True)
