"""The examples of every docstring, and what help() shows."""

import ast
import datetime
import decimal
import doctest
import importlib
import inspect
import os
import pathlib
import pydoc
import sys
import uuid

import pytest

import lanebloom


def documented():
    for name in lanebloom.__all__:
        item = getattr(lanebloom, name)
        if name.startswith("__"):
            continue
        yield name, item
        if isinstance(item, type):
            for method, value in vars(item).items():
                if not method.startswith("_"):
                    yield f"{name}.{method}", value


ITEMS = dict(documented())


def text_of(name):
    """The docstring; a static method's own, not that of the class staticmethod."""
    return getattr(ITEMS[name], "__func__", ITEMS[name]).__doc__


@pytest.mark.parametrize("name", ITEMS)
def test_examples_of_docstrings(name):
    text = text_of(name)
    assert text and text.strip(), "no docstring"
    test = doctest.DocTestParser().get_doctest(text, vars(lanebloom).copy(), name, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def stub_docstrings():
    """The docstrings in the file that editors and type checkers read, by name."""
    stub = pathlib.Path(lanebloom.__file__).with_name("_lanebloom.pyi")
    found = {}

    def visit(body, prefix):
        for item in body:
            if isinstance(item, (ast.ClassDef, ast.FunctionDef)):
                text = ast.get_docstring(item)
                # An overloaded method has it once.
                if text is not None:
                    found[prefix + item.name] = text
            if isinstance(item, ast.ClassDef):
                visit(item.body, f"{item.name}.")

    visit(ast.parse(stub.read_text("utf-8")).body, "")
    return found


def test_the_stubs_have_the_docstrings():
    # Each class has an add of its own, for its speed.
    names = [name for name in ITEMS if not name.endswith(".add") or name in ("Filter.add", "FilterBank.add")]
    expected = {name: inspect.cleandoc(text_of(name)) for name in names}
    # Methods that are not of every filter stand in a class for checkers only.
    for method in "issubset", "isdisjoint":
        expected[f"_Compared.{method}"] = expected.pop(f"Filter.{method}")
    assert stub_docstrings() == expected


def test_there_are_examples():
    examples = [name for name in ITEMS if ">>>" in text_of(name)]
    classes = [name for name, item in ITEMS.items() if isinstance(item, type)]
    assert set(classes) - {"Filter"} <= set(examples)
    assert len(examples) >= 15, examples


@pytest.mark.parametrize("name", [name for name, item in ITEMS.items() if isinstance(item, type)])
def test_help_shows_signatures_and_text(name):
    text = pydoc.render_doc(ITEMS[name], renderer=pydoc.plaintext)
    if name == "ArrowAnswers":
        # No filter, and made by filters only.
        return
    assert "add_many(self, keys, /, *, threads=1)" in text or name != "Filter"
    # CPython 3.9 finds no signature of a class in its docstring.
    assert name == "Filter" or sys.version_info < (3, 10) or "..." not in str(inspect.signature(ITEMS[name]))
    words = ["which_many", "push", "copy", "save"] if name == "FilterBank" else ["contains_many", "update", "copy", "save"]
    for word in words:
        assert word in text


def test_the_table_of_arrays():
    numpy = pytest.importorskip("numpy")
    day, moment = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3)
    objects = [None, "a", 2.0, ("x", 1)]
    rows = {
        "`datetime64[D]` and other units": [
            (numpy.array(["2024-02-29"], "datetime64[D]"), [day]),
            (numpy.array(["2024-02"], "datetime64[M]"), [datetime.date(2024, 2, 1)]),
            (numpy.array(["2024"], "datetime64[Y]"), [datetime.datetime(2024, 1, 1)]),
            *((numpy.array([moment], f"datetime64[{unit}]"), [moment]) for unit in ("s", "ms", "us", "ns")),
        ],
        "`NaT`, NaN, a masked value": [
            (numpy.array(["NaT"], "datetime64[D]"), [None]),
            (numpy.array([float("nan")]), [None]),
            (numpy.ma.masked_array([1, 2], [True, False]), [None, 2]),
            (numpy.array([None, 3], object), [None, 3]),
        ],
        "`S`": [(numpy.array([b"ab\0\0", b"c"], "S4"), [b"ab", b"c"])],
        "`V`": [(numpy.array([b"ab\0\0"], "V4"), [b"ab\0\0"])],
        "`U`, `StringDType`": [
            (numpy.array(["gr\u00fcn"]), ["gr\u00fcn"]),
            *([(numpy.array(["a"], numpy.dtypes.StringDType()), ["a"])] if hasattr(getattr(numpy, "dtypes", None), "StringDType") else []),
        ],
        "bool, integers, floats": [
            (numpy.array([True]), [1]), (numpy.array([3], "i2"), [3]), (numpy.array([0.5], "f4"), [0.5]),
        ],
        "objects": [(numpy.array([*objects, None], object)[:4], objects)],
        "`timedelta64`, `datetime64[ps]`": [
            (numpy.array([1], "timedelta64[s]"), TypeError), (numpy.array([1], "datetime64[ps]"), TypeError),
            (numpy.array([1j]), TypeError), (numpy.array([(1, "a")], "i8,U1"), TypeError),
            (numpy.array([[1, 2]]), ValueError),
        ],
    }
    for array, keys in (case for cases in rows.values() for case in cases):
        f = lanebloom.BloomFilter(1000, 1e-9)
        if not isinstance(keys, list):
            with pytest.raises(keys):
                f.add_many(array)
            continue
        assert f.add_many(array) == len(keys)
        assert all(key in f for key in keys), (array, keys)
        assert "another" not in f
    are_on_the_page("| in an array | key |", rows)


