"""What several tests share."""

import os
import pathlib

ROOT = pathlib.Path(os.environ.get("LANEBLOOM_ROOT") or pathlib.Path(__file__).parents[3])
SECRET = b"s" * 16


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
