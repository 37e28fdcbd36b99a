"""The file that type checkers read is a program that runs."""

import pathlib
import runpy


def test_the_typed_program_runs():
    runpy.run_path(str(pathlib.Path(__file__).with_name("typed.py")))
