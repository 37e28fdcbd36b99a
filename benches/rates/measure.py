"""The measured rates and lost keys of PyPI's filters: called by run.sh, in an environment that has them.

A filter is made for 100,000 keys and a rate, as its documentation says, and gets as many texts: the
numbers from 0 on, or "user:" and seven digits. The absent keys are the next texts. A key is lost if
its insert succeeded and a lookup does not find it. Prints a table.
"""

from importlib.metadata import version

KEYS = 100_000
# The requested rates, and how many absent keys are looked up.
RATES = [(0.01, 200_000), (1e-4, 1_000_000)]
TEXTS = [str, "user:{:07}".format]
# Buckets of a cuckoo filter, if it is made for so many in place of keys: 4 keys each, 95% full.
BUCKETS = -(-KEYS * 20 // 19 // 4)


def pybloom_live(rate):
    from pybloom_live import BloomFilter

    f = BloomFilter(capacity=KEYS, error_rate=rate)
    return f.add, f.__contains__


def bloom_filter2(rate):
    from bloom_filter2 import BloomFilter

    f = BloomFilter(max_elements=KEYS, error_rate=rate)
    return f.add, f.__contains__


def rbloom(rate):
    from rbloom import Bloom

    f = Bloom(KEYS, rate)
    return f.add, f.__contains__


def abloom(rate):
    from abloom import BloomFilter

    f = BloomFilter(KEYS, rate)
    return f.add, f.__contains__


def pybloomfilter(rate):
    from pybloomfilter import BloomFilter

    f = BloomFilter(KEYS, rate)
    return f.add, f.__contains__


def fastbloom_rs(rate):
    from fastbloom_rs import BloomFilter

    f = BloomFilter(KEYS, rate)
    return f.add, f.contains


def probables(rate):
    from probables import BloomFilter

    f = BloomFilter(est_elements=KEYS, false_positive_rate=rate)
    return f.add, f.check


def probables_cuckoo(rate):
    from probables import CuckooFilter

    f = CuckooFilter.init_error_rate(error_rate=rate, capacity=BUCKETS)
    return f.add, f.check


def poppy(rate):
    from poppy import BloomFilter

    f = BloomFilter(KEYS, rate)
    return f.insert_str, f.contains_str


def scf(rate):
    from scf import PyScalableCuckooFilter

    f = PyScalableCuckooFilter(KEYS, rate)
    return f.insert, f.might_contain


def scalable_cuckoo(rate):
    from cuckoo.filter import CuckooFilter

    f = CuckooFilter(capacity=BUCKETS, error_rate=rate)
    return f.insert, f.contains


def cuckoopy(rate):
    from cuckoopy import CuckooFilter

    f = CuckooFilter(capacity=BUCKETS)
    return f.insert, f.contains


# Package, type, how it is made, whether it takes a rate.
ROWS = [
    ("pybloom-live", "BloomFilter", pybloom_live, True),
    ("bloom-filter2", "BloomFilter", bloom_filter2, True),
    ("rbloom", "Bloom", rbloom, True),
    ("abloom", "BloomFilter", abloom, True),
    ("pybloomfiltermmap3", "BloomFilter", pybloomfilter, True),
    ("fastbloom-rs", "BloomFilter", fastbloom_rs, True),
    ("poppy-py", "BloomFilter", poppy, True),
    ("pyprobables", "BloomFilter", probables, True),
    ("pyprobables", "CuckooFilter.init_error_rate", probables_cuckoo, True),
    ("cjrh-scalable-cuckoo-filter", "PyScalableCuckooFilter", scf, True),
    ("scalable-cuckoo-filter", "CuckooFilter", scalable_cuckoo, True),
    ("cuckoopy", "CuckooFilter", cuckoopy, False),
]


def measure(make, rate, absent):
    """For each kind of texts the rate; the keys that were lost, and those that were refused."""
    rates, lost, refused = [], 0, 0
    for text in TEXTS:
        add, contains = make(rate)
        accepted = []
        for i in range(KEYS):
            try:
                add(text(i))
            except Exception:
                refused += 1
            else:
                accepted.append(i)
        lost += sum(not contains(text(i)) for i in accepted)
        rates.append(sum(contains(text(i)) for i in range(KEYS, KEYS + absent)) / absent)
    return rates, lost, refused


print("| package | type | 1% | 1e-4 | lost of 100,000 | refused |\n|---|---|--:|--:|--:|--:|")
for package, name, make, takes_rate in ROWS:
    cells, losses, refusals = [], [], []
    for rate, absent in RATES if takes_rate else RATES[:1]:
        rates, lost, refused = measure(make, rate, absent)
        cells.append(", ".join(f"{r / rate:.2f}" if takes_rate else f"{100 * r:.2f}%" for r in rates))
        losses.append(lost)
        refusals.append(refused)
    cells += [""] * (len(RATES) - len(cells))
    count = len(losses) * len(TEXTS)
    mean = [f"{sum(all_) / count:.0f}" for all_ in (losses, refusals)]
    print(f"| {package} {version(package)} | `{name}` | {' | '.join(cells + mean)} |", flush=True)
