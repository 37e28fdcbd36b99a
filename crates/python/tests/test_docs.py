"""The examples of every docstring, and what help() shows."""

import doctest
import inspect
import pydoc
import sys

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


@pytest.mark.parametrize("name", ITEMS)
def test_examples_of_docstrings(name):
    text = ITEMS[name].__doc__ or getattr(ITEMS[name], "__func__", ITEMS[name]).__doc__
    assert text and text.strip(), "no docstring"
    test = doctest.DocTestParser().get_doctest(text, vars(lanebloom).copy(), name, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def test_there_are_examples():
    examples = [name for name, item in ITEMS.items() if ">>>" in (item.__doc__ or "")]
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
    for word in "contains_many", "update", "copy", "save":
        assert word in text
