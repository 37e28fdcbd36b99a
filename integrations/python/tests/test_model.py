"""Any operations, beside a set of Python."""

import pickle

import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, settings, strategies as st  # noqa: E402
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule  # noqa: E402

import lanebloom  # noqa: E402
from lanebloom import BloomFilter, CuckooFilter, Filter, ScalableBloomFilter, WindowedBloomFilter, key_bytes  # noqa: E402

SIMPLE = st.one_of(
    st.integers(),
    st.integers(-(2**63), 2**64 - 1),
    st.text(st.characters(codec="utf-8")),
    st.binary(max_size=40),
    st.floats(),
    st.booleans(),
    st.none(),
    st.uuids(),
    st.datetimes(),
    st.dates(),
    st.ip_addresses(),
)
KEYS = st.one_of(SIMPLE, st.tuples(SIMPLE, SIMPLE), st.tuples(SIMPLE, st.tuples(SIMPLE)))
LISTS = st.lists(KEYS, max_size=30)
COUNT = {"operations": 0}


class Machine(RuleBasedStateMachine):
    """Filters of which nothing is forgotten: each must have what its model has.

    Rates are so small that a key too many is a bug.
    """

    filters = Bundle("filters")

    @invariant()
    def count(self):
        COUNT["operations"] += 1

    @rule(target=filters, kind=st.integers(0, 3), secret=st.sampled_from([False, b"s" * 16]))
    def make(self, kind, secret):
        make = [
            lambda: BloomFilter(2000, 1e-7, secret=secret),
            lambda: ScalableBloomFilter(16, 1e-7, secret=secret),
            lambda: WindowedBloomFilter(2000, 1e-7, secret=secret),
            lambda: CuckooFilter(2000, 1e-6, secret=secret),
        ]
        return [make[kind](), set()]

    @rule(pair=filters, key=KEYS)
    def add(self, pair, key):
        f, model = pair
        content = key_bytes(key)
        try:
            new = f.add(key)
        except ValueError as error:
            assert isinstance(f, CuckooFilter) and "12 times" in str(error)
            return
        assert new == (content not in model) or isinstance(f, CuckooFilter)
        model.add(content)

    @rule(pair=filters, keys=LISTS, how=st.integers(0, 3))
    def add_some(self, pair, keys, how):
        f, model = pair
        contents = [key_bytes(key) for key in keys]
        try:
            if how == 0:
                f.update(keys)
            elif how == 1:
                f.update(iter(keys[:3]), tuple(keys[3:]))
            elif how == 2:
                expected = [c not in model and c not in contents[:i] for i, c in enumerate(contents)]
                assert f.add_new(keys).tolist() == expected
            else:
                added = f.add_many(keys)
                assert added == len(set(contents) - model) or isinstance(f, CuckooFilter)
        except ValueError as error:
            assert isinstance(f, CuckooFilter) and "12 times" in str(error)
            model.update(c for c in contents if c in f)
            return
        model.update(contents)

    @rule(pair=filters, keys=LISTS)
    def look(self, pair, keys):
        f, model = pair
        expected = [key_bytes(key) in model for key in keys]
        assert [key in f for key in keys] == expected
        assert f.contains_many(keys).tolist() == expected

    @rule(target=filters, pair=filters, how=st.integers(0, 3))
    def copy(self, pair, how):
        f, model = pair
        extra = {"secret": f.secret} if f.secret else {}
        made = [
            f.copy,
            lambda: pickle.loads(pickle.dumps(f)),
            lambda: Filter.from_bytes(f.to_bytes(), **extra),
            lambda: type(f).from_bytes(f.to_bytes(), **extra),
        ][how]()
        assert made == f and type(made) is type(f)
        return [made, set(model)]

    @rule(a=filters, b=filters)
    def unite(self, a, b):
        (f, model), (g, other) = a, b
        try:
            f |= g
        except (TypeError, ValueError) as error:
            if "the union would have" in str(error):
                # More keys than the filter's rate allows.
                assert len(model | other) > 16
                return
            assert type(f) is not type(g) or f.secret != g.secret or isinstance(f, CuckooFilter)
            return
        assert f is a[0]
        model.update(other)

    @rule(a=filters, b=filters)
    def compare(self, a, b):
        (f, model), (g, other) = a, b
        if isinstance(f, BloomFilter) and isinstance(g, BloomFilter) and f.secret == g.secret:
            assert not model <= other or f.issubset(g)
            if f.isdisjoint(g):
                assert not model & other
            both = f & g
            assert all(content in both for content in model & other)
            assert (f == g) == (model == other)

    @rule(pair=filters, key=KEYS)
    def remove(self, pair, key):
        f, model = pair
        content = key_bytes(key)
        if isinstance(f, CuckooFilter):
            count = f.count(key)
            assert (count > 0) == (content in model) == f.discard(key)
            if count == 1:
                model.discard(content)
            assert f.count(key) == max(count - 1, 0)

    @rule(pair=filters, bad=st.sampled_from([[], {}, 1j, "\ud800", object()]))
    def refuse(self, pair, bad):
        f, model = pair
        for call in f.add, f.__contains__, lambda bad: f.add_many([bad]):
            with pytest.raises((TypeError, ValueError)):
                call(bad)

    @rule(pair=filters)
    def everything(self, pair):
        f, model = pair
        assert f.contains_many(list(model)).all() if model else True
        repr(f), f.approx_len, f.current_rate


def test_ten_thousand_operations_beside_a_set():
    hypothesis.stateful.run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=400,
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert COUNT["operations"] >= 10_000, COUNT


FILTERS = [name for name in lanebloom.__all__ if hasattr(getattr(lanebloom, name), "from_bytes")]


@hypothesis.given(st.binary(max_size=300), st.sampled_from(FILTERS))
@hypothesis.settings(deadline=None, max_examples=300)
def test_any_bytes_are_a_filter_or_a_value_error(data, name):
    try:
        f = getattr(lanebloom, name).from_bytes(data)
    except ValueError:
        return
    repr(f), f.which(5) if name == "FilterBank" else 5 in f
