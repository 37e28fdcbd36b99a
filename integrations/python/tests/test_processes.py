"""Threads, fork and worker processes."""

import multiprocessing
import os
import sys
import threading
import time

import pytest

from common import steps_beside, together
from lanebloom import Bitmap, BloomFilter, ScalableBloomFilter, WindowedBloomFilter

numpy = pytest.importorskip("numpy")


@pytest.mark.parametrize("make", [
    lambda: BloomFilter(400_000, 1e-3),
    lambda: ScalableBloomFilter(1000, 1e-3),
    lambda: WindowedBloomFilter(400_000, 1e-3),
    lambda: Bitmap(400_000),
])
def test_threads_that_share_a_filter_lose_no_key(make):
    f = make()
    keys = numpy.arange(400_000).reshape(4, -1)

    def work(number):
        for chunk in numpy.array_split(keys[number], 20):
            f.add_many(chunk)
            f.add(int(chunk[0]))
            assert f.contains_many(chunk).all()

    together(work, threads=4)
    assert f.contains_many(keys.ravel(), threads=4).all()


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
@pytest.mark.parametrize("keys, threads", [("array", 1), ("array", 2), ("list", 1)])
def test_an_interrupt_is_seen_between_the_pieces_of_an_array(keys, threads):
    """The handler's error ends the call: the pieces before it are done, and the last one is not."""
    # By the processor's time, of which other programs take none.
    import signal

    class Stop(Exception):
        pass

    def stop(number, frame):
        raise Stop

    values = numpy.arange(20_000_000) if keys == "array" else [3] * 10_000_000 + [4]
    started = time.process_time()
    BloomFilter(len(values), 0.01).add_many(values, threads=threads)
    whole = time.process_time() - started
    f = BloomFilter(len(values), 0.01)
    old = signal.signal(signal.SIGPROF, stop)
    try:
        signal.setitimer(signal.ITIMER_PROF, whole / 10)
        with pytest.raises(Stop):
            f.add_many(values, threads=threads)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
    assert 3 in f and values[-1] not in f


@pytest.mark.parametrize("secret", [False, b"s" * 16])
@pytest.mark.parametrize("call", ["add_many", "add_new", "update", "update_filter", "unite"])
def test_single_adds_beside_a_batch_lose_no_key(call, secret):
    """A batch writes to the same words without the interpreter's lock."""
    size, lost, singles = 100_000, 0, 0
    keys = numpy.random.default_rng(1).permutation(size)
    other = BloomFilter(10 * size, secret=secret)
    other.add_many(keys)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(100):
            # Room for the single keys: a union refuses too many.
            f = BloomFilter(10 * size, secret=secret)
            batch = {
                "add_many": lambda: f.add_many(keys, threads=2),
                "add_new": lambda: f.add_new(keys),
                "update": lambda: f.update(keys),
                "update_filter": lambda: f.update(other),
                "unite": lambda: f.__ior__(other),
            }[call]
            thread = threading.Thread(target=batch)
            thread.start()
            key, add = 0, f.add
            while thread.is_alive():
                for _ in range(50):
                    key -= 1
                    add(key)
            thread.join()
            singles -= key
            lost += (~f.contains_many(keys)).sum() + (~f.contains_many(range(key, 0))).sum()
    finally:
        sys.setswitchinterval(interval)
    assert lost == 0 and singles > 0


def test_the_interpreter_runs_on_while_an_array_is_read():
    f = BloomFilter(2_000_000)
    keys = numpy.arange(20_000_000)
    assert steps_beside(lambda: f.add_many(keys)) > 10


def test_more_threads_than_keys():
    f = BloomFilter(100)
    assert f.add_many(numpy.arange(3), threads=64) == 3
    assert f.contains_many(numpy.arange(4), threads=64).sum() == 3
    assert f.add_new(numpy.arange(20_000), threads=5).dtype == bool


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_has_a_copy_and_shares_a_mapped_file(tmp_path):
    f = BloomFilter(1000, 1e-6)
    f.add("before")
    f.save(tmp_path / "filter")
    view = BloomFilter.mmap(tmp_path / "filter")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            fine = "before" in f and "before" in view and f.add("child")
            fine = fine and f.add_many(numpy.arange(100_000), threads=2) > 0
            fresh = BloomFilter(10, secret=True)
            os.write(writing, fresh.secret if fine else b"failed")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    answer = os.read(reading, 100)
    assert len(answer) == 16, answer
    assert "child" not in f
    # Two processes never draw the same secret.
    assert BloomFilter(10, secret=True).secret != answer


def fill(numbers):
    f = BloomFilter(10_000, 1e-6)
    f.update(numbers)
    return f


def look(arguments):
    path, numbers = arguments
    return BloomFilter.mmap(path).contains_many(numbers).tolist()


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers_send_filters_back_and_share_a_file(method, tmp_path):
    with multiprocessing.get_context(method).Pool(2) as pool:
        total = BloomFilter(10_000, 1e-6)
        for part in pool.map(fill, [range(start, start + 100) for start in range(0, 1000, 100)]):
            total |= part
        assert total.contains_many(range(1000)).all() and 1000 not in total
        total.save(tmp_path / "filter")
        answers = pool.map(look, [(tmp_path / "filter", [i, -1]) for i in range(0, 1000, 100)])
        assert answers == [[True, False]] * 10
