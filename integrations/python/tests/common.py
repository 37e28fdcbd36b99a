"""Code that several tests share."""

import copy
import faulthandler
import os
import pathlib
import pickle
import shutil
import subprocess
import threading
import time

import pytest

# The command `lanebloom`, which ci/python.sh builds.
COMMAND = os.environ.get("LANEBLOOM_COMMAND") or shutil.which("lanebloom")
needs_command = pytest.mark.skipif(not COMMAND, reason="needs the command: set LANEBLOOM_COMMAND")

ROOT = pathlib.Path(os.environ.get("LANEBLOOM_ROOT") or pathlib.Path(__file__).parents[3])
SECRET = b"s" * 16
THREADS = 8


class Length:
    """A function that can be neither copied nor pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, key):
        return len(key)


def options(f):
    return {} if f.secret is None else {"secret": f.secret}


def damaged(good, head=300):
    """Bytes that end early or have another byte: everywhere in the head, here and there behind it."""
    head = min(head, len(good))
    for n in [*range(head), *range(head, len(good), 37)]:
        yield good[:n]
    for i in [*range(head), *range(head, len(good), 61)]:
        for value in {0, 255, good[i] ^ 1, good[i] ^ 128} - {good[i]}:
            yield good[:i] + bytes([value]) + good[i + 1 :]


def is_refused(read, data):
    try:
        read(data)
    except (ValueError, MemoryError):
        return True
    return False


def command(*arguments, text=None, **options):
    """The result of the command with these arguments."""
    text = text if text is None else text.encode()
    return subprocess.run([COMMAND, *arguments], input=text, stdout=subprocess.PIPE, **options)


def copies(f, path, reads):
    """The filter from each place that keeps one: copies, pickles, bytes, a file, by the classes that read it."""
    f.save(path)
    assert os.listdir(path.parent) == [path.name]
    yield from (f.copy(), copy.copy(f), copy.deepcopy(f))
    yield from (pickle.loads(pickle.dumps(f, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1))
    for cls in reads:
        yield from (cls.from_bytes(data, **options(f)) for data in (f.to_bytes(), bytearray(f.to_bytes())))
        yield from (cls.load(place, **options(f)) for place in (path, str(path), os.fsencode(path)))


def together(work, threads=THREADS):
    """Runs work(0), work(1) and so on at once; the first error is the caller's."""
    barrier, errors = threading.Barrier(threads), []

    def run(number):
        try:
            barrier.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(300)
        if thread.is_alive():
            faulthandler.dump_traceback()
            pytest.fail("threads wait for each other")
    if errors:
        raise errors[0]


def steps_beside(work):
    """How often this thread runs while another one works: seldom, if that one keeps the interpreter's lock."""
    steps, thread = 0, threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        steps += 1
        time.sleep(0.001)
    thread.join()
    return steps
