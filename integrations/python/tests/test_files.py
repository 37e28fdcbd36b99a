"""Files, bytes, pickles and copies; files of the Rust crate and of the command; hostile bytes."""

import copy
import hashlib
import json
import os
import pickle
import subprocess
import sys
import threading

import pytest

from lanebloom import (
    Bitmap,
    BloomFilter,
    CuckooFilter,
    Filter,
    GuavaBloomFilter,
    ScalableBloomFilter,
    SparkBloomFilter,
    SplitBlockBloomFilter,
    WindowedBloomFilter,
)
from common import ROOT, SECRET, Length, command, copies, damaged, needs_command, options
from test_sets import MAKERS, ident, of

KEYS = [3, 7, 900]
LOADS = [GuavaBloomFilter.load, SparkBloomFilter.load, SplitBlockBloomFilter.load]


def base(f):
    """The class that reads the filter's bytes."""
    return type(f) if isinstance(f, (GuavaBloomFilter, SparkBloomFilter, SplitBlockBloomFilter)) else Filter


@pytest.mark.parametrize("make", MAKERS, ids=ident)
def test_bytes_files_pickles_and_copies_come_back(make, tmp_path):
    f = of(make, KEYS)
    for g in copies(f, tmp_path / "filter", [base(f), type(f)]):
        assert type(g) is type(f) and g == f and g.secret == f.secret
        assert 7 in g and 8 not in g
        assert g.add(8) and 8 not in f
        if isinstance(g, ScalableBloomFilter):
            g.update(range(100_000))


def test_copies_keep_the_limit_of_growth(tmp_path):
    f = ScalableBloomFilter(100, max_bytes=5000)
    for g in copies(f, tmp_path / "filter", [Filter]):
        with pytest.raises(ValueError, match="limit of 5000 bytes"):
            g.update(range(100_000))


def test_pickles_keep_the_function_and_the_bytes_of_integers():
    f = BloomFilter(10, key=len)
    f.add([1, 2])
    assert [5, 6] in pickle.loads(pickle.dumps(f))
    assert [5, 6] in f.copy() and [5, 6] in f | f
    for make in GuavaBloomFilter, SplitBlockBloomFilter:
        f = make(100, int_bytes=4)
        f.add(5)
        assert 5 in pickle.loads(pickle.dumps(f)) and b"\5\0\0\0" in pickle.loads(pickle.dumps(f))
        assert 5 in make.from_bytes(f.to_bytes(), int_bytes=4) and 5 not in make.from_bytes(f.to_bytes())


def test_copies_share_the_function():
    f = BloomFilter(10, key=Length())
    f.add([1, 2])
    assert all([5, 6] in g for g in (f.copy(), copy.copy(f), copy.deepcopy(f)))


def test_a_secret_is_needed_to_load():
    f = BloomFilter(100, secret=True)
    f.add("x")
    assert len(f.secret) == 16 and f.secret not in f.to_bytes()
    with pytest.raises(ValueError, match="pass it as secret="):
        Filter.from_bytes(f.to_bytes())
    assert "x" in Filter.from_bytes(f.to_bytes(), secret=f.secret)
    with pytest.raises(ValueError, match="different keys"):
        Filter.from_bytes(f.to_bytes(), secret=bytes(16))
    # The pickle holds the secret: the documentation warns of it.
    assert f.secret in pickle.dumps(f)


def test_a_mapped_file_answers_and_takes_nothing(tmp_path):
    for extra in {}, {"secret": SECRET}:
        f = BloomFilter(1000, 1e-6, **extra)
        f.update(range(100))
        path = tmp_path / "filter"
        f.save(path)
        view = BloomFilter.mmap(path, **extra)
        assert view == f and 5 in view and 100 not in view
        assert view.contains_many([5, 100]).tolist() == [True, False]
        assert "read-only" in repr(view)
        for call in [lambda: view.add(1), lambda: view.update([1]), lambda: view.add_many([1]),
                     lambda: view.add_new([1000]), lambda: view.update(f)]:
            with pytest.raises(TypeError, match=r"copy\(\)"):
                call()
        both = view | f
        assert both.add(100) and 100 not in view
        assert view.copy().add(100) and (view & f) == f and view.issubset(f) and pickle.loads(pickle.dumps(view)) == f
        # The file is replaced, not written to: the view stays.
        BloomFilter(1000, 1e-6, **extra).save(path)
        assert 5 in view and 5 not in BloomFilter.mmap(path, **extra)