def are_on_the_page(head, rows):
    root = os.environ.get("LANEBLOOM_ROOT")
    if root is None:
        pytest.skip("without LANEBLOOM_ROOT, the page is not there")
    page = (pathlib.Path(root) / "integrations/python/README.md").read_text(encoding="utf-8")
    table = page.split(head)[1].split("\n\n")[0].splitlines()[2:]
    assert len(table) == len(rows)
    for line, start in zip(table, rows):
        assert line.startswith(f"| {start}")


def test_the_table_of_columns():
    pa = pytest.importorskip("pyarrow")
    day, moment, one = datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2, 3), uuid.UUID(int=5)
    price = decimal.Decimal("19.99")
    extension = pa.ExtensionArray.from_storage
    rows = {
        "integers, floats": [
            *((pa.array([value]), [value]) for value in (7, 0.5, True, "a", b"a", day, moment)),
            (pa.array([0.5], pa.float16()), [0.5]), (pa.array([one], pa.uuid()), [one]), (extension(pa.json_(), pa.array(["{}"])), ["{}"]),
        ],
        "decimals": [(pa.array([price, decimal.Decimal(3)]), [price, 3])],
        "dictionaries": [(pa.array(["a", None]).dictionary_encode(), ["a", None]), (pa.DictionaryArray.from_arrays([3], ["a"], safe=False), ValueError)],
        "structs": [(pa.table({"a": [1, None], "b": pa.array([b"xy", b"zz"], pa.binary(2))}), [(1, b"xy"), (None, b"zz")])],
        "objects and sparse columns of pandas": [],
        "null, NaN": [(pa.array([None, 1.5]), [None, 1.5]), (pa.array([float("nan"), 1.5]), [None, 1.5])],
        "times of a day": [(pa.array([value]), TypeError) for value in (moment.time(), moment - moment, [1])],
        "polars: `Object`": [],
        "DuckDB: `UUID`": [],
        "Arrow: extension types": [(extension(pa.opaque(pa.int8(), "t", "v"), pa.array([1], pa.int8())), TypeError)],
    }
    if pd := optional("pandas"):
        rows["objects and sparse columns of pandas"] += [
            (pd.DataFrame({"x": pd.Series([day, moment], dtype=object), "n": [1, 2]}), [(day, 1), (moment, 2)]),
            (pd.Series([0, 5], dtype="Sparse[int64]"), [0, 5]),
        ]
        rows["Arrow: extension types"] += [(pd.Series(pd.period_range("2024", periods=2, freq="M")), TypeError)]
    if pl := optional("polars"):
        rows["decimals"] += [(pl.Series([5], dtype=pl.Int128), [5])]
        rows["polars: `Object`"] += [(pl.Series([one]), TypeError), (pl.LazyFrame({"a": [1]}), TypeError)]
    if duckdb := optional("duckdb"):
        rows["decimals"] += [(duckdb.sql("select sum(1)"), [1])]
        rows["DuckDB: `UUID`"] += [(duckdb.sql(f"select {sql}"), TypeError) for sql in ("uuid()", "'01'::bit", "1::bignum", "1::uhugeint")]
    for column, keys in (case for cases in rows.values() for case in cases):
        f = lanebloom.BloomFilter(1000, 1e-9)
        if not isinstance(keys, list):
            with pytest.raises(keys):
                f.add_many(column)
            continue
        assert f.add_many(column) == len(keys)
        assert all(key in f for key in keys), (column, keys)
        assert "another" not in f
    are_on_the_page("| in a column | key |", rows)


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