def test_errors_of_files_name_them(tmp_path):
    missing = tmp_path / "missing"
    for call in [Filter.load, BloomFilter.load, BloomFilter.mmap, *LOADS]:
        with pytest.raises(FileNotFoundError) as error:
            call(missing)
        assert error.value.filename == str(missing) or error.value.filename == missing
    with pytest.raises(OSError):
        BloomFilter(1).save(missing / "below")
    for call in Filter.load, *LOADS:
        with pytest.raises(OSError) as error:
            call(tmp_path)
        assert str(error.value.filename) == str(tmp_path)
    (tmp_path / "empty").touch()
    for call in [Filter.load, BloomFilter.mmap, *LOADS]:
        with pytest.raises(ValueError):
            call(tmp_path / "empty")


def test_a_path_may_be_bytes(tmp_path):
    class Path:
        def __fspath__(self):
            return os.fsencode(tmp_path / "filter")

    for f in BloomFilter(9), GuavaBloomFilter(9), SparkBloomFilter(9), SplitBlockBloomFilter(9):
        for path in os.fsencode(tmp_path / "filter"), Path():
            f.save(path)
            assert type(f).load(path) == f
    BloomFilter(9).save(os.fsencode(tmp_path) + b"/\xff")
    assert BloomFilter.mmap(os.fsencode(tmp_path) + b"/\xff") == BloomFilter(9)
    with pytest.raises(TypeError):
        f.save(3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_what_is_no_file_is_neither_replaced_nor_waited_for(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in pipe, link, tmp_path:
        with pytest.raises((OSError, ValueError), match="not a regular file"):
            BloomFilter(9).save(path)
        with pytest.raises(ValueError, match="not a regular file, and cannot be mapped"):
            BloomFilter.mmap(path)
    assert pipe.is_fifo() and link.is_symlink()
    # A pipe can be read.
    thread = threading.Thread(target=lambda: pipe.write_bytes(BloomFilter(9).to_bytes()))
    thread.start()
    assert BloomFilter.load(pipe) == BloomFilter(9)
    thread.join()


def test_limits_of_memory(tmp_path):
    path = tmp_path / "filter"
    for f in [BloomFilter(100_000), ScalableBloomFilter(100_000), CuckooFilter(100_000), Bitmap(1_000_000),
              WindowedBloomFilter(100_000), GuavaBloomFilter(100_000), SparkBloomFilter(100_000),
              SplitBlockBloomFilter(100_000)]:
        f.save(path)
        with pytest.raises(ValueError, match="1000|1_000|limit"):
            type(f).load(path, max_bytes=1000)
        assert type(f).load(path, max_bytes=10_000_000) == f


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["BloomFilter", "GuavaBloomFilter", "SparkBloomFilter", "SplitBlockBloomFilter"])
def test_bytes_need_memory_for_one_filter(name):
    program = f"""
import resource
from lanebloom import {name}

def leave(room):
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + room, resource.getrlimit(resource.RLIMIT_AS)[1]))

data = {name}(30_000_000).to_bytes()
leave(len(data) // 2)
try:
    {name}.from_bytes(data)
except MemoryError:
    leave(len(data) * 3 // 2)
    {name}.from_bytes(data)
else:
    raise SystemExit("there was room for it")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_class_loads_its_own_kind_only():
    with pytest.raises(ValueError, match="a CuckooFilter, not a BloomFilter"):
        BloomFilter.from_bytes(CuckooFilter(9).to_bytes())
    with pytest.raises(ValueError, match="kind CountingBloom, which has no class"):
        Filter.from_bytes((ROOT / "tests/data/snapshot_v1_counting.bin").read_bytes())


@pytest.mark.parametrize("make", MAKERS, ids=ident)
def test_hostile_bytes_are_a_value_error(make):
    f = of(make, range(50))
    good = f.to_bytes()
    read = base(f).from_bytes

    def refused(data):
        try:
            g = read(data, **options(f))
        except (ValueError, MemoryError):
            return True
        # The formats of Guava, Spark and Parquet have no checksum.
        repr(g), g.approx_len, 5 in g, g.to_bytes()
        return isinstance(g, (GuavaBloomFilter, SparkBloomFilter, SplitBlockBloomFilter))

    assert not refused(good) or base(f) is not Filter
    assert all(map(refused, damaged(good)))
    with pytest.raises(ValueError):
        read(good + b"\0", **options(f))
    for data in 3, "text", None:
        with pytest.raises(TypeError):
            read(data)


def test_hostile_pickles_are_errors():
    import lanebloom

    for arguments in [
        ("BloomFilter", b"junk", None, None, 8),
        ("GuavaBloomFilter", b"\1\5\xff\xff\xff\xff" + bytes(8), None, None, 8),
        ("GuavaBloomFilter", b"\1\5\x7f\xff\xff\xff" + bytes(8), None, None, 8),
        ("SparkBloomFilter", b"\0\0\0\3" + bytes(20), None, None, 8),
        ("SparkBloomFilter", b"\0\0\0\1\0\0\0\5\x7f\xff\xff\xff" + bytes(8), None, None, 8),
        ("SplitBlockBloomFilter", b"\xff" * 40, None, None, 8),
        ("SplitBlockBloomFilter", BloomFilter(9).to_bytes(), None, None, 8),
        ("Nothing", b"", None, None, 8),
        ("GuavaBloomFilter", GuavaBloomFilter(9).to_bytes(), None, None, 3),
    ]:
        with pytest.raises(ValueError):
            lanebloom._lanebloom._restore(*arguments)


# Files of others

GOLDEN = [
    ("one", BloomFilter, 450, {}),
    ("two", BloomFilter, 500, {}),
    ("four", BloomFilter, 4500, {}),
    ("eight", BloomFilter, 30, {}),
    ("two_lines", BloomFilter, 200, {}),
    ("siphash", BloomFilter, 500, {"secret": bytes(range(16))}),
    ("scalable", ScalableBloomFilter, 150, {}),
    ("scalable_hint", ScalableBloomFilter, 250, {}),
]


@pytest.mark.parametrize("name, cls, keys, extra", GOLDEN)
def test_files_of_the_rust_crate_are_read(name, cls, keys, extra):
    """The program beside the files made them from the format's description."""
    path = ROOT / f"tests/data/snapshot_v1_{name}.bin"
    f = Filter.load(path, **extra)
    assert type(f) is cls and f.to_bytes() == path.read_bytes()
    present = [f"key {i}" for i in range(keys)]
    found = f.contains_many(present)
    assert found.all()
    assert all(key in f and key.encode() in f for key in present[:20])
    assert f.contains_many([f"other {i}" for i in range(1000)]).mean() < 0.2


def test_a_window_by_a_clock_of_rust_is_refused():
    with pytest.raises(ValueError, match="clock"):
        Filter.load(ROOT / "tests/data/snapshot_v1_windowed.bin")


@pytest.mark.parametrize("generations", [2, 4, 64])
@pytest.mark.parametrize("keys", [0, 5, 100_000])
def test_windows_of_any_fill_come_back(generations, keys):
    f = WindowedBloomFilter(10_000, generations=generations)
    f.update(range(keys))
    assert pickle.loads(pickle.dumps(f)) == f == Filter.from_bytes(f.to_bytes())


def test_files_of_guava_are_read_and_written():
    golden = json.loads((ROOT / "crates/formats/tests/data/guava.json").read_text())
    seen = 0
    for case in golden["small_filters_n10_p001_128bits_k7"]:
        if case["strategy"] != "MITZ_64" or not case["keys"].startswith("int "):
            continue
        keys = [int(key) for key in case["keys"][4:].split(",")]
        data = bytes.fromhex(case["hex"])
        f = GuavaBloomFilter.from_bytes(data, int_bytes=4)
        assert all(key in f for key in keys) and 12_345 not in f and f.to_bytes() == data
        made = GuavaBloomFilter(10, 0.01, int_bytes=4)
        if made.nbytes == f.nbytes:
            made.update(keys)
            assert made.to_bytes() == data
            seen += 1
    assert seen >= 2


def test_filters_of_a_jvm_of_spark_are_read_and_written():
    """Golden bytes of spark-sketch 4.3.0: every key that Spark has, both versions, two seeds."""
    golden = json.loads((ROOT / "crates/formats/tests/data/spark.json").read_text("utf-8"))
    longs = {"min": -(2**63), "max": 2**63 - 1}
    seen = set()
    for case in golden["small_filters_n10_128bits"]:
        kind, _, listed = case["keys"].partition(" ")
        if kind in ("long", "int"):
            keys = [longs.get(key) or int(key) for key in listed.split(",")]
        elif kind == "utf8":
            keys = listed.split(",")
        else:
            keys = [bytes.fromhex(key.replace("[]", "")) for key in listed.split(" and ")]
        data = bytes.fromhex(case["hex"])
        f = SparkBloomFilter.from_bytes(data)
        assert (f.version, f.seed) == (case["version"], case["seed"])
        assert f.contains_many(keys).all() and all(key in f for key in keys) and 12_345 not in f
        assert f.to_bytes() == data
        # A filter of this size, empty: the header and zeros.
        header = 12 if f.version == 1 else 16
        made = SparkBloomFilter.from_bytes(data[:header] + bytes(len(data) - header))
        made.update(keys)
        assert made.to_bytes() == data
        seen.add((f.version, f.seed, kind))
    assert len(seen) >= 8
    for case in golden["big_filters"]["cases"]:
        f = SparkBloomFilter(1_000_000, version=case["version"], seed=case["seed"])
        evens, odds = range(0, 2_000_000, 2), range(1, 2_000_000, 2)
        if case["type"] == "utf8":
            evens, odds = map(str, evens), map(str, odds)
        f.add_many(evens)
        assert hashlib.sha256(f.to_bytes()).hexdigest() == case["sha256"]
        assert sum(map(bool, f.contains_many(odds))) == case["false_positives"]


def test_filters_of_parquet_files_are_read_and_written():
    golden = json.loads((ROOT / "crates/formats/tests/data/split_block.json").read_text())
    seen = 0
    for case in golden["parquet"]:
        bits = {"i32": 4, "i64": 8}.get(case["type"])
        if bits is None:
            continue
        data = bytes.fromhex(case["hex"])
        f = SplitBlockBloomFilter.from_bytes(data, int_bytes=bits)
        assert f.contains_many(case["keys"]).all() and 12_345 not in f
        empty = SplitBlockBloomFilter(len(case["keys"]), int_bytes=bits)
        if empty.nbytes == f.nbytes:
            empty.update(case["keys"])
            assert empty.to_bytes() == data
            seen += 1
    assert seen >= 2


def test_a_header_that_contradicts_the_length_is_refused():
    f = of(lambda: SplitBlockBloomFilter(100), range(100))
    small = SplitBlockBloomFilter(50).to_bytes()
    header = len(small) % 32
    wrong = small[:header] + f.to_bytes()[header:]
    with pytest.raises(ValueError, match="header says .* bytes, and there are"):
        SplitBlockBloomFilter.from_bytes(wrong)
    # Where the file does not say the length.
    more = f.to_bytes() + b"the next column's"
    with pytest.raises(ValueError, match="header says"):
        SplitBlockBloomFilter.from_bytes(more)
    assert SplitBlockBloomFilter.from_bytes(more, prefix=True) == f


@pytest.mark.parametrize("expected, rate", [(250, 0.01), (1000, 1e-5), (100_000, 0.01), (1_000_000, 1e-3)])
def test_filters_for_parquet_keep_their_rate(expected, rate):
    f = SplitBlockBloomFilter(expected, rate)
    assert f.rate <= rate and f.expected == expected
    # Arrow C++ reads no other sizes.
    assert f.nbytes & (f.nbytes - 1) == 0
    f.update(range(expected))
    assert f.current_rate <= 1.2 * rate


@needs_command
def test_the_command_and_python_read_each_other(tmp_path):
    keys = [f"https://example.org/{i}" for i in range(1000)] + ["grün"]

    def run(*arguments, text="".join(key + "\n" for key in keys)):
        return command(*arguments, text=text)

    built = tmp_path / "built"
    assert run("build", "--expected", "2000", "-o", str(built)).returncode == 0
    f = BloomFilter.load(built)
    assert f.contains_many(keys).all() and "absent" not in f and keys[3].encode() in f
    assert BloomFilter.mmap(built).contains_many(keys).all()

    ours = BloomFilter(2000)
    ours.update(keys)
    ours.save(tmp_path / "ours")
    answer = run("query", str(tmp_path / "ours"), "-", text="grün\nabsent\n")
    assert answer.returncode == 1 and "absent" not in answer.stdout.decode().splitlines()[:1]
    assert run("query", str(tmp_path / "ours"), "-").returncode == 0

    # Without a number of keys, and more of them than the first layer takes.
    many = [f"{i}" for i in range(300_000)]
    assert run("build", "-o", str(tmp_path / "grown"), text="\n".join(many)).returncode == 0
    for f in Filter.load(tmp_path / "grown"), ScalableBloomFilter.load(tmp_path / "grown"):
        assert type(f) is ScalableBloomFilter and f.contains_many(many).all() and "absent" not in f
    for call in BloomFilter.load, BloomFilter.mmap:
        with pytest.raises(ValueError):
            call(tmp_path / "grown")

    guava = tmp_path / "guava"
    assert run("build", "--expected", "2000", "--format", "guava", "--funnel", "utf8", "-o", str(guava)).returncode == 0
    assert GuavaBloomFilter.load(guava).contains_many(keys).all()
